"""A library: the only door to its files. Writers take turns under a lock, never held while a strategy works.

In: turns to record, plans to apply. Out: snapshots (`View`), receipts. Promise: what `record` or `apply`
returned is on disk, and no plan is applied that the law refuses.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar
from weakref import ref

from infinimem.embedders.local import Choice, lazily, permitted
from infinimem.errors import LibraryError, NotALibrary
from infinimem.markdown.document import Document
from infinimem.model import BUFFERS, CURRENT, Located, Plan, Receipt, RejectedReply, Turn, Usage
from infinimem.settings import SETTINGS, configuration, template
from infinimem.spec import folders, spec_of, strategies
from infinimem.store import sequence, state
from infinimem.store.commit import DISPLACED, FOLDER, LATEST, Conflict, commit, recheck, recover
from infinimem.store.files import MAX_OWNED, Files
from infinimem.store.folders import NO_NOTES, LeftOut, by_patterns
from infinimem.store.freshness import DocumentStates, Freshness, Parsed
from infinimem.store.index import Index
from infinimem.store.lines import block_of
from infinimem.store.spec import EVIDENCE, FORGETTING, JOURNAL
from infinimem.store.view import Applied, Outcome, Rejected, Stored, View
from infinimem.user_folders import approve

if TYPE_CHECKING:  # who only reads needs nothing of what writes
    from infinimem.law import Verdict
    from infinimem.store.plans import Rendered
    from infinimem.store.withheld import Proposal

RETRIES = 2
"""How often a plan is tried again when a person saved a file of it in between."""
HELD = 2000
"""Documents; of more few notes stay parsed, and a snapshot may read a newer one."""
LARGEST_IGNORE = 1 << 16
"""Bytes of a .gitignore that is read."""
RECENT, RECENT_BYTES = 100, 1 << 16
"""Notes of a larger library that a snapshot keeps, and bytes of each at most: a search asks twice for one."""
IGNORED = ".infinimem/\n.obsidian/workspace*.json\n.trash/\n"
"""Machine state, and what Obsidian keeps of its windows and its bin: they change by themselves."""

T = TypeVar("T")
Clock = Callable[[], datetime]


def system_clock() -> datetime:
    return datetime.now(UTC)


def operation(name: str) -> ModuleType:
    """Load what runs around writes by name: imports lead downwards, and a `forget` must be finished."""
    return import_module(f"infinimem.operations.{name}")


def init(
    root: Path,
    clock: Clock = system_clock,
    embedder: Choice = None,
    strategy: str | None = None,
    trust: bool = False,
) -> Library:
    """Make a folder a library: settings, folders, .gitignore. What is there already is left alone.

    A new one is noted as this user's, unless `trust`. Raises a LibraryError if it cannot be made or written.
    """
    settings = template(strategy).encode()
    digest = configuration(settings).digest  # first: what is wrong with config.toml stops it
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LibraryError(f"cannot make {root}: {error.strerror}; choose another folder") from error
    files = Files(root)
    new = {SETTINGS: settings, ".gitignore": IGNORED.encode(), ".infinimem/.gitignore": b"*\n"}
    with files.exclusive():
        is_new = not files.exists(SETTINGS)
        _create(files, new)
        if is_new and not files.exists(sequence.MARK):
            sequence.begin(files, 0)
            state.note(files, seen={state.receipt_seen(""): state.SeenLine("", "")})
    if is_new and not trust:
        approve(root, digest)
    library = Library(root, clock, embedder, strategy, trust=trust)
    if not library.initialised:
        raise LibraryError(f"{root / SETTINGS} is a link or no file; put the settings themselves there")
    with files.exclusive():
        for folder in (*library.spec.folders, EVIDENCE, JOURNAL):
            files.make_folder(folder)
        if library.spec.buffer:
            _create(files, {f"{library.spec.buffer}.md": b"---\nid: CURRENT\ncurrent_epoch: 0\n---\n"})
    return library


def _create(files: Files, new: Mapping[str, bytes]) -> None:
    for path, data in new.items():
        if not files.exists(path):
            files.replace(path, data)


class Library:
    """A memory folder, or a plain folder of notes (then every write is refused).

    Args:
        clock: gives the time for headers and receipts; injected so that runs can be repeated.
        embedder, strategy: for its views, and who keeps it; None takes the settings.
        trust: let its settings act, whatever they are.

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
        self.files.read_only = read_only
        settings = self.files.read(SETTINGS)
        self.initialised, self.read_only = settings is not None, read_only
        self.configuration = configuration(settings or b"", root, trusted=trust)
        self.settings = self.configuration.settings
        self.spec = spec_of(strategy or self.settings.strategy)
        self._embedder = lazily(permitted(embedder, self.configuration), self.settings.embedder)
        self._parsed = Parsed(self.files, self.initialised)
        needed = folders().owned if self.initialised else ()
        self.fresh = Freshness(self.files, self._parsed.limit, needed, self.left_out())
        self._adopted: tuple[str, Mapping[str, Document]] = "", {}
        self._index = Index(str(self.files.root), self.spec.name)
        self._view: tuple[tuple[DocumentStates, object], View] | None = None
        if self.initialised and not read_only:
            self._recover()

    def _recover(self) -> None:
        """Finish what a crash cut short, mend what a loss of power tore, and take in late saves."""
        rebooted = sequence.rebooted(self.files)
        left = self.files.names(FOLDER) or self.files.names(DISPLACED) or sequence.waiting(self.files)
        if not (rebooted or left or self.files.exists(FORGETTING)):
            return
        # A disk that refuses is no reason not to read: what was moved stands in one place at least.
        with suppress(LibraryError), self.files.exclusive(timeout=1.0):
            self._finish()
            recheck(self.files, self.clock().timestamp())
            if rebooted:
                state.check(self.files)
                sequence.mend(self.files, self.view(), self.seen_lines())
                sequence.settle(self.files)

    def _finish(self) -> None:
        if sequence.waiting(self.files):
            self.fresh.doubt()  # what a dying writer appended, no folder's time tells
            sequence.undo(self.files)
        recover(self.files)
        if self.files.exists(FORGETTING):
            operation("forget.forget").finish(self.files)

    def siblings(self) -> tuple[Library, ...]:
        """Return the library as each strategy sees it that derived something from it, itself first."""
        seen, view = [self], self.view()
        for spec in strategies().values() if self.initialised else ():
            keeps = any(map(view.below, spec.folders))
            keeps = keeps or (spec.lists_turns and state.read(self.files, spec).drawn is not None)
            if spec is not self.spec and keeps:
                other = copy(self)
                other.spec, other._view = spec, None
                other._index = Index(str(self.files.root), spec.name)
                seen.append(other)
        return tuple(seen)

    def left_out(self) -> LeftOut | None:
        """Return what counts as no note: by the settings and, in a plain folder, .gitignore and NO_NOTES."""
        patterns = list(self.settings.notes.ignore)
        if not self.initialised:
            own = None
            with suppress(LibraryError):
                own = self.files.read(".gitignore", LARGEST_IGNORE)
            patterns = [*NO_NOTES, *(own or b"").decode("utf-8", "replace").splitlines(), *patterns]
        return by_patterns(patterns) if patterns else None

    def view(self) -> View:
        """Return the library as it is now; the same object as long as no file changes."""
        listing = self.fresh.look()
        lists = state.read(self.files, self.spec) if self.initialised else state.Lists()
        now = (listing, lists)
        buffer = listing.stamps.get(CURRENT)
        age = self.clock().timestamp() - buffer.mtime_ns / 1e9 if buffer else 0.0
        if self._view is not None and self._view[0] == now:
            self._view[1].buffer_age = age
            return self._view[1]
        held: dict[str, Document] = {}  # a view says the same as long as it lives
        mine, parsed, fresh = ref(self), self._parsed, self.fresh  # nor does it keep the library's files open

        def read(doc_id: str, keep: bool = False) -> Document:
            if (known := held.get(doc_id)) is not None:
                return known
            document, is_fresh = parsed.load(doc_id, listing.stamps[doc_id], keep)
            if not is_fresh:
                fresh.doubt(f"{doc_id}.md")  # listed before this was saved
                if library := mine():
                    library._view = None
            return document

        recent = lru_cache(RECENT)(read)

        def block() -> int | None:
            library = mine()
            mark = sequence.high_water(library.files) if library and library.initialised else None
            return None if mark is None else block_of(mark)

        def load(doc_id: str) -> Document:
            if len(listing.ids) <= HELD or parsed.owned(doc_id):
                return held.setdefault(doc_id, read(doc_id, keep=True))
            small = listing.stamps[doc_id].size <= RECENT_BYTES
            return recent(doc_id) if small else read(doc_id)

        view = View(
            listing.ids,
            load,
            self.settings,
            initialised=self.initialised,
            drawn=lists.drawn,
            refused=lists.refused,
            unanswered=lists.unanswered,
            buffer_age=age,
            stored=Stored(str(self.files.root), listing.stamps, read, self._index, listing, block),
            embedder=self._embedder,
            spec=self.spec,
            before=self._view and (self._view[1], listing.since(self._view[0][0])),
        )
        self._view = (now, view)
        return view

    def receipts(self) -> tuple[Receipt, ...]:
        from infinimem.store.receipts import receipts_of

        return tuple(receipts_of(self.view())) if self.initialised else ()

    def record(self, turns: Sequence[Turn]) -> tuple[Located, ...]:
        """Write turns to the evidence log, durably, but for marked ones that are there; return the new lines.

        Raises:
            UsageError: a turn is empty or its time is no time; nothing is written.
            NotALibrary: the folder has no infinimem.toml.
        """
        from infinimem.store import evidence

        for turn in turns:
            evidence.check_turn(turn)
        with self.locked() as view:
            now = self._now()
            fresh = evidence.unrecorded(turns, view, lambda: sequence.doubtful(self.files))
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
            base: what it was made from; lines that moved or went since are left out.
            approved: for law.verify; strategy, model, usage, began: for the receipt.

        Raises:
            NotALibrary: the folder has no infinimem.toml.
            LibraryError: the disk refused, or someone kept saving the very files. Nothing has changed; or,
                once the change was decided, the next call finishes it.
        """
        from infinimem.store.plans import verified
        from infinimem.store.withheld import keep_replies

        head = self._head(strategy, model, usage or Usage(), began)

        def applied(view: View) -> Outcome:
            outcome = self._apply(verified(plan, base, view, approved), view, head)
            reasons = outcome.reasons if isinstance(outcome, Rejected) else ()
            refused = [RejectedReply(plan.op, "", tuple(map(str, reasons)))] if reasons else []
            if not any(reason.code == "FORGOTTEN" for reason in reasons):
                refused = [*plan.rejected, *refused]  # else a reply may quote what was forgotten
            keep_replies(self.files, refused, head.time)
            return outcome

        return self.written(applied)

    def written(self, act: Callable[[View], T]) -> T:
        """Do something to the library as it is while nobody else writes; again, where a person saved a file
        of it meanwhile."""
        for left in reversed(range(RETRIES + 1)):
            try:
                with self.locked() as view:
                    return act(view)
            except Conflict:
                if not left:
                    raise
        raise AssertionError

    def elsewhere(self, root: Path, clock: Clock) -> Library:
        """A copy of the library in another folder, under the settings in force here, and without git."""
        other = Library(root, clock, strategy=self.spec.name, trust=True)
        other.configuration, other.settings = self.configuration, replace(self.settings, git=False)
        other._embedder = self._embedder
        return other

    def proposals(self) -> tuple[Proposal, ...]:
        """Return the archivings that need approval."""
        from infinimem.store.withheld import proposals

        return proposals(self.files)

    def adopt_edits(self) -> Receipt | None:
        """Take in what people and merges did: sign what is new or doubled, note what was changed."""
        if not self.initialised:
            return None
        self.fresh.doubt()
        mended = self.mend()
        if gone := self._forgotten_elsewhere():
            operation("forget.forget").forget_again(self, gone)
        return self._adopt_edits() or mended

    def _forgotten_elsewhere(self) -> set[int]:
        """Return lines that a receipt of another copy says were forgotten, and that are known here."""
        from infinimem.store.receipts import forgotten_seqs

        if not (gone := self.view().derived(forgotten_seqs)):
            return set()
        which, rows = "seq IN (SELECT value FROM json_each(?))", json.dumps([*gone])
        standing = self.view().lines.seqs(f"select seq from line where {which}", rows)
        return {*standing, *state.SeenLines(self.files).load(f"WHERE {which}", rows)}

    def mend(self) -> Receipt | None:
        """Merge what git and programs that sync folders left of two versions in documents."""
        from infinimem.store.external_edits import followed
        from infinimem.store.merging import conflicts, mend

        if not (self.initialised and conflicts(self.view())):
            return None
        with self.locked() as view:
            if not (left := conflicts(view)):
                return None
            done, known = mend(view, left), self.seen_lines()
            places = (place for document in done.documents.values() if document for place in document.entries)
            notice = followed(known, (place for place in places if place.seq in known))
            return self.commit(done, view, self.of_people("merge"), (), notice)

    def _adopt_edits(self) -> Receipt | None:
        from infinimem.store.external_edits import differences, find_edits, is_unedited, tracked

        seen, (began, adopted) = state.SeenLines(self.files), self._adopted
        view, known = self.view(), seen if began == seen.began else seen.load()
        if is_unedited(view, known, adopted if began == seen.began else {}) or not (
            differences(view, known := seen.load()) or find_edits(view, known)
        ):
            self._adopted = seen.began, {doc_id: view.document(doc_id) for doc_id in tracked(view)}
            return None
        with suppress(Conflict):
            return self.written(self._adopt)
        return None  # a person who keeps saving is heard at the next call

    def _adopt(self, view: View) -> Receipt | None:
        from infinimem.store.external_edits import adopt, differences, find_edits

        known = self.seen_lines()
        if not (edits := find_edits(view, known)):
            state.note(self.files, seen=differences(view, known))
            return None
        first = self.allocate(edits.to_sign, view) if edits.to_sign else 0
        done = adopt(view, edits, first)
        return self.sign(done, view, "stamp")

    def by_hand(self, change: Callable[[View, Callable[[], int]], Rendered]) -> Receipt:
        """Do what a person does to a line; `change` is given what gives a new one its seq. What people
        typed before is taken in first; what `change` refuses leaves no trace."""
        self.demand_initialised()
        change(self.view(), lambda: 1)
        self.adopt_edits()
        return self.written(
            lambda view: self.sign(change(view, lambda: self.allocate(1, view)), view, "edit")
        )

    def sign(self, done: Rendered, view: View, op: str) -> Receipt:
        """Commit what is signed anew of people's lines, which stay where they are."""
        from infinimem.store.external_edits import differences
        from infinimem.store.plans import violations

        if wrong := violations(view, done):
            raise LibraryError(f"lines cannot be signed ({wrong[0]}); run infinimem doctor")
        notice = differences(view, self.seen_lines(), done.documents)
        return self.commit(done, view, self.of_people(op), (), notice)

    def mark(self, kinds: Mapping[int, str]) -> None:
        """Have turns left as they were said, or asked about anew, by seq."""
        with self.locked():
            state.note(self.files, strategy=self.spec.name, unanswered=kinds)

    def reopen(self, seqs: Collection[int]) -> None:
        """Have turns drawn from again of which nothing was kept."""
        with self.locked() as view:
            state.note(self.files, reopened=[seq for seq in seqs if seq not in view.cited])

    def seen_lines(self) -> Mapping[int, state.SeenLine]:
        """Return every line as it was last seen, by seq."""
        return state.SeenLines(self.files).load()

    def demand_initialised(self) -> None:
        """Raise NotALibrary for a folder of notes, a LibraryError for a library opened for reading only."""
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
        """Give the library as it is while nobody else writes, for the store's own operations."""
        self.demand_initialised()
        with self.files.exclusive():
            self._finish()
            yield self.view()
            if self.settings.git:
                operation("git").keep(self, unless_known=True)

    def _apply(self, verdict: Verdict, view: View, head: Receipt) -> Outcome:
        from infinimem.store import plans
        from infinimem.store.external_edits import followed
        from infinimem.store.receipts import next_number
        from infinimem.store.withheld import keep_withheld

        if verdict.refused:
            return Rejected(view, verdict.refused)
        plan = verdict.plan
        if plan.op == "append":
            plan = plans.awaiting(replace(plan, adds=plans.not_yet_drawn(plan.adds, view)), view)
        first = self.allocate(len(plan.adds), view)
        if not (plan.adds or block_of(first)):  # of a copy its block goes into the receipt's name
            first = view.max_seq + 1
        head = plans.name_receipt(replace(head, op=plan.op, number=next_number(view)), plan, view, first)
        done = plans.render(plan, view, first, head)
        if wrong := [*plans.violations(view, done), *plans.name_clashes(view, done)]:
            return Rejected(view, tuple(wrong))
        receipt, known = None, state.SeenLines(self.files)
        seen: state.Changes = {}
        into = [name for name in BUFFERS if name in done.documents and name in view]
        if plan.op == "append" and not plan.moves and len(done.documents) == len(into) <= 1:
            if done.added:
                lines = plans.by_heading(plan.adds, first, done.added)
                tail = Document.parse(into[0], lines.encode("utf-8", "surrogateescape"))
                self._append(tail)
                seen = followed(known, tail.entries)
        else:
            moved = (place for document in done.documents.values() if document for place in document.entries)
            notice = followed(known, moved)
            receipt = self.commit(done, view, head, (*plan.notes, *map(str, verdict.withheld)), notice)
            with suppress(LibraryError):  # decided already, and the receipt names them too
                keep_withheld(self.files, receipt.number, (*plan.withheld, *verdict.withheld), view.entry)
        is_rebuilt = self.spec.sparse and plan.op == "rebuild" and view.drawn is not None
        state.note(
            self.files,
            plans.lists_after(plan, view),
            lambda: view.processed,
            emptied=state.drawn_list(self.spec) if is_rebuilt else None,
            strategy=self.spec.name,
            unanswered=plan.unanswered,
            model=head.model,
            seen=seen,
        )
        now = self.view()
        added = tuple(place for seq, _ in done.added if (place := now.entry(seq)))
        return Applied(now, receipt, added)

    def _head(self, strategy: str, model: str, usage: Usage, began: datetime | None) -> Receipt:
        seconds = (self.clock() - began).total_seconds() if began else 0.0
        return Receipt(0, "", self._now(), strategy, model, usage, seconds, (), ())

    def of_people(self, op: str) -> Receipt:
        """Begin a receipt of what no strategy and no model did."""
        return replace(self._head("people", "none", Usage(), None), op=op)

    def commit(
        self, done: Rendered, view: View, head: Receipt, notes: Sequence[str], notice: state.Changes
    ) -> Receipt:
        """Write documents and the receipt as one, under the lock, for the store's own operations.

        The head says op and who did it, `notice` what the list of last seen lines says afterwards.
        """
        from infinimem.store.plans import dangling, receipt_and_changes
        from infinimem.store.receipts import next_number, parse_receipt

        if self.settings.git and head.op != "forget":  # what is to be forgotten gets no commit of its own
            operation("git").keep(self)
        high = self.allocate(0, view) - 1  # a person may have typed a higher one, and delete it later
        head = replace(head, number=next_number(view), high=high)
        done.documents |= dangling(view, done.documents)
        receipt, changes = receipt_and_changes(done, view, head, notes)
        notice = {**notice, state.receipt_seen(receipt.id): state.SeenLine(receipt.id, "")}
        try:
            commit(self.files, receipt.number, changes, notice)
        except Conflict:  # perhaps by a save that kept the time and size of the file: read all anew
            self.fresh.doubt()
            self._parsed, self._view = Parsed(self.files, self.initialised), None
            raise
        self._parsed.written(done.documents)
        recheck(self.files, self.clock().timestamp(), LATEST)
        written = self.files.read(changes[-1].path, MAX_OWNED) or b""  # it may tell of a person's save
        return parse_receipt(Document.parse(receipt.id, written)) if written != changes[-1].new else receipt

    def allocate(self, count: int, view: View) -> int:
        """Reserve seqs, durably; return the first. Never one given before, even if its line is gone."""
        return sequence.allocate(self.files, count, view)

    def _append(self, tail: Document) -> None:
        path, data = f"{tail.id}.md", tail.to_bytes()
        with sequence.noted(self.files, path, data):
            before, after = self.files.append(path, data)
        self._parsed.grown(before, after, tail)

    def _now(self) -> str:
        return self.clock().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
