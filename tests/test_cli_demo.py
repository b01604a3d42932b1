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


def test_the_demo_runs_offline_and_its_json_holds_a_receipt_and_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    shell = Shell(tmp_path, monkeypatch)
    done = shell("demo", "--json").json
    assert set(done) == {"library", "receipt", "answer", "answers"}
    assert done["receipt"]["rows"]
    assert "hazelnuts" in done["answer"]
    assert Path(done["library"]).is_relative_to(tmp_path)
    assert shell("--library", done["library"], "doctor").code == 0


def test_what_it_shows_fits_one_screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    done = Shell(tmp_path, monkeypatch)("demo")
    shown = (done.err + done.out).replace(str(tmp_path), "/tmp").splitlines()
    assert len(shown) < 24, "the prompt takes a line of 80x24"
    assert [line for line in shown if len(line) > 80] == []
    text = "\n".join(shown)
    assert "allergic to hazelnuts" in text
    assert "from topics/" in text
    topics = shown[next(at for at, line in enumerate(shown) if line.startswith("Consolidated into")) + 1]
    assert "tomas" in topics
    assert not re.search(r"-20\d\d", topics), "topics by month come last"
    assert re.search(r"topics/february-2025 -> archive/august-2025 \(receipt 2\)", text)
    (library, seq) = re.search(r"cd (\S+) && infinimem history (\d+)", text).groups()  # type: ignore[union-attr]
    archived = Path(library.replace("/tmp", str(tmp_path)), "archive/august-2025.md").read_text()
    assert re.search(
        rf"## Superseded by \d+ \(receipt 2-[0-9a-f]{{6}}\)\n- <seq={seq},.* The router is at 192.168.8.1",
        archived,
    )
