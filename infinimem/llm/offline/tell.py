"""What turns tell, in their own words: descriptors, topics, episodes, facts, themes, and answers.

The sentences that hold most of what was said, with day and speaker before them, and the commonest words.
Nothing is claimed: not that one record replaces, repeats or explains another, nor that two belong together.
A question is answered by the lines that share most with it, quoted; and that is said.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import partial
from heapq import nlargest
from typing import Any, NamedTuple

from infinimem import tokens
from infinimem.grounding.sentences import (
    common_terms,
    day_of,
    is_repetition,
    sentences,
    settled,
    split_speaker,
)
from infinimem.index.questions import GAIN, asked_of, kin
from infinimem.llm.offline.keep import ENGLISH, content_terms, content_words, fact_text, statements
from infinimem.model import Entry
from infinimem.spec import folders
from infinimem.terms import MONTHS, fold, query_terms
from infinimem.terms import tokens as terms_of

Rows = Sequence[Mapping[str, Any]]
Answer = dict[str, Any]

WORDS, CHARACTERS = 60, 600
"""Of a summary."""
GAP = " …"
KEYWORDS, KEYWORD, TITLE = 8, 60, 3
"""Keywords of a record, characters of one, and those of a title."""
EPISODE, TOPIC = 6, 4
"""Sentences of an episode and of a topic."""


def _always(**reply: Any) -> Callable[[Mapping[str, Any]], Answer]:
    return lambda variables: deepcopy(reply)


diagnose = _always(split_tasks=[], merge_tasks=[], update_tasks=[])
relate = _always(relations=[])
verify_topic = _always(unsupported=[])
time_cues = _always(turns=[])
compare = _always(superseded=[])
merge_episodes = _always(should_merge=False, merged="")
guess = _always(answer="")
"""Rules know no probabilities."""
seek = _always(done=True, calls=[], relevant_snippets=[], relevant_docs=[])
"""Nothing is named, so that the best partitions are read."""


class Stated(NamedTuple):
    """What was said: of which turn, on which day and by whom, as far as that is told."""

    id: str
    day: str
    speaker: str
    text: str

    @property
    def line(self) -> str:
        """The text after its speaker's name."""
        return f"{self.speaker}: {self.text}" if self.speaker else self.text

    @property
    def entry(self) -> Entry:
        """What a fact would say of it."""
        return Entry(0, self.line, "", self.day or None)


def _said(turn: Mapping[str, Any]) -> Stated:
    speaker, text = (" ".join((turn.get(key) or "").split()) for key in ("speaker", "text"))
    return Stated(turn.get("id") or "", str(day_of(turn.get("time")) or ""), speaker, text)


def _stated(turns: Rows) -> Iterator[tuple[Stated, str]]:
    said = {id(turn): _said(turn) for turn in turns}  # once: a long one has many
    return ((said[id(turn)], part) for turn, part, _ in statements(turns))


# ── the sentences and words that tell most ──────────────────────────────────────────────────────


def central(rows: Sequence[Stated]) -> list[int]:
    """In the order of how much of the whole each one says; what points or replies says less."""
    terms = [set(content_terms(fact_text(row.text))) for row in rows]
    counts = Counter(term for own in terms for term in own)

    def share(at: int) -> float:
        whole = sum(sorted(math.log(1 + counts[term]) for term in terms[at]))
        less = 0.4 if ENGLISH["addressing"].search(rows[at].text) else 1.0
        less *= 0.6 if ENGLISH["continues"].match(rows[at].text) else 1.0
        return float(round(whole * less / (6 + len(terms[at])) ** 0.7, 9))

    return sorted(range(len(rows)), key=lambda at: (-share(at), at))


def _telling(turns: Rows, most: int) -> list[Stated]:
    parts = ((row, one) for row, part in _stated(turns) for one in sentences(part))
    rows = list(dict.fromkeys(row._replace(text=one) for row, one in parts))
    return [rows[at] for at in sorted(central(rows)[:most])]


def _prose(rows: Sequence[Stated]) -> str:
    text, day, speaker = list[str](), "", ""
    for row in rows:
        end = "" if row.text.endswith((".", "!", "?", "…", "。")) else "."
        dated = f"{row.day} " if row.day != day else ""
        text.append(dated + (row.line if dated or row.speaker != speaker else row.text) + end)
        day, speaker = row.day, row.speaker
    return " ".join(text)


