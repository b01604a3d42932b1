"""What a question asks for: a fact, the order of things, how something went; of now, or of before.

English patterns, matched in any case; a question that none of them fits asks for a fact.
"""

from __future__ import annotations

import re
from typing import Literal

Asked = Literal["fact", "order", "summary"]

_ORDER = re.compile(
    r"\b(?:in|the) (?:(?:what|which|chronological|correct|right|same) )?(?:order|sequence)\b|\bchronolog",
    re.IGNORECASE,
)
_NO_ORDER = re.compile(r"\bin order (?:to|that|for)\b", re.IGNORECASE)
_SUMMARY = re.compile(
    r"\bsummar(?:y|ies|i[sz]e[ds]?|i[sz]ing|i[sz]ation)\b|\boverview\b|\brecap\b|\bsum(?: \w+)? up\b"
    r"|\bhow (?:ha(?:s|ve|d)|did) .*\b(?:develop|evolve|progress|unfold)(?:e?d)?\b"
    r"|\bover time\b|\bthroughout (?:our|all|these)\b",
    re.IGNORECASE,
)
_MY_WORDS = re.compile(
    r"\bI(?:'ve| have| had)? (?:\w+ )?(?:bring|brought|mention|ask|rais|talk|discuss|told|sa(?:id|y)\b)"
)
_PAST = re.compile(
    r"\b(?:when|since|until|ever|before|earlier|previous(?:ly)?|former(?:ly)?|original(?:ly)?|initial(?:ly)?"
    r"|at first|used to|no longer|any ?more|still|history|past|was|were|had|became|become)\b"
    r"|\b(?:chang|switch|updat|replac|revis|correct)(?:e|es|ed|ing)?\b|\A(?:have|has|did) ",
    re.IGNORECASE,
)
_WHEN = re.compile(
    r"\b(?:when|since|ago|how (?:long|often|recently|soon|many (?:days|weeks|months|years))"
    r"|(?:what|which|last|next) (?:day|date|week|month|year|time|season))\b",
    re.IGNORECASE,
)


def asked_for(question: str) -> Asked:
    """What a question asks for.

    Args:
        question: in plain words.
    """
    if _ORDER.search(_NO_ORDER.sub("", question)):
        return "order"
    return "summary" if _SUMMARY.search(question) else "fact"


def about_past(question: str) -> bool:
    """Whether what held before matters to it: when, what changed, whether something ever was."""
    return _PAST.search(question) is not None


def asks_when(question: str) -> bool:
    """Whether it asks for a time: when, since when, how long ago, in which month."""
    return _WHEN.search(question) is not None


def about_my_words(question: str) -> bool:
    """Whether it asks what the user said, and not what was replied ("the order in which I brought up …")."""
    return _MY_WORDS.search(question) is not None
