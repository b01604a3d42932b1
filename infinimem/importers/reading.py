"""A file's text and JSON records, read in bounded memory, and which files of an export hold what was said.

Plain, zipped, gzip and xz files are told apart by their first bytes. All text is UTF-8 but that of mails.
JSON is decoded one record at a time: an element of a top-level list, a line of JSONL, or the one object.
"""

from __future__ import annotations

import gzip
import io
import json
import lzma
import os
import re
import stat
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile, ZipFile

from infinimem.errors import ImportFormatError
from infinimem.importers.fields import MARKS
from infinimem.importers.messengers import SLACK_LISTS, is_mail, slack_files
from infinimem.store.folders import is_inside, located

MAX_RECORD = 128 * 2**20
"""Characters of one JSON record (a message, a conversation, a question with its history)."""
MAX_TEXT = 64 * 2**20  # characters of a Markdown or text file
MAX_VALUES = 2**22
"""Values of one record, each of which takes up to a hundred times its characters, and lines of a text."""
_STRING = re.compile(r'"(?:[^"\\]++|\\.?)*+(?:"|\Z)', re.DOTALL)
MAX_FILE = 4 * 2**30  # characters of JSON in a file, after unpacking

STEP = 2**20  # characters that are read at once
HEAD = 4096  # characters at the beginning of a file that its format is told by, before the rest is read
_SPACE = re.compile(r"[ \t\r\n]*")
_ZIP, _ZSTD = b"PK\x03\x04", b"\x28\xb5\x2f\xfd"
_PACKED: Mapping[bytes, Callable[..., Any]] = {b"\x1f\x8b": gzip.open, b"\xfd7zXZ\x00": lzma.open}

ENDINGS = (".json", ".jsonl", ".ndjson", ".md", ".markdown", ".txt", ".eml", ".html", ".mbox")
"""Of files that hold what was said or noted."""
PACKED = (".zip", ".gz", ".xz", ".zst")


@dataclass(frozen=True)
class Source:
    """A text, and how it begins, to tell its format by."""

    name: str
    head: str
    text: IO[str]


@contextmanager
def opened(
    path: Path, skipped: Counter[str] | None = None, folder: Path | None = None
) -> Iterator[Iterator[Source]]:
    """Give a file's text: one source, or of an export (also a folder) one for each file that is read.
    The path may be a link unless it was found below `folder`. ImportFormatError, in the block too."""
    name, skipped = path.name, Counter() if skipped is None else skipped
    with explained(path), ExitStack() as stack:
        if files := slack_export(path):
            yield _below(path, files, skipped)
            return
        raw = stack.enter_context(_regular(path, folder))
        head = raw.read(HEAD)
        raw.seek(0)
        unpack = next((opener for magic, opener in _PACKED.items() if head.startswith(magic)), None)
        if head.startswith(_ZIP):
            yield _parts(stack.enter_context(ZipFile(raw)), name, skipped)
        elif head.startswith(_ZSTD):
            raise ImportFormatError(f"{name} is packed with zstd: unpack it (zstd -d) and name that")
        elif unpack is None and b"\0" in head:
            to_do = "give a chat export, JSON, JSONL, Markdown or .txt file"
            raise ImportFormatError(f"{name} is not UTF-8 text: {to_do}")
        else:
            yield iter([_source(name, unpack(raw) if unpack else raw)])


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Raise ImportFormatError, in one line, for a file that turns out in the block to be unreadable."""
    name = path.name
    try:
        yield
    except UnicodeDecodeError as error:
        raise ImportFormatError(f"{name} is not UTF-8 text: convert it with iconv -t UTF-8") from error
    except (EOFError, BadZipFile, NotImplementedError, RuntimeError, zlib.error, lzma.LZMAError) as error:
        raise ImportFormatError(f"{name} cannot be unpacked ({error}): fetch or pack it again") from error
    except OSError as error:
        raise ImportFormatError(f"cannot read {path}: {error.strerror or error}") from error


def _regular(path: Path, folder: Path | None) -> IO[bytes]:
    """Open a file. A pipe or a device is neither waited for nor read."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    if folder is None:
        descriptor = os.open(path, flags)
    else:
        with located(folder, path.relative_to(folder).as_posix()) as at:
            if (found := at.lstat()) is not None and stat.S_ISLNK(found.st_mode):
                raise ImportFormatError(f"{path.name} is a link: to bring in what it leads to, name that")
            descriptor = os.open(at.name, flags | os.O_NOFOLLOW, dir_fd=at.folder.descriptor)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    what = "a folder: name one file in it" if stat.S_ISDIR(mode) else "a pipe or a device: save it as a file"
    raise ImportFormatError(f"{path} is {what}")


