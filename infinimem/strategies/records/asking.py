"""A model asked about turns and records until its reply can be read and is right; what it is shown, and its
words: cleaned, within bounds, dated, and checked. Replies that were not taken are kept.

What it is asked about are open turns, those in no record. They are listed nowhere, so undo and `forget`
reopen turns; what is due hangs on the evidence as well, and not on how many turns a call brings. Before which
turns the talk turns to something else a model says; a reply that is of no use cuts nothing.

Source: All-Mem, section 3.2, Appendix B.5 (lengths) and C.3.1 (keywords); RecMem, sections 3.3 and 3.4;
xMemory, section 3.2 (blocks within a session) and Appendix C.1 (boundaries); GAM, section 3.2.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from infinimem.grounding.sentences import is_repetition, sentences, unsupported
from infinimem.law import latest
from infinimem.llm.base import CUT, LLM, Reply, Task, in_order
from infinimem.llm.tasks import TEXT, list_of, task
from infinimem.llm.tasks import turn as shown_turn
from infinimem.markdown.characters import clean_text, one_line
from infinimem.model import Entry, Located, Reason, RejectedReply
from infinimem.store.view import View, whole
from infinimem.strategies.records.record import UNVERIFIED, Link, Quote, Record, Ref, clean_prose, moment
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
        """Ask, and once more if the reply cannot be read; None if neither can."""
        data, wrong = self.ask_checked(task, variables, lambda _: ())
        if data is None:  # else nothing is written: calls side by side would lose what another one noted
            self.failure = wrong[0].code
        return data

    def ask_checked(
        self, task: Task, variables: Mapping[str, object], check: Callable[[Data], Sequence[Reason]]
    ) -> tuple[Data | None, Sequence[Reason]]:
        """Ask, and once more if the reply is wrong; with its problems, where the task has such a variable.
        Return the better reply (None if neither could be read), and what is still wrong with it."""
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
        """Return what was kept since this was last called, in an order in which no thread counts."""
        kept, self._rejected = sorted(self._rejected.items()), {}
        return tuple(RejectedReply(*reply, tuple(dict.fromkeys(lines))) for reply, lines in kept)


def unreadable(reply: Reply) -> Reason:
    """Return why a reply has no data."""
    return Reason(reply.failure or "EMPTY", (), reply.detail)


def named(ids: Iterable[str], among: Collection[int]) -> list[int]:
    """Return the seqs that a model names, without those that it made up, each once."""
    return [*dict.fromkeys(seq for seq in map(seq_of, ids) if seq is not None and seq in among)]


def seq_of(name: str) -> int | None:
    """Return the seq that an id stands for."""
    return whole(bare(name))


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


def unverified(found: Descriptor, quotes: Iterable[Quote]) -> tuple[tuple[str, str], ...]:
    """`UNVERIFIED` if it claims a name, number, quotation or negation that its evidence does not hold."""
    origins = [part for said in quotes for part in (said.text, said.speaker or "", said.time or "") if part]
    return UNVERIFIED if unsupported("\n".join((found.summary, *found.keywords)), origins) else ()


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


def shown_facts(records: Iterable[Record], prefix: str = "") -> list[dict[str, str | None]]:
    """What records tell, under numbers from 1."""
    numbered = enumerate(records, 1)
    return [{"id": f"{prefix}{at}", "time": r.time, "text": r.prose or r.summary} for at, r in numbered]


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
    times = [said.time for said in quotes if said.time]
    return Record(
        name,
        store.spec,
        summary,
        tuple(keywords),
        time=max(times, key=moment, default=None),
        refs=refs,
        visible=bool(text),
        aux=(*aux, *unverified(Descriptor(text, tuple(keywords)), quotes)),
        prose=prose,
    )


def add_facts(
    store: RecordStore,
    prefix: str,
    number: int,
    source: Link,
    rows: Iterable[Data],
    turns: Sequence[Located],
    known: Iterable[Record],
    most: int,
) -> Iterator[tuple[Record, Data]]:
    """Put the facts of a reply about turns that repeat none that is known, so many at most, each linked to
    its source; give each with what the reply says of it."""
    facts = [Entry(0, one.summary, "", one.time) for one in known]
    times = {turn.seq: turn.entry.time for turn in turns}
    most += len(facts)
    for row in rows:
        text, seqs = one_liner(row["text"]), named(row["from"], times)
        new = Entry(0, text, "", latest(times[seq] for seq in seqs))
        if text and seqs and len(facts) < most and not any(is_repetition(new, other) for other in facts):
            facts.append(new)
            name = store.new_id(prefix, number)
            store.put(narrated(store, name, text, map(Ref, seqs)))
            store.link(name, source)
            yield store.records[name], row


def open_turns(view: View, *documents: str) -> Mapping[str, Sequence[Located]]:
    """Return the turns that no record names, by evidence document, each in order; of some documents alone."""
    turns: dict[str, list[Located]] = {}
    for doc_id, seq in view.lines.open(*documents):
        turn = view.document(doc_id).entry(seq)
        if turn and not view.repeats(turn) and (view.upto is None or seq <= view.upto):
            turns.setdefault(doc_id, []).append(turn)
    return turns


def open_until(view: View, turn: Located) -> Sequence[Located]:
    """The open turns of a turn's session up to it."""
    return _until(open_turns(view, turn.doc_id).get(turn.doc_id, ()), turn)


