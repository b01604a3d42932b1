"""One document laid out: under which heading each incoming line goes, and what the document's summary says.

The model is shown the document whole, or, where that would be too long for one call, its headings only. For a
new document of a few facts it is not asked: the task's rule puts them under their topics' titles and sums
them up. Where lines stand already, what comes in may outdate them, which only a model can tell.
Lines that it forgets keep their place, or go under the title of the topic that they came with. `apply`
turns laid-out documents and claims into one plan, in which every line that comes in has exactly one move.

Source: Infini Memory, algorithm 1, lines 17-23, and prompts D and M2, as references instead of text.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from infinimem import tokens
from infinimem.markdown.characters import clean_text, one_line
from infinimem.model import CURRENT, Derived, Entry, Located, Move, Plan, Reason, Why
from infinimem.store.view import View
from infinimem.strategies.infini.asking import Asker, Data, by_rule
from infinimem.strategies.infini.plan import Route
from infinimem.strategies.infini.rewrite import Claim, allowed, problems, sorted_out
from infinimem.strategies.infini.spec import InfiniSettings
from infinimem.strategies.infini.tasks import LAYOUT
from infinimem.strategies.infini.topics import (
    Topic,
    clean_title,
    entries_of,
    fact,
    heading_of,
    movable,
    packed,
    sections,
    shown,
    size,
)

FEW = 4
"""Facts of a new document that no model is asked to arrange."""


@dataclass(frozen=True)
class Target:
    """A document and what comes into it.

    Args:
        places: the lines that stand in it and stay.
        topics: what comes in.
        fixed: whether its headings are a person's to arrange (it holds prose).
    """

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
    """A target, laid out.

    Args:
        headings: seq to heading, for every line that moves: all that come in, and those that stand in the
            document under another heading now.
        summary: what the document is about.
    """

    headings: Mapping[int, str]
    summary: str
    claims: tuple[Claim, ...] = ()
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


def lay_out(target: Target, view: View, asker: Asker) -> Laid:
    """Ask for the layout, in several calls if more comes in than one can hold.

    Raises:
        ModelUnavailable: nothing is laid out.
    """
    base = plain(target)
    shows = _shown_whole(target, view)
    headings: dict[int, str] = {}
    claims: list[Claim] = []
    notes: list[str] = []
    summary = ""
    for chunk in packed(target.topics, view.settings.of(InfiniSettings).markdown_length) or [[]]:
        known = {entry.seq for entry in (*(place.entry for place in shows), *entries_of(chunk))}

        def check(data: Data, known: Collection[int] = known) -> list[Reason]:
            return problems(data, "layout", known, view)

        asked = _question(target, shows, chunk, headings.values(), view)
        few = not target.places and len(target.incoming) <= FEW
        reply, wrong = asker.ask(LAYOUT, asked, check) if not few else (by_rule(LAYOUT, asked), ())
        notes += [f"layout of {target.doc_id}: {reason}" for reason in wrong]
        if (data := reply.data) is None:
            continue
        placed, said, _ = sorted_out(data, "layout", known)
        claims += () if few else said  # sorting has looked for repetitions among these already
        for item, seqs in zip(data["layout"], placed, strict=True):
            title = clean_title(item["heading"])
            heading = target.spelling.get(title.casefold(), title)
            if heading and not target.fixed:
                headings |= {seq: heading for seq in sorted(seqs) if target.standing.get(seq) != heading}
        summary = _clipped(data["summary"], view.settings.of(InfiniSettings).summary_length) or summary
    rest = {seq: heading for seq, heading in base.headings.items() if seq not in headings}
    return Laid({**headings, **rest}, summary or base.summary, tuple(claims), tuple(notes))


def _shown_whole(target: Target, view: View) -> tuple[Located, ...]:
    """The lines of the document that the model is shown: all, or none where that would be too long."""
    total = size(place.entry for place in target.places) + size(target.incoming)
    return target.places if total <= view.settings.of(InfiniSettings).markdown_length else ()


def _question(
    target: Target, shows: Sequence[Located], topics: Sequence[Topic], headings: Iterable[str], view: View
) -> dict[str, object]:
    """The variables of LAYOUT.

    Args:
        shows: lines of the document that are shown; where there are none, its headings stand alone.
        topics: what comes in, in this call.
        headings: those that earlier calls for this document made.
    """
    parts: list[dict[str, object]] = [
        {"heading": topic.title, "facts": [fact(entry) for entry in topic.entries]}
        for topic in sections(shows)
    ]
    listed = {part["heading"] for part in parts}
    bare = dict.fromkeys([*(heading_of(place) for place in target.places), *headings])
    parts += [{"heading": title, "facts": []} for title in bare if title and title not in listed]
    return {
        "doc": {"id": target.doc_id, "title": target.title, "summary": target.summary, "sections": parts},
        "incoming": [shown(topic) for topic in topics],
        "summary_length": str(view.settings.of(InfiniSettings).summary_length),
    }


def _clipped(summary: str, limit: int) -> str:
    """A summary on one line, cut after a whole word to at most `limit` tokens."""
    words = one_line(clean_text(summary)).split()
    text = " ".join(words[:limit])
    while words and tokens.count(text) > limit:
        text = text.rpartition(" ")[0]
    return text


_WHY: dict[str, Why] = {"split": "split", "merge": "merged"}


def apply(
    op: str,
    targets: Sequence[Target],
    claims: Iterable[Claim],
    view: View,
    asker: Asker,
    notes: Iterable[str] = (),
) -> Plan:
    """Lay out every target and propose the whole as one plan.

    Args:
        op: "consolidate", "split" or "merge".
        targets: documents with what comes into them; no line comes in twice.
        claims: what is known of lines that are in no target: each survivor is in one.

    Raises:
        ModelUnavailable: nothing is proposed.
    """
    return compose(op, [(target, lay_out(target, view, asker)) for target in targets], claims, view, notes)


def compose(
    op: str,
    laid: Sequence[tuple[Target, Laid]],
    claims: Iterable[Claim],
    view: View,
    notes: Iterable[str] = (),
) -> Plan:
    """The plan that the layouts and claims come to. Asks no model."""
    moves: dict[int, Move] = {}
    home: dict[int, tuple[str, str]] = {}
    said = {claim.seq: claim for _, layout in reversed(laid) for claim in reversed(layout.claims)}
    said |= {claim.seq: claim for claim in claims}
    for target, layout in laid:
        incoming = {entry.seq for entry in target.incoming}
        home |= {place.entry.seq: (target.doc_id, heading_of(place)) for place in target.places}
        for seq, heading in layout.headings.items():
            home[seq] = (target.doc_id, heading)
            why = _WHY.get(op, "moved") if seq in incoming else "moved"
            moves[seq] = Move(seq, target.doc_id, heading, why)
    for claim in said.values():  # a line that came into no target goes where its survivor is
        home.setdefault(claim.seq, home[claim.by])
        place = view.entry(claim.seq)
        if place is not None and place.doc_id == CURRENT:
            moves.setdefault(claim.seq, Move(claim.seq, *home[claim.seq]))
    held, withheld = allowed(said.values(), moves, view)
    for claim in held:
        moves[claim.seq] = Move(claim.seq, home[claim.by][0], home[claim.seq][1], claim.why, claim.by)
    said_of = [
        *notes,
        *(note for _, layout in laid for note in layout.notes),
        *map(str, withheld),
    ]
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
