"""Priors: what a question names, and what that does to the order of pieces of like wording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cases import each

from infinimem.index.pieces import Row
from infinimem.index.questions import (
    GAIN,
    Asked,
    NamedDate,
    asked_of,
    factors,
    read_dates,
)
from infinimem.settings import SearchSettings

ON = SearchSettings()
PAIR = ["Caroline", "Melanie"]


# ── dates ───────────────────────────────────────────────────────────────────────────────────────


@each(
    ("text", "dates"),
    [
        ("What did she paint on 8 May, 2023?", [(2023, 5, 8)]),
        ("the 8th of May 2023", [(2023, 5, 8)]),
        ("on May 8th, 2023", [(2023, 5, 8)]),
        ("December 1,2023", [(2023, 12, 1)]),
        ("2023-05-08T13:56", [(2023, 5, 8)]),
        ("2023/5/8 or 2023-06", [(2023, 5, 8), (2023, 6, 0)]),
        ("Sept. 3", [(0, 9, 3)]),
        ("plans for JULY 2022", [(2022, 7, 0)]),
        ("camping in june", [(0, 6, 0)]),
        ("gone to the beach in 2023", [(2023, 0, 0)]),
        ("in summer 2021", [(2021, 0, 0)]),
        ("between August 11 and August 15 2023", [(2023, 8, 15), (0, 8, 11)]),
        ("as of December 2023", [(2023, 12, 0)]),
        ("31 February 2023", [(2023, 2, 0)]),
    ],
)
def test_dates_that_a_question_names(text: str, dates: list[tuple[int, int, int]]) -> None:
    assert set(read_dates(text)[0]) == {NamedDate(*parts) for parts in dates}


@each(
    "text",
    [
        "",
        "May I march?",
        "last week",
        "2023-13-01",
        "in 1000 ways 12345",
        "since March 2023",
        "the 2020 election",
        "room 2023",
        "ratio 10/12",
        "marry 12",
        "０",
    ],
)
def test_what_is_no_date(text: str) -> None:
    assert [named for named in read_dates(text)[0] if named.year != 1000] == []


# ── people ──────────────────────────────────────────────────────────────────────────────────────


@each(
    ("question", "speakers", "named"),
    [
        ("What did Caroline paint?", PAIR, ["Caroline"]),
        ("caroline's painting", PAIR, ["Caroline"]),
        ("Caroline\u2019s painting", PAIR, ["Caroline"]),
        ("What did Caroline and Melanie paint?", PAIR, []),
        ("What does Carolines dog eat?", PAIR, []),
        ("What did Bob paint?", PAIR, []),
        ("What did Bob tell Caroline?", PAIR, ["Caroline"]),
        ("What did Zoe say?", ["Zo\u00eb"], ["Zo\u00eb"]),
        ("What did Ana Diaz say?", ["Ana Diaz", "Ana Cruz"], ["Ana Diaz"]),
        ("What did Ana say?", ["Ana Diaz", "Ana Cruz"], ["Ana Diaz", "Ana Cruz"]),
        ("What did Ana say?", ["Ana", "Ana Cruz"], ["Ana"]),
        ("Did Ana Diaz call Ana Cruz?", ["Ana Diaz", "Ana Cruz"], []),
        ("What did Dr. Lee say?", ["Dr. Lee"], ["Dr. Lee"]),
        ("Is the dr in?", ["Dr. Lee"], []),
        ("Will she come?", ["Will"], []),
        ("田中さんは何を食べましたか", ["田中"], ["田中"]),
        ("anything", [], []),
    ],
)
def test_speakers_that_a_question_names(question: str, speakers: list[str], named: list[str]) -> None:
    assert asked_of(question, speakers) == Asked(frozenset(named))


# ── what they do to scores ──────────────────────────────────────────────────────────────────────


def said_by(speaker: str | None = None, *, personal: bool = True, day: int = 0, asking: int = 0) -> Row:
    return Row(1, 1, 1, 1, 1, 0, 1, 2, day, asking, personal, speaker, 1, b"", b"", None, None)


def rows(speakers: Sequence[str | None], days: int = 0, asks: int = 0) -> list[Row]:
    return [said_by(speaker, day=days, asking=asks) for speaker in speakers]


def test_the_named_speaker_gains_and_nobody_loses() -> None:
    said = rows(["Caroline", "Melanie", None])
    assert list(factors("What did Caroline paint?", said, ON)) == [1 + GAIN, 1, 1]
    assert list(factors("What did Bob paint?", said, ON)) == [1, 1, 1]
    assert list(factors("What did Caroline paint?", said, replace(ON, people=False))) == [1, 1, 1]


def test_the_named_day_gains() -> None:
    said = [said_by(day=day) for day in (20230508, 20230808, 0)]
    assert list(factors("the trip on 8 May 2023", said, ON)) == [1 + GAIN, 1, 1]
    assert list(factors("the trip", said, ON)) == [1, 1, 1]
    assert list(factors("the trip on 8 May 2023", said, replace(ON, dates=False))) == [1, 1, 1]
