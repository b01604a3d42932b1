"""Grouping facts by topic without a model: adjacent messages that hold together, then groups that are alike.

After TextTiling (Hearst 1997): a topic ends where the words of the facts before and after a gap differ
most. What was talked about twice is joined again by its salient terms. Facts that do not hang together
with their neighbours (a list of statements) are grouped one by one by the terms that they share.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any

from infinimem.llm.offline.duplicates import find_duplicates
from infinimem.llm.offline.salience import Corpus, similarity, title

WINDOW = 4
"""Facts on each side of a gap that are compared."""
SMALLEST, LARGEST = 5, 20
"""Facts of a topic, where there are enough."""
ALIKE = 0.16
"""Cosine from which two groups are about the same."""
LONG_LIST = 50
"""Statements from which groups as small as two would be too many."""
THREAD = 0.04
"""Mean cosine of neighbours from which facts follow a thread; conversations have twice as much."""


def rewrite(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `rewrite`; no contradiction is claimed."""
    facts = variables["facts"]
    duplicates = find_duplicates(facts)
    gone = {pair["discarded"] for pair in duplicates}
    live = [fact for fact in facts if fact["id"] not in gone]
    names = sorted({fact["speaker"] for fact in live if fact.get("speaker")})
    topics = [
        {"title": name, "fact_ids": [live[i]["id"] for i in group]}
        for name, group in titled_groups([fact["text"] for fact in live], names)
    ]
    return {"topics": topics, "duplicates": duplicates, "superseded": []}


def titled_groups(texts: Sequence[str], names: Collection[str] = ()) -> list[tuple[str, list[int]]]:
    """Group texts by topic.

    Args:
        texts: of the facts.
        names: of those who speak.

    Returns:
        Title and members (indexes, ascending) of each group, in the order of their first member. Titles
        differ from each other; every index is in one group.
    """
    corpus = Corpus(texts, names)
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
    if count < 2:
        return [[0]] if count else []
    if _follows_a_thread(corpus):
        return _joined(corpus, _segments(_cohesion(corpus), count), neighbours=True)
    if count > LONG_LIST:
        return _by_shared_terms(corpus)
    groups = _joined(corpus, [[i] for i in range(count)], neighbours=False)
    return [group for group in groups if len(group) > 1] + _bundled([g[0] for g in groups if len(g) == 1])


def _follows_a_thread(corpus: Corpus) -> bool:
    """Whether neighbours have words in common, as in a conversation, and not as in a list of statements."""
    alone = [corpus.vector([i]) for i in range(len(corpus.texts))]
    alike = [similarity(one, two) for one, two in pairwise(alone)]
    return sum(alike) / len(alike) >= THREAD


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


def _joined(corpus: Corpus, groups: list[list[int]], *, neighbours: bool) -> list[list[int]]:
    """Join the most alike groups first, as long as they are alike and no group grows too large.

    With `neighbours`, groups that are too small to stand alone go to whoever is nearest, what was said
    next to them above all.
    """
    members = dict(enumerate(groups))
    vectors = {name: corpus.vector(group) for name, group in members.items()}
    heap: list[tuple[float, int, int]] = []

    def offer(one: int, two: int) -> None:
        alike = similarity(vectors[one], vectors[two])
        small = neighbours and any(
            len(group) < SMALLEST for name in (one, two) for group in (members[name], vectors[name])
        )
        if small and members[one][0] <= members[two][-1] + 1 and members[two][0] <= members[one][-1] + 1:
            alike += ALIKE / 2
        if alike >= ALIKE or (small and alike > 0):
            heapq.heappush(heap, (-alike, one, two))

    for one, two in combinations(members, 2):
        offer(one, two)
    while heap:
        _, one, two = heapq.heappop(heap)
        if one not in members or two not in members or len(members[one]) + len(members[two]) > LARGEST:
            continue
        new = len(groups) + len(vectors)  # a name that was never used
        members[new] = sorted(members.pop(one) + members.pop(two))
        vectors[new] = corpus.vector(members[new])
        for other in members:
            if other != new:
                offer(other, new)
    return list(members.values())


def _by_shared_terms(corpus: Corpus) -> list[list[int]]:
    """Facts to the terms that most of them share, term by term."""
    left = set(range(len(corpus.texts)))
    groups: list[list[int]] = []
    while left:
        spread = Counter(term for i in left for term in corpus.terms[i])
        term, size = min(spread.items(), key=lambda item: (-item[1], item[0]), default=("", 0))
        if size < SMALLEST:
            break
        group = [i for i in left if term in corpus.terms[i]]
        groups += _bundled(group)
        left -= set(group)
    return groups + _bundled(left)


def _bundled(members: Collection[int]) -> list[list[int]]:
    """Members in their order, in groups that are not too large."""
    ordered = sorted(members)
    return [ordered[i : i + LARGEST] for i in range(0, len(ordered), LARGEST)]
