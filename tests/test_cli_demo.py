"""The demo and the conversation that it reads."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
from cli_runner import Shell

from infinimem.cli.demo import CONVERSATION
from infinimem.importers import read_turns


def test_the_conversation_is_a_year_in_order_and_names_nobody() -> None:
    imported = read_turns(CONVERSATION)
    turns = list(imported.turns)
    assert (imported.format, len(turns), not imported.skipped) == ("openai", 183, True)
    assert [turn.session for turn in turns] == sorted(turn.session or "" for turn in turns)
    assert all(one.time and two.time and one.time < two.time for one, two in pairwise(turns))
    assert {turn.role for turn in turns} == {"user", "assistant"}
    text = "\n".join(turn.text for turn in turns)
    assert not re.search(r"@|https?:|\+\d{6}|\d{7}", text)


def test_the_demo_runs_offline_and_shows_a_receipt_a_diff_and_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    shell = Shell(tmp_path, monkeypatch)
    done = shell("demo", "--json").json
    assert {"library", "receipt", "answer"} <= set(done)
    assert done["receipt"]["rows"]
    assert "hazelnuts" in done["answer"]
    assert Path(done["library"]).is_relative_to(tmp_path)
    assert shell("--library", done["library"], "doctor").code == 0
    shown = shell("demo").out
    assert "+++ topics/" in shown
    assert "journal/" in shown
