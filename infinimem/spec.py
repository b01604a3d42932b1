"""What the program knows of a strategy: one row, `SPEC` in the strategy's own folder (docs/STRATEGIES.md).

Ours are the folders strategies/*/ that have a spec.py, others come from packages (plugins.py). A row is read
whenever a library is opened, so its module imports nothing but this one and settings; what it names as
"module:attribute" is imported when it is used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from infinimem.errors import UsageError, meant
from infinimem.plugins import load, plugins, unusable

DEFAULT = "infini"
"""The strategy of a library that names none."""

MEMORIES = "memories/"
"""A model's own files, which no strategy keeps (docs/MEMORY_TOOL.md): no line of one is an entry."""
SHARED = ("evidence/", "journal/", MEMORIES, ".infinimem/")
"""Folders that are no strategy's."""

PROMPT, REPLY, SUMMARY, TOPIC = 350, 60, 60, 2000
"""Tokens that an estimate reckons with: instructions of one call, an answer or a verdict, a row of a catalog,
the lines of a document where nothing is known of it."""

_PREFIX = re.compile(r"[a-z]{1,8}\Z")


@dataclass(frozen=True)
class Kind:
    """A kind of records: whole files without signed lines, whose headers name what they come from.

    Args:
        name: "unit".
        prefix: of their ids: "u" for "u-000213" and "u-000213-01". The number is the seq of a turn, the first
            of those that the record comes from.
        folder: of those that readers see by default; archived ones lie in the strategy's.
        source: what a record's header calls another one that it was made of.
        prose: whether a record has text of its own above what it quotes.
    """

    name: str
    prefix: str
    folder: str
    source: str = "record"
    prose: bool = False


@dataclass(frozen=True)
class Way:
    """How one of a strategy's methods in `infinimem bench` works.

    Args:
        strategy: keeps the library.
        ranked_by: the reader whose evidence is scored where nothing is answered; None for `Memory.retrieve`,
            "search" for the search tool over a folder of notes.
        answered_by: the reader whose evidence is answered from, likewise.
        draws: whether anything is made of what was said.
    """

    strategy: str
    ranked_by: str | None = None
    answered_by: str | None = None
    draws: bool = True


@dataclass(frozen=True)
class StrategySpec:
    """A strategy's row.

    Args:
        name: of the strategy.
        strategy: "module:class" (strategies/base.py); called with a model and settings.
        writes: the folders ("topics/") that its plans may write to.
        archived: the folder of what readers see on request.
        buffer: a document beside its folders that readers see too.
        kinds: of its records; none if it keeps signed lines, and a list of the evidence that they were drawn
            from.
        links: types of the links between its records, in the order in which they are followed. "version"
            leads from a record to those that it stands for.
        ledgers: ids of its documents that list records, a JSON object a line.
        settings: the type of its group in infinimem.toml, a dataclass with defaults whose fields are marked
            as those of settings.py are.
        readers: its own ways to collect evidence, beside those that all strategies share.
        estimate: calls of a model, and tokens in and out, to derive all from turns; given the tokens of the
            turns together, how many they are (at least one), and its settings. None where no model is asked.
        methods: those of `infinimem bench`, by name.
        groups: lists of methods, with their settings, that are asked for in one word; one that several
            strategies name holds the methods of all of them.
        takes: groups of settings that its methods take beside its own.
        reads: names of its settings that change how the library is read, not what is in it.
        sparse: whether it makes nothing of most turns; the store then lists those that it looked at.
        near: whether it writes by nearness, so that its library is another one with another embedder.
    """

    name: str
    strategy: str
    writes: tuple[str, ...]
    archived: str
    buffer: str | None = None
    kinds: tuple[Kind, ...] = ()
    links: tuple[str, ...] = ()
    ledgers: tuple[str, ...] = ()
    settings: type[Any] | None = None
    readers: tuple[str, ...] = ()
    estimate: Callable[[int, int, Any], tuple[int, int, int]] | None = None
    methods: Mapping[str, Way] = field(default_factory=dict)
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    takes: tuple[str, ...] = ()
    reads: frozenset[str] = frozenset()
    sparse: bool = False
    near: bool = False

    def make(self, llm: object, settings: object) -> Any:
        """The strategy, which is imported now.

        Args:
            llm: the model that helps it (llm/base.py).
            settings: those of the library.

        Raises:
            UsageError: it cannot be imported.
        """
        return load(self.strategy)(llm, settings)

    @property
    def live(self) -> tuple[str, ...]:
        """The folders of what readers see by default."""
        return tuple(kind.folder for kind in self.kinds) or self.writes

    @property
    def record_folders(self) -> tuple[str, ...]:
        """Those of its records."""
        return (*(kind.folder for kind in self.kinds), self.archived)

    def kind_of(self, name: str) -> Kind | None:
        """The kind of a record, by its id."""
        prefix = name.partition("-")[0]
        return next((kind for kind in self.kinds if kind.prefix == prefix), None)

    @property
    def folders(self) -> tuple[str, ...]:
        """All folders that it keeps."""
        return tuple(dict.fromkeys((*self.writes, *self.live, self.archived)))

    @property
    def has_entries(self) -> bool:
        """Whether it keeps signed lines; else it keeps records."""
        return not self.kinds

    @property
    def lists_turns(self) -> bool:
        """Whether the store lists what it looked at; else a turn without a record is still to be."""
        return self.sparse or self.has_entries


