"""Turns about which no answer of a model was of use, and why: they are asked about again, not for ever.

A row of a strategy's list names turns and what became of the last try; where it is lost tries count anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import quote, unquote

from infinimem.markdown.signature import format_seqs, parse_seqs
from infinimem.model import AGAIN, KINDS, TRIES, Unanswered
from infinimem.spec import StrategySpec
from infinimem.store.files import Files
from infinimem.store.state import append_log

PATH = ".infinimem/unanswered"
LISTED = 20
"""Seqs that a message names."""
_END = ";"  # closes a row, so that a torn one is told from a whole one


def read(files: Files, spec: StrategySpec) -> Mapping[int, Unanswered]:
    """The turns of a strategy's list, by seq."""
    return append_log.value(files, f"{PATH}-{spec.name}", dict[int, Unanswered], _added)


def _added(before: dict[int, Unanswered], rows: list[bytes]) -> dict[int, Unanswered]:
    found = dict(before)
    for row in rows:
        with suppress(ValueError):
            seqs, kind, model = row.decode("ascii", "replace").split(" ")
            if not model.endswith(_END):
                continue
            model = unquote(model.removesuffix(_END))
            for seq in parse_seqs(seqs):
                last = found.pop(seq, None)
                tries = last.tries + 1 if last and last.model == model else 1
                if kind != AGAIN:
                    found[seq] = Unanswered(kind, model, tries)
    return found


def note(files: Files, spec: StrategySpec, kinds: Mapping[int, str], model: str = "") -> None:
    """Add to the list, under the lock, what became of the try of a model, by seq."""
    by_kind: dict[str, list[int]] = {}
    for seq, kind in sorted(kinds.items()):
        by_kind.setdefault(kind, []).append(seq)
    rows = (f"{format_seqs(seqs)} {kind} {quote(model, safe='')}{_END}\n" for kind, seqs in by_kind.items())
    if data := "".join(rows).encode():
        files.append(f"{PATH}-{spec.name}", data)


def newly(before: Mapping[int, Unanswered], now: Mapping[int, Unanswered]) -> dict[int, Unanswered]:
    """The turns about which a call got no answer of use, by what was so before it and is now."""
    return {seq: one for seq, one in now.items() if before.get(seq) != one}


def words(failed: Mapping[int, Unanswered]) -> str:
    """What became of turns about which there was no answer of use, and what can be done."""
    kinds = Counter(one.kind for one in failed.values())
    told = [(KINDS.get(kind, kind), number) for kind, number in kinds.items()]
    why = ", ".join(f"{kind}: {number}" if len(told) > 1 else kind for kind, number in told)
    again = "the model is asked again at the next add, import or consolidate"
    if over := [seq for seq, one in failed.items() if one.tries >= TRIES]:
        again = (
            f"about {format_seqs(over[:LISTED])}{'…' * (len(over) > LISTED)} it was asked {TRIES} times and "
            "is not any more: consolidate --retry asks again, --leave SEQ leaves a turn as it was said"
        )
    turns = f"{len(failed)} turn{'s' * (len(failed) > 1)}"
    return f"no usable answer about {turns} ({why}); what was said is recorded and found; {again}"
