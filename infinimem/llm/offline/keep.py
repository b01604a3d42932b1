"""What is kept of what was said: what people state, word for word.

Not kept are greetings, thanks, acknowledgements, questions, requests to do something, praise without a word
that tells, and what an assistant says again of what it was told. The sentences that are left of a message
stand together, up to some sixty words; nothing is phrased, so nothing can be phrased wrongly.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import PurePath
from typing import Any, NamedTuple

from infinimem.grounding.sentences import any_of, listed, sentences
from infinimem.grounding.when import day_of, settled
from infinimem.llm.offline.words import CONTINUES, content_terms, fact_text, short_names
from infinimem.terms import DAYS, MONTHS, fold

WORDS, LONGEST = 60, 1000
"""Words of an entry, about; characters of one at most."""
LONG = 8
"""Words of a sentence that states something though none of them tells what it is about."""
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
        entry: dict[str, Any] = {
            "text": text,
            "from": [turn["id"]],
            "when": settled(text, day_of(turn.get("time"))),
        }
        wish = {"standing": what} if what and turn["role"] == "user" else {}
        entries.append(entry | {"refers": None, "topic": place(turn) or NO_TOPIC} | wish)
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
        echoes = told if told and turn["role"] != "user" else None
        parts = kept(turn["text"], names, echoes, answers=before.rstrip().endswith("?"))
        yield from (Statement(turn, *part) for part in parts)
        before = turn["text"]


def kept(
    text: str, names: Collection[str] = (), told: Collection[str] | None = None, *, answers: bool = False
) -> Iterator[tuple[str, str | None]]:
    """The parts of a message that are kept, each with what it asks for once and for all (`standing`).

    Args:
        text: the message.
        names: of those who take part.
        told: of an assistant's message the terms of what people said.
        answers: the message follows a question.
    """
    for block in _BLOCK.split(text):
        run, kind, end = list[str](), None, 0
        pieces = [p for one in sentences(" ".join(_BULLET.sub("", block).split())) for p in _cut(one)]
        for piece in [*pieces, ""]:
            what = standing(piece)
            worth = 2 if what else _worth(piece, names, answers) if told is None else 2 * _adds(piece, told)
            worth = 2 if worth and run and CONTINUES.match(piece) and not _YOURS.search(piece) else worth
            answers = False
            room = " ".join((*run[:end], piece))
            full = len(room.split()) > WORDS or len(room) > LONGEST
            if run and (not worth or what != kind or full):
                yield " ".join(run[:end]), kind
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


def _worth(sentence: str, names: Collection[str], answers: bool) -> int:
    """What a person's sentence is worth: 0 for a question or request, which ends what stands together; 1 for
    what says something only between others; 2 for what states something by itself."""
    said = bare = fact_text(sentence)
    if said != sentence:
        return 2  # what a picture shows
    while opening := _OPENING.match(bare) or _caller(frozenset(names)).match(bare):
        bare = bare[opening.end() :]
    mine, fixed = _MINE.search(bare) is not None, _FIXED.search(bare) is not None
    if not re.search(r"\w", said) or (said.endswith("?") and not _STATED.match(said)):
        return 0
    if _REQUEST.match(bare) and not re.search(r"\b(?:I|we)\b", bare):
        return 0
    if not bare or (not mine and (_THANKS.match(bare) or (_TAKEN_NOTE.match(said) and not fixed))):
        return 1
    if fixed or answers or _OTHER.search(bare) or set(content_terms(bare)).difference(short_names(names)):
        return 2 if len(bare) > 4 else 1
    length = len(bare.split())
    if _YOURS.search(bare) or (length < LONG and (_FEELS.match(bare) or bare.endswith("!"))):
        return 1
    return 2 if length >= LONG or (mine and length > 2) else 1


@lru_cache(maxsize=64)
def _caller(names: frozenset[str]) -> re.Pattern[str]:
    known = "|".join(map(re.escape, sorted(short_names(names)))) or "(?!)"
    return re.compile(rf"(?:{known})\b[,.!?]\s*", re.IGNORECASE)


def _adds(sentence: str, told: Collection[str]) -> bool:
    """Whether an assistant says more than people told it, and than what it does."""
    if not sentence or sentence.endswith("?") or _ECHO.match(sentence):
        return False
    return len(set(content_terms(sentence)).difference(told)) > 1 or not sentence.isascii()


def _cut(sentence: str) -> Iterator[str]:
    """A sentence, or parts of one without end."""
    words = sentence.split(" ")
    for at in range(0, len(words), 2 * WORDS):
        part = " ".join(words[at : at + 2 * WORDS])
        yield from (part[begin : begin + LONGEST] for begin in range(0, len(part), LONGEST))
