"""A verified plan turned into documents: which lines stand where afterwards. Pure; no file is touched.

Lines are taken out and put in whole. What is written new is the lines of `adds`, stamps on what a person
typed, headings, and the program's own header keys.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from immutables import Map

from infinimem import law, tokens
from infinimem.grounding.claims import unsupported
from infinimem.markdown.characters import clean_text, one_line
from infinimem.markdown.document import Document
from infinimem.markdown.header import Value, flow, quote
from infinimem.markdown.signature import format_entry, format_seqs, parse_seqs
from infinimem.model import CURRENT, SOURCES, Derived, Entry, NewEntry, Plan, Put, Receipt, ReceiptRow, Source
from infinimem.store.lines import aliases_of
from infinimem.store.spec import ARCHIVE, TOPICS
from infinimem.store.view import View, archive_of, whole
from infinimem.terms import DAYS, MONTHS

SEE_ALSO = "see_also"
MOST = 3
"""Links of a document."""
COMMON, SHARE = 8, 3
"""A name in more topics than this, or than one of so many, tells nothing of one of them."""
_NAME = re.compile(r"(?<=[\w,;:] )[A-ZÀ-ÖØ-Þ][\w-]{2,}")
"""What is written with a capital inside a sentence."""
_NO_NAMES = frozenset((*MONTHS, *(f"{day}{end}" for day in DAYS for end in ("", "s"))))
_LINK = re.compile(r"\[\[([^\[\]|#]+)")

HEADER_KEYS = frozenset(
    {"id", "title", "summary", "token_count", "created_time", "update_log", "aux", "aliases", SEE_ALSO}
)
"""The keys of a topic document's header that the program writes; all others are a person's."""

LOG_LENGTH = 20
"""Entries of a document's update_log; the journal has all."""


@dataclass
class Rendered:
    """The documents that change (None: deleted), the rows of the receipt, and what the law is told.

    `quoted` lines read so before a person changed them; `names` and `sums` stand for what the receipt must
    not tell, `reverse_diffs` for those of the very bytes before.
    """

    documents: dict[str, Document | None] = field(default_factory=dict)
    rows: list[ReceiptRow] = field(default_factory=list)
    added: list[law.Line] = field(default_factory=list)
    removed: list[law.Line] = field(default_factory=list)
    quoted: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    sums: dict[str, str] = field(default_factory=dict)
    reverse_diffs: list[str] | None = None


def render(plan: Plan, view: View, first_seq: int, receipt: Receipt) -> Rendered:
    """Apply a plan that `law.verify` passed, with seqs for new lines from the first on."""
    return _PlanRenderer(view, receipt).render(plan, first_seq)


def by_heading(adds: Iterable[NewEntry], first_seq: int, added: Iterable[law.Line]) -> str:
    """Return new lines as a buffer's end takes them: those without a heading, then each heading's."""
    headings = {seq: add.heading for seq, add in enumerate(adds, first_seq)}
    sections: dict[str, list[str]] = {"": []}
    for seq, line in added:
        heading = headings.get(seq, "")
        sections.setdefault(heading, [f"# {heading}"]).append(line)
    return "".join(f"{line}\n" for lines in sections.values() for line in lines)


