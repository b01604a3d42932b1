"""What a model's sentence owes to the texts that it came from, and cutting a text that is too long to show.

Pure functions over text; it knows nothing of entries and plans.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from infinimem import law, tokens
from infinimem.retrieval import tokenizer

OCCURRENCES = 1000
"""A text that stands more often in its origin is not looked for to the end; nobody says that much alike."""

_SPACE = re.compile(r"[^\S\n]+")
_LINES = re.compile(r"\s*\n\s*")
_ENDS = ".!?…:;\"'”’)»"
_BULLETS = ("- ", "* ", "+ ", "• ")
_FULL_STOPS = "。！？"  # no space follows them
_BREAK = re.compile(rf"(?<=[.!?…])(?<!\d\.)\s+|(?<=[{_FULL_STOPS}])|\n+")  # "280. " may head a list item


def unsupported(text: str, origins: Sequence[str]) -> list[str]:
    """What the law misses in the origins (law.unsupported); or that text and origins share no word at all."""
    missing = law.unsupported(text, origins)
    if not missing and not set(tokenizer.tokens(text)) & set(tokenizer.tokens("\n".join(origins))):
        return ["no word in common"]
    return missing


def verbatim(text: str, origin: str) -> bool:
    """Whether the text is the origin or a run of whole sentences or lines of it, but for white space.

    Half a sentence is not verbatim: it may have lost a "not".
    """
    told = _folded(origin)
    said = " ".join(text.split())
    flat = told.replace("\n", " ")
    start = flat.find(said) if said else -1
    for _ in range(OCCURRENCES):
        if start < 0:
            return False
        end = start + len(said)
        before, last, after = told[max(start - 3, 0) : start], said[-1], told[end : end + 1]
        if before[-2:] in _BULLETS and before[:-2][-1:] in ("", "\n"):
            before = "\n"
        opens = before[-1:] in ("", "\n", *_FULL_STOPS) or (before[-1] == " " and before[-2:-1] in _ENDS)
        if opens and (after in ("", "\n") or last in _FULL_STOPS or (last in _ENDS and after == " ")):
            return True
        start = flat.find(said, start + 1)
    return False


@lru_cache(maxsize=64)  # one origin is asked about for each of its entries
def _folded(text: str) -> str:
    """The text with single blanks and line breaks, none at the ends of lines."""
    return _LINES.sub("\n", _SPACE.sub(" ", text)).strip()


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
