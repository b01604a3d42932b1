"""Priors: what a question names, and what that does to the order of pieces of like wording."""

from __future__ import annotations

from dataclasses import replace

from cases import each

from infinimem.index.pieces import Row
from infinimem.index.questions import (
    GAIN,
    Asked,
    asked_of,
    factors,
    without_dates,
)
from infinimem.settings import SearchSettings

ON = SearchSettings()
PAIR = ["Caroline", "Melanie"]


# ── dates ───────────────────────────────────────────────────────────────────────────────────────


@each(
    "text",
    [
        "What did she paint on 8 May, 2023?",
        "the 8th of May 2023",
        "on May 8th, 2023",
        "December 1,2023",
        "2023-05-08T13:56",
        "2023/5/8 or 2023-06",
        "Sept. 3",
        "plans for JULY 2022",
        "camping in june",
        "gone to the beach in 2023",
        "in summer 2021",
        "as of December 2023",
    ],
)
def test_dates_that_a_question_names(text: str) -> None:
    assert without_dates(text)[1]


@each(
    "text",
    [
        "",
        "May I march?",
        "last week",
        "2023-13-01",
        "12345 ways",
        "the 2020 election",
        "room 2023",
        "ratio 10/12",
        "marry 12",
        "０",
    ],
)
def test_what_is_no_date(text: str) -> None:
    assert not without_dates(text)[1]


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


def test_the_named_speaker_gains_and_nobody_loses() -> None:
    said = [
        Row(1, 1, 1, 1, 1, 0, 1, 2, 0, 0, 1, speaker, 1, b"", b"", None, None)
        for speaker in ("Caroline", "Melanie", None)
    ]
    assert list(factors("What did Caroline paint?", said, ON)) == [1 + GAIN, 1, 1]
    assert list(factors("What did Bob paint?", said, ON)) == [1, 1, 1]
    assert list(factors("What did Caroline paint?", said, replace(ON, people=False))) == [1, 1, 1]
