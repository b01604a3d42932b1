"""The facade that applications, the command line and servers call. It drives strategies.

In: turns, questions, commands. Out: entries, evidence, answers, receipts. Promise: turns are on disk before a
model is asked, and an unreachable model loses nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from threading import Lock
from typing import Any

from infinimem.embedders.connect import Choice
from infinimem.errors import LibraryError, ModelUnavailable, UsageError
from infinimem.llm.base import LLM, Capped, total
from infinimem.llm.connect import permitted
from infinimem.model import Answer, Finding, Located, Plan, Receipt, Turn
from infinimem.operations.as_of import as_of
from infinimem.operations.as_of import moment as moment_of
from infinimem.operations.blame import Blamed, blame
from infinimem.operations.doctor.examine import examine
from infinimem.operations.doctor.repair import repair
from infinimem.operations.forget.choice import Wanted
from infinimem.operations.forget.forget import Forgotten, forget, preview_forget
from infinimem.operations.history import Event, history
from infinimem.operations.review import ReviewItem, awaiting, decide, drop_void
from infinimem.operations.review import keep as keep_plan
from infinimem.operations.status import counts
from infinimem.operations.undo import undo
from infinimem.reader import Reader
from infinimem.retrieval.cache import cache_folder, is_large
from infinimem.retrieval.grep import compile_pattern
from infinimem.store.create import init
from infinimem.store.library import Clock, Library, system_clock
from infinimem.store.outcome import Applied, Outcome
from infinimem.store.state import usage
from infinimem.store.view import View
from infinimem.strategies.base import Plans
from infinimem.strategies.driving import Note, drive
from infinimem.strategies.registry import known, make

log = logging.getLogger("infinimem")

Progress = Callable[[int, int], None]
"""Called with the turns done and the turns to do."""


def open_memory(
    path: str | Path,
    *,
    model: str | LLM | None = None,
    strategy: str | None = None,
    create: bool = False,
    clock: Clock = system_clock,
    embedder: Choice = None,
    trust: bool = False,
    read_only: bool = False,
) -> Memory:
    """Open a memory folder, or any folder of notes.

    Args:
        path: the folder.
        model: a model's name, "offline", or a client; None takes the settings', else "offline".
        strategy: which system keeps it, "infini" or "allmem"; None takes infinimem.toml.
        create: make the folder a library if it is not one.
        clock: gives the time; injected by tests and reproducible runs.
        embedder: what gives texts vectors, by name ("lexical", "static", "minilm", "openai") or itself; None
            takes the settings'.
        trust: let infinimem.toml decide where text goes, though nobody ran `infinimem trust`.
        read_only: refuse every write.

    Raises:
        LibraryError: no such folder (and `create` is false).
        UsageError: no such strategy or embedder, or a setting is wrong.
    """
    kept_by = known(strategy) if strategy is not None else None
    if create:
        library = init(Path(path), clock, embedder, kept_by, trust)
    else:
        library = Library(Path(path), clock, embedder, kept_by, trust=trust, read_only=read_only)
    if model is None or isinstance(model, str):
        model = permitted(model, library.configuration, library.root)
    return Memory(library, model)


class Memory(Reader):
    """A library with the strategy that keeps it and the model that helps. Made by `open_memory`."""

    def __init__(self, library: Library, llm: LLM) -> None:
        self.library = library
        capped = Capped(llm)
        strategy = make(library.spec.name, capped, library.settings)
        super().__init__(library.view, capped, strategy, lambda: library.clock())
        self._booked, self._booking = total(capped.usage), Lock()
        self._extracting = Lock()  # of threads side by side one asks about what is pending

    # ── writing ─────────────────────────────────────────────────────────────────────────────────

    def observe(
        self, turns: Iterable[Turn], progress: Progress | None = None, max_tokens: int | None = None
    ) -> tuple[Located, ...]:
        """Record turns and draw entries from them, and from turns that are still pending.

        Args:
            turns: what was said, in order.
            progress: told how far it is.
            max_tokens: make no further call once so many tokens are spent; the other turns stay pending.

        Returns:
            The new entries, where they stand in CURRENT (or already in a topic); of a strategy that keeps
            records, the turns that have one now.

        Raises:
            UsageError: a turn is empty or its time is no time; nothing is recorded.
            NotALibrary: the folder was not made a library.
            ModelUnavailable: the turns are recorded, and drawn from at the next call.
        """
        self.record(turns)
        with self._spending(max_tokens):
            return self._extract(progress)

    def record(self, turns: Iterable[Turn]) -> tuple[Located, ...]:
        """Write turns down, without a model, and give the new lines; the next `observe` draws from them.

        Raises:
            UsageError, NotALibrary: as `observe`.
        """
        return self.library.record(tuple(turns))

    def _extract(self, progress: Progress | None = None) -> tuple[Located, ...]:
        with self._extracting:
            return self._extracted(progress)

    def _extracted(self, progress: Progress | None) -> tuple[Located, ...]:
        view = self.view
        pending = view.uncited()
        if not pending:
            return ()
        new: list[int] = []  # seqs: the entries themselves would keep every document alive that they stood in
        done: set[int] = set()

        def note(plan: Plan, outcome: Outcome) -> Outcome:
            nonlocal view
            view = outcome.view
            if isinstance(outcome, Applied):
                held = [seq for put in plan.records for seq in put.origin]
                new.extend((*(place.seq for place in outcome.added), *held))
                done.update(plan.empty, held, *(add.origin for add in plan.adds))
                if self._drive(self.strategy.tick(view, "due"), view):
                    self.library.adopt_edits()
                    view = self.view
                outcome = replace(outcome, view=view)
            if progress:
                progress(len(done), len(pending))
            return outcome

        try:
            if self._drive(self.strategy.tick(view, "append"), view):
                view = self.view
            self._drive(self.strategy.observe(view, pending), view, note)
        except ModelUnavailable as error:
            raise type(error)(
                f"{error}; what was said is recorded and drawn from at the next call"
            ) from error
        return tuple(place for seq in new if (place := view.entry(seq)))

    def consolidate(self, max_tokens: int | None = None) -> Receipt | None:
        """Sort the buffer into topics now, due or not.

        Args:
            max_tokens: make no further call once so many tokens are spent; what was applied stays.

        Returns:
            The receipt of the consolidation (of the split or merge that followed, if only those happened);
            None where there was nothing to do.

        Raises:
            NotALibrary: the folder was not made a library.
            ModelUnavailable: the buffer, or what is left of it, stays as it is.
        """
        self.library.demand_initialised()
        with self._spending(max_tokens):
            self._extract()
            return self._consolidated()

    def _consolidated(self) -> Receipt | None:
        self.library.adopt_edits()
        view = self.view
        receipts = self._drive(self.strategy.tick(view, "consolidate"), view)
        return receipts[0] if receipts else None

    def preview(self, keep: bool = False) -> Mapping[str, tuple[bytes, bytes]]:
        """What `consolidate` would write first: bytes before and after, by document. It is not done.

        Args:
            keep: write the plan down, for `review`.
        """
        view = self.view
        drafts = self.strategy.tick(view, "consolidate")
        try:
            plan = next(drafts)
        except StopIteration:
            return {}
        finally:
            drafts.close()
        if keep:
            keep_plan(self.library, plan, view, view.spec.name, self.llm.name)
        return self.library.preview(plan)

    def rebuild(self, progress: Progress | None = None, max_tokens: int | None = None) -> tuple[Receipt, ...]:
        """Derive anew what the strategy derived: all of its records, or the headings and summaries of topics.

        Args:
            progress: told how far it is.
            max_tokens: as in `observe`.

        Returns:
            The receipts of what was done.

        Raises:
            NotALibrary: the folder was not made a library.
            ModelUnavailable: what was done stays; the next `observe` goes on with what is pending.
        """
        self.library.demand_initialised()
        view = self.view
        with self._spending(max_tokens):
            receipts = self._drive(self.strategy.rebuild(view), view)
            self._extract(progress)
            if not self.library.spec.has_entries and (last := self._consolidated()):
                receipts.append(last)
            return tuple(receipts)

    def ask(
        self,
        question: str,
        reader: str | None = None,
        sources: Collection[str] | None = None,
        max_tokens: int | None = None,
    ) -> Answer:
        """As `Reader.ask`; what it spends is booked on the day."""
        with self._spending(max_tokens):
            return super().ask(question, reader, sources)

    def estimate(self) -> int:
        """Tokens that `consolidate` would send to a model, roughly."""
        return self.strategy.estimate(self.view)

    @contextmanager
    def _spending(self, max_tokens: int | None = None) -> Iterator[None]:
        """For the time of the block a cap holds; afterwards what was spent is booked on the day."""
        try:
            with self.llm.cap(max_tokens):
                yield
        finally:
            if self.library.initialised and not self.library.read_only:
                day = self.library.clock().astimezone(UTC).date().isoformat()
                with self._booking:  # of calls side by side each books what is left to book
                    now = total(self.llm.usage)
                    spent, self._booked = now - self._booked, now
                usage.note(self.library.files, day, spent)

    def _drive(self, plans: Plans, view: View, note: Note | None = None) -> list[Receipt]:
        return drive(self.library, self.llm, plans, view, note)

    # ── looking after ───────────────────────────────────────────────────────────────────────────

    def undo(self, receipt: str | None = None, together: bool = False) -> tuple[Receipt, ...]:
        """Take a receipt back, as a new transaction.

        Args:
            receipt: "journal/0007-consolidate" or "7"; None for the newest, be it an undo.
            together: with the later receipts that lean on it.

        Returns:
            The receipts of what was done.

        Raises:
            UsageError: there is no such receipt.
            LibraryError: it cannot be undone, or others lean on it; the message says which.
        """
        self.library.demand_initialised()
        return undo(self.library, receipt, together)

    def forget(
        self,
        seqs: Collection[int] = (),
        *,
        match: str | None = None,
        source: str | None = None,
        session: str | None = None,
        dry_run: bool = False,
    ) -> Forgotten:
        """Take lines out for good, with what they were drawn from and all that was drawn from that.

        Args:
            seqs: lines by number.
            match: lines in which this pattern occurs (RE2, any case; what is none is taken literally).
            source: all lines of a source ("user", "AI", "tool", "human").
            session: all turns of a session; with `source` those of the source.
            dry_run: only tell which lines would go.

        Raises:
            UsageError: a number that no line has, or not one of `seqs`, `match`, and `source` or `session`.
        """
        if sum((bool(seqs), match is not None, source is not None or session is not None)) != 1:
            raise UsageError("say what to forget in one way: numbers, a match, or a source or session")
        pattern = compile_pattern(match) if match is not None else None
        wanted = Wanted(frozenset(seqs), pattern.found if pattern else None, source, session)
        done = preview_forget(self.library, wanted) if dry_run else forget(self.library, wanted)
        return replace(done, notes=tuple(pattern.notes) if pattern else ())

    def at(self, moment: str) -> Reader:
        """The library as it stood, for asking.

        Args:
            moment: a seq ("41"), a time ("2025-03-03", "2025-03-03T14:05Z") or a receipt's id.

        Raises:
            UsageError: it is none of these.
        """
        past = as_of(self.view, moment_of(self.view, moment))
        return Reader(lambda: past, self.llm, self.strategy, self._clock)

    def receipts(self) -> tuple[Receipt, ...]:
        """All receipts, oldest first."""
        return self.library.receipts()

    def log(self, limit: int | None = None) -> tuple[Receipt, ...]:
        """The newest receipts, newest first; None for all."""
        return self.receipts()[::-1][:limit]

    def history(self, seq: int) -> tuple[Event, ...]:
        """The story of a line: who said it, what each receipt did, where it is now, what came after it.

        Raises:
            LibraryError: no line has this seq, and no receipt names it.
        """
        return history(self.view, self.receipts(), seq)

    def blame(self, doc_id: str, line: int | None = None) -> tuple[Blamed, ...]:
        """For each line of a document, or for one, who or what put it there.

        Raises:
            LibraryError: there is no such document, or it has no such line.
        """
        return blame(self.view, self.receipts(), doc_id, line)

    def review(self) -> tuple[ReviewItem, ...]:
        """What waits for a person's word (operations/review.py); what is void is told once, then dropped."""
        rows = awaiting(self.library)
        drop_void(self.library, rows)
        return rows

    def decide(self, approve: Sequence[str] = (), reject: Sequence[str] = ()) -> tuple[Receipt, ...]:
        """Do what a person approved of it, and drop what they rejected: "7", "p1", "7:12,15".

        Raises:
            UsageError: nothing that waits is called so.
            LibraryError: a line that was named alone cannot be approved any more; nothing is done.
        """
        self.library.demand_initialised()
        return decide(self.library, approve, reject)

    def status(self) -> dict[str, Any]:
        """Counts for people and scripts."""
        view = self.view
        on_disk = is_large(view) and cache_folder(str(self.library.files.root), "index", view.spec.name)
        return {
            **counts(self.library),
            **self.strategy.status(view),
            "index": "on disk" if on_disk else "in memory",
            "spent": {day: vars(one) for day, one in usage.by_day(self.library.files).items()},
            "strategy": view.spec.name,
            "model": self.llm.name,
        }

    def doctor(self) -> list[Finding]:
        """Check the folder and the strategy's own invariants; nothing is written."""
        found = examine(self.library)
        with suppress(LibraryError):  # a file that cannot be read is among the findings
            found += self.strategy.check(self.view)
        return found

    def repair(self) -> list[Finding]:
        """Do what the `fix` of findings says, and nothing that could lose a word.

        Returns:
            The findings that this settled.

        Raises:
            LibraryError: the disk refused, or the library is busy.
        """
        return repair(self.library)
