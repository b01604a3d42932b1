"""Questions about notes: what the loader reads, how a ranking is scored, and what the questions promise."""

from __future__ import annotations

import io
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from evaluation_data import request, results

from infinimem.errors import UsageError
from infinimem.evaluation.datasets import abilities, benchmark
from infinimem.evaluation.model import Case, Found
from infinimem.evaluation.runner import Run

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
    monkeypatch.setattr(abilities, "note_questions", lambda: rows)
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


@pytest.mark.sample(2)
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


def test_a_run_over_notes(folder: Path, tmp_path: Path) -> None:
    """A hit of the tool is the block that it is from, whatever lines it shows of it."""
    methods = ("infini-search", "infini-search:people=false", "fts5", "bm25", "grep")
    asked = replace(request(tmp_path, *methods, retrieval_only=True), data=folder)
    assert Run(asked, benchmark("notes")).start(lambda done, total: None, 0) == 0
    found = {(result.method, result.question): result for result in results(tmp_path / "out")}
    assert len(found) == 20
    blocks = {turn.turn for history in read(folder) for turn in history.turns}
    for method in methods:
        hits = found[method, "til-1"]
        assert hits.scores["R@5"] == 1
        assert {turn for item in hits.found for turn in item.turns} <= blocks
    assert found["infini-search", "EIPs-1"].found[0].turns == ["EIPs/EIPS/eip-1.md:13-15"]
    with pytest.raises(UsageError, match="holds a run with other data"):
        (folder / "til/git/undo.md").write_text("# Undo A Commit\n\nNo.\n")
        Run(asked, benchmark("notes")).estimate()
