"""What is compared: readers over a library made from a history, and baselines over the bare turns.

Methods that differ only in how they read share a library: it is made once, and what that cost is told of each
of them. The baselines (docs/BENCHMARKS.md) rank the turns in a plain way, and answer like everything else.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
import threading
import time
import weakref
from bisect import bisect
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from infinimem import answer as answering
from infinimem import tokens
from infinimem.embedders.base import Embedder
from infinimem.embedders.local import connect
from infinimem.errors import ModelNotConfigured, UsageError
from infinimem.evaluation.datasets.abilities import place_of
from infinimem.evaluation.model import BASELINES, LENGTHS, Case, Drawn, Found, Ingested, Question, Spec
from infinimem.evaluation.spending import Booked, Spending
from infinimem.grounding.sentences import day_of, mentions
from infinimem.index.vectors import Matrix, Vectors
from infinimem.llm import tasks
from infinimem.llm.base import LLM, Reply, Task, Wrapper
from infinimem.markdown.characters import text_key
from infinimem.memory import Memory, open_memory
from infinimem.model import CURRENT, Entry, Evidence, Retrieved, Turn
from infinimem.settings import EMBEDDERS, SETTINGS, configuration
from infinimem.store.spec import ARCHIVE, TOPICS
from infinimem.strategies.readers.pipeline import Search, pack, search
from infinimem.terms import STOP_WORDS, analyzer, fold
from infinimem.user_folders import delete_cache

ALL = 1 << 30
"""Tokens: more than any history has."""
_LOCAL = ("static", "minilm")
"""What stands in for an embedder that nobody named, the first that is installed; else words alone."""
_KEPT = 1 << 26
"""Numbers that are kept of vectors, 256 MB: those of some 170,000 turns by a small model."""


# ── vectors ─────────────────────────────────────────────────────────────────────────────────────


class Embedders:
    """Connects to embedders by name, once each, in any thread; `name`: the run's, or INFINIMEM_EMBEDDER."""

    def __init__(self, name: str | None = None, spending: Spending | None = None) -> None:
        self._spending = spending or Spending()
        self._settings = configuration().settings.embedder
        self.name = name or (self._settings.name if self._settings.name != "lexical" else None)
        self._lock = threading.RLock()
        self._known: dict[str, Embedder] = {}
        self._vectors: dict[str, Vectors] = {}

    def memory(self, name: str | None) -> Embedder | None:
        """The embedder of a library; None where neither the method nor the run names one."""
        wanted = name or self.name
        return self._of(wanted) if wanted else None

    def of(self, spec: Spec) -> Embedder | None:
        """What a method's vectors come from, if it has any; a baseline that takes them cannot do without."""
        if spec.way is None and "embedder" not in BASELINES[spec.name]:
            return None
        if spec.way is not None or spec.embedder or self.name:
            return self.memory(spec.embedder)
        for name in _LOCAL:
            with suppress(ModelNotConfigured):
                return self._of(name)
        return self._of("lexical")

    def vectors(self, spec: Spec) -> Vectors:
        """The vectors of a baseline, in memory: histories of a data set share sessions, and methods texts."""
        embedder = self.of(spec)
        assert embedder is not None
        with self._lock:
            known = self._vectors.get(embedder.name)
            if known is None or known.rows.matrix.size > _KEPT:
                known = self._vectors[embedder.name] = Vectors(None, embedder)
            return known

    def _of(self, name: str) -> Embedder:
        with self._lock:
            if name not in self._known:
                kind, _, model = name.partition("/")
                if model and kind in EMBEDDERS and kind != "openai":
                    raise UsageError(
                        f"the embedder {kind!r} has one model only; write {kind!r}, without a slash"
                    )
                found = connect(kind, replace(self._settings, model=model or None))
                counts = hasattr(found, "usage")
                self._known[name] = Booked(found, self._spending) if counts else found
            return self._known[name]


# ── answers ─────────────────────────────────────────────────────────────────────────────────────


