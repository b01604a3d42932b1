"""A library: the only door to its files. Writers take turns under a lock, never held while a strategy works.

In: turns to record, plans to apply. Out: snapshots (`View`), receipts. Promise: what `record` or `apply`
returned is on disk, and no plan is applied that the law refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from infinimem.embedders.connect import Choice, lazily, permitted
from infinimem.errors import LibraryError, NotALibrary
from infinimem.markdown.document import Document
from infinimem.model import CURRENT, Located, Plan, Receipt, Turn, Usage
from infinimem.settings import SETTINGS, configuration
from infinimem.spec import owned_folders, spec_of
from infinimem.store import recovery
from infinimem.store.commit.transaction import LATEST, Conflict, Transaction, recheck
from infinimem.store.files import MAX_OWNED, Files
from infinimem.store.freshness import Freshness, Listing
from infinimem.store.hooks import operations
from infinimem.store.listing import NO_NOTES, LeftOut, by_patterns
from infinimem.store.lock import exclusive
from infinimem.store.outcome import Applied, Outcome, Rejected
from infinimem.store.parsed import Parsed
from infinimem.store.state import drawn, last_seen, rejected, sequence, tails, unanswered, withheld
from infinimem.store.view import Stored, View

if TYPE_CHECKING:  # who only reads needs nothing of what writes
    from infinimem.law import Verdict
    from infinimem.store.render import Rendered

RETRIES = 2
"""How often a plan is tried again when a person saved a file of it in between."""

HELD = 2000
"""Documents; of more few notes stay parsed, and a snapshot may read a newer one."""
LARGEST_IGNORE = 1 << 16
"""Bytes of a .gitignore that is read."""
RECENT, RECENT_BYTES = 100, 1 << 16
"""Notes of a larger library that a snapshot keeps, and bytes of each at most: a search asks twice for one."""

Clock = Callable[[], datetime]


def system_clock() -> datetime:
    """Now, in UTC."""
    return datetime.now(UTC)


class Library:
    """A memory folder, or a plain folder of notes (then every write is refused).

    Args:
        root: the folder.
        clock: gives the time for headers and receipts; injected so that runs can be repeated.
        embedder: for its views; None takes the settings.
        strategy: name of the one that keeps it; None takes the settings.
        trust: let its settings act, whatever they are.
        read_only: refuse every write.

    Raises:
        LibraryError: no such folder.
        SettingsError, FormatTooNew: infinimem.toml cannot be used.
    """

    def __init__(
        self,
        root: Path,
        clock: Clock = system_clock,
        embedder: Choice = None,
        strategy: str | None = None,
        *,
        trust: bool = False,
        read_only: bool = False,
    ) -> None:
        self.root = root
        self.clock = clock
        self.files = Files(root)
        found = self.files.read(SETTINGS)
        self.initialised, self.read_only = found is not None, read_only
        self.configuration = configuration(found or b"", root, trusted=trust)
        self.settings = self.configuration.settings
        self.spec = spec_of(strategy or self.settings.strategy)
        self._embedder = lazily(permitted(embedder, self.configuration), self.settings.embedder)
        self._parsed = Parsed(self.files, self.initialised)
        needed = (*owned_folders(), f"{CURRENT}.md") if self.initialised else ()
        self.fresh = Freshness(self.files, self._parsed.limit, needed, self.left_out())
        self._adopted: tuple[object, Mapping[str, Document]] = None, {}
        self._view: tuple[tuple[Listing, object], View] | None = None
        if self.initialised and not read_only:
            recovery.opened(self.files, self.fresh, self.clock, self.view)

    def left_out(self) -> LeftOut | None:
        """What counts as no note: by the settings and, in a plain folder, by its .gitignore and NO_NOTES."""
        patterns = list(self.settings.notes.ignore)
        if not self.initialised:
            own = None
            with suppress(LibraryError):
                own = self.files.read(".gitignore", LARGEST_IGNORE)
            patterns = [*NO_NOTES, *(own or b"").decode("utf-8", "replace").splitlines(), *patterns]
        return by_patterns(patterns) if patterns else None

    # ── reading ─────────────────────────────────────────────────────────────────────────────────

    def view(self) -> View:
        """The library as it is now; the same object as long as no file changes."""
        listing = self.fresh.look()
        known, refused = drawn.lists(self.files, self.spec) if self.initialised else (None, frozenset[int]())
        tried = unanswered.read(self.files, self.spec) if self.initialised else {}
        state = (listing, (known, refused, tried))
        buffer = listing.stamps.get(CURRENT)
        age = self.clock().timestamp() - buffer.mtime_ns / 1e9 if buffer else 0.0
        if self._view is not None and self._view[0] == state:
            self._view[1].buffer_age = age
            return self._view[1]
        held: dict[str, Document] = {}  # a view says the same as long as it lives

        def read(doc_id: str, keep: bool = False) -> Document:
            if (known := held.get(doc_id)) is not None:
                return known
            document, fresh = self._parsed.load(doc_id, listing.stamps[doc_id], keep)
            if not fresh:
                self.fresh.doubt(f"{doc_id}.md")  # listed before this was saved
                self._view = None
            return document

        recent = lru_cache(RECENT)(read)

        def load(doc_id: str) -> Document:
            if len(listing.ids) <= HELD or self._parsed.owned(doc_id):
                return held.setdefault(doc_id, read(doc_id, keep=True))
            small = listing.stamps[doc_id].size <= RECENT_BYTES
            return recent(doc_id) if small else read(doc_id)

        view = View(
            listing.ids,
            load,
            self.settings,
            initialised=self.initialised,
            drawn=known,
            refused=refused,
            unanswered=tried,
            buffer_age=age,
            stored=Stored(str(self.files.root), listing.stamps, read, lambda: self._is_newest(state)),
            embedder=self._embedder,
            spec=self.spec,
            before=self._view and (self._view[1], listing.since(self._view[0][0])),
        )
        self._view = (state, view)
        return view

    def _is_newest(self, state: tuple[Listing, object]) -> bool:
        return self._view is not None and self._view[0] is state  # not the view: old ones are to go at once

    def receipts(self) -> tuple[Receipt, ...]:
        """All receipts, oldest first."""
        from infinimem.store.receipts import receipts_of

        return tuple(receipts_of(self.view())) if self.initialised else ()

    # ── writing ─────────────────────────────────────────────────────────────────────────────────

    def record(self, turns: Sequence[Turn]) -> tuple[Located, ...]:
        """Write what was said to the evidence log, durably, before anything else is done with it.

        A turn whose key, or whose session and turn id, is there already is not written again.

        Returns:
            The lines that are new, in the order of `turns`.

        Raises:
            UsageError: a turn is empty or its time is no time; nothing is written.
            NotALibrary: the folder has no infinimem.toml.
        """
        from infinimem.store import evidence

        for turn in turns:
            evidence.check_turn(turn)
        with self._writing():
            now = self._now()
            last = self._view[1] if self._view else None
            view = evidence.near(turns, last, self.fresh, self.files, self._parsed, now) or self.view()
            fresh = evidence.unrecorded(turns, view, lambda: tails.doubtful(self.files))
            if not fresh:
                return ()
            first = self.allocate(len(fresh), view)
            parts = evidence.parts(fresh, view, first, now)
            places = {place.seq: place for part in parts for place in evidence.placed(part, view)}
            evidence.write(self.files, parts, self._append)
            return tuple(places[seq] for seq in range(first, first + len(fresh)))

    def apply(
        self,
        plan: Plan,
        *,
        base: View | None = None,
        strategy: str = "",
        model: str = "",
        usage: Usage | None = None,
        began: datetime | None = None,
        approved: Collection[int] = (),
    ) -> Outcome:
        """Verify a plan against the files as they are, and carry it out whole or not at all.

        Args:
            plan: what a strategy wants.
            base: what it was made from; lines that someone moved or deleted since are left out.
            approved: for law.verify; strategy, model, usage, began: for the receipt.

        Raises:
            NotALibrary: the folder has no infinimem.toml.
            LibraryError: the disk refused, or someone kept saving the very files. Nothing has changed; or,
                once the change was decided, the next call finishes it.
        """
        from infinimem.store.plans import verified

        head = self._head(strategy, model, usage or Usage(), began)
        for left in reversed(range(RETRIES + 1)):
            try:
                with self.locked() as view:
                    outcome = self._apply(verified(plan, base, view, approved), view, head)
                    refused = rejected.refusals(plan, outcome)
                    if not any(reason.code == "FORGOTTEN" for reason in getattr(outcome, "reasons", ())):
                        refused = [*plan.rejected, *refused]  # else a reply may quote what was forgotten
                    rejected.keep(self.files, refused, head.time)
                    return outcome
            except Conflict:
                if not left:
                    raise
        raise AssertionError

    def preview(self, plan: Plan) -> dict[str, tuple[bytes, bytes]]:
        """What `apply` would write: bytes before and after of every document that would change."""
        from infinimem.store.plans import preview
        from infinimem.store.receipts import next_number

        view = self.view()
        return preview(plan, view, next_number(view), self._now())

    def unsigned(self) -> int:
        """How many lines `adopt_edits` would sign."""
        from infinimem.store.external_edits import find_edits

        return find_edits(self.view(), self.seen_lines()).to_sign

    def proposals(self) -> tuple[withheld.Proposal, ...]:
        """Archivings that wait for a person's word."""
        return withheld.proposals(self.files)

    def adopt_edits(self) -> Receipt | None:
        """Take in what people and merges did: sign what is new or doubled, note what was edited or deleted.

        Returns:
            None if there is nothing.
        """
        from infinimem.store.external_edits import find_edits, is_unedited

        self.fresh.doubt()
        began, adopted = last_seen.began(self.files), self._adopted
        view, known = self.view(), self.seen_lines()
        if not self.initialised:
            return None
        if is_unedited(view, known, adopted[1] if adopted[0] is began else {}) or not (
            last_seen.differences(view, known) or find_edits(view, known)
        ):
            self._adopted = began, {doc_id: view.document(doc_id) for doc_id in last_seen.tracked(view)}
            return None
        for _ in range(RETRIES + 1):
            with suppress(Conflict), self.locked() as view:
                return self._adopt(view)
        return None  # a person who keeps saving is heard at the next call

    def _adopt(self, view: View) -> Receipt | None:
        """Sign and note what people did, under the lock."""
        from infinimem.store.adopt_edits import adopt, turns_without_entries
        from infinimem.store.external_edits import find_edits
        from infinimem.store.plans import violations

        known = self.seen_lines()
        if not (edits := find_edits(view, known)):
            last_seen.note(self.files, last_seen.differences(view, known))
            return None
        first = self.allocate(edits.to_sign, view) if edits.to_sign else 0
        done = adopt(view, edits, first)
        if wrong := violations(view, done):
            raise LibraryError(f"lines cannot be signed ({wrong[0]}); run infinimem doctor")
        if edits.turns:  # first: a seq that no turn gets after all does no harm
            drawn.note(self.files, view, (), turns_without_entries(view, edits, first))
        notice = last_seen.differences(view, known, done.documents)
        return self.commit(done, view, self.of_people("stamp"), (), notice)

    def mark(self, kinds: Mapping[int, str]) -> None:
        """Have turns left as they were said, or asked about anew (state/unanswered.py)."""
        with self.locked():
            unanswered.note(self.files, self.spec, kinds)

    def seen_lines(self) -> Mapping[int, last_seen.SeenLine]:
        """Every line as it was last seen, by seq."""
        return last_seen.read(self.files)

    # ── for the store's operations ──────────────────────────────────────────────────────────────────────────

    def demand_initialised(self) -> None:
        """Refuse to write into a folder of notes, or into a library opened for reading only.

        Raises:
            NotALibrary: it has no infinimem.toml.
            LibraryError: it is read-only.
        """
        if self.read_only:
            raise LibraryError(
                f"{self.root} is served read-only; to trust it, run: infinimem trust {self.root}"
            )
        if not self.initialised:
            raise NotALibrary(
                f"{self.root} has no {SETTINGS}; to write here, run: infinimem init {self.root}"
            )

    @contextmanager
    def locked(self) -> Iterator[View]:
        """The library as it is while nobody else writes, for the store's own operations."""
        with self._writing():
            yield self.view()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        self.demand_initialised()
        with exclusive(self.files):
            recovery.finish(self.files, self.fresh)
            yield
            operations().after(self)

    def _apply(self, verdict: Verdict, view: View, head: Receipt) -> Outcome:
        from infinimem.store.plans import name_clashes, violations
        from infinimem.store.receipts import next_number
        from infinimem.store.render import by_heading, render

        if verdict.refused:
            return Rejected(view, verdict.refused)
        plan = verdict.plan
        if plan.op == "append":
            plan = replace(plan, adds=drawn.not_yet_drawn(plan.adds, view))
        first = self.allocate(len(plan.adds), view) if plan.adds else view.max_seq + 1
        done = render(plan, view, first, next_number(view), self._now())
        if wrong := [*violations(view, done), *name_clashes(view, done)]:
            return Rejected(view, tuple(wrong))
        receipt = None
        if plan.op == "append" and not plan.moves and all(name == CURRENT in view for name in done.documents):
            if done.added:
                lines = by_heading(plan.adds, first, done.added)
                self._append(Document.parse(CURRENT, lines.encode("utf-8", "surrogateescape")))
        else:
            moved = (place for document in done.documents.values() if document for place in document.entries)
            notice = last_seen.followed(self.seen_lines(), moved)
            notes = (*plan.notes, *map(str, verdict.withheld))
            receipt = self.commit(done, view, replace(head, op=plan.op), notes, notice)
            with suppress(LibraryError):  # decided already, and the receipt names them too
                withheld.keep(self.files, receipt.number, (*plan.withheld, *verdict.withheld), view.entry)
        drawn.applied(self.files, view, plan)
        unanswered.note(self.files, self.spec, plan.unanswered, head.model)
        now = self.view()
        added = tuple(place for seq, _ in done.added if (place := now.entry(seq)))
        if receipt is None:
            with suppress(LibraryError):  # a line that was not seen only counts as new
                last_seen.note(self.files, last_seen.followed(self.seen_lines(), added))
        return Applied(now, receipt, added)

    def _head(self, strategy: str, model: str, usage: Usage, began: datetime | None) -> Receipt:
        """A receipt with what the caller knows; `commit` fills in what happened."""
        seconds = (self.clock() - began).total_seconds() if began else 0.0
        return Receipt(0, "", self._now(), strategy, model, usage, seconds, (), ())

    def of_people(self, op: str) -> Receipt:
        """A receipt of what no strategy and no model did."""
        return replace(self._head("people", "none", Usage(), None), op=op)

    def commit(
        self, done: Rendered, view: View, head: Receipt, notes: Sequence[str], notice: last_seen.Changes
    ) -> Receipt:
        """Write documents and the receipt as one, under the lock. For the store's own operations.

        Args:
            done: the documents and what the law was told of them.
            view: the library as it is.
            head, notes: of the receipt; the head says op and who did it.
            notice: what the list of last seen lines says afterwards.
        """
        from infinimem.store.plans import receipt_and_changes
        from infinimem.store.receipts import next_number, parse_receipt
        from infinimem.store.see_also import dangling

        operations().before(self, head.op)
        high = self.allocate(0, view) - 1  # a person may have typed a higher one, and delete it later
        head = replace(head, number=next_number(view), high=high)
        done.documents |= dangling(view, done.documents)
        receipt, changes = receipt_and_changes(done, view, head, notes)
        transaction = Transaction(self.files, receipt.number, notice)
        for change in changes:
            transaction.put(change)
        try:
            transaction.commit()
        except Conflict:  # perhaps by a save that kept the time and size of the file: read all anew
            self.fresh.doubt()
            self._parsed, self._view = Parsed(self.files, self.initialised), None
            raise
        self._parsed.written(done.documents)
        recheck(self.files, self.clock().timestamp(), LATEST)
        written = self.files.read(changes[-1].path, MAX_OWNED) or b""  # it may tell of a person's save
        return parse_receipt(Document.parse(receipt.id, written)) if written != changes[-1].new else receipt

    def allocate(self, count: int, view: View) -> int:
        """Reserve seqs, durably; returns the first. Never one given before, even if its line is gone."""

        def named() -> int:
            rows = (row.seq for receipt in self.receipts() for row in receipt.rows)
            return int(max((self.view().max_seq, *rows, *(view.drawn or ()), *self.seen_lines())))

        return sequence.allocate(self.files, count, view.max_seq, named)

    def _append(self, tail: Document) -> None:
        """Add to a document; what was read of it before need not be read again."""
        path, data = f"{tail.id}.md", tail.to_bytes()
        with tails.noted(self.files, path, data):
            before, after = self.files.append(path, data)
        self._parsed.grown(before, after, tail)

    def _now(self) -> str:
        return self.clock().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