class _PlanRenderer:
    def __init__(self, view: View, receipt: Receipt) -> None:
        self._view = view
        self._receipt = receipt
        self._result = Rendered()
        self._documents = self._result.documents
        self._gained: Counter[str] = Counter()
        self._archived: Counter[str] = Counter()

    def render(self, plan: Plan, first_seq: int) -> Rendered:
        arrivals: dict[str, dict[str, list[str]]] = {}
        leaving: dict[str, set[int]] = {}
        takers: dict[str, Counter[str]] = {}

        for seq, add in enumerate(plan.adds, first_seq):
            line = self._line(seq, add)
            arrivals.setdefault(add.to, {}).setdefault(add.heading, []).append(line)
            self._gained[add.to] += 1
            self._result.added.append((seq, line))
            self._result.rows.append(ReceiptRow(seq, "-", add.to, "added"))
        for move in plan.moves:
            place = self._view.entry(move.seq)
            assert place is not None
            target, heading = move.to, move.heading
            related = {"superseded": f"superseded by {move.by}", "duplicate": f"duplicate of {move.by}"}
            why = related.get(move.why, move.why)
            if move.archives:
                target = archive_of(move.to)
                heading = f"{why.capitalize()} (receipt {self._receipt.label})"
                self._archived[move.to] += 1
            elif place.doc_id != move.to:
                self._gained[move.to] += 1
            leaving.setdefault(place.doc_id, set()).add(move.seq)
            takers.setdefault(place.doc_id, Counter())[move.to] += 1
            arrivals.setdefault(target, {}).setdefault(heading, []).append(place.entry.line)
            self._result.rows.append(ReceiptRow(move.seq, place.doc_id, target, why))

        for doc_id, seqs in leaving.items():
            self._documents[doc_id] = self._get(doc_id).without(seqs)
        for doc_id, sections in arrivals.items():
            self._put(doc_id, sections)
        self._drop_emptied(takers)
        self._write_headers(plan)
        for put in plan.records:
            self._record(put)
        return self._result

    # ── lines ───────────────────────────────────────────────────────────────────────────────────

    def _line(self, seq: int, add: NewEntry) -> str:
        origins = [place.entry for place in map(self._view.entry, add.origin) if place is not None]
        fields = {}
        speakers = {entry.fields.get("speaker") for entry in origins}
        if len(speakers) == 1 and (speaker := speakers.pop()):
            fields["speaker"] = speaker
        refers = one_line(clean_text(add.refers or ""))
        told = {"by": add.by, "refers": refers, "when": add.when, "label": add.label}
        fields |= {key: value for key, value in told.items() if value}
        return format_entry(
            seq,
            one_line(clean_text(add.text)),
            time=law.latest(entry.time for entry in origins),
            source=least_trusted(origins),
            origin=tuple(sorted(add.origin)),
            fields=fields,
            with_block_id=self._view.settings.block_ids,
        )

    # ── documents ───────────────────────────────────────────────────────────────────────────────

    def _get(self, doc_id: str) -> Document:
        edited = self._documents.get(doc_id)
        if edited is not None:
            return edited
        return self._view.document(doc_id) if doc_id in self._view else Document.empty(doc_id)

    def _record(self, put: Put) -> None:
        """Put or delete a whole file; one that is there as it is, or to go and not there, is no change."""
        there = self._view.document(put.doc_id) if put.doc_id in self._view else None
        new = None
        if put.text is not None:
            new = Document.parse(put.doc_id, put.text.encode("utf-8", "surrogatepass"))
        if new == there:
            self._documents.pop(put.doc_id, None)
        else:
            self._documents[put.doc_id] = new

    def _put(self, doc_id: str, sections: Mapping[str, Sequence[str]]) -> None:
        document = self._get(doc_id)
        if doc_id.startswith(ARCHIVE):
            if not document.header.end:
                document = headed(document, {"id": quote(doc_id), "kind": "archive"})
            arrivals: list[tuple[str, Sequence[str]]] = [
                ("", ["", f"## {heading}", *lines]) for heading, lines in sections.items()
            ]
        else:
            arrivals = list(sections.items())
        self._documents[doc_id] = document.insert_all(arrivals)

    def _drop_emptied(self, takers: Mapping[str, Counter[str]]) -> None:
        """Delete topics that hold nothing any more; the one that took most of their lines keeps the name."""
        documents = self._documents
        emptied = {
            doc_id: document
            for doc_id in takers
            if (document := documents[doc_id])
            and doc_id.startswith(TOPICS)
            and is_emptied(document, HEADER_KEYS)
        }
        documents.update(dict.fromkeys(emptied))
        for doc_id, document in emptied.items():
            counts = takers[doc_id]
            if standing := [taker for taker in counts if documents.get(taker, taker in self._view)]:
                successor = min(standing, key=lambda taker: (-counts[taker], taker))
                names = [doc_id.rsplit("/", 1)[-1], *aliases_of(document)]
                documents[successor] = _also_called(self._get(successor), names)

    def _write_headers(self, plan: Plan) -> None:
        derived = {item.doc_id: item for item in plan.derived}
        there = {doc_id for doc_id in derived if doc_id in self._view} | self._documents.keys()
        if plan.op == "consolidate":
            there |= {doc_id for doc_id in self._view.below(TOPICS) if self._former_name(doc_id)}
        for doc_id in sorted(there):
            if self._documents.get(doc_id, ...) is None:
                continue
            document = self._get(doc_id)
            if doc_id == CURRENT:
                epoch = self._view.epoch + (plan.op == "consolidate")
                changes = {"id": CURRENT, "current_epoch": str(epoch)}
                self._documents[doc_id] = headed(document, changes)
            elif doc_id.startswith(TOPICS):
                item = derived.get(doc_id) or Derived(doc_id, "", ())
                self._documents[doc_id] = self._topic(document, item, plan.op)
        self._link(doc_id for doc_id in there if doc_id.startswith(TOPICS))

    def _link(self, written: Iterable[str]) -> None:
        """Bring the links of these topics up to date; `dangling` drops those that lead nowhere."""
        changed = {doc_id: new for doc_id, new in self._documents.items() if doc_id.startswith(TOPICS)}
        if not changed:
            return
        topics = self._view.derived(topic_names).after(changed)
        for doc_id in sorted(doc_id for doc_id in written if changed.get(doc_id)):
            links = {SEE_ALSO: _flowed(related(doc_id, topics))}
            self._documents[doc_id] = headed(self._get(doc_id), links)

    def _former_name(self, doc_id: str) -> str | None:
        """Return the stem that a topic had before a person renamed it, while its header still says so."""
        if doc_id not in self._view:
            return None
        named = self._view.document(doc_id).header.values.get("id")
        if not isinstance(named, str) or not named.startswith(TOPICS) or named in self._view:
            return None
        return named.rsplit("/", 1)[-1]

    def _topic(self, document: Document, fresh: Derived, op: str) -> Document:
        """Return the document with its header; what no fresh text says of it stays as it is."""
        new = document.id not in self._view
        log = document.header.values.get("update_log", ())
        rows = [row for row in log if isinstance(row, dict)] if isinstance(log, list) else []
        rows.append(
            {
                "time": self._receipt.time,
                "op": "create" if new else "update" if op == "consolidate" else op,
                "receipt": self._receipt.label,
                "added": str(self._gained[document.id]),
                "archived": str(self._archived[document.id]),
            }
        )
        facts = [place.entry for place in document.entries]
        said = [f"{entry.fields.get('speaker', '')} {entry.time or ''} {entry.text}" for entry in facts]
        summary = fresh.summary or document.summary or _title(document.id)
        has_one = document.summary not in ("", _title(document.id))
        about = described(document) if has_one and not fresh.summary else ()
        aux = f"from: {format_seqs(about or (entry.seq for entry in facts))}"
        if unsupported(summary, said):
            aux += ", unverified: true"
        header: dict[str, str | None] = {
            "id": quote(document.id),
            **({"title": quote(title)} if (title := one_line(clean_text(fresh.title))) else {}),
            "summary": quote(one_line(clean_text(summary))),
            "token_count": str(tokens.count(document.body)),
        }
        if "created_time" not in document.header.values:
            header["created_time"] = self._receipt.time
        header["update_log"] = "".join(f"\n  - {flow(_counted(row))}" for row in rows[-LOG_LENGTH:])
        header["aux"] = f"{{{aux}}}"
        if former := self._former_name(document.id):
            document = _also_called(document, [former])
        return headed(document, header)


