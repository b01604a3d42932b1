"""A tree of text files below `/memories`, for a model: six commands over the library's folder memories/.

    /memories/notes.md        memories/notes.md
    /memories/plan.txt        memories/plan.txt.md       every document of a library is Markdown
    /memories/todo            memories/todo..md          a name without an extension
    /memories/next.js.md      memories/next.js.md.md     for `next.js.md` is the file of `next.js`

Each change is one plan of whole files, with a receipt, made anew if somebody else was faster. What a command
says is worded as Anthropic documents it for the memory tool, for models know that wording.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any

from infinimem.errors import InfinimemError, UsageError
from infinimem.law import MAX_NAME
from infinimem.log import log
from infinimem.memory import Memory
from infinimem.model import Plan, Put, Turn
from infinimem.store.lines import fold
from infinimem.store.plans import MEMORY
from infinimem.store.spec import MEMORIES
from infinimem.store.view import Applied, View

ROOT = "/memories"
MAX_PATH = 1000  # bytes of a path

_EXTENSION = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,4}\Z")
_ENCODED = re.compile(r"%[0-9A-Fa-f]{2}")
MAX_BYTES = 1_000_000  # of a file
DEPTH = 2  # levels that a listing shows
SESSION = "memories"  # of the evidence that `[memory_tool] observe` records
_TRIES = 5  # how often a change is made anew for others who change the same files
_SNIPPET = "Here is the snippet showing the change (with line numbers):"


class Refused(UsageError):
    """What a model asked for is not done; the message is for it, and names no path of this machine."""


@dataclass(frozen=True)
class MemoryPath:
    """A path of a model's, checked: names below `/memories`, none for that folder itself."""

    parts: tuple[str, ...]

    @classmethod
    def parse(cls, path: object) -> MemoryPath:
        """Return what a model's path names, even if it is not there; Refused if a part is no plain name."""
        if not isinstance(path, str):
            raise Refused("The path must be text")
        shown = ascii(path[:80])
        if path != ROOT and not path.startswith(f"{ROOT}/"):
            raise Refused(f"Path must start with {ROOT}, got: {shown}")
        if len(path.encode("utf-8", "surrogatepass")) > MAX_PATH:
            raise Refused(f"Path {shown} is too long; {MAX_PATH} bytes are the most")
        rest = path.removeprefix(ROOT).removeprefix("/").removesuffix("/")
        place = cls(tuple(rest.split("/")) if rest else ())
        for part in place.parts:
            if wrong := _wrong(part):
                raise Refused(f"Path {shown} is refused: {wrong}")
        if any(part.casefold().endswith(".md") for part in place.parts[:-1]):
            raise Refused(f"Path {shown} is refused: the name of a directory may not end in .md")
        return place

    def __str__(self) -> str:
        return "/".join((ROOT, *self.parts))

    @property
    def doc_id(self) -> str:
        """Return the document that holds a file of this path."""
        *folders, name = self.parts
        return MEMORIES + "/".join((*folders, _stem(name)))

    @property
    def folder(self) -> str:
        """Return what the documents below it begin with, if it is a directory."""
        return MEMORIES + "".join(f"{part}/" for part in self.parts)


def path_of(doc_id: str) -> str:
    """Return the path of a document of the folder, below `/memories/`."""
    folder, slash, stem = doc_id.removeprefix(MEMORIES).rpartition("/")
    name = stem.removesuffix(".") if _marked(stem) else f"{stem}.md"
    return f"{folder}{slash}{name}"


def namesake(new: str, ids: Iterable[str]) -> str | None:
    """Return a document or folder that some file systems would take for one of `new`, or for it."""

    def ways(doc_id: str) -> Iterator[str]:
        return accumulate(doc_id.split("/"), "{}/{}".format)

    taken = {fold(name): name for doc_id in ids for name in ways(doc_id)}
    return next((taken[fold(name)] for name in ways(new) if taken.get(fold(name), name) != name), None)


def _stem(name: str) -> str:
    if name.endswith(".md") and not _marked(name[:-3]):
        return name[:-3]
    return name if _EXTENSION.search(name) else f"{name}."


def _marked(stem: str) -> bool:
    """Return whether a stem stands for another name than itself with ".md"."""
    return stem.endswith(".") or _EXTENSION.search(stem) is not None


def _wrong(part: str) -> str:
    if part in ("", ".", ".."):
        return "every part of it must be a name"
    if part.startswith(".") or part != part.strip(" "):
        return "no name may begin with a dot, or begin or end with a space"
    if not part.isprintable() or "\\" in part or _ENCODED.search(part):
        return "a name may hold no control or invisible characters, no backslash and no %-encoding"
    if len(_stem(part).encode()) > MAX_NAME:
        return f"a name is too long; {MAX_NAME} bytes are the most"
    return ""


@dataclass(frozen=True)
class _Change:
    """What a command does: a note for the receipt, the files, the reply, and the words that came."""

    note: str
    records: tuple[Put, ...]
    said: str
    came: str = ""


