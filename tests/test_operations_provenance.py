"""history and blame: every line leads to its turn, through moves, edits, copies, and with records lost."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from history_library import DOG, FLAT, HOME, LISBON, PORTO, REX, TALK, apply, filled, moved, rewrite
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from infinimem.memory import Memory, open_memory
from infinimem.model import Turn
from infinimem.operations.history import Event
from infinimem.operations.provenance import recorded


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return filled(tmp_path / "m")


def kinds(memory: Memory, seq: int) -> list[tuple[str, int, str]]:
    """What happened, to which line, and why or where."""
    return [(event.event, event.seq, event.why or event.where) for event in memory.history(seq)]


def where(memory: Memory, seq: int) -> str:
    place = memory.view.entry(seq)
    assert place is not None
    return f"{place.doc_id}:{place.start_line}"


def last(memory: Memory, seq: int) -> Event:
    return next(event for event in memory.history(seq) if event.event == "now")


# ── history ─────────────────────────────────────────────────────────────────────────────────────


def test_a_story_goes_from_the_turn_to_where_the_line_is(memory: Memory) -> None:
    assert kinds(memory, PORTO) == [
        ("said", 3, "evidence/2025-06-01-s2:8"),
        ("drawn", PORTO, "CURRENT"),
        ("receipt", PORTO, "moved"),
        ("now", PORTO, where(memory, PORTO)),
    ]
    said, drawn, receipt, now = memory.history(PORTO)
    assert (said.speaker, said.session, said.turn, said.time, said.source) == (
        "Nora", "s2", "D2:1", "2025-06-01", "user",
    )  # fmt: skip
    assert (said.text, drawn.text, now.text) == (TALK[2].text,) * 3
    assert drawn.origin == (3,)
    assert (receipt.receipt, receipt.was, receipt.now) == (memory.receipts()[0].id, "CURRENT", HOME)
    assert receipt.time == memory.receipts()[0].time
    lines = (memory.library.root / f"{HOME}.md").read_text().splitlines()
    assert TALK[2].text in lines[int(now.where.rpartition(":")[2]) - 1]


def test_an_edit_shows_the_words_before(memory: Memory) -> None:
    rewrite(memory, DOG, "called Rex", "called Max")
    memory.library.adopt_edits()
    edited = next(event for event in memory.history(REX) if event.why == "edited")
    assert edited.text == TALK[3].text
    drawn = next(event for event in memory.history(REX) if event.event == "drawn")
    assert (drawn.text, last(memory, REX).text) == (TALK[3].text, "My dog is called Max.")
    assert memory.history(REX)[0].event == "said"


def test_what_a_person_deleted_still_leads_to_its_turn(memory: Memory) -> None:
    path = memory.library.root / f"{DOG}.md"
    path.write_text("".join(line for line in path.read_text().splitlines(True) if "Rex." not in line))
    memory.library.adopt_edits()
    assert memory.view.entry(REX) is None
    assert kinds(memory, REX) == [
        ("said", 4, where(memory, 4)),
        ("drawn", REX, "CURRENT"),
        ("receipt", REX, "moved"),
        ("receipt", REX, "deleted"),
        ("now", REX, "deleted"),
    ]


# ── with records lost ───────────────────────────────────────────────────────────────────────────


def test_without_machine_state_nothing_is_lost(memory: Memory) -> None:
    before = {seq: memory.history(seq) for seq in range(1, 9)}
    blamed = {doc_id: memory.blame(doc_id) for doc_id in memory.view.ids("all")}
    shutil.rmtree(memory.library.root / ".infinimem")
    again = open_memory(memory.library.root, model="offline")
    assert {seq: again.history(seq) for seq in range(1, 9)} == before
    assert {doc_id: again.blame(doc_id) for doc_id in again.view.ids("all")} == blamed


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    at=st.integers(0, 3000), junk=st.sampled_from([b"", b"| x |", b"\x00\xff", b"\n```\n", b"@@ -1 +1 @@\n"])
)
def test_a_damaged_receipt_stops_nothing(memory: Memory, at: int, junk: bytes) -> None:
    for path in sorted((memory.library.root / "journal").iterdir()):
        data = path.read_bytes()
        cut = at % len(data)
        path.write_bytes(data[:cut] + junk + data[cut + 7 :])
        try:
            for doc_id in memory.view.ids("all"):
                memory.blame(doc_id)
            for seq in range(1, 9):
                assert any(event.event == "said" for event in memory.history(seq))
        finally:
            path.write_bytes(data)


# ── blame ───────────────────────────────────────────────────────────────────────────────────────


def test_blame_tells_entries_from_derived_lines_from_a_persons(memory: Memory) -> None:
    rewrite(memory, HOME, "# Home\n", "# Home\nThe view is fine.\n- a balcony\n")
    found = memory.blame("home")
    lines = (memory.library.root / f"{HOME}.md").read_text().split("\n")[:-1]
    assert [(one.line, one.text) for one in found] == list(enumerate(lines, 1))
    by_text = {one.text: one for one in found}
    assert by_text["The view is fine."].kind == by_text["- a balcony"].kind == "person"
    assert by_text["# Home"].kind == "derived"
    porto = next(one for one in found if one.seq == PORTO)
    assert (porto.kind, porto.receipt, porto.why) == ("entry", memory.receipts()[0].id, "moved")
    assert [(turn.seq, turn.turn, turn.where) for turn in porto.turns] == [
        (3, "D2:1", "evidence/2025-06-01-s2:8")
    ]
    assert memory.blame(HOME, porto.line) == (porto,)


def test_a_renamed_document_keeps_its_receipts(memory: Memory) -> None:
    (memory.library.root / f"{DOG}.md").rename(memory.library.root / "topics/rex.md")
    apply(memory, moved(FLAT, HOME, "Flat"))
    entry = next(one for one in memory.blame("topics/rex") if one.seq == REX)
    assert entry.receipt == memory.receipts()[0].id


def test_a_doubled_seq_leads_each_line_to_its_own_turn(memory: Memory) -> None:
    """As after a git merge, before anyone settled it."""
    rewrite(
        memory,
        DOG,
        "# Rex\n",
        f"# Rex\n- <seq={PORTO},source=user,origin=2> I rent a flat near Lisbon castle.\n",
    )
    other = next(one for one in memory.blame(DOG) if one.seq == PORTO)
    assert [turn.seq for turn in other.turns] == [2]


# ── a real conversation ─────────────────────────────────────────────────────────────────────────


# ── what leans on a superseded line ─────────────────────────────────────────────────────────────


def flags(memory: Memory) -> list[tuple[str, int | None, int, int]]:
    found = recorded(memory.view).stale()
    return [(one.where.partition(":")[0], one.seq, one.on, one.by) for one in found]


def test_an_entry_that_was_drawn_from_a_superseded_line(memory: Memory) -> None:
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


def test_nothing_leans_where_nothing_is_superseded(memory: Memory) -> None:
    rewrite(memory, DOG, "# Rex\n", f"# Rex\n- <seq=30,source=AI,origin={LISBON}> The rent is paid.\n")
    memory.undo()
    assert flags(memory) == []
    assert memory.status()["based_on_superseded"] == 0


def test_an_entry_that_was_drawn_from_it_leans_whatever_it_says(memory: Memory) -> None:
    rewrite(memory, DOG, "# Rex\n", f"# Rex\n- <seq=30,source=AI,origin={LISBON}> The rent is paid.\n")
    rewrite(memory, DOG, "# Rex\n", "# Rex\n- <seq=31,source=AI,origin=30> So no dunning letter comes.\n")
    assert [one for one in flags(memory) if one[0] == DOG] == [
        (DOG, 30, LISBON, PORTO),
        (DOG, 31, LISBON, PORTO),
    ]


def test_a_summary_that_describes_it(memory: Memory) -> None:
    rewrite(memory, DOG, "aux: {from: 8}", f"aux: {{from: {LISBON}+8}}")
    assert (DOG, None, LISBON, PORTO) in flags(memory)
    assert any("the summary describes line 5" in finding.what for finding in memory.doctor())
    rewrite(memory, DOG, f"aux: {{from: {LISBON}+8}}", "aux: {from: 8-}")
    assert DOG not in [one[0] for one in flags(memory)]


def test_what_is_told_is_the_same_whether_rows_grew_with_the_library_or_were_made_at_once(
    memory: Memory, tmp_path: Path
) -> None:
    def told(of: Memory) -> tuple[object, ...]:
        seqs = range(1, of.view.max_seq + 1)
        return (
            [of.history(seq) for seq in seqs],
            [of.blame(doc_id) for doc_id in of.view.ids("all")],
            of.status()["based_on_superseded"],
        )

    for number in range(4):
        told(memory)
        memory.observe([Turn(f"I keep {number} parrots in Porto.", speaker="Nora")])
        if number % 2:
            memory.consolidate()
        told(memory)
    memory.undo()
    shutil.copytree(memory.library.root, tmp_path / "copy")
    assert told(memory)[0] == told(open_memory(tmp_path / "copy"))[0]
    assert told(memory)[1:] == told(open_memory(tmp_path / "copy"))[1:]
