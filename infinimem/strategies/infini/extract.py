"""EXTRACT: what was said into standing facts, one plan for each unit that is fed.

Every turn ends up cited by an entry or marked as empty. What the model forgets, or says without support,
is stored as it was said; a model that cannot be reached leaves the turns pending.

Source: Infini Memory, section 3.3 and prompt A.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from infinimem import tokens
from infinimem.errors import ModelError
from infinimem.llm.parallel import in_order
from infinimem.llm.tasks import turn as shown_turn
from infinimem.markdown.characters import clean_text, one_line
from infinimem.model import Located, NewEntry, Plan, Reason
from infinimem.store.view import View
from infinimem.strategies.base import Plans, Rejected
from infinimem.strategies.infini.asking import Asker, Data, cut, once, seqs_of, unsupported, verbatim
from infinimem.strategies.infini.spec import InfiniSettings
from infinimem.strategies.infini.tasks import EXTRACT

CONTEXT_TURNS = 2
REFERS_LENGTH = 200
_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d.*)?")


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
                reasons = [f"extract: {reason}; stored verbatim" for reason in outcome.reasons]
                entries = [
                    entry for place in unit for entry in _as_said([ShownTurn(place, place.entry.text)])
                ]
                outcome = yield _closed(unit, entries, reasons)
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
    notes: list[str] = []
    context = [shown_turn(place.entry, place.entry.text) for place in _context(view, unit[0])]
    for said in calls:
        found, wrong = _ask(said, context, asker)
        entries += found
        notes += wrong
        context = [piece.shown for piece in said[-1:]]
    return _closed(unit, entries, notes)


def _closed(unit: Sequence[Located], entries: Sequence[NewEntry], notes: Sequence[str]) -> Plan:
    """The plan of a unit: turns that no entry cites are empty."""
    cited = {seq for entry in entries for seq in entry.origin}
    empty = tuple(place.entry.seq for place in unit if place.entry.seq not in cited)
    return Plan(adds=tuple(entries), empty=empty, notes=tuple(one_line(clean_text(note)) for note in notes))


def _ask(
    said: Sequence[ShownTurn], context: Sequence[Mapping[str, object]], asker: Asker
) -> tuple[list[NewEntry], list[str]]:
    """Entries from one call; what it leaves open or says without support is stored as it was said."""
    by_seq = {piece.seq: piece for piece in said}

    def check(data: Data) -> list[Reason]:
        return _problems(data, by_seq)

    turns = [piece.shown for piece in said]
    reply, wrong = asker.ask(EXTRACT, {"turns": turns, "context": context}, check)
    if (data := reply.data) is None:
        return _as_said(said), [f"extract: {reason}" for reason in wrong]
    unborne: list[Reason] = []
    entries: list[NewEntry] = []
    as_said: set[int] = set()
    for item in data["entries"]:
        text = one_line(clean_text(item["text"])).strip()
        origin = [by_seq[seq] for seq in dict.fromkeys(seqs_of(item["from"], by_seq))]
        if not text or not origin:
            continue
        copied = any(verbatim(text, piece.text) for piece in origin)
        missing = [] if copied else unsupported(text, [piece.origin for piece in origin])
        if missing:
            unborne.append(Reason("UNSUPPORTED", tuple(p.seq for p in origin), ", ".join(missing)))
            as_said |= {piece.seq for piece in origin}
        else:
            entries.append(_entry(text, origin, copied, item))
    asker.reject(EXTRACT, reply, unborne)
    cited = {seq for entry in entries for seq in entry.origin}
    empty = set(seqs_of(data["empty"], by_seq))
    open_turns = [p for p in said if p.seq in as_said or (p.seq not in cited and p.seq not in empty)]
    return [*entries, *_as_said(open_turns)], [f"extract: {reason}" for reason in (*wrong, *unborne)]


def _entry(text: str, origin: Sequence[ShownTurn], copied: bool, item: Data) -> NewEntry:
    refers = one_line(clean_text(item["refers"] or "")).strip()[:REFERS_LENGTH]
    return NewEntry(
        text,
        tuple(piece.seq for piece in origin),
        time=_resolved(item["time"]),
        by=None if copied else "model",
        refers=refers or None,
    )


def _as_said(said: Sequence[ShownTurn]) -> list[NewEntry]:
    """Each text as one line, untouched but for its line breaks."""
    lines = ((" ".join(one_line(clean_text(piece.text)).split()), piece.seq) for piece in said)
    return [NewEntry(text, (seq,)) for text, seq in lines if text]


def _problems(data: Data, turns: Mapping[int, ShownTurn]) -> list[Reason]:
    """What keeps a reply from accounting for every turn."""
    named = [(name, item["text"].strip()) for item in data["entries"] for name in item["from"]]
    cited = dict.fromkeys(str(seq) for name, text in named if text for seq in seqs_of([name], turns))
    unknown = [name for name, _ in named if not seqs_of([name], turns)]
    _, reasons = once([cited, dict.fromkeys(data["empty"]), unknown], turns)
    if any(not item["text"].strip() for item in data["entries"]):
        reasons.append(Reason("EMPTY_TEXT"))
    if any(not seqs_of(item["from"], turns) for item in data["entries"]):
        reasons.append(Reason("NO_ORIGIN"))
    return reasons


def _resolved(time: str | None) -> str | None:
    """A date or date-time in ISO 8601, or None; then the store takes the origins' own."""
    text = (time or "").strip()
    if not _TIME.fullmatch(text):
        return None
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return None
    return text.replace(" ", "T")
