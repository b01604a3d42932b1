"""Baselines: the bare turns, ranked in a plain way and answered from like everything else.

none      nothing            full     every turn, in its order
recent    the newest turns   grep     turns that hold most words of the question, as they are written
bm25      Okapi BM25         fts5     SQLite's full-text index
dense     nearest vectors of "speaker: text"
hybrid    bm25 and dense, by reciprocal rank
"""

from __future__ import annotations

import re
import sqlite3
import threading
import time
import weakref
from collections import defaultdict
from collections.abc import Callable, Sequence

from infinimem import tokens
from infinimem.embedders.base import text_key
from infinimem.evaluation.methods.means import ALL, Heard, Means, drawn, found_of, now_of
from infinimem.evaluation.methods.spec import Spec
from infinimem.evaluation.model import Case, Drawn, Ingested, Question
from infinimem.index.vectors import Vectors
from infinimem.llm import tasks
from infinimem.model import Evidence, Retrieved, Turn
from infinimem.strategies.readers.pipeline import pack
from infinimem.terms import STOP_WORDS, analyzer, fold

RRF_K = 60
"""Source: reciprocal rank fusion, Cormack and others 2009."""

_WORD = re.compile(r"\w+")
_SOURCES = {"user": "user", "assistant": "AI"}

Ranker = Callable[[str], Sequence[int]]
"""From a question to positions of turns, best first."""


class Baseline:
    """A method without a memory (evaluation/model.py: Method)."""

    def __init__(self, spec: Spec, means: Means) -> None:
        self._spec = spec
        self._means = means
        self._case = Case("", (), ())
        self._rank: Ranker = lambda question: ()

    def ingest(self, case: Case) -> Ingested:
        """Take in a history: rank functions are made, no language model is called."""
        began = time.perf_counter()
        self._case = case
        self._turn_of = {seq: turn.turn or str(seq) for seq, turn in enumerate(case.turns, 1)}
        with self._means.spending.account() as usage:  # vectors may be paid for
            self._rank = _ranker(self._spec, case.turns, self._means)
        seconds = time.perf_counter() - began
        return Ingested(self._spec.text, case.name, dict(usage), seconds, turns=len(case.turns))

    def retrieve(self, question: Question) -> Drawn:
        return Drawn(found_of(self._items(question), self._turn_of))

    def answer(self, question: Question, budget: int) -> Drawn:
        now, heard = now_of(self._case, question), Heard(self._means.answerer, self._spec)
        if self._spec.name == "none":
            variables = {"question": question.text, "evidence": [], "now": now}
            reply = heard.complete(tasks.ANSWER, variables)  # `answer` would not ask it
            text = str(reply.data["answer"]).strip() if reply.data else ""
            return Drawn((), text, ({"cited": []},), heard.failed)
        items = self._items(question)
        if self._spec.name == "full":
            budget = ALL
        else:
            longest: dict[str, int] = {}  # with its speaker, so that nothing packed is cut off afterwards
            for item in items:
                longest[item.text] = max(tokens.count(said(item)), longest.get(item.text, 0))
            items = pack(items, budget, longest.__getitem__)
        if self._spec.name == "recent":  # read in the order in which it was said
            items = items[::-1]
        return drawn(heard, question, now, Evidence(tuple(items)), self._turn_of, budget)

    def _items(self, question: Question) -> list[Retrieved]:
        ranked = ((at + 1, self._case.turns[at]) for at in self._rank(question.text))
        return [
            Retrieved(
                turn.session or "turns",
                seq,
                seq,
                turn.text,
                1 / rank,
                seqs=(seq,),
                origin=(seq,),
                time=turn.time,
                source=_SOURCES.get(turn.role, "tool"),
                speaker=turn.speaker,
            )
            for rank, (seq, turn) in enumerate(ranked, 1)
        ]


def said(turn: Turn | Retrieved) -> str:
    """A turn as an answerer is shown it."""
    return f"{turn.speaker}: {turn.text}" if turn.speaker else turn.text


