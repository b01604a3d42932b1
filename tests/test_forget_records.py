"""What a forget takes of records, and that no byte of it is left."""

from __future__ import annotations

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
    consolidated,
    doc,
    put,
    quoted,
    unit,
    written,
)
from forget_library import held

from infinimem.memory import Memory
from infinimem.model import Put
from infinimem.operations.doctor import examine
from infinimem.operations.forget.forget import Forgotten
from infinimem.strategies.allmem.consolidate import BUFFER, buffered
from infinimem.strategies.records.record import Link, record_id
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
    assert done.receipt.notes == (f"records deleted, with all links to them: {doc(NUTS)}",)
    assert (doc(NUTS), "-") in {(name, now) for name, _, now in done.receipt.files}
    assert held(["pistachios are dangerous", "pistachios"], memory.library.root) == {}
    left = RecordStore.load(memory.view)
    assert set(left.records) == set(bank.records) - {record_id("u", NUTS)}
    assert left.unread == {} and all(link.to in left for one in left.records.values() for link in one.links)
    assert left.links(record_id("u", PORTO)) == (Link("version", record_id("u", LISBON)),)
    assert AUDIT in memory.view
    assert memory.view.uncited() == ()


def test_the_buffer_loses_its_lines(tmp_path: Path) -> None:
    memory = written(tmp_path / "m")
    forget(memory, NUTS)
    assert [*buffered(memory.view)] == [
        record_id("u", LISBON),
        record_id("u", PORTO),
        record_id("u", REX),
    ]
    assert record_id("u", NUTS) not in memory.view.document(BUFFER).body
    assert [tuple(near) for near in buffered(memory.view).values()] == [
        (),
        (record_id("u", LISBON),),
        (record_id("u", LISBON), record_id("u", PORTO)),
    ]


def test_what_was_described_with_it_goes_and_is_made_anew(memory: Memory) -> None:
    """The unit of Porto was told of Lisbon: its turn stays, and is pending again. So is the audit."""
    done = forget(memory, LISBON)
    assert set(done.records) == {doc(LISBON, archived=True), doc(PORTO), AUDIT}
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
    assert RecordStore.load(memory.view).unread == {}


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
        assert not RecordStore.load(past).unread
    first = memory.at("journal/0001-write").view
    assert {doc(LISBON), doc(PORTO), doc(REX)} <= set(first.ids("all"))
    assert first.document(doc(LISBON)).summary == "home is Lisbon"


def test_of_a_turn_that_stays_all_records_go_or_none(memory: Memory) -> None:
    """Else the turn would count as held, and a part of it never be told again."""
    applied(memory, Put(doc(REX), None), put(unit(REX, archived=True)))
    parts = [unit(REX, 1, summary="Rex eats pistachios"), unit(REX, 2)]
    applied(memory, *(put(part, Link("version", record_id("u", REX)), quotes=quoted(REX)) for part in parts))
    done = memory.forget(match="pistachios")
    assert set(done.records) == {doc(NUTS), doc(REX, archived=True), doc(REX, 1), doc(REX, 2)}
    assert [place.seq for place in memory.view.uncited()] == [REX]
