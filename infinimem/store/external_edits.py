"""What people, and merges of clones, did to the files since the program last looked: found, and taken in.

Typed items are signed, copies renumbered, edits and deletions noted; texts stay as they are. A line that a
merge left twice stands once, where the latest receipt put it; who pastes a line makes another of it. Pure.
Source: docs/FORMAT.md, Entry and Two machines.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from infinimem.errors import UsageError
from infinimem.markdown.characters import clean_text, one_line
from infinimem.markdown.document import Document
from infinimem.markdown.signature import format_entry, parse_entry, resigned
from infinimem.model import BUFFERS, INBOX, Entry, Located, ReceiptRow
from infinimem.store.line_map import reading
from infinimem.store.lines import block_of
from infinimem.store.plans import HEADER_KEYS, Rendered, is_emptied
from infinimem.store.receipts import DOUBLED, RENAME, UNDONE, Tale, parse_receipt, receipt_ids, tales_of
from infinimem.store.spec import ARCHIVE, EVIDENCE, JOURNAL, TOPICS
from infinimem.store.state import Changes, SeenLine, receipt_seen
from infinimem.store.view import View, without

_SEQ = re.compile(r"\bseq=([0-9]{1,18})\b")

_UNTOLD = Tale()

Position = tuple[str, int]


def position(line: Located) -> Position:
    return line.doc_id, line.start_line


@dataclass(frozen=True)
class ExternalEdits:
    """What people did since the program last looked.

    Args:
        typed: document, line and text of list items without signature.
        copies: entries whose seq another line keeps.
        kept: the lines that keep a doubled seq.
        left: lines that a merge left where they stand no more, or as they read no more; another is kept.
        edited: lines, also archived ones, and how they read before.
        carried: lines that stand in another document, and in which they stood before.
    """

    typed: tuple[tuple[str, int, str], ...] = ()
    copies: tuple[Located, ...] = ()
    kept: Mapping[int, Located] = field(default_factory=dict)
    left: tuple[Located, ...] = ()
    edited: tuple[tuple[Located, str], ...] = ()
    deleted: tuple[tuple[int, SeenLine], ...] = ()
    carried: tuple[tuple[Located, str], ...] = ()

    @property
    def renumbered(self) -> frozenset[Position]:
        return frozenset(map(position, self.copies))

    @property
    def to_sign(self) -> int:
        return len(self.typed) + len(self.copies)

    def __bool__(self) -> bool:
        return bool(self.to_sign or self.edited or self.deleted or self.carried or self.left)


def find_edits(view: View, seen: Mapping[int, SeenLine]) -> ExternalEdits:
    """Compare the files with lines as last seen; if none is known, nothing counts as edited or deleted."""
    own = view.own
    typed = [
        (doc_id, item.line, item.text) for doc_id in live(view) for item in view.document(doc_id).unsigned
    ]
    said, entries = _by_seq(view, view.owned(EVIDENCE)), _by_seq(view, tracked(view))
    kept = {seq: said[seq][0] for seq in entries.keys() & said.keys()}
    copies = [place for seq in kept for place in entries.pop(seq)]
    doubled = {seq: places for seq, places in (*said.items(), *entries.items()) if len(places) > 1}
    new = (place.entry for seq, places in entries.items() if seq not in seen for place in places)
    foreign = (entry for entry in new if block_of(entry.seq) != own)
    # a short number that somebody typed has no origin
    knows = own is not None and receipt_seen("") in seen
    elsewhere = _Elsewhere(view, seen)
    is_merged = elsewhere.came or (knows and any(block_of(one.seq) or one.origin for one in foreign))
    tales, blocks = tales_of(view, doubled, receipt_ids(view))
    left, merged = list[Located](), set[int]()
    for seq, places in doubled.items():
        if is_merged or _is_told(places, tales[seq], not blocks <= {own}):
            standing = _left_standing(places, tales[seq])
            left += [place for place in places if place not in standing]
            places = standing
            merged.add(seq)
        kept[seq] = places[0] if seq in merged else _original(places, seen.get(seq))
        if seq in entries:  # a turn that somebody copied is no other turn: `doctor` names it
            entries[seq] = places
            copies += [place for place in places if place is not kept[seq]]
    edited: list[tuple[Located, str]] = []
    carried: list[tuple[Located, str]] = []
    for seq, places in entries.items():
        original, before = kept.get(seq, places[0]), seen.get(seq)
        if before is None or (seq in merged and original.entry.source == "human"):
            continue
        was = parse_entry(before.line) if original.entry.line.rstrip() != before.line.rstrip() else None
        if was and _bare(was) != _bare(original.entry) and not elsewhere.edited(was, original, entries):
            edited.append((original, before.line))
        if not (seq in merged or original.doc_id == before.doc_id or elsewhere.moved(seq, original.doc_id)):
            carried.append((original, before.doc_id))
    return ExternalEdits(
        typed=tuple(typed),
        copies=tuple(copies),
        kept=kept,
        left=tuple(left),
        edited=tuple(edited),
        deleted=tuple(_gone(view, seen, elsewhere)),
        carried=tuple(carried),
    )


class _Elsewhere:
    """What another copy did to lines, as receipts tell that came since: nobody did it here."""

    def __init__(self, view: View, seen: Mapping[int, SeenLine]) -> None:
        receipts = unseen(view, seen)
        self.came = bool(receipts)
        self._tales, _ = tales_of(view, differences(view, seen) if receipts else (), receipts)
        renames = (one for one in map(parse_receipt, view.each(receipts)) if one.op == RENAME)
        self._renamed = {file[0] for one in renames for file in one.files}

    def tale(self, seq: int) -> Tale:
        return self._tales.get(seq, _UNTOLD)

    def moved(self, seq: int, doc_id: str) -> bool:
        """Return whether it put a line into a document."""
        tale = self.tale(seq)
        return tale.ends(doc_id) or tale.last == DOUBLED or doc_id in self._renamed

    def edited(self, was: Entry, now: Located, entries: Mapping[int, Sequence[Located]]) -> bool:
        """Return whether it had a line read otherwise: by an edit, an undo, or another number in a merge."""
        tale = self.tale(was.seq)
        is_signed = was.text.rstrip() == now.text.rstrip() or now.entry.source == "human"
        if tale.is_undone or (is_signed and was.line in tale.quoted):
            return True
        copies = (one for places in entries.values() for one in places if was.seq in one.entry.origin)
        return self.came and any(one.text == was.text for one in copies)


def _gone(view: View, seen: Mapping[int, SeenLine], elsewhere: _Elsewhere) -> Iterator[tuple[int, SeenLine]]:
    """Give lines that stand nowhere, and that no receipt of another side took away."""
    # Lines whose signature someone broke are there: `doctor` names them.
    documents = map(view.document, tracked(view))
    broken = (document.text_line(number) for document in documents for number in document.malformed)
    damaged = {int(seq) for line in broken for seq in _SEQ.findall(line)}
    for seq, line in sorted(seen.items()):
        if seq < 0 or view.entry(seq) or seq in damaged or elsewhere.tale(seq).ends("-"):
            continue
        yield seq, line


def _is_told(places: Sequence[Located], tale: Tale, is_shared: bool) -> bool:
    """Return whether receipts brought a line to all its places, and no person pasted it: those of two sides
    did, or both edited it, or one what stands here as it was."""
    readings, docs = {place.entry.line for place in places}, {place.doc_id for place in places}
    is_edited = is_shared and tale.quoted and len(readings) == len(places)
    if is_edited or tale.last == UNDONE or readings & tale.quoted:
        return True
    return is_shared and len(docs) == len(places) and docs <= {*BUFFERS, *chain.from_iterable(tale.steps)}


def _left_standing(places: Sequence[Located], tale: Tale) -> list[Located]:
    """Return where a line stands of which a merge left several: once, or once for each side that edited it.

    It stands as somebody edited it, else where the latest receipt put it.
    """
    versions: dict[str, list[Located]] = {}
    for place in places:
        versions.setdefault(place.entry.line, []).append(place)
    edited = [some for line, some in versions.items() if line not in tale.quoted]
    if len(versions) > 1 and edited:
        return [_latest(some, tale) for some in sorted(edited, key=lambda some: some[0].entry.line)]
    return [_latest(places, tale)]


def _latest(places: Sequence[Located], tale: Tale) -> Located:
    rank = {now: at for at, (_, now) in enumerate(tale.steps, 1)}
    return max(places, key=lambda one: (rank.get(one.doc_id, 0), one.doc_id.startswith(ARCHIVE), one.doc_id))


def is_unedited(view: View, seen: Mapping[int, SeenLine], adopted: Mapping[str, Document]) -> bool:
    """Return whether there is nothing to find, or to note, in what changed since documents were `adopted`."""
    if view.lines.doubled or view.lines.entries + len(view.below(JOURNAL)) + 1 != len(seen):
        return False
    changed = (one for doc_id in tracked(view) if (one := view.document(doc_id)) is not adopted.get(doc_id))
    return not any(
        document.unsigned
        or document.malformed
        or any(seen.get(place.seq) != SeenLine(document.id, place.entry.line) for place in document.entries)
        for document in changed
    )


def _by_seq(view: View, doc_ids: Iterable[str]) -> dict[int, list[Located]]:
    places: dict[int, list[Located]] = defaultdict(list)
    for doc_id in doc_ids:
        for place in view.document(doc_id).entries:
            places[place.seq].append(place)
    return places


def _original(places: list[Located], before: SeenLine | None) -> Located:
    """Return which of entries with one seq keeps it: in the archive, as it was, where it was, or first."""
    places = [place for place in places if place.doc_id.startswith(ARCHIVE)] or places
    if before is None:
        return places[0]
    return min(places, key=lambda p: (p.entry.line != before.line, p.doc_id != before.doc_id))


def _bare(entry: Entry) -> Entry:
    return replace(entry, seq=1, line="", text=entry.text.rstrip(), origin=())


def followed(known: Mapping[int, SeenLine], places: Iterable[Located]) -> Changes:
    """Return where lines stand that the program wrote or moved; a person's edit stays to be told."""
    changes: Changes = {}
    for place in places:
        before = known.get(place.seq)
        if not place.doc_id.startswith(EVIDENCE) and not (before and before.doc_id == place.doc_id):
            changes[place.seq] = SeenLine(place.doc_id, before.line if before else place.entry.line)
    return changes


