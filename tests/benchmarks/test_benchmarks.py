"""The scripts of benchmarks/: what they make is the same every time, and a small run tells all."""

from __future__ import annotations

import io
import json
import random
import runpy
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import Any

import pytest

from infinimem import law, tokens
from infinimem.importers import read_turns
from infinimem.model import CURRENT


def test_the_export_is_recognised_and_the_same_every_time(
    load: Callable[[str], ModuleType], tmp_path: Path
) -> None:
    bench = load("import_export")
    for name in ("a.json", "b.json"):
        bench.make(tmp_path / name, 0.1)
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    found = read_turns(tmp_path / "a.json")
    assert found.format == "chatgpt"
    assert sum(1 for _ in found.turns) > 50
    assert set(found.skipped) == {"system prompts", "messages of branches that were edited away"}


@pytest.mark.soak
def test_an_import_that_is_killed_twice_goes_on(load: Callable[[str], ModuleType], tmp_path: Path) -> None:
    bench = load("import_export")
    bench.make(tmp_path / "export.json", 5)
    (tmp_path / "run").mkdir()
    bench.resume(tmp_path / "export.json", tmp_path / "run")


CONVERSATION = {
    "sample_id": "conv-26",
    "conversation": {
        "speaker_a": "Ana",
        "speaker_b": "Mel",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ana", "dia_id": "D1:1", "text": "I moved to Lisbon with my cat Olive last month."},
            {"speaker": "Mel", "dia_id": "D1:2", "text": "My dentist Dr. Vu plays the violin in a band."},
        ],
    },
    "qa": [{"question": "Where did Ana move?", "answer": "Lisbon", "evidence": ["D1:1"], "category": 4}],
}


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """A folder of data as the libraries of the speed benchmark are made from: notes and one conversation."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "locomo_dev.json").write_text(json.dumps([CONVERSATION]))
    rng = random.Random(1)
    words = "harbour garden Garden violin contract peanut ladder because Lisbon evening kettle".split()
    with tarfile.open(data / "notes_small.tar.xz", "w:xz") as archive:
        for number in range(8):
            paragraphs = [" ".join(rng.choices(words, k=40)) for _ in range(12)]
            paragraphs.insert(3, "```\n# no heading\n\nafter a blank line\nwhat the fence holds\n```")
            body = f"---\ntitle: x\n---\n# About {words[number]}\n\n" + "\n\n".join(paragraphs) + "\n"
            member = tarfile.TarInfo(f"small/{number}.md")
            member.size = len(body.encode())
            archive.addfile(member, io.BytesIO(body.encode()))
    return data


@pytest.fixture
def run(load: Any, texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs the script over 30 documents, as short as can be, and gives its folder."""

    def runner(engines: str, *more: str) -> Path:
        speed, out = load("speed"), tmp_path / "out"
        for name, value in {"STARTS": 1, "CHANGES": 1, "ROUNDS": 1, "LIMIT": 0.2, "BIG": 300_000}.items():
            monkeypatch.setattr(speed, name, value)
        command = f"speed.py --data {texts} --out {out} --sizes 30 --queries 5 --seconds 0.2".split()
        monkeypatch.setattr(sys, "argv", [*command, "--engines", engines, *more])
        speed.main()
        return out

    return runner


def test_speed_runs(
    run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- figures -->\nold\n<!-- end of figures -->\nafter\n")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    out = run("fts5,re", "--page", str(page))
    told = capsys.readouterr()
    assert "no plot" in told.err and not (out / "performance.png").exists()
    table = (out / "performance.md").read_text()
    assert table.strip() == told.out.strip()
    assert "| SQLite FTS5 |" in table and "| 30 | literal |" in table
    assert page.read_text() == f"before\n<!-- figures -->\n{table}<!-- end of figures -->\nafter\n"
    figures = json.loads((out / "performance.json").read_bytes())
    found = figures["sizes"]["30"]["search"]["fts5"]
    assert found["warm"]["kinds"]["asked"]["n"] == 5
    assert found["warm"]["peak_mb"] > 5 and found["change"]["peer"]["found"] == 1
    assert figures["grep"]["re"]["kinds"]["nested repeats"]["gave_up"], "what backtracks hangs"


def test_a_file_counts_when_a_function_of_it_runs(load: Any) -> None:
    script = load("walks")

    def walk() -> None:
        runpy.run_path(tokens.__file__)  # defines functions, and calls none
        other = Thread(target=law.is_archive, args=(CURRENT,))
        other.start()
        other.join()

    assert script.traced(walk) == {"infinimem/law.py": ["is_archive"]}
