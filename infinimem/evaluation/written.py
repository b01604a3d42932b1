"""What became of what was said, as counts that need no judge: turns that hold the evidence and that no entry
cites, entries that only repeat a turn, discards that came back, times that were left in words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from infinimem.evaluation.model import Case
from infinimem.evaluation.table import Table, percent
from infinimem.evaluation.tally import Tallies, Tally
from infinimem.grounding.when import day_of, mentions
from infinimem.memory import Memory
from infinimem.model import CURRENT, Entry, Receipt
from infinimem.store.spec import ARCHIVE, TOPICS

GOLD, UNCITED = "gold", "uncited"
_COUNTED = ("entries", "verbatim", "discarded", "undone", "relative", "dated", "unsettled")
_ABSOLUTE = frozenset("0123456789")


def written_of(memory: Memory, case: Case) -> dict[str, Any]:
    """Counts of a library that was just made from a case.

    Returns:
        gold: different turns that hold the evidence of its questions; uncited: those of them, by id, that
        nothing cites. entries: lines of CURRENT and topics that were drawn from turns; verbatim: those that
        repeat their turn's words. discarded: lines that were archived; undone: those of them that stand in
        CURRENT or a topic again. relative: entries whose words name a time by its distance from the day on
        which they were said; dated: those that have `when`; unsettled: those without it whose words can mean
        more than one.
    """
    view = memory.view
    turns = {place.seq: place.entry.fields.get("turn") for place in view.entries("evidence")}
    gold = frozenset(turn for question in case.questions for turn in question.turns)
    cited = {turns.get(seq) for seq in view.cited}
    live = [place for place in view.entries() if place.doc_id == CURRENT or place.doc_id.startswith(TOPICS)]
    discarded = _discarded(memory.receipts())
    drawn = [place.entry for place in live if place.entry.origin]
    return {
        GOLD: len(gold),
        UNCITED: sorted(gold - cited),
        "entries": len(drawn),
        "verbatim": sum(entry.fields.get("by") != "model" for entry in drawn),
        "discarded": len(discarded),
        "undone": sum(place.seq in discarded for place in live),
        **Counter(label for entry in drawn for label in _times(entry)),
    }


def _discarded(receipts: Iterable[Receipt]) -> frozenset[int]:
    return frozenset(row.seq for one in receipts for row in one.rows if row.now.startswith(ARCHIVE))


def _times(entry: Entry) -> list[str]:
    """What an entry counts as: nothing where its words name no day but its own, or name it whole."""
    said = day_of(entry.time)
    found = [] if said is None else mentions(entry.text, said)
    found = [one for one in found if one.spans != ((said, said),) and not _ABSOLUTE & set(one.words)]
    if not found:
        return []
    if "when" in entry.fields:
        return ["relative", "dated"]
    is_settled = len({one.spans for one in found}) == 1 and len(found[0].spans) == 1
    return ["relative"] if is_settled else ["relative", "unsettled"]


def written_figures(tally: Tally) -> dict[str, Any]:
    """The counts of all cases taken together; none of a method that makes no library.

    Returns:
        As `written_of`, and `unshown`: gold turns that nothing cites and that no question was shown.
    """
    made: list[Mapping[str, Any]] = [item.written for item in tally.ingested if item.written]
    if not made:
        return {}
    found = {name: sum(one.get(name, 0) for one in made) for name in (GOLD, *_COUNTED)}
    uncited = sum(len(one[UNCITED]) for one in made)
    return found | {UNCITED: uncited, "unshown": sum(map(len, tally.unseen.values()))}


def written_table(tallies: Tallies) -> Table:
    """A row for each method that makes a library."""
    rows = []
    for tally in tallies.methods:
        if found := written_figures(tally):
            gold = found[GOLD]
            shares = (percent(1 - found[name] / gold if gold else None) for name in (UNCITED, "unshown"))
            named, dated, unsettled = (found[name] for name in ("relative", "dated", "unsettled"))
            counts = (found["entries"], found["verbatim"], found["discarded"], found["undone"])
            left = (named, dated, unsettled, named - dated - unsettled)
            rows.append([tally.name, str(gold), *shares, *map(str, (*counts, *left))])
    columns = [
        *("method", "gold turns", "cited, %", "cited or shown, %", "entries", "word for word", "discarded"),
        *("came back", "relative times", "with when", "not settled", "left out"),
    ]
    note = (
        "Gold turns hold the evidence of the questions that were asked. Relative times: entries whose words "
        "name another day than theirs, without its date; not settled: their words can mean several."
    )
    return Table("What was written", columns, rows, note)
