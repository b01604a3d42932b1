"""Documents written and maintained, in the order of algorithm 1: each laid out and summed up, then long ones
split, small ones merged; and, with `rewrite = "free"`, told anew.

A line that comes in goes under the title of its topic, by rule. Only where a section becomes crowded a model
is asked to part it. `write` turns documents and claims into one plan, in which every line that comes in has
exactly one move. A document that holds a person's prose, or whose header cannot be read, is left alone.

Source: Infini Memory, algorithm 1, lines 17-31, prompts D and M2, as references instead of text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Any

from infinimem import tokens
from infinimem.llm.base import Task
from infinimem.llm.tasks import IDS, MAYBE, TEXT, list_of, object_of, task
from infinimem.llm.tasks import shown as line_of
from infinimem.markdown.characters import clean_text, one_line
from infinimem.markdown.document import Document
from infinimem.markdown.header import quote
from infinimem.markdown.signature import format_seqs, parse_seqs
from infinimem.model import Derived, Move, Plan, Put, Reason, Why
from infinimem.spec import load
from infinimem.store.plans import foreign_keys
from infinimem.store.spec import STANDING, TOPICS
from infinimem.store.view import CatalogRow, View
from infinimem.strategies.base import Outcome
from infinimem.strategies.infini import topics as of
from infinimem.strategies.infini.plan import Planner, Route, listed, near_groups
from infinimem.strategies.infini.spec import InfiniSettings
from infinimem.strategies.infini.topics import Account, Topic, entries_of, title_of
from infinimem.strategies.readers.pipeline import current_text, digest, text_id
from infinimem.strategies.records.asking import named
from infinimem.terms import query_terms

FEW = 4
"""Facts of a document that no model is asked to arrange anew, or to sum up: its rule quotes them."""
CROWDED = 30
"""Facts of a section from which it is parted."""
TOGETHER = 10
"""Groups that one plan merges, documents that one tells: what is lost if the model fails before the last."""
SHOWN = 12
"""Headings of a document by which a model sums it up, besides what the rule says of it."""

Maintenance = Generator[Plan, Outcome, View]
"""Plans as a strategy yields them; returns the library as it is afterwards."""

_WHY: dict[str, Why] = {"split": "split", "merge": "merged"}

LAYOUT = task("layout", "doc problems", 4096, "where:layout", layout=list_of(heading=TEXT, fact_ids=IDS))
"""The crowded sections of a document parted under headings (prompts D and M2).
`doc`: {"id", "title", "sections": [{"heading", "facts"}]}, facts only of what is to be parted."""

MERGE = task("merge", "docs", 1024, "where:merge", groups=list_of(doc_ids=IDS, reason=TEXT))
"""Which small documents belong together (prompt M1). `docs`: [doc, …]."""

SUMMARIZE = Task(
    "summarize",
    frozenset({"docs"}),
    object_of(summaries=list_of(id=TEXT, summary=TEXT)),
    f"{__name__}:keep_summaries",
)
"""What documents hold (the headers of prompts B and D). `docs`: [doc, …], "told" by lines of each; "summary"
is the rule's."""

SUMMARIZE_ALL = replace(SUMMARIZE, variables=frozenset({"docs", "summary_length"}))
"""The same as in the paper: keywords, then the facts."""

TELL = Task(
    "tell",
    frozenset({"title", "text", "facts", "problems"}),
    object_of(sentences=list_of(("heading",), heading=MAYBE, text=TEXT, **{"from": IDS})),
    f"{__name__}:quote_facts",
    8192,
)
"""A document in a model's own words (prompt D): `text` as it stands, Markdown whose items end in the ids of
their facts ("{41, 43}"), with `facts` worked into it. A sentence without "heading" stands under that of the
one before it."""


