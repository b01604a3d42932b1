"""For each line of a document, which receipt put it there and which turn said it.

Pure, over a snapshot and its receipts. Lines that receipts wrote themselves (headings, headers) are told from
those that a person typed by the way back that the receipts keep (store/line_map.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal

from infinimem.errors import LibraryError
from infinimem.markdown.characters import clean_text
from infinimem.markdown.document import Document
from infinimem.markdown.signature import forgotten_in, parse_entry
from infinimem.model import CURRENT, Located, Receipt
from infinimem.operations.provenance import Records, TurnRef, recorded
from infinimem.spec import record_folders, whole_folders
from infinimem.store.files import digest
from infinimem.store.receipts import reverse_diffs
from infinimem.store.spec import EVIDENCE, JOURNAL, MEMORIES
from infinimem.store.state.last_seen import SeenLine
from infinimem.store.view import View, aliases_of

BlamedKind = Literal["said", "entry", "quoted", "derived", "person", "blank"]


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
    kind: BlamedKind
    seq: int | None = None
    receipt: str = ""
    time: str = ""
    source: str = ""
    why: str = ""
    turns: tuple[TurnRef, ...] = ()


def blame(
    view: View, doc_id: str, line: int | None = None, seen: Mapping[int, SeenLine] | None = None
) -> tuple[Blamed, ...]:
    """As `Memory.blame`, of a snapshot; `seen` has lines as they were last seen."""
    document = view.document(view.resolve(doc_id))
    count = len(document.lines)
    if line is not None and not 1 <= line <= count:
        has = f"the last one is {count}" if count else "it is empty"
        raise LibraryError(f"{document.id} has no line {line}; {has}")
    found = tuple(_blamed(recorded(view), document, seen or {}))
    return found if line is None else found[line - 1 : line]


def _blamed(records: Records, document: Document, seen: Mapping[int, SeenLine]) -> Iterator[Blamed]:
    view, doc_id = records.view, document.id
    lines = [document.text_line(number) for number in range(1, len(document.lines) + 1)]
    written = _Written(records, document)
    if view.is_note(doc_id) and not written.by_model:
        yield from (Blamed(n, text, "person" if text.strip() else "blank") for n, text in enumerate(lines, 1))
        return
    signed = {n: place for place in document.entries for n in range(place.start_line, place.end_line + 1)}
    quoted = _quoted(records.behind(doc_id), document) if doc_id.startswith(record_folders()) else {}
    for number, text in enumerate(lines, 1):
        place = signed.get(number)
        if place is not None and doc_id.startswith(EVIDENCE):
            turn = records.turn(place)
            yield Blamed(number, text, "said", turn.seq, "", turn.time, turn.source, turns=(turn,))
        elif place is not None:
            yield _arrived(records, place, text, seen)
        elif not text.strip():
            yield Blamed(number, text, "blank")
        elif (seq := forgotten_in(text)) and (steps := records.steps(seq)):
            last = steps[-1].receipt
            yield Blamed(number, text, "derived", None, last.id, last.time, why="forgotten")
        elif turns := quoted.get(number):
            by, seq = written.line(number, text), turns[0].seq if len(turns) == 1 else None
            yield Blamed(number, text, "quoted", seq, by.receipt, by.time, turns[0].source, turns=turns)
        else:
            yield written.line(number, text)


def _quoted(turns: Sequence[TurnRef], document: Document) -> dict[int, tuple[TurnRef, ...]]:
    """Which turns each line of a record's quotations was said in, where any of them holds it."""
    said = {turn: clean_text(turn.text).split("\n") for turn in turns}
    found: dict[int, tuple[TurnRef, ...]] = {}
    for number in range(document.header.end + 1, len(document.lines) + 1):
        line = document.text_line(number)
        if line.startswith("> ") and (told := line[2:].removesuffix("…").strip()):
            plain = told.partition(": ")[2] or told
            holds = [
                turn for turn, parts in said.items() if any(told in part or plain in part for part in parts)
            ]
            if holds:
                found[number] = tuple(holds)
    return found


