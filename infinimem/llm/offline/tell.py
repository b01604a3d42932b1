"""What turns tell, in their own words: descriptors, topics, episodes, facts and themes.

The sentences that hold most of what was said, with day and speaker before them, and the commonest words.
Nothing is claimed: not that one record replaces, repeats or explains another, nor that two belong together.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from infinimem import tokens
from infinimem.grounding.claims import is_repetition, unsupported
from infinimem.grounding.sentences import Said, sentences, split_speaker
from infinimem.grounding.when import day_of, settled
from infinimem.llm.offline.keep import statements
from infinimem.llm.offline.words import (
    CONTINUES,
    REPLIES,
    content_terms,
    content_words,
    fact_text,
    short_names,
)
from infinimem.model import Entry
from infinimem.terms import STOP_WORDS, fold, query_terms
from infinimem.terms import tokens as terms_of

Rows = Sequence[Mapping[str, Any]]
Answer = dict[str, Any]

WORDS, CHARACTERS = 60, 600
"""Of a summary."""
GAP = " …"
"""Ends a summary that leaves something out: without it, a summary holds all that was said."""
KEYWORDS, MERGED_KEYWORDS, TOPIC_KEYWORDS, TITLE_WORDS = 5, 8, 12, 3
KEYWORD = 60
"""Characters of a keyword."""
EPISODE, TOPIC = 6, 4
"""Sentences of an episode and of a topic."""
_REPLIES = re.compile(r"\b(?:you|your|yours|thanks|thank|hope|glad)\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W_](?:[\w'’&./-]*\w)?")
_CALLED = re.compile(
    r"(?:\A|(?<=[,.!?;]))\s*(?:(?i:hey|hi|hello|oh|thanks|wow) )?([A-Z][\w'’]+)\s*(?=[,.!?;]|\Z)"
)
"""Who is called by name is mostly not what is talked about: "Thanks, Ann!" """
_ANNOUNCED = re.compile(
    r"\W*(?:(?:oh|so|and|but|well|okay|ok|hey)\W+)?(?:by the way|btw|anyways?|on an?(?:other| different) note"
    r"|changing (?:the )?(?:subject|topics?)|speaking of|quick question|another (?:thing|question))\b",
    re.IGNORECASE,
)


def _claiming_nothing(*names: str) -> Callable[[Mapping[str, Any]], Answer]:
    """A rule that answers a task with empty lists."""
    return lambda variables: {name: [] for name in names}


diagnose = _claiming_nothing("split_tasks", "merge_tasks", "update_tasks")
relate = _claiming_nothing("relations")
compare = _claiming_nothing("superseded")


def merge_episodes(variables: Mapping[str, Any]) -> Answer:
    """Answer the task `merge_episodes`: no."""
    return {"should_merge": False, "merged": ""}


def guess(variables: Mapping[str, Any]) -> Answer:
    """Answer the task `guess`: rules know no probabilities."""
    return {"answer": ""}


# ── the sentences and words that tell most ──────────────────────────────────────────────────────


class Stated(NamedTuple):
    """What was said: of which turn, when and by whom."""

    id: str
    day: str
    said: Said

    @property
    def entry(self) -> Entry:
        """What a fact would say of it."""
        return Entry(0, self.said.line, "", self.day or None)


def central(said: Sequence[Said]) -> list[int]:
    """In the order of how much of the whole each one says; what points or replies says less."""
    terms = [set(content_terms(fact_text(one.text))) for one in said]
    counts = Counter(term for own in terms for term in own)

    def share(at: int) -> float:
        whole = sum(sorted(math.log(1 + counts[term]) for term in terms[at]))
        less = (0.4 if _REPLIES.search(said[at].text) else 1) * (0.6 if CONTINUES.match(said[at].text) else 1)
        return float(round(whole * less / (6 + len(terms[at])) ** 0.7, 9))

    return sorted(range(len(said)), key=lambda at: (-share(at), at))


def summary(facts: Rows, limit: int) -> str:
    """One or two whole sentences of some facts, those that tell most, within so many tokens; an AI's only
    where people stated nothing."""
    rows = (
        Said(fact.get("speaker") or "", " ".join(sentence.split()))
        for fact in [fact for fact in facts if fact.get("source") != "AI"] or facts
        for sentence in sentences(fact_text(fact["text"]))
        if sentence.strip() and not sentence.endswith("?")
    )
    said = list(dict.fromkeys(rows))
    chosen: list[int] = []
    for at in central(said)[:10]:
        text = _prose([said[one] for one in sorted({*chosen, at})])
        if len(chosen) < 2 and len(text.split()) <= WORDS and tokens.count(text) <= limit:
            chosen.append(at)
    return _prose([said[at] for at in sorted(chosen)])


def _prose(said: Sequence[Said]) -> str:
    """Sentences one after the other, each with an end; who says them only where it is another than before."""
    speakers = ["", *(one.speaker for one in said)]
    lines = (one.text if one.speaker == who else one.line for one, who in zip(said, speakers, strict=False))
    return " ".join(line if line.endswith((".", "!", "?", "…")) else f"{line}." for line in lines)


def _rows(turns: Rows, *, whole: bool = False) -> list[Stated]:
    """What turns state, in their order: sentences; if `whole`, short turns as they are, parts of others."""
    rows: list[Stated] = []
    for turn, parts in groupby(statements(turns), key=itemgetter(0)):
        text = " ".join(turn["text"].split())
        short = len(text.split()) <= WORDS and len(text) <= CHARACTERS
        day, speaker = str(day_of(turn.get("time")) or ""), turn.get("speaker") or ""
        for _, part, _ in parts:
            pieces = ([text] if short else [part]) if whole else sentences(part)
            rows += [Stated(turn["id"], day, Said(speaker, piece)) for piece in pieces]
    return list(dict.fromkeys(rows))


def _telling(turns: Rows, most: int) -> list[Stated]:
    """The sentences that tell most, in the order of turns."""
    rows = _rows(turns)
    return [rows[at] for at in sorted(central([row.said for row in rows])[:most])]


def _dated(rows: Sequence[Stated]) -> str:
    """Sentences with who says them, each day before the first of it."""
    days = ["", *(row.day for row in rows)]
    return " ".join(
        f"{row.day} {row.said.line}" if row.day and row.day != day else row.said.line
        for row, day in zip(rows, days, strict=False)
    )


def keywords(said: Sequence[Said], limit: int = KEYWORDS) -> list[str]:
    """Who speaks, then names and the commonest phrases that tell something, then whatever words there are."""
    speakers = sorted({item.speaker for item in said if item.speaker})
    texts = [fact_text(item.text[:10_000]) for item in said]
    called = {name for text in texts for name in _CALLED.findall(text)}
    words = [word for text in texts for word in content_words(text)]
    counts = Counter(word.term for word in words)
    words.sort(key=lambda one: (one.surface in called, not one.named, -counts[one.term] * (0.5 + one.noun)))
    phrases = (f"{one.before} {one.surface}".strip() if one.noun == 1 else one.surface for one in words)
    rest = sorted(
        {found for text in texts for found in _WORD.findall(text)}, key=lambda word: (-len(word), word)
    )
    used, chosen = {*short_names(speakers), *STOP_WORDS}, [*speakers]
    for phrase in (*phrases, *rest):
        parts = fold(phrase).split()
        if used.isdisjoint(parts) and len(phrase) <= KEYWORD:
            chosen.append(phrase)
            used.update(parts)
    return chosen[:limit]


def _named(said: Sequence[Said]) -> str:
    """Who speaks, and the commonest words."""
    speakers = sorted({item.speaker for item in said if item.speaker})
    words = keywords(said, len(speakers) + TITLE_WORDS)[len(speakers) :]
    return ": ".join(filter(None, (" and ".join(speakers), ", ".join(words))))


# ── units ───────────────────────────────────────────────────────────────────────────────────────


def _said(unit: Mapping[str, Any]) -> Said:
    """The words of a turn or unit, white space folded."""
    return Said(*(" ".join((unit.get(key) or "").split()) for key in ("speaker", "text")))


def beginning(said: Said) -> str:
    """Some sixty words of a text, verbatim: all of it, its first sentences, or as much of the first."""
    if not said.text or (len(said.line.split()) <= WORDS and len(said.line) <= CHARACTERS):
        return said.line if said.text else said.speaker
    room = max(0, CHARACTERS - len(GAP) - len(said.line) + len(said.text))
    head = " ".join(said.text[:room].split(" ")[: max(0, WORDS - 1 - len(said.speaker.split()))])
    *whole, last = sentences(head) if head.strip() else [""]
    head = head[: head.rindex(last)].rstrip() if whole else head
    while " " in head and unsupported(said._replace(text=head).line, [said.line]):
        head = head.rpartition(" ")[0]
    return said._replace(text=head + GAP).line


def describe(variables: Mapping[str, Any]) -> Answer:
    """Answer the task `describe`; the turns before explain nothing to a rule."""
    cards = []
    for turn in variables["turns"]:
        told = {"summary": beginning(_said(turn)), "keywords": keywords([_said(turn)])}
        cards.append({"id": turn["id"], **told, "when": settled(_said(turn).text, day_of(turn.get("time")))})
    return {"cards": cards}


def split_unit(variables: Mapping[str, Any]) -> Answer:
    """Answer the task `split_unit`: the text stays whole."""
    unit, words = variables["unit"], keywords([_said(variables["unit"])])
    told = {
        "segment_summary": beginning(_said(unit)),
        "segment_keywords": words,
        "topic_label": ", ".join(words[:2]),
    }
    return {
        "do_split": False,
        "segments": [{"segment_text": unit.get("text") or "", **told}],
        "split_rationale": "",
    }


def merge_units(variables: Mapping[str, Any]) -> Answer:
    """Answer the task `merge_units`: the newest speaks for all, the others' wordings are salient points."""
    newest, *others = dict.fromkeys(map(_said, reversed(variables["units"])))
    points = [beginning(item) for item in reversed(others)]
    words = keywords([newest, *others], MERGED_KEYWORDS)
    return {"summary": beginning(newest), "keywords": words, "salient_points": points}


