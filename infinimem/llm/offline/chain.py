"""Following a question from fact to fact: "the spouse of the author of Emma" is asked in two steps.

A walk starts at something that the question names, goes over the newest statement about it that says one of
the question's other words, and on to what that statement names. A question's words nearest to the start are
used first. Nothing is known but the words of the lines: a walk over wrong lines ends at a wrong line, so
what is made of it is a quotation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from infinimem.llm.offline.extract import sentences
from infinimem.llm.offline.relations import noise, relations
from infinimem.llm.offline.statements import (
    Phrase,
    Span,
    Words,
    first_phrase,
    is_whole,
    last_phrase,
    names,
    terms,
    words,
)
from infinimem.retrieval.tokenizer import STOP_WORDS, fold, tokens

LINKS = 4
"""Statements of a walk, at most."""
WORDS = 25
"""Longer texts tell more than one thing, and what of it answers to the question cannot be known."""
BREADTH = 6
"""Statements that are followed from one place."""
_SOUND, _RELATED = 1.0, 0.6
_NOISE = 0.15
_STEP = 0.25
"""What a further statement costs, in words of the question."""
_SILENT = 0.4
"""What a statement costs that says no word of the question; a walk may go over one."""
_ORDER = 0.06
"""What a word of the question costs for each nearer one that is left unused, or comes later."""

_PRONOUNS = (
    "me my mine you your yours we us our ours it its they them their theirs he him his she her hers "
    "this these those here there"
).split()
_POINTING = re.compile(
    rf"\b(?:{'|'.join(_PRONOUNS)})\b|(?:\A|: )(?:{'|'.join(map(str.capitalize, _PRONOUNS))})\b"
    r"|(?:\A|: |\b[a-z]\w*[,;]? )I\b"
)
"""Inside a sentence a capital makes a title of it: "The author of It"; "Ardashir I"."""

Age = tuple[str, tuple[int, str]]


@dataclass(frozen=True)
class Statement:
    """A line; `key` is the caller's name of it, `age` grows with recency."""

    key: int
    text: str
    age: Age


@dataclass(frozen=True)
class _Cue:
    """A word of the question that some statement may answer to."""

    at: int
    terms: tuple[str, ...]
    weight: float


@dataclass(frozen=True)
class Walk:
    """Statements in the order in which they were followed.

    `end` is what the last one names, as it is written; `missing` the question's words that none of them said
    in these very words.
    """

    links: tuple[Statement, ...]
    start: str
    end: str
    score: float
    missing: tuple[str, ...]

    @property
    def is_chain(self) -> bool:
        """Whether it goes over several statements, and none of them for nothing."""
        return len(self.links) > 1 and self.score > 0


def walks(question: str, statements: Iterable[Statement]) -> list[Walk]:
    """The walks of a question over some statements, best first; none where it names nothing they know."""
    return _Walker(question, statements).walks()


