"""What a model named: ids read, each line in the one place that it is named first; and what its sentences owe
to the texts that they came from. It knows nothing of documents.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

from infinimem import terms, tokens
from infinimem.grounding import claims
from infinimem.llm.base import Task
from infinimem.model import Reason
from infinimem.strategies.records.asking import Asker, Data


def ask_groups(
    asker: Asker, task: Task, variables: Mapping[str, Any], known: Collection[int]
) -> tuple[list[tuple[Data, list[int]]], Sequence[Reason]]:
    """Ask for groups of facts, of which each is in one, by a task whose reply is a list of items with
    "fact_ids".

    Returns the items of the better reply, each with the facts that it is the first to name; and what is
    wrong.
    """

    def read(data: Data) -> tuple[Sequence[Data], list[list[int]], list[Reason]]:
        (items,) = data.values()
        return (items, *once((item["fact_ids"] for item in items), known))

    data, wrong = asker.ask_checked(task, variables, lambda data: read(data)[2])
    items, seqs, _ = read(data) if data is not None else ((), [], None)
    return list(zip(items, seqs, strict=True)), wrong


def seqs_of(ids: Iterable[str], known: Collection[int]) -> list[int]:
    """The ids that are seqs in `known`, in their order."""
    found = (seq_of(name) for name in ids)
    return [seq for seq in found if seq is not None and seq in known]


def seq_of(name: str) -> int | None:
    """The seq that an id stands for; models write "41", sometimes "#41" or "[41]"."""
    digits = name.strip(" #[]<>")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 19 else None


def once(groups: Iterable[Iterable[str]], known: Collection[int]) -> tuple[list[list[int]], list[Reason]]:
    """Put every id in the one place that it is named first.

    Returns the groups as seqs (some may be empty now), and why that is not what was asked for: UNKNOWN,
    REPEATED and MISSING ids.
    """
    placed: list[list[int]] = []
    seen: set[int] = set()
    repeated: set[int] = set()
    unknown: list[str] = []
    for group in groups:
        placed.append([])
        for name in group:
            seq = seq_of(name)
            if seq is None or seq not in known:
                unknown.append(name)
            elif seq in seen:
                repeated.add(seq)
            else:
                seen.add(seq)
                placed[-1].append(seq)
    reasons = []
    if missing := sorted(set(known) - seen):
        reasons.append(Reason("MISSING", tuple(missing)))
    if repeated:
        reasons.append(Reason("REPEATED", tuple(sorted(repeated))))
    if unknown:
        reasons.append(Reason("UNKNOWN", (), ", ".join(name[:20] for name in unknown[:10])))
    return placed, reasons


HEAD = 16
"""Characters by which a sentence is looked up."""

_SPACE = re.compile(r"[^\S\n]+")
_LINES = re.compile(r"\s*\n\s*")
_ENDS = ".!?…:;\"'”’)»"
_FULL_STOPS = "。！？"  # no space follows them
_BEGINS = re.compile(rf"(?<![^\n{_FULL_STOPS}])|(?<=[{re.escape(_ENDS)}] )|(?:(?<=\A[-*+•] )|(?<=\n[-*+•] ))")
_BREAK = re.compile(rf"(?<=[.!?…])(?<!\d\.)\s+|(?<=[{_FULL_STOPS}])|\n+")  # "280. " may head a list item


def unsupported(text: str, origins: Sequence[str], people: Iterable[str] = ()) -> list[str]:
    """What the origins, or `people` for "I" and "you", do not bear out; or that no word is shared."""
    missing = claims.unsupported(text, [*origins, *people])
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
    """The text with single blanks and line breaks; on one line; where sentences begin, by their first
    words."""
    told = _LINES.sub("\n", _SPACE.sub(" ", text)).strip()
    flat = told.replace("\n", " ")
    begins: dict[str, list[int]] = {}
    for match in _BEGINS.finditer(told):
        begins.setdefault(flat[match.start() : match.start() + HEAD], []).append(match.start())
    return told, flat, begins


def cut(text: str, limit: int) -> list[str]:
    """The text in pieces of about `limit` tokens at most, cut after sentences or lines."""
    pieces = map("".join, tokens.packed(_parts(text, limit), limit, tokens.count))
    return [piece for piece in pieces if piece.strip()]


def _parts(text: str, limit: int) -> list[str]:
    """Sentences and lines with the white space after them; endless ones in bounded runs of characters."""
    ends = [match.end() for match in _BREAK.finditer(text)]
    starts = [0, *ends]
    sentences = [text[start:end] for start, end in zip(starts, [*ends, len(text)], strict=True)]
    return [
        sentence[at : at + 2 * limit] for sentence in sentences for at in range(0, len(sentence), 2 * limit)
    ]
