"""What a question is about: a fact, or all that was said; what holds now, or what held before.

English patterns; a question that none of them fits asks for a fact that holds now.
"""

from __future__ import annotations

import re

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


def about_all(question: str) -> bool:
    """Whether it asks for the order of things, or how something went, which no single line tells."""
    return bool(_ORDER.search(_NO_ORDER.sub("", question)) or _SUMMARY.search(question))


def about_past(question: str) -> bool:
    """Whether what held before matters to it: when, what changed, whether something ever was."""
    return _PAST.search(question) is not None


def asks_when(question: str) -> bool:
    """Whether it asks for a time: when, since when, how long ago, in which month."""
    return _WHEN.search(question) is not None


def about_my_words(question: str) -> bool:
    """Whether it asks what the user said, and not what was replied ("the order in which I brought up …")."""
    return _MY_WORDS.search(question) is not None
