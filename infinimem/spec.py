"""What other packages add by entry points, and what the program knows of a strategy: a row in its own folder.

A row is read whenever a library is opened, so its module imports nothing but this one and settings
(docs/STRATEGIES.md). An entry point is installed code, trusted as all packages of the environment are. The
lists are read here: importing importlib.metadata takes longer than a search of a small library.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from infinimem.errors import UsageError, meant

DEFAULT = "infini"  # the strategy of a library that names none

MEMORIES = "memories/"
"""A model's own files, which no strategy keeps (docs/MEMORY_TOOL.md): no line of one is an entry."""
SHARED = ("evidence/", "journal/", "CURRENT.md", "INBOX.md", MEMORIES, ".infinimem/")
"""Folders, and files, that are no strategy's."""

PROMPT, REPLY, SUMMARY, TOPIC = 350, 60, 60, 2000
"""Tokens that an estimate reckons with: instructions of one call, an answer or a verdict, a row of a catalog,
the lines of a document if nothing is known of it."""

_PREFIX = re.compile(r"[a-z]{1,8}\Z")
_LISTS = (".dist-info", ".egg-info")


def plugins(group: str) -> Mapping[str, str]:
    """Return the entry points of a group ("strategies"), "module:attribute" by name; of two the first."""
    return _installed().get(f"infinimem.{group}", {})


def load(value: str) -> Any:
    """Return what "module:attribute", or "module", names; UsageError if it cannot be imported."""
    module, _, attribute = value.partition(":")
    try:
        code = import_module(module)
        return getattr(code, attribute) if attribute else code
    except (Exception, SystemExit) as error:  # whatever the code of others may raise
        raise unusable(value, f"{type(error).__name__}: {error}") from error


def unusable(value: str, why: str) -> UsageError:
    """Return the error that tells in one line what is wrong with an entry point."""
    return UsageError(f"{value} cannot be used: {' '.join(why.split())}; mend or uninstall its package")


@cache
def _installed() -> dict[str, dict[str, str]]:
    groups: dict[str, dict[str, str]] = {}
    for place in map(Path, filter(None, sys.path)):
        with suppress(OSError):  # no folder
            if place.samefile("."):  # the current one may be anybody's
                continue
            for package in sorted(name for name in os.listdir(place) if name.endswith(_LISTS)):  # noqa: PTH208
                with suppress(OSError):  # most list nothing
                    data = (place / package / "entry_points.txt").read_bytes()
                    if b"infinimem." in data:
                        _read(data.decode("utf-8", "replace"), groups)
    return groups


def _read(text: str, groups: dict[str, dict[str, str]]) -> None:
    group = ""
    for line in map(str.strip, text.splitlines()):
        name, equals, value = (part.strip() for part in line.partition("="))
        if line.startswith("["):
            group = line.strip("[] ")
        elif equals and group.startswith("infinimem.") and not line.startswith(("#", ";")):
            groups.setdefault(group, {}).setdefault(name, value.partition("[")[0].strip())


@dataclass(frozen=True)
class Kind:
    """A kind of records: whole files without signed lines, with ids like "u-000213-01". `source` is what a
    header calls another record that it was made of; `alone`: no two of them hold one turn."""

    name: str
    prefix: str
    folder: str
    source: str = "record"
    prose: bool = False
    alone: bool = False


@dataclass(frozen=True)
class Way:
    """How a method in `infinimem bench` works: readers whose evidence is ranked, and answered from; None is
    `Memory.retrieve`, "search" the search tool. Unless it `draws`, nothing is made of what was said."""

    strategy: str
    ranked_by: str | None = None
    answered_by: str | None = None
    draws: bool = True
    preset: str = ""


@dataclass(frozen=True)
class StrategySpec:
    """A strategy's row; docs/STRATEGIES.md tells of its fields in a table."""

    name: str
    strategy: str
    writes: tuple[str, ...]
    archived: str
    texts: str = ""
    buffer: str | None = None
    kinds: tuple[Kind, ...] = ()
    links: tuple[str, ...] = ()
    ledgers: tuple[str, ...] = ()
    settings: type[Any] | None = None
    presets: Mapping[str, Mapping[str, Mapping[str, object]]] = field(default_factory=dict)
    readers: tuple[str, ...] = ()
    estimate: Callable[[int, int, Any], tuple[int, int, int]] | None = None
    methods: Mapping[str, Way] = field(default_factory=dict)
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    takes: tuple[str, ...] = ()
    reads: frozenset[str] = frozenset()
    sparse: bool = False
    near: bool = False

    def make(self, llm: object, settings: object) -> Any:
        """Import the strategy, and return one with this model (llm/base.py) and the library's settings."""
        return load(self.strategy)(llm, settings)

    @property
    def live(self) -> tuple[str, ...]:
        return tuple(kind.folder for kind in self.kinds) or self.writes

    @property
    def record_folders(self) -> tuple[str, ...]:
        return (*(kind.folder for kind in self.kinds), self.archived)

    def kind_of(self, name: str) -> Kind | None:
        prefix = name.partition("-")[0]
        return next((kind for kind in self.kinds if kind.prefix == prefix), None)

    @property
    def folders(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.writes, *self.live, self.archived)))

    @property
    def has_entries(self) -> bool:
        """Tell whether it keeps signed lines; else it keeps records."""
        return not self.kinds

    @property
    def lists_turns(self) -> bool:
        """Tell whether the store lists what it looked at; else a turn without a record is still to be."""
        return self.sparse or self.has_entries


