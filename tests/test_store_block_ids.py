"""Block ids: the number of an entry at the end of its line, for Obsidian, if a setting asks for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from cases import each

from infinimem.markdown.document import Document
from infinimem.markdown.signature import format_entry
from infinimem.memory import Memory, open_memory
from infinimem.model import Turn

SAID = "I moved to Lisbon with my cat Miso."


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    open_memory(tmp_path / "m", model="offline", create=True)
    (tmp_path / "m/infinimem.toml").write_text("block_ids = true\n")
    made = open_memory(tmp_path / "m", model="offline")
    made.observe([Turn(text=SAID, time="2025-03-03", session="s1")])
    return made


def line(memory: Memory, name: str = "CURRENT") -> str:
    return (memory.library.root / f"{name}.md").read_text().splitlines()[-1]


def test_a_line_has_one_where_it_is_asked_for_alone(memory: Memory, tmp_path: Path) -> None:
    assert line(memory).endswith(f"> {SAID} ^2")
    plain = open_memory(tmp_path / "plain", model="offline", create=True)
    plain.observe([Turn(text=SAID, time="2025-03-03", session="s1")])
    assert line(plain).endswith(f"> {SAID}")
    assert "# block_ids = false\n" in (tmp_path / "plain/infinimem.toml").read_text()


def test_it_is_no_part_of_what_the_line_says(memory: Memory) -> None:
    (place,) = memory.view.entries()
    assert place.entry.text == SAID
    found = memory.tools.text("search", {"query": "Lisbon"})
    assert SAID in found and "^2" not in found
    assert "^2" not in memory.ask("Where do I live?").text
    assert memory.doctor() == []


def test_it_moves_with_the_line_and_stays_with_an_edit(memory: Memory) -> None:
    before = line(memory)
    memory.consolidate()
    (topic,) = memory.library.root.glob("topics/*.md")
    assert before in topic.read_text().splitlines()
    topic.write_text(topic.read_text().replace("Lisbon", "Porto"))
    memory.library.adopt_edits()
    (place,) = memory.view.entries()
    assert place.entry.source == "human"
    assert place.entry.text == SAID.replace("Lisbon", "Porto")
    assert topic.read_text().splitlines()[-1].endswith(" ^2")


@each("end", ["", "\r"])
def test_signing_anew_keeps_all_else(end: str) -> None:
    document = Document.parse("topics/x", f"- <seq=2,source=user> a ^2{end}\n- b ^2{end}\n".encode())
    signed = document.sign({1: format_entry(7, ""), 2: format_entry(8, "")})
    assert signed.lines == (f"- <seq=7,source=user> a ^7{end}", f"- <seq=8,source=user> b ^2{end}")
