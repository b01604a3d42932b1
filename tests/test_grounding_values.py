"""Statements: where one ends in what it says, and which lines are one."""

from __future__ import annotations

import pytest

from infinimem.grounding.statements import lead, stands_alone


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Bob: The capital of Chad is Lima.", "The capital of Chad is"),
        (
            "wide receiver is associated with the sport of rugby union.",
            "wide receiver is associated with the sport of",
        ),
        ("Ann was educated at University of Pisa.", "Ann was educated at"),
        ("Ann's child is Philippe, Duke of Orléans.", "Ann's child is"),
        ("Lima", ""),
        ("", ""),
    ],
)
def test_a_lead_is_what_stands_before_the_last_phrase(text: str, expected: str) -> None:
    assert lead(text) == expected


@pytest.mark.parametrize(
    ("text", "stands"),
    [
        ("Ann moved to Bath.", True),
        ("Ann: I moved to Bath.", False),
        ("She moved to Bath.", False),
        ("Ann moved there.", False),
        ("The author of It is Stephen Crane.", True),
        ("Ardashir I was born in Bath.", True),
        ("Who moved to Bath?", False),
        ("Ann moved to Bath. Bob stayed.", False),
        ("# Bath", False),
        ("word " * 40, False),
    ],
)
def test_which_lines_are_one_statement(text: str, stands: bool) -> None:
    assert stands_alone(text) == stands
