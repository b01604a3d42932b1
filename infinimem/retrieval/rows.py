"""What can be found, as rows: where each stands, whose it is, when it was said, and the terms it is found by.

A row is a piece of a document as the index keeps it. It knows nothing of files or of ranking.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Literal, NamedTuple

from infinimem.embedders.base import text_key
from infinimem.model import CURRENT, Retrieved
from infinimem.store.spec import ARCHIVE
from infinimem.store.view import Scope
from infinimem.terms import Analyzer

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
LINES, PIECES = 36, 12
"""Bits of a row's number behind the uid of its document: first line, then piece of a long text."""

STATED = 100
"""Characters beside its questions from which on a text states something; a greeting has fewer."""

_LOOKED_AT = 2000
"""Characters of a text that are looked at for questions."""

_SENTENCE = re.compile(r"""\S.*?(?:[.!?]++["')\]*_”’]*(?=\s|$)|[。！？؟]++|$)""", re.MULTILINE)
_QUESTION = re.compile(r"""[?？؟][!?.]*["')\]*_”’]*$""")
_SEPARATORS = re.compile("[-_./:,]+")
_DATE = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?")


class Row(NamedTuple):
    """A piece of a document."""

    number: int
    """The uid of its document, its first line, and which piece of a long text it is: 0 for the whole."""
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
        return (self.number & (1 << LINES) - 1) >> PIECES


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
    names: str
    """Terms of what the document is called, and of its tags."""
    called: tuple[int, ...]
    """`name_key` of each of its names."""

    @property
    def whole(self) -> str:
        """The terms of all of it."""
        return " ".join(block.own for block in self.blocks if block.own)


@lru_cache(maxsize=1 << 12)
def doc_hash(doc_id: str) -> int:
    """64 bits by which rows know the document that they belong to."""
    return int.from_bytes(
        blake2b(doc_id.encode("utf-8", "surrogateescape"), digest_size=8).digest(), "little"
    )


def name_key(words: Analyzer, name: str) -> int:
    """64 bits of a name's words, whatever separates them: what has the same is called the same."""
    return doc_hash(words.joined_terms(_SEPARATORS.sub(" ", name)))


def precedence(doc_id: str) -> tuple[int, str]:
    """Of several lines with one number that counts whose document comes last, as in `View.entry`."""
    rank = 0 if doc_id.startswith(ARCHIVE) else 1 if doc_id == CURRENT else 2
    return rank, doc_id


def found_of(
    item: Retrieved,
    at: tuple[int, int],
    own: str,
    around: str,
    whole: str,
    text: str,
    cites: tuple[int, ...] = (),
) -> Found:
    """A piece of a document as a row.

    Args:
        item: as it is shown.
        at: the uid of its document, and the number of its group.
        own: terms of what it says.
        around: terms of what stands around it.
        whole: id of the document or session that it belongs to.
        text: what it says, without signatures: what vectors are made of.
        cites: what an entry was drawn from, as its signature says.
    """
    year, month, day = date_parts((item.time or "")[:10])
    row = Row(
        at[0] << LINES | item.start_line << PIECES,
        item.doc_id,
        item.end_line,
        at[1],
        0 if item.physical or not item.seqs else item.seqs[0],
        year * 10000 + month * 100 + day,
        0 if item.physical else round(255 * asking(item.text)),
        item.source in ("user", "human"),
        item.speaker,
        doc_hash(whole),
    )
    return Found(row, own, around, cites, text_key(text))


@lru_cache(maxsize=1 << 12)
def date_parts(date: str) -> tuple[int, int, int]:
    """Year, month and day of a date, 0 for each that it does not name."""
    found = _DATE.match(date)
    return (int(found[1]), int(found[2] or 0), int(found[3] or 0)) if found else (0, 0, 0)


def asking(text: str) -> float:
    """How far a text only asks: 1 if it is all questions, less the more it states, 0 from `STATED` on."""
    if "?" not in text and "？" not in text and "؟" not in text:
        return 0.0
    sentences = [found[0] for found in _SENTENCE.finditer(text[:_LOOKED_AT])]
    stated = [sentence for sentence in sentences if not _QUESTION.search(sentence)]
    if len(stated) == len(sentences):
        return 0.0
    return max(1 - sum(map(len, stated)) / STATED, 0.0)
