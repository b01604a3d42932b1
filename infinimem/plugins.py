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
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from infinimem.errors import UsageError

_LISTS = (".dist-info", ".egg-info")


@dataclass(frozen=True)
class Plugin:
    """An entry point.

    Args:
        name: what it adds.
        value: "module:attribute".
        package: the folder of its package's metadata ("toy-1.0.dist-info").
    """

    name: str
    value: str
    package: str

    def load(self) -> Any:
        """What it stands for.

        Raises:
            UsageError: it cannot be imported.
        """
        try:
            return load(self.value)
        except (Exception, SystemExit) as error:  # whatever the code of others may raise
            raise self.broken(f"{type(error).__name__}: {error}") from error

    def broken(self, why: str) -> UsageError:
        """The error that says so in one line."""
        where = f"{self.name!r} of {self.package} ({self.value})"
        return UsageError(f"{where} cannot be used: {' '.join(why.split())}; mend or uninstall that package")


def load(value: str) -> Any:
    """The attribute that "module:attribute" names."""
    module, _, attribute = value.partition(":")
    return getattr(import_module(module), attribute)


def plugins(group: str) -> Mapping[str, Plugin]:
    """The entry points of a group ("strategies") by name; of one name the first on sys.path."""
    return _installed().get(f"infinimem.{group}", {})


@cache
def _installed() -> dict[str, dict[str, Plugin]]:
    found: dict[str, dict[str, Plugin]] = {}
    for place in map(Path, filter(None, sys.path)):
        with suppress(OSError):  # no folder
            if place.samefile("."):  # the current one may be anybody's
                continue
            for package in sorted(name for name in os.listdir(place) if name.endswith(_LISTS)):  # noqa: PTH208
                with suppress(OSError, UnicodeDecodeError):  # most list nothing
                    _read((place / package / "entry_points.txt").read_text("utf-8"), package, found)
    return found


def _read(text: str, package: str, found: dict[str, dict[str, Plugin]]) -> None:
    group = ""
    for line in map(str.strip, text.splitlines()):
        name, equals, value = (part.strip() for part in line.partition("="))
        if line.startswith("["):
            group = line.strip("[] ")
        elif equals and group.startswith("infinimem.") and not line.startswith(("#", ";")):
            plugin = Plugin(name, value.partition("[")[0].strip(), package)
            found.setdefault(group, {}).setdefault(name, plugin)
