"""Check a plan against the library as it is under the lock, and turn it into changes of files.

In: a plan, the view that it was made from, and the view of now. Out: a verdict; then files and a receipt.
Promise: a line or record that changed in between is never overwritten. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence, Set
from dataclasses import replace

from infinimem import law
from infinimem.grounding.claims import is_repetition
from infinimem.law import Verdict
from infinimem.markdown.characters import clean_text, one_line
from infinimem.markdown.signature import format_seqs
from infinimem.model import CURRENT, NewEntry, Plan, Reason, Receipt
from infinimem.store.commit import FileChange, Moves
from infinimem.store.files import digest
from infinimem.store.line_map import reverse_diff
from infinimem.store.lines import ID, fold
from infinimem.store.receipts import format_receipt, last_forget, with_suffix
from infinimem.store.render import Rendered
from infinimem.store.spec import EVIDENCE, MEMORIES, TOPICS
from infinimem.store.state import REFUSED, drawn_list
from infinimem.store.view import View

REVIEW = "review"
"""What receipts call that which a person approved."""
MEMORY = "memory"
"""What they call a change of a model's own files."""
_WRITES = {REVIEW: (TOPICS,), "reimport": (TOPICS,), MEMORY: (MEMORIES,)}
"""Where plans may write that are no strategy's, whoever keeps the library just now."""


def verified(plan: Plan, base: View | None, now: View, approved: Collection[int] = ()) -> Verdict:
    """Ask the law about a plan that was made from `base`, as the library is now; `approved` as law.verify."""
    if base is not None:
        if stale := _overtaken(plan, base, now):
            return Verdict(plan, (), stale)
        plan = _current(plan, base, now)
    roots = _WRITES.get(plan.op, now.spec.writes)
    files = (now.spec.texts,) if now.spec.has_entries and plan.op not in _WRITES else None
    return law.verify(plan, now.entry, roots, approved, same=is_repetition, files=files)


def not_yet_drawn(adds: Sequence[NewEntry], view: View) -> tuple[NewEntry, ...]:
    """Return the new entries but those that another process has drawn from the same turns meanwhile."""
    pending = {place.seq for place in view.uncited({seq for add in adds for seq in add.origin})}

    def is_new(add: NewEntry) -> bool:
        turns = _turns(add.origin, view)
        return not turns or not pending.isdisjoint(turns)

    return tuple(filter(is_new, adds))


def lists_after(plan: Plan, view: View) -> dict[str, Set[int]]:
    """Return the turns that a plan drew from, and those of which nothing was accepted, by list."""
    turns: Set[int] = frozenset()
    is_draft = plan.op == "append" and view.spec.has_entries
    if is_draft:
        turns = {*plan.empty, *plan.refused, *(seq for add in plan.adds for seq in add.origin)}
    elif view.spec.sparse and plan.op != "rebuild":
        turns = {*plan.empty}
    return {drawn_list(view.spec): _turns(turns, view), REFUSED: {*plan.refused} if is_draft else frozenset()}


def _turns(seqs: Collection[int], view: View) -> set[int]:
    return {seq for seq in seqs if (place := view.entry(seq)) and place.doc_id.startswith(EVIDENCE)}


def _current(plan: Plan, base: View, now: View) -> Plan:
    """Return the plan without what it says of lines that left their place since it was made."""

    def stays(seq: int) -> bool:
        was, place = base.entry(seq), now.entry(seq)
        return was is None or (place is not None and place.doc_id == was.doc_id)

    left = sorted({move.seq for move in plan.moves if not stays(move.seq)})
    if not left:
        return plan
    note = f"left out, moved or deleted meanwhile: {format_seqs(left)}"
    return replace(
        plan,
        moves=tuple(move for move in plan.moves if move.seq not in left),
        notes=(*plan.notes, note),
    )


def _overtaken(plan: Plan, base: View, now: View) -> tuple[Reason, ...]:
    """Return what the plan was made from and is no more: a line forgotten since, a record that changed."""
    if last_forget(base) != last_forget(now):
        return (Reason("FORGOTTEN", (), "lines were forgotten since, and its words may quote them"),)

    def data(view: View, doc_id: str) -> bytes | None:
        return view.document(doc_id).to_bytes() if doc_id in view else None

    changed = (put.doc_id for put in plan.records if data(base, put.doc_id) != data(now, put.doc_id))
    return tuple(Reason("STALE_RECORD", (), doc_id) for doc_id in changed)


def name_receipt(head: Receipt, plan: Plan, view: View, first_seq: int) -> Receipt:
    """Return the receipt of a plan under its name, which documents tell; seqs as for `render`."""
    places = [place for move in plan.moves if (place := view.entry(move.seq))]
    cited = sorted({seq for add in plan.adds for seq in add.origin})  # each once: a long turn has many
    origins = [place.entry.line for seq in cited if (place := view.entry(seq))]
    changed = {a.to for a in plan.adds} - {CURRENT}  # most are appended there, and leave no receipt
    changed |= {p.doc_id for p in places} | {m.to for m in plan.moves}
    changed |= {d.doc_id for d in plan.derived} | {p.doc_id for p in plan.records}
    before = [digest(view.document(doc_id).to_bytes()) for doc_id in sorted(changed) if doc_id in view]
    return with_suffix(head, before, first_seq, origins, plan.adds, plan.moves, plan.derived, plan.records)


def receipt_and_changes(
    done: Rendered, view: View, head: Receipt, notes: Sequence[str]
) -> tuple[Receipt, list[FileChange]]:
    """Return the receipt, begun with `head`, and the files that change, that of the receipt last."""
    old = {doc_id: view.document(doc_id) if doc_id in view else None for doc_id in done.documents}
    signs = head.op in ("stamp", "undate")  # where the lines stand
    changes, files = [], []
    for doc_id, new in done.documents.items():
        moves = Moves() if signs else Moves.between(old[doc_id], new)
        before, after = (one.to_bytes() if one else None for one in (old[doc_id], new))
        changes.append(FileChange(f"{doc_id}.md", before, after, moves))
        was, now = digest(before), digest(after)
        files.append((done.names.get(doc_id, doc_id), done.sums.get(was, was), now))
    receipt = replace(
        head if head.suffix else with_suffix(head, done.rows, files, done.quoted),
        rows=tuple(done.rows),
        quoted=tuple(done.quoted),
        files=tuple(files),
        notes=tuple(one_line(clean_text(note)) for note in notes),
    )
    way = done.reverse_diffs
    if way is None:
        way = [
            row
            for doc_id in sorted(old)
            for row in reverse_diff(doc_id, old[doc_id], done.documents[doc_id], done.removed)
        ]
    data = format_receipt(receipt, way)
    return receipt, [*changes, FileChange(f"{receipt.id}.md", None, data)]


def violations(view: View, done: Rendered) -> list[Reason]:
    old = [view.document(doc_id) for doc_id in done.documents if doc_id in view]
    new = [document for document in done.documents.values() if document]
    before, after = (
        [(place.seq, place.entry.line) for document in documents for place in document.entries]
        for documents in (old, new)
    )
    return law.conserved(before, after, done.added, done.removed)


def name_clashes(view: View, done: Rendered) -> list[Reason]:
    """Return new documents whose names some file systems take for that of another."""
    new = [doc_id for doc_id, document in done.documents.items() if document and doc_id not in view]
    counts = Counter(map(fold, new))
    return [
        Reason("BAD_TARGET", (), f"{doc_id} is another's name")
        for doc_id in new
        if view.lines.named(ID, fold(doc_id)) or counts[fold(doc_id)] > 1
    ]