class Heard(Wrapper):
    """The answerer, held to the method's length; `failed`, for the line quoted instead may be right."""

    failed: str | None = None

    def __init__(self, llm: LLM, spec: Spec, question: Question) -> None:
        super().__init__(llm)
        self._more: dict[str, Any] = {key: spec.counts[key] for key in LENGTHS if key in spec.counts}
        self._more |= {"choices": "\n".join(question.choices)} if question.choices else {}
        self.always = spec.name == "none" or bool(question.choices)

    def complete(self, task: Task, variables: Mapping[str, Any]) -> Reply:
        if task.name == tasks.ANSWER.name:
            task = replace(task, variables=task.variables | self._more.keys())
            variables = {**variables, **self._more}
        reply = self._llm.complete(task, variables)
        unusable = reply.data is None or not str(reply.data.get("answer", "")).strip()
        self.failed = (reply.failure or "EMPTY") if unusable else None
        return reply


class Answering:
    """What methods have in common: a case that is asked about, and how an answer is had."""

    _case: Case
    _turn_of: Mapping[int, str]

    def __init__(self, spec: Spec, making: Making) -> None:
        self._spec, self._making = spec, making

    def _drawn(
        self, question: Question, evidence: Evidence, budget: int, search: Search | None = None
    ) -> Drawn:
        """Return an answer from evidence, best first, of which `budget` tokens are shown; `search` shows
        more. A question without a date is asked on that of the last turn."""
        times = (turn.time for turn in reversed(self._case.turns) if turn.time)
        now = (question.asked or next(times, ""))[:10]
        heard = Heard(self._making.answerer, self._spec, question)
        if heard.always and not evidence.items:  # `answer` would not ask
            reply = heard.complete(tasks.ANSWER, {"question": question.text, "evidence": [], "now": now})
            text = str(reply.data["answer"]).strip() if reply.data else ""
            return Drawn((), text, ({"cited": []},), heard.failed)
        answered = answering.answer(heard, question.text, evidence, now, budget, search)
        cited = {"cited": [citation.text for citation in answered.citations]}
        steps = (*map(asdict, answered.evidence.trace), cited)
        return Drawn(self._found(answered.evidence.items), answered.text, steps, heard.failed)

    def _found(self, items: Iterable[Retrieved]) -> tuple[Found, ...]:
        return tuple(
            Found(
                item.text,
                tuple(dict.fromkeys(self._turn_of[seq] for seq in item.origin if seq in self._turn_of)),
                tokens.count(item.text),
            )
            for item in items
        )


# ── baselines ───────────────────────────────────────────────────────────────────────────────────

RRF_K = 60
"""Source: reciprocal rank fusion, Cormack and others 2009."""

_WORD = re.compile(r"\w+")
_SOURCES = {"user": "user", "assistant": "AI"}

Ranker = Callable[[str], Sequence[int]]
"""From a question to positions of turns, best first."""


class Baseline(Answering):
    """A method without a memory; threads may ask at once."""

    def ingest(self, case: Case) -> Ingested:
        began = time.perf_counter()
        self._case = case
        self._turn_of = {seq: turn.turn or str(seq) for seq, turn in enumerate(case.turns, 1)}
        with self._making.spending.account() as usage:  # vectors may be paid for
            self._rank = _ranker(self._spec, case.turns, self._making.embedders)
        seconds = time.perf_counter() - began
        return Ingested(self._spec.text, case.name, dict(usage), seconds, turns=len(case.turns))

    def retrieve(self, question: Question) -> Drawn:
        return Drawn(self._found(self._items(question)))

    def answer(self, question: Question, budget: int) -> Drawn:
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
        return self._drawn(question, Evidence(tuple(items)), budget)

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
    return f"{turn.speaker}: {turn.text}" if turn.speaker else turn.text


def _ranker(spec: Spec, turns: Sequence[Turn], embedders: Embedders) -> Ranker:
    language = str(spec.settings.get("search", {}).get("language", "english"))
    counts = (spec.counts.get("chunk", 0), spec.counts.get("top"), spec.counts.get("prune", 0))
    orders = {"full": range(len(turns)), "recent": range(len(turns) - 1, -1, -1)}
    if spec.name == "hybrid":
        return _fused(_bm25(turns, language), _dense(turns, embedders.vectors(spec)))
    if spec.name == "dense":
        return _dense(turns, embedders.vectors(spec), *counts)
    if spec.name == "bm25":
        return _bm25(turns, language)
    if spec.name in ("grep", "fts5"):
        return _grep(turns) if spec.name == "grep" else _fts5(turns)
    return lambda question: orders.get(spec.name, ())


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