def summary(facts: Rows, limit: int) -> str:
    """Return one or two whole sentences of facts that tell most; an AI's only where people state nothing."""
    told = (_said(fact) for fact in [fact for fact in facts if fact.get("source") != "AI"] or facts)
    whole = ((row, sentence) for row in told for sentence in sentences(fact_text(row.text)))
    rows = list(dict.fromkeys(Stated("", "", row.speaker, one) for row, one in whole if one[-1:] != "?"))
    chosen: list[int] = []
    for at in central(rows)[:10]:
        text = _prose([rows[one] for one in sorted({*chosen, at})])
        if len(chosen) < 2 and len(text.split()) <= WORDS and tokens.count(text) <= limit:
            chosen.append(at)
    return _prose([rows[at] for at in sorted(chosen)])


def beginning(row: Stated) -> str:
    """Some sixty words of a text, verbatim: all of it, its first sentences, or as much of the first."""
    line = row.line if row.text else row.speaker
    head = " ".join(line[: CHARACTERS - len(GAP)].split(" ")[:WORDS])
    if head == line:
        return head
    *whole, last = sentences(head)
    return (head[: head.rindex(last)].rstrip() if whole else head) + GAP


def keywords(rows: Sequence[Stated]) -> list[str]:
    """Names, then the commonest nouns and other words that tell something."""
    words = [word for row in rows for word in content_words(fact_text(row.text[:10_000]))]
    counts = Counter(word.term for word in words)
    words.sort(key=lambda word: (not word.named, -counts[word.term] * (1.5 if word.noun else 0.5)))
    used, chosen = {part for row in rows for part in fold(row.speaker).split()}, list[str]()
    for phrase in (f"{word.before} {word.surface}".strip() if word.noun else word.surface for word in words):
        parts = fold(phrase).split()
        if used.isdisjoint(parts) and len(phrase) <= KEYWORD:
            chosen.append(phrase)
            used.update(parts)
    return chosen


def _described(rows: Sequence[Stated], prefix: str = "") -> Answer:
    words = [*sorted({row.speaker for row in rows if row.speaker}), *keywords(rows)]
    return {f"{prefix}summary": beginning(rows[0]), f"{prefix}keywords": words[:KEYWORDS]}


def _title(rows: Sequence[Stated]) -> str:
    speakers = sorted({row.speaker for row in rows if row.speaker})
    return ": ".join(filter(None, (" and ".join(speakers), ", ".join(keywords(rows)[:TITLE]))))


def describe(variables: Mapping[str, Any]) -> Answer:
    """Answer the task `describe`; the turns before explain nothing to a rule."""
    rows = ((_said(turn), day_of(turn.get("time"))) for turn in variables["turns"])
    return {"cards": [{"id": r.id, **_described([r]), "when": settled(r.text, day)} for r, day in rows]}


def split_unit(variables: Mapping[str, Any]) -> Answer:
    """Answer the task `split_unit`: the text stays whole."""
    row, text = _said(variables["unit"]), variables["unit"].get("text") or ""
    segment = {"segment_text": text, **_described([row], "segment_"), "topic_label": _title([row])}
    return {"do_split": False, "segments": [segment], "split_rationale": ""}


def merge_units(variables: Mapping[str, Any]) -> Answer:
    """Answer the task `merge_units`: the newest speaks for all, the others' wordings are salient points."""
    *others, newest = map(_said, variables["units"])
    return {**_described([newest, *others]), "salient_points": [*map(beginning, others)]}


def update_unit(variables: Mapping[str, Any]) -> Answer:
    """Answer the task `update_unit`: the current unit in its own words, the other one as outdated."""
    current, old = _said(variables["current"]), _said(variables["superseded"])
    rest = {"deprecations": [beginning(old)] if old.text else [], "alignment_note": ""}
    return {**_described([current], "updated_"), **rest}


def episodes(variables: Mapping[str, Any]) -> Answer:
    """Answer the task `episodes`: one, of all turns."""
    text = _prose(_telling(variables["turns"], EPISODE))
    return {"episodes": [{"text": text, "from": [turn["id"] for turn in variables["turns"]]}] if text else []}


def episode(variables: Mapping[str, Any]) -> Answer:
    """Answer the task `episode`: what tells most of a block, under its commonest words."""
    rows = _telling(variables["turns"], EPISODE)
    return {"title": _title(rows), "content": _prose(rows), "when": None}


def topic(variables: Mapping[str, Any]) -> Answer:
    """Answer the task `topic`; where nothing is told, the first words stand."""
    told = _described([_said(turn) for turn in variables["turns"]])
    return told | ({"summary": text} if (text := _prose(_telling(variables["turns"], TOPIC))) else {})


def theme(variables: Mapping[str, Any]) -> Answer:
    """Answer the task `theme`: who speaks, and the commonest words."""
    return {"summary": _title([Stated("", "", *split_speaker(fact["text"])) for fact in variables["facts"]])}


