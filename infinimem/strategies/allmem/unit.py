"""One memory unit as a record: a header of its own making, and below it the evidence quoted for people.

A unit holds no words but its descriptor; its evidence is named, never copied. The header alone is read.
Source: All-Mem, Eq. 1 (unit) and section 3.1 (links).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from infinimem.markdown.characters import clean_text, one_line
from infinimem.markdown.document import Document
from infinimem.markdown.header import MAX_BYTES, flow, quote
from infinimem.model import Finding
from infinimem.strategies.graph.links import Link

HOME = "allmem/"
UNITS, ARCHIVED = f"{HOME}units/", f"{HOME}archive/"
"""Folders of the visible surface and of what left it."""

VERSION, SIBLING, TEMPORAL, SEMANTIC = "version", "sibling", "temporal", "semantic"
KINDS = (VERSION, SIBLING, TEMPORAL, SEMANTIC)
"""Kinds of link, in the order in which a reader follows them (section 3.4)."""

KEYS = ("id", "kind", "summary", "keywords", "time", "session", "evidence", "links", "aux")
"""Of a unit's header, in their order; all others are a person's, stand behind them and are kept."""

SHOWN = 4000
"""Characters of evidence that a unit's file quotes."""

ANEW = "infinimem rebuild makes all units anew"
"""What helps where nothing less does."""

_ID = re.compile(r"u-([0-9]{6,18})(?:-([0-9]{2,9}))?\Z")
_SPAN = re.compile(r"(0|[1-9][0-9]{0,11})-([1-9][0-9]{0,11})\Z")
_SEQ = re.compile(r"[1-9][0-9]{0,17}\Z")
_WEIGHT = re.compile(r"-?[01]\.[0-9]{3}\Z")
_KEY = re.compile(r"([^\s#:-][^:]*):(?:\s|\Z)")
_STEM = re.compile(r"[^/\n]{1,200}\Z")


@dataclass(frozen=True, slots=True, order=True)
class Ref:
    """A turn, or characters `span[0]` to `span[1]` (exclusive) of its text."""

    seq: int
    span: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Quote:
    """What a reference stands for; `text` is empty where the turn is gone, `speaker` None for one unnamed."""

    ref: Ref
    speaker: str | None
    time: str | None
    text: str
    role: str = ""


@dataclass(frozen=True, slots=True)
class Unit:
    """A memory unit; its links are the graph's.

    Args:
        id: "u-000212", or with a suffix "u-000212-01" for what consolidation made.
        summary: one line.
        keywords: each one line.
        time: ISO 8601, when its evidence was said; of a merge that of the newest member.
        session: stem of the evidence document; None where there are several.
        refs: the evidence of a turn's unit or of a split's sibling.
        sources: ids of the units whose evidence a merge's representative stands for.
        visible: whether it is on the surface.
        unverified: whether the descriptor claims what the evidence does not hold.
        others: header lines of keys that are a person's (Obsidian's `tags`, `aliases`), as they stand.
    """

    id: str
    summary: str
    keywords: tuple[str, ...] = ()
    time: str | None = None
    session: str | None = None
    refs: tuple[Ref, ...] = ()
    sources: tuple[str, ...] = ()
    visible: bool = True
    unverified: bool = False
    others: tuple[str, ...] = ()

    @property
    def doc_id(self) -> str:
        return (UNITS if self.visible else ARCHIVED) + self.id

    @property
    def text(self) -> str:
        """What is embedded: keywords, then summary."""
        return f"{', '.join(self.keywords)}\n{self.summary}"

    @property
    def order(self) -> tuple[int, int]:
        """The order of creation: number, then suffix."""
        return number_of(self.id)

    @property
    def age(self) -> tuple[datetime, int]:
        """Older is less: by time, then by number. What has no time is older than what has one."""
        return moment(self.time), self.order[0]


def unit_id(number: int, suffix: int = 0) -> str:
    """The id of a turn's unit, or with a suffix of one that was derived."""
    return f"u-{number:06d}" + (f"-{suffix:02d}" if suffix else "")


