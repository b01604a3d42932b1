"""One document laid out: under which heading each incoming line goes, and what the document's summary says.

A line that comes in goes under the title of its topic, by rule. Only where a section becomes crowded a model
is asked to part it; it is shown that section and the other headings, and each line about once. Lines that it
forgets keep their place. `apply` turns laid-out documents and claims into one plan, in which every line that
comes in has exactly one move.

Source: Infini Memory, algorithm 1, lines 17-23, and prompts D and M2, as references instead of text. The
paper has a model rewrite and sum up each document that receives lines; that took four fifths of the tokens of
keeping a memory. A rule's summary names what the whole document holds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from infinimem.markdown.characters import clean_text, one_line
from infinimem.model import CURRENT, Derived, Entry, Located, Move, Plan, Reason, Why
from infinimem.spec import load
from infinimem.store.view import View
from infinimem.strategies.infini.compare import Claim, allowed
from infinimem.strategies.infini.plan import Route
from infinimem.strategies.infini.spec import InfiniSettings
from infinimem.strategies.infini.tasks import LAYOUT
from infinimem.strategies.infini.topics import (
    Topic,
    ask_groups,
    brief,
    clean_title,
    entries_of,
    fact,
    heading_of,
    joined,
    movable,
    packed,
    sections,
    seqs_of,
    shown,
)
from infinimem.strategies.records.asking import Asker

Fact = dict[str, str | None]

FEW = 4
"""Facts of a document that no model is asked to arrange anew."""
CROWDED = 30
"""Facts of a section from which it is parted."""


@dataclass(frozen=True)
class Target:
    """A document and what comes into it; where it holds prose its headings are a person's (`fixed`)."""

    doc_id: str
    title: str
    summary: str
    places: tuple[Located, ...]
    topics: tuple[Topic, ...]
    fixed: bool = False

    @property
    def incoming(self) -> tuple[Entry, ...]:
        return entries_of(self.topics)

    @cached_property
    def standing(self) -> Mapping[int, str]:
        """The heading of each line that stands in it."""
        return {place.entry.seq: heading_of(place) for place in self.places}

    @cached_property
    def spelling(self) -> Mapping[str, str]:
        """Its headings as they are written, by their folded form."""
        return {title.casefold(): title for title in self.standing.values() if title}


@dataclass(frozen=True)
class Laid:
    """A target, laid out: the headings of all lines that move, and its summary."""

    headings: Mapping[int, str]
    summary: str
    notes: tuple[str, ...] = ()


def target(view: View, route: Route) -> Target:
    """The route's document as it stands, with what is routed to it."""
    if route.doc_id not in view:
        return Target(route.doc_id, route.title, "", (), route.topics)
    document = view.document(route.doc_id)
    return Target(
        route.doc_id, route.title, document.summary, movable(document, view), route.topics, document.has_prose
    )


def plain(target: Target) -> Laid:
    """The layout that asks no one: what comes in under its topics' titles, the rest as it stands."""
    headings = {
        entry.seq: target.spelling.get(topic.title.casefold(), topic.title)
        for topic in target.topics
        for entry in topic.entries
    }
    named = dict.fromkeys([*(topic.title for topic in sections(target.places)), *headings.values()])
    return Laid(headings, target.summary or ", ".join(title for title in named if title) or target.title)


def lay_out(target: Target, gone: Collection[int], view: View, asker: Asker, *, anew: bool = False) -> Laid:
    """Put what comes in under headings by rule, and ask about crowded sections, or `anew` about all."""
    settings = view.settings.of(InfiniSettings)
    before = [place for place in target.places if place.entry.seq not in gone]
    topics = [
        Topic(topic.title, tuple(entry for entry in topic.entries if entry.seq not in gone))
        for topic in target.topics
    ]
    ruled = load(LAYOUT.rule)(
        {
            **_question(target, sections(before), tell=fact),
            "incoming": [shown(topic) for topic in topics if topic.entries],
            "summary_length": settings.summary_length,
        }
    )
    entries = {entry.seq: entry for entry in (*(p.entry for p in before), *entries_of(topics))}
    whole = [
        Topic(item["heading"], tuple(entries[seq] for seq in seqs_of(item["fact_ids"], entries)))
        for item in ruled["layout"]
    ]
    headings = {entry.seq: topic.title for topic in whole for entry in topic.entries}
    notes: list[str] = []
    if not target.fixed:
        crowded = [topic for topic in whole if (anew and len(entries) > FEW) or _crowded(topic, target)]
        lines = [Topic(topic.title, (entry,)) for topic in crowded for entry in topic.entries]
        for chunk in packed(lines, settings.markdown_length):
            asked = _question(
                target, joined(chunk), headings.values(), tell=lambda entry: {**brief(entry), "time": None}
            )
            found, wrong = _parted(asked, target, {e.seq for e in entries_of(chunk)}, asker)
            headings |= found
            notes += (f"layout of {target.doc_id}: {reason}" for reason in wrong)
    moved = {
        seq: heading
        for seq, heading in headings.items()
        if seq not in target.standing or target.standing[seq].casefold() != heading.casefold()
    }
    return Laid(moved, ruled["summary"] or plain(target).summary, tuple(notes))


