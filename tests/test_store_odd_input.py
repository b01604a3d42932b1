"""Odd but possible folders: links, strange names and headers, a save in between. No line is lost."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from infinimem.errors import LibraryError
from infinimem.model import Move, NewEntry, Plan, Receipt, Turn
from infinimem.operations.doctor import examine
from infinimem.store.create import init
from infinimem.store.files import MAX_FILE
from infinimem.store.library import Library
from infinimem.store.outcome import Applied


@pytest.fixture
def library(tmp_path: Path) -> Library:
    made = init(tmp_path / "memory")
    made.clock = lambda: datetime(2025, 3, 3, 12, tzinfo=UTC)
    return made


def fill(library: Library, *texts: str) -> list[int]:
    told = library.record([Turn(text, time="2025-03-01") for text in texts])
    outcome = library.apply(Plan(adds=tuple(NewEntry(p.entry.text, (p.entry.seq,)) for p in told)))
    assert isinstance(outcome, Applied)
    return [place.entry.seq for place in outcome.added]


def consolidate(library: Library, *moves: Move, notes: tuple[str, ...] = ()) -> Receipt:
    outcome = library.apply(Plan("consolidate", moves=moves, notes=notes))
    assert isinstance(outcome, Applied)
    assert outcome.receipt
    return outcome.receipt


# ── links and what cannot be read ───────────────────────────────────────────────────────────────


@pytest.mark.sample(2)
@pytest.mark.parametrize("folder", ["evidence", "topics", "journal"])
def test_nothing_is_written_through_a_link(library: Library, tmp_path: Path, folder: str) -> None:
    (library.root / folder).rmdir()
    (tmp_path / "elsewhere").mkdir()
    (library.root / folder).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LibraryError, match="is a link"):
        consolidate(library, Move(fill(library, "a")[0], "topics/a"))
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("path", ["evidence/2025-03-01.md", "topics/a.md"])
def test_a_link_is_not_replaced_by_a_new_file(library: Library, tmp_path: Path, path: str) -> None:
    (tmp_path / "mine.md").write_text("mine")
    (library.root / path).symlink_to(tmp_path / "mine.md")
    with pytest.raises(LibraryError, match="is a link"):
        consolidate(library, Move(fill(library, "a")[0], "topics/a"))
    assert (library.root / path).is_symlink()
    assert not [finding for finding in examine(library) if finding.level == "error"]


def test_init_keeps_a_large_buffer_and_a_link(library: Library, tmp_path: Path) -> None:
    large = b"- <seq=1,source=user> one\n" + b"x" * MAX_FILE
    (library.root / "CURRENT.md").write_bytes(large)
    init(library.root)
    assert (library.root / "CURRENT.md").read_bytes() == large
    (tmp_path / "mine.toml").write_text("[infini]\n")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "infinimem.toml").symlink_to(tmp_path / "mine.toml")
    with pytest.raises(LibraryError, match="is a link"):
        init(tmp_path / "linked")
    assert (tmp_path / "mine.toml").read_text() == "[infini]\n"
    assert (tmp_path / "linked" / "infinimem.toml").is_symlink()


# ── names, numbers, headers ─────────────────────────────────────────────────────────────────────


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ["Food, drink", "a|b", "a\\", "5: x"])
def test_a_document_that_a_person_renamed_keeps_its_old_name_as_an_alias(library: Library, name: str) -> None:
    seqs = fill(library, "a", "b", "c")
    consolidate(library, Move(seqs[0], "topics/food", "A"))
    consolidate(library, Move(seqs[1], "topics/food", why="superseded", by=seqs[0]))
    (library.root / "topics/food.md").rename(library.root / f"topics/{name}.md")
    fourth = fill(library, "d")[0]
    consolidate(library, Move(seqs[2], "topics/other", "A"))  # mended though nothing comes in
    view = library.view()
    assert view.document(f"topics/{name}").header.values["id"] == f"topics/{name}"
    assert view.resolve("food") == f"topics/{name}"
    receipt = consolidate(library, Move(fourth, f"topics/{name}", "A"))
    assert library.receipts()[-1] == receipt
    assert library.view().document(f"topics/{name}").header.values["aliases"] == ["food"]


def test_a_seq_that_leaves_no_room_is_said_before_anything_is_written(library: Library) -> None:
    with (library.root / "CURRENT.md").open("a") as file:
        file.write(f"- <seq={10**18 - 2},source=user> x\n")
    (place,) = library.record([Turn("one", session="s")])
    assert place.entry.seq == 10**18 - 1
    with pytest.raises(LibraryError, match="no room"):
        library.record([Turn("two", session="s")])
    assert len(list(library.view().entries("evidence"))) == 1


# ── what may be replaced, and a save in between ─────────────────────────────────────────────────


def test_a_pasted_line_of_the_evidence_takes_no_turn_away(library: Library) -> None:
    one, two = library.record([Turn("one"), Turn("two")])
    with (library.root / "CURRENT.md").open("a") as buffer:
        buffer.write(f"{one.entry.line}\n")
    assert library.view().uncited() == (one, two)
    library.apply(Plan(empty=(one.seq,)))
    library.adopt_edits()
    (copy,) = library.view().entries()
    assert (copy.seq, copy.entry.origin, copy.text) == (3, (one.seq,), "one")
    assert library.view().entry(one.seq) == one
    assert library.unsigned() == 0


def test_a_document_with_a_person_s_header_keys_outlives_its_last_line(library: Library) -> None:
    path = library.root / "topics" / "a.md"
    path.write_text("---\nid: topics/a\ntags: [mine]\n---\n- <seq=1> Has x\n")
    (library.root / "topics" / "b.md").write_text("---\nid: topics/b\n---\n- <seq=2> Has x\n")
    consolidate(library, Move(1, "topics/a", why="duplicate", by=2))
    assert "tags: [mine]" in path.read_text()
    assert library.view().document("topics/a").entries == ()
    assert examine(library) == []
