"""What a model's sentence owes to the texts that it came from, and cutting a text that is too long to show.

Pure functions over text; it knows nothing of entries and plans.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain

from infinimem import terms, tokens
from infinimem.grounding import claims

HEAD = 16
"""Characters by which a sentence is looked up."""

_SPACE = re.compile(r"[^\S\n]+")
_LINES = re.compile(r"\s*\n\s*")
_ENDS = ".!?…:;\"'”’)»"
_FULL_STOPS = "。！？"  # no space follows them
_BEGINS = re.compile(rf"(?<![^\n{_FULL_STOPS}])|(?<=[{re.escape(_ENDS)}] )|(?:(?<=\A[-*+•] )|(?<=\n[-*+•] ))")
_BREAK = re.compile(rf"(?<=[.!?…])(?<!\d\.)\s+|(?<=[{_FULL_STOPS}])|\n+")  # "280. " may head a list item


def unsupported(text: str, origins: Sequence[str]) -> list[str]:
    """What the origins do not bear out; or that text and origins share no word at all."""
    missing = claims.unsupported(text, origins)
    if not missing and _terms("\n".join(origins)).isdisjoint(terms.tokens(text)):
        return ["no word in common"]
    return missing


@lru_cache(maxsize=16)  # one origin is asked about for each of its entries
def _terms(origin: str) -> frozenset[str]:
    return frozenset(terms.tokens(origin))


def verbatim(text: str, origin: str) -> bool:
    """Whether the text is the origin or a run of whole sentences or lines of it, but for white space.

    Half a sentence is not verbatim: it may have lost a "not".
    """
    said = " ".join(text.split())
    told, flat, begins = _folded(origin)
    starts = begins.get(said[:HEAD], ()) if len(said) >= HEAD else chain.from_iterable(begins.values())
    for start in starts:
        if said and flat.startswith(said, start):
            after = told[start + len(said) : start + len(said) + 1]
            if after in ("", "\n") or said[-1] in _FULL_STOPS or (said[-1] in _ENDS and after == " "):
                return True
    return False


@lru_cache(maxsize=16)
def _folded(text: str) -> tuple[str, str, Mapping[str, Sequence[int]]]:
    """The text with single blanks and line breaks, none at the ends of lines; the same on one line; and where
    its sentences and lines begin, by the first characters."""
    told = _LINES.sub("\n", _SPACE.sub(" ", text)).strip()
    flat = told.replace("\n", " ")
    begins: dict[str, list[int]] = {}
    for match in _BEGINS.finditer(told):
        begins.setdefault(flat[match.start() : match.start() + HEAD], []).append(match.start())
    return told, flat, begins


def cut(text: str, limit: int) -> list[str]:
    """The text in pieces of about `limit` tokens at most, cut after sentences or lines."""
    pieces: list[str] = []
    room = 0
    for part in _parts(text, limit):
        length = tokens.count(part)
        if not pieces or length > room:
            pieces.append("")
            room = limit
        pieces[-1] += part
        room -= length
    return [piece for piece in pieces if piece.strip()]


def _parts(text: str, limit: int) -> list[str]:
    """Sentences and lines with the white space after them; endless ones in bounded runs of characters."""
    ends = [match.end() for match in _BREAK.finditer(text)]
    starts = [0, *ends]
    sentences = [text[start:end] for start, end in zip(starts, [*ends, len(text)], strict=True)]
    return [
        sentence[at : at + 2 * limit] for sentence in sentences for at in range(0, len(sentence), 2 * limit)
    ]
