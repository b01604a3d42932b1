"""`compare`: one question to every strategy that keeps a library, side by side or one below the other."""

from __future__ import annotations

import pytest
from cli_runner import Shell
from test_cli_strategies import told

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
