"""Documents laid out and described, split and merged, and told anew.

A line that comes in goes under the title of its topic, by rule. Only where a section becomes crowded a model
is asked to part it; it is shown that section and the other headings, and each line about once. Lines that it
forgets keep their place. `apply` turns laid-out documents and claims into one plan, in which every line that
comes in has exactly one move, and has what changed summed up: a summary is derived text, of the rule where a
model gives none. A document that holds a person's prose, or whose header cannot be read, is left alone.

Source: Infini Memory, algorithm 1, lines 17-31, prompts D and M2, as references instead of text.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property

from infinimem import tokens
from infinimem.llm.shown import shown as line_of
from infinimem.markdown.characters import clean_text, one_line
from infinimem.markdown.document import Document
from infinimem.markdown.header import quote
from infinimem.markdown.signature import format_seqs, parse_seqs
from infinimem.model import CURRENT, Derived, Entry, Located, Move, Plan, Put, Reason, Why
from infinimem.spec import load
from infinimem.store.render import HEADER_KEYS
from infinimem.store.spec import STANDING, TOPICS
from infinimem.store.view import CatalogRow, View
from infinimem.strategies.base import Outcome, Rejected
from infinimem.strategies.infini import topics as of
from infinimem.strategies.infini.compare import allowed, near_groups
from infinimem.strategies.infini.plan import Planner, Route
from infinimem.strategies.infini.spec import InfiniSettings
from infinimem.strategies.infini.tasks import LAYOUT, MERGE, SUMMARIZE, SUMMARIZE_ALL, TELL
from infinimem.strategies.infini.topics import (
    INBOX,
    PORTION,
    Account,
    Topic,
    entries_of,
    heading_of,
    size,
    title_of,
)
from infinimem.strategies.readers.shown import current_text, digest, text_id
from infinimem.terms import query_terms

FEW = 4
"""Facts of a document that no model is asked to arrange anew, or to sum up: its rule quotes them."""
CROWDED = 30
"""Facts of a section from which it is parted."""
SECTIONS = 50
"""Sections of a document that one split takes on: each may become a document of its own."""
TOGETHER = 10
"""Groups that one plan merges, documents that one tells: what is lost if the model fails before the last."""
SHOWN = 12
"""Headings of a document by which a model sums it up, besides what the rule says of it."""

Maintenance = Generator[Plan, Outcome, View]
"""Plans as a strategy yields them; returns the library as it is afterwards."""


@dataclass(frozen=True)
class Target:
    """A document and what comes into it; where it holds prose its headings are a person's (`fixed`).
    Once it is laid out it has a summary, and the headings of the lines that move."""

    doc_id: str
    title: str
    places: tuple[Located, ...]
    topics: tuple[Topic, ...]
    fixed: bool = False
    summary: str = ""
    headings: Mapping[int, str] = field(default_factory=dict)

    @property
    def incoming(self) -> tuple[Entry, ...]:
        return entries_of(self.topics)

    @cached_property
    def standing(self) -> Mapping[int, str]:
        """The heading of each line that stands in it."""
        return {place.seq: heading_of(place) for place in self.places}

    def left(self, gone: Collection[int]) -> list[Entry]:
        """Its lines and those that come in, without some."""
        return [e for e in (*(place.entry for place in self.places), *self.incoming) if e.seq not in gone]


def target(view: View, route: Route) -> Target:
    """The route's document as it stands, with what is routed to it."""
    if route.doc_id not in view:
        return Target(route.doc_id, route.title, (), route.topics)
    document = view.document(route.doc_id)
    places = of.movable(document, view)
    return Target(route.doc_id, route.title, places, route.topics, document.has_prose)


# ── layout ──────────────────────────────────────────────────────────────────────────────────────


