"""The story of a line, and of each line of a document who or what put it there.

Pure, over a snapshot and its receipts. Lines that receipts wrote themselves (headings, headers) are told from
those that a person typed by the way back that the receipts keep (store/receipts.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Literal

from infinimem.errors import LibraryError
from infinimem.markdown.characters import clean_text
from infinimem.markdown.document import Document
from infinimem.markdown.signature import forgotten_in, parse_entry
from infinimem.model import BUFFERS, Located
from infinimem.operations.provenance import REPLACED, Lineage, LineStep, TurnRef, at, recorded
from infinimem.spec import folders
from infinimem.store.files import digest
from infinimem.store.lines import aliases_of
from infinimem.store.spec import ARCHIVE, EVIDENCE, JOURNAL, MEMORIES
from infinimem.store.state import SeenLine
from infinimem.store.view import View

EventKind = Literal["said", "drawn", "typed", "receipt", "held", "heir", "now"]
_HEIRS = {"superseded by": "supersedes", "duplicate of": "says the same as", "rewritten as": "rewrites"}


@dataclass(frozen=True)
class Event:
    """One thing that happened to a line, or to one that it came from, or that came after it.

    said      a turn was recorded: `where`, `session`, `turn`, `speaker`
    drawn     an entry was drawn from `origin` into the buffer
    typed     a person wrote it into a file
    receipt   `receipt` took it from `was` to `now`, and says `why`; `text`: as it was before, if it changed
    held      a record comes from it: `where`; `why` "archived" where it left the surface
    heir      another line came after it, or from it: `seq`, and `why`
    now       where it is; `why` where it is not live
    """

    event: EventKind
    seq: int
    time: str = ""
    where: str = ""
    text: str = ""
    source: str = ""
    speaker: str = ""
    session: str = ""
    turn: str = ""
    origin: tuple[int, ...] = ()
    receipt: str = ""
    op: str = ""
    was: str = ""
    now: str = ""
    why: str = ""


def history(view: View, seq: int) -> tuple[Event, ...]:
    records = recorded(view)
    if records.entry(seq) is None and not records.steps(seq):
        raise LibraryError(
            f"no line has seq {seq}, and no receipt names it; the highest is {highest}"
            if (highest := records.highest)
            else "no line of this library has a seq yet; add or import something first"
        )
    return tuple(_story(records, seq))


def _story(records: Lineage, seq: int) -> Iterator[Event]:
    entry, own = records.entry(seq), records.steps(seq)
    ancestors = records.ancestors(entry) if entry else []
    turns = [turn for one in ancestors if (turn := records.said(one))]
    for turn in turns:
        yield Event("said", **asdict(turn))
    for one in sorted(set(ancestors) - {turn.seq for turn in turns}):
        yield from _beginning(records, one)
        for step in records.steps(one):
            if not own or step.order <= own[0].order:  # once its heir had come, its story is another
                yield _receipt(step)
    if this := records.said(seq):
        yield Event("said", **asdict(this))
    else:
        yield from _beginning(records, seq)
    yield from map(_receipt, own)
    for doc_id in records.holding(seq):
        yield Event("held", seq, where=doc_id, why="archived" * doc_id.startswith(folders().archives))
    yield _now(records, seq)
    yield from _after(records, seq)


def _beginning(records: Lineage, seq: int) -> Iterator[Event]:
    entry, steps = records.entry(seq), records.steps(seq)
    if entry is None or (steps and steps[0].brings):
        return
    first = next((step.old for step in steps if step.old), entry)  # before anyone changed it
    place = records.view.entry(seq)
    where = steps[0].row.was if steps else place.doc_id if place and place.doc_id in BUFFERS else ""
    origin = first.origin
    kind: EventKind = "drawn" if origin else "typed"
    why = "phrased by a model" if "by" in first.fields else ""
    speaker = first.fields.get("speaker", "")
    yield Event(kind, seq, first.known_time, where, first.text, first.source, speaker, origin=origin, why=why)


def _receipt(step: LineStep) -> Event:
    receipt, row = step.receipt, step.row
    text = step.old.text if step.old else ""
    return Event("receipt", time=receipt.time, text=text, receipt=receipt.id, op=receipt.op, **asdict(row))


def _now(records: Lineage, seq: int) -> Event:
    place = records.view.entry(seq)
    if place is not None:
        why = ""
        if place.doc_id.startswith(ARCHIVE):
            heir = records.replaced(place)
            words = place.headings[-1].partition(" (")[0] if place.headings else ""
            why = f"{heir[0]} {heir[1]}" if heir else words[:1].lower() + words[1:]
        heading = " / ".join(place.headings)
        return Event("now", seq, "", at(place), place.text, place.entry.source, now=heading, why=why)
    last = records.steps(seq)[-1]
    if last.row.now not in ("", "-"):
        why = f"no longer in the library; {last.receipt.id} put it into {last.row.now}"
        return Event("now", seq, why=why)
    entry = records.entry(seq)
    return Event("now", seq, why=last.row.why, text=entry.text if entry else "")


def _after(records: Lineage, seq: int) -> Iterator[Event]:
    known = {seq}
    pending = [seq]
    while pending:
        old = pending.pop(0)
        for heir, why in sorted(records.heirs(old).items()):
            if heir in known or (old != seq and why.startswith("drawn")):
                continue
            known.add(heir)
            place, entry = records.view.entry(heir), records.entry(heir)
            text, time, source = (entry.text, entry.known_time, entry.source) if entry else ("", "", "")
            words = f"{_HEIRS[why]} {old}" if why in REPLACED else why
            yield Event("heir", heir, time, at(place) if place else "", text, source, why=words)
            pending += [heir] * (why in REPLACED)


@dataclass(frozen=True)
class Blamed:
    """A line of a document and who or what put it there.

    said      a turn, or a line of one
    entry     `seq` came here by `receipt` ("" where none is known), and was said in `turns`
    quoted    a record quotes what was said in `turns`; `receipt` made it
    derived   the program's own, or in memories/ a model's: a heading, a header; `receipt` wrote it
    person    someone typed it
    """

    line: int
    text: str
    kind: Literal["said", "entry", "quoted", "derived", "person", "blank"]
    seq: int | None = None
    receipt: str = ""
    time: str = ""
    source: str = ""
    why: str = ""
    turns: tuple[TurnRef, ...] = ()


def blame(
    view: View, doc_id: str, line: int | None = None, seen: Mapping[int, SeenLine] | None = None
) -> tuple[Blamed, ...]:
    document = view.document(view.resolve(doc_id))
    count = len(document.lines)
    if line is not None and not 1 <= line <= count:
        has = f"the last one is {count}" if count else "it is empty"
        raise LibraryError(f"{document.id} has no line {line}; {has}")
    lines = tuple(_blamed(recorded(view), document, seen or {}))
    return lines if line is None else lines[line - 1 : line]


def _blamed(records: Lineage, document: Document, seen: Mapping[int, SeenLine]) -> Iterator[Blamed]:
    view, doc_id = records.view, document.id
    steps = records.changes(doc_id)
    by_model = doc_id.startswith(MEMORIES) and bool(steps)  # and not what a person put beside its files
    if view.is_note(doc_id) and not by_model:
        for number in range(1, len(document.lines) + 1):
            text = document.text_line(number)
            yield Blamed(number, text, "person" if text.strip() else "blank")
        return
    signed = {n: place for place in document.entries for n in range(place.start_line, place.end_line + 1)}
    quoted = _quoted(records.behind(doc_id), document) if doc_id.startswith(folders().records) else {}
    for written in _written(records, document, steps):
        number, text = written.line, written.text
        place = signed.get(number)
        if place is not None and doc_id.startswith(EVIDENCE):
            turn = records.turn(place)
            yield Blamed(number, text, "said", turn.seq, "", turn.time, turn.source, turns=(turn,))
        elif place is not None:
            yield _arrived(records, place, text, seen)
        elif (seq := forgotten_in(document.lines[number - 1])) and (moves := records.steps(seq)):
            last = moves[-1].receipt
            yield Blamed(number, text, "derived", None, last.id, last.time, why="forgotten")
        elif not text.strip():
            yield Blamed(number, text, "blank")
        elif turns := quoted.get(number):
            seq = turns[0].seq if len(turns) == 1 else None
            receipt, time, source = written.receipt, written.time, turns[0].source
            yield Blamed(number, text, "quoted", seq, receipt, time, source, turns=turns)
        else:
            yield written


def _quoted(turns: Sequence[TurnRef], document: Document) -> dict[int, tuple[TurnRef, ...]]:
    """Return which turns each line of a record's quotations was said in, where any of them holds it."""
    said = {turn: clean_text(turn.text).split("\n") for turn in turns}
    quoted: dict[int, tuple[TurnRef, ...]] = {}
    for number in range(document.header.end + 1, len(document.lines) + 1):
        line = document.text_line(number)
        if line.startswith("> ") and (quote := line[2:].removesuffix("…").strip()):
            plain = quote.partition(": ")[2] or quote
            holds = [turn for turn, parts in said.items() if any(quote in p or plain in p for p in parts)]
            if holds:
                quoted[number] = tuple(holds)
    return quoted


