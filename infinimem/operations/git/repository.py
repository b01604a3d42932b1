"""Git around a library, run so that it can neither ask, hang nor take in what is not named; and so that of
programs only those run that the user's own configuration names, never the repository's.

Knows git's commands and nothing of receipts. Source: git's own documentation of `--only` and of pathspecs.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

TIMEOUT = 3.0
"""Seconds for one commit, with all that is asked before it. A receipt takes two at most, and others wait for
the library's lock meanwhile (store/files.py)."""

LOCK_WAIT = 0.25
"""Seconds that another git command is given to finish: editors look at a repository all the time."""

IDENTITY = {"user.name": "infinimem", "user.email": "infinimem@localhost"}
"""Who commits where nobody is configured."""

_CONFIG = {
    "commit.gpgSign": "false",  # may ask for a passphrase
    "core.hooksPath": os.devnull,  # `--no-verify` leaves half of them on
    "core.fsmonitor": "false",
    "core.safecrlf": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "i18n.commitEncoding": "UTF-8",
}
_PROGRAM = re.compile(
    r"(?s).*(clean|smudge|process|command|cmd|textconv|driver|program|external|helper|hook)"
)
"""Names of settings that name a program which a commit may run."""
_ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_EDITOR": "false",
    "LC_ALL": "C",
}
_KEPT = (
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


class GitUnusable(Exception):
    """Nothing can be committed now; one line says why."""


class NoRepository(GitUnusable):
    """There is no repository around the folder."""


@dataclass(frozen=True)
class Changed:
    """What differs from HEAD, as paths below the folder, sorted."""

    known: tuple[str, ...] = ()
    """Files of HEAD that are changed or gone."""
    added: tuple[str, ...] = ()
    """Files that the index has and HEAD has not."""
    untracked: tuple[str, ...] = ()
    unmerged: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    """Files that a person ignores or is taking out; ignored folders end in "/"."""

    @property
    def new(self) -> tuple[str, ...]:
        """Files that HEAD does not have."""
        return (*self.added, *self.untracked)

    @property
    def paths(self) -> tuple[str, ...]:
        """All that can be committed."""
        return (*self.known, *self.new)

    def only(self, wanted: Callable[[str], bool]) -> Changed:
        """Those of the paths that are wanted."""
        return Changed(*(tuple(filter(wanted, some)) for some in (self.known, self.added, self.untracked)))


class Repository:
    """The work tree that a folder lies in, at its top or anywhere below.

    Args:
        folder: the library.

    Raises:
        NoRepository: there is none.
        GitUnusable: git is missing, or refuses.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._deadline = time.monotonic() + TIMEOUT
        self._configured: dict[str, str] = {}
        self._off: dict[str, str] = {}
        self._read_configuration()
        told = self._run("rev-parse", "--absolute-git-dir", "--show-prefix").decode(
            "utf-8", "surrogateescape"
        )
        self._git, _, prefix = told.partition("\n")
        self._prefix = prefix.removesuffix("\n")

    def obstacle(self) -> str | None:
        """What a commit has to wait for: the repository is in the middle of something."""
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
        """What is not committed of files and folders below the folder."""
        told = self._run(
            *("status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all"),
            *("--ignored=matching", "--ignore-submodules=all", "--", *paths),
        )
        found: dict[str, set[str]] = {name: set() for name in Changed.__annotations__}
        for item in told.decode("utf-8", "surrogateescape").split("\0")[:-1]:
            code, path = item[:2], item[3:].removeprefix(self._prefix)
            there = os.path.lexists(self.folder / path)
            if code in _UNMERGED:
                found["unmerged"].add(path)
            elif code == "!!" or (code[0] == "D" and there):
                found["left_out"].add(path)
            elif code == "??":
                found["untracked"].add(path)
            else:
                found["added" if "A" in code and there else "known"].add(path)
        found["untracked"] -= found["left_out"]
        return Changed(**{name: tuple(sorted(some)) for name, some in found.items()})

    def commit(self, changed: Changed, message: str, said: datetime, now: datetime) -> None:
        """Commit whole files and nothing else; what a person staged of others stays staged.

        Args:
            changed: what to commit.
            message: the whole message.
            said: the author's date.
            now: the committer's date.

        Raises:
            GitUnusable: it could not be done; no other file's state has changed.
        """
        identity = [part for pair in self._identity().items() for part in ("-c", "=".join(pair))]
        author, committer = said.isoformat(timespec="seconds"), now.isoformat(timespec="seconds")
        untracked = _listed(changed.untracked)
        if untracked:  # `--only` takes what the index names; by intent, so that no one else's commit has it
            self._run("add", "--intent-to-add", *_FROM_STDIN, given=untracked)
        try:
            self._run(
                *(*identity, "commit", "--only", "--quiet", "--no-verify", "--no-status"),
                *("--cleanup=verbatim", "--message", message, *_FROM_STDIN),
                given=_listed(changed.paths),
                env={"GIT_AUTHOR_DATE": author, "GIT_COMMITTER_DATE": committer},
            )
        except GitUnusable:
            if untracked and time.monotonic() < self._deadline:
                with suppress(GitUnusable):
                    self._run("reset", "--quiet", *_FROM_STDIN, given=untracked)
            raise

    def _identity(self) -> dict[str, str]:
        """What of a name and an address is to be given, because nobody configured it."""
        configured = {name for name, value in self._configured.items() if value.strip()}
        if os.environ.get("EMAIL"):
            configured.add("user.email")
        return {name: value for name, value in IDENTITY.items() if name not in configured}

    def _read_configuration(self) -> None:
        """Read what is configured; programs that the repository names are as the user has them, or off.

        A filter that is `required` stays so: git then refuses, rather than commit what was to be encrypted.
        """
        told = self._run("config", "--list", "--show-scope", "--null").decode("utf-8", "surrogateescape")
        users, named, fields = {}, set(), iter(told.split("\0"))
        for scope, row in zip(fields, fields, strict=False):
            name, _, value = row.partition("\n")
            self._configured[name] = value
            if scope not in ("local", "worktree"):
                users[name] = value
            elif _PROGRAM.fullmatch(name):
                named.add(name)
        if wrong := [name for name in named if "=" in name]:  # `-c` would set another
            raise GitUnusable(f".git/config names a program as {wrong[0]!r}; take it out")
        self._off = {name: users.get(name, "") for name in sorted(named)}

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
                _end(process)
                if isinstance(error, subprocess.TimeoutExpired):
                    raise GitUnusable(f"git took longer than {TIMEOUT:g} s") from None
                raise
        if process.returncode:
            lines = err.decode("utf-8", "replace").strip().split("\n")
            told = next((line for line in lines if line.startswith("fatal: ")), lines[0])[:200]
            if "not a git repository" in told:
                raise NoRepository(f"there is no git repository around {self.folder}")
            off = f" (off, as .git/config names it: {min(self._off)})" if self._off else ""
            raise GitUnusable(f"git failed: {told.removeprefix('fatal: ') or command[0]}{off}")
        return out


_FROM_STDIN = ("--pathspec-from-file=-", "--pathspec-file-nul")


def _listed(paths: Sequence[str]) -> bytes:
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End git and what it started; asked politely it takes its index.lock along."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        with suppress(OSError):
            os.killpg(process.pid, how)
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.5)
            return
