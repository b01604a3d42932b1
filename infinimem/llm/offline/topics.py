"""Grouping facts by topic without a model: adjacent messages that hold together, then groups that are alike.

After TextTiling (Hearst 1997): a topic ends where the words of the facts before and after a gap differ
most. What was talked about twice is joined again by its salient terms. Facts that do not hang together
with their neighbours (a list of statements) are grouped by the terms that they share.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from infinimem.llm.offline.duplicates import find_duplicates
from infinimem.llm.offline.lexicon import strip_ordinal
from infinimem.llm.offline.salience import Corpus, similarity, title

WINDOW = 4
"""Facts on each side of a gap that are compared."""
SMALLEST, LARGEST = 5, 25
"""Facts of a topic, where there are enough."""
ALIKE = 0.16
"""Cosine from which two groups are about the same."""
LOOSE = 0.02
"""Mean cohesion of neighbours below which there is no thread to follow."""


def rewrite(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `rewrite`; no contradiction is claimed."""
    facts = variables["facts"]
    duplicates = find_duplicates(facts)
    gone = {pair["discarded"] for pair in duplicates}
    live = [fact for fact in facts if fact["id"] not in gone]
    topics = [
        {"title": name, "fact_ids": [live[i]["id"] for i in group]}
        for name, group in titled_groups([fact["text"] for fact in live])
    ]
    return {"topics": topics, "duplicates": duplicates, "superseded": []}


def titled_groups(texts: Sequence[str]) -> list[tuple[str, list[int]]]:
    """Group texts by topic.

    Returns:
        Title and members (indexes, ascending) of each group, in the order of their first member. Titles
        differ from each other; every index is in one group.
    """
    corpus = Corpus(texts)
    groups = sorted(_groups(corpus), key=lambda group: group[0])
    titles: Counter[str] = Counter()
    named = []
    for group in groups:
        name = _name(corpus, group)
        for more in range(3, 6):
            if not titles[name]:
                break
            name = _name(corpus, group, more)
        titles[name] += 1
        named.append((name if titles[name] == 1 else f"{name} {titles[name]}", group))
    return named


def _name(corpus: Corpus, group: Sequence[int], parts: int = 2) -> str:
    return title(corpus.phrases(group, parts)) or "Small talk"


def _groups(corpus: Corpus) -> list[list[int]]:
    count = len(corpus.texts)
    if count <= SMALLEST:
        return [list(range(count))] if count else []
    gaps = _cohesion(corpus)
    if sum(gaps) / len(gaps) < LOOSE or _listed(corpus):
        return _by_shared_terms(corpus)
    return _join(corpus, _segments(gaps, count))


def _cohesion(corpus: Corpus) -> list[float]:
    """For the gap after each fact but the last: how alike its two sides are."""
    count = len(corpus.texts)
    return [
        similarity(
            corpus.vector(range(max(0, gap - WINDOW + 1), gap + 1)),
            corpus.vector(range(gap + 1, min(count, gap + 1 + WINDOW))),
        )
        for gap in range(count - 1)
    ]


def _segments(gaps: Sequence[float], count: int) -> list[list[int]]:
    """Cut at the gaps that lie deepest below the hills on their two sides, segments of two or more."""
    depths = []
    for i, gap in enumerate(gaps):
        left = right = gap
        for value in reversed(gaps[:i]):
            if value < left:
                break
            left = value
        for value in gaps[i + 1 :]:
            if value < right:
                break
            right = value
        depths.append(left + right - 2 * gap)
    mean = sum(depths) / len(depths)
    spread = math.sqrt(sum((depth - mean) ** 2 for depth in depths) / len(depths))
    cuts: set[int] = set()
    for i in sorted(range(len(depths)), key=lambda i: (-depths[i], i)):
        if depths[i] <= max(mean - spread / 2, 0):
            break
        if not cuts & {i - 1, i, i + 1}:
            cuts.add(i)
    ends = [*sorted(cuts), count - 1]
    starts = [0, *(end + 1 for end in ends[:-1])]
    return [list(range(start, end + 1)) for start, end in zip(starts, ends, strict=True)]


def _join(corpus: Corpus, groups: list[list[int]]) -> list[list[int]]:
    """Join the most alike groups first while they stay small enough, then the small ones to anybody."""
    groups = [group for group in groups if group]
    vectors = [corpus.vector(group) for group in groups]
    while len(groups) > 1:
        best = _best_pair(groups, vectors)
        if best is None:
            break
        one, two = best
        groups[one] = sorted(groups[one] + groups.pop(two))
        vectors.pop(two)
        vectors[one] = corpus.vector(groups[one])
    return groups


def _best_pair(groups: Sequence[list[int]], vectors: Sequence[Mapping[str, float]]) -> tuple[int, int] | None:
    best, pair = 0.0, None
    for one in range(len(groups)):
        for two in range(one + 1, len(groups)):
            size = len(groups[one]) + len(groups[two])
            if size > LARGEST:
                continue
            alike = similarity(vectors[one], vectors[two])
            small = min(len(groups[one]), len(groups[two]), len(vectors[one]), len(vectors[two])) < SMALLEST
            if small and two == one + 1:
                alike += ALIKE / 2  # what was said next to each other
            if alike > best and (small or alike >= ALIKE):
                best, pair = alike, (one, two)
    return pair


def _listed(corpus: Corpus) -> bool:
    """Whether most facts are one-line statements of a numbered list."""
    return sum(strip_ordinal(text) != text for text in corpus.texts) > 0.5 * len(corpus.texts)


def _by_shared_terms(corpus: Corpus) -> list[list[int]]:
    """Facts to the terms that most of them share, term by term."""
    left = set(range(len(corpus.texts)))
    terms = [{word.term for word in words} for words in corpus.words]
    groups: list[list[int]] = []
    while left:
        spread = Counter(term for i in left for term in terms[i])
        term, size = min(spread.items(), key=lambda item: (-item[1], item[0]), default=("", 0))
        if size < SMALLEST:
            break
        group = sorted(i for i in left if term in terms[i])
        groups += [group[i : i + LARGEST] for i in range(0, len(group), LARGEST)]
        left -= set(group)
    rest = sorted(left)
    return groups + [rest[i : i + LARGEST] for i in range(0, len(rest), LARGEST)]
