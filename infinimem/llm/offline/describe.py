"""A unit's descriptor by rules: what is searched of it, in its own words, with the speaker's name before.

A text of up to some sixty words is its own best summary; of a longer one its beginning stands. Of units that
were put in order the newest speaks for what holds, the others for what they add or no longer are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from infinimem.grounding.claims import unsupported
from infinimem.grounding.sentences import Said, sentences
from infinimem.grounding.when import day_of, settled
from infinimem.llm.offline.lexicon import Word, content_words, fact_text, short_names, vocatives
from infinimem.llm.offline.salience import Corpus
from infinimem.markdown.characters import normalised
from infinimem.terms import STOP_WORDS, fold

WORDS = 60
"""Of a summary."""
CHARACTERS = 600
"""Of a summary; scripts without spaces have few words."""
KEYWORDS = 5
MERGED_KEYWORDS = 8
"""Of a merge: its members may name the same thing in different words."""
GAP = " …"
"""Ends a summary that leaves something out: without it, a summary holds all that was said."""
_LONGEST = 60
"""Characters of a keyword."""
_LONG_TEXT = 10_000
"""Characters in which keywords are looked for."""

_TITLE = re.compile(r'"([^"\n]{2,40})"|“([^”\n]{2,40})”')
_WORD = re.compile(r"[^\W_](?:[\w'’&./-]*\w)?")


def describe(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `describe`; the turns before explain nothing to a rule."""
    return {"cards": [_card(turn) for turn in variables["turns"]]}


def _card(turn: Mapping[str, Any]) -> dict[str, Any]:
    said = said_by(turn)
    return {
        "id": turn["id"],
        "summary": summary(said),
        "keywords": keywords([said]),
        "when": settled(said.text, day_of(turn.get("time"))),
    }


def diagnose(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `diagnose`: no rule claims that one unit replaces another, or that two are one."""
    return {"split_tasks": [], "merge_tasks": [], "update_tasks": []}


def split_unit(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `split_unit`: no rule tells where a text turns to something else."""
    unit = variables["unit"]
    words = keywords([said_by(unit)])
    whole = {
        "segment_text": unit.get("text") or "",
        "segment_summary": summary(said_by(unit)),
        "segment_keywords": words,
        "topic_label": ", ".join(words[:2]),
    }
    return {"do_split": False, "segments": [whole], "split_rationale": "rules cut no text"}


def merge_units(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `merge_units`: the newest speaks for all, the others' wordings are salient points."""
    said = [said_by(unit) for unit in variables["units"]]
    texts: dict[str, Said] = {}
    for item in reversed(said):
        texts.setdefault(normalised(item.line), item)
    newest, *others = texts.values() or [Said("", "")]
    return {
        "summary": summary(newest),
        "keywords": keywords([newest, *others], MERGED_KEYWORDS),
        "salient_points": [summary(item) for item in reversed(others)],
    }


def update_unit(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `update_unit`: the current unit in its own words, the other one as outdated."""
    current, old = said_by(variables["current"]), said_by(variables["superseded"])
    return {
        "updated_summary": summary(current),
        "updated_keywords": keywords([current], KEYWORDS),
        "deprecations": [summary(old)] if old.text else [],
        "alignment_note": "the newer statement replaces the older",
    }


def said_by(unit: Mapping[str, Any]) -> Said:
    """The words of a turn or unit, white space folded."""
    return Said(*(" ".join((unit.get(key) or "").split()) for key in ("speaker", "text")))


def summary(said: Said) -> str:
    """A text in some sixty words at most, verbatim; empty only where there is neither text nor speaker."""
    if not said.text:
        return said.speaker
    if len(said.line.split()) <= WORDS and len(said.line) <= CHARACTERS:
        return said.line
    return said._replace(text=_beginning(said)).line


def keywords(said: Sequence[Said], limit: int = KEYWORDS) -> list[str]:
    """Who speaks, then names and short phrases by which texts would be looked for, the most telling first.

    The speaker and a full number of words are worth a third of LoCoMo's evidence turns among the first ten:
    without them a vector of few words is that of its commonest.

    Args:
        said: the texts; a phrase that several share comes before one of a single text.
        limit: at most so many.
    """
    speakers = sorted({item.speaker for item in said if item.speaker})
    pieces = [piece for item in said for piece in sentences(fact_text(item.text[:_LONG_TEXT]))]
    called = {fold(name) for piece in pieces for name in vocatives(piece)}
    found = [*_names(pieces), *Corpus(pieces, speakers).phrases(range(len(pieces)), limit)]
    # Who is called by name is mostly not what is talked about: "Thanks, Caroline!"
    found.sort(key=lambda phrase: fold(phrase) in called)
    known = short_names(speakers)
    telling = [phrase for phrase in [*found, *_words(pieces)] if fold(phrase) not in known]
    return _distinct([*speakers, *telling], limit)


def _beginning(said: Said) -> str:
    """The first sentences that fit, or as much of the first: cut between words, in need inside one."""
    room = max(0, min(CHARACTERS - len(GAP) - len(said._replace(text="").line), len(said.text)))
    words = max(0, WORDS - 1 - len(said.speaker.split()))
    head = " ".join(said.text[:room].split(" ")[:words])
    if len(head) == room < len(said.text) and " " in head:
        head = head.rpartition(" ")[0]
    pieces = [*sentences(head)]
    if len(pieces) > 1:
        head = head[: head.rindex(pieces[-1])].rstrip()
    while unsupported(said._replace(text=head).line, [said.line]) and " " in head:
        head = head.rpartition(" ")[0]
    return head + GAP


def _names(pieces: Sequence[str]) -> Iterator[str]:
    """Titles in quotation marks, then what is written with capitals inside a sentence."""
    for piece in pieces:
        yield from (match[1] or match[2] for match in _TITLE.finditer(piece))
    for piece in pieces:
        run: list[Word] = []
        for word in [*content_words(piece), None]:
            named = word is not None and word.named
            if run and not (named and word and word.start == run[-1].start + len(run[-1].surface) + 1):
                yield " ".join(part.surface for part in run)
                run = []
            if named and word:
                run.append(word)


def _words(pieces: Sequence[str]) -> list[str]:
    """Whatever words there are, long ones first, where nothing tells more."""
    found = dict.fromkeys(match.group() for piece in pieces for match in _WORD.finditer(piece))
    telling = [word for word in found if fold(word) not in STOP_WORDS]
    return sorted(telling, key=lambda word: ("'" in fold(word), -len(word), word))[:50]


def _distinct(phrases: Iterable[str], limit: int) -> list[str]:
    """The first phrases of which none repeats a word of another."""
    chosen: list[str] = []
    used: set[str] = set()
    for phrase in phrases:
        words = {fold(word) for word in phrase.split()}
        if len(chosen) < limit and phrase.strip() and words.isdisjoint(used) and len(phrase) <= _LONGEST:
            chosen.append(phrase)
            used |= words
    return chosen
