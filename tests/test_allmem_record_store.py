"""The bank: what is loaded, what its evidence says, which records turn one bank into another."""

from __future__ import annotations

from dataclasses import replace

import pytest
from allmem_library import Library, banked

from infinimem.markdown.document import Document
from infinimem.model import Plan
from infinimem.spec import StrategySpec
from infinimem.strategies.allmem.invariants import faults
from infinimem.strategies.allmem.spec import SPEC as ALLMEM
from infinimem.strategies.allmem.spec import AllmemSettings
from infinimem.strategies.graph.links import Link
from infinimem.strategies.records import record_store as bank_module
from infinimem.strategies.records.record import ANEW, Quote, Record, Ref
from infinimem.strategies.records.record_store import RecordStore, changed, puts


def three() -> tuple[Library, RecordStore]:
    library = Library()
    library.say("I live in Rome. I play chess.", speaker="Ana", time="2024-01-01T10:00:00")
    library.say("I moved\nto Oslo.", "Rome again.", speaker="Ana", session="s2", time="2024-02-01")
    bank, _ = banked(library, ("Ana,Rome", "Ana lives in Rome."), ("Oslo", "Oslo."), ("Rome", "Rome."))
    write(library, bank)
    return library, library.bank()


def write(library: Library, bank: RecordStore) -> None:
    library.apply(Plan("write", records=puts(library.bank(), bank)))


def place(library: Library, doc_id: str, text: str) -> None:
    library.documents[doc_id] = Document.parse(doc_id, text.encode())


def test_a_bank_loads_as_it_was_put() -> None:
    library, bank = three()
    assert sorted(bank.records) == ["u-000001", "u-000002", "u-000003"]
    assert bank.records["u-000002"] == Record(
        "u-000002", ALLMEM, "Oslo.", ("Oslo",), "2024-02-01", "s2", (Ref(2),)
    )
    assert bank.visible == set(bank.records)
    assert changed(bank, library.bank()) == ()
    assert not faults(bank, settings=library.settings.of(AllmemSettings))


def test_evidence_is_told_by_reference() -> None:
    _, bank = three()
    assert bank.quotes("u-000002") == (Quote(Ref(2), "Ana", "2024-02-01", "I moved\nto Oslo.", "user"),)
    bank.put(Record("u-000001-01", ALLMEM, "s", ("k",), refs=(Ref(1, (16, 29)),)))
    assert bank.text("u-000001-01") == "I play chess."
    bank.put(Record("u-000003-01", ALLMEM, "s", ("k",), sources=("u-000003", "u-000001-01", "u-000001")))
    bank.put(Record("u-000003-02", ALLMEM, "s", ("k",), sources=("u-000002", "u-000003-01")))
    told = [(said.ref.seq, said.ref.span) for said in bank.quotes("u-000003-02")]
    assert told == [(1, None), (1, (16, 29)), (2, None), (3, None)]
    assert bank.text("u-000003-01").endswith("I play chess.\nRome again.")


def test_a_piece_of_a_unit_is_cut_in_the_turns_own_characters() -> None:
    _, bank = three()
    bank.put(Record("u-000001-01", ALLMEM, "s", ("k",), refs=(Ref(1, (2, 15)), Ref(1, (16, 29)))))
    text = bank.text("u-000001-01")
    assert text == "live in Rome.\nI play chess."
    start = text.index("Rome")
    assert bank.cut("u-000001-01", start, start + 11) == (Ref(1, (10, 15)), Ref(1, (16, 21)))
    assert bank.cut("u-000001-01", 13, 14) == ()  # the line break between two pieces is nobody's
    assert bank.cut("u-000002", 0, 7) == (Ref(2, (0, 7)),)


def test_a_unit_that_leaves_the_surface_moves_and_keeps_its_links() -> None:
    library, before = three()
    after = before.copy()
    after.graph.add("u-000002", Link("temporal", "u-000001"))
    after.graph.add("u-000003", Link("version", "u-000001"))
    after.archive("u-000001")
    assert before.visible == {"u-000001", "u-000002", "u-000003"}
    rows = puts(before, after)
    assert [(put.doc_id, put.text is None, put.origin) for put in rows] == [
        ("allmem/units/u-000001", True, ()),
        ("allmem/archive/u-000001", False, ()),
        ("allmem/units/u-000002", False, ()),
        ("allmem/units/u-000003", False, ()),
    ]
    write(library, after)
    assert changed(library.bank(), after) == ()


def test_a_turns_new_unit_names_its_origin_and_a_derived_one_does_not() -> None:
    library, before = three()
    library.say("A fourth.")
    after = library.bank().copy()
    after.put(Record("u-000004", ALLMEM, "s", ("k",), refs=(Ref(4),)))
    after.put(Record("u-000003-01", ALLMEM, "s", ("k",), sources=("u-000003",)))
    assert [(put.doc_id, put.origin) for put in puts(before, after)] == [
        ("allmem/units/u-000003-01", ()),
        ("allmem/units/u-000004", (4,)),
    ]


