"""Which words of a text say what it is about, and how they looked where they stood.

Terms come from the one tokenizer (terms.py); this part knows English words that tell
nothing about a topic, and which words are names. It knows no facts and no documents.

A message is a filler (a greeting, thanks) when each of its clauses is one of the phrases below, with or
without the name of somebody who takes part. Any other word, a number or another name keeps it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import cache, lru_cache
from sys import intern
from typing import NamedTuple

from infinimem.grounding.sentences import common_terms, strip_ordinal
from infinimem.terms import fold, tokens

_WORD = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*")
_BEFORE_NOUNS = frozenset(
    "a an the my your his her its our their this that these those some any no each every of for in on at "
    "with about from by new local first own another more many few two three and or".split()
)
_BEFORE_VERBS = frozenset(
    "to i you we they he she it i'm i've i'll i'd we're we've we'll you're you've they're it's who not never "
    "always just can could will would should must may might am is are was were be been being have has had do "
    "does did gonna really so very".split()
)
_SENTENCE_START = re.compile(r"(?:^|[.!?:;…\"“(\[*–—-])\s*$")


class Word(NamedTuple):
    """A content word: its term, and how it was written."""

    term: str
    surface: str
    start: int
    named: bool
    """Capitalised where the language would not do it: inside a sentence."""
    nounish: float
    """1 after an article or a preposition, 0 after a pronoun or "to", 0.5 else."""


@lru_cache(maxsize=1 << 13)
def content_words(text: str) -> tuple[Word, ...]:
    """The words that say what a text is about, in its order. Numbers are none of them."""
    words = []
    before = ""
    matches = [*_WORD.finditer(text)]
    for match, following in zip(matches, [*matches[1:], None], strict=False):
        surface = match.group()
        parts = [term for term in tokens(surface) if term not in common_terms() and _telling(term)]
        if parts:
            term, start = "-".join(parts) if "-" in surface else parts[0], match.start()
            named = surface[0].isupper() and (
                not _SENTENCE_START.search(text, max(0, start - 8), start) or _leads(match, following)
            )
            written = intern(_bare(surface))  # thousands of texts are kept, and share their words
            words.append(Word(intern(term), written, start, named, _nounish(before)))
        before = fold(surface)
    return tuple(words)


def _leads(match: re.Match[str], following: re.Match[str] | None) -> bool:
    """Whether a second capitalised word follows at once: "Andy Warhol died"."""
    return following is not None and following.start() == match.end() + 1 and following.group()[0].isupper()


def _nounish(before: str) -> float:
    return 1.0 if before in _BEFORE_NOUNS else 0.0 if before in _BEFORE_VERBS else 0.5


def content_terms(text: str) -> list[str]:
    """The terms of `content_words`, with repeats."""
    return [word.term for word in content_words(text)]


def fact_text(text: str) -> str:
    """What a fact says itself: no number before it and no aside in brackets, such as a picture's caption."""
    bare = strip_ordinal(text)
    said = _ASIDE.sub(lambda aside: "" if " " in aside[0] else aside[0], bare)
    return said if said.strip() else bare


def short_names(names: Iterable[str]) -> frozenset[str]:
    """How people may be called: their names, and short forms from three letters on."""
    return _short_names(tuple(names))


@lru_cache(maxsize=64)
def _short_names(names: tuple[str, ...]) -> frozenset[str]:
    parts = [part for name in names for part in fold(name).split()]
    return frozenset(part[:end] for part in parts for end in range(min(3, len(part)), len(part) + 1))


_NAME = re.compile(r"(?<=[\w,;]\s)[A-ZÀ-ÖØ-Þ][\w'’.]*")
_POSSESSIVE = re.compile(r"(?:['’]s)?[.'’]*$")
_ASIDE = re.compile(r"(?<!\[)\[[^\[\]\n]*+\](?![\](])")
_CALLED = re.compile(
    r"(?:\A|(?<=[,.!?;]))\s*(?:(?:hey|hi|hello|oh|thanks|wow)\s+)?([A-Z][\w'’]+)\s*(?=[,.!?;]|\Z)"
)


def names(question: str) -> list[str]:
    """Capitalised words inside a question."""
    return [_POSSESSIVE.sub("", name) for name in _NAME.findall(question)]


def vocatives(text: str) -> list[str]:
    """Words that stand where a message calls somebody by name ("Thanks, Caroline!"); not all are names."""
    return _CALLED.findall(text)


def _telling(term: str) -> bool:
    return not term[0].isdigit() and (len(term) > 2 or not term.isascii())


def _bare(surface: str) -> str:
    surface = surface.replace("’", "'")
    return surface[:-2] if fold(surface).endswith("'s") else surface


