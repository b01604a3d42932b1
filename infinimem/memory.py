"""The facade that applications, the command line and servers call. It drives strategies.

In: turns, questions, commands. Out: entries, evidence, answers, receipts. Promise: turns are on disk before a
model is asked, and an unreachable model loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC
from functools import partial
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING

from infinimem.embedders.connect import Choice
from infinimem.errors import ModelUnavailable, UsageError
from infinimem.llm.base import LLM, Capped, total
from infinimem.llm.connect import permitted
from infinimem.markdown.signature import format_seqs
from infinimem.model import AGAIN, LEFT, Located, Plan, Receipt, Turn, Unanswered, Usage
from infinimem.reader import Compared
from infinimem.spec import spec_of
from infinimem.store.library import Clock, Library, system_clock
from infinimem.store.outcome import Applied, Outcome
from infinimem.store.state import usage
from infinimem.store.state.unanswered import newly
from infinimem.store.view import View
from infinimem.upkeep import Upkeep

if TYPE_CHECKING:
    from typing import Self

    from openai import OpenAI

    from infinimem.messages import Message
    from infinimem.strategies.base import Plans
    from infinimem.strategies.driving import Note

Progress = Callable[[int, int], None]
"""Called with the turns done and the turns to do."""
PORTION = 1000
"""Turns that are held at once while they are drawn from."""


class Observed(tuple[Located, ...]):
    """New entries. `unanswered` has the turns about which no answer of the model was of use, by seq."""

    unanswered: Mapping[int, Unanswered] = MappingProxyType({})


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
        path: the folder.
        model: a model's name, "offline", or what answers in its place; None takes the settings', else
            "offline". A ready `openai.OpenAI` or `AzureOpenAI` asks the model that the settings name.
        strategy: the name of the system that keeps it; None takes infinimem.toml.
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
    kept_by = spec_of(strategy).name if strategy is not None else None
    if create:
        from infinimem.store.create import init

        library = init(Path(path), clock, embedder, kept_by, trust)
    else:
        library = Library(Path(path), clock, embedder, kept_by, trust=trust, read_only=read_only)
    llm = model if isinstance(model, LLM) else permitted(model, library.configuration, library.root)
    return Memory(library, llm)


class Memory(Upkeep):
    """A library with the strategy that keeps it and the model that helps. Made by `open_memory`."""

    def __init__(self, library: Library, llm: LLM) -> None:
        capped = Capped(llm)
        super().__init__(library, capped, partial(library.spec.make, capped, library.settings))
        self._booked, self._booking = total(capped.usage), Lock()
        self._spend = self._spending
        self._extracting = Lock()  # of threads side by side one asks about what is pending

    def __repr__(self) -> str:
        kept = f"strategy={self.library.spec.name!r}, model={self.llm.name!r}"
        return f"Memory({str(self.library.root)!r}, {kept})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop watching the folder, and end connections to the model. All that was written is on disk without
        it; what is called afterwards works, and connects anew."""
        self.library.fresh.stop()
        self.llm.close()

    # ── writing ─────────────────────────────────────────────────────────────────────────────────

    def observe(
        self, turns: Iterable[Turn | Message], progress: Progress | None = None, max_tokens: int | None = None
    ) -> Observed:
        """Record turns and draw entries from them, and from turns that are still pending.

        Args:
            turns: what was said, in order; messages of a chat, too (`{"role": …, "content": …}`, as
                OpenAI's and Anthropic's APIs have them). Of these the text of users and assistants counts.
            progress: told how far it is.
            max_tokens: make no further call once so many tokens are spent; the other turns stay pending.

        Returns:
            The new entries, where they stand in CURRENT (or already in a topic); of a strategy that keeps
            records, the turns that have one now. `unanswered` tells of which turns there are none because no
            answer of the model was of use; they stay pending.

        Raises:
            UsageError: a turn is empty, its time is no time, or a message is none; nothing is recorded.
            NotALibrary: the folder was not made a library.
            ModelUnavailable: the turns are recorded, and drawn from at the next call.
        """
        self.record(turns)
        before = self.unanswered()
        with self._spending(max_tokens):
            new = self._extract(progress)
        view = self.view
        found = Observed(place for seq in new if (place := view.entry(seq)))
        found.unanswered = newly(before, view.unanswered())
        return found

    def draw(self, progress: Progress | None = None, max_tokens: int | None = None) -> int:
        """Draw from pending turns as `observe` does, and tell only how many entries are new: an import's are
        more than memory should hold.

        Raises:
            NotALibrary, ModelUnavailable: as `observe`.
        """
        with self._spending(max_tokens):
            return len(self._extract(progress))

    def unanswered(self) -> Mapping[int, Unanswered]:
        """Turns about which no answer of the model was of use, by seq: why, which model, and how often it was
        asked. They are found as they were said, and asked about at the next call that draws, three times by
        one model; another is asked anew."""
        return self.view.unanswered()

    def leave(self, seqs: Collection[int]) -> None:
        """Leave such turns as they were said: no model is asked about them any more.

        Raises:
            UsageError: one is not among them; nothing is done.
        """
        if wrong := sorted(set(seqs) - self.unanswered().keys()):
            raise UsageError(f"{format_seqs(wrong)}: no turn without a usable answer; doctor lists those")
        self.library.mark(dict.fromkeys(seqs, LEFT))

    def retry(self) -> None:
        """Have the next call that draws ask about such turns again, also those that were given up or left."""
        self.library.mark(dict.fromkeys(self.view.tried, AGAIN))

    def record(self, turns: Iterable[Turn | Message]) -> tuple[Located, ...]:
        """Write turns down, without a model, and give the new lines; the next `observe` draws from them.

        Raises:
            UsageError, NotALibrary: as `observe`.
        """
        from infinimem import messages

        return self.library.record(tuple(messages.turns(turns)))

    def _extract(self, progress: Progress | None = None) -> Collection[int]:
        with self._extracting:
            return self._extracted(progress)

    def _extracted(self, progress: Progress | None) -> Collection[int]:
        view = self.view
        # Seqs, here and below: the lines themselves would keep every document alive that they stood in.
        given_up = view.given_up(self.llm.name)
        pending = [place.seq for place in view.each_uncited() if place.seq not in given_up]
        if not pending:
            return ()
        new: dict[int, None] = {}
        done: set[int] = set()

        def note(plan: Plan, outcome: Outcome) -> Outcome:
            nonlocal view
            view = outcome.view
            if isinstance(outcome, Applied):
                held = [seq for put in plan.records for seq in put.origin]
                new.update(dict.fromkeys((*(place.seq for place in outcome.added), *held)))
                done.update(plan.empty, held, *(add.origin for add in plan.adds))
                if self._drive(lambda view: self.strategy.tick(view, "due"), view):
                    self.library.adopt_edits()
                    view = self.view
                outcome = replace(outcome, view=view)
            if progress:
                progress(len(done), len(pending))
            return outcome

        try:
            if self._drive(lambda view: self.strategy.tick(view, "append"), view):
                view = self.view
            for at in range(0, len(pending), PORTION):
                some = pending[at : at + PORTION]
                if view.uncited(some):
                    self._drive(partial(self._observing, some), view, note)
        except ModelUnavailable as error:
            raise type(error)(
                f"{error}; what was said is recorded and drawn from at the next call"
            ) from error
        return new

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
        receipts = self._drive(lambda view: self.strategy.tick(view, "consolidate"), view)
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
            from infinimem.operations.review import keep as keep_plan

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
            receipts = self._drive(self.strategy.rebuild, view)
            self._extract(progress)
            if not self.library.spec.has_entries and (last := self._consolidated()):
                receipts.append(last)
            return tuple(receipts)

    def compare(
        self, question: str, max_tokens: int | None = None, now: str | None = None
    ) -> tuple[Compared, ...]:
        """Ask every strategy that keeps this library the same question; `rebuild` under another strategy's
        name makes another one keep it, too.

        Args:
            question, max_tokens, now: as in `Reader.ask`; the cap is that of all together.

        Returns:
            One for each, the library's own strategy first.

        Raises:
            UsageError: an empty question.
            ModelUnavailable: the model does not answer, or the cap is spent.
        """
        with self._spending(max_tokens):
            return tuple(one._compared(question, now) for one in self._siblings())

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
                with self._booking:  # of calls side by side each books what is left to book
                    now = total(self.llm.usage)
                    spent, self._booked = now - self._booked, now
                usage.note(self.library.files, self._day(), spent)

    def spent_today(self) -> int:
        """Tokens that the library's calls took today (UTC), in all processes."""
        spent = usage.by_day(self.library.files).get(self._day(), Usage())
        return spent.tokens_in + spent.tokens_out

    def _day(self) -> str:
        return self.library.clock().astimezone(UTC).date().isoformat()

    def _observing(self, some: Sequence[int], view: View) -> Plans:
        return self.strategy.observe(view, view.uncited(some))

    def _drive(self, propose: Callable[[View], Plans], view: View, note: Note | None = None) -> list[Receipt]:
        from infinimem.strategies.driving import drive

        return drive(self.library, self.llm, propose, view, note)
