"""The library without what is forgotten: documents, their derived text, and the names that the program gave.

A summary that described a forgotten line is made of the headings that are left. Other derived text, headings
and names go where they hold a word that no other line has, or that was asked for by name. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count

from infinimem import tokens
from infinimem.markdown.document import Document
from infinimem.markdown.header import flow, quote
from infinimem.markdown.signature import format_entry, format_seqs
from infinimem.model import CURRENT, Receipt
from infinimem.operations.forget.choice import Choice, numbered
from infinimem.operations.forget.records import Records, without_records
from infinimem.operations.forget.words import Texts
from infinimem.operations.provenance import recorded
from infinimem.spec import ledger_folders, record_folders
from infinimem.store.names import aliases_of
from infinimem.store.records import held_by
from infinimem.store.render import HEADER_KEYS, described, headed
from infinimem.store.see_also import SEE_ALSO, formatted, links_of
from infinimem.store.spec import ARCHIVE, EVIDENCE, JOURNAL, MEMORIES, TOPICS
from infinimem.store.view import View

MARK = "(forgotten)"
"""What stands where something was."""
KEY = re.compile(r"(?:id|kind|title|summary|aliases|session|participants|keywords): ")
"""How a line of a header begins that may tell of something."""
OTHER = "Other"
"""A heading in place of one that said too much."""
FORGOTTEN = "forgotten"
"""Why a line is nowhere, in the row of a receipt."""

_OWN_KEYS = HEADER_KEYS | {"kind", "session", "date", "participants"}
_RENAMED = re.compile(r"(?:topic|session)-[0-9]+(?:-[0-9]+)?")
"""The names that a `forget` gives: none of them tells of anything."""
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}-?")


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

    @property
    def texts(self) -> Texts:
        """What is to be nowhere, and what tells of it."""
        return self.choice.texts

    def documents(self) -> Iterator[tuple[str, Document | None]]:
        """All that the law binds, and a model's own files, as they are to be."""
        gone: dict[str, set[int]] = {}
        for doc_id, line in self._typed:
            gone.setdefault(doc_id, set()).add(line)
        for doc_id in self._own:
            if not doc_id.startswith((JOURNAL, *ledger_folders())):
                yield doc_id, self._without(self.view.document(doc_id))
        for doc_id in (doc_id for doc_id in gone if doc_id.startswith(MEMORIES)):
            left = self.view.document(doc_id).without_lines(gone[doc_id])
            yield doc_id, left if any(map(str.strip, left.lines)) else None

    @cached_property
    def _own(self) -> list[str]:
        return [doc_id for doc_id in self.view.ids("all") if not self.view.is_note(doc_id)]

    def stood(self) -> dict[int, str]:
        """In which document each line stands, by the name that the receipt may tell; "-" for none."""
        stood = dict.fromkeys(self.choice.seqs, "-") | {seq: at for (at, _), seq in self._typed.items()}
        for place in reversed(self.choice.lines):
            if place.doc_id in self.view and not place.doc_id.startswith(JOURNAL):
                stood[place.seq] = place.doc_id
        return {seq: self.names.get(doc_id, doc_id) for seq, doc_id in stood.items()}

    @cached_property
    def _typed(self) -> dict[tuple[str, int], int]:
        """Numbers for what people typed, by document and line."""
        return {place[:2]: seq for seq, place in enumerate(self.choice.unsigned, self.first_seq)}

    @cached_property
    def records(self) -> Records:
        """What becomes of the records."""
        texts = self.texts

        def holds(document: Document) -> bool:
            return texts.named(document.id.rpartition("/")[2]) or texts.holds(document.to_bytes())

        return without_records(self.view, self.choice.seqs, texts.tells, holds)

    # ── names ───────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def names(self) -> dict[str, str]:
        """New names for documents whose own tells of it, whether they stand still or receipts name them."""
        new: dict[str, str] = {}
        stems_of: dict[str, str] = {}
        taken = {name.partition("/")[2] for name in self._known}
        for name in sorted(self._known):
            folder, _, stem = name.partition("/")
            date = match[0] if name.startswith(EVIDENCE) and (match := _DATE.match(stem)) else ""
            if self._is_telling(name, stem.removeprefix(date)):
                plain = f"{date}{'session' if name.startswith(EVIDENCE) else 'topic'}-{self.receipt}"
                free = (f"{plain}-{n}" if n > 1 else plain for n in count(1))
                if stem not in stems_of:
                    stems_of[stem] = next(found for found in free if found not in taken)
                    taken.add(stems_of[stem])
                new[name] = f"{folder}/{stems_of[stem]}"
        return new

    def _is_telling(self, name: str, told: str) -> bool:
        """Whether a document's name tells of it; of what others named only where it has a word asked for."""
        if name.startswith((TOPICS, ARCHIVE)):
            return not _RENAMED.fullmatch(told) and self.texts.tells(told)
        if name.startswith(EVIDENCE) and name in self.held and not self._keeps_lines(name):
            return bool(told)
        return not (name.startswith(JOURNAL) or _RENAMED.fullmatch(told)) and self.texts.named(told)

    def _keeps_lines(self, name: str) -> bool:
        return name in self._left

    @cached_property
    def _left(self) -> frozenset[str]:
        return frozenset(place.doc_id for place in self.choice.others)

    @cached_property
    def _known(self) -> frozenset[str]:
        """Names of documents that are, or that receipts or the list of seen lines tell of."""
        told = [(row.was, row.now) for receipt in self._receipts for row in receipt.rows]
        files = [name for receipt in self._receipts for name, _, _ in receipt.files]
        return self.choice.named.union(self._own, files, *told)

    @property
    def _receipts(self) -> Sequence[Receipt]:
        return recorded(self.view).receipts

    @cached_property
    def held(self) -> frozenset[str]:
        """Documents that hold one of the lines, or ever did."""
        seqs = self.choice.seqs
        rows = ((row.was, row.now) for one in self._receipts for row in one.rows if row.seq in seqs)
        of_turns = (
            name
            for name in self._known
            if self.records.concerns(name)
            or (name.startswith(record_folders()) and not seqs.isdisjoint(held_by(Document.empty(name))))
        )
        return frozenset(of_turns).union(self._standing, (doc_id for doc_id, _ in self._typed), *rows)

    @cached_property
    def _standing(self) -> frozenset[str]:
        return frozenset(place.doc_id for place in self.choice.lines)

    # ── documents ───────────────────────────────────────────────────────────────────────────────────

    def _without(self, old: Document) -> Document | None:
        """A document without the lines and what tells of them; None where nothing is left."""
        marked = {n: seq for n in old.malformed if (seq := numbered(old.lines[n - 1])) in self.choice.seqs}
        marked |= {line: seq for (doc_id, line), seq in self._typed.items() if doc_id == old.id}
        new = old
        if marked or old.id in self._standing:  # as an entry a line goes with all that belongs to it
            new = old.sign({number: format_entry(seq or 1, "") for number, seq in marked.items()})
            new = new.without(self.choice.seqs | set(self._typed.values()))
        touched = new.lines != old.lines
        if touched and old.id != CURRENT and _is_empty(new):
            return None
        own, named = self.names.get(old.id, old.id), str(old.header.values.get("id", ""))
        if old.id in self.names or self.texts.tells(named.rpartition("/")[2]):
            new = headed(replace(new, id=own), {"id": quote(own)})
        if old.id.startswith(EVIDENCE):
            return self._attended(new, touched)
        if old.id == CURRENT or old.id.startswith(TOPICS):
            new = self._without_headings(new)
        return self._summarised(new, touched) if old.id.startswith(TOPICS) else new

    def _attended(self, document: Document, touched: bool) -> Document:
        """Evidence whose header names nobody but those who are left."""
        values, changes = document.header.values, dict[str, str | None]()
        if self.texts.named(str(values.get("session", ""))):
            changes["session"] = quote(document.id.removeprefix(EVIDENCE))
        if touched and "participants" in values:
            speakers = (place.entry.fields.get("speaker") for place in document.entries)
            listed = [name for name in dict.fromkeys(speakers) if name]
            changes["participants"] = flow(listed) if listed else None
        return headed(document, changes)

    def _without_headings(self, document: Document) -> Document:
        lines = list(document.lines)
        for heading in document.headings:
            if self.texts.tells(heading.title):
                end = "\r" * lines[heading.line - 1].endswith("\r")
                lines[heading.line - 1] = f"{'#' * heading.level} {OTHER}{end}"
        return document if tuple(lines) == document.lines else replace(document, lines=tuple(lines))

    def _summarised(self, document: Document, touched: bool) -> Document:
        """With a header that speaks of the lines that are left."""
        if document.header.problem:
            return self._header_blotted(document, touched)
        values, names = document.header.values, aliases_of(document)
        left = [name for name in names if not self.texts.tells(name.replace("-", " "))]
        changes: dict[str, str | None] = {}
        touched = touched or not self.choice.seqs.isdisjoint(described(document))
        if touched or self.texts.tells(document.summary):
            titles = dict.fromkeys(heading.title for heading in document.headings if heading.title)
            stem = document.id.rpartition("/")[2].replace("-", " ")
            changes["summary"] = quote(", ".join(titles)[:300] or stem)
            changes["aux"] = f"{{from: {format_seqs(place.seq for place in document.entries)}}}"
        if self.texts.tells(document.title):
            changes["title"] = None
        if left != names:
            changes["aliases"] = flow(left) if left else None
        links = links_of(document)
        kept = [link for link in links if link not in self.held and link not in self.names]
        if kept != links:
            changes[SEE_ALSO] = formatted(kept)
        if changes:
            changes["token_count"] = str(tokens.count(document.body))
        return headed(document, {key: value for key, value in changes.items() if key in values})

    def _header_blotted(self, document: Document, touched: bool) -> Document:
        """As `_summarised`, line by line, where a person left a header that cannot be read."""
        lines = list(document.lines)
        for number, line in enumerate(lines[: document.header.end]):
            if (touched and line.startswith("summary:")) or self.texts.tells(line):
                lines[number] = "".join(KEY.findall(line)[:1]) + MARK
        return replace(document, lines=tuple(lines))


def _is_empty(document: Document) -> bool:
    holds = document.entries or document.unsigned or document.has_prose
    return not holds and not document.header.values.keys() - _OWN_KEYS
