"""Which turns were drawn from: the list when it is damaged, lost, long, or looked at through a filter."""

from __future__ import annotations

from pathlib import Path

import pytest

from infinimem.model import NewEntry, Plan, Turn
from infinimem.store.create import init
from infinimem.store.library import Library
from infinimem.store.outcome import Applied
from infinimem.store.sources import only
from infinimem.store.state import append_log
from infinimem.store.view import View


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return init(tmp_path / "memory")


def say(library: Library, *texts: str) -> list[int]:
    return [place.seq for place in library.record([Turn(text) for text in texts])]


def pending(view: View) -> list[int]:
    return [place.seq for place in view.uncited()]


def listed(library: Library) -> Path:
    return library.root / ".infinimem" / "drawn"


@pytest.mark.parametrize("damage", [b"1+3;\n5-", b"2\n1+3;\n", b"\x00\xff 7-\n1+3;\n9-2;\n", b"1+3;\n2"])
def test_what_can_be_read_of_a_damaged_list_counts(library: Library, damage: bytes) -> None:
    one, two, three = say(library, "one", "two", "three")
    library.apply(Plan(empty=(one, three)))
    listed(library).write_bytes(damage)
    assert pending(library.view()) == [two]
    (four,) = say(library, "four")
    library.apply(Plan(empty=(four,)))
    assert pending(Library(library.root).view()) == [two]


@pytest.mark.parametrize("chunk", [append_log.CHUNK, 1, 3])
def test_a_list_is_read_as_it_is_now_whatever_was_read_before(
    library: Library, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(append_log, "CHUNK", chunk)
    say(library, *"abcdef")
    path = listed(library)
    for data, known in (
        (b"1;\n2", {1}),
        (b"1;\n2+3;\n", {1, 2, 3}),
        (b"4;\n", {4}),
        (b"5;\n6;\n1;\n", {1, 5, 6}),
    ):
        path.write_bytes(data)
        assert library.view().drawn == known


def test_what_two_processes_draw_from_the_same_turn_stands_once(library: Library) -> None:
    one, two = say(library, "one", "two")
    here, there = Library(library.root), Library(library.root)
    base = there.view()
    assert isinstance(here.apply(Plan(adds=(NewEntry("One", (one,)),))), Applied)
    outcome = there.apply(Plan(adds=(NewEntry("One", (one,)), NewEntry("Two", (two,)))), base=base)
    assert isinstance(outcome, Applied)
    assert [place.text for place in outcome.view.entries()] == ["One", "Two"]


@pytest.mark.parametrize("damage", [b"", b"\x00" * 9, b"1-2", b"1-2\n"])
def test_a_list_of_which_nothing_can_be_read_is_lost(library: Library, damage: bytes) -> None:
    one, two, three = say(library, "one", "two", "three")
    library.apply(Plan(adds=(NewEntry("two", (two,)),), empty=(one,)))
    listed(library).write_bytes(damage)
    assert pending(library.view()) == [three]
    library.apply(Plan(empty=(three,)))
    assert pending(Library(library.root).view()) == []
    assert library.view().drawn == {one, two, three}


def test_a_lost_list_of_a_long_history_is_written_so_that_it_can_be_read(library: Library) -> None:
    said = "".join(f"- <seq={seq},source=user> x\n" for seq in range(1, 100_003))
    (library.root / "evidence" / "2020-01-01.md").write_text(said)
    with (library.root / "CURRENT.md").open("a") as buffer:
        buffer.write("- <seq=100003,source=user,origin=100002> x\n")
    (new,) = say(library, "new")
    assert isinstance(library.apply(Plan(empty=(new,))), Applied)
    assert pending(library.view()) == []
    assert len(library.view().drawn or ()) == 100_003


def test_no_seq_of_the_list_is_given_again_where_the_highest_is_forgotten(library: Library) -> None:
    library.apply(Plan(empty=tuple(say(library, "one", "two", "three"))))
    (evidence,) = (library.root / "evidence").iterdir()
    text = evidence.read_text()
    evidence.write_text(text[: text.index("- <seq=2,")])
    (library.root / ".infinimem" / "seq").unlink()
    (new,) = say(library, "four")
    assert new == 4
    assert pending(library.view()) == [4]


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


def test_a_turn_in_which_nothing_is_leaves_no_receipt_where_there_is_no_buffer(library: Library) -> None:
    (library.root / "CURRENT.md").unlink()
    library.apply(Plan(empty=tuple(say(library, "hm"))))
    assert library.receipts() == ()
    assert pending(library.view()) == []


@pytest.mark.parametrize("damage", [b"", b"\xff\x00", b"-5", b"9" * 30, b"9" * 5000])
def test_a_garbled_high_water_mark_is_a_lost_one(library: Library, damage: bytes) -> None:
    say(library, "one", "two")
    (library.root / ".infinimem" / "seq").write_bytes(damage)
    assert say(library, "three") == [3]


def test_a_refused_turn_stands_for_itself_until_an_entry_cites_it(library: Library) -> None:
    one, two, three = say(library, "one", "two", "three")
    library.apply(Plan(refused=(one, two), empty=(three,)))
    assert pending(library.view()) == []
    assert Library(library.root).view().unfiled() == (one, two)
    library.apply(Plan("consolidate", adds=(NewEntry("one, said", (one,), "topics/a"),)))
    assert library.view().unfiled() == (two,)


@pytest.mark.parametrize("damage", [b"1+3;\n5-", b"\x00\xff 7-\n1+3;\n9-2;\n", b"1+3;\n2"])
def test_what_can_be_read_of_a_damaged_list_of_refused_turns_counts(library: Library, damage: bytes) -> None:
    said = say(library, "one", "two", "three", "four")
    library.apply(Plan(empty=tuple(said)))
    (library.root / ".infinimem" / "refused").write_bytes(damage)
    assert library.view().unfiled() == (1, 3)
    library.apply(Plan(refused=(4,)))
    assert Library(library.root).view().unfiled() == (1, 3, 4)


def test_without_the_list_refused_turns_count_as_holding_nothing(library: Library) -> None:
    (one,) = say(library, "one")
    library.apply(Plan(refused=(one,)))
    (library.root / ".infinimem" / "refused").unlink()
    assert library.view().unfiled() == ()
    assert pending(library.view()) == []
