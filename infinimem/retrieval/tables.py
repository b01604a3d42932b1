"""The index of a library: its entries, its heading blocks and its documents, a tantivy table each.

Entries and blocks are tables of their own, for tantivy divides the length of a field by the mean of all rows,
and a block is ten times as long as an entry. In a library of notes alone blocks stand for entries.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infinimem.retrieval.rows import LINES, SAID, Found, Kind, Read, Row, doc_hash, precedence
from infinimem.retrieval.tantivy_index import Table, padded
from infinimem.store.folders import Stamp
from infinimem.store.view import View

if TYPE_CHECKING:
    from tantivy import DocAddress

    from infinimem.markdown.document import Document

OWN, AROUND, WHOLE, NAMES = "own", "around", "text", "names"
PADDING: Mapping[str, Mapping[str, int]] = {
    "entries": {OWN: 80, AROUND: 80},
    "blocks": {OWN: 0, AROUND: 0},
    "documents": {WHOLE: 500, NAMES: 5},
}
"""Dummy terms of each field (tantivy_index.py says what for)."""
_NUMBERS = ("row", "doc", "end", "group", "seq", "day", "about", "speaker", "whole", "cites", "key", "key2")
_BYTE = 8


class Tables:
    """What is known of some documents.

    Args:
        notes: whether they are notes alone, without an initialised library.
        folder: an existing folder of its own; None for memory.
        known: as `known` gave it when the tables in the folder were written; None for new ones.

    Raises:
        ValueError, LookupError, TypeError: what is there is garbled.
    """

    def __init__(self, notes: bool, folder: Path | None = None, known: dict[str, Any] | None = None) -> None:
        known = known or {"uid": 1, "speakers": [], "documents": [], "sizes": {}}
        self.notes = notes
        self.uids: dict[str, int] = {}
        self.stamps: dict[str, tuple[int, int, int]] = {}
        for doc_id, uid, *stamp in known["documents"]:
            self.uids[doc_id] = uid
            self.stamps[doc_id] = (stamp[0], stamp[1], stamp[2])
        self.speakers: list[str] = list(known["speakers"])
        self.uid: int = known["uid"]
        """Of the next document."""
        self._sizes: dict[str, dict[str, int]] = {
            name: {"": 0, **dict.fromkeys(fields, 0), **known["sizes"].get(name, {})}
            for name, fields in PADDING.items()
        }
        self._tables: dict[str, Table] = {}
        for name, fields in PADDING.items():
            numbers = ("doc", "group", "whole", "first", "called") if name == "documents" else _NUMBERS
            if folder:
                (folder / name).mkdir(mode=0o700, exist_ok=True)
            self._tables[name] = Table(tuple(fields), numbers, folder / name if folder else None, (OWN,))

    @property
    def known(self) -> dict[str, Any]:
        """What is to be kept beside the tables: JSON."""
        documents = [(doc_id, uid, *self.stamps[doc_id]) for doc_id, uid in self.uids.items()]
        return {"uid": self.uid, "speakers": self.speakers, "documents": documents, "sizes": self._sizes}

    def table(self, kind: Kind) -> Table:
        """Where rows of a kind are."""
        return self._tables[self._name(kind)]

    @property
    def documents(self) -> Table:
        """A row a document, with all of its terms."""
        return self._tables["documents"]

    def mean(self, kind: Kind | str, field: str, beside: Sequence[int] = ()) -> float:
        """The mean number of terms of a field of all rows that were ever added, padding included.

        Args:
            beside: the numbers of terms of further rows.
        """
        sizes = self._sizes[self._name(kind)]
        rows = max(sizes[""] + len(beside), 1)
        return (sizes[field] + sum(beside)) / rows + self.padding(kind, field)

    def padding(self, kind: Kind | str, field: str) -> int:
        """How many terms of a field are dummies."""
        return PADDING[self._name(kind)][field]

    def _name(self, kind: str) -> str:
        return "blocks" if self.notes and kind == "entries" else kind

    # ── writing ─────────────────────────────────────────────────────────────────────────────────

    def add(
        self, document: Document, read: Callable[[Document, int], Read | None], stamp: Stamp | None = None
    ) -> None:
        """Take a document in.

        Args:
            document: as it is.
            read: reads it (`Pieces.read`).
            stamp: the state of its file.
        """
        uid = self.uids[document.id] = self.uid
        self.uid += 1
        self.stamps[document.id] = (stamp.mtime_ns, stamp.size, stamp.inode) if stamp else (0, 0, 0)
        found = read(document, uid)
        if found is None:
            return
        for name, rows in (("blocks", found.blocks), ("entries", () if self.notes else found.entries)):
            for row in rows:
                self._add_row(name, uid, row)
        if found.blocks:
            numbers: dict[str, int | list[int]] = {
                "doc": uid,
                "group": found.group,
                "whole": doc_hash(document.id),
                "first": found.blocks[0].row.number,
                "called": list(found.called),
            }
            self._add("documents", {WHOLE: found.whole, NAMES: found.names}, numbers)

    def _add_row(self, name: str, uid: int, found: Found) -> None:
        row, names = found.row, self._speaker_numbers
        if row.speaker is not None and row.speaker not in names:
            self.speakers.append(row.speaker)
            names[row.speaker] = len(self.speakers)
        numbers: dict[str, int | list[int]] = {
            "row": row.number,
            "doc": uid,
            "end": row.end,
            "group": row.group,
            "seq": row.seq,
            "day": row.day,
            "about": row.asking << 1 | row.personal,
            "speaker": names[row.speaker] if row.speaker is not None else 0,
            "whole": row.whole,
            "cites": list(found.cites),
            "key": int.from_bytes(found.key[:_BYTE], "little"),
            "key2": int.from_bytes(found.key[_BYTE:], "little"),
        }
        self._add(name, {OWN: found.own, AROUND: found.around}, numbers)

    def _add(self, name: str, texts: Mapping[str, str], numbers: Mapping[str, int | list[int]]) -> None:
        sizes, fields = self._sizes[name], dict[str, str | int | list[int]](numbers)
        sizes[""] += 1
        for field, terms in texts.items():
            sizes[field] += terms.count(" ") + 1 if terms else 0
            fields[field] = padded(terms, PADDING[name][field])
        self._tables[name].add(fields)

    @cached_property
    def _speaker_numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.speakers, start=1)}

    def drop(self, doc_ids: Iterable[str]) -> None:
        """Forget documents."""
        gone = [self.uids.pop(doc_id) for doc_id in doc_ids if doc_id in self.uids]
        self.stamps = {doc_id: self.stamps[doc_id] for doc_id in self.uids}
        for table in self._tables.values():
            if len(table):
                table.delete("doc", gone)

    def commit(self) -> None:
        """Make it durable, where it has a folder, and found."""
        for table in self._tables.values():
            table.commit()
        self.__dict__.pop("ids", None)

    # ── reading ─────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def ids(self) -> dict[int, str]:
        """The documents by their uids."""
        return {uid: doc_id for doc_id, uid in self.uids.items()}

    def rows(self, table: Table, addresses: Sequence[DocAddress]) -> list[Row]:
        """Some rows of a table."""
        names = ("row", "end", "group", "seq", "day", "about", "speaker", "whole")
        columns = [table.values(name, addresses) for name in names]
        return [
            Row(
                number,
                self.ids[number >> LINES],
                end,
                group,
                seq,
                day,
                about >> 1,
                bool(about & 1),
                self.speakers[speaker - 1] if speaker else None,
                whole,
            )
            for number, end, group, seq, day, about, speaker, whole in zip(*columns, strict=True)
        ]

    @cached_property
    def said(self) -> dict[int, list[int]]:
        """The uids of the documents in which each turn stands, by seq."""
        found: dict[int, list[int]] = {}
        if not self.notes:
            table = self._tables["entries"]
            addresses = [address for _, address in table.find(table.any_of("group", [SAID]))]
            numbers, seqs = table.values("row", addresses), table.values("seq", addresses)
            for number, seq in zip(numbers, seqs, strict=True):
                if seq:
                    found.setdefault(seq, []).append(number >> LINES)
        return found

    def cited(self, seqs: Collection[int], view: View, gone: Collection[int]) -> set[int]:
        """Which of these turns entries were drawn from, but for those of people's notes and of `gone`."""
        found: set[int] = set()
        table = self._tables["entries"]
        addresses = [address for _, address in table.find(table.any_of("cites", seqs))] if seqs else []
        columns = (table.values(name, addresses) for name in ("row", "group"))
        for address, number, group in zip(addresses, *columns, strict=True):
            uid = number >> LINES
            if group != SAID and uid not in gone and not view.is_note(self.ids[uid]):
                found.update(table.several("cites", address))
        return found.intersection(seqs)

    def citing(self, doc_ids: Collection[str], seqs: Iterable[int]) -> set[str]:
        """The documents with an entry drawn from a line of these documents, or from one with such a seq.

        Or from an entry that was: what was said around it may be new.
        """
        table, wanted, known = self._tables["entries"], {*seqs}, {0}
        uids = [self.uids[doc_id] for doc_id in doc_ids if doc_id in self.uids]
        if uids:
            held = [address for _, address in table.find(table.any_of("doc", uids))]
            wanted.update(table.values("seq", held))
        found: set[str] = set()
        while wanted := wanted - known:
            known |= wanted
            addresses = [address for _, address in table.find(table.any_of("cites", wanted))]
            found.update(self.ids[number >> LINES] for number in table.values("row", addresses))
            wanted = set(table.values("seq", addresses))
        return found