def write(
    op: str, routes: Sequence[Route], claims: Sequence[Move], view: View, asker: Account, *, asks: bool = True
) -> Plan:
    """Lay out and sum up the document of every route and propose the whole as one plan, with these claims:
    each survivor comes into a document or stands in one. Unless it `asks`, rules do it."""
    gone = {move.seq for move in claims}
    arriving = {entry.seq for route in routes for entry in entries_of(route.topics)}
    pages = [_Page(route, arriving, gone, view) for route in routes]
    for page in pages:
        page.lay_out(asker if asks else None, op)
    if asks:
        _sum_up(pages, view.settings.of(InfiniSettings), asker)
    moves: dict[int, Move] = {}
    home: dict[int | None, tuple[str, str]] = {}
    for page in pages:
        home |= {seq: (page.id, heading) for seq, heading in {**page.standing, **page.headings}.items()}
        for seq, heading in page.headings.items():
            moves[seq] = Move(seq, page.id, heading, _WHY.get(op, "moved") if seq in arriving else "moved")
    for move in sorted(claims, key=lambda move: move.seq not in arriving):
        if move.by not in home and (place := view.entry(move.by or 0)) is not None:
            home[move.by] = (place.doc_id, of.heading_of(place))
        heading = home.get(move.seq, home[move.by])[1]
        moves[move.seq] = Move(move.seq, home[move.by][0], heading, move.why, move.by)
    derived = (
        Derived(page.id, page.summary, tuple(sorted(page.left)), "" if page.id in view else page.title)
        for page in pages
        if page.left
    )
    return Plan(op, moves=tuple(moves.values()), derived=tuple(derived))


class _Page:
    """A document as it will be: what stands in it and stays, and what comes in."""

    def __init__(self, route: Route, arriving: Collection[int], gone: Collection[int], view: View) -> None:
        self.id, self.title, self._topics = route.doc_id, route.title, route.topics
        document = view.document(self.id) if self.id in view else Document.empty(self.id)
        self._places = [place for place in of.movable(document, view) if place.seq not in arriving]
        self.standing = {place.seq: of.heading_of(place) for place in self._places}
        lines = (*(place.entry for place in self._places), *entries_of(route.topics))
        self.left = {entry.seq: entry for entry in lines if entry.seq not in gone}
        self._may_part = not document.has_prose  # else its headings are a person's
        self._settings = view.settings.of(InfiniSettings)
        self.summary, self.headings = "", dict[int, str]()

    def lay_out(self, asker: Account | None, op: str) -> None:
        """Put what comes in under headings by rule, and ask about crowded sections, or of a rebuild all."""
        sections = self._rows("heading", of.sections(self._places))
        asked = {
            "doc": {"id": self.id, "title": self.title, "sections": sections},
            "incoming": self._rows("title", self._topics),
            "summary_length": self._settings.summary_length,
        }
        ruled = load(LAYOUT.rule)(asked)
        whole = [
            Topic(row["heading"], tuple(self.left[seq] for seq in named(row["fact_ids"], self.left)))
            for row in ruled["layout"]
        ]
        headings = {entry.seq: topic.title for topic in whole for entry in topic.entries}
        if asker and self._settings.maintenance and self._may_part:
            anew = op == "rebuild" and len(self.left) > FEW
            lines = list[Topic]()
            for topic in whole:  # which are asked about once so many lines, or as many again, came in
                stood = sum(entry.seq in self.standing for entry in topic.entries)
                if anew or len(topic.entries) // CROWDED > stood // CROWDED:
                    lines += (Topic(topic.title, (entry,)) for entry in topic.entries)
            spelling = {title.casefold(): title for title in self.standing.values()}
            for topics in map(of.joined, of.packed(lines, self._settings.markdown_length)):
                parts: list[dict[str, Any]] = [
                    {"heading": topic.title, "facts": [{**of.brief(e), "time": None} for e in topic.entries]}
                    for topic in topics
                ]
                told = {"", *(topic.title for topic in topics)}
                bare = dict.fromkeys([*self.standing.values(), *headings.values()])
                parts += ({"heading": title, "facts": []} for title in bare if title not in told)
                doc = {"id": self.id, "title": self.title, "sections": parts}
                seqs = {entry.seq for entry in entries_of(topics)}
                groups, wrong = asker.ask_groups(LAYOUT, {"doc": doc}, seqs)
                asker.note(*(f"layout of {self.id}: {reason}" for reason in wrong))
                for group in groups or ():
                    title = of.clean_title(group["heading"])
                    if heading := spelling.get(title.casefold(), title):
                        headings |= dict.fromkeys(group["seqs"], heading)
        self.headings = {
            seq: heading
            for seq, heading in headings.items()
            if seq not in self.standing or self.standing[seq].casefold() != heading.casefold()
        }
        self.summary = ruled["summary"] or self.title

    def _rows(self, name: str, topics: Iterable[Topic]) -> list[dict[str, Any]]:
        return [
            {name: topic.title, "facts": [of.fact(e) for e in topic.entries if e.seq in self.left]}
            for topic in topics
        ]


