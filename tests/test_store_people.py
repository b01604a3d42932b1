"""What people do to the files by hand is taken in: the folder's bytes and the receipts say so."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from fault_library import problems, tree

from infinimem.model import Move, NewEntry, Plan, Receipt, Turn
from infinimem.store.library import Library, init
from infinimem.store.view import Applied


@pytest.fixture
def library(tmp_path: Path) -> Library:
    """Two lines in a topic, one in the buffer; evidence 1-3, entries 4-6."""
    made = init(tmp_path / "memory")
    made.clock = lambda: datetime(2025, 3, 3, 12, tzinfo=UTC)
    turns = [
        Turn("I drink oat latte", session="s"),
        Turn("I live in Lisbon"),
        Turn("Ann is back", time="2025-03-02"),
    ]
    told = made.record(turns)
    texts = ["Drinks oat latte", "Lives in Lisbon", "Ann is back"]
    adds = [NewEntry(text, (place.seq,), by="model") for text, place in zip(texts, told, strict=True)]
    made.apply(Plan(adds=tuple(adds)))
    made.apply(Plan("consolidate", moves=(Move(4, "topics/life", "Drinks"), Move(5, "topics/life", "Home"))))
    made.adopt_edits()
    return made


def edit(library: Library, doc_id: str, old: str, new: str) -> None:
    path = library.root / f"{doc_id}.md"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def rows(receipt: Receipt | None) -> list[tuple[int, str, str, str]]:
    assert receipt is not None
    return [(row.seq, row.was, row.now, row.why) for row in receipt.rows]


def test_an_edited_line_keeps_its_seq_and_the_receipt_holds_its_old_text(library: Library) -> None:
    path = library.root / "topics/life.md"
    old = next(line for line in path.read_text().splitlines() if "seq=4" in line)
    edit(library, "topics/life", "Drinks oat latte", "Drinks black tea")
    before = path.read_text()
    receipt = library.adopt_edits()
    assert rows(receipt) == [(4, "topics/life", "topics/life", "edited")]
    assert path.read_text() == before.replace(
        "- <seq=4,source=user,by=model,origin=1> Drinks black tea",
        "- <seq=4,source=human,origin=1> Drinks black tea",
    )
    assert path.read_text() != before
    assert library.receipts()[-1].quoted == (old,)
    assert f"## As it was\n```markdown\n{old}\n```\n" in (library.root / "journal/0002-stamp.md").read_text()
    assert library.adopt_edits() is None
    assert problems(library.root, {}) == []


def test_an_edit_made_while_a_line_moves_is_told_too(library: Library) -> None:
    edit(library, "CURRENT", "Ann is back", "Ann is in Porto")
    library.apply(Plan("consolidate", moves=(Move(6, "topics/people", "Ann"),)))
    receipt = library.adopt_edits()
    assert rows(receipt) == [(6, "topics/people", "topics/people", "edited")]
    assert "source=human,origin=3> Ann is in Porto" in (library.root / "topics/people.md").read_text()


def test_a_deletion_stands_and_the_receipt_holds_the_line(library: Library) -> None:
    path = library.root / "topics/life.md"
    (old,) = (line for line in path.read_text().splitlines() if "seq=5" in line)
    edit(library, "topics/life", f"{old}\n", "")
    before = tree(library.root)
    receipt = library.adopt_edits()
    assert rows(receipt) == [(5, "topics/life", "-", "deleted")]
    assert library.receipts()[-1].quoted == (old,)
    after = tree(library.root)
    assert after.keys() - before.keys() == {"journal/0002-stamp.md"}
    assert {name: after[name] for name in before} == before
    assert library.adopt_edits() is None
    assert library.view().uncited() == ()


def test_a_plan_does_not_bring_back_or_move_what_a_person_took_away(library: Library) -> None:
    told = library.record([Turn("more")])
    library.apply(Plan(adds=(NewEntry("More", (told[0].seq,)),)))
    base = library.view()
    edit(library, "CURRENT", next(p.entry.line for p in base.buffer.entries if p.seq == 6) + "\n", "")
    moves = tuple(Move(place.seq, "topics/rest", "Rest") for place in base.buffer.entries)
    outcome = library.apply(Plan("consolidate", moves=moves), base=base)
    assert isinstance(outcome, Applied)
    assert outcome.receipt is not None
    assert outcome.receipt.notes == ("left out, moved or deleted meanwhile: 6",)
    assert [place.text for place in outcome.view.document("topics/rest").entries] == ["More"]


def test_a_line_carried_to_another_document_is_noted(library: Library) -> None:
    line = next(
        place.entry.line for place in library.view().document("topics/life").entries if place.seq == 5
    )
    edit(library, "topics/life", f"{line}\n", "")
    (library.root / "topics/home.md").write_text(f"{line}\n")
    assert rows(library.adopt_edits()) == [(5, "topics/life", "topics/home", "moved by hand")]
    assert (library.root / "topics/home.md").read_text() == f"{line}\n"


def test_of_a_pasted_line_that_was_edited_the_untouched_one_keeps_its_seq(library: Library) -> None:
    line = next(
        place.entry.line for place in library.view().document("topics/life").entries if place.seq == 4
    )
    (library.root / "topics/aside.md").write_text(line.replace("oat latte", "anything") + "\n")
    receipt = library.adopt_edits()
    assert receipt is not None
    (row,) = receipt.rows
    assert (row.now, row.why) == ("topics/aside", "renumbered from 4")
    assert library.view().document("topics/life").entries[0].entry.line == line
    (copy,) = library.view().document("topics/aside").entries
    assert (copy.text, copy.entry.origin) == ("Drinks anything", (1, 4))
    assert copy.entry.fields["was"] == "4"


def test_a_broken_signature_is_no_deletion(library: Library) -> None:
    edit(library, "topics/life", "seq=4,source=user", "seq=4,source=me")
    assert library.adopt_edits() is None
    edit(library, "topics/life", "seq=4,source=me", "seq=4,source=user")
    assert library.adopt_edits() is None


def test_a_renamed_document_keeps_its_lines_and_its_old_name(library: Library) -> None:
    (library.root / "topics/life.md").rename(library.root / "topics/daily-life.md")
    assert [row[1:] for row in rows(library.adopt_edits())] == [
        ("topics/life", "topics/daily-life", "moved by hand")
    ] * 2
    library.apply(Plan("consolidate", moves=(Move(6, "topics/people", "Ann"),)))
    view = library.view()
    assert view.resolve("life") == "topics/daily-life"
    assert view.document("topics/daily-life").header.values["id"] == "topics/daily-life"


@pytest.mark.sample(2)
@pytest.mark.parametrize("junk", [b"\x00" * 50, b"0000\t4\ttopics/life\tnothing\n", b"\xff\xfe\n\n\t\t\t"])
def test_a_torn_list_says_nothing_wrong(library: Library, junk: bytes) -> None:
    with (library.root / ".infinimem/seen").open("ab") as file:
        file.write(junk)
    assert library.adopt_edits() is None
    edit(library, "topics/life", "Drinks oat latte", "Drinks black tea")
    assert rows(library.adopt_edits()) == [(4, "topics/life", "topics/life", "edited")]