def differences(
    view: View, known: Mapping[int, SeenLine], changed: Mapping[str, Document | None] | None = None
) -> Changes:
    """Return what to note so that the list says what stands in `view`, once these documents changed."""
    documents: dict[str, Document | None] = {doc_id: view.document(doc_id) for doc_id in tracked(view)}
    documents |= {doc_id: new for doc_id, new in (changed or {}).items() if not doc_id.startswith(EVIDENCE)}
    now = {
        place.seq: SeenLine(place.doc_id, place.entry.line)
        for document in documents.values()
        for place in (document.entries if document else ())
    }
    now |= {receipt_seen(doc_id): SeenLine(doc_id, "") for doc_id in ("", *view.below(JOURNAL))}
    changes: Changes = {seq: line for seq, line in now.items() if known.get(seq) != line}
    changes.update((seq, None) for seq in known if seq not in now)
    return changes


def unseen(view: View, seen: Mapping[int, SeenLine]) -> list[str]:
    """Return the receipts that another copy wrote, and that came since; none where nothing tells."""
    doc_ids = receipt_ids(view) if receipt_seen("") in seen else ()
    return [doc_id for doc_id in doc_ids if receipt_seen(doc_id) not in seen]


def tracked(view: View) -> list[str]:
    """Return the documents whose lines are remembered: CURRENT, INBOX, topics, then the archive."""
    return [*live(view), *view.owned(ARCHIVE)]


