"""The values that all rooms exchange: turns, entries, plans, receipts, evidence, answers.

In: plain fields. Out: frozen values without I/O. Promise: a value never changes after it is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, field
from operator import add, sub
from typing import Literal, NamedTuple

Source = Literal["tool", "AI", "user", "human"]
SOURCES: tuple[Source, ...] = ("tool", "AI", "user", "human")
"""From the least to the most trusted; an entry of several origins has the least, if no user said it."""
_ROLES: Mapping[Source, str] = {"user": "user", "human": "user", "AI": "assistant", "tool": "tool"}

NOTHING = frozenset({"", "null", "Null", "none", "None", "undefined"})
"""What models and scripts write for a value that is not given."""
BUFFERS = CURRENT, INBOX = ("CURRENT", "INBOX")
"""Ids of the buffer document, and of that of entries which await approval (docs/FORMAT.md, Inbox)."""


@dataclass(frozen=True)
class Turn:
    """One message of a conversation, before it is recorded.

    Args:
        text: what was said, any Unicode text.
        role: "user", "assistant" or "tool" ("system" counts as "tool"); decides `source`.
        speaker: name of who said it, where the source has names.
        time: ISO 8601 date or date-time of when it was said; None if unknown.
        session: name of the conversation; turns of a session share an evidence file.
        turn: the source's own id of the message, for example LoCoMo's "D1:3".
        key: idempotency key; a second turn with the same key is not recorded again.
        cwd, branch: the folder that an agent's session was in, and the git branch there.
        note: path of the note that it was read from.

    What is blank counts as not given, and so does a time that is the word "null" or "none".
    """

    text: str
    role: str = "user"
    speaker: str | None = None
    time: str | None = None
    session: str | None = None
    turn: str | None = None
    key: str | None = None
    cwd: str | None = None
    branch: str | None = None
    note: str | None = None

    def __post_init__(self) -> None:
        for name in ("speaker", "time", "session", "turn", "key", "cwd", "branch"):
            value, nothing = getattr(self, name), NOTHING if name == "time" else ("",)
            if isinstance(value, str) and value.strip() in nothing:
                object.__setattr__(self, name, None)


@dataclass(frozen=True, slots=True)
class Entry:
    """A signed line: `- <seq=41,time=2023-06-02,source=user> text`.

    `line` holds its bytes as text, without the line end: what the law compares and what moves.
    For evidence it may span several physical lines, joined by newlines.
    """

    seq: int
    text: str
    line: str
    time: str | None = None
    source: Source = "user"
    origin: tuple[int, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)
    """All other fields of the signature: session, turn, speaker, by, key, label, pin, …"""

    @property
    def role(self) -> str:
        """Who said it, in models' words: "user", "assistant", "tool", or what the turn says ("system")."""
        return self.fields.get("role") or _ROLES[self.source]

    @property
    def known_time(self) -> str:
        """When it was said, else when it was recorded; "" if neither is known."""
        return self.time or self.fields.get("observed", "")

    @property
    def pinned(self) -> bool:
        """Whether a person forbade to archive it without approval."""
        return "pin" in self.fields


@dataclass(frozen=True, slots=True)
class Located:
    """An entry and where it stands; lines count from 1 and include the header, as in an editor."""

    entry: Entry
    doc_id: str
    start_line: int
    end_line: int
    headings: tuple[str, ...] = ()

    @property
    def seq(self) -> int:
        return self.entry.seq

    @property
    def text(self) -> str:
        return self.entry.text


@dataclass(frozen=True)
class NewEntry:
    """A line to be written; the store gives it its seq and derives its source from `origin`, never empty.

    `when` is given if it happened on another day than it was said, `by` is "model" if a model phrased it;
    `refers` is what its pronouns stand for (searched, never shown as evidence), `label` what its turn says.
    """

    text: str
    origin: tuple[int, ...]
    to: str = CURRENT
    heading: str = ""
    when: str | None = None
    by: Literal["model"] | None = None
    refers: str | None = None
    label: str | None = None


Why = Literal[
    "moved", "split", "merged", "superseded", "duplicate", "reimported", "waits", "approved", "refused"
]


