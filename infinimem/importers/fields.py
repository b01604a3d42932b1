"""What formats share: times and days, roles, the text of a message, branches, recalled memory."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from importlib.resources import files
from typing import Any

from infinimem.grounding.sentences import patterns
from infinimem.model import Turn
from infinimem.remote.endpoint import at as at
from infinimem.terms import DAYS, MONTHS

Skipped = Counter[str]  # what was left out: reason -> how many times

# The reasons, in the words of the summary that people read.
EMPTY = "empty messages"
HIDDEN = "hidden messages"
PROMPTS = "system prompts"
EDITED = "messages of branches that were edited away"
SIDE = "messages of sub-agents"
NOTICES = "notices of the program"
RECALLED = "passages of recalled memory"
OTHER = "records of another shape"

Json = Mapping[str, Any]

TOLD: Mapping[str, Any] = tomllib.loads(files(__package__).joinpath("marks.toml").read_text("utf-8"))
"""What other programs write, and by what it is told."""
THINKING: str = TOLD["parts"]["think|thought|reason"]
TOOLS: str = TOLD["parts"]["tool|function"]
ATTACHED: str = TOLD["parts"]["image|file|document|audio|video"]
ROLES: Mapping[str, str] = {name: role for role, names in TOLD["roles"].items() for name in names}
MARKS = {name: re.compile(re.sub(r"\n\s+", "", mark)) for name, mark in TOLD["patterns"].items()}

ROLE = ("role", "from", "sender", "author")
TIME = ("time", "timestamp", "created_at", "createdAt", "create_time", "date", "created", "updated_at")
_ID = ("turn", "uuid", "id", "messageId", "message_id")
_PARENT = ("parent_message_uuid", "parentMessageId", "parent_message_id", "parent")
"""Where messages of all exports have what a turn takes, the first that is there."""


def turn_of(message: Json, text: str, session: str, time: str | None = None) -> Turn:
    """Make a turn of a message's text, in a session that began at `time`."""
    role, speaker = role_of(first(message, *ROLE))
    return Turn(
        text,
        role,
        as_name(first(message, "speaker", "name")) or speaker,
        iso(first(message, *TIME)) or time,
        session,
        as_name(first(message, *_ID)),
        as_name(message.get("key")),
    )


def role_of(value: Any) -> tuple[str, str | None]:
    """Return role and speaker: a role by its usual names; any other name is a person who speaks as user."""
    value = value if isinstance(value, str) else at(value, "role")
    if not isinstance(value, str) or not value.strip():
        return "user", None
    known = ROLES.get(value.strip().lower())
    return (known, None) if known else ("user", value.strip())


_SECONDS = re.compile(r"\d{9,16}(?:\.\d*)?", re.ASCII)


def iso(value: Any) -> str | None:
    """Return ISO 8601, to the second, of a date or time, or of seconds or milliseconds since 1970."""
    try:
        if isinstance(value, str):
            text = value.strip()
            if not _SECONDS.fullmatch(text):
                time = datetime.fromisoformat(text)
                if "T" not in text and ":" not in text:
                    return time.date().isoformat()
                return time.isoformat(timespec="seconds").replace("+00:00", "Z")
            value = float(text)
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            return None
        seconds = value / 1000 if value > 1e11 else value  # reached in the year 5138
        return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return None


def text_of(content: Any, skipped: Skipped) -> str:
    """Return the text of a message: a string, or the text parts of a list joined by blank lines."""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        content = [content]
    if not isinstance(content, Iterable):
        return ""
    texts = []
    for part in content:
        kind = None
        if isinstance(part, Mapping):
            kind = first(part, "type", "content_type") or "text"
            part = part.get("text") if kind in TOLD["text_parts"] else part
        if isinstance(part, str):
            texts.append(part)
        elif part:
            whys = (why for words, why in TOLD["parts"].items() if re.search(words, str(kind)))
            skipped[next(whys, "parts that are not text")] += 1
    return "\n\n".join(text for text in texts if text.strip())


def first(record: Json, *names: str) -> Any:
    """Return the value of the first of these fields that is there and not null."""
    return next((record[name] for name in names if record.get(name) is not None), None)


