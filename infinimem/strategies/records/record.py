"""One record: a header, for some kinds a text of its own, and the evidence that it names and never copies.

As a file it has a header of its own making, then text of its own, and the evidence quoted for people. The
header is read and the text of its own, the quotations never. `parse` gives back what `render` wrote.

Source: All-Mem, Eq. 1 (memory unit); xMemory, RecMem and GAM keep the same with other kinds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from itertools import takewhile
from typing import Any

from infinimem.grounding.sentences import span_of
from infinimem.markdown.characters import clean_text, one_line
from infinimem.markdown.document import Document
from infinimem.markdown.header import MAX_BYTES, flow, quote
from infinimem.model import Finding
from infinimem.spec import Kind, StrategySpec
from infinimem.store.records import LONGEST_RUN

ANEW = "infinimem rebuild makes all records anew"
"""What helps where nothing less does."""

UNVERIFIED = (("unverified", "true"),)
"""`aux` of a record whose words claim what its evidence does not hold."""

_ID = re.compile(r"([a-z]{1,8})-([0-9]{6,18})(?:-([0-9]{2,9}))?\Z")


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
class Link:
    """A link as its source holds it; `weight` is how near the two are, None for a kind without measure."""

    kind: str
    to: str
    weight: float | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """A record.

    Args:
        id: "u-000212": the prefix of its kind and a number, mostly that of its first turn; or with a suffix
            "u-000212-01" for what was derived.
        time: ISO 8601, when its evidence was said; of a merge that of the newest member.
        session: stem of the evidence document; None where there are several.
        links: to other records, by kind and target, even to those that are not here.
        when: when what it tells of happens or holds, where that is not when it was said (docs/FORMAT.md).
        refs, sources: the turns, or ids of the records, that it is made of.
        moved: those of them that were part of another record before, each with that one.
        visible: whether it stands in the folder of its kind; else it is archived.
        aux: further keys and values in a word each, such as `UNVERIFIED`.
        prose: text of its own above the quotations, for kinds that have one; see `clean_prose`.
        others: header lines of keys that are a person's (Obsidian's `tags`, `aliases`), as they stand.
    """

    id: str
    spec: StrategySpec
    summary: str
    keywords: tuple[str, ...] = ()
    time: str | None = None
    session: str | None = None
    refs: tuple[Ref, ...] = ()
    sources: tuple[str, ...] = ()
    moved: tuple[tuple[str, str], ...] = ()
    visible: bool = True
    aux: tuple[tuple[str, str], ...] = ()
    prose: str = ""
    others: tuple[str, ...] = ()
    when: str | None = None
    links: tuple[Link, ...] = ()

    @property
    def kind(self) -> Kind:
        """Its kind; ValueError if the strategy keeps none of this prefix."""
        kind = self.spec.kind_of(self.id)
        if kind is None:
            raise ValueError(f"{self.spec.name} keeps no records called {self.id[:80]!r}")
        return kind

    @property
    def folder(self) -> str:
        return self.kind.folder if self.visible else self.spec.archived

    @property
    def doc_id(self) -> str:
        return self.folder + self.id

    @property
    def text(self) -> str:
        """What is embedded: keywords, summary, prose."""
        return "\n".join((", ".join(self.keywords), self.summary, *([self.prose] if self.prose else ())))

    @property
    def group(self) -> str:
        """The records that it is compared with: those of its folder; none, where it tells of nothing."""
        return self.folder if self.text.strip() else ""

    @property
    def pinned(self) -> bool:
        """Whether its header says `pin: true`: no model's word rewrites, merges or archives it."""
        return any(line.split() == ["pin:", "true"] for line in self.others)

    @property
    def age(self) -> tuple[datetime, int]:
        """Older is less: by time, then by number. What has no time is older than what has one."""
        return moment(self.time), number_of(self.id)[0]


def record_id(prefix: str, number: int, suffix: int = 0) -> str:
    """The id of a record, or with a suffix of one that was derived."""
    return f"{prefix}-{number:06d}" + (f"-{suffix:02d}" if suffix else "")


@lru_cache(maxsize=1 << 16)
def number_of(name: str) -> tuple[int, int]:
    """Number and suffix (0 for none) of a record, the order of creation; ValueError for no record's id."""
    match = _ID.match(name)
    found = (int(match[2]), int(match[3] or 0)) if match else (0, 0)
    if not match or found == (0, 0) or record_id(match[1], *found) != name:
        raise ValueError(f"{name[:80]!r} is no record's id")
    return found


def is_record_id(name: str) -> bool:
    """Whether it is a record's id as `record_id` writes it."""
    try:
        return number_of(name) > (0, 0)
    except ValueError:
        return False