_GOOD = (
    r"(?:good|great|nice|lovely|awesome|amazing|wonderful|fantastic|perfect|excellent|cool|sweet|brilliant|fine"
    r"|well)"
)
_SO = r"(?:(?:so|very|really|super|pretty|such|all|just|too) )*"
# One phrase a line.
_PHRASES = rf"""
(?:hey|hi|hello|hiya|howdy|yo|greetings|welcome back|welcome)(?: there| again| everyone| all)?
good (?:morning|afternoon|evening|night|day)
(?:it'?s |it is )?{_SO}{_GOOD} (?:to see|seeing|to hear from|to meet|meeting) (?:you|ya)(?: again| too)?
long time no (?:see|talk|chat)
how(?:'s| is| are) (?:it|everything|life|things|you|ya|you all|your day)(?: today| going| doing)?
how(?: have|'ve) (?:you|things|ya) been(?: doing| going| lately| recently)?
what'?s (?:up|new|going on|happening)(?: with you| today)?
(?:i'?m |i am |we'?re |all )?(?:doing )?{_SO}(?:good|great|fine|okay|ok|well)(?: here| too)?
(?:and )?(?:you|yourself|how about you|what about you)
{_SO}(?:thanks|thank you|thx|cheers|(?:i )?appreciate it)(?: again| so much| very much| a lot)*
(?:you'?re |you are )?(?:very |most |so )?welcome
(?:no problem|np|no worries|my pleasure|anytime|don'?t mention it|glad to help|happy to help)
(?:(?:your|those|these) (?:kind )?words|that) means? (?:a lot|so much|the world)(?: to me)?
(?:ok|okay|k|alright|right|sure|got it|understood|i see|makes sense|noted|will do)(?: then| now)?
(?:{_SO}{_GOOD}|wow|whoa|oh|ah|aha|oops|aww?|yay|hm+|mm+|(?:ha){{2,}}|lol|omg|oh no|oh wow|no way)
(?:that(?:'s| is| was| sounds)|it(?:'s| is| was)|this is|what|how) {_SO}{_GOOD}(?: news| to hear)?
(?:yes|yeah|yep|yup|no|nope|totally|absolutely|definitely|exactly|of course|agreed|true|me too|you too)
(?:congrats|congratulations|well done|good job|great job|good for you|good luck)(?: again)?
(?:bye|bye bye|goodbye|later|see (?:you|ya)|take care)(?: later| soon| then| tomorrow| again)*
(?:i'?ll )?(?:talk|speak|chat)(?: to| with)?(?: you| ya)?(?: later| soon| again| then| tomorrow)+
have (?:a|an) (?:{_GOOD} )?(?:one|day|night|evening|weekend|week)(?: too)?
(?:please )?(?:go (?:on|ahead)|continue|carry on|proceed|keep going)(?: then| with (?:it|that))?
(?:please|sorry|my apologies|i'?m sorry|excuse me)
"""
_YES_NO = re.compile(
    r"(?:yes|yeah|yep|yup|ya|yea|no|nope|nah|totally|absolutely|definitely|exactly|indeed|of course|for sure"
    r"|certainly|sure|sure thing|right|true|ok|okay|same|same here|me too|me neither|i know|i think so"
    r"|not really)\b"
)
_CLAUSE = re.compile(r"[^\w\s'&–—-]+|\n|\s[–—-]+\s|\s&\s|\band\b(?=\s+(?:thank|have|good|take|you))")
_SPEECH = re.compile(r"\w")
_LONG = 300
"""Characters; nobody greets at greater length."""


@cache
def _filler() -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{phrase})" for phrase in _PHRASES.split("\n") if phrase))


def is_filler(text: str, names: Collection[str] = (), *, answers: bool = False) -> bool:
    """Whether there is nothing to remember in a message.

    Args:
        text: the message.
        names: of those who take part; calling them by name adds nothing.
        answers: the message follows a question: a yes or no is then an answer and worth keeping.
    """
    if len(text) > _LONG:
        return False
    clauses = [clause.strip() for clause in _CLAUSE.split(fold(text))]
    clauses = [clause for clause in clauses if _SPEECH.search(clause)]
    if answers and clauses and _YES_NO.match(clauses[0]):
        return False
    known = called(names)
    return all(_is_phrase(clause, known) for clause in clauses)


def _is_phrase(clause: str, known: Collection[str]) -> bool:
    if _filler().fullmatch(clause):
        return True
    words = clause.split()
    for rest, name in ((words[:-1], words[-1]), (words[1:], words[0])):
        if name in known and (not rest or _filler().fullmatch(" ".join(rest))):
            return True
    return False


_ANYONE = frozenset("buddy dude friend man mate pal guys all everyone folks".split())


def called(names: Iterable[str]) -> frozenset[str]:
    """What people may be called, by name or not."""
    return short_names(names) | _ANYONE
