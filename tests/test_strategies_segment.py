"""A talk is cut where it turns to something else, and a reply of no use cuts nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from infinimem.llm.offline import OfflineClient
from infinimem.llm.scripted import ScriptedLLM
from infinimem.model import Entry, Located
from infinimem.strategies.segment import segments

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
    found = segments(llm, turns, strict, **how)
    return [[turn.seq for turn in segment.turns] for segment in found.segments]


def test_segments_are_the_turns_cut_where_the_model_says_with_its_reasons() -> None:
    llm = ScriptedLLM({"segment": [cut("4", " 2 ")]})
    found = segments(llm, said(*"abcde"), strict=True)
    assert [[turn.seq for turn in one.turns] for one in found.segments] == [[1], [2, 3], [4, 5]]
    assert [one.reason for one in found.segments] == ["", "why 2", "why 4"] and not found.rejected
    assert llm.calls[0].variables["strict"] is True


@pytest.mark.parametrize("reply", ["no JSON", "", '{"cuts": [{"before": 2}]}', '{"cuts": "2"}'])
def test_a_reply_that_cannot_be_read_cuts_nothing_and_is_kept(reply: str) -> None:
    found = segments(ScriptedLLM({"segment": [reply]}), said(*"abc"), strict=False)
    assert [len(one.turns) for one in found.segments] == [3]
    (wrong,) = found.rejected
    assert (wrong.task, wrong.text) == ("segment", reply)


def test_names_that_are_made_up_and_the_first_turn_begin_nothing() -> None:
    assert parts(ScriptedLLM({"segment": [cut("1", "9", "", "x", "3", "3")]}), said(*"abc")) == [[1, 2], [3]]


def test_one_turn_is_a_segment_and_asks_nobody() -> None:
    assert parts(ScriptedLLM({}), said("a")) == [[1]]


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


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 12, 13, 40])
@pytest.mark.parametrize("most", [2, 3, 8])
def test_every_turn_is_in_one_segment_and_every_window_is_short(count: int, most: int) -> None:
    sizes: list[int] = []

    def nowhere(variables: Any) -> dict[str, Any]:
        sizes.append(len(variables["turns"]))
        return cut()

    turns = said(*(f"turn {n}" for n in range(count)))
    assert parts(ScriptedLLM({"segment": nowhere}), turns, most=most) == [[*range(1, count + 1)]]
    assert max(sizes, default=0) <= most


def test_long_pauses_are_told_and_of_long_turns_the_beginning() -> None:
    turns = said("a", "b" * 90_000, "c", times=["10:00:00", "10:30:00", "11:01:30"])
    llm = ScriptedLLM({"segment": [cut()]})
    segments(llm, turns, strict=False)
    (call,) = llm.calls
    assert call.variables["pauses"] == [{"before": "3", "minutes": 31}]
    assert [len(turn["text"]) for turn in call.variables["turns"]] == [1, 8000, 1]


TALK = [
    "My kitchen tap is leaking since Monday.",
    "Did you call the plumber about the tap?",
    "Yes, he repairs the tap tomorrow.",
    "The concert of Nina sold out within an hour.",
    "Nina plays the concert twice.",
]


def test_by_rules_a_segment_begins_where_no_telling_word_is_shared() -> None:
    assert parts(OfflineClient(), said(*TALK)) == [[1, 2, 3], [4, 5]]
    assert parts(OfflineClient(), said(*TALK), strict=True) == [[1, 2, 3], [4, 5]]


def test_by_rules_only_another_subject_begins_one_where_it_is_strict() -> None:
    turns = said("The tap leaks.", "Rain all day in Porto.", "The plumber charged for the tap.")
    assert parts(OfflineClient(), turns) == [[1], [2], [3]]
    assert parts(OfflineClient(), turns, strict=True) == [[1, 2, 3]]


@pytest.mark.parametrize("reply", ["She plays the cello.", "Thanks!", "Wow, how nice!", "Yes, twice."])
def test_by_rules_what_replies_begins_none(reply: str) -> None:
    assert parts(OfflineClient(), said("Nina sold out.", reply)) == [[1, 2]]
    assert parts(OfflineClient(), said("Where is Nina?", "Porto, Casa da Música.")) == [[1, 2]]


def test_by_rules_a_pause_and_an_announcement_begin_one() -> None:
    texts = ("The tap leaks.", "By the way, the tap was cheap.", "It leaks, that tap.")
    assert parts(OfflineClient(), said(*texts), strict=True) == [[1], [2, 3]]
    times = ["10:00:00", "10:01:00", "10:32:00"]
    assert parts(OfflineClient(), said(*texts, times=times), strict=True) == [[1], [2], [3]]
