"""What is asked when speed is measured: words drawn from the text, questions that people asked, patterns."""

from __future__ import annotations

import json
import lzma
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from speed_libraries import SEED, Source

from infinimem.terms import STOP_WORDS

KINDS: Mapping[str, str] = {
    "one": "1 term",
    "three": "3 terms",
    "eight": "8 terms",
    "asked": "8 words as asked",
}
"""Names of the kinds of queries, and what a table calls them."""
MORE = 10
"""Queries of each kind beyond those asked for: they warm an engine up and are not measured."""

_WORD = re.compile(r"[^\W\d_]{4,20}")
_ASKED = range(8, 10)
"""Words of a question that is asked as it stands."""

PATTERNS: Mapping[str, tuple[Sequence[str], bool]] = {
    "any of three words": (("peanut|almond|cashew", "violin|guitar|piano", "Lisbon|Porto|Faro"), False),
    "expression": (
        (
            r"\b[A-Z][a-z]+ (moved|travelled|flew|went) to [A-Z][a-z]+",
            r"\d{1,2}:\d{2} (am|pm) on \d{1,2} [A-Z][a-z]+",
            r"https?://[^\s)]+/[a-z]+-\d{3,4}",
        ),
        False,
    ),
    "expression, any case": ((r"(my|our) (new|old) (dog|cat|car)", r"erc-?\d{3,4}"), True),
    "start or end of a line": ((r"^## .*202[34]", r"^- (Caroline|user): .*\?$", r";$"), False),
    "common word": (("because", "contract"), False),
    "nested repeats": ((r"(a+)+$", r"(a|aa)+$", r"(x+x+)+y", r"([a-z]+)*!$"), False),
}
"""Kinds of patterns with whether case is ignored; literals are drawn from the text and join them."""


def words(source: Source) -> list[str]:
    """The words of its paragraphs, with repeats, without function words, in order."""
    return [word for text in source.texts for word in content(text)]


def content(text: str) -> list[str]:
    """The words of a text that say something."""
    return [word for word in _WORD.findall(text) if word.lower() not in STOP_WORDS]


def questions(data: Path) -> list[str]:
    """All questions of LoCoMo and LongMemEval in a folder of data."""
    found: list[str] = []
    if (path := data / "locomo_dev.json").exists():
        found += [str(row["question"]) for item in json.loads(path.read_bytes()) for row in item["qa"]]
    if (path := data / "longmemeval_dev_oracle.json.xz").exists():
        found += [str(row["question"]) for row in json.loads(lzma.decompress(path.read_bytes()))]
    return list(dict.fromkeys(found))


def draw(sources: Sequence[Source], data: Path, count: int, seed: int = SEED) -> dict[str, list[str]]:
    """Queries by kind, none twice; fewer where the data has no more.

    Args:
        sources: one and three terms come from one paragraph each, so that there is something to find.
        data: folder of the questions; without any, long queries are drawn from paragraphs too.
        count: how many are measured; `MORE` are added.
        seed: any number.
    """
    rng = random.Random(f"{seed}/queries")
    asked = questions(data)
    rng.shuffle(asked)
    long = [" ".join(dict.fromkeys(content(text))) for text in asked]
    eight = [" ".join(text.split()[:8]) for text in long if len(text.split()) >= 8]
    found = {
        "one": drawn(rng, sources, 1),
        "three": drawn(rng, sources, 3),
        "eight": chain(eight, drawn(rng, sources, 8)),
        "asked": chain([text for text in asked if len(text.split()) in _ASKED], drawn(rng, sources, 8)),
    }
    return {kind: distinct(texts, count + MORE) for kind, texts in found.items()}


def drawn(rng: random.Random, sources: Sequence[Source], size: int) -> Iterator[str]:
    """So many words of one paragraph, again and again."""
    texts = [text for source in sources for text in source.texts]
    for _ in range(100_000):
        found = list(dict.fromkeys(content(rng.choice(texts))))
        if len(found) >= size:
            yield " ".join(rng.sample(found, size))


def chain(first: Sequence[str], second: Iterator[str]) -> Iterator[str]:
    yield from first
    yield from second


def distinct(texts: Iterator[str], count: int) -> list[str]:
    """The first so many that differ."""
    found: dict[str, None] = {}
    for text in texts:
        found[text] = None
        if len(found) == count:
            break
    return list(found)


def patterns(
    sources: Sequence[Source], count: int = 12, seed: int = SEED
) -> dict[str, list[tuple[str, bool]]]:
    """(pattern, whether case is ignored) by kind; literals are words that a few paragraphs have."""
    seen = Counter(word for source in sources for word in words(source))
    rare = sorted(word for word, times in seen.items() if 3 <= times <= 30 and len(word) >= 6) or sorted(seen)
    literals = random.Random(f"{seed}/patterns").sample(rare, min(count, len(rare)))
    found = {
        "literal": [(word, False) for word in literals],
        "literal, any case": [(word, True) for word in literals],
    }
    return {
        **found,
        **{kind: [(text, ignore) for text in texts] for kind, (texts, ignore) in PATTERNS.items()},
    }
