"""What leans on a superseded fact is flagged, and nothing else is; nothing is changed."""

from __future__ import annotations

import shutil
from pathlib import Path

from history_library import DOG, FLAT, HOME, LISBON, PORTO, apply, filled, moved, rewrite

from infinimem.memory import Memory
from infinimem.model import Derived, Move, NewEntry, Turn
from infinimem.operations.stale_dependents import stale_dependents


def flags(memory: Memory) -> list[tuple[str, int | None, int, int]]:
    found = stale_dependents(memory.view)
    return [(one.where.partition(":")[0], one.seq, one.on, one.by) for one in found]


def test_an_entry_that_was_drawn_from_a_superseded_line(tmp_path: Path) -> None:
    memory = filled(tmp_path / "m")
    assert flags(memory) == []
    rewrite(memory, DOG, "# Rex\n", f"# Rex\n- <seq=30,source=AI,origin={LISBON}> The rent is paid.\n")
    before = (memory.library.root / f"{DOG}.md").read_bytes()
    assert flags(memory) == [(DOG, 30, LISBON, PORTO)]
    assert memory.status()["based_on_superseded"] == 1
    (note,) = (finding for finding in memory.doctor() if "was drawn from" in finding.what)
    assert (note.level, note.where.partition(":")[0]) == ("note", DOG)
    assert f"was drawn from line {LISBON}, which line {PORTO} superseded" in note.what
    assert (memory.library.root / f"{DOG}.md").read_bytes() == before
    for folder in ("journal", ".infinimem"):  # neither receipts nor machine state are needed
        shutil.rmtree(memory.library.root / folder)
    assert flags(memory) == [(DOG, 30, LISBON, PORTO)]


def test_nothing_leans_where_nothing_is_superseded(tmp_path: Path) -> None:
    memory = filled(tmp_path / "m")
    rewrite(memory, DOG, "# Rex\n", f"# Rex\n- <seq=30,source=AI,origin={LISBON}> The rent is paid.\n")
    memory.undo()
    assert flags(memory) == []
    assert memory.status()["based_on_superseded"] == 0


def said(memory: Memory, text: str, session: str, time: str) -> int:
    """A turn and an entry of the same words in topics/home; its seq."""
    (turn,) = memory.library.record([Turn(text, speaker="Nora", time=time, session=session)])
    apply(memory, op="append", adds=(NewEntry(text, (turn.seq,)),))
    seq = memory.view.max_seq
    apply(memory, moved(seq))
    return seq


def test_an_entry_that_was_drawn_from_it_leans_whatever_it_says(tmp_path: Path) -> None:
    memory = filled(tmp_path / "m")
    rewrite(memory, DOG, "# Rex\n", f"# Rex\n- <seq=30,source=AI,origin={LISBON}> The rent is paid.\n")
    rewrite(memory, DOG, "# Rex\n", "# Rex\n- <seq=31,source=AI,origin=30> So no dunning letter comes.\n")
    assert [one for one in flags(memory) if one[0] == DOG] == [
        (DOG, 30, LISBON, PORTO),
        (DOG, 31, LISBON, PORTO),
    ]


def test_what_superseded_it_does_not_lean_on_it(tmp_path: Path) -> None:
    memory = filled(tmp_path / "m")
    rewrite(memory, HOME, "origin=3", f"origin=3+{LISBON}")
    assert PORTO not in [one[1] for one in flags(memory)]


def test_a_summary_that_describes_it(tmp_path: Path) -> None:
    memory = filled(tmp_path / "m")
    rewrite(memory, DOG, "aux: {from: 8}", f"aux: {{from: {LISBON}+8}}")
    assert (DOG, None, LISBON, PORTO) in flags(memory)
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
    assert (HOME, None, LISBON, PORTO) in flags(memory)
    apply(memory, moved(FLAT), derived=(Derived(HOME, "Nora moved to Porto", (FLAT, PORTO)),))
    assert (HOME, None, LISBON, PORTO) not in flags(memory)
