"""Questions about notes: what the loader reads, how a ranking is scored, and what the questions promise."""

from __future__ import annotations

import io
import re
import tarfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cli_runner import Shell
from evaluation_data import Small, case, request, results

from infinimem.cli.bench import SEARCHING
from infinimem.errors import UsageError
from infinimem.evaluation.datasets import benchmark, notes
from infinimem.evaluation.metrics.retrieval import reciprocal_rank
from infinimem.evaluation.model import Case, Found
from infinimem.evaluation.runner import Run
from infinimem.terms import analyzer

FILES = {
    "til/git/undo.md": "# Undo A Commit\n\nUse `git reset` to go back.\n",
    "til/unix/count.md": "# Count\n\nTwo ways.\n\n## By lines\n\n`wc -l`\n\n## By words\n\n`wc -w`\n",
    "EIPs/EIPS/eip-1.md": "---\ntitle: A\n---\n\n## Fees\n\nBase\n\n### Costs\n\nLow\n\n## Costs\n\nHigh\n",
    "EIPs/README": "no note",
}
ASKED: list[dict[str, Any]] = [
    {"id": "til-1", "gold": [["til/git/undo.md", "Undo A Commit"]], "question": "go back a commit"},
    {
        "id": "til-2",
        "gold": [["til/unix/count.md", "By words"], ["til/git/undo.md", "Undo A Commit"]],
        "question": "wc",
    },
    {"id": "til-3", "split": "held", "gold": [["til/unix/count.md", "By lines"]], "question": "lines"},
    {"id": "EIPs-1", "gold": [["EIPs/EIPS/eip-1.md", "Costs", 2]], "question": "the high cost"},
    {"id": "EIPs-2", "gold": [["EIPs/EIPS/eip-1.md", "Fees"]], "question": "the base fee"},
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of small collections, and questions about them."""
    rows = [{"split": "dev", "group": "plain", **row} for row in ASKED]
    monkeypatch.setattr(notes, "questions", lambda: rows)
    for name, text in FILES.items():
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "data"


def pack(path: Path, files: dict[str, str]) -> Path:
    with tarfile.open(path, "w:xz") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            tar.addfile(member, io.BytesIO(text.encode()))
    return path


def read(path: Path, split: str | None = None) -> list[Case]:
    return list(benchmark("notes", split=split).cases(path))


def test_labels_are_lines(folder: Path) -> None:
    til, eips = read(folder)
    assert (til.name, eips.name) == ("til", "EIPs")
    assert [question.id for question in til.questions] == ["til-1", "til-2"]
    assert til.questions[1].turns == {"til/unix/count.md:9-11", "til/git/undo.md:1-3"}
    assert til.questions[1].sessions == {"til/unix/count.md", "til/git/undo.md"}
    assert eips.questions[0].turns == {"EIPs/EIPS/eip-1.md:13-15"}, "the second of two headings"
    assert eips.questions[1].turns == {"EIPs/EIPS/eip-1.md:5-12"}, "a section has those under it"
    assert eips.turns[0].turn == "EIPs/EIPS/eip-1.md:1-3", "what stands in front is a block too"
    assert [question.id for found in read(folder, "held") for question in found.questions] == ["til-3"]


def test_an_archive_is_read_as_what_it_holds(folder: Path, tmp_path: Path) -> None:
    archive = pack(tmp_path / "notes_til.tar.xz", FILES)
    assert read(archive) == read(folder), "one archive may hold both"
    assert read(tmp_path)[0] == read(folder)[0], "a folder of archives"


@pytest.mark.parametrize("name", ["../til/x.md", "/til/x.md", "til/../../x.md"])
def test_an_archive_stays_in_its_folder(folder: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="outside its folder"):
        read(pack(tmp_path / "notes_til.tar.xz", {**FILES, name: "# X\n"}))


def test_other_notes_are_one_line(folder: Path, tmp_path: Path) -> None:
    (folder / "til/unix/count.md").write_text("# Count\n")
    with pytest.raises(UsageError, match=r"til/unix/count\.md has no section 'By words'"):
        read(folder)
    with pytest.raises(UsageError, match="no notes at"):
        read(tmp_path / "data/til")
    with pytest.raises(UsageError, match="leave --split out for locomo"):
        benchmark("locomo", split="dev")


def test_places_are_those_of_hits(folder: Path) -> None:
    til = read(folder)[0]
    question = til.questions[1]
    ranked = ("til/x.md:1-9", "til/unix/count.md:1-11", "til/unix/count.md:9-11", "til/git/undo.md:1-3")
    scores = benchmark("notes").retrieval(til, question, [Found("", (turn,), 1) for turn in ranked])
    assert scores["R@5"] == 1 and scores["MRR"] == 1 / 2
    assert scores["N@5"] == pytest.approx((1 / 1.585 + 1 / 2.3219) / (1 + 1 / 1.585), abs=1e-4)
    assert scores["doc MRR"] == 1 / 2 and scores["doc R@5"] == 1
    assert scores["doc N@5"] == pytest.approx((1 / 1.585 + 1 / 2) / (1 + 1 / 1.585), abs=1e-4)
    four = benchmark("notes").retrieval(til, question, [Found("", ("til/unix/count.md:9-11",), 1)] * 5)
    assert four["R@5"] == 1 / 2, "hits on a section that was had take places"
    none = benchmark("notes").retrieval(til, question, [])
    assert (none["MRR"], none["doc MRR"], none["R@5"]) == (0, 0, 0)


def test_the_reciprocal_rank_is_of_the_first() -> None:
    assert reciprocal_rank("abcd", "cb") == 1 / 2 and reciprocal_rank("abcd", "x") == 0


def test_a_run_over_notes(folder: Path, tmp_path: Path) -> None:
    """A hit of the tool is the block that it is from, whatever lines it shows of it."""
    methods = ("infini-search", "infini-search:people=false", "fts5", "bm25", "grep")
    asked = replace(request(tmp_path, *methods, retrieval_only=True), data=folder)
    ended = Run(asked, benchmark("notes")).start(lambda done, total: None, 0)
    assert (ended.done, ended.failed) == (20, 0)
    found = {(result.method, result.question): result for result in results(tmp_path / "out")}
    blocks = {turn.turn for history in read(folder) for turn in history.turns}
    for method in methods:
        hits = found[method, "til-1"]
        assert hits.scores["R@5"] == 1
        assert {turn for item in hits.found for turn in item.turns} <= blocks
    assert found["infini-search", "EIPs-1"].found[0].turns == ("EIPs/EIPS/eip-1.md:13-15",)
    with pytest.raises(UsageError, match="holds a run with other data"):
        (folder / "til/git/undo.md").write_text("# Undo A Commit\n\nNo.\n")
        Run(asked, benchmark("notes")).estimate()


def test_the_tool_needs_notes(tmp_path: Path) -> None:
    asked = request(tmp_path, "infini-search", retrieval_only=True)
    ended = Run(asked, Small([case("one")])).start(lambda done, total: None, 0)
    assert ended.failed == 1
    assert "leave it out here" in (tmp_path / "out/errors.jsonl").read_text()


def test_the_command(shell: Shell, folder: Path) -> None:
    ran = shell("bench", "notes", "--data", str(folder), "--out", "o")
    assert ran.code == 0, ran.err
    names, *rows = (line.split("\t") for line in ran.out.splitlines())
    assert names[2:8] == ["R@5", "N@5", "MRR", "doc R@5", "doc N@5", "doc MRR"]
    assert [(row[0], row[1]) for row in rows] == [(name, "4") for name in SEARCHING.split(",")]
    words = "bench notes --split held --methods bm25 --out h --data".split()
    assert shell(*words, str(folder)).out.splitlines()[1].split("\t")[:2] == ["bm25", "1"]


# ── the questions that come with the package ────────────────────────────────────────────────────


def test_half_of_the_questions_are_held_out() -> None:
    rows = notes.questions()
    counts = Counter((str(row["id"]).partition("-")[0], row["split"], row["group"]) for row in rows)
    assert len({row["id"] for row in rows}) == len({row["question"] for row in rows}) == 60
    groups = {"plain": 10, "no shared rare word": 5}
    assert counts == {
        (name, split, group): count
        for name in notes.COLLECTIONS
        for split in notes.SPLITS
        for group, count in groups.items()
    }


@pytest.mark.parametrize("name", notes.COLLECTIONS)
def test_the_groups_are_what_they_say(shared_data: Path, name: str) -> None:
    """A rare word is in fewer than 2 % of the notes. No question quotes five words of the note in a row."""
    words = analyzer("english")
    texts = {doc: data.decode("utf-8", "replace") for doc, data in notes.read(shared_data, name).items()}
    df = Counter(term for text in texts.values() for term in set(words.tokens(text)))
    cases = [found for split in notes.SPLITS for found in read(shared_data, split) if found.name == name]
    for question in (question for found in cases for question in found.questions):
        gold = [section.rpartition(":") for section in question.turns]
        lines = [(doc, *map(int, span.split("-"))) for doc, _, span in gold]
        section = "\n".join("\n".join(texts[doc].splitlines()[a - 1 : b]) for doc, a, b in lines)
        rare = {term for term in words.query_terms(question.text) if df[term] < 0.02 * len(texts)}
        shared = rare.intersection(words.tokens(section))
        assert bool(shared) == (question.category == "plain"), (question.id, shared)
        asked = plain(question.text).split()
        runs = (" ".join(asked[at : at + 5]) for at in range(len(asked) - 4))
        assert not [run for run in runs if f" {run} " in f" {plain(section)} "], question.id


def plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))
