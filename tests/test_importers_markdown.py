"""Markdown and text: what makes a turn, and what its role and date are."""

from __future__ import annotations

import re
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from infinimem.importers.markdown import turns

NOTES = """\
---
tags: [x]
---
# Allergies

- peanuts
  since 2019
  - and walnuts
- [ ] ask about cashews

A paragraph
over two lines.

## 2025-03-03

1. ran 5 km
2) slept

```
- not an item

# not a heading
```
***
Last words
"""


def texts(text: str, stem: str = "notes") -> list[str]:
    return [turn.text for turn in turns(text, stem, Counter())]


def test_items_paragraphs_and_code_are_turns_and_headings_what_they_are_about() -> None:
    skipped: Counter[str] = Counter()
    found = list(turns(NOTES, "notes", skipped))
    assert [turn.text for turn in found] == [
        "tags: x",
        "Allergies: peanuts\n  since 2019\n  - and walnuts",
        "Allergies: [ ] ask about cashews",
        "Allergies: A paragraph\nover two lines.",
        "Allergies: ran 5 km",
        "Allergies: slept",
        "Allergies:\n```\n- not an item\n\n# not a heading\n```",
        "Allergies: Last words",
    ]
    assert [turn.time for turn in found] == [None] * 4 + ["2025-03-03"] * 4
    assert not +skipped


def test_windows_line_ends_make_no_difference() -> None:
    assert texts(NOTES.replace("\n", "\r\n")) == texts(NOTES)


def test_a_date_holds_for_its_section_only() -> None:
    found = turns("# Log\n## 2025-03-03\na\n### Evening\nb\n## Ideas\nc\n", "notes", Counter())
    assert {turn.text: turn.time for turn in found} == {
        "Log: a": "2025-03-03", "Log › Evening: b": "2025-03-03", "Log › Ideas: c": None,
    }  # fmt: skip


def test_only_numbers_that_count_are_markers() -> None:
    assert texts("0. a\n1. b\n1. c\n2) d\n\n1986. A good year\n") == ["a", "b", "c", "d", "1986. A good year"]
    assert texts("1. milk\n\n# Other\n1. milk\n") == ["milk", "Other: milk"]


def test_an_open_fence_hides_nothing() -> None:
    assert texts("```\n- a\n- b\n") == ["```", "a", "b"]
    assert texts("````\n- a\n```\n- b\n```\n") == ["````", "a", "```\n- b\n```"]


def test_a_transcript_has_roles() -> None:
    text = "**User:** I moved to Lisbon.\n\nIn March.\n\n**Assistant:** Noted.\n\n## User\n\nThanks"
    found = [(turn.role, turn.text) for turn in turns(text, "chat", Counter())]
    assert found == [
        ("user", "I moved to Lisbon."), ("user", "In March."), ("assistant", "Noted."), ("user", "Thanks"),
    ]  # fmt: skip


def test_a_note_that_only_begins_with_such_a_word_is_no_transcript() -> None:
    found = [(turn.role, turn.text) for turn in turns("AI: how it works\n\nTool: hammer", "n", Counter())]
    assert found == [("user", "AI: how it works"), ("user", "Tool: hammer")]


@given(st.text(alphabet="ab1.-*#>`~ \t\n\r:|=[]User", max_size=200))
def test_no_word_is_lost(text: str) -> None:
    """Whatever the text, all its words come out (of a header those that hold words), and none is made up."""
    skipped: Counter[str] = Counter()
    found = " ".join(turn.text for turn in turns(text, "n", skipped))
    if not +skipped and not text.startswith("---"):
        assert set(re.findall(r"[a-zA-Z]+", found)) == set(re.findall(r"[a-zA-Z]+", text))


def test_a_heading_that_only_shows_something_is_none() -> None:
    assert texts("# ![[a.png]]\n## b\nc\n# ![[d.png]]\n") == ["b: c", ""]  # the store takes no empty turn


def test_a_heading_of_many_blanks_is_read_at_once() -> None:
    text = "# a" + " " * 100_000 + "b\n\n# C# ##\n"
    assert [turn.text for turn in turns(text, "x", Counter())] == ["a" + " " * 100_000 + "b", "C#"]
