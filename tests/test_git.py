"""`git = true`: each receipt is one commit of the program's own files, and nothing else is touched."""

from __future__ import annotations

import logging
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from git_repository import NOON, Repository, sort, write_by_hand
from trusting import write_trusted
from unit_updates import updates as updates

from infinimem import open_memory
from infinimem.model import NewEntry, Plan, Receipt, ReceiptRow, Turn, Usage
from infinimem.operations import git
from infinimem.operations.doctor import examine
from infinimem.operations.forget.forget import forget, rename
from infinimem.operations.forget.redaction import Wanted
from infinimem.store.library import Library, init

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody configured this machine's git."""
    for name in [name for name in os.environ if name.startswith("GIT_") or name == "EMAIL"]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))


@pytest.fixture
def place(tmp_path: Path) -> Repository:
    return Repository.begun(tmp_path / "repo")


def waiting(library: Library) -> git.Uncommitted:
    return git.uncommitted(library.files, library.view())


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def is_clean(place: Repository) -> bool:
    """Whether git has all that the program writes."""
    ours = ("CURRENT.md", "topics", "archive", "evidence", "journal")
    memory = place.memory.relative_to(place.root).as_posix()
    paths = [f":(literal){memory}/{name}" for name in ours]
    return not place.git("status", "--porcelain", "--untracked-files=all", "--", *paths)


# ── settings ────────────────────────────────────────────────────────────────────────────────────


