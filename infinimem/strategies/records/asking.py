"""A model asked about turns and records until its reply can be read and is right; what it is shown, and its
words: cleaned, within bounds, dated, and checked. Replies that were not taken are kept.

Source: All-Mem, section 3.2, Appendix B.5 (lengths) and C.3.1 (keywords); RecMem, sections 3.3 and 3.4.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from infinimem.grounding.claims import is_repetition, unsupported
from infinimem.grounding.sentences import sentences
from infinimem.law import latest
from infinimem.llm.base import CUT, LLM, Reply, Task
from infinimem.llm.tasks import turn as shown_turn
from infinimem.markdown.characters import clean_text, one_line
from infinimem.model import Entry, Located, Reason, RejectedReply
from infinimem.strategies.records.record import UNVERIFIED, Quote, Record, Ref, clean_prose, moment
from infinimem.strategies.records.record_store import RecordStore

Data = Mapping[str, Any]

TRIES = 2
"""How often a model is asked for a reply that can be read, or is right."""
IN_VAIN = 3
"""Plans in a row without one, after which it is not asked about more in the same call."""


class Asker:
    """Asks a model, and keeps the replies that were not taken unchanged until someone takes them."""

    def __init__(self, llm: LLM) -> None:
        self.llm = llm
        self.failure = ""
        """Why `ask` had no reply in the end, of the last question of which that is so."""
        self._rejected: dict[tuple[str, str], list[str]] = {}

    def take(self, other: Asker) -> None:
        """Keep what another one kept, which asked in another thread."""
        for reply, lines in other._rejected.items():
            self._rejected.setdefault(reply, []).extend(lines)

    def complete(self, task: Task, variables: Mapping[str, Any]) -> Reply:
        """Ask as `LLM.complete` does; a reply that cannot be read is kept."""
        reply = self.llm.complete(task, variables)
        if reply.data is None:
            self.reject(task, reply, [unreadable(reply)])
        return reply

    def ask(self, task: Task, **variables: object) -> Data | None:
        """Ask, and once more if the reply cannot be read; None if neither can.

        Raises:
            ModelUnavailable: the model does not answer.
        """
        data, wrong = self.ask_checked(task, variables, lambda _: ())
        self.failure = self.failure if data is not None else wrong[0].code
        return data

    def ask_checked(
        self, task: Task, variables: Mapping[str, object], check: Callable[[Data], Sequence[Reason]]
    ) -> tuple[Data | None, Sequence[Reason]]:
        """Ask, and once more if the reply is wrong; with its problems, where the task has such a variable.

        Returns:
            The better of the replies (None if neither could be read), and what is still wrong with it.
        """
        best: Data | None = None
        left: Sequence[Reason] = ()
        problems: Sequence[Reason] = ()
        mends = "problems" in task.variables
        for _ in range(TRIES):
            told = {"problems": [str(reason) for reason in problems]} if mends else {}
            reply = self.complete(task, {**variables, **told})
            if reply.data is None:
                problems = (unreadable(reply),)
                left = left if best is not None else problems
                if reply.failure in CUT and not mends:  # it would not fit the next time either
                    break
                continue
            problems = tuple(check(reply.data))
            self.reject(task, reply, problems)
            if best is None or len(problems) <= len(left):
                best, left = reply.data, problems
            if not problems:
                break
        return best, left

    def reject(self, task: Task, reply: Reply, reasons: Iterable[Reason]) -> None:
        """Keep a reply because of these reasons; without any, nothing is kept."""
        lines = [str(reason) for reason in reasons]
        if lines:
            text = reply.text or ("" if reply.data is None else json.dumps(reply.data, ensure_ascii=False))
            self._rejected.setdefault((task.name, text), []).extend(lines)

    def rejected(self) -> tuple[RejectedReply, ...]:
        """Return what was kept since this was last called, in the order in which it came."""
        kept, self._rejected = self._rejected, {}
        return tuple(
            RejectedReply(task, text, tuple(dict.fromkeys(lines))) for (task, text), lines in kept.items()
        )


def unreadable(reply: Reply) -> Reason:
    """Return why a reply has no data."""
    return Reason(reply.failure or "EMPTY", (), reply.detail)


def named(ids: Iterable[str], among: Iterable[int]) -> list[int]:
    """Return the seqs that a model names, without those that it made up, each once and ascending."""
    known = {str(seq): seq for seq in among}
    return sorted({known[name] for name in map(bare, ids) if name in known})


def bare(name: str) -> str:
    """Return an id as it was given; models write "41", sometimes "#41", or "[41]" as prompts show it."""
    return name.strip(" \t\n#[]<>")


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
