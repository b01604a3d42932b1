"""Markdown and text: what makes a turn, and what its role and date are."""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from cases import each
from cli_runner import Shell
from exports import MEM0
from hypothesis import given
from hypothesis import strategies as st

from infinimem.importers import survey
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


# ── what other memories hold ─────────────────────────────────────────────────────────────────────────


def titled(text: str, title: str | None = None) -> list[str]:
    return [turn.text for turn in turns(text, "note", Counter(), title)]


def saved(folder: Path, content: Any) -> Path:
    path = folder / "memory.json"
    path.write_text(json.dumps(content))
    return path


def said(path: Path) -> list[str]:
    return [turn.text for batch in survey(path).batches() for turn in batch]


def test_memories_may_be_a_list_alone_and_of_several_users(tmp_path: Path) -> None:
    other = {"id": "x", "memory": "Sings", "user_id": "ida", "created_at": "2025-01-01T00:00:00Z"}
    found = survey(saved(tmp_path, [*MEM0["results"], other]))
    assert (found.formats, found.turns, found.sessions) == (("mem0",), 3, 2)
    assert survey(tmp_path / "memory.json", only="mem0 ida").turns == 1


def test_a_memory_that_was_changed_is_a_new_statement(shell: Shell, tmp_path: Path) -> None:
    path = saved(tmp_path, MEM0)
    shell("init", ".")
    assert shell("import", str(path), "--json").json["recorded"] == 2
    changed = copy.deepcopy(MEM0)
    changed["results"][1]["memory"] = "Plays the cor anglais in Brno"
    saved(tmp_path, changed)
    assert shell("import", str(path), "--json").json["recorded"] == 1


def test_a_graph_may_be_what_the_tool_returns(tmp_path: Path) -> None:
    graph = {
        "entities": [{"name": "Ines", "entityType": "person", "observations": ["Ines sails", "likes fog"]}],
        "relations": [{"from": "Ines", "to": "Ria", "relationType": "sister_of"}],
    }
    assert said(saved(tmp_path, graph)) == ["Ines sails", "Ines: likes fog", "Ines sister of Ria"]


def test_a_heading_is_context_and_one_with_nothing_below_a_turn() -> None:
    note = (
        "# Anna\n\n## Bought a bike\n\n## Work:\n### Now\nbaker\n\n**Hours**\n\nnights\n## 2025-01-02\nslept"
    )
    assert titled(note) == [
        "Anna: Bought a bike",
        "Anna › Work › Now: baker",
        "Anna › Work › Now › Hours: nights",
        "Anna: slept",
    ]


def test_a_sentence_in_bold_is_no_heading() -> None:
    assert titled("**Never call.**\n\nbaker\n\n- **Work**\n") == ["**Never call.**", "baker", "**Work**"]


@each(
    ("note", "expected"),
    [
        ("Met [[Anna Berg|Anna]] at [[Quay#Steps]], see [[#Later]]", "Met Anna at Quay > Steps, see Later"),
        ("like ![[a.png|300]] this", "like [a.png] this"),
        ("`[[kept]]` and [[Link]]", "`[[kept]]` and Link"),
        ("[[ -f x ]] or a[[1]]", "[[ -f x ]] or a1"),
        ("done ^a1b2c3", "done"),
        ("2 ^10", "2 ^10"),
    ],
)
def test_links_between_notes_become_words(note: str, expected: str) -> None:
    assert titled(note) == [expected]


def test_a_note_is_about_its_title_and_dated_by_its_header() -> None:
    header = "---\ntitle: Pears\ncreated: 2025-05-06\nrating: 4\nnested:\n  a: 1\n---\n"
    note = f"{header}# Pears\n- [fact] ripen late\n"
    found = list(turns(note, "x", Counter(), "Other"))
    assert [turn.text for turn in found] == ["Pears: rating: 4", "Pears: [fact] ripen late"]
    assert {turn.time for turn in found} == {"2025-05-06"}
    assert titled("ran", title="2025-01-02") == ["ran"]


def test_a_header_that_is_not_read_is_counted() -> None:
    skipped: Counter[str] = Counter()
    assert [turn.text for turn in turns("---\na: [\n---\nhi\n", "x", skipped)] == ["hi"]
    assert skipped["headers"] == 1


@pytest.mark.parametrize("folder", [".claude/projects/-home-ann-shop/memory", ".codex/memories"])
def test_what_an_agent_keeps_of_its_own_is_its_own(tmp_path: Path, folder: str) -> None:
    """The memories of Claude Code and Codex are phrased by a model; notes beside them are a person's."""
    for name in (folder, "notes"):
        path = tmp_path / name / "testing.md"
        path.parent.mkdir(parents=True)
        path.write_text("---\nname: testing\ntype: feedback\n---\nTests hit a real database.\n")
        read = [turn for batch in survey(path).batches() for turn in batch]
        assert [turn.text for turn in read] == ["name: testing; type: feedback", "Tests hit a real database."]
        assert {turn.role for turn in read} == {"assistant" if name == folder else "user"}


def test_a_folder_of_the_open_knowledge_format() -> None:
    text = (
        "---\ntype: decision\ntitle: Database\ntags: [code]\ntimestamp: 2026-07-01T00:00:00Z\n---\nMongoDB.\n"
    )
    read = [*turns(text, "x", Counter())]
    assert [turn.text for turn in read] == ["Database: type: decision; tags: code", "Database: MongoDB."]
    assert {turn.time for turn in read} == {"2026-07-01"}
