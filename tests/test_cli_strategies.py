"""--strategy, rebuild and compare: which systems keep a library, and what each answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_runner import Shell

SAID = ("I moved to Lisbon in March.", "My sister Ana is allergic to peanuts.")


def told(shell: Shell) -> Shell:
    for text in SAID:
        assert shell("add", text, "--session", "s1").code == 0
    return shell


def derived(shell: Shell, folder: str) -> dict[str, bytes]:
    root = Path(shell.library)
    return {path.name: path.read_bytes() for path in sorted((root / folder).glob("*.md"))}


def test_a_library_remembers_who_keeps_it(shell: Shell) -> None:
    assert shell("--strategy", "allmem", "init").code == 0
    assert 'strategy = "allmem"' in (shell.library / "infinimem.toml").read_text().splitlines()
    assert not (shell.library / "topics").exists() and not (shell.library / "CURRENT.md").exists()
    told(shell)
    assert shell("status", "--json").json["strategy"] == "allmem"
    assert sorted(derived(shell, "allmem/units")) == ["u-000001.md", "u-000002.md"]


def test_what_is_kept_by_one_can_be_kept_by_another_too(shell: Shell) -> None:
    assert shell("init").code == 0
    told(shell)
    assert shell("consolidate").code == 0
    topics = derived(shell, "topics")
    done = shell("rebuild", "--strategy", "allmem", "--json").json
    assert done["strategy"] == "allmem" and done["evidence"] == 2 and done["receipts"]
    assert len(derived(shell, "allmem/units")) == 2
    assert derived(shell, "topics") == topics
    assert shell("status", "--json").json["strategy"] == "infini"
    found = shell("retrieve", "peanuts", "--strategy", "allmem", "--json").json["items"]
    assert found[0]["doc_id"].startswith("evidence/") and "peanuts" in found[0]["text"]
    assert shell("retrieve", "peanuts", "--json").json["items"][0]["doc_id"].startswith("topics/")


def test_rebuild_of_plain_notes_is_refused(shell: Shell) -> None:
    (shell.library / "mine.md").write_text("# Mine\n")
    refused = shell("rebuild", "--library", str(shell.library))
    assert refused.code == 1 and "infinimem init" in refused.err


# ── compare: one question to every strategy that keeps a library ────────────────────────────────────

QUESTION = "Who is allergic to peanuts?"


@pytest.fixture
def kept(shell: Shell) -> Shell:
    """A library of three."""
    shell("init")
    told(shell)
    for name in ("allmem", "gam"):
        assert shell("rebuild", "--strategy", name).code == 0
    return shell


def test_each_answers_with_evidence_and_its_cost(kept: Shell) -> None:
    found = kept("compare", QUESTION, "--json").json["strategies"]
    assert [one["strategy"] for one in found] == ["infini", "allmem", "gam"]
    assert [one["reader"] for one in found] == ["agent", "topology", "drill"]
    for one in found:
        alone = kept("ask", QUESTION, "--strategy", one["strategy"], "--json").json
        assert (one["answer"], one["citations"]) == (alone["answer"], alone["citations"])
        assert any("peanuts" in item["text"] for item in one["evidence"])
        assert one["evidence_tokens"] == one["trace"][-1]["tokens"] > 0 and one["ms"] > 0
        assert {"calls", "tokens_in", "tokens_out"} == one["usage"].keys()


def test_a_pipe_shows_one_below_the_other_and_a_row_of_figures_each(kept: Shell) -> None:
    ran = kept("compare", QUESTION)
    assert ran.code == 0
    names = [line for line in ran.out.split("\n") if line in ("infini", "allmem", "gam")]
    assert names == ["infini", "allmem", "gam"]
    assert ran.out.count("  * ") >= 3, "each cites what it shows"
    rows = [line.split("\t") for line in ran.out.strip().split("\n")[-3:]]
    assert [row[:2] for row in rows] == [["infini", "agent"], ["allmem", "topology"], ["gam", "drill"]]
    assert all(int(row[2]) > 0 and int(row[3]) == 1 for row in rows)


def test_a_library_of_one_is_told_how_to_add_another(shell: Shell) -> None:
    shell("init")
    ran = told(shell)("compare", QUESTION)
    assert ran.code == 0 and "peanuts" in ran.out
    assert "only infini keeps this library" in ran.err and "rebuild --strategy" in ran.err
    shell("-q", "compare", " ").failed(2, "the question is empty")