def _dense(
    turns: Sequence[Turn], vectors: Vectors, size: int = 0, top: int | None = None, prune: int = 0
) -> Ranker:
    """Turns by the cosine of their chunk's vector with the question's, of the `top` best chunks if it is set;
    `prune`: of these so many, those that are nearest by themselves.

    Whole turns make a chunk of `size` tokens, of 0 each is one. Sources: RecMem, App. E.1; xMemory, section 5
    (RAG with pruning).
    """

    def length(at: int) -> int:
        return max(tokens.count(said(turns[at])), 1) if size else 1

    chunks = tokens.packed(range(len(turns)), size, length)

    def matrix(texts: Sequence[str]) -> Matrix:
        known = vectors.add(texts)
        return known.matrix[known.places(map(text_key, texts))]

    rows = matrix(["\n".join(said(turns[at]) for at in chunk) for chunk in chunks])
    single = matrix([said(turn) for turn in turns]) if prune else rows

    def nearest(matrix: Matrix, asked: Matrix, among: Iterable[int]) -> list[int]:
        scores = matrix @ asked
        return sorted(among, key=lambda at: (-round(float(scores[at]), 6), at))

    def rank(question: str) -> Sequence[int]:
        asked = vectors.embedder.embed([question], "query")[0]
        kept = [at for chunk in nearest(rows, asked, range(len(chunks)))[:top] for at in chunks[chunk]]
        if prune:
            few = nearest(single, asked, kept)[:prune]
            kept = [at for at in kept if at in few]
        return kept

    return rank


def _fused(*rankers: Ranker) -> Ranker:
    def rank(question: str) -> Sequence[int]:
        scores: defaultdict[int, float] = defaultdict(float)
        for ranker in rankers:
            for place, at in enumerate(ranker(question), 1):
                scores[at] += 1 / (RRF_K + place)
        return sorted(scores, key=lambda at: (-round(scores[at], 9), at))

    return rank


# ── libraries ───────────────────────────────────────────────────────────────────────────────────


class LibraryMethod(Answering):
    """A reader over a library."""

    def ingest(self, case: Case) -> Ingested:
        made = self._making.make(self._spec, case)
        self._case = case
        self._memory = self._making.open(self._spec, case)
        self._turn_of = {
            place.entry.seq: place.entry.fields["turn"]
            for place in self._memory.view.entries("evidence")
            if "turn" in place.entry.fields
        }
        written = written_of(self._memory, case) if self._spec.draws else {}
        return replace(made, method=self._spec.text, written=written)

    def retrieve(self, question: Question) -> Drawn:
        assert self._spec.way is not None
        evidence = self._read(question, self._spec.way.ranked_by, ALL)
        return Drawn(self._found(evidence.items), steps=asdict(evidence)["trace"])

    def answer(self, question: Question, budget: int) -> Drawn:
        assert self._spec.way is not None
        reader = self._spec.way.answered_by
        more = search(self._memory.view, question.text, reader or "")
        return self._drawn(question, self._read(question, reader, budget), budget, more)

    def _read(self, question: Question, reader: str | None, budget: int) -> Evidence:
        if reader is None:
            return self._memory.retrieve(question.text, budget)
        return self._memory.read(question.text, reader, budget)


class NotesSearch(LibraryMethod):
    """The `search` tool over a folder of notes, as an agent calls it: nothing is recorded."""

    def ingest(self, case: Case) -> Ingested:
        """Write the notes out and index them; UsageError if the case has none."""
        if not case.notes:
            raise UsageError(f"{self._spec.name} searches a folder of notes: leave it out here")
        folder = self._making.folder(self._spec, case)
        for name, data in {**case.notes, SETTINGS: self._spec.toml().encode()}.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        self._blocks = defaultdict[str, list[str]](list)
        for turn in case.turns:
            self._blocks[turn.speaker or ""].append(turn.turn or "")
        began = time.perf_counter()
        embedder = self._making.embedders.memory(self._spec.embedder)
        self._tools = open_memory(folder, model=self._making.keeper, trust=True, embedder=embedder).tools
        self._tools.search(case.questions[0].text)  # indexes
        seconds = time.perf_counter() - began
        return Ingested(self._spec.text, case.name, seconds=seconds, turns=len(case.turns))

    def retrieve(self, question: Question) -> Drawn:
        found = []
        for hit in self._tools.search(question.text, 50)["hits"]:  # the most that it gives
            blocks = self._blocks[hit["doc_id"]]
            block = blocks[bisect(blocks, hit["start_line"], key=lambda turn: place_of(turn)[1].start) - 1]
            found.append(Found(hit["snippet"], (block,), tokens.count(hit["snippet"])))
        return Drawn(tuple(found))


