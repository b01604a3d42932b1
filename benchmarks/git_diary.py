"""What `git log` and `git diff --color-moved` show of a library under git = true.

    python benchmarks/git_diary.py

Builds the sample conversation session by session inside a repository whose owner never commits: something of
theirs is staged, changed, half staged, renamed and untracked all the while. The clock stands, so every run
prints the same; docs/GIT.md quotes it, with "<" and ">" for the lines that git paints as moved.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path

from build_sample import Author, Fact, read_facts

from infinimem import open_memory
from infinimem.cli.demo import CONVERSATION
from infinimem.importers import read_turns

HAND = "by hand"
TYPED = {
    "s03": Fact((HAND,), "Home", "Errands", "", "Buys bread at the mill on Saturdays"),
    "s07": Fact((HAND,), "Home", "Errands", "", "Borrowed a tent, to be given back in May"),
}
"""What the owner writes into CURRENT.md by hand after a session, and where it belongs."""

_MOVED = {"\x1b[1;35m": "<", "\x1b[1;34m": "<", "\x1b[1;36m": ">", "\x1b[1;33m": ">"}
"""Git's colours of moved lines, two for blocks that touch."""


def git(root: Path, *command: str, given: str = "") -> str:
    """Git as on a machine that nobody configured."""
    env = {"PATH": os.environ["PATH"], "HOME": str(root), "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C.UTF-8"}
    env |= {
        f"GIT_{who}_{what}": value
        for who in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "Mira"), ("EMAIL", "mira@example.org"), ("DATE", "2025-01-01T00:00:00Z"))
    }
    return subprocess.run(
        ["git", *command], cwd=root, env=env, input=given, capture_output=True, text=True, check=True
    ).stdout


def begin(root: Path) -> None:
    """A repository with notes, and work on them that is in every state git knows."""
    git(root, "init", "--quiet", "--initial-branch=main")
    for key, value in (("user.name", "Mira"), ("user.email", "mira@example.org")):
        git(root, "config", key, value)
    for name in ("staged", "changed", "half", "old name"):
        (root / f"{name}.md").write_text("".join(f"line {n} of {name}\n" for n in range(1, 10)))
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Begin")
    for name in ("staged", "changed", "half"):
        note = root / f"{name}.md"
        note.write_text(note.read_text().replace("line 2", "Line 2"))
    git(root, "add", "staged.md", "half.md")
    for name in ("changed", "half"):
        note = root / f"{name}.md"
        note.write_text(note.read_text().replace("line 8", "Line 8"))
    git(root, "mv", "old name.md", "new name.md")
    (root / "untracked.md").write_text("nobody's\n")
    (root / "meant [to] add.md").write_text("later\n")
    git(root, "add", "--intent-to-add", "meant [to] add.md")


def theirs(root: Path) -> dict[str, object]:
    """All of a person's files and what the index says of them, byte for byte."""
    notes = {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if _is_theirs(p, root)}
    told = git(root, "ls-files", "--stage", "--debug", "--", ":!memory")
    index = re.sub(r"^  (ctime|mtime|dev|uid).*\n|size: \d+\t", "", told, flags=re.M)
    return {"notes": notes, "index": index, "status": git(root, "status", "--porcelain", "--", ":!memory")}


def _is_theirs(path: Path, root: Path) -> bool:
    return path.is_file() and path.relative_to(root).parts[0] not in (".git", "memory")


def keep(root: Path) -> None:
    """The library's year: each session said, then sorted, each receipt a commit."""
    said = list(read_turns(CONVERSATION).turns)
    facts = read_facts(Path(__file__).with_name("sample_facts.tsv"))
    author = Author([*facts, *TYPED.values()], said)
    now = datetime(2025, 1, 1, tzinfo=UTC)
    open_memory(root / "memory", model="offline", create=True)
    settings = root / "memory" / "infinimem.toml"
    settings.write_text(settings.read_text().replace("# git = false", "git = true"))
    memory = open_memory(root / "memory", model=author.model(), clock=lambda: now, trust=True)
    for session, turns in groupby(said, key=lambda turn: turn.session):
        part = list(turns)
        now = datetime.fromisoformat(part[-1].time or "").replace(tzinfo=UTC) + timedelta(minutes=5)
        memory.observe(part)
        if session in TYPED:
            with (root / "memory" / "CURRENT.md").open("a") as file:
                file.write(f"- {TYPED[session].text}\n")
        memory.consolidate()


def marked(diff: str) -> str:
    """A coloured diff as plain text, moved lines with marks of their own."""
    lines = []
    for line in diff.splitlines():
        mark = next((mark for colour, mark in _MOVED.items() if line.startswith(colour)), "")
        plain = re.sub(r"\x1b\[[0-9;]*m", "", line)
        lines.append(mark + plain[1:] if mark else plain.rstrip())
    return "\n".join(lines) + "\n"


def shown(root: Path, commit: str) -> str:
    """One commit: its message, and its diff but for the receipt."""
    command = ("show", "--color=always", "--color-moved", "--unified=0", commit, "--", ":!memory/journal")
    return marked(git(root, *command))


def main() -> None:
    """Build, compare and print."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        begin(root)
        before = theirs(root)
        keep(root)
        print(git(root, "log", "--oneline"))
        print("theirs untouched" if theirs(root) == before else "THEIRS CHANGED")
        archiving = git(root, "log", "--format=%h", "--grep=-> archive/").split()
        small = min(archiving, key=lambda commit: len(shown(root, commit)))
        print(shown(root, small))


if __name__ == "__main__":
    main()
