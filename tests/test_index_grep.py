"""Patterns: RE2 or literal, linear in the text, lines as an editor counts them."""

from __future__ import annotations

import re

import pytest
from cases import each
from hypothesis import given
from hypothesis import strategies as st

from infinimem.errors import UsageError
from infinimem.index.grep import compile_pattern, first_matches
from infinimem.markdown.document import Document

ALL = 1 << 30


def lines(pattern: str, text: str, ignore_case: bool = True) -> list[int]:
    document = Document.parse("a", text.encode("utf-8", "surrogateescape"))
    return [
        match.line for match in first_matches([document], compile_pattern(pattern, ignore_case), ALL).first
    ]


def test_lines_count_from_one_with_the_header() -> None:
    assert lines("x", "---\nid: x\n---\ny\nx\n") == [2, 5]


def test_case_is_ignored_unless_asked() -> None:
    assert lines("École", "ÉCOLE\nEcole\n") == [1]
    assert lines("École", "ÉCOLE\nÉcole\n", ignore_case=False) == [2]


@each("pattern", ["^b$", r"\Ab\z", "^b", "b$", "(?i)^B$", "(?-i)^b$"])
def test_anchors_mean_a_line(pattern: str) -> None:
    assert lines(pattern, "ab\nb\nbc\r\nb\r\n")[:1] == ([2] if pattern != "b$" else [1])
    assert 4 in lines(pattern, "ab\nb\nbc\r\nb\r\n"), "a carriage return is not a part of the line"


@each("pattern", ["a.b", r"a\sb", r"a[^x]b", r"a\nb", "(?s)a.b"])
def test_no_pattern_crosses_lines(pattern: str) -> None:
    assert lines(pattern, "a\nb\n") == []


@each("pattern", ["[", "(", "a{", "*", r"(?=x)", r"(a)\1", "(x{100}){100}", r"\Z", "a" * 1001])
def test_what_re2_refuses_is_searched_for_as_it_stands(pattern: str) -> None:
    compiled = compile_pattern(pattern)
    if pattern == "a{":
        assert compiled.notes == [], "RE2 reads it as text itself"
    else:
        assert "literally" in compiled.notes[0]
    assert lines(pattern, f"one\nx {pattern} y\n") == [2]


@each("pattern", ["(a+)+$", "(a|a)*b", "(.*)*x", "a{0,500}a{0,500}c", "(((a*)*)*)*d"])
def test_catastrophic_patterns_return(pattern: str) -> None:
    assert lines(pattern, "a" * 20_000 + "!\n") == []


def test_odd_text_and_patterns() -> None:
    assert lines("\ud800", "a\n") == [], "a lone surrogate is no pattern"
    assert lines("noir", "caf\udce9 noir\n") == [1], "bytes that are not UTF-8"
    assert lines("a\x00b", "a\x00b\n") == [1]
    assert lines("x", "") == []
    assert lines("", "a\n\n") == [1, 2]
    assert lines("é", "\ufefft\u00e9\n") == [1]


@given(
    st.text(alphabet="ab\n.x", max_size=40),
    st.sampled_from(["a", "^a", "b$", "a.b", "^$", "ab*", "[^a]", "^b?x"]),
)
def test_agrees_with_looking_at_each_line(text: str, pattern: str) -> None:
    document = Document.parse("a", text.encode())
    expected = [at for at, line in enumerate(document.lines, start=1) if re.search(pattern, line)]
    assert lines(pattern, text) == expected


def test_of_an_endless_line_a_huge_pattern_is_refused() -> None:
    text = "ab" * 500_000 + "z"
    with pytest.raises(UsageError, match="too large for a line of 1000002 bytes"):
        lines("((a|b|c|d){0,30}){0,30}z", text)  # to the end it takes half a minute
    assert lines("[ab]z", text) == [1]


@pytest.mark.parametrize("ignore_case", [True, False])
def test_a_text_is_taken_in_parts_where_a_pattern_reaches_no_further(
    monkeypatch: pytest.MonkeyPatch, ignore_case: bool
) -> None:
    compiled = compile_pattern("a.*b$|^$", ignore_case)
    text = "axb\nab x\n\n" + "a" + "x" * 30 + "b\nab\nb a b\n"
    monkeypatch.setattr("infinimem.index.grep.MAX_STEPS", 40 * compiled.line.programsize)
    found = [match.line for match in first_matches([Document.parse("a", text.encode())], compiled, ALL).first]
    assert found == [1, 3, 4, 5, 6]