def as_name(value: Any) -> str | None:
    """Return an id or a title as text: strings and whole numbers; None for what is no name."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return " ".join(str(value).split()) or None


def titled(names: tuple[str, ...]) -> str:
    """Name a session by an id and a title: "Garden aaaa1111"; by the id alone if there is no title."""
    return names[0] if len(names) == 1 else f"{names[-1]} {names[0][:8]}"


def day_of_chat(chat: str, time: str | None) -> str:
    """Name the session of a message of a chat that never ends: "Rowing club 2024-05-08"."""
    return f"{chat} {time[:10]}" if time else chat


def has(record: Any, **kinds: type) -> bool:
    """Return whether a record has fields of these names and types."""
    return isinstance(record, dict) and all(isinstance(record.get(key), kind) for key, kind in kinds.items())


def rows(value: Any) -> list[Any]:
    """Return a list, or none for anything else."""
    return value if isinstance(value, list) else []


def objects(values: Iterable[Any], skipped: Skipped) -> Iterator[Json]:
    """Yield those of the values that are objects; count the others."""
    for value in values:
        if isinstance(value, dict):
            yield value
        else:
            skipped[OTHER] += 1


def named_by(*keys: str) -> Callable[[Json, str], tuple[str, ...]]:
    """Make a function of the ids and titles of a conversation; the stem names what has no name."""

    def names(record: Json, stem: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for key in keys if (name := as_name(record.get(key))))) or (stem,)

    return names


@dataclass(frozen=True)
class Format:
    """A JSON format: a conversation a record, or a log, whose records are read as a whole.

    `turns` of a record, or of all of a log, takes the stem that names what has no name, and a counter of what
    is left out; `names` gives a conversation's id, and its title if it has one.
    """

    matches: Callable[[Json], bool]
    turns: Callable[[Any, str, Skipped], Iterator[Turn]]
    names: Callable[[Json, str], tuple[str, ...]] = field(default_factory=named_by)
    is_log: bool = False


# ── days ────────────────────────────────────────────────────────────────────────────────────────

_FORMS = {name: form for name, form in patterns(__package__, "days.txt").items() if name.startswith("form ")}


def day_of(text: str) -> str | None:
    """Return ISO 8601 of the first day that is written in a text, or None if it is not sure which it is."""
    return next((day for day, _ in _days(text)), None)


def is_day(text: str) -> bool:
    """Return whether a text says nothing but a day, and the day of the week perhaps."""
    rest = next((text.replace(written, " ", 1) for _, written in _days(text)), text)
    named = {name[:length].lower() for name in DAYS for length in (2, 3, len(name))}
    return rest != text and named.issuperset(re.findall(r"[^\W_]+", rest.lower()))


def day_of_header(values: Mapping[str, object]) -> tuple[str | None, str | None]:
    """Return the day of a note by its header, and the key that says it."""
    keys = [key for key in values if MARKS["header keys"].fullmatch(re.sub(r"[\W_]", "", key).casefold())]
    for key in sorted(keys, key=lambda key: key.casefold() != "date"):
        written = str(values[key])
        seconds = written if written.isdigit() and len(written) > 8 else None
        if day := day_of(written) or (iso(seconds) or "")[:10]:
            return day, key
    return None, None


def moment(text: object) -> str | None:
    """Return ISO 8601 of a time as data sets have it: "1:56 pm on 8 May, 2023", "March-15-2024"."""
    if not isinstance(text, str):
        return None
    for form in ("%I:%M %p on %d %B, %Y", "%Y/%m/%d (%a) %H:%M", "%B-%d-%Y", "%B %d, %Y"):
        with suppress(ValueError):
            return datetime.strptime(text, form).isoformat()
    return iso(text)


def _days(text: str) -> Iterator[tuple[str, str]]:
    for kind, form in _FORMS.items():
        for match in form.finditer(text[:1000]):
            parts = match.groupdict()
            name = (parts.get("name") or "")[:3].lower()
            day, month = int(parts["day"]), int(parts.get("month") or 0)
            month = month or next(at for at, one in enumerate(MONTHS, 1) if one.lower().startswith(name))
            if kind == "form ended" and day != month and (day > 12) == (month > 12):
                continue  # 10-03-2024
            if kind == "form ended" and month > 12:
                day, month = month, day
            try:
                yield date(int(parts["year"]), month, day).isoformat(), match[0]
            except ValueError:
                continue


# ── branches ────────────────────────────────────────────────────────────────────────────────────


def open_branch(messages: Sequence[Any], leaf: object, skipped: Skipped) -> Sequence[Any]:
    """Return the messages from the first to `leaf`, or to the newest if that is none of them; all if each
    answers the one before. One whose parent is not known answers the one before it."""
    listed = ((number, one) for number, one in enumerate(messages) if isinstance(one, dict))
    named = {as_name(first(one, *_ID)) or f"#{number}": one for number, one in listed}
    if len(named) < len(messages):
        return messages  # ids that stand twice, or records of another shape: no tree to go by
    parents: dict[str, str | None] = {}
    before = root = None
    for ident, one in named.items():
        given = next((as_name(one[key]) for key in _PARENT if key in one), before)
        root = root if parents else given
        parents[ident] = given if given in named or given in (None, root) else before
        before = ident
    answers = list(parents.values())
    if named.keys().isdisjoint(answers) or answers[1:] == list(named)[:-1]:
        return messages
    if not (isinstance(leaf, str) and leaf in named):  # of equal times the last
        leaf = max(reversed(named), key=lambda ident: iso(first(named[ident], *TIME)) or "")
    path: dict[str, None] = {}
    while isinstance(leaf, str) and leaf in named and leaf not in path:
        path[leaf] = None
        leaf = parents[leaf]
    skipped[EDITED] += len(named) - len(path)
    return [named[ident] for ident in reversed(path)]


# ── recalled memory ─────────────────────────────────────────────────────────────────────────────

BEGIN, END = "<infinimem-recall>", "</infinimem-recall>"


def without_recalled(text: str) -> tuple[str, int]:
    """Return the text without memory that was shown to a model, and how many passages there were. Words of a
    program before the first mark, on its line, stay; of marks alone on a line the last begins a block."""
    if BEGIN not in text:
        return text, 0
    kept: list[str] = []
    count, begun = 0, -1
    for line in text.split("\n"):
        bare = line.strip(" \t\r")
        if bare == END and begun >= 0:
            before = kept[begun][: kept[begun].rindex(BEGIN)].rstrip(" \t\r")
            kept[begun:] = [before] if before else []
            count, begun = count + 1, -1
            continue
        if bare == BEGIN or (bare.endswith(BEGIN) and begun < 0):
            begun = len(kept)
        kept.append(line)
    return "\n".join(kept), count
