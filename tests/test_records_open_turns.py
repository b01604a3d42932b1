"""Evidence that no record names, derived from the files however the library came about; and its exchanges."""

from __future__ import annotations

import random
from collections.abc import Sequence

from allmem_library import Library

from infinimem.model import Located
from infinimem.strategies.records.open_turns import exchanges


def talk(*turns: str) -> Library:
    """Turns "A1": speaker and session."""
    library = Library()
    for number, turn in enumerate(turns):
        library.say(f"turn {number}", session=f"s{turn[1]}", speaker=turn[0])
    return library


def split(library: Library, turns: Sequence[Located]) -> tuple[list[list[int]], list[list[int]]]:
    ended, going = exchanges(library.view(), turns)
    return [[one.seq for one in said] for said, _ in ended], [[one.seq for one in said] for said in going]


def test_exchanges_are_the_same_however_many_turns_come_at_once() -> None:
    chance = random.Random(3)
    for _ in range(40):
        turns = [chance.choice("ABC") + chance.choice("123") for _ in range(25)]
        library = talk(*turns)
        every = library.pending()
        whole = split(library, every)
        found: list[list[int]] = []
        left: list[Located] = []
        while every:
            left, every = left + every[:1], every[1:]
            while every and chance.random() < 0.5:
                left, every = left + every[:1], every[1:]
            ended, going = split(library, left)
            found += ended
            left = [turn for turn in left if turn.seq in {seq for said in going for seq in said}]
        assert (sorted(found), sorted(going)) == (sorted(whole[0]), sorted(whole[1]))