@lru_cache(maxsize=1 << 16)
def moment(time: str | None) -> datetime:
    """A time to order by, without a zone (UTC where it names one); anything else is older than all."""
    try:
        found = datetime.fromisoformat(time or "")
        return found.astimezone(UTC).replace(tzinfo=None) if found.tzinfo else found
    except (ValueError, OverflowError):
        return datetime.min


# ── as a file ───────────────────────────────────────────────────────────────────────────────────


KEYS = ("id", "kind", "summary", "keywords", "time", "when", "session", "evidence", "links", "aux")
"""Of a record's header, in their order; all others are a person's, stand behind them and are kept."""

SHOWN = 4000
"""Characters of evidence that a record's file quotes."""

_SPAN = re.compile(r"(0|[1-9][0-9]{0,11})-([1-9][0-9]{0,11})\Z")
_SEQS = re.compile(r"([1-9][0-9]{0,17})(?:-([1-9][0-9]{0,17}))?\Z")
_WEIGHT = re.compile(r"-?[01]\.[0-9]{3}\Z")
_KEY = re.compile(r"([^\s#:-][^:]*):(?:\s|\Z)")
_WORD = re.compile(r"[A-Za-z0-9_.+-]{1,40}\Z")
_STEM = re.compile(r"[^/\n]{1,200}\Z")


def header(record: Record) -> list[str]:
    """The lines of a record's header, both delimiters included."""
    lines = ["---", f"id: {record.doc_id}", f"kind: {record.kind.name}"]
    lines.append(f"summary: {quote(record.summary)}")
    lines.append(f"keywords: {flow(record.keywords)}")
    told = ((key, getattr(record, key)) for key in ("time", "when", "session"))
    lines += (f"{key}: {quote(value)}" for key, value in told if value is not None)
    lines.append("evidence:")
    at, refs = 0, record.refs
    while at < len(refs):  # a line a piece of evidence; whole turns that follow each other share one
        ref, end = refs[at], at + 1
        while ref.span is None and end < len(refs) and refs[end] == Ref(ref.seq + end - at):
            end += 1
        run = f"-{refs[end - 1].seq}" if end - at > 1 else ""
        span = f', span: "{ref.span[0]}-{ref.span[1]}"' if ref.span else ""
        lines.append(f"  - {{ref: {ref.seq}{run}{span}}}")
        at = end
    moved = dict(record.moved)
    for name in record.sources:
        was = f", was: {moved[name]}" if name in moved else ""
        lines.append(f"  - {{{record.kind.source}: {name}{was}}}")
    if record.links:
        lines.append("links:")
        for link in record.links:
            weight = "" if link.weight is None else f", w: {link.weight:.3f}"
            lines.append(f"  - {{type: {link.kind}, to: {link.to}{weight}}}")
    if record.aux:
        lines.append(f"aux: {{{', '.join(f'{key}: {value}' for key, value in record.aux)}}}")
    return [*lines, *record.others, "---"]


def fits(record: Record) -> bool:
    """Whether the header keeps within the bound over which none is read."""
    return sum(len(line.encode()) + 1 for line in header(record)) <= MAX_BYTES


def render(record: Record, quotes: Sequence[Quote]) -> str:
    """A record's file; no line of a quotation can be taken for an entry or a heading."""
    lines = header(record)
    if record.prose:
        lines += [*record.prose.split("\n"), ""]
    room = SHOWN
    for at, said in enumerate(quotes):
        lines += [""] if at else []
        if room <= 0:
            lines.append("> …")
            break
        text = said.text if len(said.text) <= room else said.text[:room].rstrip() + "…"
        name = said.speaker or said.role
        who = f"{one_line(name)}: " if name else ""
        told = clean_text(who + (text or f"(turn {said.ref.seq} is not in the evidence)"))
        lines += (f"> {line}".rstrip(" ") for line in told.split("\n"))
        room -= len(said.text)
    return "\n".join(lines) + "\n"


# ── reading ─────────────────────────────────────────────────────────────────────────────────────


def clean_prose(text: str) -> str:
    """A text as it may stand above quotations: no line can be taken for one, for an entry or a heading."""
    lines = (line.lstrip(" >#-<").rstrip() for line in clean_text(text).split("\n"))
    return "\n".join(lines).strip("\n")


def parse(document: Document, spec: StrategySpec) -> Record | Finding:
    """The record that a document in a folder of a strategy's records holds, or why it holds none."""
    folder, _, name = document.id.rpartition("/")
    if f"{folder}/" not in spec.record_folders:  # its next version would stand beside
        what = f"records stand in {' and '.join(spec.record_folders)} themselves; move it there"
        return Finding("error", what, document.id)
    found = document.header
    if found.problem or not found.end:
        what = found.problem or "a record without a header"
        return Finding("error", f"{what}; mend it, or {ANEW}", document.id)
    try:
        kind = spec.kind_of(name)
        if kind is None or not is_record_id(name) or f"{folder}/" not in (kind.folder, spec.archived):
            raise ValueError(f"{name[:80]!r} is no id of a record that stands there")
        return _record(name, spec, kind, document)
    except (ValueError, OverflowError) as wrong:
        return Finding("error", f"the header is no record's: {wrong}; mend it, or {ANEW}", document.id)