@dataclass(frozen=True)
class Move:
    """One line to a section of a topic, or of that topic's archive; a section is made where it is missing.
    `by` is, for "superseded" and "duplicate", the seq of the surviving line."""

    seq: int
    to: str
    heading: str = ""
    why: Why = "moved"
    by: int | None = None

    @property
    def archives(self) -> bool:
        return self.why in ("superseded", "duplicate", "reimported")


@dataclass(frozen=True)
class Derived:
    """Text about entries, regenerated at will and never evidence: a document's summary, and its name."""

    doc_id: str
    summary: str
    origin: tuple[int, ...]
    """Seqs that the text describes."""
    title: str = ""  # what the document is called from now on; "" leaves it the name that it has


@dataclass(frozen=True)
class Put:
    """A whole file in the strategy's own folder; no `text` deletes it."""

    doc_id: str
    text: str | None
    origin: tuple[int, ...] = ()  # seqs of the evidence that this record is the first to hold


@dataclass(frozen=True)
class RejectedReply:
    """A reply of a model that was not taken unchanged, and what was wrong with it, for people to look at."""

    task: str
    text: str
    reasons: tuple[str, ...]


LEFT, AGAIN = "LEFT", "-"
"""In place of the kind of a failure: a person wants a turn left as it was said; or the count of tries
ends, for there was an answer, or a person wants the model asked again."""
TRIES = 3  # calls of a person or program in which one model is asked about a turn, before it is given up


KINDS: Mapping[str, str] = {
    "JSON_PARSE_FAIL": "the answer is not JSON (perhaps a refusal in words)",
    "SCHEMA_FAIL": "the answer is JSON of another form",
    "EMPTY": "the answer is empty",
    "TRUNCATED": "the answer was cut off",
    "TOO_LONG": "the prompt is too long for the model",
    "REFUSED": "the model refused to answer",
    "REASONING": "the answer stands only in the model's reasoning",
    "TOOL_CALL": "the model called a tool in place of an answer",
}
"""Failures of a model (llm/base.py), for people."""


class Unanswered(NamedTuple):
    """Why no answer about a turn was of use: the kind, the model, and in how many calls it was asked."""

    kind: str
    model: str
    tries: int


@dataclass(frozen=True)
class Reason:
    """Why a plan, or a part of it, was refused: exactly one code each (docs/FORMAT.md, Review)."""

    code: str
    seqs: tuple[int, ...] = ()
    detail: str = ""

    def __str__(self) -> str:
        seqs = f" {', '.join(map(str, self.seqs))}" if self.seqs else ""
        return f"{self.code}{seqs}{': ' + self.detail if self.detail else ''}"


@dataclass(frozen=True)
class Withheld:
    """An archiving that needs approval, and why."""

    move: Move
    reason: Reason

    def __str__(self) -> str:
        return f"withheld: {self.reason}"


@dataclass(frozen=True)
class Plan:
    """What a strategy wants done, as data. The store verifies it, applies it whole or not at all.

    `op` names the receipt; an "append" only adds entries to the buffer and marks turns, and leaves none. What
    another process drew from the same turns meanwhile is left out of it.
    """

    op: str = "append"
    adds: tuple[NewEntry, ...] = ()
    moves: tuple[Move, ...] = ()
    derived: tuple[Derived, ...] = ()
    records: tuple[Put, ...] = ()
    empty: tuple[int, ...] = ()  # evidence seqs in which there was nothing to keep
    refused: tuple[int, ...] = ()
    """Evidence seqs of which no entry was accepted: readers see these turns until an entry cites them."""
    unanswered: Mapping[int, str] = field(default_factory=dict)
    """Evidence seqs about which no answer was of use, and its kind: they stay pending."""
    notes: tuple[str, ...] = ()  # what went wrong on the way and how it was mended; lines of the receipt
    rejected: tuple[RejectedReply, ...] = ()
    """Replies of a model that were refused on the way, whole or in part; the store keeps the newest."""
    withheld: tuple[Withheld, ...] = ()
    """Archivings that were meant and are not in `moves`; the store keeps those that a person may approve."""


