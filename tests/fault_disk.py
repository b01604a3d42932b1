"""Faults at any of the store's calls that change a disk: counted, failing, cut short, or the last one made.

Hooks for `hooked`, which gives the names of the calls made:

    hooked(nothing)               only count, to know the points
    hooked(fail(7, errno.EIO))    the seventh call fails, once
    hooked(die(7, "after"))       the seventh call is the last that takes place, and raises Crash
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from unittest import mock

from infinimem.store import disk

When = Literal["before", "half", "most", "after"]


class Crash(BaseException):
    """The process died here: no handler of errors may run, and nothing reaches the disk any more."""


@dataclass(frozen=True)
class Call:
    """One call that is about to be made; it takes place when it is called.

    Args:
        number: counts from 1 since `hooked` was entered.
        name: of the function in `infinimem.store.disk`.
        args: its arguments.
        made: the function itself.
    """

    number: int
    name: str
    args: tuple[Any, ...]
    made: Callable[..., Any]

    def __call__(self) -> Any:
        return self.made(*self.args)

    def names(self, path: Path) -> bool:
        """Whether an argument is this file or folder of the library."""
        told = [arg.path for arg in self.args if isinstance(arg, disk.At | disk.Folder)]
        return any(name and path.as_posix().endswith(f"/{name}") for name in told)

    def half(self) -> Any:
        """Half of a write; any other call has no halves and does not take place."""
        return self._begun(0.5)

    def most(self) -> Any:
        """All but some last letters of a write: what is there may look whole."""
        return self._begun(0.95)

    def _begun(self, share: float) -> Any:
        if self.name == "write":
            descriptor, data = self.args
            return self.made(descriptor, data[: int(len(data) * share)])
        return None


Hook = Callable[[Call], Any]
"""Is given each call instead of its being made; returns what it returns."""


@contextmanager
def hooked(hook: Hook) -> Iterator[list[str]]:
    """Pass every call that changes a disk through `hook`; gives the names of the calls, in order.

    Syncs are counted and may fail, but are not made: nobody in process can tell, and they take long.
    """
    names: list[str] = []
    functions = {
        name: _synced if name in ("sync", "sync_folder") else made
        for name, made in inspect.getmembers(disk, inspect.isfunction)
        if made.__module__ == disk.__name__ and not name.startswith("_") and name != "boot"
    }

    def through(name: str, made: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            names.append(name)
            return hook(Call(len(names), name, args, made))

        return call

    with ExitStack() as patches:
        for name, made in functions.items():
            patches.enter_context(mock.patch.object(disk, name, through(name, made)))
        yield names


def _synced(what: object) -> None:
    pass


def nothing(call: Call) -> Any:
    """No fault: only count."""
    return call()


def die(number: int, when: When = "before") -> Hook:
    """The process dies before or after that call, or halfway or almost through where it is a write."""

    def hook(call: Call) -> Any:
        if call.number < number:
            return call()
        begun: dict[When, Callable[[], Any]] = {"half": call.half, "most": call.most, "after": call}
        if call.number == number and when in begun:
            begun[when]()
        raise Crash(f"{when} call {number}, {call.name}")

    return hook


def fail(number: int, code: int, *, onward: bool = False, half: bool = False) -> Hook:
    """That call fails with an error number, without effect.

    Args:
        number: which call.
        code: of `errno`.
        onward: every later call fails too: the disk stays full, or read-only.
        half: a write has written half before it fails.
    """

    def hook(call: Call) -> Any:
        if call.number < number or (call.number > number and not onward):
            return call()
        if half:
            call.half()
        raise OSError(code, os.strerror(code))

    return hook


def short(number: int) -> Hook:
    """That call, where it is a write, writes only half and says so, as the system may; no error."""

    def hook(call: Call) -> Any:
        divisible = call.number == number and call.name == "write" and len(call.args[1]) > 1
        return call.half() if divisible else call()

    return hook
