"""One entry, one line: `- <seq=41,time=2023-06-02,source=user,origin=40> text`.

In: a line. Out: an `Entry`, and a line from an `Entry` (FORMAT.md, "Entry"). Promise: text stays exact; what
`format_entry` is given comes back from `parse_entry`, white space at its ends included.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from sys import intern

from infinimem.markdown.characters import clean_text, one_line, sound
from infinimem.model import SOURCES, Entry, Source

MAX_SEQS = 100_000  # most seqs that one list may name: `1-999999999` is 11 bytes and would be gigabytes

# Possessive throughout, so that no input makes them backtrack.
_KEY = r"[a-z][a-z0-9_]*+"
_BARE = r'[^\s,>"=]++'
_QUOTED = r'"(?:[^"\\\n]++|\\["\\])*+"'
_FIELD = re.compile(rf"({_KEY})=({_BARE}|{_QUOTED})")
_PAIR = rf"{_KEY}=(?:{_BARE}|{_QUOTED})"
_SIGNATURE = re.compile(rf"- <({_PAIR}(?:,{_PAIR})*+)>(?: |(?=\n|\Z))")
_LOOKS_SIGNED = re.compile(rf"- <(?:{_KEY}=|seq\b)|[-*+][ \t]++<seq=")
_SIGNS = re.compile(rf"<(?={_KEY}[ \t]*+=|seq\b)")
_WOULD_SIGN = re.compile(rf"^([ \t>]*+[-*+][ \t]*+){_SIGNS.pattern}", re.MULTILINE)
_TOMBSTONE = re.compile(r"(?m)^<!-- forgotten: ([1-9][0-9]{0,17}) -->(?=\r?$)")
_IS_KEY = re.compile(rf"{_KEY}\Z")
_IS_BARE = re.compile(rf"{_BARE}\Z")
_ESCAPED = re.compile(r"\\(.)")
_SEQ = re.compile(r"[1-9][0-9]{0,17}\Z")
_SPAN = re.compile(r"([1-9][0-9]{0,17})(?:-([1-9][0-9]{0,17}))?\Z")
_OWN = frozenset({"seq", "time", "source", "origin"})
_FIRST = ("seq", "time", "source")  # the keys that stand before the others, which are sorted


def parse_entry(line: str) -> Entry | None:
    """Return the entry that `line` is, or None: a physical line without its end, or several joined by
    newlines, where those after the first are continuations, indented by two spaces or blank. Keys may stand
    in any order."""
    shown = sound(line)
    match = _SIGNATURE.match(shown)
    if match is None:
        return None
    text = shown[match.end() :]
    if "\n" in text:
        first, *rest = text.split("\n")
        if any(more and not more.isspace() and not more.startswith("  ") for more in rest):
            return None
        text = "\n".join([first, *(more[2:] for more in rest)])
    pairs = _FIELD.findall(match[1])
    values = dict[str, str](pairs)
    if len(values) < len(pairs):
        return None
    if '"' in match[1]:
        values = {k: _ESCAPED.sub(r"\1", v[1:-1]) if v[0] == '"' else v for k, v in values.items()}
    # Interned: many lines say the same.
    seq, time = values.pop("seq", ""), intern(values.pop("time", ""))
    source = intern(values.pop("source", "user"))
    if _SEQ.match(seq) is None or source not in SOURCES:
        return None
    try:
        origin = parse_seqs(values.pop("origin")) if "origin" in values else ()
    except ValueError:
        return None
    fields: Mapping[str, str] = values
    if values.keys() == {"speaker"}:
        fields = _said_by(values["speaker"])
    elif values:
        fields = {intern(k): intern(v) if k == "speaker" else v for k, v in values.items()}
    text = text.removesuffix(block_id(seq))
    return Entry(int(seq), text, line, time or None, source, origin, fields)


@lru_cache(maxsize=256)
def _said_by(speaker: str) -> Mapping[str, str]:
    """Return the fields of most lines: a dictionary takes as much memory as a sentence."""
    return {"speaker": speaker}


def block_id(seq: int | str) -> str:
    """Return what may stand behind the text of an entry, so that Obsidian can link to the line: `#^41`."""
    return f" ^{seq}"


def text_start(line: str) -> int:
    """Return where the text of an entry begins in `line`, after the signature; 0 if it has none."""
    match = _SIGNATURE.match(line)
    return match.end() if match else 0


def tombstone(seq: int) -> str:
    """Return what stands where a line was that was forgotten."""
    return f"<!-- forgotten: {seq} -->"


def forgotten_in(line: str) -> int | None:
    """Return the seq of the line that was forgotten here; None if this is no tombstone."""
    match = _TOMBSTONE.fullmatch(line.removesuffix("\r"))
    return int(match[1]) if match else None


def without_tombstones(text: str) -> str:
    """Return lines for showing: empty where one was forgotten."""
    return _TOMBSTONE.sub("", text) if "<!-- forgotten: " in text else text


def looks_signed(line: str) -> bool:
    """Tell whether `line` begins like a signature: if it is no entry, someone damaged it."""
    return _LOOKS_SIGNED.match(line) is not None


def unsign(text: str) -> str:
    """Return `text` with a backslash, which Markdown does not show, before what looks like a signature."""
    return _WOULD_SIGN.sub(r"\1\\<", text) if _SIGNS.search(text) else text  # the latter is fast


def format_entry(
    seq: int,
    text: str,
    *,
    time: str | None = None,
    source: Source = "user",
    origin: Iterable[int] = (),
    fields: Mapping[str, str] | None = None,
    with_block_id: bool = False,
) -> str:
    """Return the line (of multi-line text the lines, joined by newlines) of a new entry, in canonical order.

    `text` and values are cleaned; a line break in a value becomes a space. No text can forge an entry: what
    follows its first line is indented. ValueError if `seq` is not positive, `source` unknown, a key of
    `fields` no key or an argument's name.
    """
    if seq < 1 or source not in SOURCES:
        raise ValueError(f"seq {seq}, source {source!r}: a seq is positive, a source is one of {SOURCES}")
    fields = fields or {}
    if wrong := [key for key in fields if key in _OWN or _IS_KEY.match(key) is None]:
        raise ValueError(f"{wrong[0]!r} is not a key of `fields`")
    head = sorted(_pairs(seq, time, source, origin, fields).items(), key=_rank)
    signature = ",".join(f"{key}={_value(value)}" for key, value in head)
    text = clean_text(text)
    if with_block_id or text.endswith(block_id(seq)):  # a text that ends like one is to come back whole
        text += block_id(seq)
    first, *more = text.split("\n")
    # A last line that is empty is written as two spaces: a blank one would not count.
    last = ["  " + more.pop()] if more else []
    return "\n".join([f"- <{signature}> {first}", *("  " + line if line else "" for line in more), *last])


def resigned(old: Entry, new: Entry) -> str:
    """Return the line of `old` as `new` is signed: what both say alike keeps its bytes and its place. Another
    text is of one line."""
    match = _SIGNATURE.match(old.line)
    if match is None:
        raise ValueError(f"{old.line!r} is no entry")
    was, now = (_pairs(one.seq, one.time, one.source, one.origin, one.fields) for one in (old, new))
    pairs = [(key, value) for key, value in _FIELD.findall(match[1]) if was.get(key) == now.get(key)]
    for key in sorted(key for key in now if now[key] != was.get(key)):
        place = next((n for n, pair in enumerate(pairs) if _rank(pair) > _rank((key, ""))), len(pairs))
        pairs.insert(place, (key, _value(now[key])))
    end = block_id(old.seq) if old.line.endswith(block_id(old.seq)) else ""
    text = old.line[match.end() :] if new.text == old.text else f"{new.text}{end}"
    return f"- <{','.join(f'{key}={value}' for key, value in pairs)}> {text}"


def _pairs(
    seq: int, time: str | None, source: Source, origin: Iterable[int], fields: Mapping[str, str]
) -> dict[str, str]:
    own = {"seq": str(seq), "time": time, "source": source, "origin": format_seqs(origin)}
    return {**{key: value for key, value in own.items() if value}, **fields}


def _rank(pair: tuple[str, str]) -> tuple[int, str]:
    """Return where a key stands in a signature."""
    key = pair[0]
    return (_FIRST.index(key), "") if key in _FIRST else (len(_FIRST), key)


def format_seqs(seqs: Iterable[int]) -> str:
    """Write `(12, 13, 14, 15, 19)` as `12-15+19`; order and repetitions are kept."""
    spans: list[tuple[int, int]] = []
    for seq in seqs:
        if spans and seq == spans[-1][1] + 1:
            spans[-1] = (spans[-1][0], seq)
        else:
            spans.append((seq, seq))
    return "+".join(f"{first}-{last}" if last > first else str(first) for first, last in spans)


def parse_seqs(text: str) -> tuple[int, ...]:
    """Read `12-15+19` as `(12, 13, 14, 15, 19)`; ValueError if it is no list of at most MAX_SEQS."""
    if _SEQ.match(text):
        return (int(text),)
    seqs: list[int] = []
    for part in text.split("+") if text else ():
        span = _SPAN.match(part)
        if span is None:
            raise ValueError(f"{part[:40]!r} is not a seq or a span of seqs")
        first, last = int(span[1]), int(span[2] or span[1])
        if last < first or last - first + len(seqs) >= MAX_SEQS:
            raise ValueError(f"{part!r} is not an ascending span, or names more than {MAX_SEQS} seqs")
        seqs.extend(range(first, last + 1))
    return tuple(seqs)


def _value(value: str) -> str:
    value = one_line(clean_text(value))
    if _IS_BARE.match(value):
        return value
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
