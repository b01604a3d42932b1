"""What people did to the files, taken in: typed items signed, copies renumbered, edits and deletions noted.

What a merge of clones doubled is settled on the way (external_edits.py). Pure; texts stay as they are.
Source: docs/FORMAT.md, Entry and Merged clones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from infinimem.markdown.signature import format_entry, format_seqs, resigned
from infinimem.model import Entry, Located, ReceiptRow
from infinimem.store.external_edits import (
    ExternalEdits,
    Position,
    position,
    renumbered,
    renumbered_copy,
)
from infinimem.store.lines import drawn_from
from infinimem.store.render import Rendered
from infinimem.store.state.last_seen import tracked
from infinimem.store.view import View


def adopt(view: View, edits: ExternalEdits, first_seq: int) -> Rendered:
    """Sign what is to be signed and name the rest.

    Args:
        view: the library under the lock.
        edits: what `find_edits` found in it.
        first_seq: seq of the first new line; the others follow.
    """
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
            phrased = {key: value for key, value in line.entry.fields.items() if key != "by"}
            place = position(line)
            old[place], new[place] = line.entry, replace(line.entry, source="human", fields=phrased)
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
        kept = edits.kept[copy.seq]
        own, first = (new.get(position(line), line.entry) for line in (copy, kept))
        new[position(copy)] = renumbered_copy(own, first, seqs[position(copy)])
    new |= {position(turn): renumbered(turn.entry, seqs[position(turn)]) for turn in edits.turns}
    for seq, seen in edits.deleted:
        done.quoted.append(seen.line)
        done.rows.append(ReceiptRow(seq, seen.doc_id, "-", "deleted"))
    done.rows += [ReceiptRow(place.seq, was, place.doc_id, "moved by hand") for place, was in edits.carried]
    signed = {place: format_entry(seqs[place], text, source="human") for place, text in texts.items()}
    _sign(done, view, signed | {place: resigned(old[place], entry) for place, entry in new.items()})
    done.removed += [(old[place].seq, old[place].line) for place in new]
    return done


def undate(view: View, lines: Sequence[Located]) -> Rendered:
    """Take `when` out of the signatures of lines; the receipt quotes them as they were."""
    done, signed = Rendered(), dict[Position, str]()
    for line in lines:
        fields = {key: value for key, value in line.entry.fields.items() if key != "when"}
        signed[position(line)] = resigned(line.entry, replace(line.entry, fields=fields))
        done.quoted.append(line.entry.line)
        done.rows.append(ReceiptRow(line.seq, line.doc_id, line.doc_id, "undated"))
        done.removed.append((line.seq, line.entry.line))
    _sign(done, view, signed)
    return done


def turns_without_entries(view: View, edits: ExternalEdits, first_seq: int) -> list[int]:
    """The new seqs of turns whose old seq was drawn from and is cited by no entry: they count as drawn from.

    Args:
        view, edits, first_seq: as for `adopt`.
    """
    entries = (place.entry for doc_id in tracked(view) for place in view.document(doc_id).entries)
    drawn = view.processed - {seq for entry in entries for seq in drawn_from(entry)}
    seqs = _given(edits, first_seq)
    return [seqs[position(turn)] for turn in edits.turns if turn.seq in drawn]


def _given(edits: ExternalEdits, first_seq: int) -> dict[Position, int]:
    """Who gets which seq: by document and line."""
    typed = ((doc_id, number) for doc_id, number, _ in edits.typed)
    return {place: seq for seq, place in enumerate(sorted([*typed, *edits.renumbered]), first_seq)}


def _sign(done: Rendered, view: View, lines: Mapping[Position, str]) -> None:
    """Put the signatures of lines on those of the documents."""
    by_document: dict[str, dict[int, str]] = {}
    for (doc_id, number), line in sorted(lines.items()):
        by_document.setdefault(doc_id, {})[number] = line
    done.documents |= {
        doc_id: view.document(doc_id).sign(signatures) for doc_id, signatures in by_document.items()
    }
    for places in (document.entries for document in done.documents.values() if document):
        done.added += [(place.seq, place.entry.line) for place in places if position(place) in lines]
