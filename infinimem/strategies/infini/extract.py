"""EXTRACT: what was said into standing facts, one plan for each unit that is fed.

Every turn ends up cited by an entry, or marked as empty or as refused: what a model says without support goes
back to it once, then the turn stands for itself. A model that cannot be reached leaves the turns pending.

Source: Infini Memory, section 3.3 and prompt A.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from infinimem import tokens
from infinimem.errors import ModelError
from infinimem.grounding.sentences import sentences
from infinimem.grounding.when import day_of, fits
from infinimem.llm.parallel import in_order
from infinimem.llm.tasks import turn as shown_turn
from infinimem.markdown.characters import clean_text, one_line
from infinimem.model import Located, NewEntry, Plan, Reason
from infinimem.store.view import View
from infinimem.strategies.base import Plans, Rejected
from infinimem.strategies.infini.asking import Asker, Data, cut, seqs_of, unsupported, verbatim
from infinimem.strategies.infini.spec import InfiniSettings
from infinimem.strategies.infini.standing import filed
from infinimem.strategies.infini.tasks import EXTRACT

CONTEXT_TURNS = 2
REFERS_LENGTH = 200
CLAUSE_WORDS = 3

_QUOTED = re.compile(r'"[^"]*"|“[^”]*”')


@dataclass(frozen=True)
class ShownTurn:
    """A turn as the model is shown it: all of its text, or the part that fits one call."""

    place: Located
    text: str

    @property
    def seq(self) -> int:
        return self.place.entry.seq

    @property
    def origin(self) -> str:
        """The text with the name of who said it: what an entry may draw on."""
        speaker = self.place.entry.fields.get("speaker")
        return f"{speaker}: {self.text}" if speaker else self.text

    @property
    def shown(self) -> dict[str, str | None]:
        return shown_turn(self.place.entry, self.text)


def extract(view: View, new: Sequence[Located], asker: Asker) -> Plans:
    """Entries for evidence lines, a plan a unit, in order. A few units are asked about side by side
    (settings.infini.workers); their plans are durable before the next few are looked at.

    Raises:
        ModelUnavailable: the turns from here on stay pending.
    """
    settings = view.settings.of(InfiniSettings)
    portions, few = units(new, settings), max(1, settings.workers)
    for at in range(0, len(portions), few):
        side_by_side = portions[at : at + few]
        asked = in_order(partial(_attempt, view, asker), side_by_side, few)
        for unit, (plan, own) in zip(side_by_side, asked, strict=True):
            asker.take(own)
            if isinstance(plan, ModelError):
                raise plan
            outcome = yield plan
            if isinstance(outcome, Rejected):
                notes = [f"extract: {reason}" for reason in outcome.reasons]
                outcome = yield _closed(unit, (), {place.entry.seq for place in unit}, notes)
                if isinstance(outcome, Rejected):
                    return
            view = outcome.view


def _attempt(view: View, asker: Asker, unit: Sequence[Located]) -> tuple[Plan | ModelError, Asker]:
    """The plan of a unit, or why there is none; and who asked."""
    own = asker.another()
    try:
        return _plan(view, unit, own), own
    except ModelError as error:
        return error, own


# ── feeding ─────────────────────────────────────────────────────────────────────────────────────


def units(turns: Sequence[Located], settings: InfiniSettings) -> list[list[Located]]:
    """Turns in the portions that one extraction looks at.

    A chunk or exchange holds at most `chunk_tokens`; a turn that is larger stands alone.
    """
    portions: list[list[Located]] = []
    room = 0
    for turn in turns:
        text = turn.entry.text
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
    first, last = _who(portion[0]), _who(portion[-1])
    return turn.doc_id != portion[0].doc_id or (_who(turn) == first != last)


def _who(turn: Located) -> str:
    return turn.entry.fields.get("speaker") or turn.entry.source


def _context(view: View, first: Located) -> list[Located]:
    """The turns of the same session just before."""
    if first.doc_id not in view:
        return []
    before = [place for place in view.document(first.doc_id).entries if place.entry.seq < first.entry.seq]
    return before[-CONTEXT_TURNS:]


# ── one unit ────────────────────────────────────────────────────────────────────────────────────


def _plan(view: View, unit: Sequence[Located], asker: Asker) -> Plan:
    """Ask about a unit, or about each part of a turn that is larger than a call."""
    limit = view.settings.of(InfiniSettings).chunk_tokens
    told = [place for place in unit if place.entry.text.strip()]
    calls = [[ShownTurn(place, place.entry.text) for place in told]] if told else []
    if len(told) == 1 and tokens.exceeds(told[0].entry.text, limit):
        calls = [[ShownTurn(told[0], part)] for part in cut(told[0].entry.text, limit)]
    entries: list[NewEntry] = []
    refused: set[int] = set()
    notes: list[str] = []
    context = [shown_turn(place.entry, place.entry.text) for place in _context(view, unit[0])]
    for said in calls:
        found, reasons, unfit = _ask(said, context, asker)
        entries += found
        refused |= unfit
        notes += (f"extract: {reason}" for reason in reasons)
        context = [piece.shown for piece in said[-1:]]
    return _closed(unit, entries, refused, notes)


def _closed(
    unit: Sequence[Located], entries: Sequence[NewEntry], refused: Collection[int], notes: Sequence[str]
) -> Plan:
    """The plan of a unit: of the turns that no entry cites some are refused, the others hold nothing."""
    cited = {seq for entry in entries for seq in entry.origin}
    left = [place.entry.seq for place in unit if place.entry.seq not in cited]
    return Plan(
        adds=tuple(entries),
        empty=tuple(seq for seq in left if seq not in refused),
        refused=tuple(seq for seq in left if seq in refused),
        notes=tuple(one_line(clean_text(note)) for note in notes),
    )


def _ask(
    said: Sequence[ShownTurn], context: Sequence[Mapping[str, str | None]], asker: Asker
) -> tuple[list[NewEntry], list[Reason], set[int]]:
    """Entries from one call, what is wrong with the reply, and the turns of which something was refused."""
    turns = {piece.seq: piece for piece in said}
    shown = [piece.shown for piece in said]
    people = [name for name in dict.fromkeys(turn["speaker"] for turn in (*context, *shown)) if name]

    def read(data: Data) -> list[NewEntry | Reason]:
        return [_read(item, turns, people) for item in data["entries"]]

    def check(data: Data) -> list[Reason]:
        unknown = [
            name[:20] for item in data["entries"] for name in item["from"] if not seqs_of([name], turns)
        ]
        wrong = [Reason("UNKNOWN", (), ", ".join(unknown[:10]))] if unknown else []
        found = read(data)
        wrong += (entry for entry in found if isinstance(entry, Reason))
        joined = (entry for entry in found if isinstance(entry, NewEntry) and joins_facts(entry))
        return [*wrong, *(Reason("TWO_FACTS", entry.origin, entry.text[:80]) for entry in joined)]

    reply, wrong = asker.ask(EXTRACT, {"turns": shown, "context": context}, check)
    if (data := reply.data) is None:
        return [], list(wrong), set(turns)
    found = read(data)
    entries = [entry for entry in found if isinstance(entry, NewEntry)]
    vague = [
        Reason("IMPLAUSIBLE_WHEN", entry.origin, item["when"][:40])
        for entry, item in zip(found, data["entries"], strict=True)
        if isinstance(entry, NewEntry) and entry.when is None and (item["when"] or "").strip()
    ]
    refused = {seq for reason in found if isinstance(reason, Reason) for seq in reason.seqs}
    return entries, [*wrong, *vague], refused


def _read(item: Data, turns: Mapping[int, ShownTurn], people: Sequence[str]) -> NewEntry | Reason:
    """An item of a reply as an entry, or why it is none."""
    text = one_line(clean_text(item["text"])).strip()
    origin = [turns[seq] for seq in dict.fromkeys(seqs_of(item["from"], turns))]
    seqs = tuple(piece.seq for piece in origin)
    if not text or not origin:
        return Reason("NO_ORIGIN" if text else "EMPTY_TEXT", seqs, text[:80])
    copied = any(verbatim(text, piece.text) for piece in origin)
    if not copied and (missing := unsupported(text, [piece.origin for piece in origin], people)):
        return Reason("UNSUPPORTED", seqs, ", ".join(missing))
    refers = one_line(clean_text(item["refers"] or "")).strip()[:REFERS_LENGTH]
    by: Literal["model"] | None = None if copied else "model"
    entry = NewEntry(text, seqs, when=_when(item["when"], origin), by=by, refers=refers or None)
    return filed(entry, item.get("standing"), (piece.place.entry for piece in origin))


def joins_facts(entry: NewEntry) -> bool:
    """Whether what a model phrased has two sentences, or two parts around a semicolon, of three words or more
    each; quoted words do not count."""
    said = _QUOTED.sub("", entry.text)
    parts = (part for sentence in sentences(said) for part in sentence.split("; "))
    return entry.by == "model" and sum(len(part.split()) >= CLAUSE_WORDS for part in parts) > 1


def _when(when: str | None, origin: Sequence[ShownTurn]) -> str | None:
    """When it happened, if the words of its turns can mean that."""
    told = (when or "").strip()
    return (
        told
        if told and fits(told, ((piece.text, day_of(piece.place.entry.time)) for piece in origin))
        else None
    )
