"""What is kept of what was said: what people state, word for word.

Not kept are greetings, thanks, acknowledgements, questions, requests to do something, praise and exclamations
that name nothing, and what an assistant says again of what it was told. The sentences that are left of a
message stand together, up to some sixty words; nothing is phrased, so nothing can be phrased wrongly.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import PurePath
from textwrap import wrap
from typing import Any, NamedTuple

from infinimem.grounding.sentences import any_of, listed, sentences
from infinimem.grounding.when import day_of, settled, tells_of_past
from infinimem.llm.offline.words import CONTINUES, content_terms, content_words, fact_text, short_names
from infinimem.terms import DAYS, MONTHS, fold

WORDS, LONGEST = 60, 1000
"""Words of an entry, about; characters of one at most."""
LONG = 8
"""Words of an exclamation that is more than praise."""
NO_TOPIC = "#"
"""The topic of an entry that is to be sorted with others: a heading without words."""

_BLOCK = re.compile(r"\n\s*\n|(?<=[.!?;|])[^\S\n]*\n|\n(?=\s*(?:[-*+•‣◦]|\(?\d{1,6}[.):])\s)")
"""Between paragraphs, items of a list, and rows that end like sentences."""
_BULLET = re.compile(r"\A\s*[-*+•‣◦]\s+")
_OPENING = re.compile(rf"{any_of('openings')}\b[,.!…\s–—-]*", re.IGNORECASE)
_THANKS = re.compile(rf"{any_of('thanks')}\b", re.IGNORECASE)
_TAKEN_NOTE = re.compile(
    rf"{any_of('acknowledgements')}\b[\s,.!–—-]*(?:[\w'’.-]+\s*){{0,4}}\W*\Z", re.IGNORECASE
)
_FEELS = re.compile(rf"{any_of('feelings')}\b", re.IGNORECASE)
_ECHO = re.compile(rf"\W*{any_of('echoes')}\b", re.IGNORECASE)
_REQUEST = re.compile(
    rf"(?:(?:please|now|then|and|also|just),? )*{any_of('requests')}\b(?! ?[:=(]| (?:is|are|was|were)\b)"
    r"|.{3,80}\bplease\W*\Z",
    re.IGNORECASE,
)
_MINE = re.compile(r"\b(?:I|my|we|our)\b", re.IGNORECASE)
_MY = re.compile(r"(?:(?:I|we) \w+ )?(?:my|our)\b", re.IGNORECASE)
_YOURS = re.compile(r"\b(?:you|your|yours)\b", re.IGNORECASE)
_FIXED = re.compile(rf"\d|\b(?:{'|'.join((*DAYS, *MONTHS))})\b|[\"“«„]|\w ,?(?!I\b|[A-Z]\w+\W*\Z)[A-Z]")
"""A number, a day, a quotation, a name inside a sentence: what may be asked for."""
_OTHER = re.compile(r"[^\W\d_a-zA-Z]{2}|[äöüßéèñçøåłÄÖÜÉ]")
"""Letters of other languages."""
_STATED = re.compile(r"(?:I|We|My|Our)\b.{8,}?[,;–—] ")
"""How a question begins by stating something: "I have two dogs, what do they eat?" """
_ONWARD = "(?:from now on|going forward|in (?:the )?future)"
_INSTRUCTION = re.compile(
    r"(?=(?:\S+\s+){2}\S)(?!never (?:say never|give up))(?:(?:please|and|so|but|also|just),? )*(?:"
    rf"(?:always|never|(?:don['’]?t|do not) ever) {any_of('orders')}\b"
    rf"|{_ONWARD},? (?:(?:please|always|never|don['’]?t|do not) )*{any_of('orders')}\b"
    r"|(?:when|whenever|every time) (?:I|you)\b[^,]*, (?:please )?(?:always|never|don['’]?t|do not)\b"
    rf"|{any_of('orders')}\b.*\b{_ONWARD}|call me (?-i:[A-Z]))",
    re.IGNORECASE,
)
_PREFERENCE = re.compile(
    r"\bI(?:['’]d| would)?(?: (?!to\b)\w+){0,2} prefer\b|\bmy (?:\w+ )?preference is\b", re.I
)
_STAMP = re.compile(r"\s*\b(?:\d{4}-\d\d-\d\d|(?=\w*\d)[0-9a-f]{8,})\Z")
_CODED = re.compile(r"[_/\\]|\w\d\w*-|\b[a-z]{0,4}\d+\b")


class Statement(NamedTuple):
    """A part of a turn that is kept, and what it asks for once and for all (`standing`)."""

    turn: Mapping[str, Any]
    text: str
    standing: str | None


def extract(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `extract`."""
    entries: list[dict[str, Any]] = []
    for turn, text, what in statements(variables["turns"], variables["context"]):
        when, topic = settled(text, day_of(turn.get("time"))), place(turn) or NO_TOPIC
        entry = {"text": text, "from": [turn["id"]], "when": when, "refers": None, "topic": topic}
        entries.append(entry | ({"standing": what} if what and turn["role"] == "user" else {}))
    return {"entries": entries}