def is_emptied(document: Document, keys: Collection[str]) -> bool:
    """Return whether nothing of a person's or of the memory is left in it, but these header keys."""
    holds = document.entries or document.unsigned or document.has_prose
    head = document.lines[: document.header.end]
    return not (
        holds or document.header.values.keys() - keys or any(line.lstrip()[:1] == "#" for line in head)
    )


def described(document: Document) -> tuple[int, ...]:
    """Return the seqs that its summary says it describes; none if it does not say."""
    aux = document.header.values.get("aux")
    try:
        return parse_seqs(str(aux["from"])) if isinstance(aux, dict) else ()
    except (KeyError, ValueError):
        return ()


def _counted(row: Mapping[str, Value]) -> dict[str, Value]:
    return {key: value if (number := whole(value)) is None else number for key, value in row.items()}


def headed(document: Document, changes: Mapping[str, str | None]) -> Document:
    """Return the document with header keys set; unchanged if its header has no room or cannot be read."""
    try:
        return document.with_header(changes) if changes else document
    except ValueError:
        return document


def _also_called(document: Document, names: Iterable[str]) -> Document:
    kept = dict.fromkeys([*aliases_of(document), *names])
    return headed(document, {"aliases": flow(list(kept))})


def _title(doc_id: str) -> str:
    return doc_id.rsplit("/", 1)[-1].replace("-", " ")