def said_before(view: View, turn: Located, count: int) -> list[Located]:
    """So many turns of a session just before one; not those that a model does not take, or may not see."""
    said = view.document(turn.doc_id).entries if turn.doc_id in view else ()
    at = bisect_left(said, turn.start_line, key=lambda place: place.start_line)
    return [one for one in said[max(at - count, 0) : at] if one.seq not in view.tried]


def ended_by(view: View, turn: Located) -> list[Sequence[Located]]:
    """The open turns of the sessions that a turn ends: of all others, where it is the first of its own."""
    if view.document(turn.doc_id).entries[0].seq != turn.seq:
        return []
    found = (_until(said, turn) for doc_id, said in open_turns(view).items() if doc_id != turn.doc_id)
    return sorted(filter(None, found), key=lambda said: said[0].seq)


def _until(turns: Sequence[Located], last: Located) -> Sequence[Located]:
    return turns[: bisect_right(turns, last.seq, key=lambda turn: turn.seq)]


def ends_exchange(said: Sequence[Located], turn: Located) -> bool:
    """Whether with a turn the first speaker of some others is back after a reply."""
    places = (said[0], said[-1], turn)
    first, last, who = (place.entry.fields.get("speaker") or place.entry.role for place in places)
    return who == first != last


SHARED = 5
"""Turns that a window has in common with the one before."""
PAUSE = 30
"""Minutes of silence that a model is told of, and more."""
REASON = 200
"""Characters of a reason."""

SEGMENT = task("segment", "turns strict pauses", 1024, "tell:segment", cuts=list_of(before=TEXT, reason=TEXT))
"""Where parts of a conversation begin. `turns`: [turn, …] in order; `strict`: whether only another subject
begins one; `pauses`: [{"before": id of a turn, "minutes": of silence}, …]."""


class Segment(NamedTuple):
    """Turns that follow each other, and why they begin a segment: "" for the first."""

    turns: tuple[Located, ...]
    reason: str = ""


def segments(
    asker: Asker, turns: Sequence[Located], strict: bool, most: int = 60, workers: int = 1
) -> list[Segment]:
    """Return turns, at least one, cut where the talk turns to something else; made up names cut nothing.

    Args:
        strict: whether only a completely different subject begins a segment; else it does in doubt.
        most: turns that one call is shown; longer talks are shown in windows that share some.
    """

    def ask(turns: Sequence[Located]) -> Reply:
        rows = [shown_turn(turn.entry, turn.entry.text[: LONGEST // len(turns)]) for turn in turns]
        silences = ((str(turn.seq), int(silence(before, turn))) for before, turn in pairwise(turns))
        pauses = [{"before": name, "minutes": minutes} for name, minutes in silences if minutes > PAUSE]
        return asker.llm.complete(SEGMENT, {"turns": rows, "strict": strict, "pauses": pauses})

    if len(turns) < 2:
        return [Segment(tuple(turns))]
    shared = min(SHARED, most // 2)
    starts = range(0, max(len(turns) - shared, 1), most - shared)
    windows = [turns[start : start + most] for start in starts]
    cuts: dict[int, str] = {}
    for start, window, reply in zip(starts, windows, in_order(ask, windows, workers), strict=True):
        if reply.data is None:
            asker.reject(SEGMENT, reply, [unreadable(reply)])
        # of what two windows show, each judges the half of which it knows more
        first = turns[start + (shared + 1) // 2].seq if start else 0
        cuts = {seq: why for seq, why in cuts.items() if seq < first}
        known = {str(turn.seq): turn.seq for turn in window[1:] if turn.seq >= first}
        for cut in reversed(reply.data["cuts"] if reply.data else ()):
            if (name := bare(cut["before"])) in known:
                cuts[known[name]] = one_line(cut["reason"])[:REASON]
    begins = [at for at, turn in enumerate(turns) if at == 0 or turn.seq in cuts]
    return [
        Segment(tuple(turns[begin:end]), cuts.get(turns[begin].seq, ""))
        for begin, end in pairwise([*begins, len(turns)])
    ]


def silence(before: Located, turn: Located) -> float:
    """Minutes between two turns; 0 where their times are not known to the minute."""
    if min(len(one.entry.time or "") for one in (before, turn)) <= 10:
        return 0.0
    return (moment(turn.entry.time) - moment(before.entry.time)).total_seconds() / 60