def update_unit(variables: Mapping[str, Any]) -> Answer:
    """Answer the task `update_unit`: the current unit in its own words, the other one as outdated."""
    current, old = _said(variables["current"]), _said(variables["superseded"])
    told = {"updated_summary": beginning(current), "updated_keywords": keywords([current])}
    return {**told, "deprecations": [beginning(old)] if old.text else [], "alignment_note": ""}


# ── episodes, facts, topics and themes ──────────────────────────────────────────────────────────


def episodes(variables: Mapping[str, Any]) -> Answer:
    """Answer the task `episodes`: one, of all turns."""
    text = _dated(_telling(variables["turns"], EPISODE))
    return {"episodes": [{"text": text, "from": [turn["id"] for turn in variables["turns"]]}] if text else []}


def episode(variables: Mapping[str, Any]) -> Answer:
    """Answer the task `episode`: what tells most of a block, under its commonest words."""
    rows = _telling(variables["turns"], EPISODE)
    return {"title": _named([row.said for row in rows]), "content": _dated(rows), "when": None}


def facts(variables: Mapping[str, Any]) -> Answer:
    """Answer the task `facts`: what was said, each piece that says something new."""
    rows = _new(_rows(variables["turns"], whole=True), [])
    return {"facts": [{"text": row.said.line, "from": [row.id]} for row in rows]}