@lru_cache(maxsize=1 << 16)
def number_of(name: str) -> tuple[int, int]:
    """Number and suffix (0 for none) of a unit.

    Raises:
        ValueError: it is no unit's id as `unit_id` writes it.
    """
    match = _ID.match(name)
    found = (int(match[1]), int(match[2] or 0)) if match else (0, 0)
    if unit_id(*found) != name:
        raise ValueError(f"{name[:80]!r} is no unit's id")
    return found


def is_unit_id(name: str) -> bool:
    """Whether it is a unit's id as `unit_id` writes it."""
    try:
        return number_of(name) > (0, 0)
    except ValueError:
        return False


@lru_cache(maxsize=1 << 16)
def moment(time: str | None) -> datetime:
    """A time to order by, without a zone (UTC where it names one); what is none is older than all."""
    try:
        found = datetime.fromisoformat(time or "")
        return found.astimezone(UTC).replace(tzinfo=None) if found.tzinfo else found
    except (ValueError, OverflowError):
        return datetime.min


# ── writing ─────────────────────────────────────────────────────────────────────────────────────


def header(unit: Unit, links: Sequence[Link]) -> list[str]:
    """The lines of a unit's header, both delimiters included; links by kind and target."""
    lines = ["---", f"id: {unit.doc_id}", "kind: unit"]
    lines.append(f"summary: {quote(unit.summary)}")
    lines.append(f"keywords: {flow(unit.keywords)}")
    if unit.time is not None:
        lines.append(f"time: {quote(unit.time)}")
    if unit.session is not None:
        lines.append(f"session: {quote(unit.session)}")
    lines.append("evidence:")
    lines += map(_ref_line, unit.refs)
    lines += [f"  - {{unit: {name}}}" for name in unit.sources]
    if links:
        lines.append("links:")
        lines += map(_link_line, sorted(links, key=lambda link: (link.kind, link.to)))
    if unit.unverified:
        lines.append("aux: {unverified: true}")
    return [*lines, *unit.others, "---"]


def _ref_line(ref: Ref) -> str:
    span = f', span: "{ref.span[0]}-{ref.span[1]}"' if ref.span else ""
    return f"  - {{ref: {ref.seq}{span}}}"


def _link_line(link: Link) -> str:
    weight = "" if link.weight is None else f", w: {link.weight:.3f}"
    return f"  - {{type: {link.kind}, to: {link.to}{weight}}}"


def fits(unit: Unit, links: Sequence[Link]) -> bool:
    """Whether the header keeps within the bound over which none is read."""
    return sum(len(line.encode()) + 1 for line in header(unit, links)) <= MAX_BYTES


def render(unit: Unit, links: Sequence[Link], quotes: Sequence[Quote]) -> str:
    """A unit's file."""
    lines = header(unit, links)
    room = SHOWN
    for at, said in enumerate(quotes):
        lines += [""] if at else []
        if room <= 0:
            lines.append("> …")
            break
        lines += _quoted(said, room)
        room -= len(said.text)
    return "\n".join(lines) + "\n"


def _quoted(said: Quote, room: int) -> list[str]:
    """A quotation; no line of it can be taken for an entry or a heading."""
    text = said.text if len(said.text) <= room else said.text[:room].rstrip() + "…"
    name = said.speaker or said.role
    who = f"{one_line(name)}: " if name else ""
    told = clean_text(who + (text or f"(turn {said.ref.seq} is not in the evidence)"))
    return [f"> {line}".rstrip(" ") for line in told.split("\n")]


# ── reading ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Record:
    """A unit as its file has it."""

    unit: Unit
    links: tuple[Link, ...]