def test_off_nothing_is_run(place: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    library = init(place.memory)
    with monkeypatch.context() as without:
        without.setattr(subprocess, "Popen", None)
        sort(library, "Tea")
        assert open_memory(place.memory, model="offline").status()["git"] is None
    assert place.subjects() == ["Begin"]


# ── what a commit is ────────────────────────────────────────────────────────────────────────────


def test_a_receipt_is_one_commit_of_its_files(place: Repository) -> None:
    receipt = sort(place.keep(), "I drink tea.")
    assert place.subjects() == ["Begin", "record: 1 turn, 1 line", "consolidate: 1 line"]
    assert place.files() == ["memory/CURRENT.md", f"memory/{receipt.id}.md", "memory/topics/home.md"]
    current, evidence = place.files("HEAD~")
    assert (current, evidence.rpartition("/")[0]) == ("memory/CURRENT.md", "memory/evidence")
    assert is_clean(place)
    assert waiting(place.keep()) == git.Uncommitted()
    assert place.git("log", "-1", "--format=%aI %cI %an <%ae>").strip() == (
        "2025-03-03T12:00:00+00:00 2025-03-03T12:00:00+00:00 Mira <mira@example.org>"
    )


def test_a_persons_notes_are_never_committed(place: Repository) -> None:
    library = place.keep()
    (place.memory / "diary.md").write_text("mine\n")
    (place.memory / "topics" / "picture.png").write_bytes(b"\x89PNG")
    (place.memory / "topics" / ".infinimem.new").write_text("half")
    (place.memory / "topics" / "link.md").symlink_to(place.root / "note.md")
    sort(library, "Tea")
    told = "".join(place.git("log", "--format=", "--name-only"))
    assert "diary" not in told
    assert "picture" not in told
    assert ".infinimem" not in told
    assert "link" not in told
    assert "infinimem.toml" not in told


@pytest.mark.parametrize("folder", ["memory", "memory [of] *é:!"])
def test_odd_names_are_taken_literally(tmp_path: Path, folder: str) -> None:
    place = Repository.begun(tmp_path / "a repo", folder)
    library = place.keep()
    (place.memory / "topics" / "sh*.md").write_text("---\nid: topics/sh*\n---\n")
    (place.memory / "topics" / "shelf.md").symlink_to(place.root / "note.md")
    (place.root / "memory of").mkdir()
    (place.root / "memory of" / "x.md").write_text("not ours\n")
    sort(library, "Tea", "zoë's [1]*")
    left = place.git("status", "--porcelain", "--untracked-files=all", "-z").split("\0")[:-1]
    ours = [f"?? {folder}/{name}" for name in (".gitignore", "infinimem.toml", "topics/shelf.md")]
    assert sorted(left) == sorted([*ours, "?? memory of/x.md"])


def test_what_a_person_wrote_into_our_files_goes_along(place: Repository) -> None:
    library = place.keep()
    sort(library, "Tea")
    write_by_hand(library, "Honey in it", "topics/home")
    library.adopt_edits()
    assert place.subjects()[-2:] == ["edit: by hand", "stamp: 1 line"]
    (place.memory / "topics" / "home.md").unlink()
    library.adopt_edits()
    assert place.subjects()[-1] == "stamp: 2 lines"
    assert is_clean(place)


def test_what_is_forgotten_is_not_committed_first(place: Repository) -> None:
    library = place.keep()
    sort(library, "Tea")
    (told,) = library.record([Turn("Xylophone", session="s2", time="2025-03-02")])
    library.apply(Plan(adds=(NewEntry(told.text, (told.seq,)),)))
    forget(library, Wanted(frozenset({told.seq, told.seq + 1})))
    assert place.subjects()[-1] == "forget: 2 lines"
    assert is_clean(place)
    assert "Xylophone" not in place.git("log", "--patch")


# ── a person's work ─────────────────────────────────────────────────────────────────────────────


def disturb(place: Repository) -> None:
    """Work in every state that git knows."""
    for name in ("staged", "changed", "half", "old name", "gone", "removed"):
        (place.root / f"{name}.md").write_text("".join(f"line {n} of {name}\n" for n in range(1, 10)))
    place.git("add", "--all", "--", ":!memory")
    place.git("commit", "--quiet", "--message", "Notes")

    def change(name: str, line: str) -> None:
        note = place.root / f"{name}.md"
        note.write_text(note.read_text().replace(line, line.upper()))

    change("staged", "line 2")
    change("half", "line 2")
    place.git("add", "staged.md", "half.md")
    change("changed", "line 8")
    change("half", "line 8")
    place.git("mv", "old name.md", "new name.md")
    place.git("rm", "--quiet", "removed.md")
    (place.root / "gone.md").unlink()
    (place.root / "untracked.md").write_text("not yet\n")
    (place.root / "new.md").write_text("staged, and\n")
    place.git("add", "new.md")
    (place.root / "new.md").write_text("staged, and more\n")
    (place.root / "meant [to] add.md").write_text("later\n")
    place.git("add", "--intent-to-add", ":(literal)meant [to] add.md")


@pytest.mark.parametrize("on", ["branch", "detached", "subfolder"])
def test_ten_consolidations_leave_a_persons_work_alone(tmp_path: Path, on: str) -> None:
    place = Repository.begun(tmp_path / "repo", "deep/er/memory" if on == "subfolder" else "memory")
    library = place.keep()
    disturb(place)
    if on == "detached":
        place.git("checkout", "--quiet", "--detach")
    before = place.state()
    assert {"M ", " M", "MM", "R ", "D ", " D", "AM", " A", "??"} <= place.codes()
    for number in range(10):
        sort(library, f"Fact number {number} of ten.", f"topic-{number % 3}")
    assert place.state() == before
    assert place.subjects().count("consolidate: 1 line") == 10
    assert is_clean(place)
    if on == "detached":
        assert "consolidate" not in "".join(place.subjects("main"))


def test_the_first_commit_of_a_repository_may_be_ours(tmp_path: Path) -> None:
    place = Repository.begun(tmp_path / "repo", commit=False)
    (place.root / "staged.md").write_text("mine\n")
    place.git("add", "staged.md")
    library, before = place.keep(), place.state()
    sort(library, "Tea")
    assert place.subjects() == ["record: 1 turn, 1 line", "consolidate: 1 line"]
    assert place.state()["notes"] == before["notes"]
    assert place.git("status", "--porcelain", "--", ":!memory") == "A  staged.md\n?? note.md\n"


def test_a_work_tree_of_another_branch(place: Repository) -> None:
    place.git("branch", "other")
    place.git("worktree", "add", "--quiet", "../tree", "other")
    tree = Repository(place.root.parent / "tree")
    place.git("bisect", "start")  # goes on in the first work tree only
    sort(tree.keep(), "Tea")
    assert tree.subjects()[-1] == "consolidate: 1 line"
    assert place.subjects() == ["Begin"]


def test_files_that_a_person_ignores_or_takes_out_stay_out(
    place: Repository, caplog: pytest.LogCaptureFixture
) -> None:
    library = place.keep()
    sort(library, "Tea")
    (place.root / ".gitignore").write_text("evidence/\n")
    place.git("rm", "-r", "--cached", "--quiet", "memory/evidence")
    before = place.git("status", "--porcelain")
    sort(library, "Coffee")
    sort(library, "Milk")
    assert before == place.git("status", "--porcelain")
    assert not any(
        "evidence" in path for commit in ("HEAD", "HEAD~", "HEAD~2") for path in place.files(commit)
    )
    assert place.subjects()[-1] == "consolidate: 1 line"
    assert said(caplog) == []


@pytest.mark.parametrize("ignored", ["journal/\n", "*.md\n", "memory/\n"])
def test_receipts_that_are_ignored_stop_commits_with_one_line(
    place: Repository, ignored: str, caplog: pytest.LogCaptureFixture
) -> None:
    library = place.keep()
    sort(library, "Tea")
    before = place.subjects()
    place.git("rm", "-r", "--cached", "--quiet", "memory")
    place.git("commit", "--quiet", "--message", "Taken out")
    (place.root / ".gitignore").write_text(ignored)
    sort(library, "Coffee")
    sort(library, "Milk")
    assert place.subjects() == [*before, "Taken out"]
    assert waiting(library).why == git.IGNORED
    assert said(caplog) == [f"git = true: {git.IGNORED}; the commit is made with the next receipt"]
    (place.root / ".gitignore").unlink()
    sort(library, "Bread")
    assert "consolidate: 1 line (and 2 earlier)" in place.subjects()
    assert waiting(library).why == ""


# ── it waits ────────────────────────────────────────────────────────────────────────────────────


def conflict(place: Repository) -> None:
    """Two branches that changed the same line, the second checked out."""
    place.git("checkout", "--quiet", "-b", "other")
    (place.root / "note.md").write_text("theirs\n")
    place.git("commit", "--quiet", "--all", "--message", "Theirs")
    place.git("checkout", "--quiet", "main")
    (place.root / "note.md").write_text("ours\n")
    place.git("commit", "--quiet", "--all", "--message", "Ours")


def settle(place: Repository) -> None:
    (place.root / "note.md").write_text("both\n")
    place.git("add", "note.md")


def stuck(*command: str) -> Callable[[Repository], Callable[[], object]]:
    """Begin what ends in a conflict, and return what goes on with it."""

    def begin(place: Repository) -> Callable[[], object]:
        conflict(place)
        if command[0] == "revert":
            (place.root / "note.md").write_text("again\n")
            place.git("commit", "--quiet", "--all", "--message", "Again")
        place.git(*command, fails=True)

        def go_on() -> None:
            settle(place)
            if command[0] == "rebase":  # only where no file that git knows is changed
                place.git("add", "--update")
            place.git(command[0], "--continue")

        return go_on

    return begin


def bisect(place: Repository) -> Callable[[], object]:
    place.git("bisect", "start")
    return lambda: place.git("bisect", "reset")


def locked(place: Repository) -> Callable[[], object]:
    lock = place.root / ".git" / "index.lock"
    lock.touch()
    return lock.unlink


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("begin", "why"),
    [
        (stuck("rebase", "other"), "a rebase is under way"),
        (stuck("merge", "other"), "a merge is under way"),
        (stuck("cherry-pick", "other"), "a cherry-pick is under way"),
        (stuck("revert", "--no-edit", "HEAD~"), "a revert is under way"),
        (bisect, "a bisect is under way"),
        (locked, "another git command runs (or one was killed: then delete index.lock)"),
    ],
)
def test_it_waits_for_a_person_to_finish(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    begin: Callable[[Repository], Callable[[], object]],
    why: str,
) -> None:
    place = Repository.begun(tmp_path / "repo")
    library = place.keep()
    sort(library, "Tea")
    finish = begin(place)
    head, before = place.git("rev-parse", "HEAD"), place.state()
    receipts = [sort(library, "Coffee"), sort(library, "Milk")]
    assert (place.git("rev-parse", "HEAD"), place.state()) == (head, before)
    assert waiting(library) == git.Uncommitted(tuple(receipt.id for receipt in receipts), why)
    assert said(caplog) == [f"git = true: {why}; the commit is made with the next receipt"]
    status = open_memory(place.memory, model="offline").status()
    assert status["git"] == {"waiting": 2, "why": why}
    notes = [finding.what for finding in examine(library) if finding.what.startswith("git = true")]
    assert notes == [f"git = true: 2 receipts not committed: {why}"]

    finish()
    receipts.append(sort(library, "Sugar"))
    assert is_clean(place)
    assert waiting(library) == git.Uncommitted()
    text = place.git("log", "--format=%B")
    assert all(receipt.id in text for receipt in receipts)
    assert "consolidate: 1 line (and 1 earlier)" in place.subjects()
    assert len(said(caplog)) == 1


