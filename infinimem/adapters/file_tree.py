"""A tree of text files below `/memories`, for a model: six commands over the library's folder memories/.

Each change is one plan of whole files, with a receipt, made anew where somebody else was faster. What a
command says is worded as Anthropic documents it for the memory tool, for models know that wording.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from infinimem.adapters import wording
from infinimem.adapters.paths import ROOT, MemoryPath, Refused, namesake, path_of
from infinimem.errors import InfinimemError
from infinimem.log import log
from infinimem.memory import Memory
from infinimem.model import Plan, Put, Turn
from infinimem.store.plans import MEMORY
from infinimem.store.spec import MEMORIES
from infinimem.store.view import Applied, View

MAX_BYTES = 1_000_000
"""Of a file."""
MAX_LINES = 999_999
"""That have a number of six figures, in a file that is shown."""
SESSION = "memories"
"""Of the evidence that `[memory_tool] observe` records."""
_TRIES = 5
"""How often a change is made anew for others who change the same files."""
_SNIPPET = "Here is the snippet showing the change (with line numbers):"
_ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "view": ("path",),
    "create": ("path", "file_text"),
    "str_replace": ("path", "old_str", "new_str"),
    "insert": ("path", "insert_text"),
    "delete": ("path",),
    "rename": ("old_path", "new_path"),
}


@dataclass(frozen=True)
class _Change:
    """What a command does: a note for the receipt, the files, the reply, and the words that came."""

    note: str
    records: tuple[Put, ...]
    said: str
    came: str = ""


class FileTree:
    """The files. Safe to use from several threads; other processes may write too.

    Args:
        memory: an opened library; in a folder of plain notes nothing can be written.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._lock = threading.Lock()

    def run(self, arguments: Mapping[str, Any]) -> str:
        """Do what a model asked for: `command`, and its arguments by name.

        Raises:
            Refused: it cannot be done; `str(error)` is for the model, and names no path of this machine.
        """
        command = arguments.get("command")
        names = _ARGUMENTS.get(command) if isinstance(command, str) else None
        if names is None:
            raise Refused(f"There is no command {ascii(command)[:40]}; there are {', '.join(_ARGUMENTS)}")
        texts = [_text(arguments.get(name), name) for name in names]
        try:
            with self._lock:
                if command == "view":
                    return _shown(self._memory.view, texts[0], arguments.get("view_range"))
                if command == "insert":
                    return self._apply(partial(_insert, arguments.get("insert_line"), texts[0], texts[1]))
                return self._apply(partial(_CHANGES[str(command)], *texts))
        except Refused:
            raise
        except InfinimemError as error:
            raise Refused(self._without_root(str(error))) from error

    def clear(self) -> str:
        """Delete all files.

        Raises:
            Refused: as `run`.
        """
        with self._lock:
            return self._apply(
                lambda view: _Change(
                    "delete all", tuple(Put(doc_id, None) for doc_id in _ids(view)), "All memory cleared"
                )
            )

    def _apply(self, change: Callable[[View], _Change]) -> str:
        """Make a change on the files as they are."""
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
                self._observe(done.came)
                return done.said
            if any(reason.code not in ("STALE_RECORD", "FORGOTTEN") for reason in outcome.reasons):
                raise Refused(f"Refused: {'; '.join(map(str, outcome.reasons))}")
            view = outcome.view
        raise Refused("Others keep changing this file; look at it and try again")

    def _observe(self, text: str) -> None:
        """Feed what came to extraction, where the settings say so. The file is written, come what may."""
        if not self._memory.library.settings.memory_tool.observe or not text.strip():
            return
        try:
            self._memory.observe([Turn(text, role="assistant", session=SESSION)])
        except InfinimemError as error:
            log.warning("a memory file was not drawn from: %s", error)

    def _without_root(self, message: str) -> str:
        root = str(self._memory.library.files.root)
        return message.replace(f"{root}/", "").replace(root, "the library")


# ── commands ────────────────────────────────────────────────────────────────────────────────────


