"""EXTRACT: what was said into standing facts under titles of topics, one plan for each unit that is fed.

Every turn ends up cited by an entry, or marked as empty or as refused: what a model says without support goes
back to it once, then the turn stands for itself. A model that cannot be reached leaves the turns pending, and
so does one that gives no answer of use: its turns are asked about in halves, so that one that it does not
take, or the length of all, keeps no other back; what is left is for the next time.

Source: Infini Memory, section 3.3 and prompt A. The paper groups what was drawn in a later call, as does
`grouping = "rewrite"`; here the model is told the titles that there are, and an entry stands in CURRENT under
the one that it names.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from infinimem import tokens
from infinimem.errors import ModelError
from infinimem.grounding.sentences import sentences
from infinimem.grounding.when import day_of, fits
from infinimem.llm.base import CUT, Failure
from infinimem.llm.parallel import in_order
from infinimem.llm.shown import shown
from infinimem.llm.tasks import turn as shown_turn
from infinimem.markdown.characters import clean_text, normalised, one_line
from infinimem.model import CURRENT, Entry, Located, NewEntry, Plan, Reason
from infinimem.store.spec import INSTRUCTIONS, PREFERENCES, STANDING
from infinimem.store.view import View
from infinimem.strategies.base import Plans, Rejected
from infinimem.strategies.infini import topics as of
from infinimem.strategies.infini.plan import near, open_documents
from infinimem.strategies.infini.spec import InfiniSettings
from infinimem.strategies.infini.tasks import EXTRACT, EXTRACT_ALONE
from infinimem.strategies.infini.topics import heading_of, seqs_of
from infinimem.strategies.records.asking import IN_VAIN, Asker, Data, unreadable
from infinimem.terms import query_terms

CONTEXT_TURNS = 2
REFERS_LENGTH = 200
CLAUSE_WORDS = 3
HALVINGS = 8
"""Askings in a row without an answer of use, after which a unit is left; it takes fewer to find a turn."""
TELLING = 8
"""Words of a turn that no entry holds, from which it is asked about once more."""

_LABEL = re.compile(r"\blabel\s*[=:]\s*[\"']?([\w.-]{1,80})", re.IGNORECASE)
_QUOTED = re.compile(r'"[^"]*"|“[^”]*”')
_SECTIONS = {"instruction": INSTRUCTIONS, "preference": PREFERENCES}


def extract(view: View, new: Sequence[Located], asker: Asker) -> Plans:
    """Yield a plan a unit, in order; a few are asked about side by side, and are durable before the next."""
    settings = view.settings.of(InfiniSettings)
    portions, few = _units(new, settings), max(1, settings.workers)
    in_vain = 0
    while portions and in_vain < IN_VAIN:
        titles = _topic_titles(view, portions[0]) if settings.grouping == "extract" else None
        begun = titles != [] or view.buffer.entries  # else each would make up titles of its own
        side_by_side = [
            _Unit(view, unit, titles, Asker(asker.llm)) for unit in portions[: few if begun else 1]
        ]
        portions = portions[len(side_by_side) :]
        plans = in_order(_Unit.attempt, side_by_side, few)
        for unit, plan in zip(side_by_side, plans, strict=True):
            asker.take(unit.asker)
            if isinstance(plan, ModelError):
                raise plan
            in_vain = 0 if len(plan.unanswered) < len(unit.turns) else in_vain + 1
            outcome = yield plan
            if isinstance(outcome, Rejected):
                notes = [f"extract: {reason}" for reason in outcome.reasons]
                outcome = yield unit.closed((), {place.seq for place in unit.turns}, plan.unanswered, notes)
                if isinstance(outcome, Rejected):
                    return
            view = outcome.view


def _topic_titles(view: View, new: Sequence[Located]) -> list[str]:
    """Return the titles that a model is told: documents', of very many the nearest, and CURRENT's."""
    ids: Collection[str] = open_documents(view)
    if len(ids) > view.settings.of(InfiniSettings).planner_docs:
        ids = [row.id for row in near(view, (place.entry for place in new), ids)]
    waiting = (heading_of(place) for place in view.buffer.entries)
    titles = dict.fromkeys([*(of.title_of(name, view) for name in sorted(ids)), *waiting])
    return [title for title in titles if title]


# ── feeding ─────────────────────────────────────────────────────────────────────────────────────


def _units(turns: Sequence[Located], settings: InfiniSettings) -> list[list[Located]]:
    """Return turns in portions of at most `chunk_tokens`; a turn that is larger stands alone."""
    portions: list[list[Located]] = []
    room = 0
    for turn in turns:
        text = turn.text
        large = tokens.exceeds(text, settings.chunk_tokens)
        length = settings.chunk_tokens + 1 if large else tokens.count(text)
        if not portions or length > room or _begins(turn, portions[-1], settings.feed):
            portions.append([])
            room = settings.chunk_tokens
        portions[-1].append(turn)
        room -= length
    return portions


def _begins(turn: Located, portion: Sequence[Located], feed: str) -> bool:
    """Whether a turn begins a new portion: in an exchange, when its first speaker is back after a reply."""
    if feed != "exchange":
        return feed == "turn"
    who, first, last = (
        place.entry.fields.get("speaker") or place.entry.source for place in (turn, portion[0], portion[-1])
    )
    return turn.doc_id != portion[0].doc_id or (who == first != last)


# ── one unit ────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _Shown:
    """A turn as the model is shown it: all of its text, or the part that fits one call."""

    place: Located
    text: str
    view: View

    @property
    def seq(self) -> int:
        return self.place.seq

    @property
    def origin(self) -> str:
        """The text with the name of who said it: what an entry may draw on."""
        speaker = self.place.entry.fields.get("speaker")
        return f"{speaker}: {self.text}" if speaker else self.text

    @property
    def shown(self) -> dict[str, str | None]:
        entry, session = self.place.entry, self.view.document(self.place.doc_id).header.values.get("session")
        return shown_turn(entry, self.text) | {"session": session, "cwd": entry.fields.get("cwd")}


@dataclass(frozen=True)
class _Drawn:
    """What a reply comes to; `joined` are of two facts, `wrong` is to be mended, `vague` cannot be."""

    entries: tuple[NewEntry, ...] = ()
    joined: tuple[NewEntry, ...] = ()
    wrong: tuple[Reason, ...] = ()
    vague: tuple[Reason, ...] = ()


@dataclass(frozen=True)
class _Unit:
    """Turns that are asked about together; without `titles` no topic is named."""

    view: View
    turns: Sequence[Located]
    titles: Sequence[str] | None
    asker: Asker

    def attempt(self) -> Plan | ModelError:
        """The plan of the unit, or why there is none."""
        try:
            return self._plan()
        except ModelError as error:
            return error

    def _plan(self) -> Plan:
        """Ask about the unit, or about each part of a turn that is larger than a call."""
        limit = self.view.settings.of(InfiniSettings).chunk_tokens
        told = [_Shown(place, place.text, self.view) for place in self.turns if place.text.strip()]
        calls = [told] if told else []
        if len(told) == 1 and tokens.exceeds(told[0].text, limit):
            calls = [[replace(told[0], text=part)] for part in of.cut(told[0].text, limit)]
        entries: list[NewEntry] = []
        refused: set[int] = set()
        unanswered: dict[int, str] = {}
        notes: list[str] = []
        context = self._context()
        in_a_row = 0
        while calls:
            said = calls.pop(0)
            drawn, reasons, unfit, failure = self._ask(said, context)
            in_a_row = in_a_row + 1 if failure else 0
            if failure and in_a_row == HALVINGS:
                calls, said = [], [piece for some in (said, *calls) for piece in some]
            elif failure and len(said) > 1:
                calls[:0] = [said[: len(said) // 2], said[len(said) // 2 :]]
                continue
            entries += drawn
            refused |= unfit
            unanswered |= dict.fromkeys((piece.seq for piece in said), failure) if failure else {}
            notes += (f"extract: {reason}" for reason in reasons)
            context = [] if failure else [piece.shown for piece in said[-1:]]
        entries = [
            entry for entry in entries if unanswered.keys().isdisjoint(entry.origin)
        ]  # parts of a turn
        if _topics(entries) or any(map(heading_of, self.view.buffer.entries)):
            untitled = of.unsorted(self.view)
            entries = [replace(entry, heading=entry.heading or untitled) for entry in entries]
        return self.closed(entries, refused, unanswered, notes)

    def _context(self) -> list[dict[str, str | None]]:
        """The turns of the same session just before; not those that a model does not take."""
        first = self.turns[0]
        if first.doc_id not in self.view:
            return []
        before = [place for place in self.view.document(first.doc_id).entries if place.seq < first.seq]
        taken = (place for place in before[-CONTEXT_TURNS:] if place.seq not in self.view.tried)
        return [shown_turn(place.entry, place.text) for place in taken]

    def closed(
        self,
        entries: Sequence[NewEntry],
        refused: Collection[int],
        unanswered: Mapping[int, str],
        notes: Sequence[str],
    ) -> Plan:
        """The unit's plan: turns that no entry cites are refused, wait for an answer, or hold nothing."""
        cited = {seq for entry in entries for seq in entry.origin}.union(unanswered)
        left = [place.seq for place in self.turns if place.seq not in cited]
        return Plan(
            adds=tuple(entries),
            empty=tuple(seq for seq in left if seq not in refused),
            refused=tuple(seq for seq in left if seq in refused),
            unanswered=unanswered,
            notes=tuple(one_line(clean_text(note)) for note in notes),
        )

    def _ask(
        self, said: Sequence[_Shown], context: Sequence[Mapping[str, str | None]]
    ) -> tuple[list[NewEntry], list[Reason], set[int], Failure | None]:
        """Entries, what is still wrong, turns that are refused, and the failure, if any; of a call or two."""
        around = (*context, *(piece.shown for piece in said))
        people = list(dict.fromkeys(name for turn in around if (name := turn["speaker"])))
        titles, first, problems = self.titles, None, list[Reason]()
        failure: Failure | None = None
        for _ in range(2):
            asked = {"turns": _told(said), "context": context, "problems": [*map(str, problems)]}
            topics = {} if titles is None else {"topics": titles}
            reply = self.asker.complete(EXTRACT if topics else EXTRACT_ALONE, {**asked, **topics})
            if reply.data is None:
                problems, failure = [unreadable(reply)], reply.failure or "EMPTY"
                if failure in CUT and len(said) > 1 and first is None:
                    break
                continue
            drawn = _drawn(reply.data, {piece.seq: piece for piece in said}, people, titles)
            self.asker.reject(EXTRACT, reply, drawn.wrong)
            if first is not None or problems:
                return *_settled(first or _Drawn(), drawn), None
            first = drawn
            problems = [*drawn.wrong, *_left_out(said, drawn)]
            if not problems:
                break
            said = _concerned(said, drawn.wrong, problems) or said
            if titles is not None:
                titles = list(dict.fromkeys([*titles, *_topics(drawn.entries)]))
        if first is None:
            return [], problems, set(), failure
        return *_settled(first, _Drawn()), None


