"""What each page shows, and what forms do: only by POST is the library changed, or are tokens spent."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import timedelta
from hashlib import sha256
from itertools import combinations, groupby, islice
from math import cos, pi, sin
from typing import Any

from infinimem import results
from infinimem.errors import LibraryError, UsageError
from infinimem.model import CURRENT, Receipt
from infinimem.operations.history import history
from infinimem.operations.provenance import Lineage, recorded, successor
from infinimem.operations.review import CODES, awaiting
from infinimem.operations.undo import dependents_of, undone_by
from infinimem.results import demand
from infinimem.store.plans import topic_names
from infinimem.store.receipts import FORGET, RENAME, named
from infinimem.store.spec import ARCHIVE, EVIDENCE, JOURNAL, TOPICS
from infinimem.store.view import View, archive_of, whole
from infinimem.strategies.base import Linked
from infinimem.terms import Analyzer, analyzer
from infinimem.tools import Toolbox
from infinimem.tools.tool import numbered
from infinimem.web import site
from infinimem.web.site import Asked, Moved, Page

LATELY = 6  # changes and lines on the home page
CARDS = 12  # topics on the home page
LISTED = 20  # documents of a page of the list: as many as the tool gives at once
FOUND = 50  # sections that a search looks at, the most that the tool gives
SCOPES = {
    "default": "what holds now",
    "archive": "superseded",
    "evidence": "what was said",
    "all": "now and superseded",
}
FACETS = ("source", "speaker", "year", "document")
ROWS = 300  # lines of a receipt that are shown
NODES, LINKS = 40, 120  # of a map, at most: those with most in common
WIDTH, RADIUS = 900, 270  # of its drawing, in its own units


def home(asked: Asked) -> Page | Moved:
    """Show topics as cards, what changed lately with the facts, what waits; of the past its topics."""
    if moment := asked.query.get("as-of", "").strip():
        return Moved("/topics", {"as-of": moment})
    memory, view = asked.memory, asked.memory.view
    status, records = memory.status(), recorded(view)
    days = {doc_id: site.newest_day(view, doc_id) for doc_id in view.ids() if doc_id != CURRENT}
    latest = records.latest(LATELY)[::-1]
    week = (memory.library.clock() - timedelta(days=7)).isoformat()
    some = [one for one in latest if one.time >= week]
    changes = ((one, [*islice(_changes(one, records, moved=False), LATELY)]) for one in some or latest[:1])
    shown = {
        "cards": [site.card(view, one) for one in sorted(days, key=days.__getitem__, reverse=True)[:CARDS]],
        "receipts": [(one, site.did(one), rows) for one, rows in changes],
        "is_week": bool(some),
        "newest": [site.fact(view, place) for place in view.buffer.entries[: -LATELY - 1 : -1]],
        "awaiting": status["lines_awaiting_review"] + status.get("inbox", {"lines": 0})["lines"],
        "can_add": CURRENT in view and view.initialised,
    }
    return Page("home.html", status, shown)


def topics(asked: Asked) -> Page:
    """List documents as cards."""
    found = demand(asked.reader.tools.list_docs(offset=asked.start - 1, limit=LISTED))
    cards = [site.card(asked.reader.view, doc["id"]) for doc in found["docs"]]
    return Page("topics.html", found, {"start": asked.start, "step": LISTED, "cards": cards})


def document(asked: Asked) -> Page | Moved:
    """Show a document as prose, one of the evidence as a conversation."""
    view = asked.reader.view
    found = view.document(view.resolve(asked.path["id"]))
    if found.id.startswith(JOURNAL):
        return Moved(f"/receipt/{found.id.removeprefix(JOURNAL)}")
    start, is_note = asked.start, view.is_note(found.id)
    said, gone = found.id.startswith(EVIDENCE) and not is_note, found.id.startswith(ARCHIVE)
    places = found.entries_in(start, start + site.PAGE - 1)
    facts = {one.start_line: site.fact(view, one, former=not (said or gone), drawn=said) for one in places}
    topics = view.derived(topic_names) if view.initialised and found.id.startswith(TOPICS) else {}
    here = (doc_id for doc_id, one in topics.items() if found.id in one.links)
    related = dict.fromkeys((*(topics[found.id].links if topics else ()), *here))

    def link(name: str, anchor: str, beside: bool = False) -> str:
        if beside:
            name = posixpath.normpath(posixpath.join(posixpath.dirname(found.id), name))
        if not (doc_id := site.named_in(view, name, beside)):
            return ""
        related.setdefault(doc_id)
        titles = view.document(doc_id).headings if anchor else ()
        at = next((one.line for one in titles if one.title.casefold() == anchor.strip().casefold()), 0)
        return site.served(f"/doc/{doc_id}", f"L{at}" if at else "", {"as-of": asked.moment})

    talk = next(site.sessions(view, [found.id])) if said else None
    newest = recorded(asked.memory.view).latest(1)  # after a form: that is taken back on the spot
    shown = {
        "title": talk["title"] if talk else site.titled(view, found.id),
        "talk": talk,
        "summary": found.summary,
        "blocks": site.blocks(found, start, facts, link),
        "start": start,
        "step": site.PAGE,
        "is_note": is_note,
        "related": [doc_id for doc_id in related if doc_id in view and doc_id != found.id],
        "archive": archive_of(found.id) if archive_of(found.id) in view and not gone else "",
        "is_ours": not is_note and found.id.startswith((CURRENT, TOPICS)),
        "done": next((one for one in newest if one.label == asked.query.get("did")), None),
    }
    lines = demand(Toolbox(lambda: view).read_lines(doc_id=found.id, start=start))  # what awaits approval too
    return Page("document.html", lines, shown)


def line(asked: Asked) -> Page:
    """Show where a line comes from, what happened to it, what replaced it."""
    view, seq = asked.reader.view, site.seq_of(asked.path["seq"])
    events = history(view, seq)
    place = view.entry(seq)
    moves = [event for event in events if event.event == "receipt" and event.seq == seq]
    steps = recorded(view).steps(seq)
    shown = {
        "fact": site.fact(view, place, former=True, drawn=True) if place else None,
        "seq": seq,
        "turns": [(turn, site.around(view, turn.seq)) for turn in events if turn.event == "said"],
        "moves": [(one, undoing(asked, by.receipt)) for one, by in zip(moves, steps, strict=True)],
        "heirs": [event for event in events if event.event == "heir"],
        "now": next(event for event in events if event.event == "now"),
    }
    return Page("line.html", results.history_json(events), shown)


def search(asked: Asked) -> Page:
    """Show sections by rank, with facets; of a section first the lines that hold a word of the question."""
    view, query = asked.reader.view, asked.query.get("q", "").strip()
    scope = asked.query.get("scope", "default")
    data: Mapping[str, Any] = {"hits": []}
    if query:
        data = demand(asked.reader.tools.call("search", {"query": query, "k": FOUND, "scope": scope}))
    words = analyzer(view.settings.search.language)
    terms = frozenset(words.query_terms(query))
    chosen = {name: asked.query[name] for name in FACETS if asked.query.get(name)}
    counts = {name: Counter[str]() for name in FACETS}
    found = []
    for hit in data["hits"]:
        lines = [one for one in _lines_of(view, hit) if chosen.items() <= one.items()]
        for name in FACETS:
            counts[name].update(one[name] for one in lines if one[name])
        marked = [(one, _marked(one["text"], terms, words)) for one in lines]
        first = [row for row in marked if any(is_hit for _, is_hit in row[1])] or marked
        if first:
            found.append({**hit, "lines": first, "rest": [row for row in marked if row not in first]})
    shown = {"query": query, "scope": scope, "scopes": SCOPES, "chosen": chosen, "counts": counts}
    return Page("search.html", data, {**shown, "found": found})


def _lines_of(view: View, hit: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the lines of a hit, with what the facets ask of each: its entries, or a text's own lines."""
    if hit["seqs"]:
        facts = (site.fact(view, place) for place in map(view.entry, hit["seqs"]) if place)
        lines = [{**one, "year": (one["when"] or one["time"])[:4]} for one in facts]
    else:
        own = {"seq": 0, "source": "", "speaker": "", "year": ""}
        lines = [own | {"text": text, "line": number} for number, text in numbered(hit) if text.strip()]
    return [one | {"document": hit["doc_id"]} for one in lines]