def facts(variables: Mapping[str, Any]) -> Answer:
    """Answer the task `facts`: what was said, each piece that says something new."""
    return {"facts": [{"text": row.line, "from": [row.id]} for row in _new(variables["turns"], ())]}


def refine(variables: Mapping[str, Any]) -> Answer:
    """Answer the task `refine`: what was said that stands neither in the episode nor in a fact."""
    known = [Entry(0, fact["text"], "", fact.get("time")) for fact in variables["facts"]]
    rows = [row for row in _new(variables["turns"], known) if row.text not in variables["episode"]]
    rest = {"type": "USER_EVENT", "replaces": None}
    return {"facts": [{"text": row.line, "from": [row.id], **rest} for row in rows]}


def _new(turns: Rows, known: Sequence[Entry]) -> list[Stated]:
    new: list[Stated] = []
    for row, part in _stated(turns):
        if len(row.text) > CHARACTERS or len(row.text.split()) > WORDS:
            row = row._replace(text=part)
        if not any(is_repetition(row.entry, other) for other in (*known, *(one.entry for one in new))):
            new.append(row)
    return new


def gate(variables: Mapping[str, Any]) -> Answer:
    """Answer the task `gate`: each episode whose title has a word of the question that nothing before has."""
    told = (term for row in variables["facts"] for term in terms_of(row["text"]))
    left, chosen = set(query_terms(variables["question"])).difference(told), list[str]()
    for shown in variables["episodes"]:
        if new := left.intersection(terms_of(shown["title"])):
            left -= new
            chosen.append(shown["id"])
    return {"sufficient": not left, "episodes": chosen, "messages": chosen if left else []}


def segment(variables: Mapping[str, Any]) -> Answer:
    """Answer the task `segment`: a pause, an announcement, or no word in common with the turn before, in
    `strict` ones with three before and from there on; what replies begins none."""
    turns: Rows = variables["turns"]
    paused = {pause["before"] for pause in variables["pauses"]}
    words = [set(content_terms(turn["text"])) for turn in turns]
    side, begin, cuts = 3 if variables["strict"] else 1, 0, list[dict[str, str]]()
    for at, turn in enumerate(turns[1:], 1):
        text, why = turn["text"], "pause" if turn["id"] in paused else "another subject"
        before, after = words[max(begin, at - side) : at], words[at : at + side]
        replies = ENGLISH["opening"].match(text) or ENGLISH["continues"].match(text)
        goes_on = replies or not words[at] or "?" in turns[at - 1]["text"]
        goes_on = goes_on or not set[str]().union(*before).isdisjoint(set[str]().union(*after))
        if turn["id"] in paused or ENGLISH["announced"].match(text) or not goes_on:
            cuts.append({"before": turn["id"], "reason": why})
            begin = at
    return {"cuts": cuts}


CLOSEST = "Memory may hold no answer to this (no model was asked); what comes closest, quoted:"
QUOTED = "No model was asked; what memory holds closest to the question, quoted:"
NOTHING = "Memory holds nothing about this (no model was asked; no line shares a word with the question)."
LINES, NOTES, FLOOR = 5, 3, 0.5
"""Lines that are quoted, and what of the best one's score each needs."""
LITTLE = 0.3
"""What a common word counts, a person's name, and a word that only the title or a kin word has."""

_NAME = re.compile(r"(?<=[\w,;]\s)[A-ZÀ-ÖØ-Þ][\w'’.]*")
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)])\s")


class _Line(NamedTuple):
    """What may be quoted, and the name of its document in words, with the heading that it stands under."""

    id: str
    time: str
    text: str
    title: str
    doc: str
    source: str


