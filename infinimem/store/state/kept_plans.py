"""Plans that a person kept to look at: `consolidate --dry-run --keep`.

.infinimem/plans/0001.json   the plan, where its lines stood, and checksums that tell whether one was edited
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from infinimem.model import Derived, Move, NewEntry, Plan, Put, Reason, Withheld
from infinimem.store.files import MAX_OWNED, Files
from infinimem.store.state.withheld import marks
from infinimem.store.view import View, whole

FOLDER = ".infinimem/plans"


@dataclass(frozen=True)
class Kept:
    """A plan that waits.

    Args:
        number: it is called by.
        plan: what a strategy wanted.
        time, strategy, model: when and by whom it was made.
        stood: the document of each line that it moves, when it was made.
        marks: checksums of the lines that it moves and of those that would survive others (withheld.mark).
    """

    number: int
    plan: Plan
    time: str
    strategy: str
    model: str
    stood: Mapping[int, str]
    marks: Mapping[int, str]


def keep(files: Files, plan: Plan, view: View, time: str, strategy: str, model: str) -> int:
    """Write a plan down, durably. The caller holds the lock.

    Args:
        plan: made from `view`.
        time, strategy, model: of its making.

    Returns:
        Its number.
    """
    number = 1 + max((whole(name.removesuffix(".json")) or 0 for name in files.names(FOLDER)), default=0)
    moved = [move.seq for move in plan.moves]
    stood = {seq: place.doc_id for seq in moved if (place := view.entry(seq))}
    checked = marks({*moved, *(move.by for move in plan.moves)}, view.entry)
    write(files, Kept(number, replace(plan, rejected=()), time, strategy, model, stood, checked))
    return number


def write(files: Files, kept: Kept) -> None:
    """Put a plan in the place of what has its number; one that moves and adds nothing goes."""
    path = f"{FOLDER}/{kept.number:04d}.json"
    if kept.plan.moves or kept.plan.adds:
        files.replace(path, json.dumps(asdict(kept), indent=1).encode())
    else:
        files.remove(path)


def plans(files: Files) -> tuple[Kept, ...]:
    """What was kept, oldest first; a file that cannot be read is passed over."""
    found: list[Kept] = []
    for name in files.names(FOLDER):
        number = whole(name.removesuffix(".json"))
        try:
            data = json.loads(files.read(f"{FOLDER}/{name}", MAX_OWNED) or b"")
            if number:
                found.append(
                    Kept(
                        number,
                        _plan(data["plan"]),
                        str(data["time"]),
                        str(data["strategy"]),
                        str(data["model"]),
                        {int(seq): str(doc_id) for seq, doc_id in data["stood"].items()},
                        {int(seq): str(text) for seq, text in data["marks"].items()},
                    )
                )
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue
    return tuple(found)


def without(kept: Kept, seqs: Collection[int]) -> Kept:
    """The plan without what it says of these lines, nor summaries that would tell of them."""
    moves = tuple(move for move in kept.plan.moves if move.seq not in seqs)
    adds = tuple(add for add in kept.plan.adds if not set(add.origin) & set(seqs))
    partly = {move.to for move in kept.plan.moves if move.seq in seqs}
    partly |= {add.to for add in kept.plan.adds if add not in adds}
    derived = tuple(item for item in kept.plan.derived if item.doc_id not in partly)
    return replace(kept, plan=replace(kept.plan, moves=moves, adds=adds, derived=derived))


def _add(origin: list[int], replaces: list[int] | None = None, time: None = None, **rest: Any) -> NewEntry:
    """A new line. One that stood for others, in plans of earlier releases, is added beside them."""
    return NewEntry(origin=tuple(dict.fromkeys((*origin, *(replaces or ())))), **rest)


def _plan(data: Mapping[str, Any]) -> Plan:
    return Plan(
        op=str(data["op"]),
        adds=tuple(_add(**row) for row in data["adds"]),
        moves=tuple(Move(**row) for row in data["moves"]),
        derived=tuple(Derived(**{**row, "origin": tuple(row["origin"])}) for row in data["derived"]),
        records=tuple(Put(**{**row, "origin": tuple(row["origin"])}) for row in data["records"]),
        empty=tuple(data["empty"]),
        notes=tuple(data["notes"]),
        withheld=tuple(
            Withheld(Move(**row["move"]), Reason(**{**row["reason"], "seqs": tuple(row["reason"]["seqs"])}))
            for row in data["withheld"]
        ),
    )
