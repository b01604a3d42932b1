"""Adds the MCP server to the configuration of agent programs, and takes exactly that out again.

In: what is in agents.toml, and a program's file. Out: the file's new text; nothing is written before somebody
says so. Promise: whatever else stands in the file stays, byte by byte; a file that cannot be changed in this
way (JSON with comments) is refused, with what to paste. The text of before is kept beside it until `undo`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infinimem.errors import UsageError

SERVER, KEPT = "infinimem", ".before-infinimem"
_SPACE = " \t\r\n"


@dataclass(frozen=True)
class Program:
    """A row of agents.toml for this machine: an agent program."""

    id: str
    name: str
    file: Path
    key: str
    entry: dict[str, Any]
    more: str = ""

    @property
    def kept(self) -> Path:
        """Where the text of before is."""
        return self.file.with_name(self.file.name + KEPT)


@dataclass(frozen=True)
class Configured:
    """What a file holds and shall hold; None if it is not there."""

    agent: Program
    before: str | None
    after: str | None


def program() -> str:
    """Return the path of this program: those that start it may have another PATH."""
    beside = Path(sys.executable).with_name(SERVER)
    return str(beside) if beside.is_file() else shutil.which(SERVER) or SERVER


def agents(arguments: list[str], home: Path) -> dict[str, Program | None]:
    """Return all agents by id, None for one that is not installed; `arguments` start the server."""
    rows = tomllib.loads(Path(__file__).with_name("agents.toml").read_text(encoding="utf-8"))
    known: dict[str, Program | None] = {}
    for id_, row in rows.items():
        started = {"command": [program(), *arguments]}
        if not row.get("joined"):
            started = {"command": program(), "args": arguments}  # type: ignore[dict-item]
        entry = {**row.get("entry", {}), **started}
        places = (
            {kind: home / path.removeprefix("~/") for kind, path in one.items()} for one in row["places"]
        )
        place = next((place for place in places if place["folder"].is_dir()), None)
        more = row.get("more", "")
        known[id_] = Program(id_, row["name"], place["file"], row["key"], entry, more) if place else None
    return known


def change(agent: Program, undo: bool = False) -> Configured:
    """Return what connecting, or its undoing, changes. UsageError if the file cannot be changed safely."""
    before = _read(agent.file)
    if not undo:
        return Configured(agent, before, _added(agent, before))
    kept = _read(agent.kept)
    if before is None or before == _added(agent, kept):
        return Configured(agent, before, kept if before is not None else None)
    return Configured(agent, before, _removed(agent, before))  # it was changed since


def write(change: Configured, undo: bool = False) -> None:
    """Write a change, if the file is still as it was read; a link stays one."""
    agent = change.agent
    if _read(agent.file) != change.before:
        raise UsageError(f"{agent.file} has changed meanwhile; run it again")
    if not undo and change.before is not None and change.after != change.before:
        _write(agent.kept, change.before, agent.file)
    if change.after is None:
        agent.file.unlink(missing_ok=True)
    else:
        _write(agent.file, change.after, agent.file)
    if undo:
        agent.kept.unlink(missing_ok=True)


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeError) as error:
        raise UsageError(f"{path} cannot be read ({error}); nothing was changed") from error


def _write(path: Path, text: str, like: Path) -> None:
    target = path.resolve()
    new = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        new.touch(mode=0o600, exist_ok=False)
        if like.exists():
            shutil.copymode(like, new)
        new.write_bytes(text.encode("utf-8"))
        new.replace(target)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise UsageError(f"{path} cannot be written ({error})") from error


# ── what is added, and taken out ────────────────────────────────────────────────────────────────


def _added(agent: Program, text: str | None) -> str:
    """Return a file's text with the server in it; the text itself if it has one like it."""
    if agent.file.suffix == ".toml":
        return _added_toml(agent, text or "")
    given = text if text and text.strip() else "{}\n"
    data = _parsed(agent, given)
    servers = data.get(agent.key, {})
    if not isinstance(servers, dict):
        raise _refusal(agent, f"{agent.key} is no object")
    if servers.get(SERVER) == agent.entry:
        return given
    if SERVER in servers:
        raise _refusal(agent, f"{agent.key} has another {SERVER}")
    inner = agent.key in data
    at = _members(given, agent.key)[1] if inner else given.index("{") + 1
    member = {SERVER: agent.entry} if inner else {agent.key: {SERVER: agent.entry}}
    pad = "    " if inner else "  "
    body = (
        json.dumps(member, indent=2, ensure_ascii=False)[1:]
        .rstrip("}")
        .rstrip()
        .replace("\n", f"\n{pad[2:]}")
    )
    tail = "," if servers or (not inner and data) else f"\n{pad[2:]}"
    made = given[:at] + body + tail + (given[at:].lstrip(_SPACE) if tail != "," else given[at:])
    if _parsed(agent, made) != {**data, agent.key: {**servers, SERVER: agent.entry}}:
        raise _refusal(agent, "it has an unusual form")
    return made


