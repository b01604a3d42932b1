"""Check a plan against the library as it is under the lock, and turn it into changes of files.

In: a plan, the view that it was made from, and the view of now. Out: a verdict; then files and a receipt.
Promise: a line or record that changed in between is never overwritten. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from infinimem import law
from infinimem.grounding.claims import is_repetition
from infinimem.law import Verdict
from infinimem.markdown.characters import clean_text, one_line
from infinimem.markdown.signature import format_seqs
from infinimem.model import Located, Plan, Reason, Receipt
from infinimem.store.commit.install import Moves
from infinimem.store.commit.transaction import Change
from infinimem.store.files import digest
from infinimem.store.line_map import reverse_diff
from infinimem.store.lines import fold
from infinimem.store.names import by_id
from infinimem.store.receipts import format_receipt, last_forget
from infinimem.store.render import Rendered
from infinimem.store.spec import MEMORIES, TOPICS
from infinimem.store.view import View

REVIEW = "review"
"""What receipts call that which a person approved."""
MEMORY = "memory"
"""What they call a change of a model's own files."""
_WRITES = {REVIEW: (TOPICS,), "reimport": (TOPICS,), MEMORY: (MEMORIES,)}
"""Where plans may write that are no strategy's, whoever keeps the library just now."""


def verified(plan: Plan, base: View | None, now: View, approved: Collection[int] = ()) -> Verdict:
    """What the law says of a plan, as the library is now.

    Args:
        plan: what a strategy wants.
        base: what it was made from; None where that is `now`.
        now: the library.
        approved: as law.verify.
    """
    if stale := _overtaken(plan, base, now):
        return Verdict(plan, (), stale)
    roots = _WRITES.get(plan.op, now.spec.writes)
    return law.verify(_current(plan, base, now), now.entry, roots, approved, same=is_repetition)


def _current(plan: Plan, base: View | None, now: View) -> Plan:
    """The plan without what it says of lines that left their place since it was made: theirs stands."""
    if base is None:
        return plan

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


def _overtaken(plan: Plan, base: View | None, now: View) -> tuple[Reason, ...]:
    """What the plan was made from and is no more: a line that was forgotten since, a record that changed."""
    if base is None:
        return ()
    if last_forget(base) != last_forget(now):
        return (Reason("FORGOTTEN", (), "lines were forgotten since, and its words may quote them"),)

    def data(view: View, doc_id: str) -> bytes | None:
        return view.document(doc_id).to_bytes() if doc_id in view else None

    changed = (put.doc_id for put in plan.records if data(base, put.doc_id) != data(now, put.doc_id))
    return tuple(Reason("STALE_RECORD", (), doc_id) for doc_id in changed)


def receipt_and_changes(
    done: Rendered, view: View, head: Receipt, notes: Sequence[str]
) -> tuple[Receipt, list[Change]]:
    """The receipt, and the files that change, that of the receipt last.

    Args:
        done: what was rendered.
        view: the library before.
        head: the receipt as far as it is known: number, op, who and when.
        notes: its notes, any text.
    """
    old = {doc_id: view.document(doc_id) if doc_id in view else None for doc_id in done.documents}
    changes = [
        Change(
            f"{doc_id}.md",
            before.to_bytes() if (before := old[doc_id]) else None,
            new.to_bytes() if new else None,
            Moves()
            if head.op in ("stamp", "undate")
            else Moves.between(before, new),  # signed where they stand
        )
        for doc_id, new in done.documents.items()
    ]
    sums = [(digest(change.old), digest(change.new)) for change in changes]
    receipt = replace(
        head,
        rows=tuple(done.rows),
        quoted=tuple(done.quoted),
        files=tuple(
            (done.names.get(doc_id, doc_id), done.sums.get(was, was), now)
            for doc_id, (was, now) in zip(done.documents, sums, strict=True)
        ),
        notes=tuple(one_line(clean_text(note)) for note in notes),
    )
    way = done.reverse_diffs
    if way is None:
        new, gone = done.documents, done.removed
        way = [row for doc_id in sorted(old) for row in reverse_diff(doc_id, old[doc_id], new[doc_id], gone)]
    data = format_receipt(receipt, way)
    return receipt, [*changes, Change(f"{receipt.id}.md", None, data)]


def violations(view: View, done: Rendered) -> list[Reason]:
    """The law over the documents that change."""
    before = [_line(place) for doc in done.documents if doc in view for place in view.document(doc).entries]
    after = [_line(place) for doc in done.documents.values() if doc for place in doc.entries]
    return law.conserved(before, after, done.added, done.removed)


def name_clashes(view: View, done: Rendered) -> list[Reason]:
    """New documents whose names some file systems take for that of another."""
    new = [doc_id for doc_id, document in done.documents.items() if document and doc_id not in view]
    if not new:
        return []
    names, counts = view.derived(by_id), Counter(map(fold, new))
    return [
        Reason("BAD_TARGET", (), f"{doc_id} is another's name")
        for doc_id in new
        if fold(doc_id) in names or counts[fold(doc_id)] > 1
    ]


def _line(place: Located) -> law.Line:
    return place.entry.seq, place.entry.line
