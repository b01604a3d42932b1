"""A library on disk that All-Mem keeps, with records as its plans put them, but made by hand."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from infinimem.memory import Memory, open_memory
from infinimem.model import Plan, Put, Receipt, Turn
from infinimem.store.view import Applied, Outcome
from infinimem.strategies.allmem.consolidate import BUFFER, buffer_text
from infinimem.strategies.allmem.spec import SPEC as ALLMEM
from infinimem.strategies.allmem.spec import UNIT
from infinimem.strategies.records.record import Link, Quote, Record, Ref, number_of, record_id, render

TALK = (
    Turn("I live in Lisbon.", speaker="Nora", time="2025-03-03T10:00:00", session="s1", turn="D1:1"),
    Turn("I am allergic to pistachios.", speaker="Nora", time="2025-03-03T10:01:00", session="s1"),
    Turn("I moved to Porto.", speaker="Nora", time="2025-06-01", session="s2", turn="D2:1"),
    Turn("My dog is called Rex.\nHe is three.", role="assistant", time="2025-06-01", session="s2"),
)
LISBON, NUTS, PORTO, REX = range(1, 5)
"""Seqs of the turns."""
AUDIT = "allmem/audit/run-0001"
SUMMARIES = {LISBON: "home is Lisbon", NUTS: "pistachios are dangerous", PORTO: "home is Porto", REX: "a dog"}


def doc(seq: int, suffix: int = 0, archived: bool = False) -> str:
    return (ALLMEM.archived if archived else UNIT.folder) + record_id("u", seq, suffix)


def unit(
    seq: int, suffix: int = 0, *, archived: bool = False, sources: tuple[str, ...] = (), summary: str = ""
) -> Record:
    turn = TALK[seq - 1]
    return Record(
        record_id("u", seq, suffix),
        ALLMEM,
        summary or SUMMARIES[seq],
        ("home", "life"),
        turn.time,
        None if sources else turn.session,
        () if sources else (Ref(seq),),
        sources,
        visible=not archived,
    )


def quoted(*seqs: int) -> list[Quote]:
    return [
        Quote(Ref(s), TALK[s - 1].speaker or "assistant", TALK[s - 1].time, TALK[s - 1].text) for s in seqs
    ]


def put(one: Record, *links: Link, quotes: Iterable[Quote] | None = None, new: bool = False) -> Put:
    said = quoted(number_of(one.id)[0]) if quotes is None else list(quotes)
    return Put(one.doc_id, render(replace(one, links=links), said), (number_of(one.id)[0],) if new else ())


def buffer(*seqs: int) -> Put:
    return Put(
        BUFFER,
        buffer_text({record_id("u", s): [record_id("u", t) for t in seqs if t < s] for s in seqs}),
    )


def applied(memory: Memory, *records: Put, op: str = "consolidate", notes: tuple[str, ...] = ()) -> Receipt:
    outcome = outcome_of(memory, *records, op=op, notes=notes)
    assert isinstance(outcome, Applied), outcome
    assert outcome.receipt
    return outcome.receipt


def outcome_of(memory: Memory, *records: Put, op: str = "consolidate", **rest: object) -> Outcome:
    return memory.library.apply(Plan(op, records=records, **rest), base=memory.view, strategy="allmem")  # type: ignore[arg-type]


def written(root: Path) -> Memory:
    """Turns 1-4, and by receipt 1 a unit for each, linked to the one before, all in the buffer."""
    memory = open_memory(root, model="offline", strategy="allmem", create=True)
    memory.library.record(TALK)
    units = [unit(seq) for seq in range(1, 5)]
    links = [(Link("temporal", record_id("u", seq - 1)),) if seq > 1 else () for seq in range(1, 5)]
    puts = [put(one, *to, new=True) for one, to in zip(units, links, strict=True)]
    applied(memory, *puts, buffer(1, 2, 3, 4), op="write")
    return memory


def consolidated(root: Path) -> Memory:
    """And by receipt 2 the unit of Porto replaced that of Lisbon, a run that is audited."""
    memory = written(root)
    row = json.dumps({"operator": "update", "targets": [record_id("u", PORTO), record_id("u", LISBON)]})
    applied(
        memory,
        put(unit(PORTO), Link("temporal", record_id("u", NUTS)), Link("version", record_id("u", LISBON))),
        Put(doc(LISBON), None),
        put(unit(LISBON, archived=True)),
        buffer(),
        Put(AUDIT, f"---\nid: {AUDIT}\nkind: audit\n---\n# Run 1\n\n```json\n{row}\n```\n"),
    )
    return memory


def tree(root: Path, *folders: str) -> dict[str, bytes]:
    """The bytes of the files below some folders."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for folder in folders or ("allmem", "evidence", "topics", "archive")
        for path in sorted((root / folder).rglob("*.md"))
    }
