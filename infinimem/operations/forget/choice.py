"""Which lines a `forget` takes: those chosen, what they were drawn from, and what else was drawn from that.

Otherwise what they say would stay. A line counts as it stands, and also as a receipt or the list of last seen
lines still quotes it. Pure.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from infinimem.markdown.document import Document
from infinimem.markdown.signature import parse_entry, parse_seqs, text_start
from infinimem.model import Entry, Located
from infinimem.operations.forget.words import Finds, Texts
from infinimem.operations.provenance import session_of
from infinimem.store.lines import drawn_from, former
from infinimem.store.spec import EVIDENCE, JOURNAL, MEMORIES
from infinimem.store.state import last_seen
from infinimem.store.view import View

_SEQ = re.compile(r"- <(?:[^>]*,)?seq=([1-9][0-9]{0,17})\b[^>]*>? ?")
_ORIGIN = re.compile(r"\borigin=([0-9+-]+)")


@dataclass(frozen=True)
class Wanted:
    """What a person wants forgotten: lines by number, by words, or by where they come from.

    Args:
        seqs: lines by number.
        finds: lines in whose text, line by line, or whose speaker this finds anything; it gives what.
        source: all lines of this source.
        session: turns of this session; with `source` those of the source alone.
    """

    seqs: Collection[int] = ()
    finds: Finds | None = None
    source: str | None = None
    session: str | None = None

    def found(self, text: str) -> Sequence[str]:
        """What of a text is wanted for its words."""
        return self.finds(text) if self.finds else ()


@dataclass(frozen=True)
class Choice:
    """Lines to forget.

    `lines` has every reading of each, those that stand in documents first; `unsigned` what people typed and
    the next receipt would sign, and what a model wrote of it in its own files: document, line, text.
    """

    seqs: frozenset[int]
    lines: tuple[Located, ...]
    unsigned: tuple[tuple[str, int, str], ...]
    others: tuple[Located, ...]
    """Every reading of all other lines."""
    texts: Texts


def choose(view: View, known: Mapping[int, last_seen.SeenLine], wanted: Wanted) -> Choice:
    """The lines that go.

    Args:
        view: the library.
        known: the list of last seen lines.
        wanted: what a person asked for.
    """
    lines = readings(view, known)
    seqs = _with_kin({place.seq for place in lines if _is_wanted(place, view, wanted)}, lines)
    going = tuple(place for place in lines if place.seq in seqs)
    others = tuple(place for place in lines if place.seq not in seqs)
    typed = [*_unsigned(view, wanted)]
    said = [text for place in going for text in _said(place)] + [text for *_, text in typed]
    typed += _in_memories(view, wanted, Texts(said))
    said += [text for *_, text in typed]
    spoken = "\n".join((*said, *(place.entry.fields.get("speaker", "") for place in going)))
    words = {word for line in spoken.split("\n") for word in wanted.found(line)}
    if wanted.session and not any(session_of(place, view) == wanted.session for place in others):
        words.add(wanted.session)
    return Choice(seqs, going, tuple(typed), others, Texts(said, words, wanted.finds, others))


def _is_wanted(place: Located, view: View, wanted: Wanted) -> bool:
    entry = place.entry
    if entry.seq in wanted.seqs:
        return True
    if wanted.finds:
        told = (*place.text.split("\n"), entry.fields.get("refers", ""), entry.fields.get("speaker", ""))
        if any(wanted.finds(text) for text in told if text):
            return True
    by_place = wanted.source is not None or wanted.session is not None
    of_source = wanted.source in (None, entry.source)
    return by_place and of_source and wanted.session in (None, session_of(place, view))


def _in_memories(view: View, wanted: Wanted, texts: Texts) -> Iterator[tuple[str, int, str]]:
    """Lines of a model's files that the choice holds of, or in which any of the texts stands.

    Where the texts stand only across lines, that is all lines of the file.
    """
    if not view.initialised:
        return
    every = wanted.source == "AI" and wanted.session is None
    for doc_id in (doc_id for doc_id in view.ids("all") if doc_id.startswith(MEMORIES)):
        document = view.document(doc_id)
        lines = [(number, document.text_line(number)) for number in range(1, len(document.lines) + 1)]
        gone = [(number, line) for number, line in lines if every or wanted.found(line) or texts.within(line)]
        if texts.within(document.without_lines({number for number, _ in gone}).to_bytes()):
            gone = lines
        yield from ((doc_id, number, line) for number, line in gone if line.strip())


def _unsigned(view: View, wanted: Wanted) -> Iterable[tuple[str, int, str]]:
    """List items of people's that the choice holds of."""
    for doc_id in last_seen.live(view):
        for item in view.document(doc_id).unsigned:
            if wanted.found(item.text) or (wanted.source == "human" and wanted.session is None):
                yield doc_id, item.line, item.text


