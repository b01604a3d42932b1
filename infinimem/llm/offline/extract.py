"""Extraction by rules: a message becomes an entry, a long one an entry an item, paragraph or sentence group.

Texts of entries are pieces of the message with white space folded, nothing else is changed: what is not
phrased anew cannot be wrong. What a text's words settle of when it happened goes to `when`. Pronouns are left
to whoever can read: the nouns of the turn before as `refers` found nothing that the index, which knows the
turns around an entry, does not find by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, groupby, repeat
from typing import Any

from infinimem.grounding.sentences import sentences
from infinimem.grounding.when import day_of, settled
from infinimem.llm.offline.lexicon import content_terms, is_filler

SHORT_WORDS = 60
"""A message up to this long stays whole; longer ones are cut into pieces of about this size."""
SHORT_LINES = 4
LONGEST = 1000
"""Characters of a piece without any place to cut."""

_ECHO = re.compile(
    r"\W*(?:noted|got it|understood|corrected|recorded|saved"
    r"|i(?:['’]ve| have) (?:noted|added|updated|recorded|saved))\b",
    re.IGNORECASE,
)
"""How an assistant says again what it was just told."""
_ITEM = re.compile(r"\s*(?:(?P<bullet>[-*+•‣◦])|\(?(?P<number>\d{1,6})[.):])\s+(?=\S)")
_INDENT = re.compile(r"\s{2,}\S")
_ROW_END = re.compile(r"[.!?;|。！？][\"'”’)\]]*\s*$")


def extract(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `extract`."""
    entries: list[dict[str, Any]] = []
    names = {name for turn in (*variables["context"], *variables["turns"]) if (name := turn.get("speaker"))}
    before = variables["context"][-1]["text"] if variables["context"] else ""
    for turn in variables["turns"]:
        text, asked = turn["text"], "?" in before
        before = text
        echoes = turn["role"] == "assistant" and _ECHO.match(text)
        pieces = [] if echoes or is_filler(text, names, answers=asked) else list(split(text))
        day = day_of(turn.get("time"))
        parts = (
            chain.from_iterable(map(parted, pieces)) if turn["role"] == "user" else zip(pieces, repeat(None))
        )
        entries += [
            {"text": part, "from": [turn["id"]], "when": settled(part, day), "refers": None}
            | ({"standing": what} if what else {})
            for part, what in parts
        ]
    return {"entries": entries}


def split(text: str) -> Iterator[str]:
    """Cut a message into entries; their texts joined hold every word of it but empty lead-ins to lists."""
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) <= SHORT_LINES and len(text.split()) <= SHORT_WORDS and len(text) <= LONGEST:
        if folded := _fold(text):
            yield folded
        return
    for block in _blocks(text.split("\n")):
        folded = _fold(block)
        if not re.search(r"\w", folded):
            continue
        if len(folded.split()) <= SHORT_WORDS and len(folded) <= LONGEST:
            yield folded
        else:
            yield from _groups(folded)


def _blocks(lines: Sequence[str]) -> Iterator[str]:
    """List items with what is indented below them, paragraphs, and the rows of what is no running text."""
    paragraph: list[str] = []
    item: list[str] = []
    for line in [*lines, ""]:
        starts = _ITEM.match(line)
        if item and not starts and _INDENT.match(line):
            item.append(line)
            continue
        if item:
            yield "\n".join(item)
            item = []
        if starts:
            yield from _paragraph(paragraph, before_list=True)
            paragraph = []
            item = [line[starts.end() :] if starts["bullet"] else line]
        elif line.strip():
            paragraph.append(line)
        else:
            yield from _paragraph(paragraph, before_list=False)
            paragraph = []


def _paragraph(lines: Sequence[str], *, before_list: bool) -> Iterator[str]:
    if not lines:
        return
    text = " ".join(lines)
    if before_list and text.rstrip().endswith(":") and not content_terms(text):
        return  # "Here is the list:" says nothing once its items stand alone
    if len(lines) > 2 and sum(bool(_ROW_END.search(line)) for line in lines) > 0.8 * len(lines):
        yield from lines
    else:
        yield text


def _groups(text: str) -> Iterator[str]:
    """Sentences joined up to some SHORT_WORDS; a sentence longer than that is cut between words."""
    group: list[str] = []
    size = 0
    for sentence in sentences(text):
        words = len(sentence.split())
        if group and (size + words > SHORT_WORDS or sum(map(len, group)) + len(sentence) > LONGEST):
            yield " ".join(group)
            group, size = [], 0
        if words > 2 * SHORT_WORDS or len(sentence) > LONGEST:
            yield from _cut(sentence)
        else:
            group.append(sentence)
            size += words
    if group:
        yield " ".join(group)


def _cut(text: str) -> Iterator[str]:
    piece: list[str] = []
    size = 0
    for word in text.split(" "):
        for part in [word[i : i + LONGEST] for i in range(0, len(word), LONGEST)]:
            if piece and (len(piece) >= SHORT_WORDS or size + len(part) > LONGEST):
                yield " ".join(piece)
                piece, size = [], 0
            piece.append(part)
            size += len(part) + 1
    if piece:
        yield " ".join(piece)


def _fold(text: str) -> str:
    return " ".join(text.split())


# ── what a user asks for once and for all, as far as clear English patterns tell ────────────────

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
