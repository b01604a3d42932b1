"""`git = true`: each receipt is one commit of the program's own files. It never fails a write.

    .infinimem/git      the newest receipt that git has, and the last reason for waiting that was logged

Called under the library's lock, so that a commit holds a consistent state and two processes never commit at
once. Git itself is asked what it has; the note only saves asking. A crash before the commit loses nothing:
the next receipt's commit includes both. A message never contains the text of a line.

Git is run so that it can neither ask, hang nor take in what is not named; of programs only those run that the
user's own configuration names, never the repository's. Source: git's documentation of `--only` and pathspecs.
"""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from infinimem.errors import LibraryError
from infinimem.log import log
from infinimem.markdown.signature import parse_entry
from infinimem.model import Entry, Receipt
from infinimem.spec import folders
from infinimem.store.commit import LATEST
from infinimem.store.files import Files
from infinimem.store.library import Library
from infinimem.store.lines import block_of
from infinimem.store.receipts import parse_receipt, receipt_ids
from infinimem.store.spec import EVIDENCE, JOURNAL, MEMORIES
from infinimem.store.view import View

PATH = ".infinimem/git"
LENGTH = 30_000
"""Characters of a message, which ends there: it is one argument of a command."""
IGNORED = ".gitignore leaves out journal/, and commits are made of receipts; take it out of there"

TIMEOUT = 3.0
"""Seconds for one commit, two at most a receipt, while others wait for the lock (store/files.py)."""
LOCK_WAIT = 0.25
"""Seconds that another git command is given to finish: editors look at a repository all the time."""

IDENTITY = {"user.name": "infinimem", "user.email": "infinimem@localhost"}
"""Who commits where nobody is configured."""
_CONFIG = {
    "commit.gpgSign": "false",  # may ask for a passphrase
    "core.hooksPath": os.devnull,  # `--no-verify` leaves half of them on
    "core.fsmonitor": "false",
    "core.safecrlf": "false",
    "merge.conflictStyle": "diff3",
    "merge.renames": "false",  # lines of a topic that is gone would come into a similar archive
    "gc.auto": "0",
    "maintenance.auto": "false",
    "i18n.commitEncoding": "UTF-8",
}
_PROGRAM = re.compile(
    r"(?s).*(clean|smudge|process|command|cmd|textconv|driver|program|external|helper|hook|proxy|askpass)"
)
"""Names of settings that name a program which git may run for us."""
_OFF = {"core.sshcommand": "ssh"}
"""What takes the place of one where nothing would be a fault."""
MARKS = "git merge-file --quiet --diff3 %A %O %B"
"""What takes that of merge drivers, ours too: what is left for us is merged faster in one process."""
_NETWORK = {"GIT_ALLOW_PROTOCOL": "file:http:https:ssh"}
"""Ways to another repository; a repository's own configuration may name others, which are programs."""
OURS, GONE = "merge.infinimem.driver", "(gone)"
_ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_ASKPASS": "",
    "GIT_EDITOR": "false",
    "LC_ALL": "C",
}
_KEPT = (
    "GIT_SSH",
    *("GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"),
    *("GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_"),
    *("GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM"),
    *("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"),
)
"""Of git's environment what a person sets; a hook's GIT_DIR or GIT_INDEX_FILE must not lead elsewhere."""
_UNDER_WAY = {
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "sequencer": "a cherry-pick",
    "BISECT_LOG": "a bisect",
}
_UNMERGED = frozenset({"DD", "AU", "UD", "UA", "DU", "AA", "UU"})
_FROM_STDIN = ("--pathspec-from-file=-", "--pathspec-file-nul")


@dataclass(frozen=True)
class Uncommitted:
    """Receipts that no commit has, oldest first, and why: "" where nothing is in the way."""

    receipts: tuple[str, ...] = ()
    why: str = ""


