"""What leans on a superseded fact is flagged, and nothing else is; nothing is changed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from history_library import DOG, FLAT, HOME, LISBON, PORTO, apply, filled, moved, rewrite

from infinimem.memory import Memory
from infinimem.model import Derived, Move, NewEntry, Turn
from infinimem.store.leaning import leaning


def flags(memory: Memory) -> list[tuple[str, int | None, int, int, str]]:
    found = leaning(memory.view, memory.receipts())
    return [(one.where.partition(":")[0], one.seq, one.on, one.by, one.shared) for one in found]


def test_an_entry_of_the_same_talk_that_repeats_its_name(tmp_path: Path) -> None:
    memory = filled(tmp_path / "m")
    before = (memory.library.root / f"{HOME}.md").read_bytes()
    assert flags(memory) == [(HOME, FLAT, LISBON, PORTO, "lisbon")]
    assert memory.status()["leaning"] == 1
    place = memory.view.entry(FLAT)
    assert place is not None
    (note,) = (finding for finding in memory.doctor() if "leans" in finding.what)
    assert (note.level, note.where) == ("note", f"{HOME}:{place.start_line}")
    assert f"leans on line {LISBON}" in note.what
    assert f"line {PORTO} superseded" in note.what
    assert (memory.library.root / f"{HOME}.md").read_bytes() == before


def test_nothing_leans_where_nothing_is_superseded(tmp_path: Path) -> None:
    memory = filled(tmp_path / "m")
    memory.undo()
    assert flags(memory) == []
    assert memory.status()["leaning"] == 0


def test_neither_receipts_nor_machine_state_are_needed(tmp_path: Path) -> None:
    memory = filled(tmp_path / "m")
    for folder in ("journal", ".infinimem"):
        shutil.rmtree(memory.library.root / folder)
    assert flags(memory) == [(HOME, FLAT, LISBON, PORTO, "lisbon")]


def said(memory: Memory, text: str, session: str, time: str) -> int:
    """A turn and an entry of the same words in topics/home; its seq."""
    (turn,) = memory.library.record([Turn(text, speaker="Nora", time=time, session=session)])
    apply(memory, op="append", adds=(NewEntry(text, (turn.seq,)),))
    seq = memory.view.max_seq
    apply(memory, moved(seq))
    return seq


@pytest.mark.parametrize(
    ("text", "session", "time", "is_flagged"),
    [
        ("The trams of Lisbon are yellow.", "s1", "2025-03-03T11:00:00", True),
        ("The trams of Lisbon are yellow.", "other", "2025-03-03T11:00:00", False),
        ("The trams of Lisbon are yellow.", "s1", "2025-07-01T11:00:00", False),
        ("The trams are yellow.", "s1", "2025-03-03T11:00:00", False),
        ("Nora likes trams.", "s1", "2025-03-03T11:00:00", False),
        ("The trams of Porto are yellow.", "s1", "2025-03-03T11:00:00", False),
    ],
)
def test_words_alone_count_only_where_they_tell(
    tmp_path: Path, text: str, session: str, time: str, is_flagged: bool
) -> None:
    memory = filled(tmp_path / "m")
    seq = said(memory, text, session, time)
    assert (seq in [one[1] for one in flags(memory)]) is is_flagged


def test_a_name_that_was_only_left_out_tells_nothing(tmp_path: Path) -> None:
    memory = filled(tmp_path / "m")
    memory.undo()
    texts = (
        "The NAS heron is at 10.0.0.20.",
        "The NAS is silver.",
        "I mount 10.0.0.20.",
        "It moved to 10.0.9.20.",
    )
    old, _, leans, new = (said(memory, text, "s5", f"2025-04-0{day}") for day, text in enumerate(texts, 1))
    apply(memory, Move(old, HOME, "", "superseded", new))
    assert flags(memory) == [(HOME, leans, old, new, "10.0.0.20")]


def test_a_name_that_is_everywhere_tells_nothing(tmp_path: Path) -> None:
    memory = filled(tmp_path / "m")
    for number in range(3):
        said(memory, f"The trams of Lisbon are yellow {number}.", "other", "2025-03-03T11:00:00")
    assert flags(memory) == []


@pytest.mark.parametrize(
    ("old", "beside", "new", "shared"),
    [
        ("Nora works in Sintra.", "Nora likes trams.", "I work in Faro now.", None),
        ("I work at Heron.", "Heron has a canteen.", "I left heron for Sintra.", None),
        ("I met Ann in Sintra.", "Ann is from Sintra.", "I met Bo in Faro.", "ann"),
    ],
    ids=["the speaker's own name", "a name that the new line has too", "two names are told once"],
)
def test_names_that_tell(tmp_path: Path, old: str, beside: str, new: str, shared: str | None) -> None:
    memory = filled(tmp_path / "m")
    memory.undo()
    first, leans, last = (
        said(memory, text, "s5", f"2025-04-0{day}") for day, text in enumerate((old, beside, new), 1)
    )
    apply(memory, Move(first, HOME, "", "superseded", last))
    assert flags(memory) == ([(HOME, leans, first, last, shared)] if shared else [])


def test_what_was_drawn_from_it_and_repeats_its_name_is_told_once(tmp_path: Path) -> None:
    memory = filled(tmp_path / "m")
    line = f"- <seq=30,time=2025-03-03,source=AI,origin={LISBON}> Rents in Lisbon are high.\n"
    rewrite(memory, DOG, "# Rex\n", f"# Rex\n{line}")
    assert [one for one in flags(memory) if one[0] == DOG] == [(DOG, 30, LISBON, PORTO, "")]


def test_an_entry_that_was_drawn_from_it_leans_whatever_it_says(tmp_path: Path) -> None:
    memory = filled(tmp_path / "m")
    rewrite(memory, DOG, "# Rex\n", f"# Rex\n- <seq=30,source=AI,origin={LISBON}> The rent is paid.\n")
    rewrite(memory, DOG, "# Rex\n", "# Rex\n- <seq=31,source=AI,origin=30> So no dunning letter comes.\n")
    assert [one for one in flags(memory) if one[0] == DOG] == [
        (DOG, 30, LISBON, PORTO, ""),
        (DOG, 31, LISBON, PORTO, ""),
    ]


def test_what_superseded_it_does_not_lean_on_it(tmp_path: Path) -> None:
    memory = filled(tmp_path / "m")
    rewrite(memory, HOME, "origin=3", f"origin=3+{LISBON}")
    assert PORTO not in [one[1] for one in flags(memory)]


def test_a_summary_that_describes_it(tmp_path: Path) -> None:
    memory = filled(tmp_path / "m")
    rewrite(memory, DOG, "aux: {from: 8}", f"aux: {{from: {LISBON}+8}}")
    assert (DOG, None, LISBON, PORTO, "") in flags(memory)
    assert any("the summary describes line 5" in finding.what for finding in memory.doctor())
    rewrite(memory, DOG, f"aux: {{from: {LISBON}+8}}", "aux: {from: 8-}")
    assert DOG not in [one[0] for one in flags(memory)]


def test_a_duplicate_misleads_nobody(tmp_path: Path) -> None:
    memory = filled(tmp_path / "m")
    memory.undo()
    again = said(memory, "I live in Lisbon.", "s9", "2025-03-04")
    apply(memory, Move(again, HOME, "", "duplicate", LISBON))
    assert memory.view.entry(again).doc_id.startswith("archive/")  # type: ignore[union-attr]
    rewrite(memory, DOG, "# Rex\n", f"# Rex\n- <seq=30,source=AI,origin={again}> The rent is paid.\n")
    assert flags(memory) == []


def test_a_summary_that_was_not_written_anew_still_names_what_it_describes(tmp_path: Path) -> None:
    memory = filled(tmp_path / "m")
    memory.undo()
    rewrite(memory, HOME, "summary: home", "summary: Nora lives in Lisbon")
    apply(memory, Move(LISBON, HOME, "", "superseded", PORTO))
    assert (HOME, None, LISBON, PORTO, "") in flags(memory)
    apply(memory, moved(FLAT), derived=(Derived(HOME, "Nora moved to Porto", (FLAT, PORTO)),))
    assert (HOME, None, LISBON, PORTO, "") not in flags(memory)
