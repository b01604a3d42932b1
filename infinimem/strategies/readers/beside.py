"""What is shown beside what was found: what the user asked for once and for all, and what was superseded.

In: the pieces that a reader found. Out: these, and lines that few words of a question lead to but that change
its answer. Both have a small share of the budget; no model is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from infinimem.grounding.asked import about_past
from infinimem.model import Retrieved
from infinimem.operations.provenance import replaced_by
from infinimem.retrieval.searcher import searcher
from infinimem.store.spec import INSTRUCTIONS, STANDING, TOPICS
from infinimem.store.view import View, archive_of
from infinimem.strategies.readers.budget import pack

STANDING_TOKENS = 200
"""Of instructions, and as much of preferences, at most; of a small budget a quarter and an eighth."""
SUPERSEDED_TOKENS = 200
FIRST = 5
"""Pieces that stay before the user's wishes: who takes few of a ranking takes what was asked for."""


def with_beside(view: View, question: str, items: Sequence[Retrieved], budget: int) -> list[Retrieved]:
    """The pieces, best first, with what belongs beside them, within a budget of tokens."""
    share = budget // 8
    past = superseded(view, items, min(SUPERSEDED_TOKENS, share)) if about_past(question) else {}
    found = [
        piece for item in items for piece in (item, *(old for seq in item.seqs for old in past.get(seq, ())))
    ]
    wishes = standing(view, question, budget)
    return pack([*found[:FIRST], *wishes, *found[FIRST:]], budget) if wishes or past else list(items)


def standing(view: View, question: str, budget: int) -> list[Retrieved]:
    """What the user asked for once and for all, in a part of the budget: the newest instructions, and the
    preferences that share a word with the question, the nearest first."""
    if STANDING not in view or view.group(STANDING) != "live":  # another strategy's
        return []
    search, document = searcher(view), view.document(STANDING)
    lines = search.order(question, search.entries_at(STANDING, 1, len(document.lines)))
    always = [line for line in lines if line.headings[-1:] == (INSTRUCTIONS,)]
    others = (line for line in lines if line not in always and line.score)
    newest = sorted(always, key=lambda line: (line.time or "", line.seqs), reverse=True)
    return [
        *pack(newest, min(STANDING_TOKENS, budget // 4)),
        *pack(others, min(STANDING_TOKENS, budget // 8)),
    ]


def superseded(view: View, items: Iterable[Retrieved], room: int) -> dict[int, list[Retrieved]]:
    """The archived lines that lines of these pieces replaced, by the seq of the one that replaced them."""
    shown = {seq: item.doc_id for item in items for seq in item.seqs if item.doc_id.startswith(TOPICS)}
    archives = (archive_of(doc_id) for doc_id in dict.fromkeys(shown.values()))
    places = (place for doc_id in archives if doc_id in view for place in view.document(doc_id).entries)
    gone = (place for place in places if replaced_by(place.headings) in shown)
    lines = (searcher(view).entries_at(old.doc_id, old.start_line, old.end_line)[0] for old in gone)
    found: dict[int, list[Retrieved]] = {}
    for line in pack(lines, room):
        found.setdefault(replaced_by(line.headings), []).append(line)
    return found