def refine(variables: Mapping[str, Any]) -> Answer:
    """Answer the task `refine`: what was said that stands neither in the episode nor in a fact."""
    known = [Entry(0, fact["text"], "", fact.get("time")) for fact in variables["facts"]]
    told = [row for row in _rows(variables["turns"], whole=True) if row.said.text not in variables["episode"]]
    rest = {"type": "USER_EVENT", "replaces": None}
    return {"facts": [{"text": row.said.line, "from": [row.id], **rest} for row in _new(told, known)]}


def _new(rows: Iterable[Stated], known: Sequence[Entry]) -> list[Stated]:
    """The rows that repeat neither each other nor what is known."""
    new: list[Stated] = []
    for row in rows:
        if not any(is_repetition(row.entry, other) for other in (*known, *(one.entry for one in new))):
            new.append(row)
    return new


def topic(variables: Mapping[str, Any]) -> Answer:
    """Answer the task `topic`; where nothing is told, the first words stand."""
    said = [_said(turn) for turn in variables["turns"]]
    told = [row.said.line for row in _telling(variables["turns"], TOPIC)] or [
        beginning(one) for one in said[:1]
    ]
    return {"keywords": keywords(said, TOPIC_KEYWORDS), "summary": " ".join(told)}


def theme(variables: Mapping[str, Any]) -> Answer:
    """Answer the task `theme`: who speaks, and the commonest words."""
    return {"summary": _named([Said(*split_speaker(fact["text"])) for fact in variables["facts"]])}


def gate(variables: Mapping[str, Any]) -> Answer:
    """Answer the task `gate`: each episode whose title has a word of the question that nothing before has."""
    left = set(query_terms(variables["question"])).difference(
        *(terms_of(row["text"]) for row in variables["facts"])
    )
    chosen: list[str] = []
    for shown in variables["episodes"]:
        if new := left.intersection(terms_of(shown["title"])):
            left -= new
            chosen.append(shown["id"])
    return {"sufficient": not left, "episodes": chosen, "messages": chosen if left else []}


def segment(variables: Mapping[str, Any]) -> Answer:
    """Answer the task `segment`: a pause, an announcement, or no word in common; what replies begins none."""
    turns: Rows = variables["turns"]
    paused = {pause["before"] for pause in variables["pauses"]}
    names = short_names(turn["speaker"] for turn in turns if turn.get("speaker"))
    words = [set(content_terms(turn["text"])) - names for turn in turns]
    side, begin, cuts = 3 if variables["strict"] else 1, 0, list[dict[str, str]]()
    for at in range(1, len(turns)):
        text = turns[at]["text"]
        shared = set[str]().union(*words[max(begin, at - side) : at]) & set[str]().union(
            *words[at : at + side]
        )
        replies = not words[at] or REPLIES.match(text) or "?" in turns[at - 1]["text"]
        if turns[at]["id"] in paused or _ANNOUNCED.match(text) or not (shared or replies):
            reason = "another subject" if turns[at]["id"] not in paused else "pause"
            cuts.append({"before": turns[at]["id"], "reason": reason})
            begin = at
    return {"cuts": cuts}
