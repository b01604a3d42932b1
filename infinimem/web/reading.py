"""The pages that only read: home, topics, a document, a line, search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from infinimem.errors import LibraryError
from infinimem.markdown.document import Document
from infinimem.operations.history import history
from infinimem.operations.provenance import drawn, recorded, superseded
from infinimem.results import asked_for, history_json, summary
from infinimem.retrieval.searcher import searcher
from infinimem.store.spec import ARCHIVE, EVIDENCE, JOURNAL
from infinimem.store.view import View, archive_of
from infinimem.terms import Analyzer, analyzer
from infinimem.tools.tool import scope_of
from infinimem.web.changes import undoing
from infinimem.web.prose import PAGE, around, blocks, fact
from infinimem.web.site import Asked, Moved, Page, called, seq_of

LATELY = 6
"""Changes and lines on the home page."""
LISTED = 20
"""Documents of a page of the list: as many as the tool gives at once."""
FOUND = 50
"""Sections that a search looks at, the most that the tool gives."""
SCOPES = {
    "default": "what holds now",
    "archive": "superseded",
    "evidence": "what was said",
    "all": "now and superseded",
}
FACETS = ("source", "speaker", "year", "document")


def told(found: Mapping[str, Any]) -> Mapping[str, Any]:
    """The result of a tool.

    Raises:
        LibraryError: it is an error.
    """
    if "error" in found:
        raise LibraryError(str(found["error"]))
    return found


def home(asked: Asked) -> Page:
    """What there is, what changed lately, what waits."""
    memory, view = asked.memory, asked.memory.view
    status = memory.status()
    stamps = view.stored.stamps if view.stored and not view.initialised else {}
    saved = sorted(stamps, key=lambda doc_id: -stamps[doc_id].mtime_ns)[:LATELY]
    shown = {
        "receipts": [(one, summary(one)) for one in recorded(view).receipts[: -LATELY - 1 : -1]],
        "newest": [fact(place) for place in view.buffer.entries[: -LATELY - 1 : -1]],
        "saved": [view.row(doc_id) for doc_id in saved],
        "awaiting": status["lines_awaiting_review"],
        "tokens": sum(one["tokens_in"] + one["tokens_out"] for one in status["spent"].values()),
        "conversations": len(view.owned(EVIDENCE)),
    }
    return Page("home.html", status, shown)


def topics(asked: Asked) -> Page:
    """The list of documents."""
    start = asked.start
    found = told(asked.reader.tools.list_docs(offset=start - 1, limit=LISTED))
    return Page("topics.html", found, {"start": start, "step": LISTED})


def document(asked: Asked) -> Page | Moved:
    """A document as prose; of the evidence as a conversation."""
    view = asked.reader.view
    found = view.document(view.resolve(asked.path["id"]))
    if found.id.startswith(JOURNAL):
        return Moved(f"/receipt/{found.id.removeprefix(JOURNAL)}")
    start = asked.start
    said = found.id.startswith(EVIDENCE) and not view.is_note(found.id)
    gone = found.id.startswith(ARCHIVE)
    former = {} if said or gone else view.derived(superseded)
    marks = view.derived(drawn) if said else {}
    places = found.entries_in(start, start + PAGE - 1)
    facts = {place.start_line: fact(place, former, marks) for place in places}
    shown = {
        "title": called(found.id, found.title or _heading(found)),
        "summary": found.summary,
        "blocks": blocks(found, start, facts),
        "start": start,
        "step": PAGE,
        "is_note": view.is_note(found.id),
        "archive": archive_of(found.id) if archive_of(found.id) in view and not gone else "",
    }
    lines = told(asked.reader.tools.read_lines(doc_id=found.id, start=start))
    return Page("conversation.html" if said else "document.html", lines, shown)


def _heading(document: Document) -> str:
    """The heading that a note without a title begins with."""
    first = document.headings[:1]
    return first[0].title if first and first[0].level == 1 else ""


def line(asked: Asked) -> Page:
    """A line: where it comes from, what happened to it, what replaced it."""
    view, seq = asked.reader.view, seq_of(asked.path["seq"])
    events = history(view, seq)
    place = view.entry(seq)
    said = [event for event in events if event.event == "said"]
    moves = [event for event in events if event.event == "receipt" and event.seq == seq]
    steps = recorded(view).steps(seq)
    shown = {
        "fact": fact(place, view.derived(superseded), view.derived(drawn)) if place else None,
        "seq": seq,
        "turns": [(turn, around(view, turn.seq)) for turn in said],
        "moves": [(one, undoing(asked, by.receipt)) for one, by in zip(moves, steps, strict=True)],
        "heirs": [event for event in events if event.event == "heir"],
        "now": next(event for event in events if event.event == "now"),
    }
    return Page("line.html", history_json(events), shown)


def search(asked: Asked) -> Page:
    """Sections by rank, with facets; of a section those lines come first that hold a word of the question."""
    view, query = asked.reader.view, asked.query.get("q", "").strip()
    scope = asked.query.get("scope", "default")
    data: Mapping[str, Any] = {"hits": []}
    if query:
        data = told(asked.reader.tools.call("search", {"query": query, "k": FOUND, "scope": scope}))
    words = analyzer(view.settings.search.language)
    terms = frozenset(words.query_terms(query))
    chosen = {name: asked.query[name] for name in FACETS if asked.query.get(name)}
    counts = {name: Counter[str]() for name in FACETS}
    why = searcher(view).reasons(query, FOUND, scope_of(scope)) if query and asked.query.get("why") else []
    found = []
    for hit in data["hits"]:
        lines = [one for one in _lines_of(view, hit) if chosen.items() <= one.items()]
        for name in FACETS:
            counts[name].update(one[name] for one in lines if one[name])
        marked = [(one, _marked(one["text"], terms, words)) for one in lines]
        first = [row for row in marked if any(is_hit for _, is_hit in row[1])] or marked
        if first:
            rest = [row for row in marked if row not in first]
            found.append({**hit, "lines": first, "rest": rest, "why": _why(hit, why)})
    shown = {"query": query, "scope": scope, "scopes": SCOPES, "chosen": chosen, "counts": counts}
    return Page("search.html", data, {**shown, "found": found})


def _why(hit: Mapping[str, Any], reasons: Iterable[tuple[str, int, int, Mapping[str, float]]]) -> Any:
    """What the score of a hit is made of; None where that is not known, or was not asked."""
    at = hit["doc_id"], hit["start_line"]
    return next((parts for doc_id, a, b, parts in reasons if doc_id == at[0] and a <= at[1] <= b), None)


def _lines_of(view: View, hit: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The lines of a hit, with what the facets ask of each: its entries, or a text's own lines."""
    doc = view.document(hit["doc_id"])
    if hit["seqs"]:
        facts = (fact(place) for place in doc.entries_in(hit["start_line"], hit["end_line"]))
        lines = [vars(one) | {"year": (one.when or one.time)[:4]} for one in facts]
    else:
        said = enumerate(hit["snippet"].split("\n"), hit["start_line"])
        own = {"seq": 0, "source": "", "speaker": "", "year": ""}
        lines = [own | {"text": text, "line": number} for number, text in said if text.strip()]
    return [one | {"document": doc.id} for one in lines]


def _marked(text: str, terms: frozenset[str], words: Analyzer) -> list[tuple[str, bool]]:
    """A text in pieces, and whether each is a word that was asked for."""
    found, at = [], 0
    for start, end in asked_for(text, terms, words):
        found += [(text[at:start], False), (text[start:end], True)]
        at = end
    joined = [*found, (text[at:], False)]
    return [(piece, hit) for piece, hit in joined if piece]