def _arrived(records: Lineage, place: Located, text: str, seen: Mapping[int, SeenLine]) -> Blamed:
    """Blame an entry: on the receipt that brought it into this document, or who changed it since."""
    entry, doc_id, steps = place.entry, place.doc_id, records.steps(place.seq)[::-1]
    names = {f"{doc_id.split('/', 1)[0]}/{alias}" for alias in aliases_of(records.view.document(doc_id))}
    came = next((step for step in steps if step.row.now != step.row.was or step.brings), None)
    receipt, time, why, source = "", "", "", entry.source
    if came is not None and came.row.now in {doc_id, *names}:  # also where the document was renamed since
        receipt, time, why = came.receipt.id, came.receipt.time, came.row.why
    elif came is not None:
        why = "moved by hand"  # or by a receipt that is lost
    elif doc_id in BUFFERS and entry.origin:
        why = "drawn"
    edit = next((step for step in steps if step.row.why == "edited"), None)
    old = parse_entry(seen[place.seq].line) if place.seq in seen else None
    if old is not None and old.text.rstrip() != entry.text.rstrip():  # not taken in yet
        source, receipt, time = "human", "", ""
    elif edit is not None and source == "human":
        old, receipt, time = edit.old, edit.receipt.id, edit.receipt.time
    else:
        old = None
    if old is not None:
        by = old.fields.get("speaker") or old.source
        why = "edited by a person" + f"; was said by {by}" * (old.source != "human")
    turns = records.turns(entry)
    return Blamed(place.start_line, text, "entry", place.seq, receipt, time, source, why, turns)


