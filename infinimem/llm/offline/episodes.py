"""Episodes and facts by rules, in the words in which they were said, with day and speaker before them.

An episode is what tells most of its exchanges, a merge adds new sentences, facts are what it leaves out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from infinimem.grounding.claims import is_repetition, lasts
from infinimem.grounding.sentences import Said, sentences, split_speaker
from infinimem.llm.offline.describe import keywords, said_by, summary
from infinimem.llm.offline.extract import split
from infinimem.llm.offline.lexicon import content_terms, is_filler
from infinimem.llm.offline.salience import SHORTEST, Corpus, central
from infinimem.llm.offline.topics import day_of
from infinimem.model import Entry
from infinimem.terms import query_terms
from infinimem.terms import tokens as terms_of

SENTENCES = 6
"""Of an episode."""
ADDED = 2
"""Sentences that an exchange adds to one."""
TITLE = 3
"""Phrases of a title."""
TOPIC, TOPIC_KEYWORDS = 4, 12
"""Sentences and keywords of a topic; with 2 and 8 fewer of its turns are found by it."""
ENOUGH = 8
"""Telling words in common by which it is certain that two topics have to do with each other."""
SHARED = 2
"""Telling words that such a sentence has in common with the episode."""


_DAY = re.compile(r"(?=\b\d{4}-\d\d-\d\d )")
"""Before a day of `_dated`."""


class _Row(NamedTuple):
    """A sentence: of which turn, when and by whom it was said."""

    id: str
    day: str
    speaker: str
    text: str

    @property
    def entry(self) -> Entry:
        """What a fact would say of it."""
        return Entry(0, Said(self.speaker, self.text).line, "", self.day or None)


def episodes(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `episodes`: one, of all turns."""
    turns = variables["turns"]
    text = _dated(_telling(turns, SENTENCES))
    return {"episodes": [{"text": text, "from": [turn["id"] for turn in turns]}] if text else []}


