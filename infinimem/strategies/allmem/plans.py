"""What a model plans for one target, checked and reduced to what an operator needs.

No judgement of quality: only what can be checked. Faults, by sub-code of PLAN_VALIDATION_FAIL:
    NOT_WHOLE       no split, and yet not one segment that is the whole text
    TOO_FEW, TOO_MANY, NOT_SUBSTRING, OVERLAP, COVERAGE    of segments
    EMPTY, TOO_LONG of a summary or of keywords

Source: All-Mem, Appendix B.5, B.6 and C.3.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from infinimem.strategies.records.descriptor import Descriptor, descriptor
from infinimem.strategies.records.record import Ref
from infinimem.strategies.records.record_store import RecordStore
from infinimem.strategies.records.segments import size, spans_of

SEGMENTS = 8
"""Segments of one split at most."""

Data = Mapping[str, Any]


@dataclass(frozen=True)
class Part:
    """A sibling to be: the piece of evidence that it holds, and its descriptor."""

    refs: tuple[Ref, ...]
    descriptor: Descriptor


@dataclass(frozen=True)
class Invalid:
    """Why a plan is not executed."""

    sub: str


class Declined:
    """The model thought it over and leaves the unit whole."""


def split_plan(
    bank: RecordStore, name: str, data: Data, coverage: float
) -> tuple[Part, ...] | Declined | Invalid:
    """The parts of a split, in the order of the text.

    Args:
        coverage: least share of the text, white space apart, that the segments hold together.
    """
    text = bank.text(name)
    rows = data["segments"]
    if not data["do_split"]:
        return Declined() if [row["segment_text"] for row in rows] == [text] else Invalid("NOT_WHOLE")
    if len(rows) < 2:
        return Invalid("TOO_FEW")
    if len(rows) > SEGMENTS:
        return Invalid("TOO_MANY")
    spans = spans_of(text, [row["segment_text"] for row in rows])
    if isinstance(spans, str):
        return Invalid(spans)
    held = sum(size(text[start:end]) for start, end in spans)
    if held < coverage * size(text):
        return Invalid("COVERAGE")
    parts = []
    for (start, end), row in sorted(zip(spans, rows, strict=True), key=lambda one: one[0]):
        found = descriptor(row["segment_summary"], row["segment_keywords"])
        if found.fault:
            return Invalid(found.fault)
        parts.append(Part(bank.cut(name, start, end), found))
    return tuple(parts)


def merge_plan(data: Data) -> Descriptor | Invalid:
    """The descriptor of a representative."""
    return _checked(descriptor(data["summary"], data["keywords"]))


def update_plan(data: Data) -> Descriptor | Invalid:
    """The descriptor of what is current; equal to the old one it changes nothing."""
    return _checked(descriptor(data["updated_summary"], data["updated_keywords"]))


def _checked(found: Descriptor) -> Descriptor | Invalid:
    return Invalid(found.fault) if found.fault else found
