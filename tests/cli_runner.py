"""Running the command line in a process of its own world: empty home, no model, no library."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pty
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from click.testing import CliRunner

import infinimem.cli
from infinimem.cli.app import app

FOREIGN = (
    "INFINIMEM_LIBRARY",
    "INFINIMEM_MODEL",
    "INFINIMEM_EMBEDDER",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
)


@dataclass(frozen=True)
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.out.count("\n") == 1, self.out
        return json.loads(self.out)

    def failed(self, code: int, words: str) -> None:
        """One line of error with these words, nothing on stdout, this exit code."""
        assert (self.code, self.out) == (code, ""), (self.code, self.out, self.err)
        assert words in self.err
        assert self.err.startswith("error: ")
        assert self.err.count("\n") == 1, self.err


class Shell:
    """Runs commands; `library` is the folder that they work in if nothing else is said."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in FOREIGN:
            monkeypatch.delenv(name, raising=False)
        self.home, self.library = home / "home", home / "library"
        self.home.mkdir()
        self.library.mkdir()
        monkeypatch.setenv("HOME", str(self.home))
        monkeypatch.chdir(self.library)

    def __call__(self, *args: str, input: str | bytes | BinaryIO | None = None) -> Ran:  # noqa: A002
        result = CliRunner().invoke(app, args, input=input, prog_name="infinimem")
        return Ran(result.exit_code, result.stdout, result.stderr)

    def tree(self) -> dict[str, str]:
        """Hash of every file of the library but the lock, which names its last holder."""
        files = sorted(path for path in self.library.rglob("*") if path.is_file() and path.name != "lock")
        return {
            str(path.relative_to(self.library)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in files
        }


def arrived(args: tuple[str, ...], ends: tuple[int, int], given: str = "") -> tuple[str, int]:
    """Run the program, in this process, with a real pipe or terminal for stdout and stderr.

    Args:
        args: of the command line.
        ends: descriptors of the pipe's or terminal's ends, from which is read and to which is written;
            they are closed.
        given: what is on stdin, which is no terminal.

    Returns:
        What arrived, and the exit code.
    """
    out, in_ = ends
    found = bytearray()
    listener = threading.Thread(target=lambda: found.extend(_to_its_end(out)))
    listener.start()
    with pytest.MonkeyPatch.context() as patch, os.fdopen(in_, "w", encoding="utf-8") as stream:
        patch.setattr("sys.argv", ["infinimem", *args])
        patch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
        patch.setattr("sys.stdout", stream)
        patch.setattr("sys.stderr", stream)
        with pytest.raises(SystemExit) as ended:
            infinimem.cli.main()
    listener.join()
    os.close(out)
    code = ended.value.code
    return found.decode(), code if isinstance(code, int) else 0


def at_a_terminal(*args: str, **env: str) -> str:
    """Return all that somebody sees in a terminal of 80 columns."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("NO_COLOR", raising=False)
        for name, value in {"TERM": "xterm-256color", "COLUMNS": "80", **env}.items():
            patch.setenv(name, value)
        return arrived(args, pty.openpty())[0].replace("\r\n", "\n")


def _to_its_end(descriptor: int) -> Iterator[int]:
    while True:
        try:
            part = os.read(descriptor, 1 << 16)
        except OSError:  # a terminal whose other end is closed
            return
        if not part:
            return
        yield from part