def strategies() -> Mapping[str, StrategySpec]:
    """Return all that can be used, by name: the default first, then ours, then those of other packages."""
    return _rows()[0]


def spec_of(name: str) -> StrategySpec:
    """Return a strategy's row; UsageError if there is none, or if a package that adds it is broken."""
    if name not in (usable := strategies()):
        unknown = f"no strategy is called {name!r}; there are {', '.join(usable)}{meant(name, usable)}"
        raise UsageError(broken().get(name, unknown))
    return usable[name]


def broken() -> Mapping[str, str]:
    """Return why strategies that packages add cannot be used, a line each, by name."""
    return _rows()[1]


@cache
def _rows() -> tuple[dict[str, StrategySpec], dict[str, str]]:
    folders = (file.parent.name for file in (Path(__file__).parent / "strategies").glob("*/spec.py"))
    usable: dict[str, StrategySpec] = {}
    for name in sorted(folders, key=lambda name: (name != DEFAULT, name)):
        usable[name] = import_module(f"infinimem.strategies.{name}.spec").SPEC
    errors: dict[str, str] = {}
    for name, value in sorted(plugins("strategies").items()):
        if name not in usable:
            try:
                spec = load(value)
                if why := next(_faults(name, spec, usable), ""):
                    raise unusable(value, why)
                usable[name] = spec
            except UsageError as error:
                errors[name] = str(error)
    return usable, errors


def _faults(name: str, spec: object, others: Mapping[str, StrategySpec]) -> Iterator[str]:
    """Yield why a row of another package cannot stand with the others: no folder is two strategies'."""
    if not isinstance(spec, StrategySpec) or spec.name != name:
        yield f"it is no StrategySpec of the name {name}"
        return
    if spec.has_entries:
        yield "it names no kinds of records: topics, the folder of signed lines, is taken"
    taken = (*SHARED, *(folder for other in others.values() for folder in other.folders))
    for folder in spec.folders:
        if not folder.startswith(spec.writes):
            yield f"its folder {folder} is none of those that it writes to"
        if any(folder.startswith(one) or one.startswith(folder) for one in taken) or folder[-1:] != "/":
            yield f"its folder {folder!r} is another's, or ends in no /"
    prefixes = {kind.prefix for other in others.values() for kind in other.kinds}
    for kind in spec.kinds:
        if kind.prefix in prefixes or not _PREFIX.match(kind.prefix):
            yield f"the prefix {kind.prefix!r} of its records is another's, or not of letters a-z"


@dataclass(frozen=True)
class Folders:
    """Folders of all strategies, for `str.startswith`, and a pattern of records' names; `owned` are those
    that the program writes, `whole` those of files without signed lines."""

    owned: tuple[str, ...]
    texts: tuple[str, ...]
    records: tuple[str, ...]
    archives: tuple[str, ...]
    ledgers: tuple[str, ...]
    whole: tuple[str, ...]
    names: str


@cache
def folders() -> Folders:
    """Return the folders of all strategies that can be used."""
    rows = strategies().values()
    keepers = [spec for spec in rows if not spec.has_entries]
    texts = tuple(spec.texts for spec in rows if spec.texts)
    ledgers = (*(folder for spec in keepers for folder in spec.writes), *texts)
    prefixes = "|".join(sorted(kind.prefix for spec in keepers for kind in spec.kinds))
    return Folders(
        owned=(*(folder for spec in rows for folder in spec.folders), *texts, *SHARED[:4]),
        texts=texts,
        records=tuple(folder for spec in keepers for folder in spec.record_folders),
        archives=tuple(spec.archived for spec in keepers),
        ledgers=ledgers,
        whole=(*ledgers, MEMORIES),
        names=rf"(?:{prefixes})-0*([0-9]{{1,18}})(?:-[0-9]+)?",
    )


def texts_of(doc_id: str) -> tuple[str, ...]:
    """Return the ids that a text of a document has; also of an archived one."""
    told = (one for one in strategies().values() if one.texts and doc_id.startswith(one.folders))
    return tuple(one.texts + doc_id.split("/", 1)[1] for one in told)
