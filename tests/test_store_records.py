"""Records in a library: applied, refused, taken back, seen, blamed, checked."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from allmem_records import (
    AUDIT,
    LISBON,
    NUTS,
    PORTO,
    REX,
    applied,
    buffer,
    consolidated,
    doc,
    outcome_of,
    put,
    quoted,
    tree,
    unit,
    written,
)
from fault_disk import Crash, die, hooked, nothing

from infinimem.errors import LibraryError
from infinimem.markdown.document import Document
from infinimem.memory import Memory, open_memory
from infinimem.model import Move, NewEntry, Plan, Put, Reason, Turn
from infinimem.operations.doctor.examine import examine
from infinimem.store.files import Files, digest
from infinimem.store.library import Library
from infinimem.store.outcome import Applied, Rejected
from infinimem.store.records import evidence_of, sources_of
from infinimem.store.sources import only
from infinimem.strategies.allmem.spec import SPEC as ALLMEM
from infinimem.strategies.graph.links import Link
from infinimem.strategies.records.codec import render
from infinimem.strategies.records.record import Quote, Record, Ref, record_id


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return consolidated(tmp_path / "m")


def root(memory: Memory) -> Path:
    return memory.library.root


# ── applying ────────────────────────────────────────────────────────────────────────────────────


def test_records_are_written_moved_and_replaced(tmp_path: Path) -> None:
    memory = written(tmp_path / "m")
    assert sorted(tree(root(memory), "allmem")) == [
        "allmem/buffer.md",
        *(f"allmem/units/{record_id('u', seq)}.md" for seq in range(1, 5)),
    ]
    before = memory.view.document(doc(LISBON)).to_bytes()
    receipt = applied(
        memory, Put(doc(LISBON), None), put(unit(LISBON, archived=True)), put(unit(REX, summary="a dog, Rex"))
    )
    assert doc(LISBON) not in memory.view
    moved = memory.view.document(doc(LISBON, archived=True)).to_bytes()
    assert moved == before.replace(b"allmem/units", b"allmem/archive")
    assert memory.view.document(doc(REX)).summary == "a dog, Rex"
    assert {(name, old == "-", new == "-") for name, old, new in receipt.files} == {
        (doc(LISBON), False, True),
        (doc(LISBON, archived=True), True, False),
        (doc(REX), False, False),
    }
    assert memory.library.receipts()[-1] == receipt


def test_what_stays_as_it_is_is_no_change(tmp_path: Path) -> None:
    memory = written(tmp_path / "m")
    receipt = applied(memory, put(unit(LISBON)), Put(doc(REX, 1), None), put(unit(REX, summary="Rex")))
    assert [name for name, _, _ in receipt.files] == [doc(REX)]


def reasons(outcome: object) -> list[tuple[str, str]]:
    assert isinstance(outcome, Rejected)
    return [(reason.code, reason.detail) for reason in outcome.reasons if isinstance(reason, Reason)]


def test_a_record_that_a_person_saved_meanwhile_is_not_overwritten(memory: Memory) -> None:
    base, path = memory.view, root(memory) / f"{doc(REX)}.md"
    base.document(doc(REX))
    path.write_text(path.read_text().replace("a dog", "my dog"))
    plan = Plan("consolidate", records=(put(unit(REX)), put(unit(NUTS, summary="nuts"))))
    before = tree(root(memory))
    assert reasons(memory.library.apply(plan, base=base)) == [("STALE_RECORD", doc(REX))]
    assert tree(root(memory)) == before
    (root(memory) / f"{doc(NUTS, 1)}.md").write_text("mine\n")
    plan = Plan("consolidate", records=(put(unit(NUTS, 1)),))
    assert reasons(memory.library.apply(plan, base=base)) == [("STALE_RECORD", doc(NUTS, 1))]


def test_records_stay_in_their_folder_and_name_turns_that_are_there(memory: Memory) -> None:
    assert reasons(outcome_of(memory, Put("topics/x", "x\n"))) == [("FOREIGN_RECORD", "topics/x")]
    assert reasons(outcome_of(memory, Put("allmem/../x", "x\n"))) == [("FOREIGN_RECORD", "allmem/../x")]
    assert reasons(outcome_of(memory, Put(doc(NUTS, 7), "x\n", (99,)))) == [("UNKNOWN_SEQ", doc(NUTS, 7))]
    infini = Library(root(memory), strategy="infini")
    outcome = infini.apply(Plan("consolidate", records=(put(unit(NUTS, summary="x")),)))
    assert reasons(outcome) == [("FOREIGN_RECORD", doc(NUTS))]


def test_what_looks_like_a_line_in_a_record_is_none(memory: Memory) -> None:
    """A person typed it into a unit: no entry, nothing to sign, nothing in the way of the next plan."""
    path = root(memory) / f"{doc(REX)}.md"
    path.write_text(path.read_text() + "- <seq=900,source=user> Not a line\n- nor this\n")
    assert memory.view.entry(900) is None
    assert memory.library.unsigned() == 0
    assert memory.library.adopt_edits() is None
    typed = path.read_bytes()
    applied(memory, put(unit(REX, summary="Rex")))
    memory.undo()
    assert path.read_bytes() == typed


@pytest.mark.parametrize(
    ("when", "step"),
    [("before", 8), *(pytest.param(w, 1, marks=pytest.mark.soak) for w in ("before", "half"))],
)
def test_killed_anywhere_a_plan_of_records_is_done_whole_or_not_at_all(
    when: str, step: int, tmp_path: Path
) -> None:
    written(tmp_path / "first")
    consolidated(tmp_path / "whole")
    states = [tree(tmp_path / name, "allmem") for name in ("first", "whole")]

    def work(number: int) -> list[str]:
        shutil.rmtree(tmp_path / "m", ignore_errors=True)
        shutil.copytree(tmp_path / "first", tmp_path / "m")
        memory = open_memory(tmp_path / "m", model="offline", strategy="allmem")
        records = [
            put(unit(PORTO), Link("temporal", record_id("u", NUTS)), Link("version", record_id("u", LISBON))),
            Put(doc(LISBON), None),
            put(unit(LISBON, archived=True)),
            buffer(),
            Put(AUDIT, (tmp_path / "whole" / f"{AUDIT}.md").read_text()),
        ]
        hook = die(number, when) if number else nothing  # type: ignore[arg-type]
        with hooked(hook) as calls, suppress(Crash):
            applied(memory, *records)
        return calls

    seen = set()
    for number in range(1, len(work(0)) + 1, step):
        work(number)
        opened = Library(tmp_path / "m", strategy="allmem")
        with opened.locked():
            pass
        state = tree(tmp_path / "m", "allmem")
        assert state in states, f"{when} call {number}"
        assert not [item for item in examine(opened) if item.level == "error"]
        seen.add(states.index(state))
    assert seen == {0, 1}


def test_what_a_person_saves_while_records_are_put_in_place_stays(tmp_path: Path) -> None:
    memory = written(tmp_path / "m")
    path, data = root(memory) / f"{doc(REX)}.md", b"mine, saved in between\n"
    plain, saved = Files.exchange, []

    def exchange(files: Files, slot: str, name: str) -> bool:
        if name == f"{doc(REX)}.md" and not saved:
            saved.append(path.write_bytes(data))
        return plain(files, slot, name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Files, "exchange", exchange)
        receipt = applied(memory, put(unit(REX, summary="Rex")), put(unit(NUTS, summary="nuts")))
    assert path.read_bytes() == data
    assert memory.view.document(doc(NUTS)).summary == "nuts"
    assert receipt.notes == (f"{doc(REX)}.md was saved by someone meanwhile; that version stays",)
    assert {name: now for name, _, now in receipt.files}[doc(REX)] == digest(data)


# ── taking back ─────────────────────────────────────────────────────────────────────────────────


def test_undo_restores_every_byte_and_can_be_undone(tmp_path: Path) -> None:
    memory = written(tmp_path / "m")
    before = tree(root(memory))
    path = root(memory) / f"{doc(PORTO)}.md"
    again = consolidated(tmp_path / "other")
    applied(
        memory,
        *(Put(name.removesuffix(".md"), data.decode()) for name, data in tree(root(again), "allmem").items()),
        Put(doc(LISBON), None),
    )
    after = tree(root(memory))
    assert after != before
    memory.undo()
    assert tree(root(memory)) == before
    memory.undo()
    assert tree(root(memory)) == after
    assert path.exists()


def test_undo_leads_back_even_what_a_person_changed_before(tmp_path: Path) -> None:
    memory = written(tmp_path / "m")
    path = root(memory) / f"{doc(REX)}.md"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n") + b"no end")
    before = path.read_bytes()
    applied(memory, put(unit(REX, summary="Rex")))
    memory.undo()
    assert path.read_bytes() == before


def test_a_receipt_whose_records_changed_later_is_not_undone_alone(memory: Memory) -> None:
    with pytest.raises(LibraryError, match=r"0002-consolidate changed the same .* later"):
        memory.undo("1")
    memory.undo("1", together=True)
    assert tree(root(memory), "allmem") == {}


@pytest.mark.parametrize("name", [doc(PORTO), AUDIT], ids=["it changed that", "it made that"])
def test_a_record_that_a_person_changed_since_is_not_undone(memory: Memory, name: str) -> None:
    path = root(memory) / f"{name}.md"
    path.write_text(path.read_text() + "\nmine\n")
    before = tree(root(memory))
    with pytest.raises(LibraryError, match=f"{name} was changed by hand since"):
        memory.undo()
    assert tree(root(memory)) == before


def test_units_as_they_stood(memory: Memory) -> None:
    past = memory.at("journal/0001-write").view
    assert past.document(doc(LISBON)).to_bytes() == tree_of(memory, doc(LISBON, archived=True)).replace(
        b"allmem/archive", b"allmem/units"
    )
    assert doc(LISBON, archived=True) not in past
    assert past.ids() == tuple(doc(seq) for seq in range(1, 5))
    assert AUDIT not in past
    assert record_id("u", LISBON).encode() not in past.document(doc(PORTO)).to_bytes()
    nothing_yet = memory.at("2").view
    assert [name for name in nothing_yet.ids("all") if name.startswith("allmem/")] == []


def test_a_record_that_a_person_changed_since_is_shown_as_it_is(memory: Memory) -> None:
    (root(memory) / "allmem/buffer.md").write_text("mine\n")
    (root(memory) / f"{doc(PORTO)}.md").unlink()
    past = memory.at("journal/0001-write").view
    assert past.document("allmem/buffer").body == "mine"
    assert doc(PORTO) not in past
    assert doc(LISBON) in past


def tree_of(memory: Memory, doc_id: str) -> bytes:
    return (root(memory) / f"{doc_id}.md").read_bytes()


# ── who sees what ───────────────────────────────────────────────────────────────────────────────


def test_a_view_shows_what_its_keeper_holds(memory: Memory) -> None:
    (root(memory) / "notes.md").write_text("mine\n")
    view = memory.view
    assert view.ids() == (doc(NUTS), doc(PORTO), doc(REX), "notes")
    assert view.ids("archive") == (doc(LISBON, archived=True),)
    assert view.ids("evidence") == ("evidence/2025-03-03-s1", "evidence/2025-06-01-s2")
    assert "allmem/buffer" in view.ids("all")
    other = Library(root(memory), strategy="infini").view()
    assert other.ids() == ("notes",)
    assert other.ids("archive") == ()
    assert {doc(REX), AUDIT} <= set(other.ids("all"))


def test_turns_that_no_unit_holds_are_pending(memory: Memory) -> None:
    assert memory.view.uncited() == ()
    memory.library.record([Turn("Tea, please.", session="s3")])
    (root(memory) / f"{doc(REX)}.md").unlink()
    assert [place.seq for place in memory.view.uncited()] == [REX, 5]
    found = memory.view.document(doc(NUTS))
    path = root(memory) / f"{found.id}.md"
    path.write_text(path.read_text().replace("summary: ", "summary: [", 1))
    assert [place.seq for place in memory.view.uncited()] == [REX, 5]
    path.write_text(path.read_text().replace("  - {ref: 2}", "  - {ref: [}", 1))
    assert [place.seq for place in memory.view.uncited()] == [REX, 5]


def sources_left(memory: Memory, *sources: str) -> set[str]:
    return {name for name in only(memory.view, sources).ids("all") if name.startswith("allmem/")}


def test_records_count_as_from_what_is_behind_them(memory: Memory) -> None:
    both = unit(REX, 1, sources=(record_id("u", PORTO), record_id("u", REX)))
    lost = unit(REX, 2, sources=(record_id("u", PORTO), "u-000099"))
    applied(
        memory, put(both, quotes=quoted(PORTO, REX)), put(lost, quotes=[]), Put(doc(NUTS, 1), "no header\n")
    )
    of_user = {doc(LISBON, archived=True), doc(NUTS), doc(PORTO)}
    assert sources_left(memory, "user") == of_user
    assert sources_left(memory, "AI") == {doc(REX)}
    assert sources_left(memory, "user", "AI") == {*of_user, doc(REX), doc(REX, 1)}
    assert sources_left(memory, "human") == set()


def test_strategies_take_turns_in_one_library(memory: Memory) -> None:
    """What one does is nothing to the other: neither its lines nor what is known of them."""
    other = open_memory(root(memory), model="offline", strategy="infini")
    told = other.view.entry(LISBON)
    assert told
    plan = Plan(adds=(NewEntry(told.text, (LISBON,), "topics/home", "Home"),), op="consolidate")
    outcome = other.library.apply(plan)
    assert isinstance(outcome, Applied)
    line = outcome.added[0]
    known = dict(other.library.seen_lines())
    applied(memory, put(unit(REX, summary="Rex")))
    assert memory.library.adopt_edits() is None
    assert dict(memory.library.seen_lines()) == known
    path = root(memory) / "topics/home.md"
    path.write_text(path.read_text().replace("Lisbon", "Lisboa") + "- typed\n")
    assert memory.library.unsigned() == 1
    receipt = memory.library.adopt_edits()  # whoever looks
    assert receipt
    assert sorted(row.why for row in receipt.rows) == ["edited", "stamped"]
    memory.undo()
    assert "- typed\n" in path.read_text()
    assert (
        other.library.apply(Plan("consolidate", moves=(Move(line.seq, "topics/flat"),))).__class__ is Applied
    )
    memory.undo()
    entry = other.view.entry(line.seq)
    assert entry
    assert entry.doc_id == "topics/home"


# ── provenance ──────────────────────────────────────────────────────────────────────────────────


def quotes_of(memory: Memory, doc_id: str) -> list[tuple[str, list[int], str]]:
    return [
        (one.text, [turn.seq for turn in one.turns], one.receipt)
        for one in memory.blame(doc_id)
        if one.kind == "quoted"
    ]


def test_blame_leads_from_a_unit_to_the_turn_that_it_quotes(memory: Memory) -> None:
    write, merge = "journal/0001-write", "journal/0003-consolidate"
    assert quotes_of(memory, record_id("u", REX)) == [
        ("> assistant: My dog is called Rex.", [REX], write),
        ("> He is three.", [REX], write),
    ]
    both = unit(REX, 1, sources=(record_id("u", PORTO), record_id("u", REX)))
    applied(memory, put(both, quotes=quoted(PORTO, REX)))
    assert [row[1:] for row in quotes_of(memory, doc(REX, 1))] == [
        ([PORTO], merge),
        ([REX], merge),
        ([REX], merge),
    ]
    kinds = {one.text: (one.kind, one.receipt) for one in memory.blame(doc(PORTO))}
    assert kinds["kind: unit"] == ("derived", write)
    assert kinds[f"  - {{type: version, to: {record_id('u', LISBON)}}}"] == (
        "derived",
        "journal/0002-consolidate",
    )
    path = root(memory) / f"{doc(PORTO)}.md"
    path.write_text(path.read_text() + "> I like it here.\n")
    assert memory.blame(doc(PORTO))[-1].kind == "person"


def test_blame_leads_from_a_quotation_that_was_cut_to_its_turn(memory: Memory) -> None:
    said = "I planted tomatoes. " * 300
    (turn,) = memory.library.record([Turn(said, speaker="Nora")])
    one = Record(record_id("u", turn.seq), ALLMEM, "tomatoes", ("garden",), None, None, (Ref(turn.seq),))
    applied(memory, put(one, quotes=[Quote(Ref(turn.seq), "Nora", None, said)], new=True))
    ((text, turns, _),) = quotes_of(memory, one.doc_id)
    assert text.endswith("…") and len(text) < len(said)
    assert turns == [turn.seq]


def test_history_of_a_turn_names_the_units_that_hold_it(memory: Memory) -> None:
    applied(
        memory,
        put(unit(REX, 1, sources=(record_id("u", LISBON), record_id("u", REX))), quotes=quoted(LISBON, REX)),
    )

    def holding(seq: int) -> list[tuple[str, str]]:
        return [(event.where, event.why) for event in memory.history(seq) if event.event == "held"]

    assert holding(LISBON) == [(doc(LISBON, archived=True), "archived"), (doc(REX, 1), "")]
    assert holding(REX) == [(doc(REX), ""), (doc(REX, 1), "")]
    assert holding(NUTS) == [(doc(NUTS), "")]


# ── health ──────────────────────────────────────────────────────────────────────────────────────


def findings(memory: Memory) -> list[tuple[str, str]]:
    return [(item.what, item.where) for item in examine(memory.library)]


def test_nothing_is_wrong_with_a_healthy_library(memory: Memory) -> None:
    text = "- see [[nowhere]] and [that](gone.md)\n<<<<<<< HEAD"
    memory.library.record([Turn(text, session="s4")])
    said = Quote(Ref(5), None, None, text)
    applied(
        memory,
        Put(doc(5), render(Record(record_id("u", 5), ALLMEM, "links", refs=(Ref(5),)), (), [said]), (5,)),
    )
    (root(memory) / "notes.md").write_text(
        "see [[u-000004]], [[u-000001]] and [it](allmem/units/u-000004.md)\n"
    )
    for opened in (memory, open_memory(root(memory), model="offline", strategy="infini")):
        assert findings(opened) == []
        before = tree(root(memory))
        assert opened.repair() == []
        assert tree(root(memory)) == before


def test_a_record_that_a_person_moved_gets_its_new_id(memory: Memory) -> None:
    there = root(memory) / f"{doc(REX)}.md"
    before = there.read_bytes()
    there.rename(root(memory) / f"{doc(REX, archived=True)}.md")
    assert [where for _, where in findings(memory)] == [f"{doc(REX, archived=True)}:1"]
    assert len(memory.repair()) == 1
    assert tree_of(memory, doc(REX, archived=True)) == before.replace(b"allmem/units", b"allmem/archive")
    assert findings(memory) == []


# ── what a header declares ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("shape", ["---\nid: x\nevidence:\n{}\n---\n", "---\nid: x\nevidence: [{}]\n---\n"])
def test_a_record_names_turns_runs_of_turns_and_records(shape: str) -> None:
    rows = [
        "{ref: 51-53}",
        "{ref: 60, span: 1-4}",
        "{record: xf-51-02}",
        "{unit: u-000007}",
        "{ref: 9-7}",
    ]
    listed = "\n".join(f"  - {row}" for row in rows) if "[" not in shape else ", ".join(rows)
    record = Document.parse("allmem/units/x", shape.format(listed).encode())
    assert evidence_of(record) == (51, 52, 53, 60)
    assert sources_of(record) == ("xf-51-02", "u-000007")


def test_a_run_beyond_all_use_names_no_turn() -> None:
    rows = "evidence:\n  - {ref: 1-999999}\n  - {ref: 7}\n"
    assert evidence_of(Document.parse("allmem/units/x", f"---\n{rows}---\n".encode())) == (7,)