def lay_out(target: Target, gone: Collection[int], view: View, asker: Account | None, op: str) -> Target:
    """Put what comes in under headings by rule, and ask about crowded sections, or in a rebuild about all."""
    settings = view.settings.of(InfiniSettings)
    entries = {entry.seq: entry for entry in target.left(gone)}
    sections, incoming = (
        [
            {name: topic.title, "facts": [of.fact(entry) for entry in topic.entries if entry.seq in entries]}
            for topic in topics
        ]
        for name, topics in (("heading", of.sections(target.places)), ("title", target.topics))
    )
    doc = {"id": target.doc_id, "title": target.title, "sections": sections}
    ruled = load(LAYOUT.rule)({"doc": doc, "incoming": incoming, "summary_length": settings.summary_length})
    whole = [
        Topic(row["heading"], tuple(entries[seq] for seq in of.seqs_of(row["fact_ids"], entries)))
        for row in ruled["layout"]
    ]
    headings = {entry.seq: topic.title for topic in whole for entry in topic.entries}
    if asker and settings.maintenance and not target.fixed:
        anew = op == "rebuild" and len(entries) > FEW
        crowded = [topic for topic in whole if anew or _crowded(topic, target)]
        spelling = {title.casefold(): title for title in target.standing.values()}
        lines = [Topic(topic.title, (entry,)) for topic in crowded for entry in topic.entries]
        for chunk in of.packed(lines, settings.markdown_length):
            asked = _question(target, of.joined(chunk), headings.values())
            groups, wrong = of.ask_groups(asker, LAYOUT, asked, {e.seq for e in entries_of(chunk)})
            for group in groups or ():
                title = of.clean_title(group.item["heading"])
                if heading := spelling.get(title.casefold(), title):
                    headings |= dict.fromkeys(group.seqs, heading)
            asker.note(*(f"layout of {target.doc_id}: {reason}" for reason in wrong))
    moved = {
        seq: heading
        for seq, heading in headings.items()
        if seq not in target.standing or target.standing[seq].casefold() != heading.casefold()
    }
    return replace(target, headings=moved, summary=ruled["summary"] or target.title)


def _crowded(topic: Topic, target: Target) -> bool:
    """Whether a section has grown by what comes in to so many lines, or as many again."""
    stood = sum(entry.seq in target.standing for entry in topic.entries)
    return len(topic.entries) // CROWDED > stood // CROWDED


def _question(target: Target, whole: Sequence[Topic], headings: Iterable[str]) -> dict[str, object]:
    """The document as LAYOUT is told of it: these sections with their lines, the headings of all others."""
    parts: list[dict[str, object]] = [
        {"heading": topic.title, "facts": [{**of.brief(entry), "time": None} for entry in topic.entries]}
        for topic in whole
    ]
    told = {topic.title for topic in whole}
    bare = dict.fromkeys([*target.standing.values(), *headings])
    parts += [{"heading": title, "facts": []} for title in bare if title and title not in told]
    return {"doc": {"id": target.doc_id, "title": target.title, "sections": parts}}


def _summed_up(targets: Sequence[Target], gone: Collection[int], view: View, asker: Account) -> list[Target]:
    """The targets with summaries of a model, several a call; the rule's where it gives none, and a note."""
    settings = view.settings.of(InfiniSettings)
    is_paper = settings.summary == "paper"
    most = 0 if is_paper else FEW
    docs: list[dict[str, object]] = []
    for target in targets if settings.summary != "rule" else ():
        if len(left := target.left(gone)) > most:
            names = dict.fromkeys(filter(None, {**target.standing, **target.headings}.values()))
            told = [", ".join([*names][:SHOWN]), target.summary]
            lines = [line_of(of.brief(entry)) for entry in left] if is_paper else [*filter(None, told)]
            doc = {"id": target.doc_id, "title": target.title, "summary": target.summary}
            docs.append({**doc, "told": [f"{target.doc_id}: {target.title}", *lines]})
    task = SUMMARIZE_ALL if is_paper else SUMMARIZE
    asked = {"summary_length": str(settings.summary_length)} if is_paper else {}
    summaries: dict[str, str] = {}
    for part in tokens.packed(docs, settings.plan_split_threshold, lambda doc: tokens.count(line_of(doc))):
        data, wrong = asker.ask_checked(task, {"docs": part, **asked}, lambda _: ())
        given = {item["id"]: item["summary"] for item in data["summaries"]} if data else {}
        for name in (str(doc["id"]) for doc in part):
            text = " ".join(one_line(clean_text(given.get(name, ""))).split())
            if text:
                summaries[name] = of.cut(text, settings.summary_length)[0].strip()
            else:
                reason = wrong[0] if wrong else Reason("EMPTY")
                asker.note(f"summary of {name}: {reason}; the rule's stands")
    return [replace(target, summary=summaries.get(target.doc_id, target.summary)) for target in targets]


