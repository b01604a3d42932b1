"""What a forget takes of records, and that no byte of it is left."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from allmem_records import (
    AUDIT,
    LISBON,
    NUTS,
    PORTO,
    REX,
    TALK,
    applied,
    buffer,
    consolidated,
    doc,
    put,
    quoted,
    tree,
    unit,
    written,
)
from forget_library import held

from infinimem.memory import Memory, open_memory
from infinimem.model import Put, Turn
from infinimem.operations.doctor.examine import examine
from infinimem.operations.forget.forget import Forgotten
from infinimem.strategies.allmem.spec import SPEC as ALLMEM
from infinimem.strategies.allmem.write import BUFFER, buffered
from infinimem.strategies.graph.links import Link
from infinimem.strategies.records.codec import render, rows_of
from infinimem.strategies.records.record import Quote, Record, Ref, record_id
from infinimem.strategies.records.record_store import RecordStore


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return consolidated(tmp_path / "m")


def forget(memory: Memory, *seqs: int) -> Forgotten:
    """Forget them, and see that nothing is left, and that the library is in order."""
    preview = memory.forget(seqs, dry_run=True)
    done = memory.forget(seqs)
    assert done.receipt
    assert (done.left, preview.left) == ((), ())
    assert preview.records == done.records
    assert held([TALK[seq - 1].text for seq in seqs], memory.library.root) == {}
    assert examine(memory.library) == []
    return done


def names(memory: Memory) -> set[str]:
    return {name for name in memory.view.ids("all") if name.startswith("allmem/")}


def test_a_unit_goes_with_its_turn(memory: Memory) -> None:
    bank = RecordStore.load(memory.view)
    done = forget(memory, NUTS)
    assert done.records == (doc(NUTS),)
    assert done.receipt
    assert done.receipt.notes == (f"records deleted, with all links to them: {record_id('u', NUTS)}",)
    assert (doc(NUTS), "-") in {(name, now) for name, _, now in done.receipt.files}
    assert held(["pistachios are dangerous", "pistachios"], memory.library.root) == {}
    left = RecordStore.load(memory.view)
    assert set(left.records) == set(bank.records) - {record_id("u", NUTS)}
    assert (left.findings, left.lost) == ((), {})
    assert left.graph.links(record_id("u", PORTO)) == (Link("version", record_id("u", LISBON)),)
    assert AUDIT in memory.view
    assert memory.view.uncited() == ()


def test_a_unit_with_no_link_left_reads_as_before(tmp_path: Path) -> None:
    memory = written(tmp_path / "m")
    forget(memory, LISBON)
    assert b"links:" not in memory.view.document(doc(NUTS)).to_bytes()
    left = RecordStore.load(memory.view)
    assert (left.findings, left.lost) == ((), {})
    assert record_id("u", NUTS) in left


def test_the_buffer_loses_its_lines(tmp_path: Path) -> None:
    memory = written(tmp_path / "m")
    forget(memory, NUTS)
    rows = rows_of(memory.view.document(BUFFER))
    assert [row["unit"] for row in rows] == [
        record_id("u", LISBON),
        record_id("u", PORTO),
        record_id("u", REX),
    ]
    assert record_id("u", NUTS) not in json.dumps(rows)
    assert [one.near for one in buffered(memory.view)] == [
        (),
        (record_id("u", LISBON),),
        (record_id("u", LISBON), record_id("u", PORTO)),
    ]


def test_what_was_described_with_it_goes_and_is_made_anew(memory: Memory) -> None:
    """The unit of Porto was told of Lisbon: its turn stays, and is pending again. So is the audit."""
    done = forget(memory, LISBON)
    assert set(done.records) == {doc(LISBON, archived=True), doc(PORTO), AUDIT}
    assert done.receipt
    assert done.receipt.notes[-1] == f"deleted whole, for they told of it: {AUDIT}"
    assert [place.seq for place in memory.view.uncited()] == [PORTO]
    memory.observe([])
    assert doc(PORTO) in memory.view
    assert memory.view.uncited() == ()


def test_a_representative_goes_with_all_that_it_stood_for(memory: Memory) -> None:
    rep = unit(REX, 1, sources=(record_id("u", REX), record_id("u", NUTS)), summary="a dog, and a household")
    over = unit(REX, 2, sources=(record_id("u", REX, 1),), summary="a household")
    applied(
        memory,
        Put(doc(REX), None),
        put(unit(REX, archived=True)),
        Put(doc(NUTS), None),
        put(unit(NUTS, archived=True)),
        put(
            replace(rep, visible=False),
            Link("version", record_id("u", NUTS)),
            Link("version", record_id("u", REX)),
            quotes=quoted(NUTS, REX),
        ),
        put(over, Link("version", record_id("u", REX, 1)), quotes=quoted(NUTS, REX)),
        put(unit(PORTO), Link("version", record_id("u", LISBON))),
    )
    done = forget(memory, NUTS)
    assert {doc(NUTS, archived=True), doc(REX, 1, archived=True), doc(REX, 2)} <= set(done.records)
    assert doc(REX, archived=True) in done.records, "nothing led to it any more"
    assert REX in [place.seq for place in memory.view.uncited()], "and its turn is described anew"
    assert doc(LISBON, archived=True) in memory.view, "the unit of Porto still leads there"
    assert RecordStore.load(memory.view).findings == ()


def test_a_record_that_tells_of_it_goes(memory: Memory) -> None:
    applied(
        memory, put(unit(REX, summary="a dog that eats pistachios"), Link("temporal", record_id("u", PORTO)))
    )
    applied(memory, put(unit(REX, summary="a dog"), Link("temporal", record_id("u", PORTO))))
    applied(
        memory, put(unit(PORTO, summary="pistachios grow in Porto"), Link("version", record_id("u", LISBON)))
    )
    (memory.library.root / f"{doc(9)}.md").write_text("I am allergic to pistachios.\n")
    done = memory.forget(match="pistachios")
    assert set(done.records) == {doc(NUTS), doc(PORTO), doc(9), doc(LISBON, archived=True), AUDIT}
    assert held(["pistachios"], memory.library.root) == {}
    assert [place.seq for place in memory.view.uncited()] == [LISBON, PORTO]
    assert memory.view.document(doc(REX)).summary == "a dog"


def test_what_another_turn_says_in_its_own_right_stays(memory: Memory) -> None:
    memory.library.record([Turn("I say it again:\nI am allergic to pistachios. Really.", session="s3")])
    said = Quote(Ref(5), None, None, "I say it again:\nI am allergic to pistachios. Really.")
    summary = "I am allergic to pistachios. Really."
    applied(
        memory,
        Put(doc(5), render(Record(record_id("u", 5), ALLMEM, summary, refs=(Ref(5),)), (), [said]), (5,)),
    )
    applied(memory, put(unit(REX, summary=f"he says: {summary}")))
    applied(memory, put(unit(REX)))
    done = memory.forget([NUTS])
    assert (done.left, done.repeated) == ((), (5,))
    assert done.records == (doc(NUTS),)
    assert doc(5) in memory.view


def test_no_receipt_leads_back_to_it(memory: Memory) -> None:
    """Rewritten, moved, deleted, rebuilt: whatever receipts quoted of the unit is nowhere."""
    applied(memory, put(unit(NUTS, summary="beware of pistachios"), Link("temporal", record_id("u", LISBON))))
    applied(
        memory, Put(doc(NUTS), None), put(unit(NUTS, archived=True), Link("temporal", record_id("u", LISBON)))
    )
    applied(
        memory, Put(doc(NUTS, archived=True), None), put(unit(NUTS, 1, summary="kernels kill"), quotes=[])
    )
    applied(memory, Put(doc(NUTS, 1), None))
    applied(memory, put(unit(NUTS)))
    forget(memory, NUTS)
    assert held(["pistachios", "beware", "kernels kill"], memory.library.root) == {}
    for receipt in memory.receipts():
        past = memory.at(receipt.id).view
        assert doc(NUTS) not in past
        assert doc(NUTS, archived=True) not in past
        assert not RecordStore.load(past).findings
    first = memory.at("journal/0001-write").view
    assert {doc(LISBON), doc(PORTO), doc(REX)} <= set(first.ids("all"))
    assert first.document(doc(LISBON)).summary == "home is Lisbon"


def test_people_and_the_other_strategy_may_forget_as_well(memory: Memory) -> None:
    """Whoever opened the library: all records are looked at, and all lines."""
    other = open_memory(memory.library.root, model="offline", strategy="infini")
    other.observe([])
    assert [place.entry.origin for place in other.view.entries()]
    topics = memory.library.root / "topics/mine.md"
    topics.parent.mkdir()
    topics.write_text("- my pistachios\n")
    memory.forget(match="pistachios")
    assert held(["pistachios"], memory.library.root) == {}
    assert doc(NUTS) not in memory.view
    assert [place for place in other.view.entries() if NUTS in place.entry.origin] == []


def test_of_a_turn_that_stays_all_records_go_or_none(memory: Memory) -> None:
    """Else the turn would count as held, and a part of it never be told again."""
    applied(memory, Put(doc(REX), None), put(unit(REX, archived=True)))
    parts = [unit(REX, 1, summary="Rex eats pistachios"), unit(REX, 2)]
    applied(memory, *(put(part, Link("version", record_id("u", REX)), quotes=quoted(REX)) for part in parts))
    done = memory.forget(match="pistachios")
    assert set(done.records) == {doc(NUTS), doc(REX, archived=True), doc(REX, 1), doc(REX, 2)}
    assert [place.seq for place in memory.view.uncited()] == [REX]


def test_git_is_told_of_the_files_that_held_it(memory: Memory) -> None:
    root = memory.library.root
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    told = memory.forget([NUTS], dry_run=True).history
    assert f"--path {doc(NUTS)}.md" in told
    assert f"--path {doc(PORTO)}.md" not in told


def test_a_note_of_a_person_stays_and_is_named(memory: Memory) -> None:
    (memory.library.root / "notes.md").write_text("I am allergic to pistachios. See [[u-000002]].\n")
    done = memory.forget([NUTS])
    assert [(left.path, left.why) for left in done.left] == [("notes.md", "a person's note: edit it")]


def test_forgetting_all_leaves_no_record(memory: Memory) -> None:
    applied(memory, buffer(PORTO, REX))
    forget(memory, *range(1, 5))
    assert {name.split("/")[1] for name in names(memory)} <= {"buffer"}
    assert "u-" not in json.dumps(rows_of(memory.view.document(BUFFER)))
    assert tree(memory.library.root, "evidence") == {}