def _marked(text: str, terms: frozenset[str], words: Analyzer) -> list[tuple[str, bool]]:
    """Return a text in pieces, and whether each is a word that was asked for."""
    found, at = [], 0
    for start, end in results.asked_for(text, terms, words):
        found += [(text[at:start], False), (text[start:end], True)]
        at = end
    return [(piece, hit) for piece, hit in [*found, (text[at:], False)] if piece]


def timeline(asked: Asked) -> Page:
    """List receipts by day, the newest first; if a document is named, of that alone."""
    about, start = asked.query.get("document", ""), asked.start
    every = recorded(asked.reader.view).receipts
    found = [one for one in every[::-1] if not about or about in [name for name, *_ in one.files]]
    some = found[start - 1 : start - 1 + LISTED]
    days = [
        (day, [(one, site.did(one)) for one in of]) for day, of in groupby(some, lambda one: one.time[:10])
    ]
    shown = {"days": days, "about": about, "start": start, "step": LISTED, "total": len(found)}
    return Page("timeline.html", results.log_json(some), shown)


def receipt(asked: Asked) -> Page:
    """Show what one transaction did, line by line, and whether it can be taken back."""
    records = recorded(asked.memory.view)
    one = named(records.receipts, asked.path["name"])
    shown = {
        "receipt": one,
        "summary": site.did(one),
        "changes": list(islice(_changes(one, records), ROWS)),
        "left_out": len(one.rows) - ROWS,
        "undo": undoing(asked, one),
    }
    return Page("receipt.html", results.receipt_json(one) or {}, shown)


