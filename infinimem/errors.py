"""Every error that the library raises on purpose: one line for people, what happened and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

_UNSEEN = re.compile(r"\s{2,}|[^\S ]|[\u115f\u1160\u2800\u3164\uffa0]")
"""Blanks that may pass for the end of a line."""


class InfinimemError(Exception):
    """Base of all; `str(error)` is one line that says what happened and what to do."""


class UsageError(InfinimemError):
    """The caller passed something that can never work; the command line exits with 2."""


class SettingsError(UsageError):
    """A setting of infinimem.toml or the environment is unknown or out of range."""


class LibraryError(InfinimemError):
    """The folder cannot serve this call."""


class NotALibrary(LibraryError):
    """A write into a folder that has no infinimem.toml."""


class DocumentNotFound(LibraryError):
    """No document, or more than one, answers to that name."""


class LockTimeout(LibraryError):
    """Another process holds the library's lock."""


class FormatTooNew(LibraryError):
    """The folder's format number is higher than this version knows."""


class FleetError(InfinimemError):
    """The object store or the database of a fleet cannot serve this call."""


class ImportFormatError(InfinimemError):
    """The file to import is in no known format, or damaged."""


class ModelError(InfinimemError):
    """The model cannot be used."""


class ModelUnavailable(ModelError):
    """The endpoint did not answer; what was said stays in the evidence and is retried."""


class SpendingCapReached(ModelUnavailable):
    """No further call is made in this operation; what was applied stays."""


class NotTrusted(ModelUnavailable):
    """Settings of a library that nobody trusted would choose the model."""


class ModelNotConfigured(ModelError):
    """A model was asked for, but its key or name is missing."""


class ReplyAwaited(InfinimemError):
    """The agent is the model and has not answered yet: `asked` are keys of its requests, or tasks that
    hold them, in order. What was applied stays."""

    def __init__(self, asked: Sequence[Any]) -> None:
        super().__init__("a reply of the agent is awaited; infinimem tasks next shows what for")
        self.asked = asked


def closest(name: str, known: Iterable[str], most: int = 3) -> list[str]:
    """Return the known names that a name was probably meant to be, the likeliest first."""
    import difflib

    return difflib.get_close_matches(name, sorted(known), n=most, cutoff=0.6)


def meant(name: str, known: Iterable[str]) -> str:
    """Return what an error adds about a wrong name: "; did you mean 'search'?", or nothing."""
    near = closest(name, known, 1)
    return f"; did you mean {near[0]!r}?" if near else ""


def escape(value: object, most: int = 100) -> str:
    """Return a value from outside on one line, with escapes for what cannot be seen; a long one loses its
    middle."""
    text = _UNSEEN.sub(lambda blanks: "".join(f"\\u{ord(blank):04x}" for blank in blanks[0]), str(value))
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    half = most // 2
    return text if len(text) <= most else f"{text[:half]}…({len(text) - most} more)…{text[-half:]}"