_WHY: dict[str, Why] = {"split": "split", "merge": "merged"}


def apply(
    op: str,
    targets: Sequence[Target],
    claims: Sequence[Move],
    view: View,
    asker: Account,
    *,
    asks: bool = True,
) -> Plan:
    """Lay out and sum up every target and propose the whole as one plan, with these claims: each survivor
    comes into a target or stands in a document. Unless it `asks`, rules do it."""
    gone = {move.seq for move in claims}
    targets = [lay_out(target, gone, view, asker if asks else None, op) for target in targets]
    targets = _summed_up(targets, gone, view, asker) if asks else targets
    moves: dict[int, Move] = {}
    home: dict[int | None, tuple[str, str]] = {}
    for target in targets:
        incoming = {entry.seq for entry in target.incoming}
        home |= {seq: (target.doc_id, heading) for seq, heading in target.standing.items()}
        for seq, heading in target.headings.items():
            home[seq] = (target.doc_id, heading)
            why = _WHY.get(op, "moved") if seq in incoming else "moved"
            moves[seq] = Move(seq, target.doc_id, heading, why)
    for move in claims:
        if move.by not in home and (place := view.entry(move.by or 0)) is not None:
            home[move.by] = (place.doc_id, heading_of(place))
    for move in claims:  # a line that came into no target goes where its survivor is
        home.setdefault(move.seq, home[move.by])
        place = view.entry(move.seq)
        if place is not None and place.doc_id == CURRENT:
            moves.setdefault(move.seq, Move(move.seq, *home[move.seq]))
    held, withheld = allowed(claims, moves, view)
    for move in held:
        moves[move.seq] = replace(move, to=home[move.by][0], heading=home[move.seq][1])
    asker.withhold(withheld)
    gone = {move.seq for move in held}
    derived = []
    for target in targets:  # with the title of a document that is new
        if seqs := sorted({entry.seq for entry in target.left(gone)}):
            title = "" if target.doc_id in view else target.title
            derived.append(Derived(target.doc_id, target.summary, tuple(seqs), title))
    return Plan(op, moves=tuple(moves.values()), derived=tuple(derived))


# ── split ───────────────────────────────────────────────────────────────────────────────────────


def split(view: View, asker: Account) -> Maintenance:
    """A plan for each document that is too long; one that is refused is left for the next time."""
    limit = view.settings.of(InfiniSettings).markdown_length
    for row in view.catalog(folder=TOPICS):
        if row.tokens > limit and row.id in view and may_change(row.id, view):
            plan = split_plan(row.id, view, asker)
            if plan is not None:
                outcome = yield plan
                view = outcome.view
    return view


def split_plan(doc_id: str, view: View, asker: Account) -> Plan | None:
    """The document in parts, None if it is but one line; its name stays with the part of that title, else the
    largest.

    Of one that is far too long the first lines leave, and the others stay where they are until the next
    time.
    """
    document = view.document(doc_id)
    if len(document.entries) < 2:
        return None
    title = title_of(doc_id, view)
    limit = view.settings.of(InfiniSettings).markdown_length
    topics: Sequence[Topic] = of.sections(document.entries, title)
    most = sum(len(topic.entries) for topic in topics[:SECTIONS])
    topics, rest = of.cut_at(topics, min(most, of.fitting(entries_of(topics), PORTION * limit)))
    planner = Planner(view, asker, offer=False)
    parts = [
        Route("", chunk[0].title if number else route.title, tuple(chunk))
        for route in planner.route(topics)
        for number, chunk in enumerate(_fitting(route.topics, limit))
    ]
    targets = []
    if rest:
        asker.note(f"{len(entries_of(rest))} lines stay in {doc_id}: too many for one go")
    else:
        if len(parts) < 2:
            parts = [Route("", half[0].title, tuple(half)) for half in of.halves(topics)]
        namesakes = [part for part in parts if of.slugify(part.title) == of.slugify(title)]
        stays = max(namesakes or parts, key=lambda part: size(entries_of(part.topics)))  # the first of equals
        parts.remove(stays)
        kept = {entry.seq for entry in entries_of(stays.topics)}
        places = tuple(place for place in document.entries if place.seq in kept)
        targets.append(replace(target(view, Route(doc_id, title, ())), places=places))
    slugs = of.Slugs(view)
    targets += [target(view, replace(part, doc_id=slugs.new(part.title))) for part in parts]
    return apply("split", targets, (), view, asker)


