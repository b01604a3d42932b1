"""A git repository with a library in it, whatever the machine's own configuration says."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from trusting import write_trusted

from infinimem.model import CURRENT, Move, NewEntry, Plan, Receipt, Turn
from infinimem.store.library import Library, init
from infinimem.store.view import Applied

NOON = datetime(2025, 3, 3, 12, tzinfo=UTC)


def run_git(root: Path, *command: str, fails: bool = False, env: Mapping[str, str]) -> str:
    """What git prints; `env` beside an environment that holds nothing of the machine's own."""
    done = subprocess.run(
        ["git", *command],
        cwd=root,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(root.parent),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            **env,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stdout


class Repository:
    """A work tree; `memory` is the library's folder in it.

    Args:
        root: where the work tree is.
        memory: the library, below it.
    """

    def __init__(self, root: Path, memory: str = "memory") -> None:
        self.root = root
        self.memory = root / memory

    @classmethod
    def begun(cls, root: Path, memory: str = "memory", *, commit: bool = True) -> Repository:
        """A new one, with a person's note in it."""
        root.mkdir()
        found = cls(root, memory)
        found.git("init", "--quiet", "--initial-branch=main")
        for key, value in (("user.name", "Mira"), ("user.email", "mira@example.org")):
            found.git("config", key, value)
        (root / "note.md").write_text("".join(f"line {n}\n" for n in range(1, 10)))
        if commit:
            found.save("Begin")
        return found

    def git(self, *command: str, fails: bool = False, env: Mapping[str, str] | None = None) -> str:
        return run_git(self.root, *command, fails=fails, env={"GIT_EDITOR": "true", **(env or {})})

    def save(self, message: str) -> None:
        self.git("add", "--", ".", ":(exclude,literal)memory")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)

    def keep(self) -> Library:
        """The library, made and opened, with `git = true`."""
        if not (self.memory / "infinimem.toml").exists():
            write_trusted(self.memory, "format = 1\ngit = true\n")
            init(self.memory)
        library = Library(self.memory)
        library.clock = lambda: NOON
        return library

    # ── what git has ────────────────────────────────────────────────────────────────────────────

    def subjects(self, branch: str = "HEAD") -> list[str]:
        """Of all commits, oldest first."""
        return self.git("log", "--reverse", "--format=%s", branch).splitlines()

    def files(self, commit: str = "HEAD") -> list[str]:
        """What a commit changed."""
        told = self.git("show", "--format=", "--name-only", "--no-renames", "-z", commit)
        return sorted(told.split("\0")[:-1])

    def state(self) -> dict[str, object]:
        """A person's files and what the index says of them, byte for byte: all but the library."""
        own = self.memory.relative_to(self.root).as_posix()
        notes = {
            path.relative_to(self.root).as_posix(): path.read_bytes()
            for path in self.root.rglob("*")
            if path.is_file()
            and ".git" not in path.relative_to(self.root).parts
            and self.memory not in path.parents
        }
        told = self.git("ls-files", "--stage", "--debug", "--", f":(exclude,literal){own}")
        index = re.sub(r"^  (ctime|mtime|dev|uid).*\n|size: \d+\t", "", told, flags=re.M)
        return {"notes": notes, "index": index, "staged": self._diff("--cached"), "changed": self._diff()}

    def codes(self) -> set[str]:
        """In which states files are, as `git status` puts it."""
        return {row[:2] for row in self.git("status", "--porcelain").splitlines()}

    def _diff(self, *how: str) -> str:
        own = self.memory.relative_to(self.root).as_posix()
        return self.git("diff", "--no-color", *how, "--", f":(exclude,literal){own}")


def sort(library: Library, text: str, topic: str = "home") -> Receipt:
    """Say something, and consolidate it into a topic."""
    (told,) = library.record([Turn(text, session="s1", time="2025-03-01")])
    noted = library.apply(Plan(adds=(NewEntry(told.text, (told.seq,)),)))
    assert isinstance(noted, Applied)
    seqs = [place.seq for place in noted.view.buffer.entries]
    done = library.apply(
        Plan("consolidate", moves=tuple(Move(seq, f"topics/{topic}", "Things") for seq in seqs))
    )
    assert isinstance(done, Applied)
    assert done.receipt is not None
    return done.receipt


def write_by_hand(library: Library, text: str, doc_id: str = CURRENT) -> None:
    with (library.root / f"{doc_id}.md").open("a") as file:
        file.write(f"- {text}\n")
