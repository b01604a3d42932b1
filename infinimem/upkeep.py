"""What people do to a library beside adding to it and asking: look back, undo, review, forget, check.

In: numbers, receipts, moments. Out: receipts, findings, earlier states. Promise: each is one operation of
`operations/`, imported when it is called, so a command that only searches needs none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from infinimem.errors import LibraryError, UsageError, escape
from infinimem.llm.base import Capped
from infinimem.model import Finding, Receipt
from infinimem.reader import Reader
from infinimem.store.library import Library
from infinimem.store.state import usage

if TYPE_CHECKING:
    from infinimem.operations.forget.forget import Forgotten
    from infinimem.operations.forget.rename import Renamed
    from infinimem.operations.history import Blamed, Event
    from infinimem.operations.review import ReviewItem
    from infinimem.strategies.base import Strategy


class Upkeep(Reader):
    """The part of `Memory` that looks after the library."""

    def __init__(self, library: Library, llm: Capped, strategy: Callable[[], Strategy]) -> None:
        super().__init__(library.view, llm, strategy, lambda: library.clock())
        self.library = library

    def undo(self, receipt: str | None = None, together: bool = False) -> tuple[Receipt, ...]:
        """Take a receipt back, as a new transaction.

        Args:
            receipt: "journal/0007-consolidate", "0007-consolidate" or "7"; None for the newest, undos too.
            together: with the later receipts that lean on it.

        Returns:
            The receipts of what was done.

        Raises:
            UsageError: there is no such receipt.
            LibraryError: it cannot be undone, or others lean on it; the message says which.
        """
        from infinimem.operations.undo import undo

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
        from infinimem.operations.forget.choice import Wanted
        from infinimem.operations.forget.forget import forget, preview_forget
        from infinimem.retrieval.grep import compile_pattern

        if sum((bool(seqs), match is not None, source is not None or session is not None)) != 1:
            raise UsageError("say what to forget in one way: numbers, a match, or a source or session")
        pattern = compile_pattern(match) if match is not None else None
        wanted = Wanted(frozenset(seqs), pattern.found if pattern else None, source, session)
        done = preview_forget(self.library, wanted) if dry_run else forget(self.library, wanted)
        return replace(done, notes=tuple(pattern.notes) if pattern else ())

    def rename(self, name: str, new: str) -> Renamed:
        """Give a topic, a session's evidence or a model's own file another name, in receipts too.

        Args:
            name: full id, stem or alias; also of a document that only receipts still name.
            new: what it is called from now on; the file's name is its slug.

        Raises:
            UsageError: it is none of these, or the new name is none, or taken.
            LibraryError: the disk refused.
        """
        from infinimem.operations.forget.rename import rename

        return rename(self.library, name, new)

    def at(self, moment: str) -> Reader:
        """The library as it stood, for asking.

        Args:
            moment: a seq ("41"), a time ("2025-03-03", "2025-03-03T14:05Z") or a receipt's id.

        Raises:
            UsageError: it is none of these.
        """
        from infinimem.operations import as_of

        past = as_of.as_of(self.view, as_of.moment(self.view, moment))
        return self._over(lambda: past)

    def _siblings(self) -> tuple[Reader, ...]:
        """The library as each strategy sees it that keeps it, its own first; they only read."""
        from infinimem.store.siblings import siblings

        def seen_by(library: Library) -> Reader:
            made = partial(library.spec.make, self.llm, library.settings)
            return Reader(library.view, self.llm, made, lambda: library.clock())

        return tuple(map(seen_by, siblings(self.library)))

    def receipts(self) -> tuple[Receipt, ...]:
        """All receipts, oldest first."""
        return self.library.receipts()

    def history(self, seq: int) -> tuple[Event, ...]:
        """The story of a line: who said it, what each receipt did, where it is now, what came after it.

        Raises:
            LibraryError: no line has this seq, and no receipt names it.
        """
        from infinimem.operations.history import history

        return history(self.view, seq)

    def blame(self, doc_id: str, line: int | None = None) -> tuple[Blamed, ...]:
        """For each line of a document, or for one, who or what put it there.

        Args:
            doc_id: full id, stem or alias.
            line: counts from 1, the header included.

        Raises:
            LibraryError: there is no such document, or it has no such line.
        """
        from infinimem.operations.history import blame

        return blame(self.view, doc_id, line, self.library.seen_lines())

    def review(self) -> tuple[ReviewItem, ...]:
        """What waits for a person's word (operations/review.py); what is void is told once, then dropped."""
        from infinimem.operations.review import awaiting, drop_void

        rows = awaiting(self.library)
        drop_void(self.library, rows)
        return rows

    def decide(self, approve: Sequence[str] = (), reject: Sequence[str] = ()) -> tuple[Receipt, ...]:
        """Do what a person approved of it, and drop what they rejected: "7", "p1", "7:12,15".

        Raises:
            UsageError: nothing that waits is called so.
            LibraryError: a line that was named alone cannot be approved any more; nothing is done.
        """
        from infinimem.operations.review import decide

        self.library.demand_initialised()
        return decide(self.library, approve, reject)

    def status(self) -> dict[str, Any]:
        """Counts for people and scripts."""
        from infinimem.operations.status import counts
        from infinimem.retrieval.cache import cache_folder
        from infinimem.store.siblings import siblings

        view = self.view
        on_disk = cache_folder(str(self.library.files.root), "index", view.spec.name)
        return {
            **counts(self.library),
            **self.strategy.status(view),
            "index": "on disk" if on_disk else "in memory",
            "spent": {day: vars(one) for day, one in usage.by_day(self.library.files).items()},
            "strategy": view.spec.name,
            "strategies": {
                one.spec.name: sum(len(view.below(folder)) for folder in one.spec.folders)
                for one in siblings(self.library)
            },
            "model": escape(self.llm.name),
        }

    def doctor(self) -> list[Finding]:
        """Check the folder, and the invariants of each strategy that keeps it; nothing is written."""
        from infinimem.operations.doctor import examine

        found = examine(self.library)
        with suppress(LibraryError):  # a file that cannot be read is among the findings
            for one in self._siblings():
                found += one.strategy.check(one.view)
        return found

    def repair(self) -> list[Finding]:
        """Do what the `fix` of findings says, and nothing that could lose a word.

        Returns:
            The findings that this settled.

        Raises:
            LibraryError: the disk refused, or the library is busy.
        """
        from infinimem.operations.doctor import repair

        return repair(self.library)
