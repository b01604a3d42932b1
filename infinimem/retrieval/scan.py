"""Which lines of a packed text match: plain texts that a line must hold are found first, then the pattern is.

There are several ways to the same lines, and which is the fastest depends on how often the texts stand there;
each is tried on one stretch, and the fastest goes over the rest. A chunk is whole lines, about a megabyte.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, islice
from typing import TYPE_CHECKING

from infinimem.retrieval.grep import Pattern, Search, spans

if TYPE_CHECKING:
    from infinimem.retrieval.packed import Segment

Lines = tuple[int, list[int]]
"""How many lines match, and a place in each of the first ones."""
Way = Callable[["Segment", int, int, int], Lines]
"""From a segment, the beginning and end of a chunk, and how many places are wanted."""

_Probe = tuple[Search, int, bytes]
"""A search, where in the text it begins, and the text to be there; b"" where it finds all of it."""

DENSE = 1 / 1000
"""So many places a byte of text: beyond it, looking at each takes longer than the pattern itself."""
_RAREST = 6
_COMMON = 3


class Scanner:
    """One search of a pattern.

    Args:
        pattern: what is looked for; its steps are not rationed.
        sample: some of the text, lower-cased, to choose by.
    """

    def __init__(self, pattern: Pattern, sample: bytes) -> None:
        self.pattern = pattern
        self.is_plain = pattern.literal is not None and pattern.ignore_case
        sets = [frozenset([pattern.literal])] if pattern.literal is not None else pattern.required_literals
        self._ways: list[Way] = [self._by_texts(_probes(texts, sample)) for texts in sets]
        if self.is_plain:
            self._ways.append(self._all_at_once)
        else:
            self._ways.append(self._by_pattern)

    def settle(self, segment: Segment, start: int, end: int) -> None:
        """Keep the way that takes the least time over a stretch of text."""
        if len(self._ways) > 1:
            times = []
            for way in self._ways:
                before = time.thread_time_ns()
                way(segment, start, end, 1)
                times.append(time.thread_time_ns() - before)
            self._ways = [self._ways[times.index(min(times))]]

    def lines(self, segment: Segment, start: int, end: int, other: bool, most: int) -> Lines:
        """The lines of a chunk.

        Args:
            segment: where it is.
            start, end: the chunk.
            other: whether letters may stand there in forms that the texts do not have.
            most: how many places are wanted.
        """
        way = self._by_pattern if other and self.pattern.ignore_case else self._ways[0]
        return way(segment, start, end, most)

    def _by_texts(self, probes: Sequence[_Probe]) -> Way:
        """Look at each line where one of the texts stands."""
        pattern, is_plain = self.pattern, self.is_plain

        def says(segment: Segment, start: int, end: int) -> bool:
            line = segment.text[start:end] if pattern.ignore_case else segment.original(start, end)
            return pattern.line.search(line) is not None

        def way(segment: Segment, start: int, end: int, most: int) -> Lines:
            text, looks = segment.text, int((end - start) * DENSE) + 50
            found: dict[int, None] = {}
            for part, offset, whole in probes:
                done = at = start  # `done` is the end of the last line that was looked at
                while (hit := part(text, at, end)[0]) >= 0:
                    looks -= 1
                    if looks < 0:
                        rest = self._all_at_once if is_plain else self._by_pattern
                        return rest(segment, start, end, most)
                    place = hit - offset
                    at = hit + 1
                    if place < done or text[place : place + len(whole)] != whole:
                        continue
                    first = text.rfind(b"\n", start, place) + 1 or start
                    at = done = text.find(b"\n", place, end) % (end + 1)  # the end, where a file is garbled
                    if is_plain or first in found or says(segment, first, done):
                        found[first] = None
            places = sorted(found) if len(probes) > 1 else list(found)
            return len(places), places[:most]

        return way

    def _by_pattern(self, segment: Segment, start: int, end: int, most: int) -> Lines:
        """Run the pattern itself over all of it."""
        folded = self.pattern.ignore_case and self.pattern.text is not None
        text = segment.text[start:end] if folded else segment.original(start, end)
        places = self.pattern.lines(text)
        first = [start + at for at in islice(places, most)]
        return len(first) + sum(1 for _ in places), first

    def _all_at_once(self, segment: Segment, start: int, end: int, most: int) -> Lines:
        """Find a frequent text in all of it at once; looking at place after place would take long."""
        import numpy as np

        literal = self.pattern.literal or b""
        text = np.frombuffer(segment.text, np.uint8, end - start, start)
        size = len(text) - len(literal) + 1
        if size <= 0:
            return 0, []
        here = text[:size] == literal[0]
        for at in range(1, min(_COMMON, len(literal))):
            here &= text[at : at + size] == literal[at]
        places = here.nonzero()[0]
        for at in range(_COMMON, len(literal)):
            places = places[text[places + at] == literal[at]]
        if not len(places):
            return 0, []
        lines = np.searchsorted((text == ord("\n")).nonzero()[0], places)
        firsts = places[np.concatenate([[True], lines[1:] != lines[:-1]])]
        return len(firsts), (firsts[:most] + start).tolist()


def _probes(texts: Iterable[bytes], sample: bytes) -> list[_Probe]:
    """What finds any of the texts.

    Texts that begin alike are looked for together: RE2 is fast where a pattern begins with plain text.
    """
    import re2

    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.never_capture = True
    groups: list[list[bytes]] = []
    for text in sorted(texts):
        if groups and text[:_COMMON] == groups[-1][0][:_COMMON]:
            groups[-1].append(text)
        else:
            groups.append([text])
    probes: list[_Probe] = []
    for group in groups:
        if len(group) == 1:
            first, last = _fastest(group[0], sample)
            part = re2.escape(group[0][first:last])
            probes.append((spans(re2.compile(part, options)), first, group[0]))
        else:
            common = len(_shared(group[0], group[-1]))
            rest = b"|".join(re2.escape(text[common:]) for text in group)
            part = re2.escape(group[0][:common]) + b"(?:" + rest + b")"
            probes.append((spans(re2.compile(part, options)), 0, b""))
    return probes


def _shared(one: bytes, other: bytes) -> bytes:
    """The common beginning."""
    size = next((at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), None)
    return one[: min(len(one), len(other)) if size is None else size]


def _fastest(text: bytes, sample: bytes) -> tuple[int, int]:
    """The part of a text that is found fastest: RE2 stops where its two ends stand so far apart."""
    import numpy as np

    data = np.frombuffer(sample, np.uint8)
    counts = np.bincount(data, minlength=256)
    rare = sorted(sorted(range(len(text)), key=lambda at: (counts[text[at]], at))[:_RAREST])

    def cost(pair: tuple[int, int]) -> float:
        first, last = pair
        there = data[: len(data) - last + first] == text[first]
        stops = np.count_nonzero(there & (data[last - first :] == text[last]))
        return float(stops) + 200.0 * sample.count(text[first : last + 1])

    first, last = min(combinations(rare, 2), key=cost, default=(0, len(text) - 1))
    return first, last + 1
