"""A library under watch: what a person does to its files, and what a step of the program may change in them.

The model is the folder itself, read before and after each step, with what calls acknowledged. Every `pick` is
any whole number: it chooses among what there is, so that a test can draw it beforehand.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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

SIGNED = re.compile(rb"- <(?:[a-z_]+=[^>]*,)?seq=(\d+)[,>]")
T = TypeVar("T")


@dataclass(frozen=True)
class Spot:
    """A signed line of a live or archived document: file, index of the line, its bytes without line end."""

    path: Path
    index: int
    line: bytes


def choose(options: Sequence[T], pick: int) -> T | None:
    return options[pick % len(options)] if options else None


def files(root: Path, *folders: str) -> list[Path]:
    """CURRENT and the documents of these folders, sorted."""
    found = [path for folder in folders for path in sorted((root / folder).rglob("*.md"))]
    current = root / "CURRENT.md"
    return [current, *found] if current.exists() else found


def spots(root: Path, *folders: str) -> list[Spot]:
    """Signed lines of CURRENT and of these folders."""
    return [
        Spot(path, index, line)
        for path in files(root, *folders)
        for index, line in enumerate(path.read_bytes().split(b"\n"))
        if SIGNED.match(line)
    ]


def save(path: Path, data: bytes, pick: int) -> None:
    """As editors do: in place, or under another name that takes the file's place."""
    if pick % 2:
        path.write_bytes(data)
    else:
        draft = path.with_name(f"{path.name}~")
        draft.write_bytes(data)
        draft.replace(path)


def _replace(spot: Spot, lines: Sequence[bytes], pick: int) -> None:
    """Other lines in the place of one."""
    body = spot.path.read_bytes().split(b"\n")
    body[spot.index : spot.index + 1] = lines
    save(spot.path, b"\n".join(body), pick)


def edit_text(root: Path, pick: int, word: str) -> None:
    """Rewrite what a signed line says."""
    spot = choose(spots(root, "topics", "archive"), pick)
    if spot is None:
        return
    head, _, text = spot.line.partition(b"> ")
    end = b"\r" if text.endswith(b"\r") else b""
    said = [text.removesuffix(b"\r") + b" " + word.encode(), word.encode() + b" > instead", word.encode()]
    _replace(spot, [head + b"> " + said[pick % 3] + end], pick)


def edit_signature(root: Path, pick: int, word: str) -> None:
    """Change what a line says of itself: its source, a key of one's own, its seq; or break it."""
    spot = choose(spots(root, "topics"), pick)
    if spot is None:
        return
    seq = int(SIGNED.match(spot.line)[1])  # type: ignore[index]
    highest = max(int(SIGNED.match(other.line)[1]) for other in spots(root, "topics", "archive"))  # type: ignore[index]
    changes = (
        (b">", f",label={word}>".encode()),
        (b">", b",pin=yes>"),
        (b"source=user", b"source=human"),
        (b"seq=%d" % seq, b"seq=%d" % (highest + 1 + pick % 5)),
        (b"seq=%d" % seq, b"seq=%d" % max(1, seq - 1)),
        (b"source=", b"source=x"),
    )
    old, new = changes[pick // 7 % len(changes)]
    _replace(spot, [spot.line.replace(old, new, 1)], pick)


def delete_line(root: Path, pick: int) -> None:
    spot = choose(spots(root, "topics", "archive"), pick)
    if spot is not None:
        _replace(spot, [], pick)


def paste_line(root: Path, pick: int, cut: bool) -> None:
    """Copy a signed line to the end of another live document, or move it there."""
    spot = choose(spots(root, "topics") if cut else spots(root, "topics", "archive", "evidence"), pick)
    target = choose(files(root, "topics"), pick // 3)
    if spot is None or target is None:
        return
    if cut:
        _replace(spot, [], pick)
    body = target.read_bytes()
    gap = b"" if body.endswith(b"\n") or not body else b"\n"
    save(target, body + gap + spot.line.removesuffix(b"\r") + b"\n", pick // 5)


def write_text(root: Path, pick: int, word: str) -> None:
    """Type list items, a task, prose, a header key, at the end or above the first line; often in CURRENT."""
    path = choose(files(root, "topics") if pick % 2 else files(root), pick)
    if path is None:
        return
    typed = (
        f"- {word}, typed\n",
        f"* one {word}\n+ two   \n- [ ] three {word}\n",
        f"\nSome prose of {word}.\nAnd more | of it.\n",
        f"# Mine\n- item {word}\r\n- <b>bold</b> {word}\n",
        f"no line end {word}",
        f"\n- -- {word} `- <seq=1>`\n",
        f"- no line end either, {word}",
    )[pick // 3 % 7].encode()
    body = path.read_bytes()
    if pick % 5 == 4 and body.startswith(b"---\n"):
        save(path, body.replace(b"---\n", f"---\n{word}: [a, b]\n".encode(), 1), pick)
        return
    gap = b"" if body.endswith(b"\n") or not body else b"\n"
    save(path, body + gap + typed, pick)


def resave(root: Path, pick: int) -> None:
    """Save a file unchanged but for its line ends or a byte order mark."""
    path = choose(files(root, "topics", "archive"), pick)
    if path is None:
        return
    bom, body = b"\xef\xbb\xbf", path.read_bytes()
    plain = body.removeprefix(bom).replace(b"\r\n", b"\n")
    save(path, (plain.replace(b"\n", b"\r\n"), bom + plain, plain)[pick // 3 % 3], pick)


def delete_file(root: Path, pick: int) -> None:
    """Any document but a receipt."""
    path = choose(files(root, "topics", "archive", "evidence"), pick)
    if path is not None:
        path.unlink()


def rename_topic(root: Path, pick: int, word: str) -> None:
    path = choose([path for path in files(root, "topics") if path.parent != root], pick)
    if path is not None:
        path.rename(root / "topics" / (f"{word}.md", f"{word}, as I call it.md")[pick % 2])


def delete_state(root: Path) -> None:
    shutil.rmtree(root / ".infinimem", ignore_errors=True)


def clone(root: Path, copy: Path) -> None:
    """The folder as version control or a copy without hidden files gives it."""
    shutil.copytree(root, copy, ignore=shutil.ignore_patterns(".infinimem"))


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
