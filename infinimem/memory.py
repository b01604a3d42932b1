"""The facade that applications, the command line and servers call. It drives strategies.

In: turns, questions, commands. Out: entries, evidence, answers, receipts. Promise: turns are on disk before a
model is asked, and an unreachable model loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass, replace
from datetime import UTC
from functools import cached_property, partial
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from infinimem.embedders.local import Choice
from infinimem.errors import LibraryError, ModelUnavailable, ReplyAwaited, UsageError, escape
from infinimem.llm.base import LLM, OFFLINE
from infinimem.llm.connect import permitted
from infinimem.llm.replies import Cached
from infinimem.log import log
from infinimem.markdown.signature import format_seqs
from infinimem.model import AGAIN, LEFT, Finding, Located, Plan, Receipt, Turn, Unanswered, Usage
from infinimem.reader import Compared, Reader
from infinimem.spec import spec_of
from infinimem.store.library import Clock, Library, init, system_clock
from infinimem.store.receipts import last_forget, next_number, receipts_of
from infinimem.store.state import newly_unanswered, note_usage, usage_by_day
from infinimem.store.view import Applied, Outcome, Rejected, View
from infinimem.user_folders import cache_folder

if TYPE_CHECKING:
    from typing import Self

    from openai import OpenAI

    from infinimem.importers.exports import Message
    from infinimem.llm.agent import Desk
    from infinimem.operations.as_of import FactChanges
    from infinimem.operations.forget.forget import Forgotten, Renamed
    from infinimem.operations.history import Blamed, Event
    from infinimem.operations.review import ReviewItem
    from infinimem.strategies.base import Event as Tick
    from infinimem.strategies.base import Plans

Progress = Callable[[int, int], None]  # called with the turns done and the turns to do
PORTION = 1000  # turns that are held at once while a strategy works on them


class Observed(tuple[Located, ...]):
    """New entries. `unanswered` has the turns about which no answer of the model was of use, by seq."""

    unanswered: Mapping[int, Unanswered] = MappingProxyType({})


@dataclass
class _Attempt:
    """A plan and what became of it; the strategy is sent this outcome, whose view may be made newer."""

    plan: Plan
    outcome: Outcome


def open_memory(
    path: str | Path,
    *,
    model: str | LLM | OpenAI | None = None,
    strategy: str | None = None,
    create: bool = False,
    clock: Clock = system_clock,
    embedder: Choice = None,
    trust: bool = False,
    read_only: bool = False,
) -> Memory:
    """Open a memory folder, or any folder of notes.

    Args:
        model: a model's name, "offline", or what answers in its place (an `openai.OpenAI` asks the model that
            the settings name); None takes the settings', else "offline".
        strategy, embedder: by name; None takes infinimem.toml. An embedder may be given itself.
        create: make the folder a library if it is not one.
        clock: gives the time; injected by tests and reproducible runs.
        trust: let infinimem.toml decide where text goes, though nobody ran `infinimem trust`.
        read_only: refuse every write.

    Raises LibraryError where there is no such folder, UsageError for a name or setting that is none.
    """
    kept_by = spec_of(strategy).name if strategy is not None else None
    if create:
        library = init(Path(path), clock, embedder, kept_by, trust)
    else:
        library = Library(Path(path), clock, embedder, kept_by, trust=trust, read_only=read_only)
    llm = model if isinstance(model, LLM) else permitted(model, library.configuration, library.root)
    return Memory(library, llm)


class Memory(Reader):
    """A library with the strategy that keeps it and the model that helps. Made by `open_memory`."""

    def __init__(self, library: Library, llm: LLM) -> None:
        client = llm if isinstance(llm, Cached) else Cached(llm)
        make = partial(library.spec.make, client, library.settings)
        super().__init__(library.view, client, make, lambda: library.clock())
        self.library = library
        self._logged, self._logging = client.spent, Lock()
        self._extracting = Lock()  # of threads side by side one asks about what is pending

    def __repr__(self) -> str:
        kept = f"strategy={self.library.spec.name!r}, model={self.llm.name!r}"
        return f"Memory({str(self.library.root)!r}, {kept})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop watching the folder; all that was written is on disk without it, and later calls work."""
        self.library.fresh.stop()

    def observe(
        self, turns: Iterable[Turn | Message], progress: Progress | None = None, max_tokens: int | None = None
    ) -> Observed:
        """Record turns, in order, and extract entries from them, and from turns that are still pending.

        Messages of a chat count, too (`{"role": …, "content": …}`): the text of users and assistants. Once
        `max_tokens` are spent the other turns stay pending.

        Returns the new entries, where they stand; of a strategy that keeps records, the turns that have one
        now. Of turns in `unanswered` no answer of the model was of use; they stay pending. With the model
        "agent" turns are only recorded (see `tasks`).

        Raises:
            UsageError: a turn is empty, its time is no time, or a message is none; nothing is recorded.
            NotALibrary: the folder was not made a library.
            ModelUnavailable: the turns are recorded, and the next call extracts from them.
        """
        self.record(turns)
        before = self.unanswered()
        with self._spending(max_tokens):
            new = self._extract(progress)
        view = self.view
        observed = Observed(place for seq in new if (place := view.entry(seq)))
        observed.unanswered = newly_unanswered(before, view.unanswered())
        return observed

    def record(self, turns: Iterable[Turn | Message]) -> tuple[Located, ...]:
        """Write turns down, without a model, and return the new lines; the next `observe` extracts from them.
        Raises UsageError and NotALibrary as that does."""
        from infinimem.importers.exports import chat_turns

        return self.library.record(tuple(chat_turns(turns)))

    def draw(self, progress: Progress | None = None, max_tokens: int | None = None) -> int:
        """Extract from pending turns as `observe` does, and return only how many entries are new: an import's
        are more than memory should hold."""
        with self._spending(max_tokens):
            return len(self._extract(progress))

    def _extract(self, progress: Progress | None = None, upto: int | None = None) -> Collection[int]:
        """Extract what is pending, `upto` a turn; return new seqs: lines would keep documents in memory."""
        new: dict[int, None] = {}
        done: set[int] = set()
        if self.by_agent and upto is None:
            return new
        try:
            with self._extracting:
                view = self.view
                pending = [seq for seq in view.pending(self.llm.name) if upto is None or seq <= upto]
                if pending and upto is None and self._tick("append", view):
                    view = self.view
                for at in range(0, len(pending), PORTION):
                    portion = pending[at : at + PORTION]
                    if not view.uncited(portion):
                        continue
                    for attempt in self._drive(partial(self._observing, portion), view):
                        if isinstance(attempt.outcome, Applied):
                            held = [seq for put in attempt.plan.records for seq in put.origin]
                            new.update(dict.fromkeys((*(one.seq for one in attempt.outcome.added), *held)))
                            done.update(attempt.plan.empty, held, *(add.origin for add in attempt.plan.adds))
                            if upto is None and self._tick("due", attempt.outcome.view):
                                self.library.adopt_edits()
                                attempt.outcome = replace(attempt.outcome, view=self.view)
                        view = attempt.outcome.view
                        if progress:
                            progress(len(done), len(pending))
        except ModelUnavailable as error:
            raise type(error)(
                f"{error}; what was said is recorded and drawn from at the next call"
            ) from error
        return new

    def _observing(self, portion: Sequence[int], view: View) -> Plans:
        return self.strategy.observe(view, view.whole.uncited(portion))

    def _tick(self, event: Tick, view: View) -> list[Receipt]:
        return self._driven(lambda view: self.strategy.tick(view, event), view)

    def _driven(self, propose: Callable[[View], Plans], view: View) -> list[Receipt]:
        outcomes = (attempt.outcome for attempt in self._drive(propose, view))  # each holds a whole view
        return [each.receipt for each in outcomes if isinstance(each, Applied) and each.receipt]

    def _drive(self, propose: Callable[[View], Plans], view: View) -> Iterator[_Attempt]:
        """Apply a strategy's plans one by one, and yield what became of each. Where lines are forgotten
        meanwhile, what the strategy has thought so far may quote them: it begins anew. It sees the library as
        models do."""
        library, llm = self.library, self.llm
        while True:
            view.entry(0)  # read now: what the plans are made from is as it is before a model thinks
            forgotten, plans, attempt = last_forget(view), propose(view.for_models), None
            try:
                while attempt is None or last_forget(attempt.outcome.view) == forgotten:
                    spent, authors, began = llm.usage, len(llm.authors), library.clock()
                    seen = attempt.outcome.view.for_models if attempt else view
                    plan = plans.send(replace(attempt.outcome, view=seen)) if attempt else next(plans)
                    names = sorted({*llm.authors[authors:]})
                    outcome = library.apply(
                        plan,
                        base=view,
                        strategy=library.spec.name,
                        model=llm.name + (f" ({', '.join(names)})" if names else ""),
                        usage=llm.usage - spent,
                        began=began,
                    )
                    if isinstance(outcome, Rejected) or not outcome.receipt:  # no receipt holds them
                        reasons = outcome.reasons if isinstance(outcome, Rejected) else ()
                        for remark in (*plan.notes, *map(str, reasons)):
                            log.info("%s: %s", plan.op, remark)
                    attempt = _Attempt(plan, outcome)
                    yield attempt
                    view = attempt.outcome.view
            except StopIteration:
                return
            plans.close()

    def write(self, doc_id: str, text: str) -> Receipt:
        """Add a line of a person's own to a topic, or to CURRENT; UsageError if it is neither, or no text."""
        from infinimem.store.external_edits import write

        now = self.library.clock().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")
        return self.library.by_hand(lambda view, next_seq: write(view, doc_id, text, now, next_seq))

    def edit(self, seq: int, text: str) -> Receipt:
        """Have a fact say something else, in a person's words; UsageError if none stands, or no text."""
        from infinimem.store.external_edits import edit

        return self.library.by_hand(lambda view, _: edit(view, seq, text))

    def pin(self, seq: int, pinned: bool = True) -> Receipt:
        """Keep a fact from being archived without approval, or no longer; UsageError as of `edit`."""
        from infinimem.store.external_edits import pin

        return self.library.by_hand(lambda view, _: pin(view, seq, pinned))

    def unanswered(self) -> Mapping[int, Unanswered]:
        """Return the turns about which no answer of the model was of use, by seq. They are asked about at the
        next call that extracts, three times by one model."""
        return self.view.unanswered()

    def leave(self, seqs: Collection[int]) -> None:
        """Leave such turns as they were said: no model is asked about them any more; UsageError if one is
        none."""
        if wrong := sorted(set(seqs) - self.unanswered().keys()):
            raise UsageError(f"{format_seqs(wrong)}: no turn without a usable answer; doctor lists those")
        self.library.mark(dict.fromkeys(seqs, LEFT))

    def retry(self) -> None:
        """Have the next call that extracts ask about such turns again, also those given up or left."""
        self.library.mark(dict.fromkeys(self.view.tried, AGAIN))

    def consolidate(self, max_tokens: int | None = None) -> Receipt | None:
        """Sort the buffer into topics now, due or not; return the receipt, None if there was nothing to do.

        Once `max_tokens` are spent no further call is made; what was applied stays, as with ModelUnavailable.
        Raises ReplyAwaited where the agent is the model, and has `tasks`; NotALibrary.
        """
        self.library.demand_initialised()
        if self.by_agent:
            number = next_number(self.view)
            if tasks := self.tasks.go_on("consolidate"):
                raise ReplyAwaited(tasks)
            return next(receipts_of(self.view, number - 1), None)
        with self._spending(max_tokens):
            self._extract()
            return self._consolidated()

    def _consolidated(self) -> Receipt | None:
        self.library.adopt_edits()
        receipts = self._tick("consolidate", self.view)
        return receipts[0] if receipts else None

    @cached_property
    def tasks(self) -> Desk:
        """What awaits the agent's replies where the agent is the model, and the work that they are for."""
        from infinimem.llm.agent import Desk

        return Desk(self.library, self.llm, self._work, self._replies)

    def _demand_model(self, what: str) -> None:
        if self.by_agent:
            raise UsageError(f"{what} needs a model that answers at once; --model names one, or offline")

    def _work(self, upto: int, event: Tick, applied: Callable[[], None]) -> None:
        """Extract from turns up to one, then consolidate; call `applied` after each plan of that."""
        with self._spending():
            self._extract(upto=upto)
            self.library.adopt_edits()
            (view := copy(self.view)).upto = upto
            for attempt in self._drive(partial(self.strategy.tick, event=event), view):
                if isinstance(attempt.outcome, Applied):
                    applied()

    def preview(self, max_tokens: int | None = None) -> Mapping[str, tuple[bytes, bytes]]:
        """Return what `consolidate` would write: bytes before and after, by document. Nothing is done; a
        `consolidate` that follows makes the same of the replies that were kept."""
        from infinimem.operations.as_of import copied, differences

        self._demand_model("a dry run")
        with self._spending(max_tokens), copied(self.library, self.library.clock) as library:
            before, memory = library.view(), Memory(library, self.llm)
            memory._extract()
            memory._consolidated()
            return differences(before, library.view())

    def repeat(self, receipt: str) -> tuple[str, ...]:
        """Repeat a consolidation from the library as it stood, of kept replies alone, and return the ids of
        documents that came out other than then. UsageError for a receipt that is none, or another model's;
        ModelUnavailable if replies are gone, or a later receipt of the same call was named."""
        from infinimem.operations.as_of import before, changed

        client = self.llm if self.llm.name == OFFLINE else Cached(self.llm.silent(), self._replies())
        made: list[Receipt] = []
        with before(self.library, receipt, self.llm.name, made) as (library, done):
            memory = Memory(library, client)
            for attempt in memory._drive(lambda view: memory.strategy.tick(view, "consolidate"), memory.view):
                if isinstance(attempt.outcome, Applied) and attempt.outcome.receipt:
                    made.append(attempt.outcome.receipt)  # noqa: PERF401 - the clock looks at it meanwhile
        return changed(made, done)

    def rebuild(self, progress: Progress | None = None, max_tokens: int | None = None) -> tuple[Receipt, ...]:
        """Derive anew what the strategy derived: all of its records, or the headings and summaries of topics;
        return the receipts. After ModelUnavailable what was done stays, and `observe` goes on."""
        self.library.demand_initialised()
        self._demand_model("to rebuild")
        with self._spending(max_tokens):
            receipts = self._driven(self.strategy.rebuild, self.view)
            self._extract(progress)
            if not self.library.spec.has_entries and (last := self._consolidated()):
                receipts.append(last)
            return tuple(receipts)

    def compare(
        self, question: str, max_tokens: int | None = None, now: str | None = None
    ) -> tuple[Compared, ...]:
        """Ask every strategy that keeps this library the same question, its own first; `max_tokens` is the
        cap of all together. Arguments and errors as of `Reader.ask`."""
        with self._spending(max_tokens):
            return tuple(one._compared(question, now) for one in self._siblings())

    def estimate(self) -> int:
        """Return the tokens that `consolidate` would send to a model, roughly."""
        return self.strategy.estimate(self.view)

    @contextmanager
    def _spending(self, max_tokens: int | None = None) -> Iterator[None]:
        """Hold a cap and keep replies for the time of the block, and log on the day what was spent."""
        own = self.library.settings.llm
        try:
            with self.llm.cap(max_tokens), self.llm.within(self._replies(), own.replies_days, own.replies_mb):
                yield
        finally:
            if self.library.initialised and not self.library.read_only:
                with self._logging:  # calls may run side by side
                    now = self.llm.spent
                    spent, self._logged = now - self._logged, now
                note_usage(self.library.files, self._day(), spent)

    def _replies(self) -> Path | None:
        """Return where replies are kept: after a `forget` elsewhere, for those then on their way; never in
        the library, whose maker could have made them up."""
        if self.llm.address is None or not self.library.settings.llm.replies_days:
            return None
        return cache_folder(str(self.library.files.root), "replies", str(last_forget(self.view)))

    def spent_today(self) -> int:
        """Return the tokens that the library's calls took today (UTC), in all processes."""
        return usage_by_day(self.library.files).get(self._day(), Usage()).tokens

    def _day(self) -> str:
        return self.library.clock().astimezone(UTC).date().isoformat()

    def at(self, moment: str) -> Reader:
        """Return the library as it stood, for asking, at a seq ("41"), a time ("2025-03-03", "7d",
        "2025-03-03T14:05Z") or a receipt's id; UsageError if it is none of these."""
        from infinimem.operations import as_of

        past = as_of.as_of(self.view, as_of.moment(self.view, moment, self.library.clock()))
        return self._over(lambda: past)

    def _siblings(self) -> tuple[Reader, ...]:
        """Return the library as each strategy that keeps it sees it, its own first; they only read."""
        return tuple(
            Reader(one.view, self.llm, partial(one.spec.make, self.llm, one.settings), one.clock)
            for one in self.library.siblings()
        )

    def receipts(self) -> tuple[Receipt, ...]:
        """Return all receipts, oldest first."""
        return self.library.receipts()

    def changes(self, span: str | None = None) -> FactChanges:
        """Return which facts a receipt changed (None: the newest), or became other between two moments
        ("2025-03-01..2025-03-08", "7d.." until now), and the receipts of that time; UsageError as of `at`."""
        from infinimem.operations import as_of

        return as_of.changes(self.view, span, self.library.clock())

    def history(self, seq: int) -> tuple[Event, ...]:
        """Return the story of a line: who said it, what each receipt did, where it is now, what came of it.
        LibraryError if no line has this seq, and no receipt names it."""
        from infinimem.operations.history import history

        return history(self.view, seq)

    def blame(self, doc_id: str, line: int | None = None) -> tuple[Blamed, ...]:
        """Return who or what put each line of a document there, or one; lines count from 1, the header
        included. LibraryError if there is no such document or line."""
        from infinimem.operations.history import blame

        return blame(self.view, doc_id, line, self.library.seen_lines())

    def undo(self, receipt: str | None = None, together: bool = False) -> tuple[Receipt, ...]:
        """Take a receipt back ("journal/0007-consolidate-3f9ac1", "7-3f9ac1", "7"; None: the newest), as a
        new transaction, `together` with later ones that lean on it; return the receipts of what was done.
        UsageError if there is none, or several; LibraryError, which says why, if it cannot be undone."""
        from infinimem.llm.agent import RUN
        from infinimem.operations.undo import undo

        self.library.demand_initialised()
        receipts = undo(self.library, receipt, together)
        if self.library.files.lstat(RUN):  # else an agent's next reply would do the same again
            self.library.files.remove(RUN, durable=False)
        return receipts

    def forget(
        self,
        seqs: Collection[int] = (),
        *,
        match: str | None = None,
        source: str | None = None,
        session: str | None = None,
        dry_run: bool = False,
    ) -> Forgotten:
        """Take lines out for good, with what they were extracted from and all that was extracted from that.

        They are named in one way: by number; by a pattern that occurs in them (RE2, any case; what is none is
        taken literally); or by a source ("user", "AI", "tool", "human"), a session (of an imported one the
        title is enough), or both. UsageError for a number that no line has, or a title that several have.
        With `dry_run` it only tells which lines would go.
        """
        from infinimem.index.grep import compile_pattern
        from infinimem.operations.forget.forget import forget, preview_forget
        from infinimem.operations.forget.redaction import Wanted, named_session

        if sum((bool(seqs), match is not None, source is not None or session is not None)) != 1:
            raise UsageError("say what to forget in one way: numbers, a match, or a source or session")
        pattern = compile_pattern(match) if match is not None else None
        session = named_session(self.view, session) if session else session
        wanted = Wanted(frozenset(seqs), pattern.found if pattern else lambda _: (), source, session)
        done = preview_forget(self.library, wanted) if dry_run else forget(self.library, wanted)
        return replace(done, notes=tuple(pattern.notes) if pattern else ())

    def rename(self, name: str, new: str) -> Renamed:
        """Give a topic, a session's evidence or a model's own file another name, in receipts too; it may be
        one that only receipts still name. The file's name is the slug of the new one. UsageError if it is
        none of these, or the new name is none, or taken."""
        from infinimem.operations.forget.forget import rename

        return rename(self.library, name, new)

    def review(self) -> tuple[ReviewItem, ...]:
        """Return what needs approval (operations/review.py); what is void is reported once, then dropped."""
        from infinimem.operations.review import awaiting, drop

        rows = awaiting(self.library)
        if void := [row for row in rows if row.void]:
            with suppress(LibraryError):  # of a disk that refuses, or while another writes: the next time
                drop(self.library, void)
        return rows

    def decide(self, approve: Sequence[str] = (), reject: Sequence[str] = ()) -> tuple[Receipt, ...]:
        """Do what a person approved of it, and drop what they rejected: "7", "7:12,15". UsageError if
        nothing that waits is called so; LibraryError if a line that was named alone cannot be approved any
        more."""
        from infinimem.operations.review import decide

        self.library.demand_initialised()
        return decide(self.library, approve, reject)

    def status(self) -> dict[str, Any]:
        """Return counts for people and scripts."""
        from infinimem.operations.doctor import counts

        view = self.view
        return {
            **counts(self.library),
            **self.strategy.status(view),
            "index": "on disk" if cache_folder(str(self.library.files.root)) else "in a temporary folder",
            "spent": {day: vars(one) for day, one in usage_by_day(self.library.files).items()},
            "strategy": view.spec.name,
            "strategies": {
                one.spec.name: sum(len(view.below(folder)) for folder in one.spec.folders)
                for one in self.library.siblings()
            },
            "model": escape(self.llm.name),
            **({"tasks": self.tasks.counts()} if self.by_agent else {}),
        }

    def doctor(self) -> list[Finding]:
        """Check the folder, and the invariants of each strategy that keeps it; nothing is written."""
        from infinimem.operations.doctor import examine

        findings = examine(self.library)
        with suppress(LibraryError):  # a file that cannot be read is among the findings
            for one in self._siblings():
                findings += one.strategy.check(one.view)
        return findings

    def repair(self) -> list[Finding]:
        """Do what the `fix` of findings says, nothing that could lose a word, and return what this settled.
        LibraryError if the disk refused, or the library is busy."""
        from infinimem.operations.doctor import repair

        return repair(self.library)