def answer(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `answer`; more is never asked for."""
    question = variables["question"]
    searching: dict[str, Any] = {"calls": []} if "calls" in variables else {}
    asked = query_terms(question)
    names = {term for name in _NAME.findall(question) for term in terms_of(name.removesuffix("'s"))}
    telling = set(asked) - common_terms() - names
    docs = (doc for kind in ("evidence", "episodes", "facts") for doc in variables.get(kind, ()))
    lines = [line for doc in docs for line in _lines(doc)]
    order = {title: -at for at, title in enumerate(dict.fromkeys(line.doc for line in lines))}
    oneself = asked_of(question, ()).oneself
    own = [frozenset(terms_of(f"{line.text} {_date(line.time)}")) for line in lines]
    titles = (set(terms_of(line.title)) - common_terms() for line in lines)
    shown = [
        terms.union(title, *(kin().get(term, ()) for term in terms))
        for terms, title in zip(own, titles, strict=True)
    ]
    spread = Counter(term for terms in own for term in terms)
    weight = {
        term: math.log(1 + (len(lines) + 1) / (1 + spread[term])) * (1 if term in telling else LITTLE)
        for term in asked
    }
    scores = [
        sum(weight[t] * (1 if t in mine else LITTLE) for t in asked if t in terms)
        * (1 - GAIN * (oneself and line.source == "AI"))
        for line, mine, terms in zip(lines, own, shown, strict=True)
    ]
    newest = [int(line.id) if line.id.isdecimal() else -1 for line in lines]
    close = (at for at, score in enumerate(scores) if score)
    ranked = nlargest(
        LINES, close, key=lambda at: (scores[at], order[lines[at].doc], lines[at].time, newest[at], -at)
    )
    if not ranked and lines and not lines[0].id.isdecimal():  # a note that aliases or tags led to
        ranked = [at for at, line in enumerate(lines) if line.title == lines[0].title]
    if not ranked:
        return {"answer": NOTHING, "cites": [], **searching}
    near = [lines[at] for at in ranked if scores[at] >= FLOOR * scores[ranked[0]]]
    if not near[0].id.isdecimal():
        near = near[:NOTES]
    quoted = [f"- {line.text}{f' ({line.time[:10]})' if line.time else ''}" for line in near]
    tells = not telling or not telling.isdisjoint(shown[ranked[0]])
    text = "\n".join([QUOTED if tells else CLOSEST, *quoted])
    return {"answer": text, "cites": [line.id for line in near], **searching}


def _date(time: str) -> str:
    day = day_of(time)
    return f"{MONTHS[day.month - 1]} {day}" if day else ""


def _lines(doc: Mapping[str, Any]) -> list[_Line]:
    title = re.sub(rf"(.*/)?(?:{folders().names}\Z)?", "", doc.get("doc_id") or "", count=1).replace("-", " ")
    lines, after, heading = list[_Line](), "", ""
    for row in doc["lines"]:
        if "text" not in row:
            heading = row["heading"]
            continue
        note, _, number = row["id"].rpartition(":")
        if note and row["id"] == after and not _ITEM.match(row["text"]):
            lines[-1] = lines[-1]._replace(text=f"{lines[-1].text} {row['text']}")
        else:
            who = row.get("speaker") or (title if note else "")
            text = re.sub(r"\A\s*[-*+]\s", "", row["text"]) if note else row["text"]
            text = f"{who}: {text}" if who else text
            about = (f"{title} {heading}", doc.get("doc_id") or "", row.get("source") or "")
            lines.append(_Line(row["id"], row.get("time") or "", text, *about))
        after = f"{note}:{int(number) + 1}" if number.isdecimal() else ""
    return lines


# ── in place of a judge: words in common are seen, no paraphrase ──────────────────────────────────────


_MONTH = {
    name[:length].lower(): str(number) for number, name in enumerate(MONTHS, 1) for length in (3, len(name))
}


def says_nothing(text: str) -> bool:
    return bool(ENGLISH["says nothing"].search(fold(text)))


def strict(variables: Mapping[str, Any], wanted: float = 1.0) -> dict[str, Any]:
    """Answer the task `judge_strict`: the share that is `wanted` of one expected answer's words is there."""
    told = fold(variables["answer"])
    unknown = says_nothing(told)
    if variables["kind"] == "unanswerable":
        reason = "the answer says" if unknown else "the answer does not say"
        return {"reason": f"{reason} that it is not known", "correct": unknown}
    if unknown or not told.strip():
        return {"reason": "the answer does not know", "correct": False}
    words = _words(told)
    expected = filter(None, map(_words, variables["expected"]))
    share = max((len(one & words) / len(one) for one in expected), default=0.0)
    return {"reason": f"{share:.0%} of the expected words are in the answer", "correct": share >= wanted}


lenient = partial(strict, wanted=0.5)
"""Answer the task `judge_lenient`: half of the words of one expected answer are there."""


def rubric(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `judge_rubric`: half of an item's words are there; an order is not looked at."""
    verdicts = []
    for item in variables["rubric"]:
        found = lenient({**variables, "expected": [ENGLISH["introduced"].sub("", item["text"])]})
        verdicts.append({"item": item["id"], "reason": found["reason"], "met": found["correct"]})
    return {"verdicts": verdicts}


def _words(text: str) -> frozenset[str]:
    """The words that tell; months as numbers, dates and numbers in parts, so that formats do not matter."""
    whole = (term for term in query_terms(text) if not any(char in term for char in "-./:"))
    return frozenset(_MONTH.get(term, term) for term in whole)
