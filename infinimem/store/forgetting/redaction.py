"""The library without what is forgotten: documents, their derived text and names, and what receipts tell.

A summary that described a forgotten line is made of the headings that are left. Other derived text, headings
and file names go where they hold a word that no other line of the library has. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from infinimem import tokens
from infinimem.markdown.document import Document
from infinimem.markdown.header import flow, quote
from infinimem.markdown.signature import format_entry, format_seqs, parse_seqs
from infinimem.model import CURRENT, Receipt, Touched
from infinimem.store.forgetting import search
from infinimem.store.forgetting.choice import Choice, numbered, quoted, said
from infinimem.store.forgetting.records import Records, without
from infinimem.store.forgetting.words import Texts, stems
from infinimem.store.keeper import BOOKS, MEMORIES, RECORDS, TOPICS, WHOLE
from infinimem.store.receipts import parse_receipt
from infinimem.store.records import held_by
from infinimem.store.render import HEADER_KEYS, Rendered
from infinimem.store.view import JOURNAL, View, aliases_of

MARK = "(forgotten)"
"""What stands where something was."""
NEUTRAL = "Other"
"""A heading in place of one that said too much."""
FORGOTTEN = "forgotten"
"""Why a line is nowhere, in the row of a receipt."""

_OWN_KEYS = HEADER_KEYS | {"kind", "session", "date", "participants"}
_KIND = re.compile(rf" {{0,3}}#{{1,6}} |(?:{'|'.join(sorted(_OWN_KEYS))}): |> ")
_PLAIN = re.compile(
    r"---|(?:id|kind|token_count|created_time|update_log|aux|date|current_epoch):|  - \{time:"
)
"""Lines of a header that quote nothing, once the names in them are replaced."""


@dataclass(frozen=True)
class Redaction:
    """A view without the lines of a choice.

    Args:
        view: the library.
        choice: what goes.
        receipt: number of the receipt; new names carry it.
        first_seq: of what people typed among it: the receipt names each by a number too.
    """

    view: View
    choice: Choice
    receipt: int
    first_seq: int

    def rendered(self) -> Rendered:
        """The documents that change, and what the receipt says of them; that tells no word of it."""
        past: dict[str, Document | None] = {}
        done = Rendered(names=dict(self.names), past=past)
        for doc_id in (doc_id for doc_id in self._own if not doc_id.startswith(BOOKS)):
            old = self.view.document(doc_id)
            is_receipt = doc_id.startswith(JOURNAL)
            new = self._receipt_without(old) if is_receipt else self._without(old)
            if new is not None and new.id == doc_id and new.lines == old.lines:
                continue
            done.documents[doc_id] = None
            if new is not None:
                done.documents[new.id] = new
            if not is_receipt:
                past[self.names.get(doc_id, doc_id)] = self._past(old, new)
                gone = [place for place in old.entries if place.seq in self.choice.seqs]
                done.removed += [(place.seq, place.entry.line) for place in gone]
        done.documents |= self._memories()  # no way leads back to a model's files
        for doc_id, record in self.records.changed.items():
            done.documents[doc_id] = record
            if not self.records.concerns(doc_id):  # of what is gone no way leads back
                past[doc_id] = self.view.document(doc_id) if doc_id in self.view else None
        done.rows = [Touched(seq, was, "-", FORGOTTEN) for seq, was in sorted(self._stood().items())]
        return done

    @cached_property
    def _own(self) -> tuple[str, ...]:
        return tuple(doc_id for doc_id in self.view.ids("all") if not self.view.is_note(doc_id))

    def _memories(self) -> dict[str, Document | None]:
        """A model's files without the lines; None for those of which nothing is left."""
        gone: dict[str, set[int]] = {}
        for doc_id, line in self._typed:
            if doc_id.startswith(MEMORIES):
                gone.setdefault(doc_id, set()).add(line)
        left = {doc_id: self.view.document(doc_id).without_lines(lines) for doc_id, lines in gone.items()}
        return {doc_id: new if any(map(str.strip, new.lines)) else None for doc_id, new in left.items()}

    def _stood(self) -> dict[int, str]:
        """In which document each line stands, by the name that the receipt may tell; "-" for none."""
        stood = dict.fromkeys(self.choice.seqs, "-")
        stood |= {seq: self.names.get(doc_id, doc_id) for (doc_id, _), seq in self._typed.items()}
        for place in reversed(self.choice.lines):
            if place.doc_id in self.view and not place.doc_id.startswith(JOURNAL):
                stood[place.seq] = self.names.get(place.doc_id, place.doc_id)
        return stood

    @cached_property
    def _typed(self) -> dict[tuple[str, int], int]:
        """Numbers for what people typed, by document and line."""
        return {place[:2]: seq for seq, place in enumerate(self.choice.unsigned, self.first_seq)}

    @cached_property
    def records(self) -> Records:
        """What becomes of the records."""
        own = search.own_words(self.texts, self.choice.others)

        def holds(data: bytes) -> bool:
            return search.holds(self.texts, data, own)

        def tells(text: str) -> bool:
            spoken = not self._rare.isdisjoint(stems(text))
            return spoken or holds(text.encode("utf-8", "surrogateescape"))

        return without(self.view, self.choice.seqs, tells, lambda document: holds(document.to_bytes()))

    # ── what tells of it ────────────────────────────────────────────────────────────────────────────

    @cached_property
    def texts(self) -> Texts:
        """What is to be nowhere."""
        return Texts(said(self.choice))

    @cached_property
    def _rare(self) -> frozenset[str]:
        """Words of it that no other line has."""
        gone = frozenset[str]().union(*(stems(text, names_only=True) for text in said(self.choice)))
        for place in self.choice.others:
            gone -= stems(f"{place.text} {place.entry.fields.get('speaker', '')}")
        return gone

    def tells(self, text: str) -> bool:
        """Whether derived text speaks of it."""
        return not self._rare.isdisjoint(stems(text)) or self.texts.within_text(text)

    @cached_property
    def names(self) -> dict[str, str]:
        """New names for documents whose own tells of it, whether they stand still or receipts name them."""
        new: dict[str, str] = {}
        stands = {place.doc_id for place in self.choice.others}
        told = {*self._own, *self.choice.named, *map(_id_of, map(self.view.document, self._own))}
        told |= {name for receipt in self._receipts for name in _named_by(receipt)}
        taken = {name.partition("/")[2] for name in told}
        stems_of: dict[str, str] = {}
        for name in sorted(told):
            folder, _, stem = name.partition("/")
            kept = name in stands if folder == "evidence" else folder not in ("topics", "archive")
            if kept or self._rare.isdisjoint(stems(stem)):
                continue
            if stem not in stems_of:
                plain = f"{'session' if folder == 'evidence' else 'topic'}-{self.receipt}"
                free = (f"{plain}-{n}" if n > 1 else plain for n in range(1, len(taken) + 2))
                stems_of[stem] = next(found for found in free if found not in taken)
                taken.add(stems_of[stem])
            new[name] = f"{folder}/{stems_of[stem]}"
        return new

    @cached_property
    def _receipts(self) -> tuple[Receipt, ...]:
        return tuple(
            parse_receipt(self.view.document(doc_id)) for doc_id in self._own if doc_id.startswith(JOURNAL)
        )

    @cached_property
    def _held(self) -> frozenset[str]:
        """Documents that ever held one of the lines, by their new names."""
        rows = [row for receipt in self._receipts for row in receipt.rows if row.seq in self.choice.seqs]
        held = {name for row in rows for name in (row.was, row.now)}
        held |= {place.doc_id for place in self.choice.lines}
        return frozenset(self.names.get(name, name) for name in held)

    @cached_property
    def _old_names(self) -> re.Pattern[str] | None:
        found = sorted(self.names, key=len, reverse=True)
        return re.compile(rf"(?<![\w/-])(?:{'|'.join(map(re.escape, found))})(?![\w-])") if found else None

    def renamed(self, line: str) -> str:
        """A line with new names for old."""
        return self._old_names.sub(lambda m: self.names[m[0]], line) if self._old_names else line

    # ── documents ───────────────────────────────────────────────────────────────────────────────────

    def _without(self, old: Document) -> Document | None:
        """A document without the lines and what tells of them; None where nothing is left."""
        marked = {n: seq for n in old.malformed if (seq := numbered(old.lines[n - 1])) in self.choice.seqs}
        marked |= {line: seq for (doc_id, line), seq in self._typed.items() if doc_id == old.id}
        # As an entry a line goes with all that belongs to it.
        new = old.sign_all({number: format_entry(seq or 1, "") for number, seq in marked.items()})
        new = new.without(self.choice.seqs | set(self._typed.values()))
        touched = new.lines != old.lines
        if touched and old.id != CURRENT and _is_empty(new):
            return None
        if not self.names.keys().isdisjoint((old.id, _id_of(old))):
            own = self.names.get(old.id, old.id)
            new = _headed(replace(new, id=own), {"id": quote(own)})
        if old.id == CURRENT or old.id.startswith(TOPICS):
            new = self._without_headings(new)
        return self._summarised(new, touched) if old.id.startswith(TOPICS) else new

    def _without_headings(self, document: Document) -> Document:
        lines = list(document.lines)
        for heading in document.headings:
            if self.tells(heading.title):
                end = "\r" * lines[heading.line - 1].endswith("\r")
                lines[heading.line - 1] = f"{'#' * heading.level} {NEUTRAL}{end}"
        return document if tuple(lines) == document.lines else replace(document, lines=tuple(lines))

    def _summarised(self, document: Document, touched: bool) -> Document:
        """With a header that speaks of the lines that are left."""
        if document.header.problem:
            return self._header_blotted(document, touched)
        values = document.header.values
        names = aliases_of(document)
        left = [name for name in names if not self.tells(name.replace("-", " "))]
        changes: dict[str, str | None] = {}
        if touched or _described(document) & self.choice.seqs or self.tells(document.summary):
            titles = dict.fromkeys(heading.title for heading in document.headings if heading.title)
            stem = document.id.rpartition("/")[2].replace("-", " ")
            changes["summary"] = quote(", ".join(titles)[:300] or stem)
            changes["aux"] = f"{{from: {format_seqs(place.seq for place in document.entries)}}}"
        if left != names:
            changes["aliases"] = flow(left) if left else None
        if (touched or changes) and "token_count" in values:
            changes["token_count"] = str(tokens.count(document.body))
        return _headed(document, {key: value for key, value in changes.items() if key in values})

    def _header_blotted(self, document: Document, touched: bool) -> Document:
        """As `_summarised`, line by line, where a person left a header that cannot be read."""
        lines = [self.renamed(line) for line in document.lines[: document.header.end]]
        lines = [
            _blotted(line) if (touched and line.startswith("summary:")) or self.tells(line) else line
            for line in lines
        ]
        return replace(document, lines=(*lines, *document.lines[document.header.end :]))

    def _past(self, old: Document, new: Document | None) -> Document:
        """What the receipt leads back to: lines by number, as ever, and no derived text that went."""
        signed = {n for place in old.entries for n in range(place.start_line, place.end_line + 1)}
        kept = {*new.lines} if new else set()
        lines = []
        for number, line in enumerate(old.lines, 1):
            line = self.renamed(line)
            plain = number <= old.header.end and _PLAIN.match(line)
            stays = number in signed or line in kept or not line.strip()
            lines.append(line if stays or plain else _blotted(line))
        return replace(old, id=self.names.get(old.id, old.id), lines=tuple(lines))

    # ── receipts ────────────────────────────────────────────────────────────────────────────────────

    def _receipt_without(self, receipt: Document) -> Document:
        """A receipt with numbers and places, and without what it quotes of the lines."""
        return replace(receipt, lines=tuple(self._receipt_lines(receipt)))

    def _receipt_lines(self, receipt: Document) -> Iterator[str]:
        ours = {
            number: place
            for place in quoted(receipt)
            if place.seq in self.choice.seqs
            for number in range(place.start_line, place.end_line + 1)
        }
        doc_id = ""
        lost = self._ways_lost(receipt)
        for number, whole in enumerate(receipt.lines, 1):
            if number in lost:
                continue
            line = self.renamed(whole)
            row = line[:2] in ("+>", "->")
            if place := ours.get(number):
                if row and number == place.start_line:
                    yield f"{line[0]}@{place.seq}"
                continue
            if line.startswith(("--- ", "+++ ")):
                doc_id = line[4:].rpartition(" (")[0] or doc_id
            described = line[2:].startswith("summary:") and doc_id in self._held
            damaged = numbered(line[2:] if row else line) in self.choice.seqs
            derived = row and not line[2:].startswith("- <")
            if damaged and not row:
                continue
            if damaged or (derived and (described or self.tells(line[2:]))):
                line = line[:2] + _blotted(line[2:])
            elif line.startswith("> ") and self.tells(line):
                line = _blotted(line)
            yield line

    def _ways_lost(self, receipt: Document) -> set[int]:
        """Numbers of the rows that lead back to records that go, or to words of it: with a row blotted out a
        record could not be read."""
        lost: set[int] = set()
        part: list[int] = []
        doc_id, telling = "", False
        for number, line in enumerate((*receipt.lines, "--- "), 1):
            if line.startswith("--- "):
                lost.update(part if telling else ())
                part, doc_id = [], line[4:].rpartition(" (")[0]
                telling = False
            elif line.startswith("+++ ") and not doc_id:
                doc_id = line[4:].rpartition(" (")[0]
            if not line.startswith(("--- ", "+++ ", "@@", "+", "-")):
                lost.update(part if telling else ())
                part, doc_id, telling = [], "", False
            elif doc_id.startswith(WHOLE) or line.startswith("--- nothing"):
                part.append(number)
                telling |= self.records.concerns(doc_id) or self._was_held(doc_id)
                telling |= line[:2] in ("+>", "->") and (
                    self.tells(line[2:]) or numbered(line[2:]) in self.choice.seqs
                )
        return lost

    def _was_held(self, doc_id: str) -> bool:
        """Whether a record was of one of the turns, as its name tells."""
        return doc_id.startswith(RECORDS) and not self.choice.seqs.isdisjoint(held_by(Document.empty(doc_id)))


def _named_by(receipt: Receipt) -> Iterator[str]:
    for row in receipt.rows:
        yield from (row.was, row.now)
    for name, _, _ in receipt.files:
        yield name


def _id_of(document: Document) -> str:
    """What its header says: another name, where a person gave the file a new one."""
    named = document.header.values.get("id")
    return named if isinstance(named, str) and "/" in named else document.id


def _described(document: Document) -> frozenset[int]:
    """Seqs that the summary was made from."""
    aux = document.header.values.get("aux")
    try:
        return frozenset(parse_seqs(str(aux.get("from", "")))) if isinstance(aux, dict) else frozenset()
    except ValueError:
        return frozenset()


def _is_empty(document: Document) -> bool:
    holds = document.entries or document.unsigned or document.has_prose
    return not holds and not document.header.values.keys() - _OWN_KEYS


def _headed(document: Document, changes: dict[str, str | None]) -> Document:
    try:
        return document.with_header(changes) if changes else document
    except ValueError:  # a header that cannot be read: the search afterwards names it
        return document


def _blotted(line: str) -> str:
    """What kind of line it was, and nothing of what it said."""
    kind = _KIND.match(line)
    return (kind[0] if kind else "") + MARK + "\r" * line.endswith("\r")
