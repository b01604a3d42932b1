"""Messages that say nothing: greetings, thanks, acknowledgements. Conservative: in doubt a message is kept.

A message is a filler when each of its clauses is one of the phrases below, with or without the name of
somebody who takes part. Any other word, a number or another name keeps it.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache

from infinimem.llm.offline.lexicon import short_names
from infinimem.terms import fold

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


def called(names: Collection[str]) -> frozenset[str]:
    """What people may be called, by name or not."""
    return short_names(names) | {
        "buddy",
        "dude",
        "friend",
        "man",
        "mate",
        "pal",
        "guys",
        "all",
        "everyone",
        "folks",
    }
