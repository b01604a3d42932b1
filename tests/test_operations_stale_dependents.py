"""What leans on a superseded fact is flagged, and nothing else is; nothing is changed."""

from __future__ import annotations

import shutil
from pathlib import Path

from history_library import DOG, LISBON, PORTO, filled, rewrite

from infinimem.memory import Memory
from infinimem.operations.status import stale_dependents


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


def test_an_entry_that_was_drawn_from_it_leans_whatever_it_says(tmp_path: Path) -> None:
    memory = filled(tmp_path / "m")
    rewrite(memory, DOG, "# Rex\n", f"# Rex\n- <seq=30,source=AI,origin={LISBON}> The rent is paid.\n")
    rewrite(memory, DOG, "# Rex\n", "# Rex\n- <seq=31,source=AI,origin=30> So no dunning letter comes.\n")
    assert [one for one in flags(memory) if one[0] == DOG] == [
        (DOG, 30, LISBON, PORTO),
        (DOG, 31, LISBON, PORTO),
    ]


def test_a_summary_that_describes_it(tmp_path: Path) -> None:
    memory = filled(tmp_path / "m")
    rewrite(memory, DOG, "aux: {from: 8}", f"aux: {{from: {LISBON}+8}}")
    assert (DOG, None, LISBON, PORTO) in flags(memory)
    assert any("the summary describes line 5" in finding.what for finding in memory.doctor())
    rewrite(memory, DOG, f"aux: {{from: {LISBON}+8}}", "aux: {from: 8-}")
    assert DOG not in [one[0] for one in flags(memory)]
