"""One record: a header, for some kinds a text of its own, and the evidence that it names and never copies.

Source: All-Mem, Eq. 1 (memory unit); xMemory, RecMem and GAM keep the same with other kinds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache

from infinimem.spec import Kind, StrategySpec
from infinimem.strategies.links import Link

ANEW = "infinimem rebuild makes all records anew"
"""What helps where nothing less does."""

UNVERIFIED = (("unverified", "true"),)
"""`aux` of a record whose words claim what its evidence does not hold."""
DEGRADED = (("degraded", "true"),)
"""`aux` of one that no model told: its first words stand in."""

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
        prose: text of its own above the quotations, for kinds that have one; see `codec.clean_prose`.
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
        """Its kind.

        Raises:
            ValueError: the strategy keeps none of this prefix.
        """
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
    def order(self) -> tuple[int, int]:
        """The order of creation: number, then suffix."""
        return number_of(self.id)

    @property
    def age(self) -> tuple[datetime, int]:
        """Older is less: by time, then by number. What has no time is older than what has one."""
        return moment(self.time), self.order[0]


def record_id(prefix: str, number: int, suffix: int = 0) -> str:
    """The id of a record, or with a suffix of one that was derived."""
    return f"{prefix}-{number:06d}" + (f"-{suffix:02d}" if suffix else "")


def prefix_of(name: str) -> str:
    """The prefix of an id: what stands before its number."""
    return name.partition("-")[0]


@lru_cache(maxsize=1 << 16)
def number_of(name: str) -> tuple[int, int]:
    """Number and suffix (0 for none) of a record.

    Raises:
        ValueError: it is no record's id as `record_id` writes it.
    """
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