@dataclass(frozen=True)
class ReceiptRow:
    """A row of a receipt: where a line was, where it is, and why."""

    seq: int
    was: str
    now: str
    why: str


@dataclass(frozen=True)
class Usage:
    """Model calls and tokens, added up."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out

    def __add__(self, other: Usage) -> Usage:
        return Usage(*map(add, astuple(self), astuple(other)))

    def __sub__(self, other: Usage) -> Usage:
        return Usage(*map(sub, astuple(self), astuple(other)))


@dataclass(frozen=True)
class Receipt:
    """The record of one transaction, journal/0007-consolidate-3f9ac1.md."""

    number: int
    op: str
    time: str
    strategy: str
    model: str
    usage: Usage
    seconds: float
    rows: tuple[ReceiptRow, ...]
    files: tuple[tuple[str, str, str], ...]
    """(document id, sha256 before, sha256 after); "-" for a file that was not there."""
    notes: tuple[str, ...] = ()
    quoted: tuple[str, ...] = ()  # lines that a person edited or deleted, as they were before
    high: int = 0  # the highest seq that was given by then; 0 if it is not known
    suffix: str = ""  # what follows the op in its name, "-3f9ac1"; nothing in names of earlier versions

    def __str__(self) -> str:
        return f"{self.id} of {self.time[:10]}: {len(self.rows)} lines, {len(self.files)} files"

    @property
    def id(self) -> str:
        return f"journal/{self.number:04d}-{self.op}{self.suffix}"

    @property
    def label(self) -> str:
        """What documents and notes call it: "7-3f9ac1"."""
        return f"{self.number}{self.suffix}"


@dataclass(frozen=True)
class Retrieved:
    """A piece of evidence: an entry, or a run of lines that holds several; `origin` has the turns that these
    cite."""

    doc_id: str
    start_line: int
    end_line: int
    text: str
    score: float
    seqs: tuple[int, ...] = ()
    origin: tuple[int, ...] = ()
    time: str | None = None
    source: str | None = None
    headings: tuple[str, ...] = ()
    speaker: str | None = None
    when: str | None = None
    refers: str | None = None
    label: str | None = None
    physical: bool = False
    """Whether `text` is lines of the file with signatures; an entry's is only what was said."""
    told: tuple[tuple[int, ...], ...] = ()  # of a text of a document: the seqs that each of its lines tells


@dataclass(frozen=True, slots=True)
class Candidate:
    """What a stage found: a record, or lines ("topics/food:12-14"), with figures that make the score;
    `via` is the link that led to it."""

    id: str
    parts: Mapping[str, float] = field(default_factory=dict)
    score: float = 0.0
    via: str = ""


@dataclass(frozen=True)
class Stage:
    """A stage of reading: what was asked, what was found, best first, and the tokens of the evidence it
    leaves. `stop` says why nothing deeper was looked at, if that was settled here: "done", "budget"."""

    stage: str
    asked: tuple[str, ...] = ()
    found: tuple[Candidate, ...] = ()
    tokens: int = 0
    stop: str = ""
    failure: str = ""
    ms: float = 0.0


@dataclass(frozen=True)
class Evidence:
    """Ranked pieces within a token budget, and how they were found."""

    items: tuple[Retrieved, ...]
    trace: tuple[Stage, ...] = ()
    apart: tuple[str, ...] = ()
    """Folders whose documents an answerer is shown apart, with what they are good for (prompts/answer.md)."""


@dataclass(frozen=True)
class Citation:
    """Where a statement of an answer stands."""

    doc_id: str
    start_line: int
    end_line: int
    seqs: tuple[int, ...]
    text: str


@dataclass(frozen=True)
class Answer:
    """What `ask` returns."""

    text: str
    citations: tuple[Citation, ...]
    trace: tuple[Stage, ...]
    usage: Usage


Level = Literal["error", "note"]


@dataclass(frozen=True)
class Finding:
    """One result of a check: what is wrong and where ("topics/food:12")."""

    level: Level
    what: str
    where: str
    fix: str = ""  # what `doctor --fix` would do about it; "" if that is for a person to settle
