"""Texts that a line must hold: never one too many, or grep would pass over a line."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infinimem.retrieval.grep import compile_pattern
from infinimem.retrieval.required_literals import required_literals

SYNTAX = (
    *(
        "ab",
        "c",
        "K",
        "é",
        ".",
        "[ab]",
        "[^]c]",
        "[a\\]]",
        "[[:alpha:]c]",
        "\\.",
        "^",
        "$",
        "\\b",
        "(?:",
        "(",
    ),
    *("(?P<n>", "|", ")", "*", "+", "?", "{2}", "{0,2}", "{,2}", "{", "}", "]", "??", "\\d", "(?i)", "\\pL"),
)


@settings(deadline=None, max_examples=300)
@given(
    st.lists(st.sampled_from(SYNTAX), max_size=9).map("".join),
    st.lists(st.sampled_from(["ab", "AB", "c", "k", "é", ".", "]", "{,2}", "d", " "]), max_size=12).map(
        "".join
    ),
    st.booleans(),
)
def test_a_line_that_matches_holds_one_text_of_every_set(pattern: str, line: str, ignore_case: bool) -> None:
    compiled = compile_pattern(pattern, ignore_case)
    if not compiled.notes and compiled.matches(line.encode()):
        for texts in required_literals(pattern, ignore_case):
            assert any(text in line.encode().lower() for text in texts)


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        ("Kitchen", [{"kitchen"}]),
        ("(cat|dog)s? and", [{"cat and", "cats and", "dog and", "dogs and"}]),
        ("error: (\\d+) of .*", [{"error: "}, {" of "}]),
        ("foo.*bar|baz", [{"foo", "baz"}]),
        ("colou?r", [{"color", "colour"}]),
        ("(?:abc)+", [{"abc"}]),
        ("(?:abc)*", []),
        ("abcé", [{"abc"}]),
        ("(?i)abc", []),
        ("abc|\\d", []),
    ],
)
def test_texts_that_a_pattern_needs(pattern: str, texts: list[set[str]]) -> None:
    assert [{text.decode() for text in found} for found in required_literals(pattern, True)] == texts