Method = Baseline | LibraryMethod
"""What holds one case: `ingest` takes it in, `retrieve` ranks for a question, `answer` answers it."""


def method(spec: Spec, making: Making) -> Method:
    if spec.way is None:
        return Baseline(spec, making)
    return (NotesSearch if spec.way.ranked_by == "search" else LibraryMethod)(spec, making)


@dataclass(frozen=True)
class Making:
    """Makes the libraries of a run in `work`, each by one thread, and holds what methods work with."""

    work: Path
    keeper: LLM
    answerer: LLM
    embedders: Embedders
    spending: Spending
    _locks: dict[Path, threading.RLock] = field(default_factory=dict, init=False)
    _made: dict[Path, Ingested] = field(default_factory=dict, init=False)

    def folder(self, spec: Spec, case: Case) -> Path:
        return self.work / spec.library / case.name

    def make(self, spec: Spec, case: Case) -> Ingested:
        """Make the library, once in a start of the run; an earlier one is made anew, of kept replies."""
        folder = self.folder(spec, case)
        with self._locks.setdefault(folder, threading.RLock()):
            if folder in self._made:
                return self._made[folder]
            self.remove(spec, case)
            began = time.perf_counter()
            with self.spending.account() as spent:
                memory = self.open(spec, case, building=True)
                if spec.draws:
                    memory.observe(case.turns)
                    memory.consolidate()
                else:
                    memory.record(case.turns)
            self._made[folder] = Ingested(
                spec.text,
                case.name,
                usage=dict(sorted(spent.items())),
                sizes=tuple(row.tokens for row in memory.view.catalog(folder=TOPICS)),
                disk=sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()),
                seconds=time.perf_counter() - began,
                turns=len(case.turns),
            )
            return self._made[folder]

    def open(self, spec: Spec, case: Case, building: bool = False) -> Memory:
        folder = self.folder(spec, case)
        embedder = self.embedders.memory(spec.linked_by if building else spec.embedder)
        model = self.keeper if building else self.answerer
        with self._locks.setdefault(folder, threading.RLock()):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / SETTINGS).write_text(spec.toml(building), encoding="utf-8")
            return open_memory(folder, model=model, create=True, trust=True, embedder=embedder)

    def remove(self, spec: Spec, case: Case) -> None:
        folder = self.folder(spec, case)
        self._made.pop(folder, None)
        delete_cache(str(folder.absolute()))
        shutil.rmtree(folder, ignore_errors=True)


# ── what became of what was said ────────────────────────────────────────────────────────────────


def written_of(memory: Memory, case: Case) -> dict[str, Any]:
    """Return counts of a library that was just made from a case (docs/BENCHMARKS.md, What was written);
    "uncited" are ids of turns."""
    view = memory.view
    turns = {place.seq: place.entry.fields.get("turn") for place in view.entries("evidence")}
    gold = frozenset(turn for question in case.questions for turn in question.turns)
    cited = {turns.get(seq) for seq in view.cited}
    live = [place for place in view.entries() if place.doc_id == CURRENT or place.doc_id.startswith(TOPICS)]
    moves = (row for receipt in memory.receipts() for row in receipt.rows)
    discarded = {row.seq for row in moves if row.now.startswith(ARCHIVE)}
    extracted = [place.entry for place in live if place.entry.origin]
    times = [label for entry in extracted for label in _times(entry)]
    return {
        "gold": len(gold),
        "uncited": sorted(gold - cited),
        "entries": len(extracted),
        "verbatim": sum(entry.fields.get("by") != "model" for entry in extracted),
        "discarded": len(discarded),
        "undone": sum(place.seq in discarded for place in live),
        **{label: times.count(label) for label in ("relative", "dated", "unsettled")},
    }


def _times(entry: Entry) -> list[str]:
    """What an entry counts as: nothing where its words name no day but its own, or name it whole."""
    said = day_of(entry.time)
    found = [] if said is None else mentions(entry.text, said)
    found = [one for one in found if one.spans != ((said, said),) and not set("0123456789") & set(one.words)]
    if not found:
        return []
    if "when" in entry.fields:
        return ["relative", "dated"]
    is_settled = len({one.spans for one in found}) == 1 and len(found[0].spans) == 1
    return ["relative"] if is_settled else ["relative", "unsettled"]
