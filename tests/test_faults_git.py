"""Two clones of one library that grew apart and were merged by git: the same seqs were given in both."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from fault_snapshot import EVIDENCE, Snapshot
from git_repository import run_git

from infinimem.model import CURRENT, Located, Move, NewEntry, Plan, Turn
from infinimem.operations.checks import RENUMBERED
from infinimem.operations.doctor import examine, repair
from infinimem.store.create import init
from infinimem.store.library import Library
from infinimem.store.outcome import Applied

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


class Repository:
    """A library under git, whatever the machine's own configuration says."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def git(self, *command: str, fails: bool = False) -> str:
        identity = {
            f"GIT_{who}_{what}": value
            for who in ("AUTHOR", "COMMITTER")
            for what, value in {
                "NAME": "Ann",
                "EMAIL": "ann@example.org",
                "DATE": "2025-03-03T12:00:00Z",
            }.items()
        }
        return run_git(self.root, "-c", "init.defaultBranch=main", *command, fails=fails, env=identity)

    def save(self, message: str) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)

    def clone(self, name: str) -> Repository:
        self.git("clone", "--quiet", ".", f"../{name}")
        return Repository(self.root.parent / name)

    def merge(self, other: Repository, *, conflicts: bool = False) -> None:
        self.git("fetch", "--quiet", str(other.root), "main")
        self.git("merge", "--quiet", "--no-edit", "FETCH_HEAD", fails=conflicts)

    def keep_both(self, path: str, other: str) -> None:
        """Settle a conflict over a new file: ours stays, theirs stands beside it."""
        theirs = self.git("show", f":3:{path}")
        self.git("checkout", "--quiet", "--ours", path)
        (self.root / other).write_text(theirs)
        self.save("Merged")

    @property
    def library(self) -> Library:
        return Library(self.root)

    @property
    def now(self) -> Snapshot:
        return Snapshot.of(self.root)


def say(library: Library, session: str, *texts: str) -> list[Located]:
    """Record turns and draw an entry from each; the entries."""
    told = library.record([Turn(text, session=session, time="2025-03-01") for text in texts])
    outcome = library.apply(Plan(adds=tuple(NewEntry(place.text, (place.seq,)) for place in told)))
    assert isinstance(outcome, Applied)
    return list(outcome.added)


def sort(library: Library, topic: str, *entries: Located) -> None:
    moves = tuple(Move(entry.seq, f"topics/{topic}", "Things") for entry in entries)
    assert isinstance(library.apply(Plan("consolidate", moves=moves)), Applied)


def type_items(library: Library, doc_id: str, *texts: str) -> None:
    with (library.root / f"{doc_id}.md").open("a") as file:
        file.write("".join(f"- {text}\n" for text in texts))
    library.adopt_edits()


@pytest.fixture
def origin(tmp_path: Path) -> Repository:
    root = tmp_path / "origin"
    library = init(root)
    sort(library, "home", say(library, "s0", "Lives in Rome")[0])
    say(library, "s0", "Likes tea")
    (root / ".gitattributes").write_text("CURRENT.md merge=union\n")
    repository = Repository(root)
    repository.git("init", "--quiet")
    repository.save("Begin")
    return repository


def errors(repository: Repository) -> list[str]:
    return [item.what for item in examine(repository.library) if item.level == "error"]


def test_machine_state_stays_out_of_version_control(origin: Repository) -> None:
    assert ".infinimem" not in origin.git("ls-files")
    assert not (origin.clone("left").root / ".infinimem").exists()
    assert errors(origin.clone("right")) == []


def test_of_a_doubled_seq_the_later_copy_gets_a_new_one(origin: Repository) -> None:
    left, right = origin.clone("left"), origin.clone("right")
    type_items(left.library, CURRENT, "left one", "left two")
    type_items(right.library, CURRENT, "right one", "right two", "right three")
    type_items(right.library, "topics/home", "right home")
    ours, theirs = left.now, right.now
    left.save("Left")
    right.save("Right")
    left.merge(right, conflicts=True)  # both have a second receipt
    left.keep_both("journal/0002-stamp.md", "journal/0002-stamp-right.md")
    merged = left.now
    assert merged.texts == ours.texts | theirs.texts
    assert len(merged.doubled) == 2
    receipt = left.library.adopt_edits()
    assert receipt is not None
    after = left.now
    assert after.texts == merged.texts
    assert after.doubled == set()
    assert errors(left) == []
    renumbered = {row.seq: row.why for row in receipt.rows if row.why.startswith("renumbered")}
    assert len(renumbered) == 2
    for seq, why in renumbered.items():
        (place,) = after.by_seq[seq]
        assert place.entry.origin == (int(why.removeprefix("renumbered from ")),)
        assert seq not in merged.by_seq
    # Who has the seq of before the merge keeps it: nothing that this clone gave out is taken back.
    assert {p.seq: p.text for p in ours.places}.items() <= {p.seq: p.text for p in after.places}.items()