def _topics(entries: Iterable[NewEntry]) -> list[str]:
    """The topics that were named for entries."""
    return [entry.heading for entry in entries if entry.heading and entry.to == CURRENT]


def _concerned(said: Sequence[_Shown], wrong: Sequence[Reason], problems: Sequence[Reason]) -> list[_Shown]:
    """The turns of some problems, with the turns that explain those of which something was wrong."""
    named = {seq for reason in problems for seq in reason.seqs}
    mended = {seq for reason in wrong for seq in reason.seqs}
    return [
        piece
        for at, piece in enumerate(said)
        if piece.seq in named or any(later.seq in mended for later in said[at : at + CONTEXT_TURNS + 1])
    ]


def _settled(first: _Drawn, again: _Drawn) -> tuple[list[NewEntry], list[Reason], set[int]]:
    """Two replies as one: what the second mends is gone from the first."""
    mended = {seq for entry in again.entries for seq in entry.origin}
    texts = {entry.text for entry in again.entries}
    gone = [entry for entry in first.joined if mended.intersection(entry.origin)]
    stands = [entry for entry in first.entries if entry.text not in texts and entry not in gone]
    wrong = [*again.wrong, *(reason for reason in first.wrong if mended.isdisjoint(reason.seqs))]
    refused = {seq for reason in wrong if reason.code in ("UNSUPPORTED", "NO_ORIGIN") for seq in reason.seqs}
    entries = sorted([*stands, *again.entries], key=lambda entry: max(entry.origin))
    heading = ""
    for at, entry in enumerate(entries):
        # what was mended stands under the topic of what was said with it
        if again.entries and not entry.heading:
            entries[at] = replace(entry, heading=heading)
        elif entry.to == CURRENT:
            heading = entry.heading
    return entries, list(dict.fromkeys([*wrong, *first.vague, *again.vague])), refused


