"""Which lines a `forget` takes, and the library without them. Pure.

Lines go with what they were drawn from and all else that was drawn from that. In every file of the program a
line that carries such a seq becomes a tombstone; derived text of documents that lost one is made anew, old
versions of it in receipts go, and so do records of the same turns. Names stay as they are.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from infinimem import spec, tokens
from infinimem.errors import UsageError
from infinimem.markdown.document import Document, heading_title
from infinimem.markdown.header import flow, quote
from infinimem.markdown.signature import forgotten_in, format_seqs, parse_entry, tombstone
from infinimem.model import BUFFERS, Located, ReceiptRow
from infinimem.operations.provenance import recorded, session_of
from infinimem.store import receipts, state
from infinimem.store.external_edits import live
from infinimem.store.files import digest
from infinimem.store.line_map import MARK, lost, name_of, parts, reverse_diff
from infinimem.store.lines import evidence_of, held_by, link_to, sources_of, stem, versions_of
from infinimem.store.plans import Rendered, described, headed, is_emptied
from infinimem.store.spec import EVIDENCE, JOURNAL, MEMORIES, TOPICS, slug
from infinimem.store.view import View

OWN_KEYS = ("kind", "session", "date", "participants")
_KEY = re.compile(r"[a-z_]+: ")
_NUMBERS = re.compile(
    r"\s*$|---$|type: topic$|(?:id|created_time|update_log|date|current_epoch|links|evidence):|  - \{"
    r"|## [A-Z][a-z ]+ [0-9]+ \(receipt [0-9]+(?:-[0-9a-f]{6})?\)$"
)
"""Lines that the program writes whatever was said: times and seqs."""

SENTENCE, SHORTEST, BOUNDED = 20, 4, 12
"""A longer sentence of a text is looked for by itself, a shorter text not at all; one of fewer bytes only
where it is no part of a word."""
_SEQ = re.compile(r"- <(?:[^>]*,)?seq=([1-9][0-9]{0,17})\b")
_END = re.compile(r"(?<=[.!?…。！？])\s+|\n")
_WORD = re.compile(r"[^\W_]{4,}")
_HEX = re.compile(rb"[0-9a-f]+")
_DATE = re.compile(rb"(?:19|20)[0-9]{2}[0-9:.tz+-]*|[0-9:.tz+-]{1,3}")
_FORMAT = Path(__file__).with_name("format.txt").read_bytes()
"""Words that files hold whatever was said: they, years and small numbers are not looked for."""


class Texts:
    """What is to be nowhere; what another line says in its own right stays, and is not looked for.

    Args:
        said: in the lines that go, without their signatures.
        words: what was asked for: what a pattern found in them, a session, a name.
        others: every reading of the lines that stay.
        whole: the words count as whole words alone.
    """

    def __init__(
        self, said: Sequence[str], words: Iterable[str], others: Sequence[Located], whole: bool = False
    ) -> None:
        texts = {form for text in said for piece in _pieces(text) for form in _forms(piece)}
        asked = {form for word in words for form in {*_forms(word), slug(word).encode()} if len(form) > 1}
        telling = {form for form in texts | asked if form not in _FORMAT and not _DATE.fullmatch(form)}
        alone = {form for form in texts if len(form) < BOUNDED}
        alone |= {form for form in asked if whole or len(form) < SHORTEST or _HEX.fullmatch(form)}
        self._look_for(telling & alone, telling - alone)
        self.repeated = [one for one in others if self.within(f"{one.text}\n{one.entry.line}")]
        """Lines that stay and say some of it in their own right."""
        own = _lowered("\n".join(f"{one.text}\n{one.entry.line}" for one in self.repeated))
        again = {form for form in telling & alone if _whole([form]).search(own)}
        telling -= again | {form for form in telling - alone if form in own}
        self._look_for(telling & alone, telling - alone)
        self._rare = _words("\n".join(said)).difference(*(_words(one.text) for one in others))

    def hinted(self, text: str) -> bool:
        """Whether a longer word of it stands there that no line has which stays."""
        return not self._rare.isdisjoint(_words(text))

    def _look_for(self, alone: Iterable[bytes], long: Collection[bytes]) -> None:
        self._words, self._long = _whole(alone), sorted(long)
        self._keys: dict[bytes, list[bytes]] = {}
        self._size = min(map(len, long), default=1)
        for form in self._long:
            self._keys.setdefault(form[: self._size], []).append(form)

    def within(self, data: bytes | str, names: Iterable[str] = ()) -> bool:
        """Whether any of it stands there, but for these names."""
        data = _lowered(data)
        for name in names:
            data = data.replace(_lowered(name), b"")
        if len(self._long) < 64:
            found = any(form in data for form in self._long)
        else:  # of many it is passed through once for all of them
            begins = ((at, self._keys.get(data[at : at + self._size], ())) for at in range(len(data)))
            found = any(data.startswith(form, at) for at, forms in begins for form in forms)
        return found or self._words.search(data) is not None


def _whole(words: Iterable[bytes]) -> re.Pattern[bytes]:
    """Finds any of them where it is no part of a word."""
    either = b"|".join(sorted(map(re.escape, words))) or b"(?!)"
    return re.compile(rb"(?<![\w\x80-\xff])(?:%b)(?![\w\x80-\xff])" % either)


def _pieces(text: str) -> set[str]:
    """A text, and each of its lines and sentences that is long enough to be nobody else's."""
    parts = {part.strip() for part in (*_END.split(text), *text.split("\n"))}
    whole = {text.strip()} if len(text.strip()) >= SHORTEST else set[str]()
    return whole | {part for part in parts if len(part) > SENTENCE}


