"""Records of a run survive the file."""

from __future__ import annotations

import pytest
from cases import each

from infinimem.errors import UsageError
from infinimem.evaluation.book import ingested_of, result_of, to_json
from infinimem.evaluation.model import Found, Ingested, Result
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


@each("line", ["", "{", "[]", "{}", '{"found": 1}', to_json(INGESTED)])
def test_a_damaged_result_is_one_line(line: str) -> None:
    with pytest.raises(UsageError, match="resume the run"):
        result_of(line)