def _others(lines: Sequence[str]) -> tuple[str, ...]:
    """The header lines of keys that are not a record's, with the lines that belong to them."""
    found: list[str] = []
    ours = True
    for line in lines:
        if key := _KEY.match(line):
            ours = key[1] in KEYS
        if not ours:
            found.append(line.rstrip("\r"))
    return tuple(found)


def _record(name: str, spec: StrategySpec, kind: Kind, document: Document) -> Record:
    """The record of a document; ValueError says what is wrong with its header."""
    values = document.header.values
    if values.get("kind") != kind.name:
        raise ValueError(f"its kind is not {kind.name}")
    rows = [_told(row, kind.source, "ref", "span", "was") for row in _listed(values, "evidence")]
    of_records = [row for row in rows if kind.source in row]
    refs = tuple(ref for row in rows if kind.source not in row for ref in _refs(row))
    sources = tuple(row[kind.source] for row in of_records)
    if not all(key in (kind.source, "was") and is_record_id(row[key]) for row in of_records for key in row):
        raise ValueError("a line of its evidence is not understood")
    doubled = len({*refs}) < len(refs) or len({*sources}) < len(sources)
    if not rows or (refs and sources) or doubled or name in sources:
        raise ValueError("its evidence is neither turns nor other records, each once")
    session = values.get("session")
    if session is not None and not (isinstance(session, str) and _STEM.match(session)):
        raise ValueError("session is no name of an evidence file")
    aux = values.get("aux", {})
    words = [word for pair in aux.items() for word in pair] if isinstance(aux, dict) else [None]
    if not all(isinstance(word, str) and _WORD.match(word) for word in words):
        raise ValueError("aux is no list of keys with a word each")
    own = takewhile(lambda line: not line.startswith(">"), document.body.split("\n"))
    when = _line(values["when"], "when") if "when" in values else None
    if when is not None and span_of(when) is None:
        raise ValueError("when is no day, month, year or interval of two of them")
    return Record(
        id=name,
        spec=spec,
        summary=_line(values.get("summary", ""), "summary"),
        keywords=tuple(_line(word, "keywords") for word in _listed(values, "keywords")),
        time=_line(values["time"], "time") if "time" in values else None,
        session=session,
        refs=refs,
        sources=sources,
        moved=tuple((row[kind.source], row["was"]) for row in of_records if "was" in row),
        visible=document.id.startswith(kind.folder),
        aux=tuple(aux.items()),
        prose=clean_prose("\n".join(own)) if kind.prose else "",
        others=_others(document.lines[1 : document.header.end - 1]),
        when=when,
        links=_links(name, values, spec),
    )


def _listed(values: Mapping[str, Any], key: str) -> Sequence[Any]:
    found = values.get(key, [])
    if not isinstance(found, list):
        raise ValueError(f"{key} is no list")
    return found


def _line(value: object, key: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{key} is no text")
    return one_line(clean_text(value))


def _refs(row: Mapping[str, str]) -> Sequence[Ref]:
    if row.keys() <= {"ref", "span"} and (seqs := _SEQS.match(row.get("ref", ""))):
        first, last = int(seqs[1]), int(seqs[2] or seqs[1])
        if "span" not in row and first <= last < first + LONGEST_RUN and (last > first or not seqs[2]):
            return tuple(map(Ref, range(first, last + 1)))
        ends = _SPAN.match(row.get("span", ""))
        if ends and not seqs[2] and int(ends[1]) < int(ends[2]):
            return (Ref(first, (int(ends[1]), int(ends[2]))),)
    raise ValueError("a line of its evidence is not understood")


def _links(name: str, values: Mapping[str, Any], spec: StrategySpec) -> tuple[Link, ...]:
    links = []
    for row in _listed(values, "links"):
        told = _told(row, "type", "to", "w")
        kind, to, weight = told.get("type", ""), told.get("to", ""), told.get("w")
        known = kind in spec.links and spec.kind_of(to) and is_record_id(to)
        if not known or not (weight is None or _WEIGHT.match(weight)):
            raise ValueError("a link is not understood")
        links.append(Link(kind, to, None if weight is None else float(weight)))
    if len({(link.kind, link.to) for link in links}) < len(links) or any(link.to == name for link in links):
        raise ValueError("a link stands twice or leads to the record itself")
    return tuple(sorted(links, key=lambda link: (link.kind, link.to)))


def _told(row: object, *keys: str) -> dict[str, str]:
    """A line of a list, if it holds texts under these keys alone; else nothing."""
    if not isinstance(row, dict) or not all(key in keys and isinstance(row[key], str) for key in row):
        return {}
    return row
