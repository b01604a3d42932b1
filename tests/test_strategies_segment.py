"""A talk is cut where it turns to something else, and a reply of no use cuts nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cases import each

from infinimem.model import Entry, Located
from infinimem.strategies.records.asking import Asker, segments
from infinimem.testing import ScriptedLLM

DAY = "2025-01-04T"


def said(*texts: str, times: Sequence[str] = ()) -> list[Located]:
    """Turns of two people, from seq 1 on."""
    rows = []
    for seq, text in enumerate(texts, 1):
        time = DAY + (times[seq - 1] if times else "10:00:00")
        entry = Entry(seq, text, f"- {text}", time, fields={"speaker": ("Ann", "Rob")[seq % 2]})
        rows.append(Located(entry, "evidence/s1", seq, seq))
    return rows


def cut(*ids: str) -> dict[str, Any]:
    return {"cuts": [{"before": name, "reason": f"why {name.strip()}"} for name in ids]}


def parts(llm: Any, turns: Sequence[Located], strict: bool = False, **how: int) -> list[list[int]]:
    found = segments(Asker(llm), turns, strict, **how)
    return [[turn.seq for turn in segment.turns] for segment in found]


def test_segments_are_the_turns_cut_where_the_model_says_with_its_reasons() -> None:
    llm = ScriptedLLM({"segment": [cut("4", " 2 ")]})
    found = segments(asker := Asker(llm), said(*"abcde"), strict=True)
    assert [[turn.seq for turn in one.turns] for one in found] == [[1], [2, 3], [4, 5]]
    assert [one.reason for one in found] == ["", "why 2", "why 4"] and not asker.rejected()
    assert llm.calls[0].variables["strict"] is True


@each("reply", ["no JSON", "", '{"cuts": [{"before": 2}]}', '{"cuts": "2"}'])
def test_a_reply_that_cannot_be_read_cuts_nothing_and_is_kept(reply: str) -> None:
    asker = Asker(ScriptedLLM({"segment": [reply]}))
    assert [len(one.turns) for one in segments(asker, said(*"abc"), strict=False)] == [3]
    (wrong,) = asker.rejected()
    assert (wrong.task, wrong.text) == ("segment", reply)


def test_windows_share_turns_of_which_each_judges_the_half_that_it_knows_more_of() -> None:
    turns = said(*"abcdefghijkl")
    seen: list[list[str]] = []

    def everywhere(variables: Any) -> dict[str, Any]:
        seen.append([turn["id"] for turn in variables["turns"]])
        return cut(*seen[-1])

    assert parts(ScriptedLLM({"segment": everywhere}), turns, most=8) == [[one] for one in range(1, 13)]
    assert seen == [[str(n) for n in range(1, 9)], [str(n) for n in range(5, 13)]]
    first = [{"segment": [cut("6", "7", "8"), cut()]}, {"segment": [cut(), cut("6", "7", "8")]}]
    assert parts(ScriptedLLM(first[0]), turns, most=8) == [[1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11, 12]]
    assert parts(ScriptedLLM(first[1]), turns, most=8) == [[1, 2, 3, 4, 5, 6], [7], [8, 9, 10, 11, 12]]


@each("count", [1, 2, 7, 8, 9, 12, 13, 40])
@each("most", [2, 3, 8])
def test_every_turn_is_in_one_segment_and_every_window_is_short(count: int, most: int) -> None:
    sizes: list[int] = []

    def nowhere(variables: Any) -> dict[str, Any]:
        sizes.append(len(variables["turns"]))
        return cut()

    turns = said(*(f"turn {n}" for n in range(count)))
    assert parts(ScriptedLLM({"segment": nowhere}), turns, most=most) == [[*range(1, count + 1)]]
    assert max(sizes, default=0) <= most
