"""Which turns were drawn from: the list when it is damaged, lost, long, or looked at through a filter."""

from __future__ import annotations

from pathlib import Path

import pytest

from infinimem.model import NewEntry, Plan, Turn
from infinimem.store.library import Library, init
from infinimem.store.sources import only
from infinimem.store.view import Applied, View


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return init(tmp_path / "memory")


def say(library: Library, *texts: str) -> list[int]:
    return [place.seq for place in library.record([Turn(text) for text in texts])]


def pending(view: View) -> list[int]:
    return [place.seq for place in view.uncited()]


def listed(library: Library) -> Path:
    return library.root / ".infinimem" / "drawn"


@pytest.mark.sample(2)
@pytest.mark.parametrize("damage", [b"1+3;\n5-", b"2\n1+3;\n", b"\x00\xff 7-\n1+3;\n9-2;\n", b"1+3;\n2"])
def test_what_can_be_read_of_a_damaged_list_counts(library: Library, damage: bytes) -> None:
    one, two, three = say(library, "one", "two", "three")
    library.apply(Plan(empty=(one, three)))
    listed(library).write_bytes(damage)
    assert pending(library.view()) == [two]
    (four,) = say(library, "four")
    library.apply(Plan(empty=(four,)))
    assert pending(Library(library.root).view()) == [two]


def test_what_two_processes_draw_from_the_same_turn_stands_once(library: Library) -> None:
    one, two = say(library, "one", "two")
    here, there = Library(library.root), Library(library.root)
    base = there.view()
    assert isinstance(here.apply(Plan(adds=(NewEntry("One", (one,)),))), Applied)
    outcome = there.apply(Plan(adds=(NewEntry("One", (one,)), NewEntry("Two", (two,)))), base=base)
    assert isinstance(outcome, Applied)
    assert [place.text for place in outcome.view.entries()] == ["One", "Two"]


@pytest.mark.sample(2)
@pytest.mark.parametrize("damage", [b"", b"\x00" * 9, b"1-2", b"1-2\n"])
def test_a_list_of_which_nothing_can_be_read_is_lost(library: Library, damage: bytes) -> None:
    one, two, three = say(library, "one", "two", "three")
    library.apply(Plan(adds=(NewEntry("two", (two,)),), empty=(one,)))
    listed(library).write_bytes(damage)
    assert pending(library.view()) == [three]
    library.apply(Plan(empty=(three,)))
    assert pending(Library(library.root).view()) == []
    assert library.view().drawn == {one, two, three}


@pytest.mark.parametrize("lost", [True, False])
def test_what_was_drawn_from_is_not_pending_without_the_entry_that_says_so(
    library: Library, lost: bool
) -> None:
    said = library.record([Turn("mine"), Turn("yours", role="assistant"), Turn("later")])
    mine, yours, later = (place.seq for place in said)
    library.apply(Plan(adds=(NewEntry("both", (mine, yours)),)))
    listed(library).unlink()
    if not lost:  # written before the crash that kept the new entry's turns off it
        listed(library).write_text("99\n")
    assert pending(library.view()) == [later]
    assert pending(only(library.view(), ["user"])) == [later]