def strategies() -> Mapping[str, StrategySpec]:
    """All that can be used, by name: the default first, then ours, then those of other packages."""
    return _found()[0]


def spec_of(name: str) -> StrategySpec:
    """A strategy's row.

    Raises:
        UsageError: there is none, or a package that adds it is broken.
    """
    if name not in (found := strategies()):
        unknown = f"no strategy is called {name!r}; there are {', '.join(found)}{meant(name, found)}"
        raise UsageError(broken().get(name, unknown))
    return found[name]


def broken() -> Mapping[str, str]:
    """Names of strategies that packages add and that cannot be used, with one line that says why."""
    return _found()[1]


@cache
def _found() -> tuple[dict[str, StrategySpec], dict[str, str]]:
    """Those that can be used, and why others cannot."""
    folders = (file.parent.name for file in (Path(__file__).parent / "strategies").glob("*/spec.py"))
    found: dict[str, StrategySpec] = {}
    for name in sorted(folders, key=lambda name: (name != DEFAULT, name)):
        found[name] = import_module(f"infinimem.strategies.{name}.spec").SPEC
    errors: dict[str, str] = {}
    for name, value in sorted(plugins("strategies").items()):
        if name not in found:
            try:
                spec = load(value)
                if why := next(_faults(name, spec, found), ""):
                    raise unusable(value, why)
                found[name] = spec
            except UsageError as error:
                errors[name] = str(error)
    return found, errors


def _faults(name: str, spec: object, others: Mapping[str, StrategySpec]) -> Iterator[str]:
    """Why a row of another package cannot stand beside the others: no folder is two strategies'."""
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


# ── folders of all strategies: each is given to str.startswith ──────────────────────────────────


@cache
def owned_folders() -> tuple[str, ...]:
    """What the program writes in an initialised library; all else but CURRENT is a person's."""
    return (*(folder for spec in strategies().values() for folder in spec.folders), "evidence/", "journal/")


@cache
def record_folders() -> tuple[str, ...]:
    """Of records that name their evidence."""
    return tuple(folder for spec in _of_records() for folder in (*spec.live, spec.archived))


@cache
def archive_folders() -> tuple[str, ...]:
    """Those of them that left what readers see."""
    return tuple(spec.archived for spec in _of_records())


@cache
def ledger_folders() -> tuple[str, ...]:
    """Of records, and of what is kept beside them: whole files that hold no signed line."""
    return tuple(folder for spec in _of_records() for folder in spec.writes)


@cache
def whole_folders() -> tuple[str, ...]:
    """All folders of whole files."""
    return (*ledger_folders(), MEMORIES)


@cache
def record_name() -> str:
    """A pattern of the names by which records of any kind are called, with their number as a group."""
    prefixes = sorted(kind.prefix for spec in _of_records() for kind in spec.kinds)
    return rf"(?:{'|'.join(prefixes)})-0*([0-9]{{1,18}})(?:-[0-9]+)?"


def _of_records() -> list[StrategySpec]:
    return [spec for spec in strategies().values() if not spec.has_entries]
