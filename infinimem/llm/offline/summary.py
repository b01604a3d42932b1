"""A document in a few words: "keyword, keyword; what it states", in its own words.

Talk is passed over: greetings, questions, what is said about the other one. Who said a sentence is named,
for "I" means nothing in a catalog.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from infinimem import tokens
from infinimem.grounding.sentences import sentences
from infinimem.llm.offline.lexicon import called, content_terms, fact_text, is_filler
from infinimem.llm.offline.salience import Corpus
from infinimem.terms import fold

WORDS = 60
"""Of a whole summary."""
KEYWORDS = 6
SHORTEST = 5
"""Words of a sentence that states something."""

_OPENING = re.compile(r"\s*([^\W\d_]+(?:['’][^\W\d_]+)?)(?:\s*[,!.…–—-]+\s*)")
_OPENERS = frozenset(
    "absolutely actually agreed ah anyway aw aww btw congrats cool definitely exactly haha hello hey hi hmm "
    "lol nah no oh ok okay oof really right so sure thankfully thanks totally true well whoa wow ya yay yeah "
    "yep yes yup".split()
)
_TALK = re.compile(
    r"\b(?:you|your|you['’]\w+|yours|ya|thanks|thank|thankful|grateful|appreciate|btw|hope|congrats)\b",
    re.IGNORECASE,
)
_POINTS = re.compile(
    r"(?:and |but |so )?(?:that|it|this|these|those|they|there|such|glad|can|let)\b", re.IGNORECASE
)


def summary(facts: Sequence[Mapping[str, Any]], limit: int) -> str:
    """What some facts state, the most central first.

    Args:
        facts: with "text" and, where it is known, "speaker".
        limit: tokens; there are at most some `WORDS` words too.
    """
    names = sorted({fact["speaker"] for fact in facts if fact.get("speaker")})
    said = [(fact.get("speaker"), sentence) for fact in facts for sentence in _said(fact["text"], names)]
    said = (
        [(speaker, sentence) for speaker, sentence in said if states(sentence)]
        or said
        or [(fact.get("speaker"), " ".join(fact_text(fact["text"]).split())) for fact in facts]
    )
    text = ", ".join(Corpus([fact["text"] for fact in facts], names).phrases(range(len(facts)), KEYWORDS))
    while tokens.count(text) > limit and "," in text:
        text = text.rpartition(",")[0]
    glue = "; "
    for i in central([sentence for _, sentence in said], names):
        speaker, sentence = said[i]
        line = f"{speaker}: {sentence}" if speaker else sentence
        longer = f"{text}{glue}{line}" if text else line
        if line not in text and len(longer.split()) <= WORDS and tokens.count(longer) <= limit:
            text, glue = longer, " / "
    return text if tokens.count(text) <= limit else ""


def _said(text: str, names: Collection[str]) -> Iterator[str]:
    """The sentences that are neither question nor greeting, without "Wow, Caroline!" before them."""
    for sentence in sentences(" ".join(fact_text(text).split())):
        bare = _without_opening(sentence, names)
        if bare and not bare.rstrip("\"'”’)").endswith("?") and not is_filler(bare, names):
            yield bare


def states(sentence: str) -> bool:
    """Whether a sentence says something by itself."""
    return len(sentence.split()) >= SHORTEST and len(set(content_terms(sentence))) > 1


def _without_opening(sentence: str, names: Collection[str]) -> str:
    known = called(names) | _OPENERS
    while (match := _OPENING.match(sentence)) and fold(match[1]) in known:
        sentence = sentence[match.end() :]
    return sentence


def central(said: Sequence[str], names: Collection[str]) -> list[int]:
    """Sentences in the order of how much of the whole each one says; what points or replies says less."""
    shares = Corpus(said, names).shares()
    for i, sentence in enumerate(said):
        shares[i] *= (0.4 if _TALK.search(sentence) else 1) * (0.6 if _POINTS.match(sentence) else 1)
        shares[i] *= 0.8 if sentence.endswith("!") else 1
    return sorted(range(len(said)), key=lambda i: (-round(shares[i], 9), i))[:50]