def _crowded(topic: Topic, target: Target) -> bool:
    """Whether a section has grown by what comes in to so many lines, or as many again."""
    stood = sum(entry.seq in target.standing for entry in topic.entries)
    return len(topic.entries) // CROWDED > stood // CROWDED


def _parted(
    asked: Mapping[str, object], target: Target, known: Collection[int], asker: Asker
) -> tuple[dict[int, str], Sequence[Reason]]:
    """The headings that a model names for these lines, and what is wrong with its reply."""
    groups, wrong = ask_groups(asker, LAYOUT, asked, known)
    found: dict[int, str] = {}
    for item, seqs in groups:
        title = clean_title(item["heading"])
        if heading := target.spelling.get(title.casefold(), title):
            found |= dict.fromkeys(seqs, heading)
    return found, wrong


def _question(
    target: Target, whole: Sequence[Topic], headings: Iterable[str] = (), *, tell: Callable[[Entry], Fact]
) -> dict[str, object]:
    """The document as LAYOUT is told of it: these sections with their lines, the headings of all others."""
    parts: list[dict[str, object]] = [
        {"heading": topic.title, "facts": [tell(entry) for entry in topic.entries]} for topic in whole
    ]
    told = {topic.title for topic in whole}
    bare = dict.fromkeys([*(heading_of(place) for place in target.places), *headings])
    parts += [{"heading": title, "facts": []} for title in bare if title and title not in told]
    return {"doc": {"id": target.doc_id, "title": target.title, "sections": parts}}


_WHY: dict[str, Why] = {"split": "split", "merge": "merged"}


def apply(
    op: str,
    targets: Sequence[Target],
    claims: Iterable[Claim],
    view: View,
    asker: Asker,
    notes: Iterable[str] = (),
) -> Plan:
    """Lay out every target and propose the whole as one plan, with these claims."""
    claims = list(claims)
    gone = {claim.seq for claim in claims}
    laid = [(target, lay_out(target, gone, view, asker, anew=op == "rebuild")) for target in targets]
    return compose(op, laid, claims, view, notes)


def compose(
    op: str,
    laid: Sequence[tuple[Target, Laid]],
    claims: Iterable[Claim],
    view: View,
    notes: Iterable[str] = (),
) -> Plan:
    """The plan that layouts and claims come to; each survivor comes into a target or stands in a document."""
    moves: dict[int, Move] = {}
    home: dict[int, tuple[str, str]] = {}
    said = {claim.seq: claim for claim in claims}
    for target, layout in laid:
        incoming = {entry.seq for entry in target.incoming}
        home |= {place.entry.seq: (target.doc_id, heading_of(place)) for place in target.places}
        for seq, heading in layout.headings.items():
            home[seq] = (target.doc_id, heading)
            why = _WHY.get(op, "moved") if seq in incoming else "moved"
            moves[seq] = Move(seq, target.doc_id, heading, why)
    for claim in said.values():
        if claim.by not in home and (place := view.entry(claim.by)) is not None:
            home[claim.by] = (place.doc_id, heading_of(place))
    for claim in said.values():  # a line that came into no target goes where its survivor is
        home.setdefault(claim.seq, home[claim.by])
        place = view.entry(claim.seq)
        if place is not None and place.doc_id == CURRENT:
            moves.setdefault(claim.seq, Move(claim.seq, *home[claim.seq]))
    held, withheld = allowed(said.values(), moves, view)
    for claim in held:
        moves[claim.seq] = Move(claim.seq, home[claim.by][0], home[claim.seq][1], claim.why, claim.by)
    said_of = [*notes, *(note for _, layout in laid for note in layout.notes), *map(str, withheld)]
    gone = {claim.seq for claim in held}
    return Plan(
        op,
        moves=tuple(moves.values()),
        derived=tuple(found for target, layout in laid if (found := _described(target, layout, gone, view))),
        notes=tuple(dict.fromkeys(one_line(clean_text(note)) for note in said_of)),
        withheld=tuple(withheld),
    )


def _described(target: Target, layout: Laid, gone: set[int], view: View) -> Derived | None:
    """The summary, with the lines that it describes; and the title of a document that is new."""
    seqs = {place.entry.seq for place in target.places} | {entry.seq for entry in target.incoming}
    title = "" if target.doc_id in view else target.title
    return Derived(target.doc_id, layout.summary, tuple(sorted(seqs - gone)), title) if seqs - gone else None
