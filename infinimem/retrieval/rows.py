"""What can be found, as rows: where each stands, whose it is, when it was said, and the terms it is found by.

A row is a piece of a document as the index keeps it. It knows nothing of files or of ranking.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Literal, NamedTuple

from infinimem.markdown.document import Document
from infinimem.retrieval.pieces import Piece, Pieces, date_parts
from infinimem.retrieval.priors import asking
from infinimem.store.view import Scope, View

Kind = Literal["entries", "blocks"]
"""What is ranked."""
KINDS: tuple[Kind, ...] = ("entries", "blocks")
GROUPS = ("live", "archive", "evidence", "journal")
"""Of documents that can be found, in the order of their numbers."""
SAID = GROUPS.index("evidence")
"""The number of what was said."""
GROUPS_OF: Mapping[Scope, frozenset[int]] = {
    "default": frozenset({0}),
    "archive": frozenset({1}),
    "kept": frozenset({0, 1}),
    "evidence": frozenset({SAID}),
    "journal": frozenset({GROUPS.index("journal")}),
    "all": frozenset(range(len(GROUPS))),
}
LINES = 32
"""Bits of a row's number that are its first line; those before are the uid of its document."""
KEY = 16
"""Bytes of a text's key."""


class Row(NamedTuple):
    """A piece of a document."""

    number: int
    """The uid of its document, and its first line."""
    doc_id: str
    end: int
    """Its last line."""
    group: int
    seq: int
    """Of a signed line; 0 for what has none."""
    day: int
    """As yyyymmdd, months and days that its time does not name as 00; 0 for none."""
    asking: int
    """How far it only asks, of 255."""
    personal: bool
    """Whether a person said it."""
    speaker: str | None
    whole: int
    """`doc_hash` of the document or session that it belongs to."""

    @property
    def start(self) -> int:
        """Its first line."""
        return self.number & (1 << LINES) - 1


class Found(NamedTuple):
    """A row with what it is found by."""

    row: Row
    own: str
    """Terms of what it says, with who said it and when, joined by spaces."""
    around: str
    """Terms of what stands around it."""
    cites: tuple[int, ...]
    """The seqs that it was drawn from."""
    key: bytes
    """`text_key` of its text."""


class Read(NamedTuple):
    """What of a document can be found."""

    group: int
    entries: Sequence[Found]
    blocks: Sequence[Found]

    @property
    def whole(self) -> str:
        """The terms of all of it."""
        return " ".join(block.own for block in self.blocks if block.own)


def text_key(text: str) -> bytes:
    """The 16 bytes that name a text."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=KEY).digest()


@lru_cache(maxsize=1 << 12)
def doc_hash(doc_id: str) -> int:
    """64 bits by which rows know the document that they belong to."""
    return int.from_bytes(
        blake2b(doc_id.encode("utf-8", "surrogateescape"), digest_size=8).digest(), "little"
    )


def read(view: View, pieces: Pieces, document: Document, uid: int) -> Read | None:
    """The rows of a document; None for a strategy's ledger or a sibling's document, which are not searched.

    Args:
        view: the snapshot that it is of.
        pieces: cuts it.
        document: what is read; without entries its blocks stand for entries too.
        uid: that it is known by.
    """
    group = view.group(document.id)
    if group == "aside":
        return None
    number = GROUPS.index(group)
    blocks = list(_rows(pieces.blocks(document), uid, number))
    entries = list(_rows(pieces.entries(document), uid, number)) if document.entries else blocks
    return Read(number, entries, blocks)


def _rows(pieces: Sequence[Piece], uid: int, group: int) -> Iterator[Found]:
    for piece in pieces:
        item = piece.item
        year, month, day = date_parts(item.time)
        row = Row(
            uid << LINES | item.start_line,
            item.doc_id,
            item.end_line,
            group,
            0 if item.physical or not item.seqs else item.seqs[0],
            year * 10000 + month * 100 + day,
            0 if item.physical else round(255 * asking(item.text)),
            item.source in ("user", "human"),
            item.speaker,
            doc_hash(piece.whole),
        )
        cites = () if item.physical else piece.cites
        yield Found(row, piece.own, piece.around, cites, text_key(piece.text))