def _said(place: Located) -> Iterator[str]:
    """The words of a line, also what its pronouns stand for."""
    yield place.text
    yield place.entry.line[text_start(place.entry.line) :]  # bytes that are no UTF-8 read otherwise there
    if refers := place.entry.fields.get("refers"):
        yield refers


def readings(view: View, known: Mapping[int, last_seen.SeenLine]) -> tuple[Located, ...]:
    """Every way in which a line of the library reads anywhere: documents, receipts, the list of seen lines.

    A line whose signature someone damaged counts by the number that it still has.
    """
    standing: list[Located] = []
    quoted: list[Located] = []
    for doc_id in view.ids("all"):
        if view.is_note(doc_id):
            continue
        document = view.document(doc_id)
        if doc_id.startswith(JOURNAL):
            quoted += _quoted(document)
        else:
            standing += document.entries
            damaged = ((_damaged(document.lines[number - 1]), number) for number in document.malformed)
            standing += [Located(entry, doc_id, number, number) for entry, number in damaged if entry]
    for line in known.values():
        if entry := parse_entry(line.line):
            quoted.append(Located(entry, last_seen.PATH, 0, 0))
    standing.sort(key=lambda place: (place.doc_id, place.start_line))
    there = {(place.seq, place.entry.line.rstrip()) for place in standing}
    once = {(p.seq, p.entry.line.rstrip()): p for p in reversed(quoted)}
    return (*standing, *(p for key, p in sorted(once.items()) if key not in there))


def numbered(line: str) -> int | None:
    """The number that a line begins with, be its signature whole or damaged."""
    match = _SEQ.match(line)
    return int(match[1]) if match else None


def _damaged(line: str) -> Entry | None:
    match, origin = _SEQ.match(line), tuple[int, ...]()
    if match is None:
        return None
    with suppress(ValueError):
        origin = parse_seqs(found[1]) if (found := _ORIGIN.search(match[0])) else ()
    return Entry(int(match[1]), line[match.end() :], line, origin=origin)


def _quoted(receipt: Document) -> tuple[Located, ...]:
    """The lines that a receipt quotes, where they stand in it."""
    if "- <" not in "\n".join(receipt.lines):
        return ()
    shown: list[str] = []
    in_evidence, in_memories = True, False
    for line in receipt.lines:
        if line.startswith(("--- ", "+++ ")):
            in_evidence = line[4:].startswith(EVIDENCE)  # elsewhere an indented line is prose
            in_memories = line[4:].startswith(MEMORIES)  # what looks like a signature is a model's word there
        row = line[:2] in ("+>", "->")
        text = line[2:] if row else line
        goes_on = (in_evidence or not row) and (text.startswith("  ") or (row and not text))
        signed = text.startswith("- <") and not (row and in_memories)
        shown.append(text if signed or goes_on else "…")
    return tuple(replace(p, doc_id=receipt.id) for p in Document(f"{EVIDENCE}quoted", tuple(shown)).entries)


def _with_kin(seeds: Collection[int], lines: Sequence[Located]) -> frozenset[int]:
    """With all that is joined to them by an origin, or is a copy; only what reads somehow."""
    kin: dict[int, set[int]] = defaultdict(set)
    origins = [place for place in lines if place.entry.origin or "was" in place.entry.fields]
    texts = {(place.seq, place.text) for place in lines} if any(former(p.entry) for p in origins) else set()
    for place in origins:
        copied = (seq for seq in former(place.entry) if (seq, place.text) in texts)
        for seq in (*drawn_from(place.entry), *copied):
            kin[place.seq].add(seq)
            kin[seq].add(place.seq)
    found, pending = set(seeds), list(seeds)
    while pending:
        fresh = kin[pending.pop()] - found
        found |= fresh
        pending += fresh
    return frozenset(found.intersection(place.seq for place in lines))