class TableLines:
    """Where each numbered line of some tables stands; of a doubled one as a snapshot chooses.

    Args:
        tables: of a library.
        view: tells the documents whose lines do not count: people's own.
        gone: documents that are not to be believed any more.
    """

    def __init__(self, tables: Tables, view: View, gone: Collection[str]) -> None:
        self._tables, self._table = tables, tables.table("entries")
        self._view = view
        self._gone = gone

    def evidence(self, seq: int) -> str | None:
        """As `KnownLines.evidence`."""
        return max((doc_id for doc_id, said, _ in self._places(seq) if said), key=precedence, default=None)

    def cites(self, seq: int) -> tuple[int, ...]:
        """As `KnownLines.cites`."""
        places = ((precedence(doc_id), address) for doc_id, said, address in self._places(seq) if not said)
        _, address = max(places, key=lambda place: place[0], default=(None, None))
        return self._table.several("cites", address) if address else ()

    def _places(self, seq: int) -> Iterator[tuple[str, bool, DocAddress]]:
        """The documents in which a line with this seq stands, and whether it was said there."""
        table, ids = self._table, self._tables.ids
        addresses = [address for _, address in table.find(table.any_of("seq", [seq]))]
        columns = (table.values(name, addresses) for name in ("row", "group"))
        for address, number, group in zip(addresses, *columns, strict=True):
            doc_id = ids[number >> LINES]
            if doc_id not in self._gone and not self._view.is_note(doc_id):
                yield doc_id, group == SAID, address
