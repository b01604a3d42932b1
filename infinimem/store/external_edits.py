"""What people, and merges of clones, did to the files since the program last looked: found, and taken in.

Typed items are signed, copies renumbered, edits and deletions noted; texts stay as they are. Pure.
Source: docs/FORMAT.md, Entry and Merged clones.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from infinimem.errors import UsageError
from infinimem.markdown.characters import clean_text, one_line
from infinimem.markdown.document import Document
from infinimem.markdown.signature import format_entry, format_seqs, parse_entry, resigned
from infinimem.model import BUFFERS, INBOX, Entry, Located, ReceiptRow
from infinimem.store.line_map import reading
from infinimem.store.lines import drawn_from, former
from infinimem.store.plans import Rendered
from infinimem.store.spec import ARCHIVE, EVIDENCE, TOPICS
from infinimem.store.state import Changes, SeenLine
from infinimem.store.view import View, without, without_seqs

_SEQ = re.compile(r"\bseq=([0-9]{1,18})\b")

Lines = Mapping[int, Sequence[Located]]
Position = tuple[str, int]


def position(line: Located) -> Position:
    return line.doc_id, line.start_line


@dataclass(frozen=True)
class AmbiguousCitation:
    """An entry, a seq that it cites, and the lines with that seq that it may come from."""

    by: Located
    seq: int
    lines: tuple[Located, ...]

    def others(self, renumbered: Collection[Position] = ()) -> list[Located]:
        """Return lines to cite beside the one that has the seq, which is not among the renumbered."""
        return [line for line in self.lines if line.seq != self.seq or position(line) in renumbered]


@dataclass(frozen=True)
class ExternalEdits:
    """What people did since the program last looked.

    Args:
        typed: document, line and text of list items without signature.
        copies, turns: entries, and evidence, whose seq another line keeps.
        kept: the lines that keep a doubled seq.
        ambiguous: citations of seqs that several lines have or had.
        edited: lines, also archived ones, and how they read before.
        carried: lines that stand in another document, and in which they stood before.
    """

    typed: tuple[tuple[str, int, str], ...] = ()
    copies: tuple[Located, ...] = ()
    turns: tuple[Located, ...] = ()
    kept: Mapping[int, Located] = field(default_factory=dict)
    ambiguous: tuple[AmbiguousCitation, ...] = ()
    edited: tuple[tuple[Located, str], ...] = ()
    deleted: tuple[tuple[int, SeenLine], ...] = ()
    carried: tuple[tuple[Located, str], ...] = ()

    @property
    def renumbered(self) -> frozenset[Position]:
        return frozenset(map(position, (*self.copies, *self.turns)))

    @property
    def to_sign(self) -> int:
        return len(self.typed) + len(self.copies) + len(self.turns)

    def __bool__(self) -> bool:
        return bool(self.to_sign or self.edited or self.deleted or self.carried or self.ambiguous)


def find_edits(view: View, seen: Mapping[int, SeenLine]) -> ExternalEdits:
    """Compare the files with lines as last seen; if none is known, nothing counts as edited or deleted."""
    typed = [
        (doc_id, item.line, item.text) for doc_id in live(view) for item in view.document(doc_id).unsigned
    ]
    said, entries = _by_seq(view, view.owned(EVIDENCE)), _by_seq(view, tracked(view))
    kept = {seq: turns[0] for seq, turns in said.items() if len(turns) > 1 or seq in entries}
    turns = [turn for seq in kept for turn in said[seq] if turn is not kept[seq]]
    successors: dict[str, set[int]] = defaultdict(set)  # seqs that lines had before a merge, by their texts
    for place in (place for places in entries.values() for place in places):
        if old := former(place.entry):
            successors[place.text.rstrip()].update(old)
    copies: list[Located] = []
    edited: list[tuple[Located, str]] = []
    carried: list[tuple[Located, str]] = []
    for seq, places in entries.items():
        if seq in said:
            copies += places
            continue
        before = seen.get(seq)
        original = _original(places, before)
        if len(places) > 1:
            kept[seq] = original
            copies += [place for place in places if place is not original]
        if before is None:
            continue
        same = original.entry.line.rstrip() == before.line.rstrip()  # but for what editors strip
        was = parse_entry(before.line) if successors or not same else None
        if was and seq in successors.get(was.text.rstrip(), ()):
            continue
        if not same and (was is None or _bare(was) != _bare(original.entry)):
            edited.append((original, before.line))
        if original.doc_id != before.doc_id:
            carried.append((original, before.doc_id))
    # Lines whose signature someone broke are there: `doctor` names them.
    documents = map(view.document, tracked(view))
    broken = (document.text_line(number) for document in documents for number in document.malformed)
    damaged = {int(seq) for line in broken for seq in _SEQ.findall(line)}
    gone = [(seq, seen[seq]) for seq in sorted(seen) if view.entry(seq) is None and seq not in damaged]
    return ExternalEdits(
        typed=tuple(typed),
        copies=tuple(copies),
        turns=tuple(turns),
        kept=kept,
        ambiguous=tuple(_ambiguous(said, entries, seen)),
        edited=tuple(edited),
        deleted=tuple(gone),
        carried=tuple(carried),
    )


def is_unedited(view: View, seen: Mapping[int, SeenLine], adopted: Mapping[str, Document]) -> bool:
    """Return whether there is nothing to find, or to note, in what changed since documents were `adopted`."""
    if view.lines.doubled or view.lines.merged or view.lines.entries != len(seen):
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
    return replace(without_seqs(entry), text=entry.text.rstrip(), origin=())


def _ambiguous(turns: Lines, entries: Lines, known: Collection[int]) -> Iterator[AmbiguousCitation]:
    """Give citations of a seq that several lines have or had; for known entries only if they have it now."""
    rivals = _rivals(turns, entries)
    for place in (place for places in entries.values() for place in places) if rivals else ():
        origins = drawn_from(place.entry)
        for seq in dict.fromkeys(origins):
            lines = _candidates(place, rivals.get(seq, ()))
            standing = [line for line in lines if line.seq == seq]
            led = [line for line in lines if line.seq != seq]
            if any(line.seq in origins for line in led):
                led = []  # it cites one of them already
            if len(standing) > 1 or (led and known and place.seq not in known):
                yield AmbiguousCitation(place, seq, (*standing, *led))


def _rivals(turns: Lines, entries: Lines) -> Lines:
    every = [line for lines in (*turns.values(), *entries.values()) for line in lines]
    doubled = {seq for line in every for seq in former(line.entry)} | (turns.keys() & entries.keys())
    doubled.update(seq for lines in (turns, entries) for seq in lines if len(lines[seq]) > 1)
    rivals: dict[int, dict[str, Located]] = defaultdict(dict)
    for line in every if doubled else ():
        for seq in doubled.intersection((line.seq, *former(line.entry))):
            rivals[seq].setdefault(line.entry.line, line)
    return {seq: tuple(lines.values()) for seq, lines in rivals.items() if len(lines) > 1}


def _candidates(entry: Located, lines: Sequence[Located]) -> list[Located]:
    """Return the turns among lines of one number, and what an entry is a copy of; all if none is a turn."""
    others = [line for line in lines if position(line) != position(entry)]
    if not any(line.doc_id.startswith(EVIDENCE) for line in others):
        return others
    return [line for line in others if line.doc_id.startswith(EVIDENCE) or line.text == entry.text]


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
    changes: Changes = {seq: line for seq, line in now.items() if known.get(seq) != line}
    changes.update((seq, None) for seq in known if seq not in now)
    return changes


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
    old = {position(place): place.entry for place in (*edits.copies, *edits.turns)}
    seqs = _given(edits, first_seq)
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
    for one in edits.ambiguous:
        place, entry = position(one.by), one.by.entry
        those = sorted(seqs.get(position(line), line.seq) for line in one.others(edits.renumbered))
        now = new.get(place, entry)
        old[place], new[place] = entry, replace(now, origin=tuple(dict.fromkeys((*now.origin, *those))))
        if entry.line not in done.quoted:
            done.quoted.append(entry.line)
        why = f"cites {format_seqs(those)} too"
        done.rows.append(ReceiptRow(seqs.get(place, entry.seq), place[0], place[0], why))
    for copy in edits.copies:
        own, first = (new.get(position(line), line.entry) for line in (copy, edits.kept[copy.seq]))
        seq, same = seqs[position(copy)], own.text == first.text
        known = {own.seq, *(first.origin if same else ())}
        origin = (*(one for one in own.origin if one not in known), own.seq)
        entry = replace(own, seq=seq) if same else _renumbered(own, seq)  # told apart if it says else
        new[position(copy)] = replace(entry, origin=origin)
    new |= {position(turn): _renumbered(turn.entry, seqs[position(turn)]) for turn in edits.turns}
    for seq, seen in edits.deleted:
        done.quoted.append(seen.line)
        done.rows.append(ReceiptRow(seq, seen.doc_id, "-", "deleted"))
    done.rows += [ReceiptRow(place.seq, was, place.doc_id, "moved by hand") for place, was in edits.carried]
    signed = {place: format_entry(seqs[place], text, source="human") for place, text in texts.items()}
    _sign(done, view, signed | {place: resigned(old[place], entry) for place, entry in new.items()})
    done.removed += [(old[place].seq, old[place].line) for place in new]
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


def turns_without_entries(view: View, edits: ExternalEdits, first_seq: int) -> list[int]:
    """Return the new seqs of turns whose old seq was drawn from and is cited by no entry."""
    entries = (place.entry for doc_id in tracked(view) for place in view.document(doc_id).entries)
    drawn = view.processed - {seq for entry in entries for seq in drawn_from(entry)}
    seqs = _given(edits, first_seq)
    return [seqs[position(turn)] for turn in edits.turns if turn.seq in drawn]


def _given(edits: ExternalEdits, first_seq: int) -> dict[Position, int]:
    typed = ((doc_id, number) for doc_id, number, _ in edits.typed)
    return {place: seq for seq, place in enumerate(sorted([*typed, *edits.renumbered]), first_seq)}


def _sign(done: Rendered, view: View, lines: Mapping[Position, str]) -> None:
    by_document: dict[str, dict[int, str]] = {}
    for (doc_id, number), line in sorted(lines.items()):
        by_document.setdefault(doc_id, {})[number] = line
    done.documents |= {
        doc_id: view.document(doc_id).sign(signatures) for doc_id, signatures in by_document.items()
    }
    for places in (document.entries for document in done.documents.values() if document):
        done.added += [(place.seq, place.entry.line) for place in places if position(place) in lines]


def _renumbered(line: Entry, seq: int) -> Entry:
    was = format_seqs((*former(line), line.seq))
    return replace(line, seq=seq, fields={**line.fields, "was": was})
