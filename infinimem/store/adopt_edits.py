"""What people did to the files, taken in: typed items signed, copies renumbered, edits and deletions noted.

What a merge of clones doubled is settled on the way (merged.py). Pure; texts stay as they are. Source:
docs/FORMAT.md, Entry and Merged clones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from infinimem.markdown.signature import format_entry, format_seqs
from infinimem.model import Entry, Touched
from infinimem.store.clone_merge import Place, at, certain, citing, renumbered, renumbered_copy
from infinimem.store.external_edits import Found
from infinimem.store.render import Rendered
from infinimem.store.view import View


def stamp(view: View, found: Found, first_seq: int) -> Rendered:
    """Sign what is to be signed and name the rest.

    Args:
        view: the library under the lock.
        found: what `look` found in it.
        first_seq: seq of the first new line; the others follow.
    """
    done = Rendered()
    texts = {(doc_id, number): text for doc_id, number, text in found.typed}
    old = {at(place): place.entry for place in (*found.copies, *found.turns)}
    seqs = _given(found, first_seq)
    for place, seq in seqs.items():
        why = f"renumbered from {old[place].seq}" if place in old else "stamped"
        done.rows.append(Touched(seq, place[0], place[0], why))
    new: dict[Place, Entry] = {}
    for line, before in found.edited:
        done.quoted.append(before)
        done.rows.append(Touched(line.seq, line.doc_id, line.doc_id, "edited"))
        if line.entry.source != "human":
            phrased = {key: value for key, value in line.entry.fields.items() if key != "by"}
            old[at(line)], new[at(line)] = line.entry, replace(line.entry, source="human", fields=phrased)
    for one in found.cites:
        lines, instead = one.followed(found.renumbered)
        if lines:
            place, entry = at(one.by), one.by.entry
            those = sorted(seqs.get(at(line), line.seq) for line in lines)
            old[place], new[place] = entry, citing(new.get(place, entry), one.seq, those, instead)
            if entry.line not in done.quoted:
                done.quoted.append(entry.line)
            why = f"cites {format_seqs(those)} {f'instead of {one.seq}' if instead else 'too'}"
            done.rows.append(Touched(seqs.get(place, entry.seq), place[0], place[0], why))
    for copy in found.copies:
        kept = found.kept[copy.seq]
        own, first = (new.get(at(line), line.entry) for line in (copy, kept))
        new[at(copy)] = renumbered_copy(own, first, seqs[at(copy)])
    new |= {at(turn): renumbered(turn.entry, seqs[at(turn)]) for turn in found.turns}
    for seq, seen in found.deleted:
        done.quoted.append(seen.line)
        done.rows.append(Touched(seq, seen.doc_id, "-", "deleted"))
    done.rows += [Touched(place.seq, was, place.doc_id, "moved by hand") for place, was in found.carried]
    signed = {place: format_entry(seqs[place], text, source="human") for place, text in texts.items()}
    _sign(done, view, signed | {place: _line(entry) for place, entry in new.items()})
    done.removed += [(old[place].seq, old[place].line) for place in new]
    return done


def already_drawn(view: View, found: Found, first_seq: int) -> list[int]:
    """Of the seqs that `stamp` gives to turns those that count as drawn from: where the old one does.

    Not where entries show that it was the other turn that was drawn from.

    Args:
        view, found, first_seq: as for `stamp`.
    """
    seqs, seen, sure = _given(found, first_seq), view.seen, certain(found.cites)
    known = (turn for turn in found.turns if turn.seq in seen and at(found.kept[turn.seq]) not in sure)
    return [seqs[at(turn)] for turn in known]


def _given(found: Found, first_seq: int) -> dict[Place, int]:
    """Who gets which seq: by document and line."""
    typed = ((doc_id, number) for doc_id, number, _ in found.typed)
    return {place: seq for seq, place in enumerate(sorted([*typed, *found.renumbered]), first_seq)}


def _line(entry: Entry) -> str:
    return format_entry(
        entry.seq,
        entry.text,
        time=entry.time,
        source=entry.source,
        origin=entry.origin,
        fields=entry.fields,
    )


def _sign(done: Rendered, view: View, lines: Mapping[Place, str]) -> None:
    """Put the signatures of lines on those of the documents."""
    by_document: dict[str, dict[int, str]] = {}
    for (doc_id, number), line in sorted(lines.items()):
        by_document.setdefault(doc_id, {})[number] = line
    done.documents |= {
        doc_id: view.document(doc_id).sign_all(signatures) for doc_id, signatures in by_document.items()
    }
    for places in (document.entries for document in done.documents.values() if document):
        done.added += [(place.seq, place.entry.line) for place in places if at(place) in lines]
