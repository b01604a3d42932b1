"""Grouping facts by topic without a model: adjacent messages that hold together, then groups that are alike.

After TextTiling (Hearst 1997): a topic ends where the words of the facts before and after a gap differ
most. What was talked about twice is joined again by its salient terms. Standing next to each other makes
no topic: facts of a group share terms or reply to each other, and facts of different days share a telling
one. What fits nowhere is gathered by day.
"""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any

from infinimem.llm.offline.lexicon import content_terms
from infinimem.llm.offline.salience import Corpus, similarity, title
from infinimem.terms import MONTHS

WINDOW = 4
"""Facts on each side of a gap that are compared."""
SMALLEST, LARGEST = 5, 20
"""Facts of a topic, where there are enough."""
ALIKE = 0.16
"""Cosine from which two groups are about the same."""
TELLING = 0.1
"""A term in up to this share of the facts, or in half a dozen, ties facts of different days together."""
UNSORTED = "Unsorted"

_REPLY = re.compile(
    r"\W*(?:(?:it|its|that|this|these|those|they|them|their|he|him|his|she|her|you|your|yes|yeah|yep|yup|no"
    r"|nope|ok|okay|sure|right|exactly|thanks|thank|wow|whoa|oh|aww?|haha|lol|congrats|congratulations|cool"
    r"|nice|great|awesome|amazing|absolutely|definitely|totally|agreed|glad|sorry|so|such|same|me too|good"
    r"|sounds|there|then|well|hey|hi|hello)(?:['’]\w+)?|(?:noted|got it|will do|of course|corrected)\b)"
    r"(?![\w'’])",
    re.IGNORECASE,
)
_DAY = re.compile(r"(\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])")
_NOTES = re.compile(
    rf"(?:notes of \d{{1,2}} (?:{'|'.join(MONTHS)}) \d{{4}}|{UNSORTED}|Small talk)(?: \d+)?", re.IGNORECASE
)


