"""What other packages add, by entry points: strategies, embedders, importers.

    [project.entry-points."infinimem.strategies"]
    toy = "toy.spec:SPEC"

An entry point is installed code, trusted as all packages of the environment are. The lists are read here:
importing importlib.metadata takes longer than a search of a small library.
Source: the entry points specification of the Python Packaging User Guide.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from infinimem.errors import UsageError

_LISTS = (".dist-info", ".egg-info")


def plugins(group: str) -> Mapping[str, str]:
    """The entry points of a group ("strategies"), "module:attribute" by name; of two the first."""
    return _installed().get(f"infinimem.{group}", {})


def load(value: str) -> Any:
    """What "module:attribute", or "module", names.

    Raises:
        UsageError: it cannot be imported.
    """
    module, _, attribute = value.partition(":")
    try:
        found = import_module(module)
        return getattr(found, attribute) if attribute else found
    except (Exception, SystemExit) as error:  # whatever the code of others may raise
        raise unusable(value, f"{type(error).__name__}: {error}") from error


def unusable(value: str, why: str) -> UsageError:
    """The error that tells in one line what is wrong with an entry point."""
    return UsageError(f"{value} cannot be used: {' '.join(why.split())}; mend or uninstall its package")


@cache
def _installed() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for place in map(Path, filter(None, sys.path)):
        with suppress(OSError):  # no folder
            if place.samefile("."):  # the current one may be anybody's
                continue
            for package in sorted(name for name in os.listdir(place) if name.endswith(_LISTS)):  # noqa: PTH208
                with suppress(OSError):  # most list nothing
                    data = (place / package / "entry_points.txt").read_bytes()
                    if b"infinimem." in data:
                        _read(data.decode("utf-8", "replace"), found)
    return found


def _read(text: str, found: dict[str, dict[str, str]]) -> None:
    group = ""
    for line in map(str.strip, text.splitlines()):
        name, equals, value = (part.strip() for part in line.partition("="))
        if line.startswith("["):
            group = line.strip("[] ")
        elif equals and group.startswith("infinimem.") and not line.startswith(("#", ";")):
            found.setdefault(group, {}).setdefault(name, value.partition("[")[0].strip())