def parse(document: Document) -> Record | Finding:
    """The unit that a document's header describes, or why it describes none; never raises."""
    if f"{document.id.rpartition('/')[0]}/" not in (UNITS, ARCHIVED):  # its next version would stand beside
        what = f"units stand in {UNITS} and {ARCHIVED} themselves; move it there"
        return Finding("error", what, document.id)
    found = document.header
    if found.problem or not found.end:
        what = found.problem or "a unit without a header"
        return Finding("error", f"{what}; mend it, or {ANEW}", document.id)
    try:
        return _record(document.id, found.values, _others(document.lines[1 : found.end - 1]))
    except (ValueError, OverflowError) as wrong:
        return Finding("error", f"the header is no unit's: {wrong}; mend it, or {ANEW}", document.id)


def _others(lines: Sequence[str]) -> tuple[str, ...]:
    """The header lines of keys that are not a unit's, with the lines that belong to them."""
    found: list[str] = []
    ours = True
    for line in lines:
        if key := _KEY.match(line):
            ours = key[1] in KEYS
        if not ours:
            found.append(line.rstrip("\r"))
    return tuple(found)


def _record(doc_id: str, values: Mapping[str, Any], others: tuple[str, ...] = ()) -> Record:
    """A unit from a header's values.

    Raises:
        ValueError: what is wrong with them.
    """
    name = doc_id.rsplit("/", 1)[-1]
    number_of(name)
    if values.get("kind") != "unit":
        raise ValueError("its kind is not unit")
    rows = [*map(_evidence, _listed(values, "evidence"))]
    refs = tuple(row for row in rows if isinstance(row, Ref))
    sources = tuple(row for row in rows if isinstance(row, str))
    if not rows or (refs and sources) or len(set(rows)) < len(rows) or name in sources:
        raise ValueError("its evidence is neither turns nor other units, each once")
    aux = values.get("aux", {})
    if aux not in ({}, {"unverified": "true"}):
        raise ValueError("aux is not {unverified: true}")
    session = values.get("session")
    if session is not None and not (isinstance(session, str) and _STEM.match(session)):
        raise ValueError("session is no name of an evidence file")
    links = tuple(sorted(map(_link, _listed(values, "links")), key=lambda link: (link.kind, link.to)))
    if len({(link.kind, link.to) for link in links}) < len(links) or any(link.to == name for link in links):
        raise ValueError("a link stands twice or leads to the unit itself")
    unit = Unit(
        id=name,
        summary=_line(values.get("summary", ""), "summary"),
        keywords=tuple(_line(word, "keywords") for word in _listed(values, "keywords")),
        time=_line(values["time"], "time") if "time" in values else None,
        session=session,
        refs=refs,
        sources=sources,
        visible=doc_id.startswith(UNITS),
        unverified=bool(aux),
        others=others,
    )
    return Record(unit, links)


def _listed(values: Mapping[str, Any], key: str) -> Sequence[Any]:
    found = values.get(key, [])
    if not isinstance(found, list):
        raise ValueError(f"{key} is no list")
    return found


def _line(value: object, key: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{key} is no text")
    return one_line(clean_text(value))


def _evidence(row: object) -> Ref | str:
    told = _told(row, "unit", "ref", "span")
    if told.keys() == {"unit"} and is_unit_id(told["unit"]):
        return told["unit"]
    if told.keys() <= {"ref", "span"} and _SEQ.match(told.get("ref", "")):
        if "span" not in told:
            return Ref(int(told["ref"]))
        ends = _SPAN.match(told["span"])
        if ends and int(ends[1]) < int(ends[2]):
            return Ref(int(told["ref"]), (int(ends[1]), int(ends[2])))
    raise ValueError("a line of its evidence is not understood")


def _link(row: object) -> Link:
    told = _told(row, "type", "to", "w")
    kind, to, weight = told.get("type", ""), told.get("to", ""), told.get("w")
    if kind in KINDS and is_unit_id(to) and (weight is None or _WEIGHT.match(weight)):
        return Link(kind, to, None if weight is None else float(weight))
    raise ValueError("a link is not understood")


def _told(row: object, *keys: str) -> dict[str, str]:
    """A line of a list, if it holds texts under these keys alone; else nothing."""
    if not isinstance(row, dict) or not all(key in keys and isinstance(row[key], str) for key in row):
        return {}
    return row
