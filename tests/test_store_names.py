"""Names and catalog rows of a snapshot: taken over from the one before, they are what looking anew gives."""

from __future__ import annotations

from collections.abc import Collection

from hypothesis import given, settings
from hypothesis import strategies as st

from infinimem.markdown.document import Document
from infinimem.settings import Settings
from infinimem.store import names
from infinimem.store.receipts import next_number
from infinimem.store.view import View

IDS = ("topics/a", "topics/A", "topics/sub/b", "archive/a", "archive/sub/b", "archive/x", "notes/A")
RECEIPTS = ("journal/0007-split", "journal/0009-merge", "journal/10000-merge", "journal/own")


def snapshot(documents: dict[str, Document], before: tuple[View, Collection[str]] | None = None) -> View:
    held = dict(documents)
    return View(tuple(sorted(held)), held.__getitem__, Settings(), before=before)


def told(view: View) -> tuple[object, ...]:
    index = (view.derived(names.by_id), view.derived(names.by_stem), view.derived(names.by_alias))
    return (*index, view.catalog("all"), next_number(view))


TEXTS = st.builds(
    lambda aliases, lines: "\n".join(
        ["---", f"aliases: [{', '.join(aliases)}]", "---", *(f"- <seq={seq}> fact" for seq in lines), ""]
    ),
    st.lists(st.sampled_from(("x", "X", "b", "sub/b", "a")), max_size=3),
    st.sets(st.integers(1, 9), max_size=3),
)
STEPS = st.dictionaries(st.sampled_from((*IDS, *RECEIPTS)), st.none() | TEXTS, min_size=1, max_size=4)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(STEPS, st.booleans()), max_size=6))
def test_what_is_taken_over_is_what_is_found_anew(
    steps: list[tuple[dict[str, str | None], bool]],
) -> None:
    documents: dict[str, Document] = {}
    view = snapshot(documents)
    told(view)
    for changed, asked in steps:
        for doc_id, text in changed.items():
            documents.pop(doc_id, None)
            if text is not None:
                documents[doc_id] = Document.parse(doc_id, text.encode())
        view = snapshot(documents, (view, set(changed)))
        if asked:  # else the next one takes over from the one before this one
            assert told(view) == told(snapshot(documents))
