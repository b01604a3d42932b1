"""Records in a library: applied, refused, taken back, seen, found, blamed, and where git commits them."""

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
from git_repository import Repository
from trusting import write_trusted

from infinimem.errors import LibraryError
from infinimem.index.search import searcher
from infinimem.memory import Memory, open_memory
from infinimem.model import Move, NewEntry, Plan, Put, Reason, Retrieved
from infinimem.operations.doctor import examine
from infinimem.store.files import Files, digest
from infinimem.store.library import Library, init
from infinimem.store.view import Applied, Rejected
from infinimem.strategies.records.record import Link, record_id


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


@pytest.mark.parametrize("name", [doc(PORTO), AUDIT], ids=["it changed that", "it made that"])
def test_a_record_that_a_person_changed_since_is_not_undone(memory: Memory, name: str) -> None:
    path = root(memory) / f"{name}.md"
    path.write_text(path.read_text() + "\nmine\n")
    before = tree(root(memory))
    with pytest.raises(LibraryError, match=f"{name} was changed by hand since"):
        memory.undo()
    assert tree(root(memory)) == before


def test_a_record_that_a_person_changed_since_is_shown_as_it_is(memory: Memory) -> None:
    (root(memory) / "allmem/buffer.md").write_text("mine\n")
    (root(memory) / f"{doc(PORTO)}.md").unlink()
    past = memory.at("journal/0001-write").view
    assert past.document("allmem/buffer").body == "mine"
    assert doc(PORTO) not in past
    assert doc(LISBON) in past


# ── who sees what ───────────────────────────────────────────────────────────────────────────────


def lines_seen(memory: Memory) -> dict[int, object]:
    return {seq: line for seq, line in memory.library.seen_lines().items() if seq > 0}


def test_strategies_take_turns_in_one_library(memory: Memory) -> None:
    """What one does is nothing to the other: neither its lines nor what is known of them."""
    other = open_memory(root(memory), model="offline", strategy="infini")
    told = other.view.entry(LISBON)
    assert told
    plan = Plan(adds=(NewEntry(told.text, (LISBON,), "topics/home", "Home"),), op="consolidate")
    outcome = other.library.apply(plan)
    assert isinstance(outcome, Applied)
    line = outcome.added[0]
    known = lines_seen(other)
    applied(memory, put(unit(REX, summary="Rex")))
    assert memory.library.adopt_edits() is None
    assert lines_seen(memory) == known
    path = root(memory) / "topics/home.md"
    path.write_text(path.read_text().replace("Lisbon", "Lisboa") + "- typed\n")
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
    write, refined = (one.id for one in memory.receipts())
    assert quotes_of(memory, record_id("u", REX)) == [
        ("> assistant: My dog is called Rex.", [REX], write),
        ("> He is three.", [REX], write),
    ]
    both = unit(REX, 1, sources=(record_id("u", PORTO), record_id("u", REX)))
    applied(memory, put(both, quotes=quoted(PORTO, REX)))
    merge = memory.receipts()[-1].id
    assert [row[1:] for row in quotes_of(memory, doc(REX, 1))] == [
        ([PORTO], merge),
        ([REX], merge),
        ([REX], merge),
    ]
    kinds = {one.text: (one.kind, one.receipt) for one in memory.blame(doc(PORTO))}
    assert kinds["kind: unit"] == ("derived", write)
    assert kinds[f"  - {{type: version, to: {record_id('u', LISBON)}}}"] == (
        "derived",
        refined,
    )
    path = root(memory) / f"{doc(PORTO)}.md"
    path.write_text(path.read_text() + "> I like it here.\n")
    assert memory.blame(doc(PORTO))[-1].kind == "person"


# ── what a header declares ──────────────────────────────────────────────────────────────────────


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_git_shows_an_archiving_as_a_rename(tmp_path: Path) -> None:
    place = Repository.begun(tmp_path / "repo")
    place.memory.mkdir()
    init(place.memory)
    write_trusted(place.memory, 'format = 1\ngit = true\nstrategy = "allmem"\n')
    memory = consolidated(place.memory)
    assert "?? " not in place.git("status", "--porcelain", "--", "memory/allmem")
    assert place.subjects()[1:] == [
        "record: 4 turns",
        "write: 5 files",
        "consolidate: 5 files",
    ]
    told = place.git("show", "--format=", "--name-status", "-M50")
    assert f"\tmemory/{doc(LISBON)}.md\tmemory/{doc(LISBON, archived=True)}.md" in told
    memory.undo()
    memory.forget([NUTS])
    assert place.subjects()[4:] == ["undo: 5 files", "forget: 1 line"]
    assert place.git("status", "--porcelain", "--", *(f"memory/{one}" for one in ("allmem", "journal"))) == ""
    assert examine(memory.library) == []


def found(memory: Memory, query: str, **rest: object) -> list[Retrieved]:
    return searcher(memory.view).blocks(query, **rest)  # type: ignore[arg-type]


def test_a_unit_that_a_person_broke_is_still_found(memory: Memory) -> None:
    path = memory.library.root / f"{doc(NUTS)}.md"
    path.write_text(path.read_text().replace("evidence:", "evidence: [", 1))
    assert [one.origin for one in found(memory, "pistachios")] == [()]