def rewrite(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `rewrite`."""
    facts = variables["facts"]
    names = sorted({fact["speaker"] for fact in facts if fact.get("speaker")})
    days = [day_of(fact.get("time")) for fact in facts]
    groups = titled_groups([fact["text"] for fact in facts], names, days, _answers(facts))
    return {
        "topics": [{"title": name, "fact_ids": [facts[i]["id"] for i in group]} for name, group in groups]
    }


def titled_groups(
    texts: Sequence[str],
    names: Collection[str] = (),
    days: Sequence[str] = (),
    answers: Collection[int] = (),
) -> list[tuple[str, list[int]]]:
    """Group texts by topic.

    Args:
        texts: of the facts.
        names: of those who speak.
        days: of the facts, as YYYY-MM-DD or empty; none where no day is known.
        answers: indexes of the facts that answer the one before.

    Returns:
        Title and members (indexes, ascending) of each group, in the order of their first member. Titles
        differ from each other; every index is in one group.
    """
    corpus = Corpus(texts, names)
    days = days or [""] * len(texts)
    kept: list[list[int]] = []
    loose: list[int] = []
    for group in _groups(corpus, days, answers):
        if len(group) > 1 and corpus.thread(group):
            kept.append(group)
        else:
            loose += group
    first = {group[0]: title(corpus.thread(group)) for group in kept}
    loose = _attached(corpus, kept, loose, days, answers)
    taken: Counter[str] = Counter()
    named = []
    for group in sorted([*kept, *_gathered(loose, days)], key=lambda group: group[0]):
        name = first.get(group[0]) or _leftover(corpus, group, days)
        if taken[name] and (month := _date(min(days[i] for i in group)).partition(" ")[2]):
            name = f"{name}, {month}"
        taken[name] += 1
        named.append((name if taken[name] == 1 else f"{name} {taken[name]}", group))
    return named


def _answers(facts: Sequence[Mapping[str, Any]]) -> set[int]:
    """Which facts answer the one before: an assistant's what it was told, anybody's the other's question."""
    found = set()
    for i, (before, fact) in enumerate(pairwise(facts), 1):
        told = fact.get("source") == "AI" and before.get("source") != "AI"
        asked = before["text"].rstrip().endswith("?") and any(content_terms(before["text"]))
        other = (before.get("source"), before.get("speaker")) != (fact.get("source"), fact.get("speaker"))
        if told or (asked and other):
            found.add(i)
    return found


def continues(text: str) -> bool:
    """Whether a message replies to the one before or points at it: "It is green", "Thanks!", "She won"."""
    return _REPLY.match(text) is not None


def is_leftover(name: str) -> bool:
    """Whether a title, or an id made of it, is that of what fitted nowhere."""
    return _NOTES.fullmatch(name.rpartition("/")[2].replace("-", " ")) is not None


def day_of(time: str | None) -> str:
    """The date of a time, or nothing where it has none."""
    found = _DAY.match(time or "")
    return found[0] if found else ""


def _leftover(corpus: Corpus, group: Sequence[int], days: Sequence[str]) -> str:
    """A title for what shares nothing: the day; of what stands alone on its day, what it tells most of. No
    word of one fact names others: without days they are unsorted."""
    day = days[group[0]]
    nouns = corpus.nouns(group, 1)
    if day and (days.count(day) > 1 or not nouns):
        return f"Notes of {_date(day)}"
    return title(nouns if len(group) == 1 else ()) or UNSORTED


def _date(day: str) -> str:
    """ "14 May 2024"."""
    year, month, date = day.split("-") if day else ("", "0", "0")
    return f"{int(date)} {MONTHS[int(month) - 1]} {year}" if day else ""


def _attached(
    corpus: Corpus,
    kept: Sequence[list[int]],
    loose: Iterable[int],
    days: Sequence[str],
    answers: Collection[int],
) -> list[int]:
    """Replies to the group of what they reply to; what is left over."""
    home = {i: group for group in kept for i in group}
    left = []
    for i in sorted(loose):
        group = home.get(i - 1)
        if group and len(group) < LARGEST and _replies(corpus, days, answers, i):
            group.append(i)
            group.sort()
            home[i] = group
        else:
            left.append(i)
    return left


def _gathered(loose: Iterable[int], days: Sequence[str]) -> list[list[int]]:
    """What fits nowhere, a group a day; without days in groups that are not too large."""
    by_day: dict[str, list[int]] = {}
    for i in sorted(loose):
        by_day.setdefault(days[i], []).append(i)
    return [*_bundled(by_day.pop("", [])), *by_day.values()]


def _groups(corpus: Corpus, days: Sequence[str], answers: Collection[int]) -> list[list[int]]:
    count = len(corpus.texts)
    if count < 2:
        return [[0]] if count else []
    segments = _segments(_cohesion(corpus), count)
    return _joined(
        corpus, [unit for segment in segments for unit in _connected(corpus, segment, days, answers)], days
    )


def _connected(
    corpus: Corpus, members: Sequence[int], days: Sequence[str], answers: Collection[int]
) -> list[list[int]]:
    """A stretch of facts, taken apart where nothing holds it together but standing in a row."""
    parts: list[list[int]] = []
    for i in members:
        tied = [
            part
            for part in parts
            if any(_tied(corpus, days, i, j) for j in part)
            or (part[-1] == i - 1 and _replies(corpus, days, answers, i))
        ]
        parts = [part for part in parts if part not in tied]
        parts.append(sorted([i, *(j for part in tied for j in part)]))
    return parts


def _replies(corpus: Corpus, days: Sequence[str], answers: Collection[int], i: int) -> bool:
    """Whether a fact continues the one before it on the same day."""
    if not i or not _same_day(days[i], days[i - 1]):
        return False
    return i in answers or not corpus.terms[i] or continues(corpus.texts[i])


def _same_day(one: str, other: str) -> bool:
    return one == other or not one or not other


def _tied(corpus: Corpus, days: Sequence[str], one: int, other: int) -> bool:
    shared = set(corpus.terms[one]).intersection(corpus.terms[other])
    return bool(shared) and (_same_day(days[one], days[other]) or corpus.telling(shared, TELLING))


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


def _joined(corpus: Corpus, groups: list[list[int]], days: Sequence[str]) -> list[list[int]]:
    """Join the most alike groups first, as long as they are alike and no group grows too large.

    Groups that are too small to stand alone go to whoever is nearest, what was said next to them above all.
    """
    members = dict(enumerate(groups))
    vectors = {name: corpus.vector(group) for name, group in members.items()}
    dates = {name: {days[i] for i in group} - {""} for name, group in members.items()}
    heap: list[tuple[float, int, int]] = []

    def offer(one: int, two: int) -> None:
        alike = similarity(vectors[one], vectors[two])
        if alike <= 0 or not _may_join(one, two):
            return
        small = min(len(members[one]), len(members[two])) < SMALLEST
        if small and members[one][0] <= members[two][-1] + 1 and members[two][0] <= members[one][-1] + 1:
            alike += ALIKE / 2
        if alike >= ALIKE or small:
            heapq.heappush(heap, (-alike, one, two))

    def _may_join(one: int, two: int) -> bool:
        if not dates[one] or not dates[two] or len(dates[one] | dates[two]) == 1:
            return True
        return corpus.telling(vectors[one].keys() & vectors[two].keys(), TELLING)

    for one, two in combinations(members, 2):
        offer(one, two)
    while heap:
        _, one, two = heapq.heappop(heap)
        if one not in members or two not in members or len(members[one]) + len(members[two]) > LARGEST:
            continue
        new = len(vectors)  # a name that was never used
        members[new] = sorted(members.pop(one) + members.pop(two))
        vectors[new] = corpus.vector(members[new])
        dates[new] = dates[one] | dates[two]
        for other in members:
            if other != new:
                offer(other, new)
    return list(members.values())


def _bundled(members: Collection[int]) -> list[list[int]]:
    """Members in their order, in groups that are not too large."""
    ordered = sorted(members)
    return [ordered[i : i + LARGEST] for i in range(0, len(ordered), LARGEST)]
