"""What each page shows, and what forms do: only by POST is the library changed, or are tokens spent.

A document is shown as blocks to read: headings, facts with the lines that they superseded, what people wrote.
Every line that says something stands in one; in what people wrote, HTML, links and images are text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from html import escape
from itertools import combinations, groupby
from math import cos, pi, sin
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from infinimem import results, tokens
from infinimem.errors import LibraryError, UsageError
from infinimem.hooks.recall import Recall
from infinimem.index.search import searcher
from infinimem.markdown.characters import visible
from infinimem.markdown.document import Document
from infinimem.markdown.signature import text_start
from infinimem.model import Located, Receipt
from infinimem.operations.history import history
from infinimem.operations.provenance import Lineage, recorded, session_of, successor
from infinimem.operations.review import CODES, awaiting
from infinimem.operations.undo import dependents_of, undone_by
from infinimem.store.plans import by_name, topic_names
from infinimem.store.receipts import FORGET, RENAME, named
from infinimem.store.spec import ARCHIVE, EVIDENCE, JOURNAL
from infinimem.store.view import View, archive_of
from infinimem.strategies.base import Linked
from infinimem.terms import Analyzer, analyzer
from infinimem.tools import Toolbox
from infinimem.tools.tool import numbered, scope_of
from infinimem.user_folders import is_mine
from infinimem.web.site import Asked, Moved, Page, called, number, seq_of

LATELY = 6  # changes and lines on the home page
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
WIDTH, RADIUS = 900, 270  # of the drawing, in its own units
PAGE = 400  # lines of a document on a page
AROUND = 3  # turns before and after one that are shown with it
_LONGEST = 50_000  # characters that are set as Markdown at once: a table of 400 kB takes seconds
_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")
_MARKDOWN.disable(["html_block", "html_inline", "link", "image", "autolink", "reference", "entity"])
_MARKDOWN.disable(["heading", "lheading"])  # they are blocks of their own


def told(found: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the result of a tool; raise LibraryError if it is an error."""
    if "error" in found:
        raise LibraryError(str(found["error"]))
    return found


def home(asked: Asked) -> Page:
    """Show what there is, what changed lately, what waits."""
    memory, view = asked.memory, asked.memory.view
    status = memory.status()
    stamps = view.stored.stamps if view.stored and not view.initialised else {}
    saved = sorted(stamps, key=lambda doc_id: -stamps[doc_id].mtime_ns)[:LATELY]
    shown = {
        "receipts": [(one, results.summary(one)) for one in recorded(view).latest(LATELY)[::-1]],
        "newest": [fact(place) for place in view.buffer.entries[: -LATELY - 1 : -1]],
        "saved": [view.row(doc_id) for doc_id in saved],
        "awaiting": status["lines_awaiting_review"] + status.get("inbox", {"lines": 0})["lines"],
        "tokens": sum(one["tokens_in"] + one["tokens_out"] for one in status["spent"].values()),
        "conversations": len(view.owned(EVIDENCE)),
    }
    return Page("home.html", status, shown)


def topics(asked: Asked) -> Page:
    """List documents."""
    found = told(asked.reader.tools.list_docs(offset=asked.start - 1, limit=LISTED))
    return Page("topics.html", found, {"start": asked.start, "step": LISTED})


def document(asked: Asked) -> Page | Moved:
    """Show a document as prose, one of the evidence as a conversation."""
    view = asked.reader.view
    found = view.document(view.resolve(asked.path["id"]))
    if found.id.startswith(JOURNAL):
        return Moved(f"/receipt/{found.id.removeprefix(JOURNAL)}")
    start = asked.start
    said = found.id.startswith(EVIDENCE) and not view.is_note(found.id)
    gone = found.id.startswith(ARCHIVE)
    records = recorded(view)
    places = found.entries_in(start, start + PAGE - 1)
    lines_of = {
        "former": None if said or gone else records.superseded,
        "drawn": records.drawn if said else None,
    }
    facts = {place.start_line: fact(place, **lines_of) for place in places}
    headings = [one.title for one in found.headings[:1] if one.level == 1]  # of a note without a title
    shown = {
        "title": called(found.id, found.title or "".join(headings)),
        "summary": found.summary,
        "blocks": blocks(found, start, facts),
        "start": start,
        "step": PAGE,
        "is_note": view.is_note(found.id),
        "archive": archive_of(found.id) if archive_of(found.id) in view and not gone else "",
    }
    lines = told(Toolbox(lambda: view).read_lines(doc_id=found.id, start=start))  # also what awaits approval
    return Page("conversation.html" if said else "document.html", lines, shown)