def statements(
    turns: Sequence[Mapping[str, Any]], context: Sequence[Mapping[str, Any]] = ()
) -> Iterator[Statement]:
    """What is kept of turns; `context` are those before them."""
    around = (*context, *turns)
    names = frozenset(name for turn in around if (name := turn.get("speaker")))
    told = {term for turn in around if turn["role"] == "user" for term in content_terms(turn["text"])}
    before = context[-1]["text"] if context else ""
    for turn in turns:
        echoes = told if turn["role"] != "user" else set()
        answers = before.rstrip().endswith("?")
        before = turn["text"]
        for block in _BLOCK.split(before):
            run, kind, end = list[str](), None, 0
            whole = sentences(" ".join(_BULLET.sub("", block).split()))
            for piece in (*(part for one in whole for part in wrap(one, LONGEST)), ""):
                what = standing(piece)
                worth = 2 if what else 2 * _adds(piece, echoes) if echoes else _worth(piece, names, answers)
                if worth and run and CONTINUES.match(piece) and not _YOURS.search(piece):
                    worth = 2
                answers = answers and worth < 2
                room = " ".join((*run[:end], piece))
                if run and (not worth or what != kind or len(room.split()) > WORDS or len(room) > LONGEST):
                    yield Statement(turn, " ".join(run[:end]), kind)
                    run = []
                if worth == 2 or run:
                    run, kind = [*run, piece], what
                    end = len(run) if worth == 2 else end


def standing(sentence: str) -> str | None:
    """ "instruction", "preference", or None for what is neither."""
    if _INSTRUCTION.match(sentence):
        return "instruction"
    return "preference" if _PREFERENCE.search(sentence) else None


def place(turn: Mapping[str, Any]) -> str:
    """What a turn's conversation was about: its project's name or its title, nothing where neither tells."""
    folder = PurePath(turn.get("cwd") or "")
    if folder.name and folder.parent.name not in ("home", "Users", ""):
        return folder.name
    title = _STAMP.sub("", turn.get("session") or "").lstrip("# ")
    telling = [word for word in fold(title).split() if word not in listed("nameless")]
    return title if content_terms(" ".join(telling)) and not _CODED.search(title) else ""


def _worth(sentence: str, names: frozenset[str], answers: bool) -> int:
    """What a person's sentence is worth: 0 for a question or request, which ends what stands together; 1 for
    what says something only between others; 2 for what states something by itself."""
    said = bare = fact_text(sentence)
    if said != sentence:
        return 2  # what a picture shows
    while opening := _OPENING.match(bare) or _caller(names).match(bare):
        bare = bare[opening.end() :]
    mine, fixed, yours = _MINE.search(bare), _FIXED.search(bare), _YOURS.search(bare)
    if not re.search(r"\w", said) or (said.endswith("?") and not _STATED.match(said)):
        return 0
    if _REQUEST.match(bare) and not re.search(r"\b(?:I|we)\b", bare):
        return 0
    if len(bare) <= 4 or (not mine and (_THANKS.match(bare) or (_TAKEN_NOTE.match(said) and not fixed))):
        return 1
    if fixed or answers or _OTHER.search(bare):
        return 2
    replies = bare != said or CONTINUES.match(bare)
    if not mine and (yours or (replies and bare.endswith("!") and len(bare.split()) < LONG)):
        return 1  # praise
    words = [word for word in content_words(bare) if fold(word.surface) not in short_names(names)]
    acts = mine and not _FEELS.match(bare) and (words or tells_of_past(bare) or _MY.match(bare))
    return 2 if acts or any(word.noun or not CONTINUES.match(bare) for word in words) else 1


@lru_cache(maxsize=64)
def _caller(names: frozenset[str]) -> re.Pattern[str]:
    known = "|".join(map(re.escape, sorted(short_names(names)))) or "(?!)"
    return re.compile(rf"(?:{known})\b[,.!?]\s*", re.IGNORECASE)


def _adds(sentence: str, told: Collection[str]) -> bool:
    """Whether an assistant says more than people told it, and than what it does."""
    if not sentence or sentence.endswith("?") or _ECHO.match(sentence):
        return False
    return len(set(content_terms(sentence)).difference(told)) > 1 or not sentence.isascii()
