"""Replies of a model, each kept as text under the hash of its request: what was asked is not asked again.

    FOLDER/<32 hex>.md    a reply, what it took, and the request below it (docs/FORMAT.md, Kept replies)

Files appear whole, and one with a reply never changes, so that processes need no lock. Nothing of it is
needed: a folder that cannot be written only costs calls.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from infinimem import tokens
from infinimem.errors import ModelUnavailable, ReplyAwaited, SpendingCapReached
from infinimem.llm.base import LLM, Nobody, Reply, Task, Wrapper
from infinimem.markdown.characters import fenced, one_line
from infinimem.markdown.signature import format_seqs
from infinimem.model import Usage

_DAY = 24 * 3600
_HEAD = re.compile(r"---\n(.*?)\n---\n", re.DOTALL)
_SECTION = re.compile(r"\n# (\w+)\n\n(`{3,})\n(.*?)\n\2\n", re.DOTALL)
_TOOK = ("calls", "tokens_in", "tokens_out")


class Cached(Wrapper):
    """A client that is asked only what was not asked before, up to a cap. Several threads may ask.

    `usage` is what all replies took, those too that were kept; `spent` what was asked for; `authors` are the
    agents that gave them, as far as known. Without a folder none are kept outside of `within`; the same
    question in another `run` is another request.
    """

    def __init__(self, llm: LLM, folder: Path | None = None, run: int = 1) -> None:
        super().__init__(llm)
        self.usage = self.spent = Usage()
        self.authors: list[str] = []
        self._lock = Lock()
        self._folder = ContextVar("folder", default=folder)
        self._run = run
        self._ceiling: float | None = None
        self._is_grown = False

    @property
    def address(self) -> str | None:
        """Where the client asks; None for one that does not say, whose replies a library keeps not."""
        return getattr(self._llm, "base_url", None)

    def silent(self) -> Nobody:
        """Return a client of the same name and address that asks nobody."""
        why = partial(ModelUnavailable, f"a reply of {self.name} is kept no more")
        return Nobody(self.name, self.address, why)

    @contextmanager
    def cap(self, max_tokens: int | None) -> Iterator[None]:
        """For the time of the block, refuse calls once `max_tokens` are spent in it; None changes nothing."""
        before = self._ceiling
        if max_tokens is not None:
            self._ceiling = min(self.spent.tokens + max_tokens, before if before is not None else inf)
        try:
            yield
        finally:
            self._ceiling = before

    @contextmanager
    def within(self, folder: Path | None, days: float = inf, size: float = inf) -> Iterator[None]:
        """For the time of the block, keep replies in a folder; where they are kept in one already, there.

        One that somebody deletes meanwhile is not made anew. Where a reply was added, those go that nobody
        used for so many days, and the oldest beyond so many MiB.
        """
        if folder is None or self._folder.get():
            yield
            return
        mark = self._folder.set(folder)
        try:
            yield
        finally:
            self._folder.reset(mark)
            if self._is_grown:
                self._is_grown = False
                prune(folder, days, size)

    def complete(self, task: Task, variables: Mapping[str, Any]) -> Reply:
        """Ask once; see `LLM.complete`. Of calls side by side those under way are let end at the cap.

        Raises:
            SpendingCapReached: the cap is spent, and no reply is kept; nothing was sent.
            ReplyAwaited: the agent's reply is; the request lies in the folder under the key that is `asked`.
        """
        folder = self._folder.get()
        if folder is None:
            reply = self._ask(task, variables)
        else:
            request = self._request(task, variables)
            text = json.dumps(request, sort_keys=True, ensure_ascii=False).encode("utf-8", "surrogatepass")
            path = folder / f"{hashlib.sha256(text).hexdigest()[:32]}.md"
            try:
                reply = _read(path, task) or self._ask(task, variables)
            except ReplyAwaited as awaited:
                self._is_grown = True
                _write(path, *_told(task, request, Reply(None), variables))
                raise ReplyAwaited([path.stem]) from awaited
            if reply.data is not None and not reply.kept:
                self._is_grown = True
                _write(path, *_told(task, request, reply, variables))
        with self._lock:
            self.usage += reply.usage
            self.authors += [reply.by] if reply.by else []
            self.spent += Usage() if reply.kept else reply.usage
        return reply

    def _ask(self, task: Task, variables: Mapping[str, Any]) -> Reply:
        if self._ceiling is not None and self.spent.tokens >= self._ceiling:
            raise SpendingCapReached("the token cap is spent; what was applied stays, raise the cap to go on")
        return self._llm.complete(task, variables)

    def _request(self, task: Task, variables: Mapping[str, Any]) -> dict[str, Any]:
        """Return what decides the reply; how the server wants to be asked (Dialect) does not."""
        from infinimem.llm import tasks

        prompt = tasks.render(task, variables)
        return {
            "messages": [*prompt],
            "schema": task.schema,
            "model": task.model or self.name,
            "base_url": self.address or "",
            "parameters": {"temperature": 0, "max_tokens": task.max_tokens, "logprobs": task.logprobs},
            "run": self._run,
        }


class Kept(NamedTuple):
    """A file: what stands in its header, and in its sections by title."""

    head: Mapping[str, str]
    sections: Mapping[str, str]


def kept(path: Path) -> Kept | None:
    """Return what a file holds; None where there is none, or it is damaged."""
    try:
        text = path.read_bytes().decode("utf-8")
        if (head := _HEAD.match(text)) is None:
            return None
        rows = dict(line.split(": ", 1) for line in head[1].split("\n"))
        sections = {title: part for title, _, part in _SECTION.findall(text, head.end())}
    except (OSError, ValueError):
        return None
    return Kept(rows, sections) if {"Reply", "Instructions", "Material", "Schema"} == {*sections} else None


def put_reply(path: Path, reply: str, instructed: bool = True, by: str = "") -> Usage:
    """Write the agent's reply into the file of its request, or take it out (""); return what it took, with
    the instructions if it was `instructed` for this one. `by`: the agent's name, if it is known."""
    if (known := kept(path)) is None:
        return Usage()
    asked = tokens.count(known.sections["Material"])
    asked += tokens.count(known.sections["Instructions"]) if instructed else 0
    took = Usage(1, asked, tokens.count(reply)) if reply else Usage()
    head = {**known.head, **{name: str(getattr(took, name)) for name in _TOOK}, "by": by}
    _write(path, head, {**known.sections, "Reply": reply})
    return took