def line(asked: Asked) -> Page:
    """Show where a line comes from, what happened to it, what replaced it."""
    view, seq = asked.reader.view, seq_of(asked.path["seq"])
    events = history(view, seq)
    place = view.entry(seq)
    moves = [event for event in events if event.event == "receipt" and event.seq == seq]
    records = recorded(view)
    steps = records.steps(seq)
    shown = {
        "fact": fact(place, records.superseded, records.drawn) if place else None,
        "seq": seq,
        "turns": [(turn, around(view, turn.seq)) for turn in events if turn.event == "said"],
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
            at = hit["start_line"]
            reasons = (parts for doc_id, a, b, parts in why if doc_id == hit["doc_id"] and a <= at <= b)
            found.append({**hit, "lines": first, "rest": rest, "why": next(reasons, None)})
    shown = {"query": query, "scope": scope, "scopes": SCOPES, "chosen": chosen, "counts": counts}
    return Page("search.html", data, {**shown, "found": found})


def _lines_of(view: View, hit: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the lines of a hit, with what the facets ask of each: its entries, or a text's own lines."""
    doc = view.document(hit["doc_id"])
    if hit["seqs"]:
        facts = (fact(place) for place in map(view.entry, hit["seqs"]) if place)
        lines = [vars(one) | {"year": (one.when or one.time)[:4]} for one in facts]
    else:
        own = {"seq": 0, "source": "", "speaker": "", "year": ""}
        lines = [own | {"text": text, "line": number} for number, text in numbered(hit) if text.strip()]
    return [one | {"document": doc.id} for one in lines]


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
    view = asked.reader.view
    every = recorded(view).receipts
    found = [one for one in every[::-1] if not about or about in [name for name, *_ in one.files]]
    changed = {name for one in every for name, *_ in one.files}
    topics = [(doc_id, called(doc_id, view.row(doc_id).title)) for doc_id in view.ids() if doc_id in changed]
    some = found[start - 1 : start - 1 + LISTED]
    days = [
        (day, [(one, results.summary(one)) for one in of])
        for day, of in groupby(some, lambda one: one.time[:10])
    ]
    shown = {"days": days, "about": about, "start": start, "step": LISTED, "total": len(found)}
    return Page("timeline.html", results.log_json(some), {**shown, "topics": topics})


def receipt(asked: Asked) -> Page:
    """Show what one transaction did, line by line, and whether it can be taken back."""
    view = asked.memory.view
    records = recorded(view)
    one = named(records.receipts, asked.path["name"])
    changes = list(_changes(one, records))
    shown = {
        "receipt": one,
        "summary": results.summary(one),
        "changes": changes[:ROWS],
        "left_out": len(changes) - ROWS,
        "undo": undoing(asked, one),
    }
    return Page("receipt.html", results.receipt_json(one) or {}, shown)


def undoing(asked: Asked, one: Receipt) -> Mapping[str, Any]:
    """Return whether a receipt can be taken back, from a page of now, and which later ones would go, too."""
    every = recorded(asked.memory.view).receipts
    by = undone_by(every).get(one.label, "")
    can = asked.site.forms and not (asked.moment or by or one.op in (FORGET, RENAME))
    later = [other.id for other in dependents_of(one, every)] if can else []
    return {"receipt": one.label, "by": by, "can": can, "later": later}


def _changes(one: Receipt, records: Lineage) -> Iterator[dict[str, Any]]:
    """Yield what a receipt did to each line, and how that reads: by where the lines went, as a reader would
    ask. `other` is the line that stands for one that was replaced, or how one read before it was edited."""
    for row in sorted(one.rows, key=lambda row: (row.now in ("", "-"), row.now)):
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
    found = told(asked.reader.tools.list_docs(offset=start - 1, limit=LISTED, scope="evidence"))
    shown = {"start": start, "step": LISTED, "count": len(ids)}
    rows = list(sessions(view, ids[start - 1 : start - 1 + LISTED]))
    return Page("conversations.html", found, {**shown, "sessions": rows})


def recall(asked: Asked) -> Page:
    """Show what hooks would put before a model for a prompt in a folder; nothing counts as shown by it."""
    prompt, folder = asked.query.get("prompt", ""), asked.query.get("cwd", "") or str(Path.cwd())
    recalled = Recall(asked.memory).preview(prompt, folder)
    count, trusted = tokens.count(recalled["text"]), is_mine(asked.memory.library.root)
    shown = {"prompt": prompt, "folder": folder, "count": count, "trusted": trusted}
    return Page("recall.html", recalled, shown)


def graph(asked: Asked) -> Page:
    """Draw what belongs together: the links that the strategy keeps, else topics by names that they share."""
    memory = asked.memory
    if isinstance(memory.strategy, Linked):
        about = asked.query.get("about") or None
        data = memory.strategy.graph(memory.view, about, 2).data
    else:
        data = _topics(memory.view)
    places = {node["id"]: _place(at, len(data["nodes"])) for at, node in enumerate(data["nodes"])}
    lines = [{**link, "a": places[link["from"]], "b": places[link["to"]]} for link in data["links"]]
    names = {node["id"]: node["label"] for node in data["nodes"]}
    near: dict[str, list[dict[str, Any]]] = {}
    for link in data["links"]:
        near.setdefault(link["from"], []).append({**link, "other": link["to"]})
        near.setdefault(link["to"], []).append({**link, "other": link["from"]})
    drawing = {"places": places, "lines": lines, "width": WIDTH, "height": 2 * RADIUS + 120}
    return Page("map.html", data, {**drawing, "names": names, "near": near})


def _topics(view: View) -> dict[str, Any]:
    """Return topics and the names that two of them share, in the shape of the command `graph`."""
    found = view.derived(topic_names)
    most = max(2, len(found) // 2)
    shared: dict[tuple[str, str], list[str]] = {}
    for name, topics in sorted(by_name(found).items()):
        if 2 <= len(topics) <= most:
            for pair in combinations(sorted(topics)[:NODES], 2):
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
    """Take a receipt back; then show the receipt of that."""
    if not (name := asked.form.get("receipt", "")):  # the newest may be another than was looked at
        raise UsageError("say which receipt: its name")
    done = asked.memory.undo(name, "together" in asked.form)
    return Moved(f"/receipt/{done[-1].label}")


def decide(asked: Asked) -> Moved:
    """Approve or reject an item of the review, or a line of one."""
    wanted, word = [asked.form.get("item", "")], asked.form.get("word", "")
    if word not in ("approve", "reject"):
        raise UsageError("say approve or reject")
    asked.memory.decide(**{word: wanted})
    return Moved("/review")


def forgetting(asked: Asked) -> Page:
    """Show what would be forgotten with a line, exactly."""
    return _preview(asked, asked.query.get("seq", ""))


def forget(asked: Asked) -> Page:
    """Forget what was shown, if the words are typed and the same would still go."""
    name = asked.form.get("seq", "")
    preview = _preview(asked, name)
    if asked.form.get("shown") != preview.shown["digest"]:
        return _preview(asked, name, "Something changed meanwhile: this is what would go now.")
    if asked.form.get("typed", "").strip() != preview.shown["words"]:
        return _preview(asked, name, f"Nothing was forgotten: type “{preview.shown['words']}” to do it.")
    done = asked.memory.forget([seq_of(name)])
    return Page("forgotten.html", results.forgotten_json(done), {"done": done})


def _preview(asked: Asked, name: str, said: str = "") -> Page:
    going = asked.memory.forget([seq_of(name)], dry_run=True)
    digest = sha256(repr((going.rows, going.files, going.records)).encode()).hexdigest()
    shown = {"seq": name, "said": said, "words": f"forget {name}", "digest": digest}
    return Page("forgetting.html", results.forgotten_json(going, planned=True), shown)


def asking(asked: Asked) -> Page:
    """Show the form of a question; to ask it takes a POST, since that may spend tokens."""
    return Page("ask.html", {"answer": None}, _question(asked, asked.query.get("q", ""), asked.moment))


def ask(asked: Asked) -> Page:
    """Show an answer with its evidence, of now or as of a day."""
    question, days = asked.form.get("q", ""), moments(asked)
    at = number(asked.form.get("at", ""), len(days))
    moment = days[at] if at < len(days) else ""
    reader = asked.site.reader(moment)
    found = reader.ask(question)
    cited = [(one, [fact(p) for seq in one.seqs if (p := reader.view.entry(seq))]) for one in found.citations]
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


# ── documents to read ───────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Fact:
    """A signed line, with what it superseded and what that had superseded (the newest first), and of a turn
    the lines that were drawn from it."""

    seq: int
    text: str
    doc_id: str
    line: int
    time: str
    when: str
    speaker: str
    source: str
    role: str
    signature: str
    former: tuple[Fact, ...] = ()
    drawn: tuple[Fact, ...] = ()


@dataclass(frozen=True)
class Block:
    """What stands together: a heading, whose level on the page is below that of its title, 1; or facts; or
    what people wrote, as HTML."""

    line: int = 0
    title: str = ""
    level: int = 2
    facts: tuple[Fact, ...] = ()
    html: str = ""


LinesOf = Callable[[int], Sequence[Located]]
"""Gives lines by one that they were drawn from, or that stands for them."""


def fact(place: Located, former: LinesOf | None = None, drawn: LinesOf | None = None) -> Fact:
    """Show a line; `former` and `drawn` are what provenance's `superseded` and `drawn` give."""
    entry = place.entry
    first = entry.line.partition("\n")[0]
    return Fact(
        entry.seq,
        entry.text,
        place.doc_id,
        place.start_line,
        entry.time or "",
        entry.fields.get("when", ""),
        entry.fields.get("speaker", ""),
        entry.source,
        entry.role,
        first[: text_start(first)].strip(),
        tuple(map(fact, _before(place, former))) if former else (),
        tuple(map(fact, drawn(place.seq))) if drawn else (),
    )


def _before(place: Located, former: LinesOf) -> list[Located]:
    """Return what a line superseded, and what that had; a person may have written a circle."""
    found, ahead = {place.seq: place}, [place.seq]
    while ahead:
        older = [one for one in former(ahead.pop()) if one.seq not in found]
        found |= {one.seq: one for one in older}
        ahead += [one.seq for one in older]
    del found[place.seq]
    return sorted(found.values(), key=lambda one: -one.seq)


def blocks(document: Document, start: int, facts: Mapping[int, Fact]) -> list[Block]:
    """Return the blocks of a page of a document that begins at line `start`; `facts` are its signed lines, by
    the number of their first one."""
    headings = {heading.line: heading for heading in document.headings}
    end = min(start + PAGE - 1, len(document.lines))
    found: list[Block] = []
    run: list[str] = []
    inside = 0  # the last line of the fact or heading that is being passed

    def close(after: int) -> None:
        if any(run):
            found.append(Block(html=_html(run, after - len(run))))
        run.clear()

    for at in range(max(start, document.header_end + 1), end + 1):
        if at <= inside:
            continue
        if one := facts.get(at):
            close(at)
            inside = at + one.text.count("\n")
            before = found.pop().facts if found and found[-1].facts else ()
            found.append(Block(facts=(*before, one)))
        elif heading := headings.get(at):
            close(at)
            inside = at + heading.rows - 1
            found.append(Block(at, heading.title, min(heading.level + 1, 6)))
        else:
            run.append(visible(document.text_line(at), turned=False))
    close(end + 1)
    return found


def _html(lines: Sequence[str], first: int) -> str:
    """Set lines as Markdown, or as they are where Markdown leaves out some of their words (a cell too many);
    what begins at a line, the first of which is given, is called after it."""
    text = "\n".join(lines)
    tokens = _MARKDOWN.parse(text) if len(text) <= _LONGEST else []
    begins: dict[int, Token] = {}
    for token in tokens:
        token.attrs.pop("style", None)  # the pages' policy allows none
        if token.type == "fence":
            token.content, token.info = f"{token.info.strip()}\n{token.content}".lstrip("\n"), ""
        line = first + token.map[0] if token.map else 0
        if line and token.type != "inline":
            token.attrSet("dir", "auto")
            begins.setdefault(line, token).attrSet("id", f"L{line}")
        for child in token.children or ():
            if child.type in ("softbreak", "hardbreak"):
                line += 1
                ends = "<br>" if child.type == "hardbreak" else ""
                child.type, child.content = "html_inline", f'{ends}\n<span id="L{line}"></span>'
    shown = "".join(token.content + token.info * (token.type == "list_item_open") for token in tokens)
    if not tokens or [*filter(str.isalnum, shown)] != [*filter(str.isalnum, text)]:
        return f'<pre dir="auto" id="L{first}">{escape(text)}</pre>'
    return str(_MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {}))


def around(view: View, seq: int) -> tuple[Fact, ...]:
    """Return a turn with those before and after it in its document."""
    place = view.entry(seq)
    if place is None:
        return ()
    turns = view.document(place.doc_id).entries
    at = next(n for n, one in enumerate(turns) if one.seq == seq)
    return tuple(
        fact(one, drawn=recorded(view).drawn) for one in turns[max(0, at - AROUND) : at + AROUND + 1]
    )


def sessions(view: View, ids: Sequence[str]) -> Iterator[dict[str, object]]:
    """Yield conversations, each with who spoke, when, and how many of its turns were drawn from."""
    records = recorded(view)
    for doc_id in ids:
        turns = view.document(doc_id).entries
        speakers = dict.fromkeys(one.entry.fields.get("speaker") or one.entry.source for one in turns)
        yield {
            "id": doc_id,
            "session": (session_of(turns[0], view) if turns else "") or doc_id.removeprefix(EVIDENCE),
            "time": turns[0].entry.time if turns else "",
            "first": turns[0].text if turns else "",
            "speakers": list(speakers),
            "turns": len(turns),
            "drawn": sum(bool(records.drawn(one.seq)) for one in turns),
        }
