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
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infinimem.errors import UsageError

SERVER, KEPT = "infinimem", ".before-infinimem"


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
        """Where the text of before is, empty if there was no file; without it nothing was added."""
        return self.file.with_name(self.file.name + KEPT)

    @property
    def is_toml(self) -> bool:
        return self.file.suffix == ".toml"


def agents(arguments: list[str], home: Path) -> dict[str, Program | None]:
    """Return all agents by id, None for one that is not installed; `arguments` start the server."""
    beside = Path(sys.executable).with_name(SERVER)  # those that start it may have another PATH
    program = str(beside) if beside.is_file() else shutil.which(SERVER) or SERVER
    rows = tomllib.loads(Path(__file__).with_name("agents.toml").read_text(encoding="utf-8"))
    known: dict[str, Program | None] = dict.fromkeys(rows)
    for id_, row in rows.items():
        joined = {"command": [program, *arguments]}
        started = joined if row.get("joined") else {"command": program, "args": arguments}
        entry = {**row.get("entry", {}), **started}
        for folder, file in row["places"]:
            if known[id_] is None and (home / folder).is_dir():
                known[id_] = Program(id_, row["name"], home / file, row["key"], entry, row.get("more", ""))
    return known


def change(agent: Program, undo: bool = False) -> tuple[str | None, str | None]:
    """Return what the file holds and shall hold, None for none; UsageError if it is not safe to change."""
    before = _read(agent.file)
    if not undo:
        return before, _edited(agent, before)
    kept = _read(agent.kept)
    if kept is None or before is None:  # nothing was added, or it is gone
        return before, before
    if before == _edited(agent, kept):
        return before, kept or None
    return before, _edited(agent, before, remove=True)  # it was changed since


def write(agent: Program, before: str | None, after: str | None, undo: bool = False) -> None:
    """Write a change, if the file is still as it was `before`; a link stays one."""
    if _read(agent.file) != before:
        raise UsageError(f"{agent.file} has changed meanwhile; run it again")
    if not undo:
        _write(agent.kept, before or "", agent.file)
    if after is None:
        agent.file.unlink(missing_ok=True)
    else:
        _write(agent.file, after, agent.file)
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


def _edited(agent: Program, text: str | None, remove: bool = False) -> str:
    """Return the text with the server, or without, by the first edit that, when parsed, changes no more."""
    given = text or ""
    if not agent.is_toml and not given.strip():
        given = "{}\n"
    why = f"it has another {SERVER}, or an unusual form"
    try:
        data = _parsed(agent, given)
        servers = data.get(agent.key, {})
        others = {name: entry for name, entry in servers.items() if name != SERVER}
        if servers == (others if remove else {**others, SERVER: agent.entry}):
            return given
        rest = {name: value for name, value in data.items() if name != agent.key}
        wanted = [{**rest, agent.key: others if remove else {**servers, SERVER: agent.entry}}]
        if remove and not others:
            wanted.append(rest)  # a table of TOML is gone with the last that is in it
        if remove or SERVER not in servers:
            for made in _without(agent, given) if remove else _with(agent, given):
                with suppress(ValueError):
                    if _parsed(agent, made) in wanted:
                        return made
    except (ValueError, AttributeError, RecursionError) as error:
        why = str(error)
    if remove:
        raise UsageError(f"{agent.file} was changed since; take {SERVER} out of {agent.key} by hand")
    paste = json.dumps({agent.key: {SERVER: agent.entry}})
    paste = " ".join(_table(agent).split()) if agent.is_toml else paste
    raise UsageError(f"{agent.file} is left as it is ({why}); put this in: {paste}")


def _parsed(agent: Program, text: str) -> dict[str, Any]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(pairs) != len(dict(pairs)):
            raise ValueError("a name comes twice")
        return dict(pairs)

    data = tomllib.loads(text) if agent.is_toml else json.loads(text, object_pairs_hook=once)
    if not isinstance(data, dict) or not isinstance(data.get(agent.key, {}), dict):
        raise ValueError(f"it or its {agent.key} is no object")
    return data


def _with(agent: Program, text: str) -> Iterator[str]:
    if agent.is_toml:
        yield text + ("\n" if text and not text.endswith("\n") else "") + _table(agent)
        return
    inner = [(match.end(), "  ") for match in re.finditer(rf'"{agent.key}"\s*:\s*\{{', text)]
    for at, pad in (*inner, (text.index("{") + 1, "")):
        member = {SERVER: agent.entry} if pad else {agent.key: {SERVER: agent.entry}}
        body = json.dumps(member, indent=2, ensure_ascii=False)[1:-2].replace("\n", f"\n{pad}")
        rest = text[at:].lstrip()
        yield text[:at] + body + (f"\n{pad}{rest}" if rest.startswith("}") else f",{text[at:]}")


def _without(agent: Program, text: str) -> Iterator[str]:
    if agent.is_toml:
        table = rf"\n*^\[{agent.key}\.{SERVER}\]\n(?:[^\[\n].*\n?)*"
        yield re.sub(table, "\n", text, count=1, flags=re.MULTILINE)
        return
    for match in re.finditer(rf'"{SERVER}"\s*:\s*', text):
        _, end = json.JSONDecoder().raw_decode(text, match.end())
        before, after = text[: match.start()].rstrip(), text[end:]
        follows = after.lstrip().startswith(",")  # the last takes the comma before it along
        yield before + after.lstrip()[1:] if follows else before.removesuffix(",").rstrip() + after


def _table(agent: Program) -> str:
    """Return the table of the server; strings and lists of JSON are TOML as well."""
    rows = [f"{name} = {json.dumps(value)}\n" for name, value in agent.entry.items()]
    return f"\n[{agent.key}.{SERVER}]\n{''.join(rows)}"