def _left_out(said: Sequence[_Shown], drawn: _Drawn) -> list[Reason]:
    """The turns that no entry cites and that tell much of which no entry has a word.

    Of a conversation these are mostly compliments: to ask about them alone took a quarter more tokens and
    gave nothing. So they are asked about with what is wrong besides, or where a model left out most of what
    it read.
    """
    done = {seq for entry in drawn.entries for seq in entry.origin}
    done |= {seq for reason in drawn.wrong for seq in reason.seqs}
    known = {term for entry in drawn.entries for term in query_terms(entry.text)}
    rest = (piece for piece in said if piece.seq not in done)
    left = [piece.seq for piece in rest if len(set(query_terms(piece.text)) - known) >= TELLING]
    return [Reason("LEFT_OUT", tuple(left))] if left and (drawn.wrong or 2 * len(left) > len(said)) else []


def _told(said: Sequence[_Shown]) -> list[dict[str, Any]]:
    """The turns, the day only where it changes."""
    told, day = [], ""
    for row in (piece.shown for piece in said):
        before, day = day, (row["time"] or "")[:10]
        line = shown({**row, "time": None if day == before else day})
        told.append({**row, "told": [part.strip() for part in line.split("\n")]})
    return told


# ── one reply ───────────────────────────────────────────────────────────────────────────────────


