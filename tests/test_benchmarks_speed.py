"""The speed benchmark: its libraries and queries are the same for a seed, and a small run tells all."""

from __future__ import annotations

import importlib
import io
import json
import random
import sys
import tarfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"

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
def load(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(FOLDER)

    def loader(name: str) -> ModuleType:
        return importlib.import_module(name)

    return loader


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


def test_a_library_of_the_speed_benchmark_is_the_same_for_a_seed(load: Any, texts: Path) -> None:
    libraries = load("speed_libraries")
    sources = libraries.read_sources(texts)
    assert [source.name for source in sources] == ["locomo", "small"]
    fenced = [text for text in sources[1].texts if "fence holds" in text]
    assert fenced and all(text.count("```") == 2 for text in fenced), "a fenced block stays whole"
    again = libraries.read_sources(texts)
    first = [libraries.compose(sources, number) for number in range(20)]
    assert first == [libraries.compose(again, number) for number in range(20)]
    assert first != [libraries.compose(sources, number, seed=6) for number in range(20)]
    assert len({path for path, _ in first}) == 20
    known = {paragraph for source in sources for paragraph in source.texts}
    for _, text in first:
        title, *blocks = text.rstrip("\n").split("\n\n## ")
        assert title.startswith("# ") and len(blocks) == libraries.SECTIONS
        for block in blocks:
            body = block.partition("\n\n")[2]
            for paragraph in known:
                body = body.replace(paragraph, "")
            assert not body.strip(), "only paragraphs of the sources, recombined"


def test_queries_of_the_speed_benchmark_differ(load: Any, texts: Path) -> None:
    sources = load("speed_libraries").read_sources(texts)
    drawn = load("speed_queries").draw(sources, texts, 5)
    assert drawn == load("speed_queries").draw(sources, texts, 5)
    for kind, size in {"one": 1, "three": 3, "eight": 8}.items():
        assert len(set(drawn[kind])) == len(drawn[kind]) >= 5
        assert {len(query.split()) for query in drawn[kind]} == {size}


def test_speed_runs(
    load: Any,
    texts: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    speed, out = load("speed"), tmp_path / "out"
    for name, value in {"STARTS": 1, "CHANGES": 1, "ROUNDS": 1, "LIMIT": 0.2, "BIG": 300_000}.items():
        monkeypatch.setattr(speed, name, value)
    arguments = [
        "--data",
        str(texts),
        "--out",
        str(out),
        "--sizes",
        "30",
        "--queries",
        "5",
        "--seconds",
        "0.2",
    ]
    chosen = ["--engines", "infinimem,fts5,re"]
    monkeypatch.setattr(sys, "argv", ["speed.py", *arguments, *chosen])
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    speed.main()
    told = capsys.readouterr()
    assert "no plot" in told.err and not (out / "performance.png").exists()
    table = (out / "performance.md").read_text()
    assert table.strip() == told.out.strip()
    for row in (
        "| infinimem |",
        "| SQLite FTS5 |",
        "| 30 | literal |",
        "| through infinimem, a second process |",
    ):
        assert row in table
    figures = json.loads((out / "performance.json").read_bytes())
    size = figures["sizes"]["30"]
    for engine in ("infinimem", "fts5"):
        assert size["search"][engine]["warm"]["kinds"]["asked"]["n"] == 5
        assert size["search"][engine]["warm"]["peak_mb"] > 5
    for way in ("observed", "observed, next door", "hand", "hand, next door"):
        assert size["changes"][way]["at_once"] == 1
    ours, theirs = (size["grep"][engine]["kinds"]["literal"]["lines"] for engine in ("infinimem", "re"))
    assert ours == theirs
    assert figures["grep"]["re"]["kinds"]["nested repeats"]["gave_up"], "what backtracks hangs"
    assert not figures["grep"]["infinimem"]["kinds"]["nested repeats"]["gave_up"]


def test_the_plot_of_a_run(load: Any, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the plot needs the bench extra")

    def size(factor: float) -> dict[str, Any]:
        kinds = {kind: {"p50_ms": factor} for kind in ("eight", "literal")}
        return {
            "search": {"infinimem": {"first_ms": 9 * factor, "warm": {"kinds": kinds}}},
            "grep": {"infinimem": {"kinds": kinds}, "ripgrep": {"kinds": kinds}},
        }

    out = tmp_path / "performance.png"
    assert load("speed_plot").plot({"sizes": {"300": size(1), "3000": size(4)}}, out)
    assert out.read_bytes().startswith(b"\x89PNG")