def undoing(asked: Asked, one: Receipt) -> Mapping[str, Any]:
    """Return whether a receipt can be taken back, from a page of now, and which later ones would go, too."""
    every = recorded(asked.memory.view).receipts
    by = undone_by(every).get(one.label, "")
    can = asked.site.forms and not (asked.moment or by or one.op in (FORGET, RENAME))
    goes = [*(dependents_of(one, every) if can else ()), one]
    together = " ".join(other.label for other in goes[:-1])
    facts = len({row.seq for each in goes for row in each.rows})
    return {"receipt": one.label, "by": by, "can": can, "together": together, "goes": goes, "facts": facts}


def _changes(one: Receipt, records: Lineage, moved: bool = True) -> Iterator[dict[str, Any]]:
    """Yield what a receipt did to each line, and how that reads: by where the lines went, as a reader would
    ask. `other` is the line that stands for one that was replaced, or how one read before it was edited."""
    for row in sorted(one.rows, key=lambda row: (row.now in ("", "-"), row.now)):
        if row.why == "moved" and not moved:
            continue
        entry = records.entry(row.seq)
        kind, text, other = "moved", entry.text if entry else "", ""
        old = next((s.old.text for s in records.steps(row.seq) if s.receipt is one and s.old), "")
        if heir := successor(row.why):
            by = records.entry(heir[1])
            kind, other = "replaced", by.text if by else ""
        elif row.now in ("", "-"):
            kind, text = "gone", old or text
        elif row.was in ("", "-"):
            kind = "came"
        elif old and old != text:
            kind, other = "edited", old
        yield {"kind": kind, "row": row, "text": text, "other": other}


def review(asked: Asked) -> Page:
    """List what needs approval. To look drops nothing; the command tells what is void once."""
    rows = awaiting(asked.memory.library)
    return Page("review.html", {"rows": [asdict(row) for row in rows]}, {"codes": CODES})


