"""What leans on a fact that another has superseded: entries and summaries, for a person to look at. Pure.

An entry leans on a line that it was drawn from. Without that, one of the same conversation leans on it that
repeats a name or a number of it which is rare in the library, and for which what superseded it has another; a
later entry than that knew better. A summary leans on the lines that it says it describes (`aux.from`).
Nothing is changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from infinimem import law
from infinimem.model import Entry, Finding, Located, Receipt
from infinimem.store.keeper import ARCHIVE, TOPICS
from infinimem.store.provenance import Records
from infinimem.store.render import described
from infinimem.store.state.seen import live, tracked
from infinimem.store.trail import Trail, successor
from infinimem.store.view import View

RARE = 3
"""Live lines that may have a name or a number which still tells one thing from another."""


@dataclass(frozen=True)
class Leaning:
    """A live entry (`seq`), or a summary (None), that leans on line `on`, which line `by` superseded."""

    where: str
    seq: int | None
    on: int
    by: int
    shared: str = ""
    """The word that tells, where no origin does."""

    def finding(self) -> Finding:
        what = f"the summary describes line {self.on}" if self.seq is None else f"leans on line {self.on}"
        said = f" ({self.shared!r})" if self.shared else ""
        return Finding("note", f"{what}{said}, which line {self.by} superseded", self.where)


def leaning(view: View, receipts: Sequence[Receipt]) -> tuple[Leaning, ...]:
    """Everything live that leans on a superseded line, by place.

    Args:
        view: the library.
        receipts: its receipts; what they do not tell, the archive's headings do.
    """
    records = Records(view, Trail(receipts))
    superseded = _superseded(records)
    if not superseded:
        return ()
    places = [place for doc_id in live(view) for place in view.document(doc_id).entries]
    found = [*_by_origin(records, superseded, places), *_by_words(records, superseded, places)]
    found += _summaries(view, superseded)
    return tuple(sorted(found, key=lambda one: (one.where.rpartition(":")[0], one.seq or 0, one.on)))


def _superseded(records: Records) -> dict[int, Located]:
    """Archived lines that a later one superseded, with that one, if it stands somewhere."""
    found: dict[int, Located] = {}
    view = records.view
    archived = (doc_id for doc_id in tracked(view) if doc_id.startswith(ARCHIVE))
    for place in (place for doc_id in archived for place in view.document(doc_id).entries):
        steps = records.trail.of(place.seq)
        told = records.replaced(place) or (successor(steps[-1].row.why) if steps else None)
        if told and told[0] == "superseded by" and (by := view.entry(told[1])):
            found[place.seq] = by
    return found


def _by_origin(
    records: Records, superseded: Mapping[int, Located], places: Sequence[Located]
) -> Iterator[Leaning]:
    for place in places:
        for seq in records.ancestors(place.entry):
            if seq in superseded and superseded[seq].seq != place.seq:
                yield Leaning(_at(place), place.seq, seq, superseded[seq].seq)


def _by_words(
    records: Records, superseded: Mapping[int, Located], places: Sequence[Located]
) -> Iterator[Leaning]:
    telling = [(place, _telling(place.entry)) for place in places]
    times = Counter(word for _, words in telling for word in words)
    having: dict[str, list[Located]] = {}
    for place, words in telling:
        for word in words:
            if times[word] <= RARE:
                having.setdefault(word, []).append(place)
    sessions: dict[int, frozenset[str]] = {}

    def talks(entry: Entry) -> frozenset[str]:
        if entry.seq not in sessions:
            turns = records.turns(entry)
            sessions[entry.seq] = frozenset(turn.session or turn.where.rpartition(":")[0] for turn in turns)
        return sessions[entry.seq]

    for seq, by in superseded.items():
        old = records.view.entry(seq)
        assert old is not None
        told: set[int] = set()
        for word in sorted(_replaced(old.entry, by.entry)):
            for place in having.get(word, ()):
                is_older = law.is_newer(by.entry, place.entry) and place.seq != by.seq
                drawn = seq in records.ancestors(place.entry)
                if is_older and not drawn and place.seq not in told and talks(old.entry) & talks(place.entry):
                    told.add(place.seq)
                    yield Leaning(_at(place), place.seq, seq, by.seq, word)


def _telling(entry: Entry) -> frozenset[str]:
    """Names and numbers of a line, but for who said it."""
    return _claimed(entry, "name") | _claimed(entry, "number")


def _claimed(entry: Entry, kind: str) -> frozenset[str]:
    return law.claims(entry.text)[kind] - set(entry.fields.get("speaker", "").casefold().split())


def _replaced(old: Entry, new: Entry) -> set[str]:
    """Names, or numbers, of a line for which the one that superseded it has others."""
    found: set[str] = set()
    for kind in ("name", "number"):
        before, after = _claimed(old, kind), _claimed(new, kind)
        if after - before:
            found |= before - after - set(law.normalised(new.text).replace("'s", "").split())
    return found


def _summaries(view: View, superseded: Mapping[int, Located]) -> Iterator[Leaning]:
    for doc_id in live(view):
        if not doc_id.startswith(TOPICS):
            continue
        for seq in sorted(superseded.keys() & set(described(view.document(doc_id)))):
            yield Leaning(doc_id, None, seq, superseded[seq].seq)


def _at(place: Located) -> str:
    return f"{place.doc_id}:{place.start_line}"