class FileTree:
    """The files of an opened library. Safe to use from several threads; other processes may write, too."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._lock = threading.Lock()

    def run(self, arguments: Mapping[str, Any]) -> str:
        """Do what a model asked for: `command`, and its arguments by name. Refused if it cannot be done."""
        command = arguments.get("command")
        if not isinstance(command, str) or command not in _COMMANDS:
            raise Refused(f"There is no command {ascii(command)[:40]}; there are {', '.join(_COMMANDS)}")
        act, *names = _COMMANDS[command]
        texts: list[Any] = [_text(arguments.get(name), name) for name in names]
        try:
            with self._lock:
                if command == "view":
                    return _shown(self._memory.view, texts[0], arguments.get("view_range"))
                if command == "insert":
                    texts.insert(0, arguments.get("insert_line"))
                return self._apply(partial(act, *texts))
        except Refused:
            raise
        except InfinimemError as error:
            root = str(self._memory.library.files.root)
            raise Refused(str(error).replace(f"{root}/", "").replace(root, "the library")) from error

    def clear(self) -> str:
        """Delete all files. Refused as of `run`."""
        with self._lock:
            return self._apply(_clear)

    def _apply(self, change: Callable[[View], _Change]) -> str:
        library, view = self._memory.library, self._memory.view
        library.demand_initialised()
        for _ in range(_TRIES):
            done = change(view)
            records = tuple(put for put in done.records if _differs(view, put))
            if not records:
                return done.said
            plan = Plan(op=MEMORY, records=records, notes=(done.note,))
            outcome = library.apply(plan, base=view, strategy="memory-tool", model="client")
            if isinstance(outcome, Applied):
                if library.settings.memory_tool.observe and done.came.strip():
                    try:  # the file is written, come what may
                        self._memory.observe([Turn(done.came, role="assistant", session=SESSION)])
                    except InfinimemError as error:
                        log.warning("a memory file was not drawn from: %s", error)
                return done.said
            if any(reason.code not in ("STALE_RECORD", "FORGOTTEN") for reason in outcome.reasons):
                raise Refused(f"Refused: {'; '.join(map(str, outcome.reasons))}")
            view = outcome.view
        raise Refused("Others keep changing this file; look at it and try again")


def _shown(view: View, path: str, view_range: object) -> str:
    place = MemoryPath.parse(path)
    if not _is_file(view, place):
        return _listing(view, place, path)
    lines = _read(view, place).split("\n")
    first, last = 1, len(lines)
    if view_range is not None:  # two line numbers, -1 for the last line
        if not isinstance(view_range, list | tuple) or [type(one) for one in view_range] != [int, int]:
            invalid = f"Invalid `view_range`: {ascii(view_range)[:60]}."
            raise Refused(f"{invalid} It should be a list of two integers.")
        first, last = max(1, view_range[0]), last if view_range[1] == -1 else min(view_range[1], last)
        if first > last:
            raise Refused(f"Invalid `view_range`: {list(view_range)}. The file has {len(lines)} lines.")
    return f"Here's the content of {path} with line numbers:\n{_numbered(lines, first, last)}"


def _numbered(lines: Sequence[str], first: int, last: int) -> str:
    return "\n".join(f"{number:6}\t{lines[number - 1]}" for number in range(first, last + 1))


def _create(path: str, text: str, view: View) -> _Change:
    place = MemoryPath.parse(path)
    if not place.parts or _is_file(view, place) or view.below(place.folder):
        raise Refused(f"File {path} already exists")
    put = _new(view, place, text)
    return _Change(f"create {place}", (put,), f"File created successfully at: {path}", text)


def _replace(path: str, old: str, new: str, view: View) -> _Change:
    place = MemoryPath.parse(path)
    text = _edited(view, place, path)
    at = text.find(old) if old else -1
    if at < 0:
        raise Refused(f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}.")
    if text.find(old, at + 1) >= 0:
        places = (one.start() for one in re.finditer(f"(?={re.escape(old)})", text))  # overlapping ones, too
        numbers = dict.fromkeys(text.count("\n", 0, place) + 1 for place in places)
        raise Refused(
            f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines:"
            f" {', '.join(map(str, numbers))}. Please ensure it is unique"
        )
    after = text[:at] + new + text[at + len(old) :]
    lines_after, line = after.split("\n"), text.count("\n", 0, at) + 1
    snippet = _numbered(lines_after, max(1, line - 2), min(len(lines_after), line + 2))
    said = f"The memory file has been edited. {_SNIPPET}\n{snippet}"
    return _Change(f"str_replace {place}", (_put(place, after),), said, new)


def _insert(line: object, path: str, new: str, view: View) -> _Change:
    place = MemoryPath.parse(path)
    lines = _edited(view, place, path).split("\n")
    count = len(lines) - (lines[-1] == "")
    if not isinstance(line, int) or isinstance(line, bool) or not 0 <= line <= count:
        raise Refused(
            f"Invalid `insert_line` parameter: {ascii(line)[:40]}. It should be within the range of lines of"
            f" the file: [0, {count}]"
        )
    before, after = "\n".join(lines[:line]), "\n".join(lines[line:])
    joint, end = "\n" if line else "", "" if new.endswith("\n") else "\n"
    whole = f"{before}{joint}{new}{end}{after}"
    return _Change(f"insert {place}", (_put(place, whole),), f"The file {path} has been edited.", new)


def _delete(path: str, view: View) -> _Change:
    place = MemoryPath.parse(path)
    if not place.parts:
        raise Refused(f"Cannot delete the {ROOT} directory itself")
    gone = tuple(Put(doc_id, None) for doc_id in _there(view, place, path))
    return _Change(f"delete {place}", gone, f"Successfully deleted {path}")


def _clear(view: View) -> _Change:
    gone = tuple(Put(doc_id, None) for doc_id in view.below(MEMORIES))
    return _Change("delete all", gone, "All memory cleared")


def _rename(old_path: str, new_path: str, view: View) -> _Change:
    old, new = MemoryPath.parse(old_path), MemoryPath.parse(new_path)
    if not old.parts:
        raise Refused(f"Cannot rename the {ROOT} directory itself")
    ids = _there(view, old, old_path)
    if not new.parts or _is_file(view, new) or view.below(new.folder):
        raise Refused(f"The destination {new_path} already exists")
    if new.parts[: len(old.parts)] == old.parts:
        raise Refused(f"The destination {new_path} lies in {old_path} itself")
    records: list[Put] = []
    for doc_id in ids:
        here = MemoryPath.parse(f"{ROOT}/{path_of(doc_id)}")
        there = MemoryPath.parse("/".join((str(new), *here.parts[len(old.parts) :])))
        records += [_new(view, there, _read(view, here)), Put(doc_id, None)]
    return _Change(f"rename {old} to {new}", tuple(records), f"Successfully renamed {old_path} to {new_path}")


_COMMANDS: Mapping[str, Any] = {
    "view": (_shown, "path"),
    "create": (_create, "path", "file_text"),
    "str_replace": (_replace, "path", "old_str", "new_str"),
    "insert": (_insert, "path", "insert_text"),
    "delete": (_delete, "path"),
    "rename": (_rename, "old_path", "new_path"),
}


def _is_file(view: View, place: MemoryPath) -> bool:
    return bool(place.parts) and place.doc_id in view


def _there(view: View, place: MemoryPath, path: str) -> tuple[str, ...]:
    ids = (place.doc_id,) if _is_file(view, place) else view.below(place.folder)
    if not ids:
        raise Refused(f"The path {path} does not exist")
    return ids


def _read(view: View, place: MemoryPath) -> str:
    data = view.document(place.doc_id).to_bytes()
    if len(data) > MAX_BYTES:
        raise Refused(f"File {place} is too large; {MAX_BYTES} bytes are the most")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise Refused(f"File {place} is not UTF-8 text; a person has to look at it") from None


def _edited(view: View, place: MemoryPath, path: str) -> str:
    if not _is_file(view, place):
        if not place.parts or view.below(place.folder):
            raise Refused(f"The path {path} is not a file.")
        raise Refused(f"The path {path} does not exist. Please provide a valid path.")
    return _read(view, place)


def _new(view: View, place: MemoryPath, text: str) -> Put:
    for length in range(1, len(place.parts)):
        if _is_file(view, above := MemoryPath(place.parts[:length])):
            raise Refused(f"{above} is a file, not a directory")
    if other := namesake(place.doc_id, view.below(MEMORIES)):
        raise Refused(f"{place} is too like a name that is there ({other}); choose another name")
    return _put(place, text)


def _put(place: MemoryPath, text: str) -> Put:
    if len(text.encode()) > MAX_BYTES:
        raise Refused(f"File {place} would be too large; {MAX_BYTES} bytes are the most, use several files")
    return Put(place.doc_id, text)


def _differs(view: View, put: Put) -> bool:
    there = view.document(put.doc_id).to_bytes() if put.doc_id in view else None
    return there != (None if put.text is None else put.text.encode())


def _listing(view: View, place: MemoryPath, path: str) -> str:
    ids = view.below(place.folder)
    if place.parts and not ids:
        raise Refused(f"The path {path} does not exist. Please provide a valid path.")
    sizes = Counter({str(place): 0})
    for doc_id in ids:
        size, file = len(view.document(doc_id).to_bytes()), f"{ROOT}/{path_of(doc_id)}"
        parts = file.removeprefix(f"{place}/").split("/")
        sizes[str(place)] += size
        for level in range(1, min(len(parts), DEPTH) + 1):
            sizes[f"{place}/{'/'.join(parts[:level])}{'/' * (level < len(parts))}"] += size
    head = f"Here're the files and directories up to {DEPTH} levels deep in {place}, excluding hidden items:"
    return "\n".join((head, *(f"{_size(size)}\t{path}" for path, size in sorted(sizes.items()))))


def _size(count: int) -> str:
    """Write bytes for people: 0B, 512B, 1.5K, 3M."""
    size, unit = float(count), "B"
    for larger in "KMG":
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.1f}".removesuffix(".0") + unit


def _text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise Refused(f"`{name}` is missing or no text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Refused(f"`{name}` holds half a character (a lone surrogate); write it whole") from None
    return value
