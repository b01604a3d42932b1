"""Turns and records as a model is shown them, and its words: cleaned, within bounds, dated, and checked.

Source: All-Mem, section 3.2, Appendix B.5 (lengths) and C.3.1 (keywords); RecMem, sections 3.3 and 3.4."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from infinimem.grounding.claims import unsupported
from infinimem.grounding.sentences import sentences
from infinimem.grounding.when import day_of, fits
from infinimem.llm.base import LLM, Reply, Task
from infinimem.llm.parallel import in_order
from infinimem.llm.tasks import turn as shown_turn
from infinimem.markdown.characters import clean_text, one_line
from infinimem.model import Located, RejectedReply
from infinimem.store.view import View
from infinimem.strategies.records.codec import clean_prose
from infinimem.strategies.records.record import UNVERIFIED, Quote, Record, Ref, moment
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


def descriptor(summary: str, keywords: Iterable[str]) -> Descriptor:
    """What a model gave, each part on one line; blank keywords and repetitions, but for case, go."""
    words: dict[str, str] = {}
    for word in map(_clean, keywords):
        if word:
            words.setdefault(word.casefold(), word)
    return Descriptor(_clean(summary), tuple(words.values()))


def _clean(text: str) -> str:
    return " ".join(one_line(clean_text(text)).split())


def undescribed(text: str) -> Descriptor:
    """What stands in where a model left a turn out: its beginning."""
    return Descriptor(_clean(text[: 2 * UNDESCRIBED])[:UNDESCRIBED].rstrip(), ())


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
    """A record with its evidence.

    Args:
        store: that it stands in.
        name: its id.
        called: the id that the model is told; None for its own.
        whole: whether the text is shown to its end, however long it is.
    """
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
    """A record that tells of turns.

    Args:
        store: the records; it is not edited.
        name: its id, which tells its kind: whether the text is prose, whose first sentence is the summary
            then, or the summary itself.
        text: cleaned by `narrative` or `one_liner`; without any it is an archived record of prose.
        refs: the turns, in any order.
        aux: what else is to be told of it, before the mark.
        keywords: in the model's words too.
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


# ── turns described, several in a call ───────────────────────────────────────────────────────────


CONTEXT_LENGTH = 400
"""Characters of an earlier turn that is shown for its context."""

EMPTY = Descriptor("", ())
"""Of what says nothing to be found by."""


@dataclass(frozen=True)
class Described:
    """A turn with its descriptor, which is empty for one that says nothing to be found by.

    Args:
        turn: as it was shown.
        descriptor: of the model; where its reply was of no use the turn's first words.
        when: when what it tells of happened, if the model said so and the words can mean it.
        wrong: what was wrong with the reply, if anything.
        unverified: whether it claims what neither the turn nor those before it say.
        failure: why nothing could be read, "" if something could.
    """

    turn: Located
    descriptor: Descriptor
    when: str | None = None
    wrong: RejectedReply | None = None
    unverified: bool = False
    failure: str = ""


@dataclass(frozen=True)
class Describer:
    """Asks a model.

    Args:
        task: is asked with `turns` and their `context`, and gives `cards`: id, `summary`, `keywords`, `when`.
        llm, workers: the model, and how many calls run side by side.
        most: turns of a call.
        before: turns before them that it is shown too.
    """

    task: Task
    llm: LLM
    workers: int
    most: int
    before: int

    def describe(self, view: View, turns: Sequence[Located]) -> list[Described]:
        """A descriptor for each of these turns of a session, in order.

        Raises:
            ModelUnavailable: nothing is to be written; the turns stay pending.
        """
        found = in_order(partial(self._portion, view), self._portions(turns), self.workers)
        return [one for portion in found for one in portion]

    def _portions(self, turns: Sequence[Located]) -> list[Sequence[Located]]:
        """Turns for a call each: about as many in all, and no more text than a model is shown."""
        most = max(1, self.most)
        size = -(-len(turns) // -(-len(turns) // most)) if turns else 1
        portions: list[list[Located]] = [[]]
        room = LONGEST
        for turn in turns:
            length = len(turn.entry.text)
            if portions[-1] and (len(portions[-1]) == size or length > room):
                portions.append([])
                room = LONGEST
            portions[-1].append(turn)
            room -= length
        return [portion for portion in portions if portion]

    def _portion(self, view: View, turns: Sequence[Located]) -> list[Described]:
        """What a reply about several lacks is asked for once more, each turn by itself."""
        told = [turn for turn in turns if turn.entry.text.strip()]
        found = self._ask(view, told, self.before) if told else {}
        for turn in told if len(told) > 1 else ():
            if found[turn.seq].wrong:
                found |= self._ask(view, [turn], 0 if found[turn.seq].failure else self.before)
        return [found.get(turn.seq) or Described(turn, EMPTY) for turn in turns]

    def _ask(self, view: View, turns: Sequence[Located], most: int) -> dict[int, Described]:
        """Descriptors by seq; what a model does not take is no context of others."""
        before = [turn for turn in _before(view, turns[0], most) if turn.seq not in view.tried]
        context = [shown_turn(turn.entry, turn.entry.text[:CONTEXT_LENGTH]) for turn in before]
        shown = [shown_turn(turn.entry, turn.entry.text[:LONGEST]) for turn in turns]
        reply = self.llm.complete(self.task, {"context": context, "turns": shown})
        cards = {row["id"].strip(" #[]"): row for row in (reply.data or {}).get("cards", ())}
        said = [*before, *turns]
        return {
            turn.seq: self._read(said[: at + 1], cards.get(str(turn.seq)), reply)
            for at, turn in enumerate(turns, len(before))
        }

    def _read(self, said: Sequence[Located], card: Mapping[str, Any] | None, reply: Reply) -> Described:
        """The last of some turns by its card; without one by its first words."""
        turn = said[-1]
        if card is None:
            why = f"{reply.failure}: {reply.detail}" if reply.data is None else "MISSING: no card of it"
            wrong = RejectedReply(self.task.name, reply.text, (why,))
            return Described(turn, undescribed(turn.text), wrong=wrong, failure=reply.failure or "")
        found = descriptor(card["summary"], card["keywords"]).cut()
        if not found.summary:
            return Described(turn, EMPTY)
        when = (card["when"] or "").strip()
        told = when and fits(when, [(turn.text, day_of(turn.entry.time))])
        return Described(turn, found, when if told else None, unverified=unverified(found, map(_quote, said)))


def _quote(turn: Located) -> Quote:
    return Quote(Ref(turn.seq), turn.entry.fields.get("speaker"), turn.entry.time, turn.text)


def _before(view: View, first: Located, count: int) -> Sequence[Located]:
    """The turns of the session just before one."""
    if first.doc_id not in view or count <= 0:
        return ()
    said = view.document(first.doc_id).entries
    at = bisect_left(said, first.start_line, key=lambda place: place.start_line)
    return said[max(at - count, 0) : at]