def keep(library: Library, unless_known: bool = False) -> None:
    """Commit what no commit has, under the lock; `unless_known` if there is a receipt that git is not known
    to have. A problem with git is logged once, and stops nothing."""
    files, note, known = library.files, _read_note(library.files), None
    try:
        view = library.view()
        newest = receipt_ids(view)[-1:]
        if unless_known and note.get("newest", []) == newest:
            return
        commit(files, view, library.clock())
        reason, known = "", newest
    except (GitUnusable, LibraryError, OSError) as error:
        reason = advice(error)
    if reason and reason != note.get("said"):
        log.warning("git = true: %s", reason)
    with suppress(LibraryError):
        files.stage(f"{PATH}.new", json.dumps({"newest": known, "said": reason}).encode(), durable=False)
        files.rename(f"{PATH}.new", PATH)


def commit(files: Files, view: View, now: datetime) -> None:
    repository = Repository(files.root)
    if obstacle := repository.obstacle():
        raise GitUnusable(obstacle)
    changed = repository.changed(_ours())
    if fault := _fault(changed, view):
        raise GitUnusable(fault)
    kinds = (changed.paths, changed.new, changed.untracked)
    ours = Changed(*(tuple(path for path in some if _is_ours(path, files)) for some in kinds))
    if ours.paths:
        waiting = _new_receipts(changed, view)
        receipts = [parse_receipt(view.document(doc_id)) for doc_id in waiting]
        said = now
        with suppress(ValueError, IndexError):
            said = datetime.strptime(receipts[-1].time, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
        repository.commit(ours, message(receipts, *_since(view, waiting, ours.paths)), said, now)


def uncommitted(files: Files, view: View) -> Uncommitted:
    try:
        repository = Repository(files.root)
        changed = repository.changed(_ours())
        receipts = tuple(_new_receipts(changed, view))
        why = (repository.obstacle() or str(_read_note(files).get("said", ""))) if receipts else ""
        return Uncommitted(receipts, _fault(changed, view) or why)
    except (GitUnusable, OSError) as error:
        return Uncommitted(tuple(receipt_ids(view) * isinstance(error, NoRepository)), advice(error))


def _fault(changed: Changed, view: View) -> str:
    if changed.unmerged:
        return f"{changed.unmerged[0]} has an unresolved conflict"
    newest = [f"{doc_id}.md" for doc_id in receipt_ids(view)[-1:]]
    return IGNORED if newest and {"", JOURNAL, *newest}.intersection(changed.left_out) else ""


def advice(error: Exception) -> str:
    if isinstance(error, NoRepository):
        return f"{error}; to begin one, run: git init"
    return f"{error}; the commit is made with the next receipt"


def _ours() -> tuple[str, ...]:
    return tuple(one.removesuffix("/") for one in (*folders().owned, MEMORIES))


def _is_ours(path: str, files: Files) -> bool:
    hidden = any(part.startswith(".") for part in path.split("/"))
    plain = path.endswith(".md") and path.isprintable() and not hidden
    return plain and (files.is_plain(path) or not files.exists(path))


def _new_receipts(changed: Changed, view: View) -> list[str]:
    new = set(changed.new)
    return [doc_id for doc_id in receipt_ids(view) if f"{doc_id}.md" in new]


def _since(view: View, waiting: Collection[str], paths: Collection[str]) -> tuple[int, int]:
    """Count turns and lines in these files that came after the newest receipt that does not wait."""
    done = [doc_id for doc_id in receipt_ids(view) if doc_id not in waiting]
    highs = sorted(parse_receipt(one).high for one in view.each(done[-LATEST:]))
    known = {block_of(high): high for high in highs}
    documents = [view.document(doc_id) for path in paths if (doc_id := path.removesuffix(".md")) in view]
    places = (place for document in documents for place in document.entries)
    came = [place for place in places if place.seq > known.get(block_of(place.seq), 0)]
    turns = sum(place.doc_id.startswith(EVIDENCE) for place in came)
    return turns, sum(bool(place.entry.origin) for place in came)


def _read_note(files: Files) -> dict[str, object]:
    try:
        note = json.loads(files.read(PATH) or b"{}")
    except (ValueError, RecursionError, LibraryError):
        return {}
    return note if isinstance(note, dict) else {}


def message(receipts: Sequence[Receipt], turns: int, lines: int) -> str:
    """Write a subject, and a paragraph for each receipt; `turns` and `lines` came since the last commit."""
    said = ", ".join([f"{n} {what}{'s' * (n != 1)}" for n, what in ((turns, "turn"), (lines, "line")) if n])
    if not receipts:
        return f"record: {said}\n" if said else "edit: by hand\n"
    *earlier, last = receipts
    more = f" (and {len(earlier)} earlier)" if earlier else ""
    parts = [f"{_subject(last)}{more}"]
    for one in receipts:
        by = f", {one.strategy}" if one.strategy not in ("", "people") else ""
        model = f", {one.model[:60]}" if one.model not in ("", "none") else ""
        ways = sorted(Counter((row.was, row.now) for row in one.rows if row.was != row.now).items())
        listed = [f"  {was} -> {now}: {count}" for (was, now), count in ways]
        listed = listed or [f"  {name}" for name, *_ in one.files]
        parts.append("\n".join([f"{one.id}: {_subject(one)}{by}{model}", *listed]))
    text = "\n\n".join([*parts, *([f"record: {said}"] if said else [])])
    # A receipt is a file, and may say anything.
    return "".join(c if c == "\n" or c.isprintable() else " " for c in text)[:LENGTH] + "\n"


def _subject(receipt: Receipt) -> str:
    what, number = ("line", len(receipt.rows)) if receipt.rows else ("file", len(receipt.files))
    return f"{receipt.op[:30]}: {number} {what}{'s' * (number != 1)}"


class GitUnusable(Exception):
    """Nothing can be committed now; one line says why."""


class NoRepository(GitUnusable):
    """There is no repository around the folder."""


class Versions(NamedTuple):
    """A file that git stopped at: base, b"" where there is none, and both sides."""

    path: str
    base: bytes
    ours: bytes
    theirs: bytes


@dataclass(frozen=True)
class Changed:
    """What differs from HEAD, as paths below the folder, sorted."""

    paths: tuple[str, ...] = ()
    """All that can be committed."""
    new: tuple[str, ...] = ()
    """Of it the files that HEAD does not have, and of these those that the index has not either."""
    untracked: tuple[str, ...] = ()
    unmerged: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    """Files that a person ignores or is taking out; ignored folders end in "/"."""


class Repository:
    """The work tree around a folder; NoRepository if there is none, GitUnusable if git cannot be used."""

    def __init__(self, folder: Path, timeout: float | None = None) -> None:
        self.folder = folder
        self._timeout = timeout or TIMEOUT
        self._deadline = time.monotonic() + self._timeout
        self._configured: dict[str, str] = {}
        self._off: dict[str, str] = {}
        self._read_configuration()
        places = self._run("rev-parse", "--absolute-git-dir", "--show-prefix")
        self._git, _, prefix = places.decode("utf-8", "surrogateescape").partition("\n")
        self._prefix = prefix.removesuffix("\n")

    def obstacle(self) -> str | None:
        """Return what a commit has to wait for: the repository is in the middle of something."""
        for name, what in _UNDER_WAY.items():
            if os.path.lexists(f"{self._git}/{name}"):
                return f"{what} is under way"
        until = min(self._deadline, time.monotonic() + LOCK_WAIT)
        while os.path.lexists(f"{self._git}/index.lock"):
            if time.monotonic() > until:
                return "another git command runs (or one was killed: then delete index.lock)"
            time.sleep(0.02)
        return None

    def changed(self, paths: Sequence[str]) -> Changed:
        status = self._run(
            *("status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all"),
            *("--ignored=matching", "--ignore-submodules=all", "--", *paths),
        )
        paths_of: dict[str, set[str]] = {name: set() for name in Changed.__annotations__}
        for item in status.decode("utf-8", "surrogateescape").split("\0")[:-1]:
            code, path = item[:2], item[3:].removeprefix(self._prefix)
            there = os.path.lexists(self.folder / path)
            if code in _UNMERGED:
                paths_of["unmerged"].add(path)
            elif code == "!!" or (code[0] == "D" and there):
                paths_of["left_out"].add(path)
            elif code == "??":
                paths_of["untracked"].add(path)
            else:
                paths_of["new" if "A" in code and there else "paths"].add(path)
        paths_of["untracked"] -= paths_of["left_out"]
        paths_of["new"] |= paths_of["untracked"]
        paths_of["paths"] |= paths_of["new"]
        return Changed(**{name: tuple(sorted(some)) for name, some in paths_of.items()})

    def changed_by(self, pattern: str) -> set[str]:
        """Return files below the folder, from the top of the work tree, in which a commit wrote or took out a
        line that matches (POSIX, extended)."""
        seen = ("log", "--all", "-m", "--no-renames", "--no-textconv", "--no-ext-diff", "--format=")
        paths = self._run(*seen, "--name-only", "-z", "-G", pattern, "--", ".")
        return {*paths.decode("utf-8", "surrogateescape").split("\0")} - {""}

    def commit(self, changed: Changed, message: str, said: datetime, now: datetime) -> None:
        """Commit whole files and nothing else, dated `said` by the author and `now` by the committer. What a
        person staged of others stays staged, also where it cannot be done (GitUnusable)."""
        author, committer = said.isoformat(timespec="seconds"), now.isoformat(timespec="seconds")
        untracked, paths = (
            b"".join(os.fsencode(path) + b"\0" for path in some)
            for some in (changed.untracked, changed.paths)
        )
        if untracked:  # `--only` takes what the index names; by intent, so that no one else's commit has it
            self._run("add", "--intent-to-add", *_FROM_STDIN, given=untracked)
        try:
            self._run(
                *(*self._identity(), "commit", "--only", "--quiet", "--no-verify", "--no-status"),
                *("--cleanup=verbatim", "--message", message, *_FROM_STDIN),
                given=paths,
                env={"GIT_AUTHOR_DATE": author, "GIT_COMMITTER_DATE": committer},
            )
        except GitUnusable:
            if untracked and time.monotonic() < self._deadline:
                with suppress(GitUnusable):
                    self._run("reset", "--quiet", *_FROM_STDIN, given=untracked)
            raise

    def _identity(self) -> list[str]:
        configured = {name for name, value in self._configured.items() if value.strip()}
        if os.environ.get("EMAIL"):
            configured.add("user.email")
        missing = [pair for pair in IDENTITY.items() if pair[0] not in configured]
        return [part for pair in missing for part in ("-c", "=".join(pair))]

    def upstream(self, remote: str) -> tuple[str, str]:
        """Return the remote, and the branch of the same name there as is checked out here."""
        branch = self.said("symbolic-ref", "--short", "HEAD")
        remote = remote or self._configured.get(f"branch.{branch}.remote") or "origin"
        known = any(name.startswith(f"remote.{remote}.") for name in self._configured)
        if remote.startswith("-") or not (known or os.path.lexists(remote) or ":" in remote):
            raise GitUnusable(f"there is no remote {remote!r}; run: git remote add {remote} URL")
        return remote, branch

    def fetch(self, remote: str, branch: str) -> str:
        """Return the commit of a branch elsewhere, once it is here too; "" if there is no such branch."""
        ref, way = f"refs/heads/{branch}", "--upload-pack=git-upload-pack"
        if not self._run("ls-remote", way, "--", remote, ref, env=_NETWORK):
            return ""
        quiet = ("--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head")
        self._run("fetch", *quiet, way, "--", remote, f"+{ref}:refs/infinimem/theirs", env=_NETWORK)
        return self.said("rev-parse", "refs/infinimem/theirs")

    def push(self, remote: str, branch: str) -> None:
        quiet = ("--quiet", "--no-verify", "--recurse-submodules=no", "--receive-pack=git-receive-pack")
        self._run("push", *quiet, "--", remote, f"HEAD:refs/heads/{branch}", env=_NETWORK)

    def written(self, *versions: str) -> dict[int, str]:
        """Return what one version has and an earlier one has not, or says otherwise, or has no more, by seq;
        of a turn and a fact that was drawn from it the fact."""
        lines = [path for path in _ours() if f"{path}/" != JOURNAL]
        plain = ("--unified=0", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames")
        diff = self._run("diff", *plain, *versions, "--", *lines).decode("utf-8", "replace")
        sides: dict[str, dict[int, Entry]] = {"-": {}, "+": {}}
        for line in diff.split("\n"):
            if line[1:].startswith("- <") and (entry := parse_entry(line[1:])):
                sides.get(line[0], {})[entry.seq] = entry
        had = {(seq, entry.text) for seq, entry in sides["-"].items()}
        had.update((seq, "") for entry in sides["+"].values() for seq in entry.origin)
        new = {seq: entry.text for seq, entry in sides["+"].items() if (seq, "") not in had}
        gone = {seq: f"{GONE} {one.text}" for seq, one in sides["-"].items() if seq not in sides["+"]}
        return {seq: text for seq, text in sorted((gone | new).items()) if (seq, text) not in had}

    def set(self, name: str, value: str) -> None:
        """Write a setting into this clone's configuration."""
        self._run("config", name, value)

    def merge(self, commit: str) -> None:
        """Merge a commit; where git cannot, both sides are left in the files."""
        top = Path(os.fsdecode(self._run("rev-parse", "--show-toplevel").removesuffix(b"\n")))
        if Repository(top)._git != self._git:
            raise GitUnusable(f"core.worktree leads git to {top}; take it out of .git/config")
        try:
            self._run(*self._identity(), "merge", "--quiet", "--no-edit", "--no-verify", "--ff", commit)
        except GitUnusable:
            if not self.conflicting():
                raise

    def base(self, commit: str) -> str:
        """Return the last commit that is behind HEAD and another one."""
        try:
            return self.said("merge-base", "HEAD", commit)
        except GitUnusable as error:
            if "merge-base" not in str(error):  # it took too long, say
                raise
            raise GitUnusable(
                "the other side is a memory of its own, begun apart from this one, and the two are not"
                " merged; clone that one into another folder"
            ) from None

    def versions(self, ours: tuple[str, ...]) -> Iterator[Versions]:
        """Give files of the folder that wait to be merged, but for those that one side deleted."""
        waiting = (path for path in self.conflicting() if path.startswith(self._prefix))
        paths = [path for path in waiting if path.removeprefix(self._prefix).startswith(ours)]
        asked = "".join(f":{stage}:{path}\n" for path in paths for stage in (1, 2, 3))
        out = io.BytesIO(self._run("cat-file", "--batch", given=os.fsencode(asked)) if paths else b"")
        for path in paths:
            sides: list[bytes | None] = []
            for _ in range(3):
                size = out.readline().split()[-1]
                sides.append(out.read(int(size) + 1)[:-1] if size.isdigit() else None)
            base, mine, yours = sides
            if mine is not None and yours is not None:
                yield Versions(path.removeprefix(self._prefix), base or b"", mine, yours)

    def end_merge(self, ours: tuple[str, ...], but: Collection[str]) -> tuple[str, ...]:
        """Take in files of ours that wait to be merged, but those, and commit the merge, if one is under way;
        return files for which it has to wait."""
        if not os.path.lexists(f"{self._git}/MERGE_HEAD"):
            return ()
        waiting = (path for path in self.conflicting() if path.startswith(self._prefix))
        names = [path.removeprefix(self._prefix) for path in waiting]
        mended = b"\0".join(os.fsencode(name) for name in names if name.startswith(ours) and name not in but)
        if mended:
            self._run("add", "--all", *_FROM_STDIN, given=mended)
        if not (left := self.conflicting()):
            self._run(*self._identity(), "commit", "--quiet", "--no-verify", "--no-edit", "--no-status")
        return left

    def conflicting(self) -> tuple[str, ...]:
        """Return all files of the repository that wait to be merged."""
        listed = self._run("diff", "--name-only", "--diff-filter=U", "-z").decode("utf-8", "surrogateescape")
        return tuple(sorted(listed.split("\0")[:-1]))

    def said(self, *command: str) -> str:
        return self._run(*command).decode("utf-8", "replace").strip()

    def _read_configuration(self) -> None:
        """Set programs that the repository names as the user has them, or off. A filter that is `required`
        stays so: git then refuses, rather than commit what was to be encrypted."""
        listed = self._run("config", "--list", "--show-scope", "--null").decode("utf-8", "surrogateescape")
        users, named, fields = {}, set(), iter(listed.split("\0"))
        for scope, row in zip(fields, fields, strict=False):
            name, _, value = row.partition("\n")
            self._configured[name] = value
            if scope not in ("local", "worktree"):
                users[name] = value
            elif _PROGRAM.fullmatch(name):
                named.add(name)
        if wrong := [name for name in named if "=" in name]:  # `-c` would set another
            raise GitUnusable(f".git/config names a program as {wrong[0]!r}; take it out")
        drivers = {name for name in (*named, OURS) if re.fullmatch(r"(?s)merge\..*\.driver", name)}
        replaced = dict.fromkeys(drivers, MARKS) | _OFF
        self._off = {name: users.get(name, replaced.get(name, "")) for name in sorted(named | drivers)}

    def _run(self, *command: str, given: bytes = b"", env: Mapping[str, str] | None = None) -> bytes:
        configured = (self._off | _CONFIG).items()
        options = [part for name, value in configured for part in ("-c", f"{name}={value}")]
        own = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("GIT_") or name.startswith(_KEPT)
        }
        try:
            process = subprocess.Popen(
                ["git", "--no-pager", *options, *command],
                cwd=self.folder,
                env={**own, **_ENVIRONMENT, **(env or {})},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,  # so that what it started, a filter say, ends with it
            )
        except FileNotFoundError:
            raise GitUnusable("git is not installed, or not on PATH") from None
        except OSError as error:
            raise GitUnusable(f"git cannot be run: {error.strerror}") from error
        with process:
            try:
                out, err = process.communicate(given, max(0.1, self._deadline - time.monotonic()))
            except BaseException as error:
                for how in (signal.SIGTERM, signal.SIGKILL):  # asked politely git takes its index.lock along
                    with suppress(OSError):
                        os.killpg(process.pid, how)
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(0.5)
                        break
                if isinstance(error, subprocess.TimeoutExpired):
                    raise GitUnusable(f"git took longer than {self._timeout:g} s") from None
                raise
        if process.returncode:
            lines = err.decode("utf-8", "replace").strip().split("\n")
            fatal = next((line for line in lines if line.startswith("fatal: ")), lines[0])[:200]
            fatal += "".join(line.replace("\t", " ") for line in lines[:6] if line.startswith("\t"))  # files
            if "not a git repository" in fatal:
                raise NoRepository(f"there is no git repository around {self.folder}")
            off = next((f" (off, as .git/config names it: {name})" for name in self._off if name != OURS), "")
            raise GitUnusable(f"git failed: {fatal.removeprefix('fatal: ') or command[0]}{off}")
        return out