def _fitting(topics: Sequence[Topic], limit: int) -> list[list[Topic]]:
    """The topics, cut until no part is longer than `limit` tokens or has but one line."""
    chunks = of.packed(topics, limit)
    if len(chunks) > 1:
        return [part for chunk in chunks for part in _fitting(chunk, limit)]
    lines = entries_of(topics)
    if size(lines) <= limit or len(lines) < 2:
        return chunks
    return [part for half in of.halves(topics) for part in _fitting(half, limit)]


# ── merge ───────────────────────────────────────────────────────────────────────────────────────


def merge(view: View, asker: Account) -> Maintenance:
    """Plans for groups of small documents that belong together, several a plan, for a plan costs more than a
    group.

    Those of a plan that is refused are tried one by one.
    """
    settings = view.settings.of(InfiniSettings)
    small = [
        row
        for row in view.catalog(folder=TOPICS)
        if row.tokens < settings.merge_max_tokens and row.id != INBOX and may_change(row.id, view)
    ]
    every = settings.merge_frequency
    turn = every > 0 and view.epoch > 0 and view.epoch % every == 0
    if not (turn or len(small) > settings.merge_trigger_min_count):
        return view
    groups = merge_groups(small, view, asker)
    for at in range(0, len(groups), TOGETHER):
        merged = [
            merge_target(group, view)
            for group in groups[at : at + TOGETHER]
            if all(doc_id in view and may_change(doc_id, view) for doc_id in group)
        ]
        if not merged:
            continue
        outcome = yield apply("merge", merged, (), view, asker)
        view = outcome.view
        for one in merged if isinstance(outcome, Rejected) and len(merged) > 1 else ():
            view = (yield apply("merge", [one], (), view, asker)).view
    return view


def merge_groups(small: Sequence[CatalogRow], view: View, asker: Account) -> list[tuple[str, ...]]:
    """Groups as the model proposes them, as far as they hold: known ids, each once, a body that fits.

    Those whose titles and summaries are alike come into one call, before all others.
    Source: algorithm 1, lines 26 and 27 (SmallSimilarDocs, SelectMergeGroups).
    """
    settings = view.settings.of(InfiniSettings)
    groups: list[tuple[str, ...]] = []
    used: set[str] = set()
    words = [sorted(query_terms(f"{title_of(row.id, view)}\n{row.summary}")) for row in small]
    alike = near_groups(words, max(settings.merge_group_max - 1, 0), range(len(small)))
    order = dict.fromkeys([*(at for group in alike for at in group), *range(len(small))])
    calls = tokens.packed(
        [small[at] for at in order],
        settings.plan_split_threshold,
        lambda row: tokens.count(row.id) + tokens.count(row.summary) + 16,
    )
    for batch in (rows for rows in calls if len(rows) > 1):
        rows = {row.id: row for row in batch}
        reply = asker.complete(MERGE, {"docs": [of.listed(row, view) for row in batch]})
        items = reply.data["groups"] if reply.data is not None else ()
        unknown = [doc_id[:60] for item in items for doc_id in item["doc_ids"] if doc_id not in rows]
        asker.reject(MERGE, reply, [Reason("UNKNOWN", (), ", ".join(unknown[:10]))] if unknown else ())
        for item in items:
            free = [doc_id for doc_id in dict.fromkeys(item["doc_ids"]) if doc_id in rows.keys() - used]
            group = tuple(free[: settings.merge_group_max])
            if len(group) > 1 and sum(rows[doc_id].tokens for doc_id in group) <= settings.markdown_length:
                groups.append(group)
                used.update(group)
    return groups


def merge_target(group: Sequence[str], view: View) -> Target:
    """The oldest document of a group, with all lines of the others."""
    survivor, *others = sorted(group, key=lambda doc_id: (_created(doc_id, view), doc_id))
    topics = [
        topic
        for doc_id in others
        for topic in of.sections(view.document(doc_id).entries, title_of(doc_id, view))
    ]
    return target(view, Route(survivor, title_of(survivor, view), of.joined(topics)))