def grown_apart(origin: Repository) -> tuple[Repository, Repository]:
    """Clones where both said things, under the same seqs; the right one also sorted them."""
    left, right = origin.clone("left"), origin.clone("right")
    say(left.library, "s1", "Rita visits on 14 June", "Rita has two children")
    entries = say(right.library, "s2", "Allergic to peanuts", "Runs on Sundays", "Grows tomatoes")
    sort(right.library, "health", *entries[:2])
    left.save("Left")
    right.save("Right")
    return left, right


def nothing_lost(left: Repository, right: Repository) -> None:
    """After a merge into `left`: all that either held is there, and every line has a seq of its own."""
    merged = left.now
    assert not merged.texts - left.now.texts
    left.library.adopt_edits()
    after = left.now
    assert after.texts == merged.texts
    assert after.doubled == set()
    assert bare(after) == bare(merged)
    assert left.library.adopt_edits() is None


def bare(snapshot: Snapshot) -> dict[str, bytes]:
    """The evidence, but for seqs."""
    said = snapshot.part(EVIDENCE)
    return {path: re.sub(rb"(?m)^- <seq=\d+|,was=[^,>]*", b"", data) for path, data in said.items()}


def test_what_both_sides_said_and_drew_is_there_after_a_merge(origin: Repository) -> None:
    left, right = grown_apart(origin)
    ours, theirs = left.now, right.now
    left.merge(right)
    assert left.now.texts == ours.texts | theirs.texts
    nothing_lost(left, right)


def test_a_conflict_that_nobody_settled_yet_loses_nothing(origin: Repository) -> None:
    (origin.root / ".gitattributes").unlink()
    origin.save("Merge by hand")
    left, right = grown_apart(origin)
    ours, theirs = left.now, right.now
    left.merge(right, conflicts=True)
    assert any("git conflict marker" in error for error in errors(left))
    assert left.now.texts == ours.texts | theirs.texts
    added = say(left.library, "s3", "Said amid a conflict")
    nothing_lost(left, right)
    kept = [
        line
        for line in (left.root / "CURRENT.md").read_bytes().split(b"\n")
        if not line.startswith((b"<<<<<<<", b"=======", b">>>>>>>"))
    ]
    (left.root / "CURRENT.md").write_bytes(b"\n".join(kept))
    nothing_lost(left, right)
    assert left.library.view().entry(added[0].seq) is not None
    left.save("Merged")
    assert not any("conflict" in error for error in errors(left))


def test_turns_that_nobody_cites_get_seqs_of_their_own(origin: Repository) -> None:
    left, right = origin.clone("left"), origin.clone("right")
    for clone, session in ((left, "s1"), (right, "s2")):
        (place,) = clone.library.record([Turn(f"Nothing to keep in {session}", session=session)])
        clone.library.apply(Plan(empty=(place.seq,)))
        clone.save("Grown")
    left.merge(right)
    finding = next(item for item in examine(left.library) if "stands twice" in item.what)
    assert (finding.level, finding.fix) == ("error", RENUMBERED)
    before = left.now
    assert finding in repair(left.library)
    after = left.now
    assert bare(after) == bare(before)
    assert {path for path in before.files if before.files[path] != after.files[path]} == {
        next(path for path in before.files if path.endswith("-s2.md"))
    }
    (turn,) = (place for place in after.places if "s2" in place.text)
    (first,) = (place for place in after.places if "s1" in place.text)
    assert (turn.entry.fields["was"], turn.entry.origin) == (str(first.seq), ())
    assert left.library.view().uncited() == ()  # as the one under the old number
