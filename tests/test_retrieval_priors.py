"""Priors: what a question names, and what that does to the order of pieces of like wording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infinimem.errors import SettingsError
from infinimem.retrieval.priors import (
    GAIN,
    REACH,
    Asked,
    NamedDate,
    asked_of,
    factors,
    nearness,
    read_dates,
)
from infinimem.retrieval.rows import STATED, Row, asking
from infinimem.settings import SearchSettings, parse_settings, template

ON = SearchSettings()
OFF = SearchSettings(people=False, dates=False, statements=False, newest=False)
PAIR = ["Caroline", "Melanie"]


# ── dates ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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


def near(text: str, *days: int) -> list[float]:
    found = nearness(read_dates(text)[0], days)
    return [found[day] for day in days]


def test_an_entry_of_the_named_time_is_nearest() -> None:
    assert near("8 May 2023", 20230508, 20230509, 20230501, 20230516, 20220508, 0) == [
        1.0,
        1 - 1 / REACH,
        1 - 7 / REACH,
        0.0,
        0.0,
        0.0,
    ]
    assert near("May 2023", 20230501, 20230531, 20230601, 20230420) == [1, 1, 1 - 1 / REACH, 0]
    assert near("in 2023", 20230101, 20231231, 20240201) == [1, 1, 0]


def test_a_date_without_a_year_is_of_any_year() -> None:
    assert near("in May", 20190520, 20230531, 20230720) == [1, 1, 0]
    assert near("December 31", 20230101) == [1 - 1 / REACH]
    assert near("29 February", 20240229, 20230228) == [1, 0]


def test_a_time_may_name_only_a_month_or_a_year() -> None:
    assert near("8 May 2023", 20230500, 20230000, 20230700, 20231399) == [1, 1, 0, 0]


@given(st.text(max_size=60), st.lists(st.integers(0, 99991231), max_size=5))
def test_any_text_and_any_number_give_a_share(text: str, days: list[int]) -> None:
    for dates in (read_dates(text)[0], [NamedDate(0, 2, 29), NamedDate(9999, 12), NamedDate(1)]):
        found = nearness(dates, days)
        assert found.keys() == {*days}
        assert all(0 <= share <= 1 for share in found.values())


# ── people ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
    ("question", "oneself"),
    [
        ("Where did I buy my bike?", True),
        ("I've lost it", True),
        ("Tell me about the bike", False),
        ("What did you tell me about my bike?", False),
        ("Where did Caroline buy my bike?", False),
        ("Where is the bike?", False),
    ],
)
def test_a_question_of_oneself(question: str, oneself: bool) -> None:
    assert asked_of(question, PAIR) == Asked(oneself=oneself)


# ── statements ──────────────────────────────────────────────────────────────────────────────────


def test_how_far_a_text_only_asks() -> None:
    assert asking("") == 0
    assert asking("I drew it.") == 0
    assert asking("Did you draw it? ") == 1
    assert asking('"Really?!" How? \U0001f600?') == 1
    assert asking("何を食べましたか？食べました。") == pytest.approx(1 - 6 / STATED)
    assert asking("Yes! Did you?") == pytest.approx(1 - 4 / STATED)
    assert asking("Well... what?\nYes") == pytest.approx(1 - 10 / STATED)
    assert asking("see https://a.example/?q=1 there") == 0


def test_who_tells_and_asks_back_has_told() -> None:
    told = "I moved to Lisbon. " * 6
    assert asking(f"{told}And you?") == asking(f"Guess what? {told}") == 0
    assert 0 < asking(f"{told[:76]}And you?") < 0.5


@given(st.text("ab?. \n!\"'\u2019？", max_size=200))
def test_a_share_is_a_share(text: str) -> None:
    assert 0 <= asking(text) <= 1


# ── what they do to scores ──────────────────────────────────────────────────────────────────────


def said_by(speaker: str | None = None, *, personal: bool = True, day: int = 0, asking: int = 0) -> Row:
    return Row(1, "evidence/s", 1, 2, 1, day, asking, personal, speaker, 0)


def rows(speakers: Sequence[str | None], days: int = 0, asks: int = 0) -> list[Row]:
    return [said_by(speaker, day=days, asking=asks) for speaker in speakers]


def test_the_named_speaker_gains_and_nobody_loses() -> None:
    said = rows(["Caroline", "Melanie", None])
    assert list(factors("What did Caroline paint?", said, ON)) == [1 + GAIN, 1, 1]
    assert list(factors("What did Bob paint?", said, ON)) == [1, 1, 1]
    assert list(factors("What did Caroline paint?", said, replace(ON, people=False))) == [1, 1, 1]


def test_a_month_is_no_person() -> None:
    assert list(factors("the trip in May 2023", rows(["May", None]), ON)) == [1, 1]
    assert list(factors("What did May say in May 2023?", rows(["May", None]), ON)) == [1 + GAIN, 1]


def test_the_asker_is_the_user() -> None:
    said = [said_by(personal=True), said_by(personal=False)]
    assert list(factors("Where did I park?", said, ON)) == [1 + GAIN, 1]
    assert list(factors("Where is the car?", said, ON)) == [1, 1]


def test_the_named_day_gains() -> None:
    said = [said_by(day=day) for day in (20230508, 20230808, 0)]
    assert list(factors("the trip on 8 May 2023", said, ON)) == [1 + GAIN, 1, 1]
    assert list(factors("the trip", said, ON)) == [1, 1, 1]
    assert list(factors("the trip on 8 May 2023", said, replace(ON, dates=False))) == [1, 1, 1]


def test_a_text_that_only_asks_gives_way() -> None:
    said = [said_by(asking=asks) for asks in (255, 51, 0)]
    assert list(factors("trip", said, ON)) == pytest.approx([1 - GAIN, 1 - GAIN / 5, 1])
    assert list(factors("trip", said, replace(ON, statements=False))) == [1, 1, 1]


def test_no_rows_and_nothing_switched_on() -> None:
    assert len(factors("What did I do in May 2023?", rows([]), ON)) == 0
    everything = rows(["Caroline", None], days=20230508, asks=255)
    assert list(factors("What did Caroline say on 8 May 2023?", everything, OFF)) == [1, 1]


# ── settings ────────────────────────────────────────────────────────────────────────────────────


def test_each_prior_is_a_setting() -> None:
    written = template().partition("[search]")[2].partition("[reader]")[0]
    for name in ("people", "dates", "statements", "newest"):
        assert f"# {name} = true\n" in written
        changed = parse_settings(f"[search]\n{name} = false\n".encode()).search
        assert changed == replace(ON, **{name: False})


def test_a_language_must_be_one_that_can_be_stemmed() -> None:
    assert parse_settings(b"[search]\nlanguage = 'german'").search.language == "german"
    with pytest.raises(SettingsError, match="choose one of arabic"):
        parse_settings(b"[search]\nlanguage = 'klingon'")
