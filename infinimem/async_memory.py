"""`Memory` for programs that run an event loop: each method in a thread, to its end even if cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import cached_property, wraps
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from infinimem.memory import Memory
from infinimem.reader import Reader
from infinimem.tools import Toolbox

P = ParamSpec("P")
S = TypeVar("S")
S_co = TypeVar("S_co", covariant=True)
R_co = TypeVar("R_co", bound=Reader, covariant=True)
T = TypeVar("T")


class _Behind(Generic[S_co]):
    """What is called from an event loop, and what does the work."""

    def __init__(self, sync: S_co) -> None:
        self.sync = sync

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.sync!r})"


def _in_thread(
    method: Callable[Concatenate[S, P], T],
) -> Callable[Concatenate[_Behind[S], P], Coroutine[Any, Any, T]]:
    @wraps(method)
    async def call(self: _Behind[S], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.to_thread(method, self.sync, *args, **kwargs)

    return call


class AsyncToolbox(_Behind[Toolbox]):
    """The five tools, awaited; see `Toolbox`."""

    grep = _in_thread(Toolbox.grep)
    grep_doc = _in_thread(Toolbox.grep_doc)
    search = _in_thread(Toolbox.search)
    list_docs = _in_thread(Toolbox.list_docs)
    read_lines = _in_thread(Toolbox.read_lines)
    call = _in_thread(Toolbox.call)
    text = _in_thread(Toolbox.text)


class AsyncReader(_Behind[R_co]):
    """Questions to a library, awaited; see `Reader`."""

    retrieve = _in_thread(Reader.retrieve)
    read = _in_thread(Reader.read)
    ask = _in_thread(Reader.ask)
    chosen = _in_thread(Reader.chosen)

    @cached_property
    def tools(self) -> AsyncToolbox:
        """The five tools."""
        return AsyncToolbox(self.sync.tools)

    async def within(self, project: str) -> AsyncReader[Reader]:
        """See `Reader.within`."""
        return AsyncReader(self.sync.within(project))


class AsyncMemory(AsyncReader[Memory]):
    """A library, awaited; see `Memory`. `memory.sync`, which `open_memory` gave, has what is no method."""

    observe = _in_thread(Memory.observe)
    draw = _in_thread(Memory.draw)
    unanswered = _in_thread(Memory.unanswered)
    leave = _in_thread(Memory.leave)
    retry = _in_thread(Memory.retry)
    record = _in_thread(Memory.record)
    write = _in_thread(Memory.write)
    edit = _in_thread(Memory.edit)
    pin = _in_thread(Memory.pin)
    consolidate = _in_thread(Memory.consolidate)
    preview = _in_thread(Memory.preview)
    repeat = _in_thread(Memory.repeat)
    rebuild = _in_thread(Memory.rebuild)
    compare = _in_thread(Memory.compare)
    estimate = _in_thread(Memory.estimate)
    spent_today = _in_thread(Memory.spent_today)
    undo = _in_thread(Memory.undo)
    forget = _in_thread(Memory.forget)
    rename = _in_thread(Memory.rename)
    receipts = _in_thread(Memory.receipts)
    history = _in_thread(Memory.history)
    changes = _in_thread(Memory.changes)
    blame = _in_thread(Memory.blame)
    review = _in_thread(Memory.review)
    decide = _in_thread(Memory.decide)
    status = _in_thread(Memory.status)
    doctor = _in_thread(Memory.doctor)
    faulty_records = _in_thread(Memory.faulty_records)
    repair = _in_thread(Memory.repair)
    close = _in_thread(Memory.close)

    async def at(self, moment: str) -> AsyncReader[Reader]:
        """See `Memory.at`."""
        return AsyncReader(await asyncio.to_thread(self.sync.at, moment))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()