def _ranker(spec: Spec, turns: Sequence[Turn], means: Means) -> Ranker:
    language = str(spec.settings.get("search", {}).get("language", "english"))
    if spec.name == "full":
        return lambda question: range(len(turns))
    if spec.name == "recent":
        return lambda question: range(len(turns) - 1, -1, -1)
    if spec.name == "grep":
        return _grep(turns)
    if spec.name == "bm25":
        return _bm25(turns, language)
    if spec.name == "fts5":
        return _fts5(turns)
    if spec.name == "dense":
        return _dense(
            turns, means.embedders.vectors(spec), spec.counts.get("chunk", 0), spec.counts.get("top")
        )
    if spec.name == "hybrid":
        return _fused(_bm25(turns, language), _dense(turns, means.embedders.vectors(spec)))
    return lambda question: ()


def _grep(turns: Sequence[Turn]) -> Ranker:
    """Turns by how many of the question's words they hold as written, any case; ties as they were said."""
    texts = [fold(said(turn)) for turn in turns]

    def rank(question: str) -> Sequence[int]:
        words = _words(question)
        held = [sum(word in text for word in words) for text in texts]
        return sorted((at for at, count in enumerate(held) if count), key=lambda at: (-held[at], at))

    return rank


def _words(question: str) -> list[str]:
    """As they are written, in small letters; without function words, unless there are no others."""
    every = list(dict.fromkeys(_WORD.findall(fold(question))))
    return [word for word in every if word not in STOP_WORDS] or every


def _fts5(turns: Sequence[Turn]) -> Ranker:
    """SQLite's bm25() over words stemmed by Porter, any of the words of the question."""
    base = sqlite3.connect(":memory:", check_same_thread=False)
    base.execute("CREATE VIRTUAL TABLE t USING fts5(said, content='', tokenize='porter unicode61')")
    base.executemany("INSERT INTO t(rowid, said) VALUES (?, ?)", enumerate(map(said, turns)))
    lock = threading.Lock()

    def rank(question: str) -> Sequence[int]:
        wanted = " OR ".join(f'"{word}"' for word in _words(question))
        with lock:
            found = base.execute("SELECT rowid FROM t WHERE t MATCH ? ORDER BY rank, rowid", (wanted,))
            return [at for (at,) in found]

    weakref.finalize(rank, base.close)
    return rank


def _bm25(turns: Sequence[Turn], language: str) -> Ranker:
    """Okapi BM25 with its package's parameters, over stemmed words of speaker and text."""
    words = analyzer(language)
    rows = [words.tokens(said(turn)) for turn in turns]
    bags = [frozenset(row) for row in rows]
    if not any(bags):
        return lambda question: ()
    from rank_bm25 import BM25Okapi

    engine = BM25Okapi(rows)

    def rank(question: str) -> Sequence[int]:
        terms = words.query_terms(question)
        scores = engine.get_scores(terms)
        found = [at for at, bag in enumerate(bags) if not bag.isdisjoint(terms)]
        return sorted(found, key=lambda at: (-round(float(scores[at]), 6), at))

    return rank


def _dense(turns: Sequence[Turn], vectors: Vectors, size: int = 0, top: int | None = None) -> Ranker:
    """Turns by the cosine of their chunk's vector with the question's, of the `top` best chunks if it is set.

    Whole turns make a chunk of `size` tokens, of 0 each is one. Source: RecMem, App. E.1.
    """
    chunks: list[list[int]] = []
    room = 0
    for at, turn in enumerate(turns):
        length = max(tokens.count(said(turn)), 1) if size else 1
        if length > room:
            chunks.append([])
            room = size
        chunks[-1].append(at)
        room -= length
    texts = ["\n".join(said(turns[at]) for at in chunk) for chunk in chunks]
    known = vectors.add(texts)
    at_rows = known.places(map(text_key, texts))
    rows = known.matrix[at_rows]

    def rank(question: str) -> Sequence[int]:
        scores = rows @ vectors.embedder.embed([question], "query")[0]
        best = sorted(range(len(chunks)), key=lambda chunk: (-round(float(scores[chunk]), 6), chunk))
        return [at for chunk in best[:top] for at in chunks[chunk]]

    return rank


def _fused(*rankers: Ranker) -> Ranker:
    def rank(question: str) -> Sequence[int]:
        scores: defaultdict[int, float] = defaultdict(float)
        for ranker in rankers:
            for place, at in enumerate(ranker(question), 1):
                scores[at] += 1 / (RRF_K + place)
        return sorted(scores, key=lambda at: (-round(scores[at], 9), at))

    return rank