def slack_export(path: Path) -> list[str]:
    """Return the files of the Slack export that a folder is, in the order to read them; else none."""
    if not any(os.access(path / people, os.F_OK) for people in SLACK_LISTS[:2]):
        return []
    files = (file for part in ("*.json", "*/*.json") for file in path.glob(part))
    return slack_files(file.relative_to(path).as_posix() for file in files)


def _below(path: Path, names: list[str], skipped: Counter[str]) -> Iterator[Source]:
    """Yield the files of an export in a folder; what cannot be read is passed over and named."""
    with os.scandir(path) as entries:
        for one in entries:
            if one.is_dir() and not os.access(one.path, os.R_OK | os.X_OK):
                skipped[f"folder that cannot be read: {one.name}"] += 1
    for name in names:
        try:
            raw = _regular(path / name, path)
        except OSError as error:
            skipped[f"file that cannot be read: {name} ({error.strerror})"] += 1
        else:
            with raw:
                yield _source(name, raw)


def _source(name: str, stream: IO[bytes]) -> Source:
    head = stream.read(HEAD).decode("utf-8-sig", "replace")
    stream.seek(0)
    errors = "surrogateescape" if is_mail(head) else "strict"
    return Source(name, head, io.TextIOWrapper(stream, encoding="utf-8-sig", errors=errors, newline=""))


def _parts(archive: ZipFile, name: str, skipped: Counter[str]) -> Iterator[Source]:
    """Yield what was said in a zipped export, one part opened at a time and none unpacked to disk."""
    names = {member for member in archive.namelist() if not member.endswith("/")}
    if outside := next((member for member in sorted(names) if not is_inside(member)), None):
        raise ImportFormatError(
            f"{name} holds a path that leads elsewhere ({outside[:60]!r}): it is no export"
        )
    known = filter(MARKS["read of zip"].fullmatch, sorted(names))
    parts = slack_files(names) or list(known)
    if not parts:
        raise ImportFormatError(f"{name} holds no export that is known: unpack it and name the folder")
    if sum(archive.getinfo(part).file_size for part in parts) > MAX_FILE:
        raise ImportFormatError(f"{name} unpacks to more than {MAX_FILE >> 30} GiB: split it")
    if any(archive.getinfo(part).flag_bits & 1 for part in parts):
        raise ImportFormatError(f"{name} is locked with a password: unpack it and name a file")
    skipped["other files of the zip"] += len(names) - len(parts)
    for part in parts:
        with archive.open(part) as stream:
            yield _source(part, stream)


def stem_of(name: str) -> str:
    """Strip the endings that say what a file is: "Dr. Holm.md" and "Dr. Holm" are "Dr. Holm"."""
    for endings in (PACKED, (*ENDINGS, ".log", ".text", ".org", ".rst")):
        fits = (end for end in endings if name.lower().endswith(end) and name[: -len(end)].strip("."))
        name = name[: len(name) - len(next(fits, ""))]
    return name


