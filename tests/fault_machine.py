"""A library under watch: what one step of the program may change in its folder, and what a person changed.

The model is the folder itself, read before and after each step, with what calls acknowledged.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

from fault_disk import Crash, When, die, hooked, nothing
from fault_snapshot import ARCHIVE, EVIDENCE, LIVE, Snapshot
from hypothesis.stateful import RuleBasedStateMachine

from infinimem.markdown.signature import parse_seqs
from infinimem.model import Plan, Receipt
from infinimem.store.files import digest
from infinimem.store.library import Library, init
from infinimem.store.view import Applied, Outcome, Rejected

T = TypeVar("T")
Fault = tuple[int, When] | None
"""The call to the disk at which the program dies, and on which side of it."""

SCRATCH = Path("/dev/shm") if Path("/dev/shm").is_dir() else None
"""In memory where there is such a place: crashes are injected, no disk is needed for them."""
BEGAN = datetime(2025, 3, 3, 12, tzinfo=UTC)

CAUSED = re.compile(r"signature cannot be parsed|above the high-water mark|archived without a reason")
"""What `doctor` says of a signature that a person broke, of a seq that they made up, and of a heading of the
archive that went with what they deleted."""


class Watched(RuleBasedStateMachine):
    """The state and the checks; its heirs have the rules."""

    def new(self) -> None:
        """An empty library."""
        self.folder = Path(tempfile.mkdtemp(dir=SCRATCH))
        self.root = init(self.folder / "m0").root
        self.clones = 0
        self.words = 0
        self.drift = timedelta()
        self.told: dict[int, str] = {}
        """Text by seq of every line that a call acknowledged and no person touched since."""
        self.given: set[int] = set()
        """Seqs that the program gave or met; none may be given again."""
        self.counted = True
        """Whether the high-water mark stands: not between the loss of it and the next seq that is given."""
        self.gone: set[int] = set()
        """Seqs whose lines a person took away."""
        self.known: dict[int, str] | None = {}
        """Live and archived lines as the program last knew them; None where a crash, or the loss of the
        machine state, may have taken that."""
        self.open()

    def open(self) -> None:
        self.library = Library(self.root, clock=lambda: BEGAN + self.drift)

    def caused(self, problem: str) -> bool:
        """Whether a finding is a person's doing."""
        missing = re.search(r"origin ([\d+-]+)…? is not in the library", problem)
        if missing:
            return set(parse_seqs(missing[1])) <= self.gone
        return CAUSED.search(problem) is not None

    def word(self) -> str:
        self.words += 1
        return f"mine{self.words}"

    def run(self, action: Callable[[], T], crash: Fault) -> tuple[Snapshot, Snapshot, T | None]:
        """Do it, or die on the way and open the library again; the folder before and after."""
        before = Snapshot.of(self.root)
        result, self.crashed = None, False
        try:
            with hooked(die(*crash) if crash else nothing):
                result = action()
        except Crash:
            self.known, self.crashed = None, True
            self.open()
        after = Snapshot.of(self.root)
        self.always(before, after)
        return before, after, result

    def always(self, before: Snapshot, after: Snapshot) -> None:
        """What no step of the program may do, crash or not."""
        for path, data in before.part(EVIDENCE).items():
            assert after.files.get(path, b"").startswith(data), f"{path} is not what it was and more"
        mine = {path for path in before.files if not path.startswith((*LIVE, ARCHIVE, EVIDENCE))}
        assert {path: after.files.get(path) for path in mine} == {path: before.files[path] for path in mine}
        assert after.words == before.words
        assert not before.keys - after.keys
        assert not before.texts - after.texts, "a text is gone"
        assert after.doubled <= before.doubled
        texts = {seq: {place.text for place in places} for seq, places in after.by_seq.items()}
        lost = [seq for seq, text in self.told.items() if text not in texts.get(seq, ())]
        assert [seq for seq in lost if seq not in before.doubled] == []
        for seq in lost:
            self.told[seq] = min(texts[seq])
        new = after.by_seq.keys() - before.by_seq.keys()
        assert not new & self.given, "a seq was given twice"
        self.given |= new
        self.counted = self.counted or bool(new)
        assert Snapshot.of(self.root) == after

    def acknowledge(self, seq: int, text: str) -> None:
        assert seq not in self.told
        self.told[seq] = text

    def applied(self, before: Snapshot, after: Snapshot, plan: Plan, outcome: Outcome | None) -> None:
        """After a plan: lines as before and those of its adds; or all as before."""
        new, lost = after.lines - before.lines, before.lines - after.lines
        assert not lost
        assert after.part(EVIDENCE) == before.part(EVIDENCE)
        assert sum(new.values()) <= len(
            plan.adds
        )  # a crash may cut an append short: none of it is acknowledged
        if isinstance(outcome, Rejected):
            assert after == before
        if isinstance(outcome, Applied):
            assert new == Counter((place.seq, place.entry.line) for place in outcome.added)
            for place in outcome.added:
                self.acknowledge(place.seq, place.text)
                if self.known is not None:
                    self.known[place.seq] = place.entry.line
            if outcome.receipt:
                self.receipt(outcome.receipt, before, after)
            elif not plan.moves:
                assert {**before.files, "CURRENT.md": after.files.get("CURRENT.md")} == {
                    "CURRENT.md": None,
                    **after.files,
                }

    def receipt(self, receipt: Receipt, before: Snapshot, after: Snapshot) -> None:
        """It is read back as it was given, and says where each line was and is, and each file's bytes."""
        assert self.library.receipts()[-1] == receipt
        self.given |= {row.seq for row in receipt.rows}
        new = ("added", "stamped", "renumbered")
        fresh = {row.seq: row.was for row in receipt.rows if row.why.startswith(new)}
        assert not fresh.keys() & before.by_seq.keys()
        for row in receipt.rows:
            if row.why.startswith(new):
                continue
            was = [place.doc_id for place in before.by_seq.get(row.seq, ())]
            was += [fresh[row.seq]] if row.seq in fresh else []  # a copy that cites others too
            now = [place.doc_id for place in after.by_seq.get(row.seq, ())]
            if row.why == "deleted":  # a copy of what was said may have stood under its seq
                assert row.now == "-" and all(doc_id.startswith(EVIDENCE) for doc_id in now), row
                continue
            assert row.now in now, row
            assert row.was in was or row.why == "moved by hand", row
        made = sum(row.why in ("added", "stamped") for row in receipt.rows)
        assert len(after.places) - len(before.places) == made
        for doc_id, was_sha, now_sha in receipt.files:
            assert digest(before.files.get(f"{doc_id}.md")) == was_sha
            assert digest(after.files.get(f"{doc_id}.md")) == now_sha
        named = {f"{doc_id}.md" for doc_id, _, _ in receipt.files} | {f"{receipt.id}.md"}
        touched = {path for path, data in after.files.items() if before.files.get(path) != data}
        assert touched | (before.files.keys() - after.files.keys()) == named

    def taken_in(self, before: Snapshot, after: Snapshot, receipts: Sequence[Receipt]) -> None:
        """Receipts name what a person edited and deleted since the program last looked, and nothing else."""
        if self.known is not None:
            rows = [row for receipt in receipts for row in receipt.rows]
            quoted = [line for receipt in receipts for line in receipt.quoted]
            stood = {seq: line for seq, line in self.known.items() if seq in before.kept}
            edited = {seq for seq, line in stood.items() if line.rstrip() != before.kept[seq].rstrip()}
            deleted = self.known.keys() - before.by_seq.keys() - before.damaged
            # Of a seq that a person made up it depends on when the program saw it.
            clear = [row for row in rows if row.seq in self.known and row.seq not in before.doubled]
            assert Counter(row.seq for row in clear if row.why == "edited") == Counter(edited)
            assert Counter(row.seq for row in clear if row.why == "deleted") == Counter(deleted)
            assert {self.known[seq] for seq in edited | deleted} <= set(quoted)
            assert {p.entry.source for seq in edited for p in after.by_seq[seq]} <= {"human"}
        self.known = dict(after.kept)

    def by_hand(self, action: Callable[[], None]) -> None:
        """Do it, and take what it changed for what is so from now on."""
        before = Snapshot.of(self.root)
        action()
        after = Snapshot.of(self.root)
        for seq in [seq for seq in self.told if seq not in after.by_seq]:
            del self.told[seq]
        for seq, text in list(self.told.items()):
            texts = {place.text for place in after.by_seq[seq]}
            self.told[seq] = text if text in texts else min(texts)
        self.gone |= before.by_seq.keys() - after.by_seq.keys()
        self.gone -= after.by_seq.keys()
        if not self.counted:
            self.forget(after)

    def forget(self, now: Snapshot) -> None:
        """Without the high-water mark, seqs that nothing names may be given again."""
        named = {row.seq for receipt in self.library.receipts() for row in receipt.rows}
        self.given &= named | now.by_seq.keys()
