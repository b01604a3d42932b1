"""What other memories hold comes in as statements: with what they are about, from whom, and when."""

from __future__ import annotations

import copy
import json
from collections import Counter
from pathlib import Path
from typing import Any

from cases import each
from cli_runner import Shell
from exports import MEM0

from infinimem.importers import survey
from infinimem.importers.markdown import turns


def texts(text: str, title: str | None = None) -> list[str]:
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
    assert texts(note) == [
        "Anna: Bought a bike",
        "Anna › Work › Now: baker",
        "Anna › Work › Now › Hours: nights",
        "Anna: slept",
    ]


def test_a_sentence_in_bold_is_no_heading() -> None:
    assert texts("**Never call.**\n\nbaker\n\n- **Work**\n") == ["**Never call.**", "baker", "**Work**"]


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
    assert texts(note) == [expected]


def test_a_note_is_about_its_title_and_dated_by_its_header() -> None:
    header = "---\ntitle: Pears\ncreated: 2025-05-06\nrating: 4\nnested:\n  a: 1\n---\n"
    note = f"{header}# Pears\n- [fact] ripen late\n"
    found = list(turns(note, "x", Counter(), "Other"))
    assert [turn.text for turn in found] == ["Pears: rating: 4", "Pears: [fact] ripen late"]
    assert {turn.time for turn in found} == {"2025-05-06"}
    assert texts("ran", title="2025-01-02") == ["ran"]


def test_a_header_that_is_not_read_is_counted() -> None:
    skipped: Counter[str] = Counter()
    assert [turn.text for turn in turns("---\na: [\n---\nhi\n", "x", skipped)] == ["hi"]
    assert skipped["headers"] == 1