def _forms(piece: str) -> set[bytes]:
    """How it reads in a document, a header, a table, a signature or JSON, or on one line; in lower case."""
    written = {piece, piece.replace("\n", "\n  "), " ".join(piece.split()), piece.replace("|", "\\|")}
    written |= {json.dumps(piece, ensure_ascii=plain)[1:-1] for plain in (False, True)}
    return {_lowered(form) for form in written}


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


def _lowered(data: bytes | str) -> bytes:
    text = data if isinstance(data, str) else data.decode("utf-8", "surrogateescape")
    return text.casefold().encode("utf-8", "surrogateescape")


def numbered(line: str) -> int | None:
    """The number that a line begins with, be its signature whole or damaged."""
    match = _SEQ.match(line)
    return int(match[1]) if match else None


def tombstoned(lines: Iterable[str], seqs: Collection[int], continued: bool = True) -> Iterator[str]:
    """Lines with tombstones, in a diff their rows, for those that carry a forgotten seq; if `continued`, with
    the indented and blank lines after them."""
    side = None
    for line in lines:
        head = line[:2] if line[:2] in ("+>", "->") else ""
        text = line[len(head) :]
        if (seq := numbered(text)) in seqs and seq:
            side = head if continued else None
            yield f"{head[0]}@{seq}" if head else tombstone(seq) + "\r" * text.endswith("\r")
        elif head != side or (text.strip() and not text.startswith("  ")):
            side = None
            yield line


@dataclass(frozen=True)
class Wanted:
    """Lines by number, by what `finds` finds in one or in its speaker's name, by source, session, or both."""

    seqs: Collection[int] = ()
    finds: Callable[[str], Sequence[str]] = lambda text: ()
    source: str | None = None
    session: str | None = None


@dataclass(frozen=True)
class Candidate:
    """A line that would go; `seq` is None where nobody signed it: a person typed it, or a model wrote it."""

    seq: int | None
    doc_id: str
    line: int
    text: str


@dataclass(frozen=True)
class Choice:
    """Lines to forget: their numbers, every reading of each, those that nobody signed, and all texts."""

    seqs: frozenset[int]
    lines: tuple[Located, ...]
    unsigned: tuple[Candidate, ...]
    texts: Texts


