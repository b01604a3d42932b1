"""What is kept of what was said: what people state, word for word; and its words that tell what it is about.

Not kept are greetings, thanks, acknowledgements, questions, requests to do something, praise, what names
nothing, and what an assistant says again of what it was told. The sentences that are left of a message stand
together, up to some sixty words; nothing is phrased, so nothing can be phrased wrongly.

English is known by english.txt, here and of grounding; elsewhere its words match nothing and do no harm.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import PurePath
from textwrap import wrap
from typing import Any, NamedTuple

from infinimem.grounding.sentences import (
    common_terms,
    day_of,
    listed,
    patterns,
    sentences,
    settled,
    tells_of_past,
    without_code,
)
from infinimem.terms import STOP_WORDS, fold, tokens

WORDS, LONGEST = 60, 1000
"""Words of an entry, about; characters of one at most."""
SNIPPET = 200
"""Characters of a block of code up to which it is kept like other words: a command, an error."""
LONG = 8
"""Words of an exclamation that is more than praise."""
NO_TOPIC = "#"
"""The topic of an entry that is to be sorted with others: a heading without words."""


ENGLISH = patterns("infinimem.llm.offline", "english.txt")
_BLOCK = re.compile(r"\n\s*\n|(?<=[.!?;|])[^\S\n]*\n|\n(?=\s*(?:[-*+•‣◦]|\(?\d{1,3}[.):])\s)")
"""Between paragraphs, items of a list, and rows that end like sentences."""
_BULLET = re.compile(r"\A\s*[-*+•‣◦]\s+")
_FOREIGN = re.compile(r"[^\W\d_a-zA-Z]{2}|[äöüßéèñçøåłÄÖÜÉ]")
_STAMP = re.compile(r"\s*\b(?:\d{4}-\d\d-\d\d|(?=\w*\d)[0-9a-f]{8,})\Z")
_CODED = re.compile(r"[_/\\]|\w\d\w*-|\b[a-z]{0,4}\d+\b")
_ARTICLE = re.compile(r"(?:the|an?)\b", re.I)
_CALLED = re.compile(r"(\w+)[,.!?]\s*")
_WORD = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*")
_OWNING = re.compile(r"['’]s\Z")
_ASIDE = re.compile(r"(?<!\[)\[[^\[\]\n]*+\](?![\](])")


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


def place(turn: Mapping[str, Any]) -> str:
    """What a turn's conversation was about: its project's name or its title, nothing where neither tells."""
    folder = PurePath(turn.get("cwd") or "")
    if folder.name and folder.parent.name not in ("home", "Users", ""):
        return folder.name
    title = _STAMP.sub("", turn.get("session") or "").lstrip("# ")
    telling = [word for word in fold(title).split() if word not in listed("nameless")]
    return title if content_terms(" ".join(telling)) and not _CODED.search(title) else ""


def statements(
    turns: Sequence[Mapping[str, Any]], context: Sequence[Mapping[str, Any]] = ()
) -> Iterator[Statement]:
    """What is kept of turns; `context` are those before them."""
    around = (*context, *turns)
    names = short_names(around)
    told = {term for turn in around if turn["role"] == "user" for term in content_terms(turn["text"])}
    before = context[-1]["text"] if context else ""
    for turn in turns:
        echoes = told if turn["role"] != "user" else set()
        answers = before.rstrip().endswith("?")
        before = turn["text"]
        for block in _BLOCK.split(without_code(before, "\n\n", SNIPPET)):
            run, kind, end = list[str](), None, 0
            whole = sentences(" ".join(_BULLET.sub("", block).split()))
            for piece in (*(part for one in whole for part in wrap(one, LONGEST)), ""):
                what = standing(piece)
                worth = 2 if what else 2 * _adds(piece, echoes) if echoes else _worth(piece, names, answers)
                if worth and run and ENGLISH["continues"].match(piece) and not ENGLISH["yours"].search(piece):
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
    if ENGLISH["instruction"].match(sentence):
        return "instruction"
    return "preference" if ENGLISH["preference"].search(sentence) else None


def _worth(sentence: str, names: Collection[str], answers: bool) -> int:
    """Return 0 for a question or request, which ends what stands together; 1 for what says something only
    between others; 2 for what states something by itself."""
    said = bare = fact_text(sentence)
    if said != sentence:
        return 2  # what a picture shows
    while opening := ENGLISH["opening"].match(bare) or _CALLED.match(bare):
        if opening.lastindex and fold(opening[1]) not in names:
            break
        bare = bare[opening.end() :]
    mine, yours = ENGLISH["mine"].search(bare), ENGLISH["yours"].search(bare)
    fixed = ENGLISH["fixed"].search(bare)
    if not re.search(r"\w", said) or (said.endswith("?") and not ENGLISH["stated"].match(said)):
        return 0
    if ENGLISH["request"].match(bare) and not re.search(r"\b(?:I|we)\b", bare):
        return 0
    thanks = any(map(ENGLISH["thanks"].match, (bare, said)))
    noted = ENGLISH["taken note"].match(said) and not fixed
    if len(bare) <= 4 or (not mine and (thanks or noted)):
        return 1
    if fixed or answers or _FOREIGN.search(bare):
        return 2
    points = ENGLISH["continues"].match(bare)
    praises = (points or bare != said) and bare.endswith("!") and len(bare.split()) < LONG
    words = [word for word in content_words(bare) if fold(word.surface) not in names]
    about = yours and _ARTICLE.match(bare) and any(word.noun for word in content_words(bare[: yours.start()]))
    if not mine and (praises or (yours and (not about or bare.endswith("!")))):
        return 1
    if any(word.noun or not points for word in words):
        return 2
    acts = mine and not ENGLISH["feels"].match(bare)
    return 2 if acts and (words or tells_of_past(bare) or ENGLISH["my"].match(bare)) else 1


def _adds(sentence: str, told: Collection[str]) -> bool:
    if not sentence or sentence.endswith("?") or ENGLISH["echo"].match(sentence):
        return False
    return len(set(content_terms(sentence)).difference(told)) > 1 or not sentence.isascii()


class Word(NamedTuple):
    """A word that tells something, as it is written, and the telling word right before it."""

    term: str
    surface: str
    named: bool
    noun: bool
    before: str


@lru_cache(maxsize=1 << 13)
def content_words(text: str) -> tuple[Word, ...]:
    """Return the words that say what a text is about, in its order; no numbers and no common words."""
    found = [*_WORD.finditer(text)]
    terms = [_term(match.group()) for match in found]
    joined = [text[one.end() : other.start()] == " " for one, other in pairwise(found)]
    words = []
    for at, term in enumerate(terms):
        if term:
            surface = _OWNING.sub("", found[at].group())
            left = found[at - 1].group() if at and joined[at - 1] else ""
            right = found[at + 1].group() if at + 1 < len(found) and joined[at] else ""
            named = surface[0].isupper() and (bool(left) or surface.isupper())
            noun = named or _is_noun(fold(surface), fold(left), fold(right))
            words.append(Word(term, surface, named, noun, left if at and terms[at - 1] else ""))
    return tuple(words)


def _is_noun(form: str, left: str, right: str) -> bool:
    verbs = listed("before verbs")
    if right and right not in STOP_WORDS and right not in verbs:
        return False
    if ENGLISH["noun"].match(form) or (form.endswith("ing") and left in {"", *listed("before nouns")}):
        return True
    return not ENGLISH["no noun"].search(form) and left not in verbs


@lru_cache(maxsize=1 << 14)
def _term(word: str) -> str:
    telling = [
        term
        for term in tokens(_OWNING.sub("", word))
        if term not in common_terms() and not term[0].isdigit() and (len(term) > 2 or not term.isascii())
    ]
    return "-".join(telling)


def content_terms(text: str) -> list[str]:
    """The terms of `content_words`, with repeats."""
    return [term for match in _WORD.finditer(text) if (term := _term(match.group()))]


def fact_text(text: str) -> str:
    """What a line says itself, without asides in brackets such as a picture's caption."""
    said = _ASIDE.sub(lambda aside: "" if " " in aside[0] else aside[0], text)
    return said if said.strip() else text


def short_names(rows: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """How speakers of turns or facts may be called: their names, and short forms from three letters on."""
    parts = {part for row in rows for part in fold(row.get("speaker") or "").split()}
    return frozenset(part[:end] for part in parts for end in range(min(3, len(part)), len(part) + 1))
