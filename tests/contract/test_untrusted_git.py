"""`git = true` beside a repository that somebody else made: what of it runs, and where."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from cli_runner import Shell

COMMANDS = (
    *(("add", "I moved to Lisbon.", "--model", "offline"), ("consolidate", "--model", "offline")),
    *(("status",), ("doctor",), ("undo",), ("lint",), ("search", "Lisbon")),
)


def git(folder: Path, *command: str) -> str:
    quiet = {**os.environ, "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org"}
    quiet |= {"GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.org"}
    done = subprocess.run(
        ["git", *command], cwd=folder, env=quiet, capture_output=True, text=True, check=True
    )
    return done.stdout


def subjects(folder: Path) -> str:
    return git(folder, "log", "--format=%s")


def user_wants_git(shell: Shell) -> None:
    """The user's own config.toml: git, for every library of this user."""
    config = shell.home / ".config" / "infinimem" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("git = true\n")


def run_all(shell: Shell) -> None:
    for command in COMMANDS:
        ran = shell(*command)
        assert ran.code == 0, (command, ran.out, ran.err)


PLANTED = {
    "filter.x.clean": "touch {mark}; cat",
    "filter.x.smudge": "touch {mark}; cat",
    "filter.x.process": "touch {mark}",
    "core.fsmonitor": "touch {mark}",
    "core.hooksPath": "{hooks}",
    "core.sshCommand": "touch {mark}",
    "core.pager": "touch {mark}",
    "core.editor": "touch {mark}",
    "core.askPass": "{hooks}/pre-commit",
    "core.gitProxy": "{hooks}/pre-commit",
    "core.alternateRefsCommand": "touch {mark}",
    "pager.status": "touch {mark}",
    "diff.external": "touch {mark}",
    "diff.x.command": "touch {mark}",
    "diff.x.textconv": "touch {mark}",
    "merge.x.driver": "touch {mark}",
    "gpg.program": "{hooks}/pre-commit",
    "credential.helper": "!touch {mark}",
    "alias.status": "!touch {mark}",
    "hook.x.command": "touch {mark}",
}
ALWAYS = {
    "commit.gpgSign": "true",
    "commit.verbose": "true",
    "status.submoduleSummary": "true",
    "hook.x.event": "pre-commit",
}


def plant(shell: Shell, where: Path, keys: dict[str, str], *how: str) -> Path:
    """Have a repository's configuration name programs that leave a mark."""
    mark, hooks = shell.home / "ran", shell.home / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("pre-commit", "post-commit", "post-index-change", "reference-transaction", "commit-msg"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {mark}\n")
        (hooks / name).chmod(0o755)
    for key, value in {**ALWAYS, **keys}.items():
        git(where, "config", *how, key, value.format(mark=mark, hooks=hooks))
    return mark


def repository(shell: Shell) -> Path:
    """A repository whose attributes select every driver named x."""
    folder = shell.library
    git(folder, "init", "-q")
    (folder / ".gitattributes").write_text("* filter=x diff=x merge=x\n")
    return folder


def test_git_of_the_users_config_does_not_reach_a_library_of_somebody_else(shell: Shell) -> None:
    """`git = true` in config.toml holds in libraries that this user made or trusts, in no other."""
    folder = repository(shell)
    (folder / "infinimem.toml").write_text("format = 1\n")
    mark = plant(shell, folder, PLANTED)
    user_wants_git(shell)
    run_all(shell)
    assert not mark.exists() and not list((folder / ".git").glob("index"))
    assert "git does not count" in shell("status").err
    assert shell("config", "--json").json["settings"] != []
    assert shell("trust", "--yes").code == 0
    run_all(shell)
    assert not mark.exists()
    assert "record: " in subjects(folder)  # and now it commits


@pytest.mark.sample(4)
@pytest.mark.parametrize("key", PLANTED)
def test_no_program_of_the_repositorys_own_configuration_runs(shell: Shell, key: str) -> None:
    """In a library of the user's own, too, no program of .git/config runs; and the commits are made."""
    assert shell("init").code == 0
    folder = repository(shell)
    mark = plant(shell, folder, {key: PLANTED[key]})
    user_wants_git(shell)
    run_all(shell)
    assert not mark.exists()
    assert "record: " in subjects(folder)


@pytest.mark.parametrize("way", ["include", "includeIf", "worktree", "equals"])
def test_nor_one_that_it_names_in_a_roundabout_way(shell: Shell, way: str) -> None:
    """An included file, the work tree's own configuration, a name with `=` in it: all the repository's."""
    assert shell("init").code == 0
    folder = repository(shell)
    user_wants_git(shell)
    mark = shell.home / "ran"
    if way == "worktree":
        git(folder, "config", "extensions.worktreeConfig", "true")
        plant(shell, folder, {"filter.x.clean": "touch {mark}; cat"}, "--worktree")
    elif way == "equals":
        (folder / ".gitattributes").write_text("* filter=a=b\n")
        plant(shell, folder, {"filter.a=b.clean": "touch {mark}; cat"})
    else:
        (folder / "evil").write_text(f'[filter "x"]\n\tclean = "touch {mark}; cat"\n')
        key = "include.path" if way == "include" else f"includeIf.gitdir:{folder}/.path"
        git(folder, "config", key, str(folder / "evil"))
    run_all(shell)
    assert not mark.exists()


def test_nor_one_of_a_repository_within(shell: Shell) -> None:
    """git does not look into submodules, whose configuration is yet another's."""
    assert shell("init").code == 0
    folder = repository(shell)
    inner = folder / "topics" / "inner"
    inner.mkdir(parents=True)
    git(inner, "init", "-q")
    (inner / "a.md").write_text("a\n")
    git(inner, "add", "a.md")
    git(inner, "commit", "-qm", "a")
    git(folder, "add", "topics/inner")
    git(folder, "commit", "-qm", "a")
    (inner / ".gitattributes").write_text("* filter=x\n")
    mark = plant(shell, inner, {"filter.x.clean": "touch {mark}; cat", "core.fsmonitor": "touch {mark}"})
    (inner / "a.md").write_text("b\n")
    user_wants_git(shell)
    run_all(shell)
    assert not mark.exists()


def test_a_filter_of_the_users_own_configuration_runs(shell: Shell) -> None:
    """What the user configured for all repositories stays in force, even if .git/config names it again."""
    assert shell("init").code == 0
    folder = repository(shell)
    git(folder, "config", "--global", "filter.x.clean", "sed s/Lisbon/ENCRYPTED/")
    mark = plant(shell, folder, {"filter.x.clean": "touch {mark}; cat"})
    user_wants_git(shell)
    run_all(shell)
    assert not mark.exists()
    assert "ENCRYPTED" in git(folder, "log", "-p", "--no-ext-diff")


def test_what_a_required_filter_should_have_encrypted_is_not_committed(shell: Shell) -> None:
    """With a required filter off git waits, and says why; nothing goes into history in plain text."""
    assert shell("init").code == 0
    folder = repository(shell)
    mark = plant(shell, folder, {"filter.x.clean": "touch {mark}; cat", "filter.x.required": "true"})
    user_wants_git(shell)
    run_all(shell)
    assert not mark.exists()
    notes = " ".join(row["what"] for row in shell("doctor", "--json").json["findings"])
    assert "clean filter 'x' failed" in notes and "filter.x.clean" in notes
    found = subprocess.run(["git", "log"], cwd=folder, capture_output=True, check=False)
    assert found.returncode != 0  # no commit at all