def _sum_up(pages: Sequence[_Page], settings: InfiniSettings, asker: Account) -> None:
    """Give documents a model's summary, several a call; the rule's stands where it gives none."""
    is_paper, docs = settings.summary == "paper", list[dict[str, Any]]()
    due = {f"D{at}": page for at, page in enumerate(pages, 1) if len(page.left) > (0 if is_paper else FEW)}
    for key, page in due.items() if settings.summary != "rule" else ():
        names = dict.fromkeys(filter(None, {**page.standing, **page.headings}.values()))
        told = [", ".join([*names][:SHOWN]), page.summary]
        lines = [line_of(of.brief(entry)) for entry in page.left.values()] if is_paper else filter(None, told)
        doc = {"id": key, "title": page.title, "summary": page.summary}
        docs.append({**doc, "told": [f"{key}: {page.title}", *lines]})
    task = SUMMARIZE_ALL if is_paper else SUMMARIZE
    asked = {"summary_length": str(settings.summary_length)} if is_paper else {}
    for part in tokens.packed(docs, settings.plan_split_threshold, lambda doc: tokens.count(line_of(doc))):
        data, wrong = asker.ask_checked(task, {"docs": part, **asked}, lambda _: ())
        given = {item["id"]: item["summary"] for item in data["summaries"]} if data else {}
        for key in (doc["id"] for doc in part):
            if text := " ".join(one_line(clean_text(given.get(key, ""))).split()):
                kept = of.cut(text, settings.summary_length)[0].strip()
                if kept != text and kept[-1] not in ".!?…。！？":
                    kept = kept.rpartition("; ")[0] or kept.rpartition(" ")[0] or kept
                due[key].summary = kept
            else:
                asker.note(f"summary of {due[key].id}: {[*wrong, Reason('EMPTY')][0]}; the rule's stands")


def split(view: View, asker: Account) -> Maintenance:
    """A plan for each document that is too long; one that is refused is left for the next time."""
    limit = view.settings.of(InfiniSettings).markdown_length
    for row in view.catalog(folder=TOPICS):
        if row.tokens > limit and row.id in view and may_change(row.id, view):
            routes = _parts(row.id, limit, view, asker)
            if routes:
                view = (yield write("split", routes, (), view, asker)).view
    return view


def _parts(doc_id: str, limit: int, view: View, asker: Account) -> list[Route]:
    """Return the document in parts, none if it is but one line; the part of its title keeps its name."""
    entries, title = view.document(doc_id).entries, title_of(doc_id, view)
    if len(entries) < 2:
        return []
    topics = of.sections(entries, title)
    parts = [
        Route("", chunk[0].title if number else route.title, tuple(chunk))
        for route in Planner(view, asker, offer=False).route(topics)
        for number, chunk in enumerate(_fitting(route.topics, limit))
    ]
    if len(parts) < 2:
        parts = [Route("", half[0].title, tuple(half)) for half in of.halves(topics)]
    namesakes = [part for part in parts if of.slugify(part.title) == of.slugify(title)]
    parts.remove(max(namesakes or parts, key=lambda part: of.size(entries_of(part.topics))))
    given = set[str]()
    others = (Route(of.new_id(part.title, view, given), part.title, part.topics) for part in parts)
    return [Route(doc_id, title, ()), *others]