def conversations(asked: Asked) -> Page:
    """List what was said, by session, the newest first, and how much of it was kept."""
    view, start = asked.reader.view, asked.start
    ids = view.owned(EVIDENCE)[::-1]
    found = demand(asked.reader.tools.list_docs(offset=start - 1, limit=LISTED, scope="evidence"))
    shown = {"start": start, "step": LISTED, "count": len(ids)}
    rows = list(site.sessions(view, ids[start - 1 : start - 1 + LISTED]))
    return Page("conversations.html", found, {**shown, "sessions": rows})


def graph(asked: Asked) -> Page:
    """Draw what belongs together: the links that the strategy keeps, else topics by names that they share."""
    strategy, view, about = asked.memory.strategy, asked.memory.view, asked.query.get("about") or None
    data = strategy.graph(view, about, 2).data if isinstance(strategy, Linked) else _topics(view)
    places = {node["id"]: _place(at, len(data["nodes"])) for at, node in enumerate(data["nodes"])}
    lines = [{**link, "ends": [places[link["from"]], places[link["to"]]]} for link in data["links"]]
    names = {node["id"]: node["label"] for node in data["nodes"]}
    tied = {end for link in data["links"] for end in (link["from"], link["to"])}
    drawing = {"places": places, "lines": lines, "width": WIDTH, "height": 2 * RADIUS + 120}
    shown = {**drawing, "names": names, "tied": tied, "shares": not isinstance(strategy, Linked)}
    return Page("map.html", data, shown)