def choose(view: View, known: Mapping[int, state.SeenLine], wanted: Wanted) -> Choice:
    """The lines that go, as they stand, and as receipts or the list of last seen lines quote them."""
    lines = readings(view, known)
    seqs = _with_kin({place.seq for place in lines if _is_wanted(place, view, wanted)}, lines)
    going = tuple(place for place in lines if place.seq in seqs)
    others = tuple(place for place in lines if place.seq not in seqs)
    unsigned = tuple(_unsigned(view, wanted))
    said = [text for p in going for text in (p.text, p.entry.fields.get("refers", ""))]
    said += [one.text for one in unsigned]
    spoken = (*said, *(place.entry.fields.get("speaker", "") for place in going))
    words = {word for text in spoken for line in text.split("\n") for word in wanted.finds(line)}
    if wanted.session and not any(session_of(place, view) == wanted.session for place in others):
        words.add(wanted.session)
    return Choice(seqs, going, unsigned, Texts(said, words, others))


def named_session(view: View, name: str) -> str:
    """Return the session of this name, or title, with an id or a day behind; UsageError if not one has it."""
    there = {session_of(place, view) or "" for place in view.entries("all")}
    begin = sorted(one for one in there if one.startswith(f"{name} ")) if name not in there else []
    titled = [one for one in begin if re.fullmatch(r" \S*[0-9]\S*", one[len(name) :])]
    if begin and len(titled) != 1:
        raise UsageError(f"no session is called {name!r}; these begin so: {', '.join(begin[:20])}")
    return titled[0] if titled else name


def _is_wanted(place: Located, view: View, wanted: Wanted) -> bool:
    entry = place.entry
    told = (*place.text.split("\n"), entry.fields.get("refers", ""), entry.fields.get("speaker", ""))
    if entry.seq in wanted.seqs or any(wanted.finds(text) for text in told if text):
        return True
    by_place = wanted.source is not None or wanted.session is not None
    of_source = wanted.source in (None, entry.source)
    return by_place and of_source and wanted.session in (None, session_of(place, view))


def _unsigned(view: View, wanted: Wanted) -> Iterator[Candidate]:
    """List items of people's, and lines of a model's own files, that the choice holds of."""
    for doc_id in (*live(view), *view.below(MEMORIES)):
        document, is_model = view.document(doc_id), doc_id.startswith(MEMORIES)
        every = wanted.source == ("AI" if is_model else "human") and wanted.session is None
        lines = (
            enumerate(document.lines, 1) if is_model else ((one.line, one.text) for one in document.unsigned)
        )
        yield from (Candidate(None, doc_id, n, text) for n, text in lines if every or wanted.finds(text))


def readings(view: View, known: Mapping[int, state.SeenLine]) -> tuple[Located, ...]:
    """Every way in which a line reads anywhere: in documents, in receipts, in the list of seen lines."""
    standing: list[Located] = []
    quoted: list[Located] = []
    for doc_id in view.ids("all"):
        document = view.document(doc_id)
        if doc_id.startswith(JOURNAL):
            quoted += _quoted(document)
        elif not view.is_note(doc_id):
            standing += document.entries
    seen = filter(None, (parse_entry(one.line) for one in known.values()))
    quoted += [Located(entry, state.PATH, 0, 0) for entry in seen]
    standing.sort(key=lambda place: (place.doc_id, place.start_line))
    there = {(place.seq, place.entry.line.rstrip()) for place in standing}
    once = {(p.seq, p.entry.line.rstrip()): p for p in reversed(quoted)}
    return (*standing, *(p for key, p in sorted(once.items()) if key not in there))


def _quoted(receipt: Document) -> list[Located]:
    """The lines that a receipt quotes, where they stand in it; in a model's file what looks so is a word."""
    shown, is_model = list[str](), False
    for line in receipt.lines:
        if line.startswith(("--- ", "+++ ")):
            is_model = line[4:].startswith(MEMORIES)
        text = line[2:] if line[:2] in ("+>", "->") and not is_model else line
        shown.append(text if text.startswith(("- <", "  ")) or not text else "…")
    return [replace(p, doc_id=receipt.id) for p in Document(f"{EVIDENCE}quoted", tuple(shown)).entries]