def _fitting(topics: Sequence[Topic], limit: int) -> list[list[Topic]]:
    """The topics, cut until no part is longer than `limit` tokens or has but one line."""
    chunks = of.packed(topics, limit)
    if len(chunks) == 1:
        lines = entries_of(topics)
        if of.size(lines) <= limit or len(lines) < 2:
            return chunks
        chunks = of.halves(topics)
    return [part for chunk in chunks for part in _fitting(chunk, limit)]


def merge(view: View, asker: Account) -> Maintenance:
    """Yield plans for groups of small documents that belong together, several a plan."""
    settings = view.settings.of(InfiniSettings)
    small = [
        row
        for row in view.catalog(folder=TOPICS)
        if row.tokens < settings.merge_max_tokens and row.id != of.INBOX and may_change(row.id, view)
    ]
    every = settings.merge_frequency
    turn = every > 0 and view.epoch > 0 and view.epoch % every == 0
    groups = _groups(small, view, asker) if turn or len(small) > settings.merge_trigger_min_count else []
    for at in range(0, len(groups), TOGETHER):
        there = (group for group in groups[at : at + TOGETHER] if all(may_change(i, view) for i in group))
        routes = list[Route]()
        for group in there:
            header = {doc_id: view.document(doc_id).header.values for doc_id in group}
            first, *rest = sorted(group, key=lambda one: (str(header[one].get("created_time") or "~"), one))
            parts = (of.sections(view.document(doc_id).entries, title_of(doc_id, view)) for doc_id in rest)
            routes.append(Route(first, title_of(first, view), of.joined(chain.from_iterable(parts))))
        if routes:
            view = (yield write("merge", routes, (), view, asker)).view
    return view


def _groups(small: Sequence[CatalogRow], view: View, asker: Account) -> list[list[str]]:
    """Return groups as the model proposes them, as far as they hold: known ids, each once, a body that
    fits. Those whose titles and summaries are alike come into one call, before all others
    (SmallSimilarDocs)."""
    settings = view.settings.of(InfiniSettings)
    groups: list[list[str]] = []
    used: set[str] = set()
    words = [sorted(query_terms(f"{title_of(row.id, view)}\n{row.summary}")) for row in small]
    alike = near_groups(words, range(len(small)))
    order = dict.fromkeys([*(at for group in alike for at in group), *range(len(small))])
    calls = tokens.packed(
        [small[at] for at in order],
        settings.plan_split_threshold,
        lambda row: tokens.count(row.id) + tokens.count(row.summary) + 16,
    )
    for batch in (rows for rows in calls if len(rows) > 1):
        rows = {row.id: row for row in batch}
        reply = asker.complete(MERGE, {"docs": [listed(row, view) for row in batch]})
        items = reply.data["groups"] if reply.data is not None else ()
        unknown = [doc_id[:60] for item in items for doc_id in item["doc_ids"] if doc_id not in rows]
        asker.reject(MERGE, reply, [Reason("UNKNOWN", (), ", ".join(unknown[:10]))] if unknown else ())
        for item in items:
            free = [doc_id for doc_id in dict.fromkeys(item["doc_ids"]) if doc_id in rows.keys() - used]
            group = free[: settings.merge_group_max]
            if len(group) > 1 and sum(rows[doc_id].tokens for doc_id in group) <= settings.markdown_length:
                groups.append(group)
                used.update(group)
    return groups


def may_change(doc_id: str, view: View) -> bool:
    """Whether all of the document is the program's: lines that may move, under a header of its own keys."""
    if doc_id not in view or not doc_id.startswith(TOPICS) or doc_id == STANDING:
        return False
    document = view.document(doc_id)
    foreign = document.has_prose or document.unsigned or document.malformed
    if foreign or document.header.problem is not None or foreign_keys(document):
        return False
    return not view.lines.doubled or len(of.movable(document, view)) == len(document.entries)


