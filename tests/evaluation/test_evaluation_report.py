"""The report of a run, from files written here: figures by hand, tables, pictures."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from infinimem.errors import UsageError
from infinimem.evaluation.model import Drawn, Found, Ingested, Question
from infinimem.evaluation.report import write_report
from infinimem.evaluation.runner import FILE, opened

Row = tuple[str, str, Question, Drawn]


def result(method: str, question: str, category: str, scores: Mapping[str, float]) -> Row:
    counted = category != "adversarial"
    asked = Question(question, "", category, (), counted=counted)
    drawn = Drawn((Found("text", ("D1:1",), 100),), scores=scores, seconds=0.5)
    return method, "conv-1", asked, drawn


def write(out: Path, results: Sequence[Row], ingested: Sequence[Ingested] = (), **config: Any) -> Path:
    methods = list(dict.fromkeys(method for method, *_ in results))
    given = {"benchmark": "locomo", "data": {"file": "locomo10.json", "sha256": "ab12"}, "methods": methods}
    with opened(out, given | config, write=True) as rows:
        for row in results:
            rows.add(*row)
        for made in ingested:
            rows.take_in(made)
    return out


RETRIEVAL = [
    # bm25: temporal 1 and 0.5, single-hop 0; infini-retrieve: 1, 1, 1
    result("bm25", "q1", "temporal", {"R@5": 1.0, "R in 512": 1.0, "R in 1024": 1.0, "tokens to all": 300.0}),
    result("bm25", "q2", "temporal", {"R@5": 0.5, "R in 512": 0.5, "R in 1024": 0.5}),
    result(
        "bm25", "q3", "single-hop", {"R@5": 0.0, "R in 512": 0.0, "R in 1024": 1.0, "tokens to all": 900.0}
    ),
    result("bm25", "q4", "adversarial", {"R@5": 0.0, "R in 512": 0.0, "R in 1024": 0.0}),
    result("bm25", "q5", "open-domain", {}),
    *(
        result("infini-retrieve", question, category, {"R@5": 1.0, "R in 512": 1.0, "R in 1024": 1.0})
        for question, category in (("q1", "temporal"), ("q2", "temporal"), ("q3", "single-hop"))
    ),
]


@pytest.fixture
def no_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    """matplotlib is not installed."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)


def test_retrieval_report(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    out = write(
        tmp_path / "run",
        RETRIEVAL,
        [Ingested("infini-retrieve", "conv-1", {}, 3.0, (10, 300, 4000))],
        retrieval_only=True,
    )
    report = write_report(out)
    assert report["columns"] == ["method", "questions", "R@5", "R in 512", "R in 1024"]
    assert report["rows"] == [
        ["bm25", 4, "50.0", "50.0", "83.3"],
        ["infini-retrieve", 3, "100.0", "100.0", "100.0"],
    ]
    text = (out / "report.md").read_text()
    assert "# locomo: 2 methods" in text
    assert "- data: file locomo10.json, sha256 ab12" in text
    assert "- Not finished: infini-retrieve (3 of 5)." in text
    assert "| bm25 | 50.0 | 37.5 | 0.0 | 75.0 | 0.0 |" in text
    assert "| over questions | over categories | single-hop | temporal | (adversarial) |" in text
    assert "| bm25 | 3 | 66.7 | 900 | never |" in text, "tokens until all evidence is there"
    assert "| infini-retrieve | 3 | 1,437 | 10 | 300 | 4,000 | 4,000 |" in text, "documents"
    assert "| bm25 | 50.0 | 83.3 | – | – | – | – | 0.0 | 0 | 900 | 500 |" in text, "costs, without a memory"
    assert "## Difference to bm25" in text
    assert json.loads((out / "report.json").read_text()) == report
    names = ["quality_tokens.png", "quality_categories.png"]
    assert report["plots"] == names, "no model was asked: no tokens by phase"
    for name in names:
        assert f"]({name})" in text
        assert (out / name).read_bytes().startswith(b"\x89PNG")


def test_a_difference_is_bold_where_it_is_sure(tmp_path: Path, no_plots: None) -> None:
    results = [
        result(method, f"q{number}", "temporal", {"F1": f1 + number / 10, "BLEU-1": number / 10})
        for method, f1 in (("bm25", 0.25), ("infini", 0.5))
        for number in range(4)
    ]
    results.append(result("infini", "q9", "temporal", {"F1": 0.0}))
    out = write(tmp_path / "run", results)
    write_report(out)
    text = (out / "report.md").read_text()
    assert "| infini | **+25.0 [+25.0, +25.0]** |" in text, "over the questions that both answered"
    out = write(tmp_path / "other", RETRIEVAL)
    write_report(out)
    assert "| infini-retrieve | +50.0 [+0.0, +100.0] |" in (out / "report.md").read_text()


def test_what_is_no_run_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no run"):
        write_report(tmp_path)
    (tmp_path / FILE).write_text("[]" * 99)
    with pytest.raises(UsageError, match="cannot be read"):
        write_report(tmp_path)
    (tmp_path / FILE).unlink()
    sqlite3.connect(tmp_path / FILE).executescript("CREATE TABLE config (a); CREATE TABLE result (a)").close()
    with pytest.raises(UsageError, match="cannot be read"), opened(tmp_path, {}):
        pass
    out = write(tmp_path / "empty", [])
    with pytest.raises(UsageError, match="no results yet"):
        write_report(out)


def test_rows_of_an_earlier_run_give_the_same_figures(tmp_path: Path, no_plots: None) -> None:
    """recorded.json: the rows of 120 answers, scores and ids alone, and what was made of them at 9192feea."""
    recorded = json.loads(Path(__file__).with_name("recorded.json").read_text())
    with opened(tmp_path, {}, write=True):
        pass
    rows = sqlite3.connect(tmp_path / FILE)
    for table, cells in recorded["tables"].items():
        with rows:
            rows.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(cells[0]))})", cells)
    rows.close()
    report = write_report(tmp_path)
    assert report["rows"] == recorded["rows"], "to the last digit printed"
    for name, wanted in recorded["figures"].items():
        found = report["methods"][name]
        for key in wanted.keys() - {"differences"}:
            assert close(found[key], wanted[key]), key
        for other, measures in wanted["differences"].items():
            for measure, interval in measures.items():
                assert found["differences"][other][measure] == pytest.approx(interval, abs=0.003)


def close(found: Any, wanted: Any) -> bool:
    """Nested figures, equal but for the rounding of the record."""
    if isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(close(found[key], wanted[key]) for key in wanted)
    return bool(found == wanted or found == pytest.approx(wanted, abs=1e-6))