def whole_text(source: Source, name: str) -> str:
    """Read a Markdown or text file; ImportFormatError if it is too long or holds NUL."""
    text = source.text.read(MAX_TEXT + 1)
    if len(text) > MAX_TEXT:
        raise ImportFormatError(f"{name} holds more than {MAX_TEXT >> 20} MB of text: split it")
    if text.count("\n") > MAX_VALUES // 4:
        raise ImportFormatError(f"{name} holds more than {MAX_VALUES // 4} lines: split it")
    if "\0" in text:
        raise ImportFormatError(f"{name} holds NUL characters and is no text: import the text of it")
    return text


def lines(source: Source, name: str) -> Iterator[str]:
    """Yield the lines of a text with their ends; ImportFormatError after `MAX_FILE` characters."""
    left = MAX_FILE
    while line := source.text.readline(MAX_TEXT):
        left -= len(line)
        if left < 0:
            raise _too_long(name)
        yield line


def records(source: Source, name: str, lenient: bool = False) -> Iterator[Any]:
    """Yield the JSON values of a source: elements of its top-level list, or values one after the other; if
    lenient, for a damaged line of JSONL its error. ImportFormatError if it is damaged or too long."""
    window = _Window(source, name)
    in_list = window.peek() == "["
    window.at += in_list
    while char := window.peek():
        if in_list and char == "]":
            window.at += 1
            if window.peek():
                raise window.damaged("text after the end of the list")
            return
        if in_list and window.number:
            if char != ",":
                raise window.damaged("no comma after it")
            window.at += 1
        try:
            yield window.value()
        except ImportFormatError as error:
            if in_list or not lenient:
                raise
            yield error
            while (end := window.text.find("\n", window.at)) < 0 and window.grow():
                window.at = 0  # the line goes on
            window.at = end + 1 or len(window.text)
    if in_list:
        raise window.damaged("the file ends inside the list")


class _Window:
    """The part of a source that is being decoded; `at` is where the next value begins. Not by ijson: of
    nested lists it holds the path of each, a gigabyte for 40 kB."""

    def __init__(self, source: Source, name: str) -> None:
        self.text, self.at, self.number = "", 0, 0
        self._rest, self._name, self._left = source.text, name, MAX_FILE
        self._decode = json.JSONDecoder().raw_decode

    def damaged(self, why: str) -> ImportFormatError:
        return ImportFormatError(f"{self._name} is damaged JSON at record {self.number}: {why}")

    def peek(self) -> str:
        """Return the next character that is not white space; "" at the end."""
        while True:
            if space := _SPACE.match(self.text, self.at):
                self.at = space.end()
            if self.at < len(self.text) or not self.grow():
                return self.text[self.at : self.at + 1]

    def value(self) -> Any:
        self.number += 1
        self.peek()
        while True:
            try:
                value, self.at = self._decode(self.text, self.at)
            except json.JSONDecodeError as error:
                line = self.text.find("\n", self.at)
                if (self.at <= line and error.pos <= line) or not self.grow():
                    raise self.damaged(error.msg) from error
                marks = sum(map(self.text.count, ",[{"))  # strings are passed over only where it may be
                if marks > MAX_VALUES < sum(map(_STRING.sub("", self.text).count, ",[{")):
                    many = f"record {self.number} of {self._name} holds over {MAX_VALUES} values: split it"
                    raise ImportFormatError(many) from error
            except (ValueError, RecursionError) as error:  # a number of thousands of digits, deep nesting
                raise self.damaged(str(error)) from error
            else:
                return value

    def grow(self) -> bool:
        """Read on, as much again as is held (so that a long record costs linear time)."""
        self.text, self.at = self.text[self.at :], 0
        if len(self.text) > MAX_RECORD:
            what = f"record {self.number} of {self._name}"
            raise ImportFormatError(f"{what} is damaged or over {MAX_RECORD >> 20} MB: split it")
        more = self._rest.read(max(STEP, len(self.text)))
        self._left -= len(more)
        if self._left < 0:
            raise _too_long(self._name)
        self.text += more
        return bool(more)


def _too_long(name: str) -> ImportFormatError:
    return ImportFormatError(f"{name} holds more than {MAX_FILE >> 30} GiB: split it")