def _topics(view: View) -> dict[str, Any]:
    """Return topics and the names that two of them share, in the shape of the command `graph`."""
    found = view.derived(topic_names)
    most = max(2, len(found) // 2)
    sharing: dict[str, list[str]] = {}
    for doc_id, topic in sorted(found.items()):
        for name in topic.names:
            sharing.setdefault(name, []).append(doc_id)
    shared: dict[tuple[str, str], list[str]] = {}
    for name, topics in sorted(sharing.items()):
        if 2 <= len(topics) <= most:
            for pair in combinations(topics[:NODES], 2):
                shared.setdefault(pair, []).append(name)
    best = sorted(shared.items(), key=lambda item: (-len(item[1]), item[0]))[:LINKS]
    ids = list(dict.fromkeys(doc_id for pair, _ in best for doc_id in pair))[:NODES]
    ids += [doc_id for doc_id in sorted(found) if doc_id not in ids][: NODES - len(ids)]
    nodes = [
        {"id": one, "label": view.row(one).title or one, "visible": True, "hop": 0} for one in sorted(ids)
    ]
    links = [
        {"from": pair[0], "to": pair[1], "type": ", ".join(names), "weight": len(names)}
        for pair, names in best
        if set(pair) <= set(ids)
    ]
    return {"root": "", "nodes": nodes, "links": links}


def _place(at: int, count: int) -> dict[str, Any]:
    """Place a node on a circle, with the label on the outside."""
    angle = 2 * pi * at / max(count, 1) - pi / 2
    x, y = cos(angle), sin(angle)
    return {
        "x": round(WIDTH / 2 + RADIUS * x, 1),
        "y": round(RADIUS + 60 + RADIUS * y, 1),
        "tx": round(WIDTH / 2 + (RADIUS + 12) * x, 1),
        "ty": round(RADIUS + 64 + (RADIUS + 12) * y, 1),
        "anchor": "start" if x > 0.1 else "end" if x < -0.1 else "middle",
    }


def undo(asked: Asked) -> Moved:
    """Take a receipt back; then show the document that it was seen on, or else the receipt of that."""
    if not (name := asked.form.get("receipt", "")):  # the newest may be another than was looked at
        raise UsageError("say which receipt: its name")
    together = asked.form.get("together", "")
    if together and together != undoing(asked, named(asked.memory.receipts(), name))["together"]:
        raise LibraryError("others lean on that receipt now: look at its page again")
    done = asked.memory.undo(name, bool(together))[0]  # of several the one that leans on no other
    if (doc_id := asked.form.get("doc", "")) in asked.memory.view:
        return Moved(f"/doc/{doc_id}", {"did": done.label})
    return Moved(f"/receipt/{done.label}")


def by_hand(asked: Asked) -> Moved:
    """Add, edit, pin or free a fact as a person does; then show it where it stands."""
    memory, text = asked.memory, asked.form.get("text", "")
    if asked.address.startswith("/add"):
        done = memory.write(asked.form.get("doc", ""), text)
    else:
        seq = site.seq_of(asked.form.get("seq", ""))
        place = memory.view.entry(seq)
        is_pinned = place is not None and place.entry.pinned
        done = memory.edit(seq, text) if asked.address.startswith("/edit") else memory.pin(seq, not is_pinned)
    row = done.rows[-1]
    place = memory.view.entry(row.seq)
    line = place.start_line if place else 1
    return Moved(f"/doc/{row.now}", {"did": done.label, "from": line if line > site.PAGE else ""}, f"L{line}")


def decide(asked: Asked) -> Moved:
    """Approve or reject an item of the review, or a line of one."""
    wanted, word = [asked.form.get("item", "")], asked.form.get("word", "")
    if word not in ("approve", "reject"):
        raise UsageError("say approve or reject")
    asked.memory.decide(**{word: wanted})
    return Moved("/review")


def forgetting(asked: Asked, said: str = "") -> Page:
    """Show what would be forgotten with a line, exactly."""
    name = (asked.form or asked.query).get("seq", "")
    going = asked.memory.forget([site.seq_of(name)], dry_run=True)
    digest = sha256(repr((going.rows, going.files, going.records)).encode()).hexdigest()
    shown = {"seq": name, "said": said, "words": f"forget {name}", "digest": digest}
    return Page("forgetting.html", results.forgotten_json(going, planned=True), shown)


def forget(asked: Asked) -> Page:
    """Forget what was shown, if the words are typed and the same would still go."""
    preview = forgetting(asked)
    if asked.form.get("shown") != preview.shown["digest"]:
        return forgetting(asked, "Something changed meanwhile: this is what would go now.")
    if asked.form.get("typed", "").strip() != preview.shown["words"]:
        return forgetting(asked, f"Nothing was forgotten: type “{preview.shown['words']}” to do it.")
    done = asked.memory.forget([int(preview.shown["seq"])])
    return Page("forgotten.html", results.forgotten_json(done), {"done": done})


def asking(asked: Asked) -> Page:
    """Show the form of a question; to ask it takes a POST, since that may spend tokens."""
    return Page("ask.html", {"answer": None}, _question(asked, asked.query.get("q", ""), asked.moment))


def ask(asked: Asked) -> Page:
    """Show an answer with its evidence, of now or as of a day."""
    question, days = asked.form.get("q", ""), moments(asked)
    at = whole(asked.form.get("at"))
    moment = "" if at is None or at >= len(days) else days[at]
    reader = asked.site.reader(moment)
    found = reader.ask(question)
    view = reader.view
    cited = [
        (one, [site.fact(view, p) for seq in one.seqs if (p := view.entry(seq))]) for one in found.citations
    ]
    shown = {
        **_question(asked, question, moment),
        "found": found,
        "cited": cited,
        "quoted": asked.memory.llm.name == "offline",
    }
    return Page("ask.html", results.answer_json(found), shown)


def moments(asked: Asked) -> list[str]:
    """Return the days at which the library stood otherwise than on the next one, the oldest first."""
    return sorted({one.time[:10] for one in recorded(asked.memory.view).receipts})


def _question(asked: Asked, question: str, moment: str) -> dict[str, Any]:
    days = moments(asked)
    at = days.index(moment) if moment in days else len(days)
    return {"question": question, "moments": days, "at": at, "found": None, "day_asked": moment}