def prune(folder: Path, days: float, size: float) -> None:
    """Delete what nobody used for so many days, and the oldest beyond so many MiB."""
    with suppress(OSError), os.scandir(folder) as listed:
        files = [(info.st_mtime, info.st_size, item.path) for item in listed if (info := item.stat())]
        left, oldest = size * 2**20, time.time() - days * _DAY
        for used, taken, path in sorted(files, reverse=True):
            left -= taken
            if left < 0 or used < oldest:
                with suppress(OSError):
                    Path(path).unlink()


def _read(path: Path, task: Task) -> Reply | None:
    from infinimem.llm import tasks

    try:
        if (known := kept(path)) is None:
            return None
        usage = Usage(*(int(known.head[name]) for name in _TOOK))
        logprobs = tuple(
            (str(token), float(value)) for token, value in json.loads(known.head.get("logprobs", "[]"))
        )
        reply = tasks.read(known.sections["Reply"], task.schema)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if reply.data is None:
        return None
    with suppress(OSError):
        os.utime(path)  # asked for: it stays
    return replace(reply, usage=usage, logprobs=logprobs, kept=True, by=known.head.get("by", ""))


def _told(
    task: Task, request: Mapping[str, Any], reply: Reply, variables: Mapping[str, Any]
) -> tuple[dict[str, str], dict[str, str]]:
    instructions, material = request["messages"]
    head = {"task": task.name}
    head |= {name: one_line(str(request[name])) for name in ("model", "base_url", "run")}
    head |= {name: str(getattr(reply.usage, name)) for name in _TOOK}
    if reply.logprobs:
        head["logprobs"] = json.dumps(reply.logprobs)
    if reply.data is None and task.draws:
        head["turns"] = format_seqs(sorted(int(turn["id"]) for turn in variables["turns"]))
    if reply.data is None and (problems := variables.get("problems")):
        head["problems"] = json.dumps(problems)
    text = reply.text or ("" if reply.data is None else json.dumps(reply.data, ensure_ascii=False))
    shown = {"Reply": text, "Instructions": instructions, "Material": material}
    return head, {**shown, "Schema": json.dumps(request["schema"], indent=1)}


def _write(path: Path, head: Mapping[str, str], sections: Mapping[str, str]) -> None:
    from tempfile import NamedTemporaryFile

    lines = "".join(f"{name}: {value}\n" for name, value in head.items())
    body = "".join(f"\n# {title}\n\n{fenced(part)}\n" for title, part in sections.items())
    with suppress(OSError), NamedTemporaryFile(dir=path.parent, prefix=".", delete=False) as part:
        part.write(f"---\n{lines}---\n{body}".encode("utf-8", "backslashreplace"))
        part.close()
        Path(part.name).replace(path)
