"""Measures of rankings and of answers.

A piece of a ranking is scored by the ids that it holds or cites; an id counts where it comes first, relevance
is binary. Sources: recall, hit and nDCG as in Manning and others, Introduction to Information Retrieval
(2008), chapter 8; nDCG with the discount 1/log2(rank + 1) of Järvelin and Kekäläinen (2002); token F1 and
its rules by category as LoCoMo scores (Maharana and others, 2024); BLEU of Papineni and others (2002) for
single words; ROUGE-L of Lin (2004); the substring match of MemoryAgentBench.

A model may grade answers, too; offline, rules stand in for it, to try a run out (docs/BENCHMARKS.md).
"""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache, partial
from importlib import import_module
from statistics import fmean
from types import SimpleNamespace
from typing import Any

from infinimem.errors import ModelNotConfigured
from infinimem.evaluation.model import Case, Found, Question
from infinimem.llm.base import LLM
from infinimem.llm.offline.tell import says_nothing
from infinimem.llm.tasks import TEXT, list_of, task
from infinimem.model import Usage
from infinimem.terms import STOP_WORDS

CUTS = (5, 10, 20, 50)
FIRST = 20
"""Pieces of which it is told how many words of the answer each holds; xMemory's Naive RAG shows so many."""
HITS = ("1-hit", "2-hit", "multi-hit")
"""The shares of these that hold one such word, two, and more."""

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_ARTICLES_AND = re.compile(r"\b(?:a|an|the|and)\b")
_WORDS = re.compile(r"\w+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
Piece = tuple[Collection[Hashable], int]
"""The ids that a piece of evidence holds, and its tokens."""


# ── rankings ────────────────────────────────────────────────────────────────────────────────────


def reciprocal_rank(ranked: Iterable[Hashable], gold: Collection[Hashable]) -> float:
    """Return 1 over the rank of the first id in `gold`, or 0. Its mean is the MRR."""
    return next((1 / rank for rank, item in enumerate(ranked, 1) if item in gold), 0.0)


def measures(
    ranked: Iterable[Hashable], gold: Collection[Hashable], cuts: Iterable[int] = CUTS, label: str = ""
) -> dict[str, float]:
    """Return all measures of a ranking by rank, their names behind `label`.

    For each k "R@k" (recall), "N@k" (nDCG), "hit@k" (whether any is there), "all@k" (whether all are). An id
    that comes twice counts where it comes first; `gold` is not empty.
    """
    hits = [item in gold for item in dict.fromkeys(ranked)]
    scores = {}
    for k in cuts:
        share = sum(hits[:k]) / len(gold)
        gained = sum(1 / math.log2(rank + 2) for rank, hit in enumerate(hits[:k]) if hit)
        ideal = sum(1 / math.log2(rank + 2) for rank in range(min(len(gold), k)))
        scores[f"{label}R@{k}"] = share
        scores[f"{label}N@{k}"] = gained / ideal
        scores[f"{label}hit@{k}"] = float(share > 0)
        scores[f"{label}all@{k}"] = float(share == 1)
    return scores


def within(pieces: Iterable[Piece], gold: Collection[Hashable], budget: int) -> float:
    """Return the share of `gold` in the pieces that are read before one exceeds the budget of tokens."""
    seen: set[Hashable] = set()
    for ids, tokens in pieces:
        budget -= tokens
        if budget < 0:
            break
        seen.update(ids)
    return len(seen & set(gold)) / len(gold)


def tokens_until(pieces: Iterable[Piece], gold: Collection[Hashable]) -> int | None:
    """Return the tokens read until all of `gold` was seen, or None if the pieces never hold it all."""
    missing, read = set(gold), 0
    for ids, tokens in pieces:
        if not missing:
            break
        read += tokens
        missing.difference_update(ids)
    return None if missing else read


# ── answers ─────────────────────────────────────────────────────────────────────────────────────


def normal(text: str) -> str:
    """Return a text in lower case, without punctuation and articles: as MemoryAgentBench compares."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def holds(text: str, expected: Iterable[str]) -> bool:
    """Return whether one of the expected answers is a part of the text, both as `normal` leaves them."""
    whole = normal(text)
    return any(wanted in whole for answer in expected if (wanted := normal(answer)))


@lru_cache(maxsize=1 << 14)
def stems(text: str) -> tuple[str, ...]:
    """Return the words that LoCoMo compares: NLTK's Porter stems, without punctuation, articles and "and"."""
    plain = _ARTICLES_AND.sub(" ", text.lower().translate(_PUNCTUATION))
    return tuple(map(_stem, plain.split()))


@lru_cache(maxsize=1 << 16)
def _stem(word: str) -> str:
    return str(package("nltk.stem.porter").PorterStemmer().stem(word))


def package(module: str) -> Any:
    """Return a module that only the bench needs; ModelNotConfigured, which ends a run, if there is none."""
    try:
        return import_module(module)
    except ImportError as error:
        what = module.partition(".")[0]
        raise ModelNotConfigured(f"the bench needs {what}: pip install 'infinimem[bench]'") from error


def token_f1(answer: str, expected: str) -> float:
    """Return the harmonic mean of precision and recall of words, each counted as often as both have it."""
    given, wanted = stems(answer), stems(expected)
    common = (Counter(given) & Counter(wanted)).total()
    return 2 * common / (len(given) + len(wanted)) if common else 0.0


def locomo_f1(answer: str, expected: str, category: str) -> float:
    """Return LoCoMo's F1: of "open-domain" to what is expected before a ";", of "multi-hop" the mean over
    the parts expected, split at commas, of each one's best F1."""
    if category == "multi-hop":
        given = answer.split(",")
        return fmean([best(token_f1, wanted, given) for wanted in expected.split(",")])
    if category == "open-domain":
        expected = expected.partition(";")[0].strip()
    return token_f1(answer, expected)


def words(text: str) -> list[str]:
    """Return the runs of letters and digits in lower case: what BLEU and ROUGE count here."""
    return _WORDS.findall(text.lower())


def bleu1(answer: str, expected: str) -> float:
    """Return BLEU of single words, not smoothed: clipped precision, times a penalty on short answers."""
    bleu = package("nltk.translate.bleu_score").sentence_bleu
    return float(bleu([words(expected)], words(answer), weights=(1,)))


def rouge_l(answer: str, expected: str) -> float:
    """Return ROUGE-L: F of the longest common subsequence of words, precision and recall alike."""
    rouge, counted = package("rouge_score.rouge_scorer"), SimpleNamespace(tokenize=words)
    scores = rouge.RougeScorer(["rougeL"], tokenizer=counted).score(expected, answer)
    return float(scores["rougeL"].fmeasure)


def best(measure: Callable[[str, str], float], answer: str, expected: Iterable[str]) -> float:
    return max((measure(answer, wanted) for wanted in expected), default=0.0)


# ── by data sets ──────────────────────────────────────────────────────────────────────────────────


def by_turn(
    case: Case, question: Question, found: Sequence[Found], budgets: Sequence[int]
) -> dict[str, float]:
    """Measures of the turns that were found, by rank and as they are read; none without evidence.

    "tokens to words" and "blocks to words": what is read until each telling word of the expected answer was
    seen; of the first pieces the shares that hold one of them, two, and more. Source: xMemory (arXiv
    2602.02007), section 5.2 (evidence density and coverage).
    """
    if not question.scored:
        return {}
    scores = measures([turn for item in found for turn in item.turns], question.turns)
    scores |= _read_within(found, question.turns, budgets)
    words = {word for answer in question.expected[:1] for word in stems(answer)}
    telling = words.difference(*(stems(word) for word in STOP_WORDS))
    if not telling:
        return scores
    hits = [telling.intersection(stems(item.text)) for item in found]
    tokens = [item.tokens for item in found]
    for unit, sizes in (("tokens", tokens), ("blocks", [1] * len(found))):
        needed = tokens_until(zip(hits, sizes, strict=True), telling)
        scores |= {} if needed is None else {f"{unit} to words": float(needed)}
    counts = Counter(min(len(words), len(HITS)) for words in hits[:FIRST])
    return scores | {name: counts[at] / max(counts.total(), 1) for at, name in enumerate(HITS, 1)}


def by_session(case: Case, question: Question, found: Sequence[Found]) -> dict[str, float]:
    """Return measures of a ranking; none for questions about what was never said.

    "R@k" and so on: sessions, whoever spoke, gold as the file names it. "own R@k": sessions as LongMemEval's
    own scorer sees them: what the user said, gold only with a label on it; "own turn R@k": turns likewise.
    "turns in 1024" and so on: of all labelled turns, how many are read.
    """
    if not question.answerable or not question.sessions:
        return {}
    turn_of = {turn.turn: turn for turn in case.turns}
    ranked = [turn_of[name] for item in found for name in item.turns if name in turn_of]
    scores = measures([turn.session for turn in ranked], question.sessions)
    if question.scored:
        users = [turn for turn in ranked if turn.role == "user"]
        gold = frozenset(name for name in question.turns if turn_of[name].role == "user")
        sessions = frozenset(turn_of[name].session for name in gold)
        scores |= measures([turn.session for turn in users], sessions, label="own ")
        scores |= measures([turn.turn for turn in users], gold, label="own turn ")
    if question.turns:
        scores |= _read_within(found, question.turns, (1024, 2048, 4096), "turns")
    return scores


def _read_within(
    found: Sequence[Found], gold: frozenset[str], budgets: Iterable[int], label: str = "R"
) -> dict[str, float]:
    """Measures of what a reader has read: "R in 512", …, and "tokens to all" where all of `gold` is found."""
    pieces = [(item.turns, item.tokens) for item in found]
    scores = {f"{label} in {budget}": within(pieces, gold, budget) for budget in budgets}
    needed = tokens_until(pieces, gold)
    return scores if needed is None else {**scores, "tokens to all": float(needed)}


def by_words(question: Question, answer: str, f1: Callable[[str, str], float] = token_f1) -> dict[str, float]:
    """Measures of an answer's words; of a question about what was never said, whether the answer says so."""
    if not question.answerable:
        return {"F1": float(says_nothing(answer))}
    measures = {"F1": f1, "BLEU-1": bleu1, "ROUGE-L": rouge_l}
    return {name: best(of, answer, question.expected) for name, of in measures.items()}


def locomo_words(question: Question, answer: str) -> dict[str, float]:
    """Token F1 by the rule of the category; BLEU-1 and ROUGE-L where there is an answer."""
    return by_words(question, answer, partial(locomo_f1, category=question.category))


def by_choice(question: Question, answer: str) -> Mapping[str, float]:
    """Whether the answer names the letter that comes first in `expected`, or repeats its choice."""
    named = re.match(r"\W*([a-z])(?:[).:]|\W*$)", answer.lower()) or re.search(r"\(([a-z])\)", answer.lower())
    letter = named[1] if named else ""
    return {"choice": float(letter == question.expected[0] or holds(answer, question.expected[1:]))}


def unscored(*_: object) -> dict[str, float]:
    """Nothing: the data set names no evidence, or the measure is a judge's, or one of the ranking alone."""
    return {}


# ── by a judge ──────────────────────────────────────────────────────────────────────────────────

_YES = {"type": "boolean"}
_VERDICT = partial(task, variables="question kind expected answer", max_tokens=256, reason=TEXT, correct=_YES)

JUDGE = _VERDICT("judge_strict", rule="tell:strict")
"""Whether an answer says all of any of the wordings `expected`, by the rules for its `kind` (`_KINDS`)."""

JUDGE_LENIENT = _VERDICT("judge_lenient", rule="tell:lenient")
"""The same under the rule of published tables, which lets vague answers pass."""

JUDGE_RUBRIC = task(
    "judge_rubric",
    "question kind rubric answer",
    1024,
    "tell:rubric",
    verdicts=list_of(item=TEXT, reason=TEXT, met=_YES),
)
"""Which items of a rubric, [{"id", "text"}, …] with ids from 1, an answer meets; `kind`: "list", too."""

TASKS = (JUDGE, JUDGE_LENIENT, JUDGE_RUBRIC)

_RULES = {"strict": JUDGE, "lenient": JUDGE_LENIENT}
_TELLING = 10
"""Questions of which hardly any two methods get all right, or none."""


def grades(question: Question) -> list[str]:
    """Return the grades that a judge gives."""
    if question.rubric:
        return ["judge summary" if question.kind == "summary" else "judge rubric"]
    if not question.kind:
        return []
    return ["judge strict", "judge lenient", *(["judge parts"] if question.parts else ())]


def judge(llm: LLM, question: Question, answer: str) -> tuple[dict[str, Any], dict[str, float]]:
    """Grade an answer: return the raw verdicts by rule, and the scores of those that could be read.

    Where its words settle it no model is asked; the generous rule is asked for only where the strict one said
    no, for it lets pass whatever that does. All items of a rubric are asked at once, and the score is the
    share that is met; so are, for a measure of their own, the parts of a list of which an answer gives not
    all. A verdict has "correct", None for a reply that could not be read, "reason", "text", "usage".
    """
    kind = question.kind if question.answerable else "unanswerable"
    told = {"question": question.text, "kind": kind, "answer": answer}
    if not question.kind:
        return {}, {}
    if kind == "summary":
        return _summary(llm, question, answer)
    if question.rubric:
        return _by_items(llm, told, "rubric", question.rubric)
    if question.answerable:
        said = normal(answer)
        plain = "says what is expected" if said and said in map(normal, question.expected) else ""
    else:
        plain = "says nothing, and nothing is expected" if says_nothing(answer) else ""
    if plain:
        verdict = {"correct": True, "reason": plain, "text": "", "usage": asdict(Usage())}
        return dict.fromkeys(_RULES, verdict), dict.fromkeys(grades(question), 1.0)
    verdicts: dict[str, Any] = {}
    for rule, asked in _RULES.items():
        reply = llm.complete(asked, {**told, "expected": list(question.expected)})
        verdict = {"correct": None, "reason": "", "text": reply.text, "usage": asdict(reply.usage)}
        verdicts[rule] = {**verdict, **(reply.data or {"failure": reply.failure})}
        if verdicts[rule]["correct"]:
            verdicts = dict.fromkeys(_RULES, verdicts[rule]) | verdicts
            break
    known = {rule: one["correct"] for rule, one in verdicts.items() if one["correct"] is not None}
    scores = {f"judge {rule}": float(correct) for rule, correct in known.items()}
    if not question.parts:
        return verdicts, scores
    if known.get("strict"):
        return verdicts, scores | {"judge parts": 1.0}
    parts, share = _by_items(llm, told | {"kind": "list"}, "parts", question.parts)
    return verdicts | parts, scores | share


def _summary(llm: LLM, question: Question, answer: str) -> tuple[dict[str, Any], dict[str, float]]:
    """Fluency (0 or 1) times F1 of the key points that a summary has, and of its sentences that the expected
    one bears out. Source: MemoryAgentBench (2025), after HELMET."""
    verdicts: dict[str, Any] = {}
    shares: list[float] = []
    for rule, kind, text, items in (
        ("recall", "list", answer, question.rubric),
        ("precision", "list", " ".join(question.expected), _SENTENCE.split(answer.strip())),
        ("fluency", "fluent", answer, ["fluency"]),
    ):
        told = {"question": question.text, "kind": kind, "answer": text}
        verdict, share = _by_items(llm, told, rule, items)
        verdicts |= verdict
        shares += share.values()
    if len(shares) < 3:
        return verdicts, {}
    recall, precision, fluency = shares
    return verdicts, {"judge summary": fluency * 2 * precision * recall / ((precision + recall) or 1)}


def _by_items(
    llm: LLM, told: Mapping[str, Any], rule: str, wanted: Sequence[str]
) -> tuple[dict[str, Any], dict[str, float]]:
    """A reply that leaves out an item is none that could be read."""
    items = [{"id": str(number), "text": item} for number, item in enumerate(wanted, 1)]
    reply = llm.complete(JUDGE_RUBRIC, {**told, "rubric": items})
    verdict = {"text": reply.text, "usage": asdict(reply.usage), **(reply.data or {"failure": reply.failure})}
    met = {row["item"].strip("[]. "): bool(row["met"]) for row in verdict.get("verdicts", ())}
    if not met.keys() >= {item["id"] for item in items}:
        return {rule: {"failure": "SCHEMA_FAIL", **verdict}}, {}
    return {rule: verdict}, {f"judge {rule}": sum(met[item["id"]] for item in items) / len(items)}


def indifferent(methods: Mapping[str, Any]) -> str | None:
    """Say so of a judge that passed, or failed, every answer of every method, by its strict verdicts."""
    graded = [one for one in methods.values() if one["graded"]]
    means = {one["passed"] for one in graded}
    if len(graded) < 2 or min(one["graded"] for one in graded) < _TELLING or means not in ({0.0}, {1.0}):
        return None
    what = "passed" if 1.0 in means else "failed"
    return f"the judge {what} every answer of every method: its grades tell nothing, choose a better one"
