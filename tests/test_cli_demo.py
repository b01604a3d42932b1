"""The demo and the conversation that it reads."""

from __future__ import annotations

import re
import subprocess
import sys
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
    told = (done.err + done.out).replace(f"{sys.executable} -m infinimem", "infinimem")
    shown = told.replace(str(tmp_path), "/tmp").splitlines()
    assert len(shown) < 24, "the prompt takes a line of 80x24"
    assert [line for line in shown if len(line) > 80] == []
    text = "\n".join(shown)
    assert "allergic to hazelnuts" in text
    assert "from topics/" in text
    topics = shown[next(at for at, line in enumerate(shown) if line.startswith("Consolidated into")) + 1]
    assert topics.startswith("  Running, Home, Family and friends, ")
    assert re.search("topics/home-network -> archive/home-network", text)
    (library, seq) = re.search(r"--library (\S+) history (\d+)", text).groups()  # type: ignore[union-attr]
    root = Path(library.replace("/tmp", str(tmp_path)))
    assert re.search(
        rf"## Superseded by \d+ \(receipt 2-[0-9a-f]{{6}}\)\n- <seq={seq},.* The router is at 192.168.8.1",
        (root / "archive/home-network.md").read_text(),
    )
    live = "".join(path.read_text() for path in (*root.glob("topics/*.md"), root / "CURRENT.md"))
    assert not re.search(r"192\.168\.8\.1\b", live), "what the assistant repeated is outdated, too"


def test_its_next_steps_run_as_they_stand_from_another_folder(tmp_path: Path) -> None:
    """The program is named by its path unless that is what its name alone means."""
    program = Path(sys.executable).with_name("infinimem")
    env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path)}
    done = subprocess.run([program, "demo"], env=env, capture_output=True, text=True, check=True)
    steps = re.findall(r"^(?:Look|Begin|Import|Connect).*?: +(.*)$", done.stdout, re.MULTILINE)
    assert len(steps) == 4
    library = re.findall(r"--library (\S+) history", done.stdout)
    assert re.search(rf"^In a browser: .*infinimem --library {library[0]} web$", done.stdout, re.MULTILINE)
    (tmp_path / "conversations.json").write_text('[{"role": "user", "content": "I play chess."}]')
    for step in steps:
        ran = subprocess.run(["sh", "-c", step], env=env, cwd=tmp_path, capture_output=True, text=True)
        assert ran.returncode == 0, (step, ran.stderr)
