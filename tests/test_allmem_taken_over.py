"""What All-Mem takes over from one snapshot to the next is what it derives anew."""

from __future__ import annotations

import gc
import weakref

from allmem_library import Library
from hypothesis import given, settings
from hypothesis import strategies as st

from infinimem.markdown.document import Document
from infinimem.store.names import by_id
from infinimem.store.view import View
from infinimem.strategies.allmem.spec import SPEC as ALLMEM
from infinimem.strategies.allmem.unit import HOME, KINDS, SURFACE, UNIT
from infinimem.strategies.graph.links import Link
from infinimem.strategies.records.codec import render
from infinimem.strategies.records.record import Record, Ref
from infinimem.strategies.records.record_store import RecordStore, changed, puts
from infinimem.strategies.vector_index import Loaded, VectorIndex

NAMES = ("u-000001", "u-000002", "u-000002-01", "u-000003")
IDS = (
    *(folder + name for folder in (UNIT.folder, ALLMEM.archived) for name in NAMES),
    f"{UNIT.folder}sub/u-000003",
    "Note",
    "note",
)


def text_of(doc_id: str, said: tuple[str, str | None, list[str]] | None) -> str:
    """A unit's file: its word, session and what it links to; a broken one for None."""
    if said is None:
        return "---\nsummary: [\n---\n"
    word, session, targets = said
    name = doc_id.rsplit("/", 1)[-1]
    links = [Link(KINDS[len(to) % 2], to) for to in sorted(targets) if to != name]
    unit = Record(
        name if doc_id.startswith(HOME) else "u-000000",
        ALLMEM,
        word,
        (word,),
        f"2024-01-0{len(word)}",
        session,
        (Ref(len(word)),),
        visible=UNIT.folder in doc_id,
    )
    return render(unit, links, ())


SAID = st.tuples(
    st.sampled_from(("tea", "rome", "chess")),
    st.sampled_from(("s", "t", None)),
    st.lists(st.sampled_from(NAMES), unique=True, max_size=3),
)
STEP = st.tuples(
    st.dictionaries(st.sampled_from(IDS), st.sampled_from(("gone", "broken")) | SAID, min_size=1, max_size=3),
    st.booleans(),
)


def snapshot(documents: dict[str, Document], before: tuple[View, set[str]] | None = None) -> View:
    frozen = dict(documents)
    ids = tuple(sorted(frozen))
    return View(ids, frozen.__getitem__, Library().settings, spec=ALLMEM, before=before)


def told(bank: RecordStore) -> object:
    """All that a bank answers."""
    return (
        dict(bank.records),
        set(bank.visible),
        {name: bank.links(name) for name in bank.records},
        {(name, kind): bank.graph.into(name, kind) for name in bank.records for kind in KINDS},
        dict(bank.lost),
        bank.findings,
        set(bank.held),
        [bank.new_id("u", number) for number in range(1, 4)],
        [bank.own_id("u", seq) for seq in range(1, 5)],
        [bank.of_session(session) for session in ("s", "t")],
    )


@settings(max_examples=60, deadline=None)
@given(st.lists(STEP, max_size=8))
def test_what_is_taken_over_is_what_is_derived_anew(
    steps: list[tuple[dict[str, str | tuple[str, str | None, list[str]]], bool]],
) -> None:
    documents: dict[str, Document] = {}
    view, loaded = snapshot(documents), Loaded()
    view.derived(RecordStore.load)
    view.derived(by_id)
    for news, asked in steps:
        for doc_id, said in news.items():
            if said == "gone":
                documents.pop(doc_id, None)
            else:
                text = text_of(doc_id, said if isinstance(said, tuple) else None)
                documents[doc_id] = Document.parse(doc_id, text.encode())
        earlier = view.derived(RecordStore.load) if asked else None
        was = None if earlier is None else told(earlier)
        view = snapshot(documents, (view, set(news)))
        if not asked:  # the next one takes over from the one before this one
            continue
        anew = snapshot(documents)
        assert told(view.derived(RecordStore.load)) == told(RecordStore.load(anew))
        assert view.derived(by_id) == anew.derived(by_id)
        assert {group: ids for group in ("all", "default", "archive") if (ids := view.ids(group))} == {
            group: ids for group in ("all", "default", "archive") if (ids := anew.ids(group))
        }
        assert earlier is None or told(earlier) == was
        with loaded.at(view) as (bank, space):
            fresh = VectorIndex.of(anew)
            fresh.sync(bank)
            query = space.embed("tea in rome")
            for archived in (False, True):
                assert space.nearest(
                    query, 9, ALLMEM.record_folders if archived else SURFACE
                ) == fresh.nearest(query, 9, ALLMEM.record_folders if archived else SURFACE)
            trial = bank.copy()
            for name in sorted(bank.records)[:1]:
                trial.put(Record("u-000004", ALLMEM, "violin", ("violin",), refs=(Ref(4),)))
                trial.graph.add("u-000004", Link(KINDS[0], name))
            space.sync(trial, ["u-000004"])  # is set right for who asks next
            assert changed(bank, trial) == (("u-000004",) if bank.records else ())
            assert [put.doc_id for put in puts(bank, trial)] == (
                [f"{UNIT.folder}u-000004"] if bank.records else []
            )


def test_a_snapshot_does_not_keep_those_before_it() -> None:
    view = snapshot({})
    first = weakref.ref(view)
    for _ in range(4):
        view.derived(RecordStore.load)
        view = snapshot({}, (view, {f"{UNIT.folder}u-000001"}))
    view.derived(RecordStore.load)
    gc.collect()
    assert first() is None