def live(view: View) -> list[str]:
    """Return the documents of entries that stand, or await approval: CURRENT, INBOX and topics."""
    return [*(one for one in BUFFERS if one in view and view.initialised), *view.owned(TOPICS)]


def adopt(view: View, edits: ExternalEdits, first_seq: int) -> Rendered:
    """Sign what is to be signed and name the rest; the first new line gets `first_seq`, the others follow."""
    done = Rendered()
    texts = {(doc_id, number): text for doc_id, number, text in edits.typed}
    old = {position(place): place.entry for place in edits.copies}
    to_sign = sorted([*texts, *edits.renumbered])
    seqs = {place: seq for seq, place in enumerate(to_sign, first_seq)}
    for place, seq in seqs.items():
        why = f"renumbered from {old[place].seq}" if place in old else "stamped"
        done.rows.append(ReceiptRow(seq, place[0], place[0], why))
    new: dict[Position, Entry] = {}
    for line, before in edits.edited:
        done.quoted.append(before)
        done.rows.append(ReceiptRow(line.seq, line.doc_id, line.doc_id, "edited"))
        if line.entry.source != "human":
            place = position(line)
            old[place], new[place] = line.entry, of_person(line.entry)
    for copy in edits.copies:
        own, first = (new.get(position(line), line.entry) for line in (copy, edits.kept[copy.seq]))
        known = {own.seq, *(first.origin if own.text == first.text else ())}
        origin = (*(one for one in own.origin if one not in known), own.seq)
        if own.text != first.text:  # nobody said it so
            own = of_person(own)
        new[position(copy)] = replace(own, seq=seqs[position(copy)], origin=origin)
    for seq, seen in edits.deleted:
        done.quoted.append(seen.line)
        done.rows.append(ReceiptRow(seq, seen.doc_id, "-", "deleted"))
    done.rows += [ReceiptRow(place.seq, was, place.doc_id, "moved by hand") for place, was in edits.carried]
    signed = {place: format_entry(seqs[place], text, source="human") for place, text in texts.items()}
    signed |= {place: resigned(old[place], entry) for place, entry in new.items()}
    for doc_id in sorted({doc_id for doc_id, _ in signed}):
        lines = {number: line for (name, number), line in signed.items() if name == doc_id}
        done.documents[doc_id] = document = view.document(doc_id).sign(lines)
        done.added += [
            (place.seq, place.entry.line) for place in document.entries if position(place) in signed
        ]
    done.removed += [(old[place].seq, old[place].line) for place in new]
    for line in edits.left:
        done.rows.append(ReceiptRow(line.seq, line.doc_id, edits.kept[line.seq].doc_id, DOUBLED))
        done.removed.append((line.seq, line.entry.line))
        done.quoted += [line.entry.line] * (line.entry.line != edits.kept[line.seq].entry.line)
    for doc_id in {line.doc_id for line in edits.left}:
        document = done.documents.get(doc_id) or view.document(doc_id)
        rest = document.lacking([line for line in edits.left if line.doc_id == doc_id])
        done.documents[doc_id] = None if doc_id not in BUFFERS and is_emptied(rest, HEADER_KEYS) else rest
    return done