def _removed(agent: Program, text: str) -> str:
    """Return a file's text without the server, where others changed the file since."""
    by_hand = UsageError(f"{agent.file} was changed since; take {SERVER} out of {agent.key} by hand")
    if agent.file.suffix == ".toml":
        wanted = tomllib.loads(text)
        if wanted.get(agent.key, {}).pop(SERVER, None) is None:
            return text
        table = re.search(rf"^\[{agent.key}\.{SERVER}\]\n(?:[^\[\n].*\n?)*", text, re.MULTILINE)
        made = text if table is None else text[: table.start()].rstrip("\n") + "\n" + text[table.end() :]
        if tomllib.loads(made) not in (wanted, {key: value for key, value in wanted.items() if value}):
            raise by_hand
        return made
    data = _parsed(agent, text)
    if SERVER not in data.get(agent.key, {}):
        return text
    begin, end = _members(text, agent.key, SERVER)[2:]
    while text[end] in _SPACE:
        end += 1
    if text[end] == ",":
        end += 1
    else:  # the last: the comma before it goes
        begin = len(text[:begin].rstrip(_SPACE).removesuffix(","))
    made = text[:begin].rstrip(_SPACE) + text[end:]
    del data[agent.key][SERVER]
    if _parsed(agent, made) != data:
        raise by_hand
    return made


def _added_toml(agent: Program, text: str) -> str:
    try:
        data = tomllib.loads(text)
        servers = data.get(agent.key, {})
        if servers.get(SERVER) == agent.entry:
            return text
        made = text + ("\n" if text and not text.endswith("\n") else "") + _toml(agent)
        if tomllib.loads(made) == {**data, agent.key: {**servers, SERVER: agent.entry}}:
            return made
    except (tomllib.TOMLDecodeError, AttributeError) as error:
        raise _refusal(agent, str(error)) from error
    raise _refusal(agent, "it has an unusual form")


def _toml(agent: Program) -> str:
    """Return the table of the server; strings and lists of JSON are TOML as well."""
    rows = [f"{name} = {json.dumps(value)}\n" for name, value in agent.entry.items()]
    return f"\n[{agent.key}.{SERVER}]\n{''.join(rows)}"


def _parsed(agent: Program, text: str) -> dict[str, Any]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(pairs) != len(dict(pairs)):
            raise ValueError("a name comes twice")
        return dict(pairs)

    try:
        data = json.loads(text, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        raise _refusal(agent, f"no plain JSON: {error}") from error
    if not isinstance(data, dict):
        raise _refusal(agent, "it is no object")
    return data


def _members(text: str, *names: str) -> tuple[int, int, int, int]:
    """Return where the value of a member begins, where what is in it does, and where the member itself begins
    and ends. The text is JSON and has it."""
    read, at, begin, end = json.JSONDecoder().raw_decode, 0, 0, len(text)
    for name in names:
        at = text.index("{", at) + 1
        while True:
            while text[at] in _SPACE + ",":
                at += 1
            begin = at
            found, at = read(text, at)
            at = text.index(":", at) + 1
            while text[at] in _SPACE:
                at += 1
            value, (_, end) = at, read(text, at)
            if found == name:
                break
            at = end
    return value, value + 1, begin, end


def _refusal(agent: Program, why: str) -> UsageError:
    paste = {agent.key: {SERVER: agent.entry}}
    text = _toml(agent).strip() if agent.file.suffix == ".toml" else json.dumps(paste)
    return UsageError(f"{agent.file} is left as it is ({why}); put this in: {' '.join(text.split())}")