def test_a_conflict_in_our_own_file_waits(place: Repository, caplog: pytest.LogCaptureFixture) -> None:
    library = place.keep()
    sort(library, "Tea")
    topic = place.memory / "topics" / "home.md"
    place.git("stash", "push", "--quiet", "--include-untracked")
    topic.write_text(topic.read_text().replace("Tea", "Green tea"))
    place.git("commit", "--quiet", "--all", "--message", "By hand")
    place.git("checkout", "--quiet", "-b", "other", "HEAD~")
    topic.write_text(topic.read_text().replace("Tea", "Black tea"))
    place.git("stash", "push", "--quiet")
    place.git("checkout", "--quiet", "main")
    place.git("stash", "pop", fails=True)
    assert "UU memory/topics/home.md" in place.git("status", "--porcelain")
    write_trusted(place.memory, "format = 1\ngit = true\n")
    sort(place.keep(), "Coffee", "drinks")
    why = "topics/home.md has an unresolved conflict"
    assert waiting(place.keep()).why == why
    assert said(caplog) == [f"git = true: {why}; the commit is made with the next receipt"]
    assert "UU memory/topics/home.md" in place.git("status", "--porcelain")


def test_a_crash_before_the_commit_is_made_up_for(place: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    library = place.keep()
    sort(library, "Tea")
    with monkeypatch.context() as broken:

        def die(*_: object, unless_known: bool = False) -> None:
            if unless_known:  # the commit after the receipt
                raise KeyboardInterrupt

        broken.setattr(git, "keep", die)
        with pytest.raises(KeyboardInterrupt):
            sort(library, "Coffee")
    library = place.keep()
    library.record([])  # a write, though of nothing
    lost = waiting(library).receipts
    done = sort(library, "Milk")
    text = place.git("log", "--format=%B")
    assert all(receipt in text for receipt in (*lost, done.id))
    assert is_clean(place)


# ── it asks nobody, runs nothing, breaks nothing ────────────────────────────────────────────────


def test_hooks_are_not_run(place: Repository) -> None:
    hooks = place.root / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in (
        *("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "post-index-change"),
        *("reference-transaction", "fsmonitor", "pre-auto-gc"),
    ):
        hook = hooks / name
        hook.write_text(f"#!/bin/sh\ntouch '{place.root.parent}/ran'\nsleep 30\nexit 1\n")
        hook.chmod(0o755)
    for key, value in (("core.fsmonitor", str(hooks / "fsmonitor")), ("core.hooksPath", str(hooks))):
        place.git("config", key, value)
    sort(place.keep(), "Tea")
    place.git("config", "core.fsmonitor", "false")
    assert not (place.root.parent / "ran").exists()
    assert waiting(place.keep()) == git.Uncommitted()


def test_nothing_is_signed_edited_or_paged(place: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    trap = place.root.parent / "trap"
    trap.write_text(f"#!/bin/sh\ntouch '{place.root.parent}/asked'\nexit 1\n")
    trap.chmod(0o755)
    settings = dict.fromkeys(
        ("gpg.program", "core.editor", "core.pager", "core.askPass", "commit.template"), trap
    )
    settings |= dict.fromkeys(("commit.gpgSign", "commit.verbose", "commit.status", "pager.status"), "true")
    settings |= {"commit.cleanup": "scissors", "core.commentChar": "C", "status.relativePaths": "false"}
    for key, value in settings.items():
        place.git("config", key, value)
    monkeypatch.setenv("GIT_EDITOR", str(trap))
    sort(place.keep(), "Tea")
    assert not (place.root.parent / "asked").exists()
    assert place.subjects()[-1] == "consolidate: 1 line"


def test_a_surrounding_hooks_environment_does_not_leak_in(
    place: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Repository.begun(place.root.parent / "other")
    other.git("add", "--all")
    before = other.git("ls-files", "--stage"), other.subjects()
    for name, value in {
        "GIT_DIR": f"{other.root}/.git",
        "GIT_WORK_TREE": str(other.root),
        "GIT_INDEX_FILE": f"{other.root}/.git/index",
        "GIT_OBJECT_DIRECTORY": f"{other.root}/.git/objects",
        "GIT_PREFIX": "x/",
        "GIT_AUTHOR_DATE": "2001-01-01T00:00:00Z",
        "GIT_LITERAL_PATHSPECS": "0",
        "GIT_GLOB_PATHSPECS": "1",
        "GIT_TRACE": "1",
    }.items():
        monkeypatch.setenv(name, value)
    sort(place.keep(), "Tea")
    assert (other.git("ls-files", "--stage"), other.subjects()) == before
    assert place.git("log", "-1", "--format=%as %s") == "2025-03-03 consolidate: 1 line\n"


def test_somebody_commits_where_nobody_is_configured(
    place: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.git("config", "--remove-section", "user")
    place.git("config", "user.useConfigOnly", "true")
    library = place.keep()
    sort(library, "Tea")
    author = ("log", "-1", "--format=%an <%ae> %cn <%ce>")
    assert place.git(*author) == "infinimem <infinimem@localhost> infinimem <infinimem@localhost>\n"
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "Ann")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "ann@example.org")
    sort(library, "Coffee")
    assert place.git(*author) == "Ann <ann@example.org> Ann <ann@example.org>\n"


def test_no_repository_is_said_once_and_none_is_made(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = Repository(tmp_path / "repo")
    library = place.keep()
    sort(library, "Tea")
    sort(place.keep(), "Coffee")
    line = f"there is no git repository around {place.memory}; to begin one, run: git init"
    assert said(caplog) == [f"git = true: {line}"]
    assert not (place.memory / ".git").exists()
    assert waiting(library) == git.Uncommitted(tuple(one.id for one in library.receipts()), line)
    place.git("init", "--quiet")
    library.record([])
    assert place.subjects() == ["consolidate: 1 line (and 1 earlier)"]
    assert len(said(caplog)) == 1


def test_git_may_be_missing(
    place: Repository, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    library = place.keep()
    with monkeypatch.context() as missing:
        missing.setenv("PATH", str(place.root.parent))
        sort(library, "Tea")
        assert waiting(library).why.startswith("git is not installed, or not on PATH")
        assert said(caplog) == [
            "git = true: git is not installed, or not on PATH; the commit is made with the next receipt"
        ]
        assert [f.level for f in examine(library) if "not installed" in f.what] == ["note"]
    sort(library, "Coffee")
    assert is_clean(place)


def test_a_kill_on_the_way_puts_nothing_into_anothers_commit(
    place: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = place.keep()
    run = subprocess.Popen

    def killed(command: Sequence[str], **options: Any) -> Any:
        if "commit" in command:
            raise KeyboardInterrupt
        return run(command, **options)

    with monkeypatch.context() as dying:
        dying.setattr(subprocess, "Popen", killed)
        with pytest.raises(KeyboardInterrupt):
            sort(library, "Tea")
    place.git("commit", "--quiet", "--allow-empty", "--message", "Mine")
    assert place.files() == []
    sort(place.keep(), "Coffee")
    assert is_clean(place)


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only to root")
def test_a_repository_that_is_read_only(place: Repository) -> None:
    library = place.keep()
    git = place.root / ".git"
    mode = stat.S_IMODE(git.stat().st_mode)
    git.chmod(0o555)
    try:
        sort(library, "Tea")
        assert waiting(library).why
    finally:
        git.chmod(mode)
    sort(library, "Coffee")
    assert is_clean(place)


def is_running(process: int) -> bool:
    """Whether it lives; what was killed and waits to be collected does not."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True).stdout
    return bool(state.strip()) and not state.startswith("Z")


def test_git_that_hangs_is_ended(place: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    library = place.keep()
    (place.root / ".gitattributes").write_text("*.md filter=slow\n")
    pid = place.root.parent / "pid"
    slow = f"echo $$ >> '{pid}'; sleep 60 & wait; cat"
    for name, value in (("COUNT", "1"), ("KEY_0", "filter.slow.clean"), ("VALUE_0", slow)):
        monkeypatch.setenv(f"GIT_CONFIG_{name}", value)
    monkeypatch.setattr(git, "TIMEOUT", 1.5)  # the filter has begun by then
    receipt = sort(library, "Tea")
    assert waiting(library) == git.Uncommitted(
        (receipt.id,), "git took longer than 1.5 s; the commit is made with the next receipt"
    )
    assert not (place.root / ".git" / "index.lock").exists()
    for process in pid.read_text().split():
        end = time.monotonic() + 60
        while is_running(int(process)):
            assert time.monotonic() < end, "the filter still runs"
            time.sleep(0.01)
    monkeypatch.undo()
    sort(place.keep(), "Coffee")
    assert is_clean(place)


def test_two_processes_commit_in_turn(place: Repository) -> None:
    place.keep()
    script = (
        "import sys; sys.path[:0] = [sys.argv[1]]\n"
        "from git_repository import Path, sort; from infinimem.store.library import Library\n"
        "for n in range(4): sort(Library(Path(sys.argv[2])), f'{sys.argv[3]} {n}', sys.argv[3])\n"
    )
    command = [sys.executable, "-c", script, str(Path(__file__).parent), str(place.memory)]
    both = [subprocess.Popen([*command, name]) for name in ("one", "two")]
    assert [process.wait(60) for process in both] == [0, 0]
    assert sum(subject.startswith("consolidate") for subject in place.subjects()) >= 7
    assert is_clean(place)
    place.git("fsck", "--strict")


def test_the_note_may_be_garbled(place: Repository) -> None:
    library = place.keep()
    for garbage in (b"\xff", b"[]", b'{"newest": 1}', b"[" * 100_000):
        (place.memory / git.PATH).write_bytes(garbage)
        sort(library, "Coffee")
        assert is_clean(place)


# ── what it says ────────────────────────────────────────────────────────────────────────────────


def test_a_message_stays_small_and_plain() -> None:
    long = "topics/" + "x" * 80
    rows = tuple(ReceiptRow(n, f"{long}é{n}", f"{long}\x1b[31m\n{n}", "moved") for n in range(400))
    told = Receipt(9, "consolidate", "2025-03-03T12:00:00Z", "infini", "m", Usage(), 0.0, rows, (), ())
    text = git.message([told] * 199, 3, 0)
    assert len(text.encode()) < 128 * 1024  # Linux's bound of one argument
    assert all(c == "\n" or c.isprintable() for c in text)
    assert text.split("\n")[0] == "consolidate: 400 lines (and 198 earlier)"


def test_no_text_of_a_line_is_in_a_message(place: Repository) -> None:
    library = place.keep()
    sort(library, "Xylophones are kept in the attic.")
    write_by_hand(library, "Ytterbium is under the stairs", "topics/home")
    library.adopt_edits()
    topic = place.memory / "topics" / "home.md"
    topic.write_text(topic.read_text().replace("Ytterbium", "Zirconium"))
    library.adopt_edits()
    text = place.git("log", "--format=%B")
    assert text.count("journal/") == 3
    assert not re.search("xylo|ytter|zirco|attic|stairs", text, re.I)
    assert NOON


# ── the page ────────────────────────────────────────────────────────────────────────────────────


def test_the_page_shows_what_the_program_does() -> None:
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, str(ROOT / "benchmarks" / "git_diary.py")]
    env = {**os.environ, "PYTHONPATH": path}
    shown = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
    page = (ROOT / "docs" / "GIT.md").read_text()
    log, _, diff = shown.partition("theirs untouched\n")
    assert log.strip()
    assert log.strip() in page
    assert diff.partition("diff --git a/memory/topics/family")[0].strip() in page


# ── git itself shows a consolidation as moves: lines by --color-moved, units as renames ─────────────


def test_moved_lines_are_moved_in_the_diff(place: Repository) -> None:
    library = place.keep()
    for text in ("I drink oat-milk latte in the morning.", "The bike is in the cellar, its lock is blue."):
        sort(library, text)
        shown = place.git("show", "--color=always", "--color-moved", "--unified=0", "--format=")
        lines = [line for line in shown.splitlines() if "<seq=" in line]
        assert len(lines) == 2
        assert all(re.match(r"\x1b\[1;3[3-6]m[-+]", line) for line in lines), lines


@pytest.mark.usefixtures("updates")
def test_an_archived_unit_is_a_rename(tmp_path: Path) -> None:
    place = Repository.begun(tmp_path / "repo")
    place.memory.mkdir()
    write_trusted(place.memory, 'format = 1\nstrategy = "allmem"\ngit = true\n')
    memory = open_memory(place.memory, model="offline", create=True)
    for day, text in enumerate(
        ("I moved to Porto.", "My favourite tea is Darjeeling.", "I moved to Lisbon."), 1
    ):
        memory.observe([Turn(text, speaker="Ana", session=f"s{day // 3}", time=f"2025-03-0{day}")])
    receipt = memory.consolidate()
    assert receipt is not None
    archived = [name for name, *_ in receipt.files if name.startswith("allmem/archive/")]
    rows = [
        row.split("\t") for row in place.git("diff", "-M", "--name-status", "HEAD~1", "HEAD").splitlines()
    ]
    renames = {(old, new) for kind, old, new in (row for row in rows if row[0].startswith("R"))}
    pairs = {(f"memory/{name.replace('archive', 'units')}.md", f"memory/{name}.md") for name in archived}
    assert archived and renames == pairs


def test_the_recipe_of_a_forget_names_every_file_that_ever_had_the_line(place: Repository) -> None:
    """Without these paths the history has not a word of it, under whatever name a file was."""
    library = place.keep()
    sort(library, "Honeysuckle tea")
    rename(library, "topics/home", "Kitchen")
    sort(library, "Milk", "other")
    seqs = [row.seq for row in library.view().entries("all") if "Honeysuckle" in row.text]
    told = forget(library, Wanted(seqs)).history
    listed = re.search(r"--invert-paths (.*?)`", told)
    paths = shlex.split(listed[1].replace("--path ", "")) if listed else []
    assert {"memory/CURRENT.md", "memory/topics/home.md", "memory/topics/kitchen.md"} <= {*paths}
    assert not {"memory/topics/other.md", "memory/INBOX.md", "note.md"} & {*paths}
    left = [f":(exclude,literal){path}" for path in paths]
    assert place.git("log", "--all", "--format=%s", "-S", "Honeysuckle")
    assert not place.git("log", "--all", "--format=%s", "-S", "Honeysuckle", "--", ".", *left)