def merge_episodes(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `merge_episodes`: yes where one who speaks in the episode tells something new of it."""
    old, turns = variables["episode"], variables["turns"]
    known = set(content_terms(old))
    new = [
        row
        for row in _telling(turns, ADDED)
        if not _holds(old, row)
        and (not row.speaker or f"{row.speaker}: " in old)
        and len(known.intersection(content_terms(row.text))) >= SHARED
    ]
    return {"should_merge": bool(new), "merged": f"{old} {_dated(new)}" if new else ""}


def episode(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `episode`: what tells most of a block, under the phrases that tell most of that."""
    turns = variables["turns"]
    rows = _telling(turns, SENTENCES)
    names = sorted({turn["speaker"] for turn in turns if turn.get("speaker")})
    phrases = Corpus([row.text for row in rows], names).phrases(range(len(rows)), TITLE)
    speakers = " and ".join(dict.fromkeys(row.speaker for row in rows if row.speaker))
    return {
        "title": ": ".join(filter(None, (speakers, ", ".join(phrases)))),
        "content": _dated(rows),
        "when": None,
    }


def facts(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `facts`: what was said, each piece that says something new."""
    order = {turn["id"]: at for at, turn in enumerate(variables["turns"])}
    found = list[tuple[Entry, str]]()
    for row in sorted(_rows(variables["turns"], split), key=lambda row: order[row.id]):
        if not any(is_repetition(row.entry, other) for other, _ in found):
            found.append((row.entry, row.id))
    return {"facts": [{"text": entry.text, "from": [turn]} for entry, turn in found]}


def refine(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `refine`: what was said that stands neither in the episode nor in a fact."""
    known = [Entry(0, fact["text"], "", fact.get("time")) for fact in variables["facts"]]
    found = list[dict[str, Any]]()
    for row in _rows(variables["turns"], split):
        if _holds(variables["episode"], row) or any(is_repetition(row.entry, other) for other in known):
            continue
        known.append(row.entry)
        found.append({"text": row.entry.text, "type": "USER_EVENT", "from": [row.id], "replaces": None})
    return {"facts": found}


def _rows(turns: Sequence[Mapping[str, Any]], cut: Callable[[str], Iterable[str]] = sentences) -> list[_Row]:
    """Pieces of turns that say something, no questions; those that tell most first."""
    names = sorted({turn["speaker"] for turn in turns if turn.get("speaker")})
    rows = [
        _Row(turn["id"], day_of(turn.get("time")), turn.get("speaker") or "", sentence)
        for turn in turns
        for sentence in (" ".join(piece.split()) for piece in cut(turn["text"]))
        if any(_tells(part, names) for part in sentences(sentence))
    ]
    rows = list({(row.text, row.day): row for row in reversed(rows)}.values())[::-1]
    return [rows[at] for at in central([row.text for row in rows], names)]


def _telling(turns: Sequence[Mapping[str, Any]], most: int) -> list[_Row]:
    """The sentences that tell most, in the order of turns."""
    order = {turn["id"]: at for at, turn in enumerate(turns)}
    return sorted(_rows(turns)[:most], key=lambda row: order[row.id])


def lines(turns: Sequence[Mapping[str, Any]], most: int) -> list[str]:
    """The sentences of turns that tell most, in their order, each with who says it."""
    return [Said(row.speaker, row.text).line for row in _telling(turns, most)]


def _tells(sentence: str, names: Sequence[str]) -> bool:
    """Whether it says something: no question, no thanks, no exclamation of a few words."""
    return not sentence.endswith("?") and len(sentence.split()) >= SHORTEST and not is_filler(sentence, names)


def _dated(rows: Sequence[_Row]) -> str:
    """Sentences with who says them, each day before the first of it."""
    told, day = list[str](), ""
    for row in rows:
        line = Said(row.speaker, row.text).line
        told.append(f"{row.day} {line}" if row.day and row.day != day else line)
        day = row.day
    return " ".join(told)


def _holds(episode: str, row: _Row) -> bool:
    """Whether an episode tells a sentence; one of what happened, under its own day."""
    days = [episode] if lasts(row.text) else _DAY.split(episode)
    return any(row.text in told for told in days if len(days) == 1 or told.startswith(row.day))


# ── topics, themes, and what a question needs of them ──────────────────────────────────────────


def topic(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `topic`; where nothing is told, the first words stand."""
    turns = variables["turns"]
    said = [said_by(turn) for turn in turns]
    told = lines(turns, TOPIC) or [summary(one) for one in said[:1]]
    return {"keywords": keywords(said, TOPIC_KEYWORDS), "summary": " ".join(told)}


def relate(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `relate`."""
    own, rows = _words_of(variables["topic"]), list[dict[str, Any]]()
    for other in variables["others"]:
        shared = len(own & _words_of(other))
        confidence = min(shared / ENOUGH, 1.0)
        rows.append(
            {"id": other["id"], "relation": "semantic" if shared else "unrelated", "confidence": confidence}
        )
    return {"relations": rows}


def _words_of(shown: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(content_terms(" ".join([shown.get("summary", ""), *shown.get("keywords", ())])))


def theme(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `theme`: who speaks, and the phrases that most facts share."""
    said = [split_speaker(fact["text"]) for fact in variables["facts"]]
    names = sorted({speaker for speaker, _ in said if speaker})
    corpus = Corpus([text for _, text in said], names)
    phrases = corpus.phrases(range(len(said)), TITLE)
    return {"summary": ": ".join(filter(None, (" and ".join(names), ", ".join(phrases))))}


def gate(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `gate`: each episode whose title has a word of the question that nothing before has."""
    known = (terms_of(fact["text"]) for fact in variables["facts"])
    left = set(query_terms(variables["question"])).difference(*known)
    chosen: list[str] = []
    for episode in variables["episodes"]:
        if new := left.intersection(terms_of(episode["title"])):
            left -= new
            chosen.append(episode["id"])
    return {"sufficient": not left, "episodes": chosen, "messages": chosen if left else []}


def guess(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `guess`: rules know no probabilities, and guess nothing."""
    return {"answer": ""}