def _created(doc_id: str, view: View) -> str:
    """When the document was made; one that does not say is taken for the youngest."""
    created = view.document(doc_id).header.values.get("created_time")
    return created if isinstance(created, str) and created else "~"


def may_change(doc_id: str, view: View) -> bool:
    """Whether all of the document is the program's: lines that may move, under a header of its own keys."""
    if not doc_id.startswith(TOPICS) or doc_id == STANDING or doc_id in view.derived(_mixed):
        return False
    document = view.document(doc_id) if view.lines.doubled else None
    return document is None or len(of.movable(document, view)) == len(document.entries)


def _mixed(view: View, known: frozenset[str] | None, changed: Collection[str] | None) -> frozenset[str]:
    """Topics in which there is something that is not the program's."""
    if known is None or changed is None:
        known, changed = frozenset(), view.below(TOPICS)
    due = {doc_id for doc_id in changed if doc_id.startswith(TOPICS)}
    return known - due | {doc_id for doc_id in due if doc_id in view and _is_mixed(view.document(doc_id))}


def _is_mixed(document: Document) -> bool:
    """Whether it holds a person's text, or a header that is not the program's or cannot be read."""
    header = document.header
    foreign = document.has_prose or document.unsigned or document.malformed
    return bool(foreign or header.problem is not None or header.values.keys() - HEADER_KEYS)


# ── documents in a model's own words ────────────────────────────────────────────────────────────


def retell(view: View, asker: Account, most: int | None = None) -> Maintenance:
    """Plans that tell documents whose text is not current, so many at most, and delete texts of those gone.

    A text is a record in topics.free/, derived and made anew at will: no line of a topic comes of it. Where
    the document only grew, the model is shown its text and the lines that are new, as in the paper; else all
    lines. A reply that cannot be used leaves the text as it was, which is not current then: readers show the
    lines. Source: section 3.3 and prompt D (RewriteDoc).
    """
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
        told = {text_id(view, one): _told(view.document(one), view, asker) for one in due[:TOGETHER]}
        puts = [*gone, *(Put(name, text) for name, text in told.items() if text)]
        view = (yield Plan("retell", records=tuple(puts))).view
        due, gone = due[TOGETHER:], []
    return view


def _told(document: Document, view: View, asker: Account) -> str | None:
    """A document's text anew; None if there is no usable reply."""
    entries = {place.seq: place.entry for place in document.entries}
    name, known, grew = text_id(view, document.id), set[int](), False
    if name in view:
        values = view.document(name).header.values
        with suppress(ValueError):  # whoever edited it
            known = set(parse_seqs(str(values.get("from"))))
        grew = known < entries.keys() and values.get("digest") == digest(document, known)
    fresh = [of.fact(entry) for seq, entry in entries.items() if not (grew and seq in known)]
    text = view.document(name).body.strip() if grew else ""
    asked = {"title": of.title_of(document.id, view), "text": text, "facts": fresh}
    data, wrong = asker.ask_checked(TELL, asked, lambda _: ())
    lines, cited, heading = list[str](), set[int](), ""
    for item in data["sentences"] if data else ():
        # none can be taken for an entry, a heading or a list of seqs
        said = " ".join(one_line(clean_text(item["text"])).split()).lstrip(" >#-<").rstrip(" {}")
        title, seqs = of.clean_title(item.get("heading") or ""), of.seqs_of(item["from"], entries)
        if said and title and title != heading:
            heading = title
            lines.append(f"# {heading}")
        if said:
            cited.update(seqs)
            named = ", ".join(map(str, dict.fromkeys(seqs)))
            lines.append(f"- {said} {{{named}}}" if named else f"- {said}")
    if not lines:
        asker.note(f"text of {document.id}: {wrong[0] if wrong else 'EMPTY'}; its lines are shown")
        return None
    if left := sorted(entries.keys() - cited):
        asker.note(f"text of {document.id}: names no line {format_seqs(left)}")
    head = [f"id: {quote(name)}", "kind: text", f"digest: {digest(document)}"]
    return "\n".join(["---", *head, f"from: {quote(format_seqs(sorted(entries)))}", "---", *lines, ""])