def least_trusted(origins: Sequence[Entry]) -> Source:
    """Return the least trusted source among origins; "tool" for none."""
    return min((entry.source for entry in origins), key=SOURCES.index, default="tool")


# ── which topics share names ────────────────────────────────────────────────────────────────────
# A link of `see_also` is written with the document that it stands in, never by itself.


Sets = Map[str, frozenset[str]]


@dataclass(frozen=True)
class TopicNames:
    """The names in each topic, and the topics of each name; the links of each, and what links to it."""

    names: Sets = field(default_factory=Map)
    topics: Sets = field(default_factory=Map)
    links: Sets = field(default_factory=Map)
    linking: Sets = field(default_factory=Map)

    def after(self, changed: Mapping[str, Document | None]) -> TopicNames:
        """Return it once these topics read so; None for one that is gone."""
        names = {doc_id: _names_in(one) if one else None for doc_id, one in changed.items()}
        links = {doc_id: frozenset(links_of(one)) if one else None for doc_id, one in changed.items()}
        return TopicNames(*_after(self.names, self.topics, names), *_after(self.links, self.linking, links))


def _after(of: Sets, by: Sets, changed: Mapping[str, frozenset[str] | None]) -> tuple[Sets, Sets]:
    """Return what each topic has, and the topics that have it, once these have this; None for one gone."""
    now, who = of.mutate(), by.mutate()
    for doc_id, have in changed.items():
        for one in now.pop(doc_id, frozenset[str]()) ^ (have or frozenset()):
            who[one] = who.get(one, frozenset()) ^ {doc_id}
        if have is not None:
            now[doc_id] = have
    return now.finish(), who.finish()


def _names_in(document: Document) -> frozenset[str]:
    return frozenset(name for one in document.entries for name in _NAME.findall(one.entry.text)) - _NO_NAMES


def topic_names(view: View, before: TopicNames | None, changed: Collection[str] | None) -> TopicNames:
    """Make the names in the topics of a snapshot; for `View.derived`."""
    if before is None or changed is None:
        before, changed = TopicNames(), view.below(TOPICS)
    topics = (doc_id for doc_id in changed if doc_id.startswith(TOPICS))
    return before.after({doc_id: view.document(doc_id) if doc_id in view else None for doc_id in topics})


def related(doc_id: str, names: TopicNames) -> list[str]:
    """Return the topics that share most with one: the fewer topics have a name, the more it counts."""
    shared = Counter[str]()
    few = min(COMMON, max(2, len(names.names) // SHARE))
    for name in sorted(names.names.get(doc_id, ())):
        others = names.topics[name] - {doc_id}
        if 0 < len(others) < few:
            shared.update({other: 1 / len(others) for other in others})
    return sorted(shared, key=lambda other: (-shared[other], other))[:MOST]


def links_of(document: Document) -> list[str]:
    """Return the ids of the topics that a header links to."""
    listed = document.header.values.get(SEE_ALSO)
    matches = (_LINK.match(str(link)) for link in (listed if isinstance(listed, list) else ()))
    return [match[1] for match in matches if match]


def dangling(view: View, documents: Mapping[str, Document | None]) -> dict[str, Document]:
    """Return topics whose links lead to what is gone once these documents read so, without those links."""
    changed = {doc_id: new for doc_id, new in documents.items() if doc_id.startswith(TOPICS)}
    topics = view.derived(topic_names).after(changed)
    mended: dict[str, Document] = {}
    for doc_id in {one for to, those in topics.linking.items() if to not in topics.links for one in those}:
        document = changed.get(doc_id) or view.document(doc_id)
        kept = [link for link in links_of(document) if link in topics.links]
        with suppress(ValueError):  # a header that has no room, or cannot be read, is a person's
            mended[doc_id] = document.with_header({SEE_ALSO: _flowed(kept)})
    return mended


def _flowed(links: Collection[str]) -> str | None:
    return flow([f"[[{link}]]" for link in links]) if links else None
