"""What a user asks for once and for all, as far as clear English patterns tell.

A sentence counts by itself: what stands beside it in a message is a fact like others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby

from infinimem.grounding.sentences import sentences

_DO = (
    "(?:add|address|answer|ask|assume|avoid|call|check|cite|combine|confirm|explain|format|give|greet|highlight"
    "|include|keep|leave|list|mention|prioriti[sz]e|provide|recommend|remind|reply|report|respond|say|show|sign"
    r"|speak|start|suggest|summari[sz]e|tell|translate|use|verify|write)\b"
)
_INSTRUCTION = re.compile(
    r"(?=(?:\S+\s+){2}\S)(?!never (?:say never|give up))(?:(?:please|and|so|but|also|just),? )*(?:"
    rf"(?:always|never|(?:don['’]?t|do not) ever) {_DO}"
    r"|(?:from now on|going forward|in (?:the )?future),? (?:(?:please|always|never|don['’]?t|do not) )*"
    rf"{_DO}"
    r"|(?:when|whenever|every time) (?:I|you)\b[^,]*, (?:please )?(?:always|never|don['’]?t|do not)\b"
    rf"|{_DO}.*\bfrom now on\b"
    r"|call me (?-i:[A-Z]))",
    re.IGNORECASE,
)
_PREFERENCE = re.compile(
    r"\bI(?:['’]d| would)?(?: (?:also|always|definitely|generally|much|normally|really|still|strongly|tend to"
    r"|typically|usually))* prefer\b|\bmy (?:\w+ )?preference is\b",
    re.IGNORECASE,
)


def standing(sentence: str) -> str | None:
    """ "instruction", "preference", or None for what is neither."""
    if _INSTRUCTION.match(sentence):
        return "instruction"
    return "preference" if _PREFERENCE.search(sentence) else None


def parted(text: str) -> Iterator[tuple[str, str | None]]:
    """A text in runs of sentences, each with what it is (`standing`); joined they hold every word of it."""
    runs = [(what, " ".join(those)) for what, those in groupby(sentences(text), standing)]
    if len(runs) > 1:
        yield from ((run, what) for what, run in runs)
    else:
        yield text, standing(text)