def _shown(view: View, path: str, view_range: object) -> str:
    place = MemoryPath.parse(path)
    if not _is_file(view, place):
        return _listing(view, place, path)
    lines = _read(view, place).split("\n")
    if len(lines) > MAX_LINES:
        raise Refused(f"File {path} exceeds maximum line limit of 999,999 lines.")
    first, last = wording.line_range(view_range, len(lines))
    return f"Here's the content of {path} with line numbers:\n{wording.numbered(lines, first, last)}"


def _create(path: str, text: str, view: View) -> _Change:
    place = MemoryPath.parse(path)
    if not place.parts or _is_file(view, place) or _below(view, place):
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
        lines = ", ".join(map(str, wording.occurrences(text, old)))
        raise Refused(
            f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {lines}."
            " Please ensure it is unique"
        )
    after = text[:at] + new + text[at + len(old) :]
    lines_after, line = after.split("\n"), text.count("\n", 0, at) + 1
    snippet = wording.numbered(lines_after, max(1, line - 2), min(len(lines_after), line + 2))
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


def _rename(old_path: str, new_path: str, view: View) -> _Change:
    old, new = MemoryPath.parse(old_path), MemoryPath.parse(new_path)
    if not old.parts:
        raise Refused(f"Cannot rename the {ROOT} directory itself")
    ids = _there(view, old, old_path)
    if not new.parts or _at(view, new):
        raise Refused(f"The destination {new_path} already exists")
    if new.parts[: len(old.parts)] == old.parts:
        raise Refused(f"The destination {new_path} lies in {old_path} itself")
    records: list[Put] = []
    for doc_id in ids:
        here = MemoryPath.parse(f"{ROOT}/{path_of(doc_id)}")
        there = MemoryPath.parse("/".join((str(new), *here.parts[len(old.parts) :])))
        records += [_new(view, there, _read(view, here)), Put(doc_id, None)]
    return _Change(f"rename {old} to {new}", tuple(records), f"Successfully renamed {old_path} to {new_path}")


_CHANGES: Mapping[str, Callable[..., _Change]] = {
    "create": _create,
    "str_replace": _replace,
    "delete": _delete,
    "rename": _rename,
}


# ── files ───────────────────────────────────────────────────────────────────────────────────────


def _ids(view: View) -> tuple[str, ...]:
    return tuple(doc_id for doc_id in view.ids("all") if doc_id.startswith(MEMORIES))


def _below(view: View, place: MemoryPath) -> tuple[str, ...]:
    """The documents in a directory."""
    return tuple(doc_id for doc_id in _ids(view) if doc_id.startswith(place.folder))


def _is_file(view: View, place: MemoryPath) -> bool:
    return bool(place.parts) and place.doc_id in view


def _at(view: View, place: MemoryPath) -> tuple[str, ...]:
    """The document of a file, or those of a directory; none where there is neither."""
    return (place.doc_id,) if _is_file(view, place) else _below(view, place)


def _there(view: View, place: MemoryPath, path: str) -> tuple[str, ...]:
    """As `_at`, where there is something."""
    if not (ids := _at(view, place)):
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
    """The text of a file that is to be edited."""
    if not _is_file(view, place):
        if not place.parts or _below(view, place):
            raise Refused(f"The path {path} is not a file.")
        raise Refused(f"The path {path} does not exist. Please provide a valid path.")
    return _read(view, place)


def _new(view: View, place: MemoryPath, text: str) -> Put:
    """A file where none is."""
    for above in place.above:
        if _is_file(view, above):
            raise Refused(f"{above} is a file, not a directory")
    if other := namesake(place.doc_id, _ids(view)):
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
    ids = _below(view, place)
    if place.parts and not ids:
        raise Refused(f"The path {path} does not exist. Please provide a valid path.")
    top = f"{place}/"
    sizes = {
        f"{ROOT}/{path_of(doc_id)}".removeprefix(top): len(view.document(doc_id).to_bytes()) for doc_id in ids
    }
    return wording.listing(str(place), sizes)


def _text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise Refused(f"`{name}` is missing or no text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Refused(f"`{name}` holds half a character (a lone surrogate); write it whole") from None
    return value