def test_derived_ids_count_what_is_archived_or_cannot_be_read() -> None:
    library, bank = three()
    assert bank.new_id("u", 3) == "u-000003-01"
    place(library, "allmem/archive/u-000003-07", "?")
    again = library.bank()
    assert [finding.where for finding in again.findings] == ["allmem/archive/u-000003-07"]
    trial = again.copy()
    assert trial.new_id("u", 3) == "u-000003-08"
    trial.put(Record("u-000003-08", ALLMEM, "s", ("k",), refs=(Ref(3),)))
    assert trial.new_id("u", 3) == "u-000003-09"
    assert again.new_id("u", 3) == "u-000003-08"


def test_links_to_a_unit_that_cannot_be_read_stay_in_the_file() -> None:
    library, bank = three()
    linked = bank.copy()
    linked.graph.add("u-000003", Link("version", "u-000001"))
    linked.archive("u-000001")
    write(library, linked)
    whole = library.bank()
    good = library.documents["allmem/archive/u-000001"]
    place(library, good.id, "---\nsummary: [broken\n---\n")
    broken = library.bank(whole)
    assert broken.links("u-000003") == whole.links("u-000003")
    assert broken.graph.links("u-000003") == ()
    assert {finding.where for finding in faults(broken, settings=library.settings.of(AllmemSettings))} == {
        "allmem/archive/u-000001",
        "allmem/units/u-000003",
    }
    edited = broken.copy()
    edited.put(replace(edited.records["u-000003"], summary="new"))
    assert "to: u-000001" in (puts(broken, edited)[0].text or "")
    library.documents[good.id] = good
    mended = library.bank(broken)
    assert mended.graph == whole.graph
    assert not mended.lost


def test_loading_anew_reads_only_what_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    library, bank = three()
    edited = bank.copy()
    edited.put(replace(edited.records["u-000002"], summary="Oslo now."))
    edited.graph.add("u-000002", Link("temporal", "u-000001"))
    write(library, edited)
    parsed: list[str] = []
    real = bank_module.parse

    def counted(document: Document, spec: StrategySpec) -> object:
        parsed.append(document.id)
        return real(document, spec)

    monkeypatch.setattr(bank_module, "parse", counted)
    again = library.bank(bank)
    assert parsed == ["allmem/units/u-000002"]
    assert changed(again, edited) == ()
    assert changed(library.bank(edited), edited) == ()
    assert bank.records["u-000002"].summary == "Oslo."
    del library.documents["allmem/units/u-000001"]
    assert sorted(library.bank(again).records) == ["u-000002", "u-000003"]
    assert library.bank(again).lost == {"u-000002": (Link("temporal", "u-000001"),)}


def test_a_unit_in_both_folders_is_the_one_of_the_surface() -> None:
    library, _ = three()
    text = library.documents["allmem/units/u-000001"].to_bytes().decode()
    place(library, "allmem/archive/u-000001", text.replace("allmem/units", "allmem/archive"))
    bank = library.bank()
    assert "u-000001" in bank.visible
    assert [finding.where for finding in bank.findings] == ["allmem/archive/u-000001"]


def test_every_fault_is_named() -> None:
    _, bank = three()
    own = AllmemSettings(degree_semantic=1)
    bad = bank.copy()
    bad.put(Record("u-000009", ALLMEM, "s", ("k",), refs=(Ref(9), Ref(1, (3, 99)))))
    bad.put(Record("u-000009-01", ALLMEM, "s", ("k",), sources=("u-000077",)))
    bad.graph.put("u-000001", "semantic", (Link("semantic", "u-000002"), Link("semantic", "u-000003")))
    bad.graph.add("u-000001", Link("temporal", "u-000002"))
    bad.graph.put("u-000003", "version", ())
    bad.archive("u-000003")
    assert [(finding.where.split("/")[-1], finding.what) for finding in faults(bad, settings=own)] == [
        ("u-000001", "a temporal link leads to u-000002, which is not older"),
        ("u-000001", "2 semantic links are more than 1"),
        ("u-000009", f"turn 9 is not in the evidence; bring it back, or {ANEW}"),
        ("u-000009", f"turn 1 is shorter than the span 3-99; {ANEW}"),
        ("u-000009-01", f"its source u-000077 is not here; bring it back, or {ANEW}"),
        ("u-000003", "no unit of the surface leads here by version links; move it to allmem/units/"),
    ]
    bad.graph.add("u-000009", Link("version", "u-000003"))
    assert all("u-000003" not in finding.where for finding in faults(bad, settings=own))