def of_person(entry: Entry) -> Entry:
    """Return a line as a person's own."""
    return replace(without(entry, "by"), source="human")


def rewrite(view: View, lines: Iterable[tuple[Located, Entry]], why: str) -> Rendered:
    """Have lines read as these entries do; the receipt quotes them as they were."""
    done, instead = Rendered(), dict[str, dict[int, str]]()
    for place, entry in lines:
        line = resigned(place.entry, entry)
        instead.setdefault(place.doc_id, {})[place.seq] = line
        done.quoted.append(place.entry.line)
        done.rows.append(ReceiptRow(place.seq, place.doc_id, place.doc_id, why))
        done.removed.append((place.seq, place.entry.line))
        done.added.append((place.seq, line))
    done.documents |= {doc_id: reading(view.document(doc_id), new) for doc_id, new in instead.items()}
    return done


def edit(view: View, seq: int, text: str) -> Rendered:
    """Have a fact say something else, on one line, as a person's own."""
    place = _standing(view, seq)
    return rewrite(view, [(place, replace(of_person(place.entry), text=_person_text(text)))], "edited")


def pin(view: View, seq: int, pinned: bool) -> Rendered:
    """Pin a fact, or free it."""
    place = _standing(view, seq)
    new = without(place.entry, "pin")
    if pinned:
        new = replace(new, fields={**new.fields, "pin": "yes"})
    return rewrite(view, [(place, new)], "pinned" if pinned else "unpinned")


def write(view: View, doc_id: str, text: str, time: str, next_seq: Callable[[], int]) -> Rendered:
    """Put a fact of a person's, on one line, at the end of a document of facts."""
    text = _person_text(text)
    if doc_id not in live(view) or doc_id == INBOX:
        raise UsageError(f"{doc_id} is no topic; choose one, or CURRENT")
    line = format_entry(seq := next_seq(), text, time=time, source="human")
    document = view.document(doc_id).insert([line])
    return Rendered({doc_id: document}, [ReceiptRow(seq, "-", doc_id, "added")], [(seq, line)])


def _standing(view: View, seq: int) -> Located:
    place = view.entry(seq)
    if place is None or place.doc_id not in live(view) or place.doc_id == INBOX:
        raise UsageError(f"{seq} is no fact that stands")
    return place


def _person_text(text: str) -> str:
    if not (text := one_line(clean_text(text))):
        raise UsageError("the text is empty; to take a fact out, forget it")
    return text