# ── documents in a model's own words (section 3.3 and prompt D, RewriteDoc) ──────────────────────


def retell(view: View, asker: Account, most: int | None = None) -> Maintenance:
    """Yield plans that tell documents whose text is not current, so many at most, and delete texts of
    those gone. A reply that cannot be used leaves the text as it was, and readers show the lines."""
    limit = view.settings.of(InfiniSettings).markdown_length
    filled = [row for row in view.catalog(folder=TOPICS) if view.document(row.id).entries]
    live = {text_id(view, row.id) for row in filled}
    texts = {name: view.document(name).header.values.get("kind") for name in view.below(view.spec.texts)}
    gone = [Put(name, None) for name, kind in texts.items() if kind == "text" and name not in live]
    due = [
        row.id
        for row in filled
        if row.tokens <= limit and may_change(row.id, view) and current_text(view, row.id) is None
        if texts.get(text_id(view, row.id), "text") == "text"  # else it is a person's page
    ][:most]
    while due or gone:
        there = [one for one in due[:TOGETHER] if one in view]  # a person may have taken it meanwhile
        told = {text_id(view, one): _told(view.document(one), view, asker) for one in there}
        puts = [*gone, *(Put(name, text) for name, text in told.items() if text)]
        view = (yield Plan("retell", records=tuple(puts))).view
        due, gone = due[TOGETHER:], []
    return view


def _told(document: Document, view: View, asker: Account) -> str | None:
    """Return a document's text anew; None if there is no usable reply. Where it only grew, the model is
    shown its text and the lines that are new, as in the paper; else all lines."""
    entries = {place.seq: place.entry for place in document.entries}
    name, known, text = text_id(view, document.id), set[int](), ""
    if name in view:
        values = view.document(name).header.values
        with suppress(ValueError):  # whoever edited it
            known = set(parse_seqs(str(values.get("from"))))
        if known < entries.keys() and values.get("digest") == digest(document, known):
            text = view.document(name).body.strip()
        else:
            known = set()
    fresh = [of.fact(entry) for seq, entry in entries.items() if seq not in known]
    asked = {"title": title_of(document.id, view), "text": text, "facts": fresh}
    data, wrong = asker.ask_checked(TELL, asked, lambda _: ())
    lines, cited, heading = list[str](), set[int](), ""
    for item in data["sentences"] if data else ():
        # none can be taken for an entry, a heading or a list of seqs
        said = " ".join(one_line(clean_text(item["text"])).split()).lstrip(" >#-<").rstrip(" {}")
        title, seqs = of.clean_title(item.get("heading") or ""), named(item["from"], entries)
        if said and title and title != heading:
            heading = title
            lines.append(f"# {heading}")
        if said:
            cited.update(seqs)
            lines.append(f"- {said} {{{', '.join(map(str, seqs))}}}" if seqs else f"- {said}")
    if not lines:
        asker.note(f"text of {document.id}: {wrong[0] if wrong else 'EMPTY'}; its lines are shown")
        return None
    if left := sorted(entries.keys() - cited):
        asker.note(f"text of {document.id}: names no line {format_seqs(left)}")
    head = [f"id: {quote(name)}", "kind: text", f"digest: {digest(document)}"]
    return "\n".join(["---", *head, f"from: {quote(format_seqs(sorted(entries)))}", "---", *lines, ""])


# ── what the rules answer ───────────────────────────────────────────────────────────────────────


def keep_summaries(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `summarize`: the rule's summaries stand."""
    return {"summaries": [{"id": doc["id"], "summary": doc["summary"]} for doc in variables["docs"]]}


def quote_facts(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `tell`: the text, and the facts word for word behind it."""
    items = re.findall(r"(?:^# (.*)\n)?^- (.*?)(?: \{([0-9, ]+)\})?$", variables["text"], re.MULTILINE)
    old = [{"heading": title, "text": text, "from": ids.split(", ")} for title, text, ids in items]
    return {"sentences": old + [{"text": one["text"], "from": [one["id"]]} for one in variables["facts"]]}