def _drawn(
    data: Data, turns: Mapping[int, _Shown], people: Sequence[str], titles: Sequence[str] | None
) -> _Drawn:
    known = {normalised(title): title for title in titles or ()}
    items, heading = data["entries"], ""
    unknown = [name[:20] for item in items for name in item["from"] if not seqs_of([name], turns)]
    wrong = [Reason("UNKNOWN", (), ", ".join(unknown[:10]))] if unknown else []
    entries: list[NewEntry] = []
    vague: list[Reason] = []
    for item in items:
        if titles is not None and (topic := item.get("topic")):
            title = of.clean_title(topic)
            heading = known.setdefault(normalised(title), title) if title else ""
        entry = _read(item, turns, people, heading)
        if isinstance(entry, Reason):
            wrong.append(entry)
            continue
        entries.append(entry)
        if entry.when is None and (when := (item.get("when") or "").strip()):
            vague.append(Reason("IMPLAUSIBLE_WHEN", entry.origin, when[:40]))
    joined = tuple(filter(_joins_facts, entries))
    wrong += (Reason("TWO_FACTS", entry.origin, entry.text[:80]) for entry in joined)
    return _Drawn(tuple(entries), joined, tuple(wrong), tuple(vague))


def _read(item: Data, turns: Mapping[int, _Shown], people: Sequence[str], heading: str) -> NewEntry | Reason:
    """An item of a reply as an entry, or why it is none."""
    text = one_line(clean_text(item["text"])).strip()
    origin = [turns[seq] for seq in dict.fromkeys(seqs_of(item["from"], turns))]
    seqs = tuple(piece.seq for piece in origin)
    if not text or not origin:
        return Reason("NO_ORIGIN" if text else "EMPTY_TEXT", seqs, text[:80])
    copied = any(of.verbatim(text, piece.text) for piece in origin)
    if not copied and (missing := of.unsupported(text, [piece.origin for piece in origin], people)):
        return Reason("UNSUPPORTED", seqs, f"{', '.join(missing)} in: {text[:80]}")
    refers = one_line(clean_text(item.get("refers") or "")).strip()[:REFERS_LENGTH]
    when = (item.get("when") or "").strip()
    texts = [(piece.text, day_of(piece.place.entry.time)) for piece in origin]
    entry = NewEntry(
        text,
        seqs,
        heading=heading,
        when=when if when and fits(when, texts) else None,  # if the words of its turns can mean that
        by=None if copied else "model",
        refers=refers or None,
        label=_label(item, text, origin),
    )
    return _filed(entry, item.get("standing"), (piece.place.entry for piece in origin))


def _label(item: Data, text: str, origin: Sequence[_Shown]) -> str | None:
    """The label that the entry, or a turn of it, says that it has."""
    said = (item.get("label") or "").strip()
    told = {label for piece in origin for label in _LABEL.findall(piece.text)}
    return next(iter(_LABEL.findall(text)), said if said in told else None)


def _joins_facts(entry: NewEntry) -> bool:
    """Whether what a model phrased has two sentences or parts around a semicolon, quoted words apart."""
    said = _QUOTED.sub("", entry.text)
    parts = (part for sentence in sentences(said) for part in sentence.split("; "))
    return entry.by == "model" and sum(len(part.split()) >= CLAUSE_WORDS for part in parts) > 1


def _filed(entry: NewEntry, standing: str | None, origin: Iterable[Entry]) -> NewEntry:
    """The entry, on its way to a document of its own if it says what the user asks for once and for all.

    Only the user's own words direct how the user is answered: a tool's output, or what an AI said, cannot.
    """
    heading = _SECTIONS.get(standing or "")
    if heading is None or any(turn.source not in ("user", "human") for turn in origin):
        return entry
    return replace(entry, to=STANDING, heading=heading)
