"""Every error that the library raises on purpose.

    InfinimemError                 one line for people: what happened and what to do
    ├── UsageError                 the call itself is wrong (the CLI exits with 2)
    │   └── SettingsError          infinimem.toml or an environment variable holds a bad value
    ├── LibraryError               the folder cannot serve
    │   ├── NotALibrary            a write into a folder that `init` has not prepared
    │   ├── DocumentNotFound       no document has that id
    │   ├── LockTimeout            another process is writing
    │   └── FormatTooNew           the folder was written by a later version
    ├── FleetError                 the store or the database of a fleet cannot serve
    ├── ImportFormatError          a file whose format is not known or that is damaged
    └── ModelError                 the model cannot be used
        ├── ModelUnavailable       no answer: dead endpoint, time-out, refused
        │   ├── SpendingCapReached the caller's cap on tokens is spent
    │   └── NotTrusted         the library's own settings name the model, and nobody trusted them
        └── ModelNotConfigured     a key or a model name is missing

What a model answers wrongly is not an error: it comes back as a failure code (llm/base.py), and
what a plan does wrongly as reasons (law.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_UNSEEN = re.compile(r"\s{2,}|[^\S ]|[\u115f\u1160\u2800\u3164\uffa0]")
"""Blanks that may pass for the end of a line."""


class InfinimemError(Exception):
    """Base of all; `str(error)` is one line that says what happened and what to do."""


class UsageError(InfinimemError):
    """The caller passed something that can never work."""


class SettingsError(UsageError):
    """A setting is unknown or out of range."""


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


def closest(name: str, known: Iterable[str], most: int = 3) -> list[str]:
    """Of the names that are known those that a name was probably meant to be, the likeliest first."""
    import difflib

    return difflib.get_close_matches(name, sorted(known), n=most, cutoff=0.6)


def meant(name: str, known: Iterable[str]) -> str:
    """What an error adds about a name that is wrong: "; did you mean 'search'?", or nothing."""
    near = closest(name, known, 1)
    return f"; did you mean {near[0]!r}?" if near else ""


def escape(value: object, most: int = 100) -> str:
    """A value from outside on one line, as it is shown to people: escapes for what cannot be seen.

    Args:
        value: of a setting, or a name.
        most: characters; of what is longer the middle is left out: a host tells by its end whose it is.
    """
    text = _UNSEEN.sub(lambda blanks: "".join(f"\\u{ord(blank):04x}" for blank in blanks[0]), str(value))
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    half = most // 2
    return text if len(text) <= most else f"{text[:half]}…({len(text) - most} more)…{text[-half:]}"