def _with_kin(seeds: Collection[int], lines: Sequence[Located]) -> frozenset[int]:
    """With all that is joined to them by an origin, or is a copy; only what reads somehow."""
    kin: dict[int, set[int]] = defaultdict(set)
    for place in lines:
        for seq in place.entry.origin:
            kin[place.seq].add(seq)
            kin[seq].add(place.seq)
    found, pending = set(seeds), list(seeds)
    while pending:
        fresh = kin[pending.pop()] - found
        found |= fresh
        pending += fresh
    return frozenset(found.intersection(place.seq for place in lines))


def named_ids(view: View) -> set[str]:
    """Ids of the documents that are there, or that a receipt names."""
    told = recorded(view).receipts
    was = {row.was for one in told for row in one.rows}
    return was.union(view.ids("all"), (file[0] for one in told for file in one.files))


def redact(view: View, choice: Choice, number: int) -> Rendered:
    """The documents that change, and what the receipt of this number says of them: no word."""
    seqs, sums = choice.seqs, receipts.Checksums(number)
    records = without_records(view, seqs, lambda record: choice.texts.within(record.to_bytes()))
    stay = {doc_id: record for doc_id, record in records.items() if record}
    told = ever_held(view, choice, records.keys() - stay)
    told |= {text for doc_id in told for text in spec.texts_of(doc_id)}
    records |= {one: None for one in told if one in view and one.startswith(spec.folders().texts)}
    done = Rendered(dict(records), sums=sums.known, reverse_diffs=[])
    for doc_id in view.ids("all"):
        is_note = view.is_note(doc_id) and not doc_id.startswith(MEMORIES)
        if is_note or doc_id.startswith((JOURNAL, *spec.folders().ledgers)):
            continue
        old = view.document(doc_id)
        if (new := _without(old, choice)) != old:
            done.documents[doc_id] = new
            done.removed += [(p.seq, p.entry.line) for p in old.entries if p.seq in seqs]
    back = (reverse_diff(one, view.document(one), record) for one, record in stay.items())
    done.reverse_diffs = list(chain(*back))  # they lost links alone: numbers
    for doc_id in view.below(JOURNAL):
        old = view.document(doc_id)
        lines = tuple(_receipt(old, choice, told, told.union(done.documents.keys() - stay), sums))
        if lines != old.lines:
            done.documents[doc_id] = replace(old, lines=lines)
    for doc_id in done.documents:
        if doc_id in view and doc_id not in stay:
            sums.of(digest(view.document(doc_id).to_bytes()))
    places = (p for p in reversed(choice.lines) if p.doc_id in view and not p.doc_id.startswith(JOURNAL))
    at = {place.seq: place.doc_id for place in places}
    done.rows = [ReceiptRow(seq, at.get(seq, "-"), "-", receipts.FORGOTTEN) for seq in sorted(seqs)]
    return done


def _without(old: Document, choice: Choice) -> Document | None:
    """A document with tombstones for the lines, and derived text anew; None where nothing is left."""
    seqs, texts = choice.seqs, choice.texts
    typed = {one.line for one in choice.unsigned if one.doc_id == old.id}
    if old.id.startswith(MEMORIES):
        left = old.without_lines(typed)
        return left if not typed or any(map(str.strip, left.lines)) else None
    gone = typed | {n for n, line in enumerate(old.lines, 1) if numbered(line) in seqs}
    over = {line for number in gone for line in _headings_over(old, number)}
    over |= {heading.line for heading in old.headings if texts.within(heading.title)}
    name, shown = _name(old).casefold(), list[str]()
    for number, line in enumerate(old.lines, 1):
        is_one = len(line.splitlines()) == 1  # else a person's words stand behind a separator
        title = heading_title(line.removesuffix("\r")) if number in over and is_one else None
        if title and title[1].casefold() != name:
            line = f"{'#' * title[0]} {MARK}" + "\r" * line.endswith("\r")
        if number not in typed:
            shown.append(line)
    lines = tuple(tombstoned(shown, seqs, old.id.startswith(EVIDENCE)))
    new = replace(old, lines=lines) if lines != old.lines else old
    if gone and old.id not in BUFFERS and is_emptied(new, OWN_KEYS):
        return None
    if gone and old.id.startswith(EVIDENCE) and "participants" in old.header.values:
        speakers = dict.fromkeys(place.entry.fields.get("speaker", "") for place in new.entries)
        listed = [name for name in speakers if name]
        return headed(new, {"participants": flow(listed) if listed else None})
    describes = not seqs.isdisjoint(described(old)) or texts.within(old.summary)
    return made_anew(new, bool(gone) or describes)