def _arrived(records: Records, place: Located, text: str, seen: Mapping[int, SeenLine]) -> Blamed:
    """An entry: the receipt that brought it into this document, or the person who changed it since."""
    entry, doc_id = place.entry, place.doc_id
    former = {f"{doc_id.split('/', 1)[0]}/{alias}" for alias in aliases_of(records.view.document(doc_id))}
    came = next((c for c in reversed(records.steps(place.seq)) if c.row.now != c.row.was or c.brings), None)
    receipt, time, why = "", "", ""
    if came is not None and came.row.now in {doc_id, *former}:  # also where the document was renamed since
        receipt, time, why = came.receipt.id, came.receipt.time, came.row.why
    elif came is not None:
        why = "moved by hand"  # or by a receipt that is lost
    elif doc_id == CURRENT and entry.origin:
        why = "drawn"
    source, edit = (
        entry.source,
        next((c for c in reversed(records.steps(place.seq)) if c.row.why == "edited"), None),
    )
    old = parse_entry(seen[place.seq].line) if place.seq in seen else None
    if old is not None and old.text.rstrip() != entry.text.rstrip():  # not taken in yet
        source, receipt, time = "human", "", ""
    elif edit is not None and source == "human":
        old = edit.old
        if came is None or edit.order >= came.order:
            receipt, time = edit.receipt.id, edit.receipt.time
    else:
        old = None
    if old is not None:
        by = old.fields.get("speaker") or old.source
        why = "edited by a person" + f"; was said by {by}" * (old.source != "human")
    return Blamed(
        place.start_line, text, "entry", place.seq, receipt, time, source, why, records.turns(entry)
    )


class _Written:
    """Which lines of a document receipts wrote, other than entries: their way back names them."""

    def __init__(self, records: Records, document: Document) -> None:
        self._view = records.view
        self._document = document
        self._titles = {heading.line for heading in document.headings}
        self._own = next((receipt for receipt in records.receipts if receipt.id == document.id), None)
        """The receipt that this document is."""
        self._steps = [(r, *f[1:]) for r in records.receipts for f in r.files if f[0] == document.id]
        """Receipts that changed the document, with its checksums before and after."""

    @property
    def by_model(self) -> bool:
        """Whether it is a model's file, and not one that a person put beside them."""
        return self._document.id.startswith(MEMORIES) and bool(self._steps)

    def line(self, number: int, text: str) -> Blamed:
        """Who wrote a line that is no entry."""
        doc_id, in_header = self._document.id, number <= self._document.header.end
        if doc_id.startswith(JOURNAL):
            return Blamed(number, text, "derived", None, doc_id, self._own.time if self._own else "")
        if doc_id.startswith(EVIDENCE):
            return Blamed(number, text, "derived" if in_header else "person")
        if found := self._by.get(self._document.lines[number - 1]):
            return Blamed(number, text, "derived", None, found.id, found.time)
        ours = self._untouched and doc_id.startswith(whole_folders())
        if not (in_header or number in self._titles or ours):
            return Blamed(number, text, "person")
        why = "" if self._untouched else "or typed since"
        made = next((receipt for receipt, before, _ in self._steps if before == "-"), None)
        name, time = (made.id, made.time) if made else ("", "")
        return Blamed(number, text, "derived", None, name, time, why=why)

    @cached_property
    def _by(self) -> dict[str, Receipt]:
        """The receipts that wrote lines into this document that stood there already, by line."""
        found: dict[str, Receipt] = {}
        for receipt in (receipt for receipt, *_ in self._steps if receipt.id in self._view):
            for reverse in reverse_diffs(self._view.document(receipt.id)):
                if reverse.doc_id == self._document.id:
                    rows = (row for hunk in reverse.hunks for row in hunk.came if row.startswith(">"))
                    found.update((row[1:], receipt) for row in rows)
        return found

    @cached_property
    def _untouched(self) -> bool:
        """Whether no hand but the program's was on the file."""
        present = digest(self._document.to_bytes())
        chain = [*(step[1:] for step in self._steps), (present, present)]
        return len(chain) > 1 and chain[0][0] == "-" and all(a[1] == b[0] for a, b in pairwise(chain))