class _Walker:
    def __init__(self, question: str, statements: Iterable[Statement]) -> None:
        self.question = words(question, 200)
        self.statements = {s.key: (s, words(s.text)) for s in statements if stands_alone(s.text)}
        self.by_word: dict[str, list[int]] = {}
        for key, (_, text) in self.statements.items():
            for word in dict.fromkeys(text.folded):
                self.by_word.setdefault(word, []).append(key)

    def walks(self) -> list[Walk]:
        found: list[Walk] = []
        for anchor in self._anchors():
            cues = self._cues(anchor)
            self._walk(anchor, cues, (), self.question.surface(anchor), 0.0, {}, found)
        best: dict[tuple[int, ...], Walk] = {}
        for walk in sorted(found, key=lambda walk: (-round(walk.score, 6), tuple(s.key for s in walk.links))):
            best.setdefault(tuple(s.key for s in walk.links), walk)
        return list(best.values())

    # ── where walks start ───────────────────────────────────────────────────────────────────────

    def _anchors(self) -> list[Span]:
        """What the question names and some statement is about; whole names only, the longest."""
        asked = self.question
        found: set[Span] = set()
        for _, text in self.statements.values():
            for span in dict.fromkeys([first_phrase(text), last_phrase(text), *names(text)]):
                phrase = text.folded[span[0] : span[1]]
                if not phrase or len(phrase) > 12:
                    continue
                for place in asked.find(phrase):
                    if self._names(place):
                        found.add(place)
        whole = [
            span
            for span in found
            if not any(o != span and o[0] <= span[0] and span[1] <= o[1] for o in found)
        ]
        named = [span for span in whole if any(self._capital(i) for i in range(*span))]
        return sorted(named or whole)

    def _capital(self, at: int) -> bool:
        return at > 0 and self.question.capital[at]

    def _names(self, span: Span) -> bool:
        told = [w for w in self.question.folded[span[0] : span[1]] if w not in STOP_WORDS]
        if not told or (span[0] == 0 and span[1] == 1):
            return False
        return any(self._capital(i) for i in range(*span)) or not all(
            term in relations() or term in noise() for word in told for term in tokens(word)
        )

    def _cues(self, anchor: Span) -> list[_Cue]:
        cues = []
        for at, word in enumerate(self.question.folded):
            if anchor[0] <= at < anchor[1]:
                continue
            if word in STOP_WORDS and word != "where":
                continue
            found = ("place",) if word == "where" else tuple(tokens(word))
            if not found:
                continue
            weight = _NOISE if all(t in noise() for t in found) else 1.0
            if word == "where":
                weight = 0.5
            cues.append(_Cue(at, found, weight))
        return cues

    # ── one step ────────────────────────────────────────────────────────────────────────────────

    def _about(self, phrase: Phrase) -> list[tuple[Statement, Words, Span]]:
        keys = min((self.by_word.get(word, []) for word in phrase), key=len, default=[])
        found = []
        for key in keys:
            statement, text = self.statements[key]
            span = next((span for span in text.find(phrase) if is_whole(text, span)), None)
            if span:
                found.append((statement, text, span))
        return found

    def _walk(
        self,
        anchor: Span,
        cues: Sequence[_Cue],
        links: tuple[Statement, ...],
        here: str,
        score: float,
        used: Mapping[int, float],
        found: list[Walk],
        silent: bool = False,
    ) -> None:
        if links:
            missing = tuple(
                self.question.folded[cue.at]
                for cue in cues
                if used.get(cue.at, 0.0) < 1 and cue.weight == 1.0
            )
            found.append(Walk(links, self.question.surface(anchor), here, score, missing))
        if len(links) == LINKS:
            return
        options: dict[tuple[frozenset[str], bool], tuple[Statement, str, frozenset[str]]] = {}
        for statement, text, span in self._about(words(here).folded):
            if any(statement.key == link.key for link in links):
                continue
            last = last_phrase(text)
            turned = span[0] >= last[0]
            there = first_phrase(text) if turned else last
            if turned and there[0] <= span[0] < there[1]:
                continue
            relation = terms(text, [span, there])
            if there[0] == there[1]:
                continue
            target = text.surface(there)
            if fold(target) == fold(here):
                continue
            # What is said of the same thing in the same words is newest last.
            key = (relation, turned) if not turned else (relation | {target}, turned)
            if key not in options or statement.age > options[key][0].age:
                options[key] = (statement, target, relation)
        gained: list[tuple[float, Statement, str, Mapping[int, float] | None]] = []
        for (_, turned), (statement, target, relation) in options.items():
            gain, taken = self._gain(anchor, cues, used, relation)
            if taken:
                gained.append((gain - (0.5 if turned else 0.0), statement, target, {**used, **taken}))
            elif not turned and not silent:
                gained.append((-_SILENT, statement, target, None))
        gained.sort(key=lambda item: (-round(item[0], 6), item[1].key))
        for gain, statement, target, after in gained[:BREADTH]:
            self._walk(
                anchor,
                cues,
                (*links, statement),
                target,
                score + gain - _STEP,
                used if after is None else after,
                found,
                silent or after is None,
            )

    def _gain(
        self, anchor: Span, cues: Sequence[_Cue], used: Mapping[int, float], relation: frozenset[str]
    ) -> tuple[float, dict[int, float]]:
        """What a statement's words are worth, and how far they use up the question's words."""
        total = 0.0
        taken: dict[int, float] = {}
        seen: set[tuple[str, ...]] = set()
        for cue in sorted(cues, key=lambda cue: (_distance(anchor, cue.at), cue.at)):
            share = _share(cue.terms, relation)
            before = used.get(cue.at, 0.0)
            if share <= before or cue.terms in seen:
                continue
            seen.add(cue.terms)
            taken[cue.at] = share
            nearer = sum(
                1
                for other in cues
                if cue.at < other.at < anchor[0]
                and other.weight == 1.0
                and other.at not in used
                and not _share(other.terms, relation)
            )
            total += (share - before) * cue.weight - _ORDER * nearer
        return total, taken


def stands_alone(text: str) -> bool:
    """Whether a line is one statement and needs no other: no question, no second sentence, no "I" or "it"."""
    said = text.strip()
    if said.count(" ") >= WORDS or said.endswith(("?", "!")) or said.startswith("#"):
        return False
    return not (_POINTING.search(said) or sum(1 for _ in sentences(said)) > 1)


def _distance(anchor: Span, at: int) -> int:
    return anchor[0] - at if at < anchor[0] else at - anchor[1] + 1


def _share(cue: Sequence[str], relation: frozenset[str]) -> float:
    best = 0.0
    for term in cue:
        if term in relation:
            return _SOUND
        if relation & relations().get(term, frozenset()) or (
            len(term) > 4 and any(len(o) > 4 and (term.startswith(o) or o.startswith(term)) for o in relation)
        ):
            best = _RELATED
    return best