def _headings_over(document: Document, line: int) -> Iterator[int]:
    level = 7
    for heading in reversed(document.headings):
        if heading.line < line and heading.level < level:
            level = heading.level
            yield heading.line


def made_anew(document: Document, is_touched: bool) -> Document:
    """Make derived text anew by rule: what is `MARK`, and the header where it spoke of what is gone."""
    doc_id, lines, end = document.id, list[str](), document.header.end
    head, body = document.lines[:end], document.lines[end:]
    for number, line in enumerate(body, 1):
        title = heading_title(line.strip()) if MARK in line else None
        there = (one.strip() for one in body[number:] if one.strip() and forgotten_in(one.strip()) is None)
        if line.strip() != MARK and not (title and title[1] == MARK):
            lines.append(line)
        elif title and heading_title(next(there, "# ")) is None:  # else nothing stands below it
            name = "Other" if doc_id in BUFFERS else _name(document)
            lines.append(f"{'#' * title[0]} {name}" + "\r" * line.endswith("\r"))
    if tuple(lines) != body:
        document = replace(document, lines=(*head, *lines))
    is_touched = is_touched or any(line.rstrip().endswith(MARK) for line in head)
    if not is_touched or not doc_id.startswith(TOPICS):
        return document
    titles = dict.fromkeys(heading.title for heading in document.headings if heading.title)
    changes: dict[str, str | None] = {
        "summary": quote(", ".join(titles)[:300] or _name(document)),
        "aux": f"{{from: {format_seqs(place.seq for place in document.entries)}}}",
        "token_count": str(tokens.count(document.body)),
    }
    values = document.header.values
    changes |= dict.fromkeys(key for key, value in values.items() if value == MARK and key not in changes)
    return headed(document, {key: value for key, value in changes.items() if key in values})


def _name(document: Document) -> str:
    stem = document.id.rpartition("/")[2]
    return stem.replace("-", " ") if document.title in ("", MARK) else document.title


def ever_held(view: View, choice: Choice, records: Collection[str]) -> frozenset[str]:
    """Documents that hold one of the lines, or ever did; and these records, wherever they lay."""
    seqs, stems = choice.seqs, set(map(stem, records))
    rows = ({row.was, row.now} for one in recorded(view).receipts for row in one.rows if row.seq in seqs)
    made = (one for one in named_ids(view) if one.startswith(spec.folders().records))
    of_turns = (one for one in made if stem(one) in stems or seqs & {*held_by(Document.empty(one))})
    standing = {place.doc_id for place in choice.lines} | {one.doc_id for one in choice.unsigned}
    return frozenset(standing.union(*rows, of_turns, records))


def _receipt(
    receipt: Document,
    choice: Choice,
    held: Collection[str],
    told: Collection[str],
    sums: receipts.Checksums,
) -> Iterator[str]:
    """Its lines: quotations with tombstones, no old derived text, no checksums that could be guessed."""
    lines = list(receipt.lines)
    quoted, before = (receipts.block(lines, name) for name in (receipts.QUOTED, receipts.BEFORE))
    lines[before] = [row for part in parts(lines[before]) for row in _way_back(part, choice, held)]
    lines[quoted] = tombstoned(lines[quoted], choice.seqs)
    for line in lines:
        file = receipts.file_of(receipts.cells_of(line))
        if file and file[0] in told:
            line = receipts.row_of(receipts.file_cells(file[0], *map(sums.of, file[1:])))
        yield f"> {MARK}" if line.startswith("> ") and choice.texts.within(line) else line


