"""Records of a run survive the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from infinimem.errors import UsageError
from infinimem.evaluation.model import Found, Ingested, Result
from infinimem.evaluation.record import ingested_of, lines_of, records, result_of, to_json
from infinimem.model import Usage

RESULT = Result(
    method="infini-h",
    case="conv-1",
    question="conv-1-q3",
    category="temporal",
    counted=True,
    found=(Found("the\u2028line", ("D1:3", "D1:4"), 4), Found("", (), 0)),
    answer="7 May",
    scores={"f1": 0.5},
    verdicts={"strict": {"correct": True, "text": "yes\n"}},
    usage={"answer": Usage(1, 20, 3)},
    seconds=0.25,
    steps=({"tool": "search", "arguments": {"query": "May"}},),
)
INGESTED = Ingested("bm25", "conv-1", {"extract": Usage(2, 3, 4)}, 1.5, (100, 20))


def test_records_come_back() -> None:
    assert "\n" not in to_json(RESULT)
    assert result_of(to_json(RESULT)) == RESULT
    assert ingested_of(to_json(INGESTED)) == INGESTED


@pytest.mark.parametrize("line", ["", "{", "[]", "{}", '{"found": 1}', to_json(INGESTED)])
def test_a_damaged_result_is_one_line(line: str) -> None:
    with pytest.raises(UsageError, match="resume the run"):
        result_of(line)


@pytest.mark.parametrize("line", ["", "[]", "{}", to_json(RESULT)])
def test_damaged_costs_are_one_line(line: str) -> None:
    with pytest.raises(UsageError, match="resume the run"):
        ingested_of(line)


def test_a_torn_last_line_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "raw.jsonl"
    assert list(lines_of(path)) == []
    path.write_text(to_json(RESULT) + "\n" + to_json(RESULT)[:40], encoding="utf-8")
    assert [result_of(line) for line in lines_of(path)] == [RESULT]


def test_a_line_may_be_torn_inside_a_character(tmp_path: Path) -> None:
    path = tmp_path / "raw.jsonl"
    whole = to_json(RESULT).encode()
    path.write_bytes(whole + b"\n" + whole[: whole.index("\u2028".encode()) + 1])
    assert [result_of(line) for line in lines_of(path)] == [RESULT]
    path.write_bytes(b"\xff\n")
    with pytest.raises(UsageError, match="line 1: no UTF-8"):
        list(lines_of(path))


@pytest.mark.parametrize("damaged", [b"{}", b"[]", b"{", b'{"found": "\xff"}'])
def test_a_damaged_line_is_named_with_its_file(tmp_path: Path, damaged: bytes) -> None:
    path = tmp_path / "bm25.jsonl"
    path.write_bytes(to_json(RESULT).encode() + b"\n" + damaged + b"\n")
    with pytest.raises(UsageError, match=r"bm25\.jsonl, line 2: no .*; remove the line and resume the run"):
        list(records(path, result_of))
