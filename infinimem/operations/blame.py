"""For each line of a document, how it came there and in which turn it was said.

Pure, over a snapshot and its receipts. Lines that receipts wrote themselves (headings, headers) are told from
those that a person typed by the way back that the receipts keep (skeleton.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal

from infinimem.errors import LibraryError
from infinimem.markdown.characters import clean_text
from infinimem.markdown.document import Document
from infinimem.model import CURRENT, Located, Receipt
from infinimem.operations.provenance import Records, TurnRef
from infinimem.store.files import digest
from infinimem.store.receipts import way_back
from infinimem.store.spec import MEMORIES, RECORDS, WHOLE
from infinimem.store.view import EVIDENCE, JOURNAL, View, aliases_of

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
    view: View, receipts: Sequence[Receipt], doc_id: str, line: int | None = None
) -> tuple[Blamed, ...]:
    """How each line of a document came there.

    Args:
        view: the library.
        receipts: its receipts, oldest first.
        doc_id: full id, stem or alias.
        line: only this one; lines count from 1, the header included.

    Raises:
        DocumentNotFound: no document has that name.
        LibraryError: it has no such line.
    """
    document = view.document(view.resolve(doc_id))
    count = len(document.lines)
    if line is not None and not 1 <= line <= count:
        has = f"the last one is {count}" if count else "it is empty"
        raise LibraryError(f"{document.id} has no line {line}; {has}")
    found = tuple(_blamed(Records(view, receipts), document))
    return found if line is None else found[line - 1 : line]


def _blamed(records: Records, document: Document) -> Iterator[Blamed]:
    view, doc_id = records.view, document.id
    lines = [document.text_line(number) for number in range(1, len(document.lines) + 1)]
    written = _Written(records, document)
    if view.is_note(doc_id) and not written.by_model:
        yield from (Blamed(n, text, "person" if text.strip() else "blank") for n, text in enumerate(lines, 1))
        return
    signed = {n: place for place in document.entries for n in range(place.start_line, place.end_line + 1)}
    quoted = _quoted(records.behind(doc_id), document) if doc_id.startswith(RECORDS) else {}
    for number, text in enumerate(lines, 1):
        place = signed.get(number)
        if place is not None and doc_id.startswith(EVIDENCE):
            turn = records.turn(place)
            yield Blamed(number, text, "said", turn.seq, "", turn.time, turn.source, turns=(turn,))
        elif place is not None:
            yield _arrived(records, place, text)
        elif not text.strip():
            yield Blamed(number, text, "blank")
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
        if line.startswith("> "):
            told = line[2:].removesuffix("…").strip()
            plain = told.partition(": ")[2] or told
            holds = tuple(
                turn for turn, parts in said.items() if any(told in part or plain in part for part in parts)
            )
            found.update({number: holds} if holds and told else {})
    return found


def _arrived(records: Records, place: Located, text: str) -> Blamed:
    """An entry: the receipt that brought it into this document."""
    seq, doc_id = place.seq, place.doc_id
    came = next((c for c in reversed(records.steps(seq)) if c.row.now != c.row.was or c.brings), None)
    receipt, time, why = "", "", ""
    if came is not None and (came.row.now == doc_id or came.row.now in _former_ids(records.view, doc_id)):
        receipt, time, why = came.receipt.id, came.receipt.time, came.row.why
    elif came is not None:
        why = "moved by hand"  # or by a receipt that is lost
    elif doc_id == CURRENT and place.entry.origin:
        why = "drawn"
    return Blamed(
        place.start_line,
        text,
        "entry",
        seq,
        receipt,
        time,
        place.entry.source,
        why,
        records.turns(place.entry),
    )


def _former_ids(view: View, doc_id: str) -> set[str]:
    """Ids that a document had before it was renamed."""
    root = doc_id.split("/", 1)[0]
    return {f"{root}/{alias}" for alias in aliases_of(view.document(doc_id))}


class _Written:
    """Which lines of a document receipts wrote, other than entries: their way back names them."""

    def __init__(self, records: Records, document: Document) -> None:
        self._records = records
        self._document = document
        self._titles = {heading.line for heading in document.headings}

    @property
    def by_model(self) -> bool:
        """Whether it is a model's file, and not one that a person put beside them."""
        return self._document.id.startswith(MEMORIES) and bool(self._named)

    def line(self, number: int, text: str) -> Blamed:
        doc_id = self._document.id
        if doc_id.startswith(JOURNAL):
            receipt = next((r for r in self._records.receipts if r.id == doc_id), None)
            return Blamed(number, text, "derived", None, doc_id, receipt.time if receipt else "")
        if doc_id.startswith(EVIDENCE):
            return Blamed(number, text, "derived" if number <= self._document.header.end else "person")
        if found := self._by.get(self._document.lines[number - 1]):
            return Blamed(number, text, "derived", None, found.id, found.time)
        is_ours = number <= self._document.header.end or number in self._titles
        is_ours |= doc_id.startswith(WHOLE) and self._untouched
        if not is_ours:
            return Blamed(number, text, "person")
        made, why = self._made, "" if self._untouched else "or typed since"
        return Blamed(
            number, text, "derived", None, made.id if made else "", made.time if made else "", why=why
        )

    @cached_property
    def _by(self) -> dict[str, Receipt]:
        """The receipts that wrote lines into this document that stood there already, by line."""
        found: dict[str, Receipt] = {}
        view = self._records.view
        for receipt in (receipt for receipt in self._named if receipt.id in view):
            for reverse in way_back(view.document(receipt.id)):
                if reverse.doc_id == self._document.id:
                    rows = (row for hunk in reverse.hunks for row in hunk.came if row.startswith(">"))
                    found.update((row[1:], receipt) for row in rows)
        return found

    @cached_property
    def _named(self) -> list[Receipt]:
        """Receipts that changed this document."""
        doc_id = self._document.id
        return [r for r in self._records.receipts if any(name == doc_id for name, *_ in r.files)]

    @property
    def _made(self) -> Receipt | None:
        """The receipt that made the file."""
        return next((r for r in self._named if (self._document.id, "-") in {f[:2] for f in r.files}), None)

    @cached_property
    def _untouched(self) -> bool:
        """Whether no hand but the program's was on the file."""
        steps = [f[1:] for r in self._named for f in r.files if f[0] == self._document.id]
        present = digest(self._document.to_bytes())
        chain = [*steps, (present, present)]
        return bool(steps) and steps[0][0] == "-" and all(a[1] == b[0] for a, b in pairwise(chain))