def _way_back(part: Sequence[str], choice: Choice, held: Collection[str]) -> Iterator[str]:
    """The reverse diff of a document, without old derived text of one that lost a line; of a record none."""
    doc_id, texts = name_of(part), choice.texts
    if doc_id.startswith(spec.folders().whole):
        yield from lost(doc_id) if doc_id in held or texts.within("\n".join(part)) else part
        return
    for row in tombstoned(part, choice.seqs):
        text = row[2:]
        is_derived = row[:2] in ("+>", "->") and not numbered(text) and not _NUMBERS.match(text)
        if is_derived and (doc_id in held or texts.within(text)):
            title, key = heading_title(text), _KEY.match(text)
            row = row[:2] + (f"{'#' * title[0]} " if title else key[0] if key else "") + MARK
        yield row


def without_records(
    view: View, seqs: Collection[int], doomed: Callable[[Document], bool]
) -> dict[str, Document | None]:
    """What becomes of records, ledgers and audits without forgotten turns: None for those that go.

    A record that came from such a turn, or was described with the help of such a record, goes whole, and with
    it all other records of its turns, and archived ones that only it led to: they are derived, and those of
    turns that stay are made anew. So does what is `doomed`. What is left loses its links to them.
    """
    owned = (doc_id for doc_id in view.ids("all") if doc_id.startswith(spec.folders().ledgers))
    books = {doc_id: view.document(doc_id) for doc_id in owned if not view.is_note(doc_id)}
    records = {
        doc_id: document for doc_id, document in books.items() if doc_id.startswith(spec.folders().records)
    }
    ledgers = {doc_id for one in spec.strategies().values() for doc_id in one.ledgers}
    changed: dict[str, Document | None] = dict.fromkeys(sorted(_going(records, seqs, doomed)))
    names = set(map(stem, changed))
    called = re.compile(rf"\b{spec.folders().names}\b")
    for doc_id, document in books.items():
        if doc_id in changed:
            continue
        is_named = any(match[0] in names for match in called.finditer("\n".join(document.lines)))
        if doc_id in records or doc_id in ledgers:
            new = _unlinked(document, names) if is_named else document
            if new.lines != document.lines:
                changed[doc_id] = new
        elif is_named or doomed(document):
            changed[doc_id] = None
    return changed


def _going(
    records: Mapping[str, Document], seqs: Collection[int], doomed: Callable[[Document], bool]
) -> set[str]:
    older = {doc_id: set(versions_of(document)) for doc_id, document in records.items()}
    made_of: dict[str, set[int | str]] = {
        doc_id: {*held_by(document), *sources_of(document), *older[doc_id], stem(doc_id)}
        for doc_id, document in records.items()
    }
    found, gone = set[str](), set[int | str](seqs)
    fresh = [doc_id for doc_id, document in records.items() if made_of[doc_id] & gone or doomed(document)]
    while fresh:
        found.update(fresh)
        # Of a turn that stays, no record stays: else it would count as held, and never be drawn from again.
        for doc_id in fresh:
            gone.update((stem(doc_id), *evidence_of(records[doc_id])))
        left = [doc_id for doc_id in records if doc_id not in found]
        fresh = [doc_id for doc_id in left if made_of[doc_id] & gone]
        if not fresh:
            led_to = set[str]().union(*(older[one] for one in found))
            orphans = led_to.difference(*(older[one] for one in left))
            fresh = [one for one in left if one.startswith(spec.folders().archives) and stem(one) in orphans]
    return found


def _unlinked(document: Document, names: Collection[str]) -> Document:
    """Without the links to these records in a header; of a ledger without their rows, and them in lists."""
    end, which = document.header.end, "|".join(map(re.escape, sorted(names)))
    head = [line for line in document.lines[:end] if link_to(line) not in names]
    at = next((n for n, line in enumerate(head) if line.rstrip() == "links:"), -1)
    if at >= 0 and link_to(head[at + 1]) is None:  # an empty list reads as no value
        del head[at]
    if document.id.startswith(spec.folders().records):
        return replace(document, lines=(*head, *document.lines[end:]))
    listed = re.compile(rf'(?<=\[)"(?:{which})"(?:, )?|, "(?:{which})"(?=[],])')
    rows = (listed.sub("", line) for line in document.lines[end:])
    left = (row for row in rows if not re.search(rf'"(?:{which})"', row))
    return replace(document, lines=(*head, *left))