def _written(records: Lineage, document: Document, steps: Sequence[tuple[str, str, str]]) -> Iterator[Blamed]:
    """Yield who wrote each line that is no entry: a receipt, whose way back names it, or a person."""
    doc_id, in_header = document.id, range(1, document.header.end + 1)
    texts = [(number, document.text_line(number)) for number in range(1, len(document.lines) + 1)]
    if doc_id.startswith(JOURNAL):
        receipt = records.receipt(doc_id)
        time = receipt.time if receipt.id == doc_id else ""
        yield from (Blamed(number, text, "derived", None, doc_id, time) for number, text in texts)
        return
    if doc_id.startswith(EVIDENCE):
        for number, text in texts:
            yield Blamed(number, text, "derived" if number in in_header else "person")
        return
    present = digest(document.to_bytes())
    chain = [*(step[1:] for step in steps), (present, present)]
    untouched = len(chain) > 1 and chain[0][0] == "-" and all(a[1] == b[0] for a, b in pairwise(chain))
    first = next((records.receipt(name) for name, before, _ in steps if before == "-"), None)
    made = (first.id, first.time) if first else ("", "")
    titles = {heading.line for heading in document.headings}
    for number, text in texts:
        if writer := records.writer(doc_id, document.lines[number - 1]):
            yield Blamed(number, text, "derived", None, writer.id, writer.time)
        elif number in in_header or number in titles or (untouched and doc_id.startswith(folders().whole)):
            yield Blamed(number, text, "derived", None, *made, why="" if untouched else "or typed since")
        else:
            yield Blamed(number, text, "person")
