"""Turns and records as a model is shown them, and its words: cleaned, within bounds, dated, and checked.

Source: All-Mem, section 3.2, Appendix B.5 (lengths) and C.3.1 (keywords); RecMem, sections 3.3 and 3.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from infinimem.grounding.claims import is_repetition, unsupported
from infinimem.grounding.sentences import sentences
from infinimem.law import latest
from infinimem.llm.tasks import turn as shown_turn
from infinimem.markdown.characters import clean_text, one_line
from infinimem.model import Entry, Located
from infinimem.strategies.records.asking import Data, named
from infinimem.strategies.records.record import UNVERIFIED, Quote, Record, Ref, clean_prose, moment
from infinimem.strategies.records.record_store import RecordStore

SUMMARY = 600
"""Characters of a summary."""
KEYWORDS = 12
KEYWORD = 60
"""Characters of a keyword."""
UNDESCRIBED = 200
"""Characters of the evidence that stand in where a model gave no descriptor."""


@dataclass(frozen=True)
class Descriptor:
    """What a unit is found by; regenerable."""

    summary: str
    keywords: tuple[str, ...]

    @property
    def fault(self) -> str | None:
        """Why it may not be applied: "EMPTY" or "TOO_LONG"; None where it may."""
        if not self.summary or not self.keywords:
            return "EMPTY"
        long = len(self.summary) > SUMMARY or any(len(word) > KEYWORD for word in self.keywords)
        return "TOO_LONG" if long or len(self.keywords) > KEYWORDS else None

    def cut(self) -> Descriptor:
        """Within bounds."""
        words = dict.fromkeys(word[:KEYWORD].rstrip() for word in self.keywords)
        return Descriptor(self.summary[:SUMMARY].rstrip(), tuple(words)[:KEYWORDS])


EMPTY = Descriptor("", ())
"""Of what says nothing to be found by."""


def descriptor(summary: str, keywords: Iterable[str]) -> Descriptor:
    """What a model gave, each part on one line; blank keywords and repetitions, but for case, go."""
    words: dict[str, str] = {}
    for word in map(_clean, keywords):
        if word:
            words.setdefault(word.casefold(), word)
    return Descriptor(_clean(summary), tuple(words.values()))


def _clean(text: str) -> str:
    return " ".join(one_line(clean_text(text)).split())


def unverified(found: Descriptor, quotes: Iterable[Quote]) -> bool:
    """Whether it claims a name, a number, a quotation or a negation that its evidence does not hold."""
    origins = [part for said in quotes for part in (said.text, said.speaker or "", said.time or "") if part]
    return bool(unsupported("\n".join((found.summary, *found.keywords)), origins))


# ── what a model is shown ────────────────────────────────────────────────────────────────────────


LONGEST = 24_000
"""Characters of evidence that a model is shown, except of what it shall cut."""


def shown_turns(turns: Iterable[Located]) -> list[dict[str, str | None]]:
    """Turns, a bound on all of them together."""
    rows, room = [], LONGEST
    for turn in turns:
        rows.append(shown_turn(turn.entry, turn.entry.text[: max(room, 0)]))
        room -= len(turn.entry.text)
    return rows


def shown_record(
    store: RecordStore, name: str, called: str | None = None, *, whole: bool = False
) -> dict[str, object]:
    """A record with its evidence, under the id that the model is told, if not its own."""
    text = store.text(name)
    told = shown_descriptor(store, name) | {"text": text if whole else text[:LONGEST]}
    return told | ({"id": called, "number": name} if called else {})


def shown_descriptor(store: RecordStore, name: str) -> dict[str, object]:
    """A neighbour: its descriptor, and who said it when, as far as that is known."""
    record = store.records[name]
    speakers = {said.speaker for said in store.quotes(name)}
    told = {
        "id": record.id,
        "time": record.time,
        "speaker": speakers.pop() if len(speakers) == 1 else None,
        "when": record.when,
        "summary": record.summary,
        "keywords": list(record.keywords),
    }
    return {key: value for key, value in told.items() if value}


# ── records in a model's words ───────────────────────────────────────────────────────────────────


PROSE = 4000
"""Characters of a narrative."""


def one_liner(text: str) -> str:
    """A model's text as a summary."""
    return descriptor(text, ()).cut().summary


def narrative(text: str) -> str:
    """A model's text as prose."""
    return clean_prose(text[:PROSE])


def narrated(
    store: RecordStore,
    name: str,
    text: str,
    refs: Iterable[Ref],
    aux: Sequence[tuple[str, str]] = (),
    keywords: Sequence[str] = (),
) -> Record:
    """A record that tells of turns, under an id that tells its kind; without any text an archived one of
    prose.

    A text (cleaned by `narrative` or `one_liner`) is prose, whose first sentence is the summary, or the
    summary.
    """
    kind = store.spec.kind_of(name)
    prose = text if kind and kind.prose else ""
    summary = one_line(next(sentences(text), ""))[:SUMMARY] if prose else text
    refs = tuple(sorted(set(refs)))
    quotes = [store.quote(ref) for ref in refs]
    doubted = unverified(Descriptor(text, tuple(keywords)), quotes)
    times = [said.time for said in quotes if said.time]
    return Record(
        name,
        store.spec,
        summary,
        tuple(keywords),
        time=max(times, key=moment, default=None),
        refs=refs,
        visible=bool(text),
        aux=(*aux, *(UNVERIFIED if doubted else ())),
        prose=prose,
    )


class NewFact(NamedTuple):
    """A fact of a reply, its text cleaned, and the turns that it is from."""

    row: Data
    text: str
    refs: Sequence[Ref]


def new_facts(
    rows: Iterable[Data], turns: Iterable[Located], known: Iterable[Record], most: int
) -> Iterator[NewFact]:
    """The facts of a reply that repeat none that is known, so many at most."""
    facts = [Entry(0, one.summary, "", one.time) for one in known]
    times = {turn.seq: turn.entry.time for turn in turns}
    most += len(facts)
    for row in rows:
        text, seqs = one_liner(row["text"]), named(row["from"], times)
        new = Entry(0, text, "", latest(times[seq] for seq in seqs))
        if text and seqs and len(facts) < most and not any(is_repetition(new, other) for other in facts):
            facts.append(new)
            yield NewFact(row, text, [*map(Ref, seqs)])
