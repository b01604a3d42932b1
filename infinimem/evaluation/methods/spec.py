"""Methods as people name them: `infini-h:markdown_length=1000:feed=turn`."""

from __future__ import annotations

import dataclasses
import json
import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from infinimem.errors import SettingsError, UsageError
from infinimem.evaluation.methods.groups import GROUPS, spelled_out
from infinimem.settings import Settings, parse_settings


@dataclass(frozen=True)
class Way:
    """How one of the project's own methods works.

    Args:
        strategy: keeps the library.
        ranked_by: the reader whose evidence is scored where nothing is answered; None for `Memory.retrieve`.
        answered_by: the reader whose evidence is answered from, likewise.
        draws: whether anything is made of what was said.
    """

    strategy: str
    ranked_by: str | None = None
    answered_by: str | None = None
    draws: bool = True


OWN: Mapping[str, Way] = {
    "infini": Way("infini", "agent", "agent"),
    "infini-h": Way("infini", "hybrid", "hybrid"),
    "infini-summary": Way("infini", "summary", "summary"),
    "infini-bm25": Way("infini", "bm25", "bm25"),
    "infini-retrieve": Way("infini"),
    "infini-turns": Way("infini", draws=False),
    "allmem": Way("allmem", None, "topology"),
}
"""The project's own methods; the reader `topology` asks no model."""
BASELINES: Mapping[str, Collection[str]] = {
    "none": (),
    "full": (),
    "recent": (),
    "grep": (),
    "bm25": ("language",),
    "dense": ("embedder",),
    "hybrid": ("embedder", "language"),
}
"""What they are compared with, each with the settings that it takes."""
NAMES = (*OWN, *BASELINES)

_GROUPS: Mapping[str, Sequence[str]] = {"infini": ("infini", "search", "reader"), "allmem": ("allmem",)}
"""Of settings, by strategy."""
_TAKEN = frozenset({"reader.name", "reader.evidence_budget", "reader.retrieve_budget"})
"""What the name of a method says already, and what is the same for all methods of a run."""
_BUILDS = frozenset({"infini", "allmem", "search.language"})
"""Groups and settings that change the library itself; all others change how it is read."""
_READS = frozenset(
    f"allmem.{key}"
    for key in (
        *("anchors", "candidates", "hops", "final", "block_tokens"),
        *("visibility", "expand", "recovery_links", "type_priority", "successors_first"),
    )
)
"""What does not, of these groups."""
_LINKED = frozenset({"allmem"})
"""Strategies that write by nearness: their library is another one with another embedder."""
_KNOWN = ", ".join((*NAMES, *GROUPS))
_UNFIT = re.compile(r"[^\w.=,-]+")

Groups = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Spec:
    """A method with its settings.

    Args:
        text: as it was asked for.
        name: one of `NAMES`.
        settings: by group of infinimem.toml.
        embedder: its name; None for the run's.
    """

    text: str
    name: str
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    embedder: str | None = None

    @property
    def file(self) -> str:
        """Fit for a file's name, and different for different methods."""
        return _fit(self.text)

    @property
    def way(self) -> Way | None:
        """How it works, if it is one of the project's own."""
        return OWN.get(self.name)

    @property
    def draws(self) -> bool:
        """Whether a model makes something of what was said."""
        return self.way is not None and self.way.draws

    @property
    def linked_by(self) -> str | None:
        """The embedder that the library is made with, where it hangs on one and the method names it."""
        return self.embedder if self.way is not None and self.way.strategy in _LINKED else None

    @property
    def library(self) -> str:
        """A name that methods with the same library share, fit for a file's."""
        assert self.way is not None
        settings = (
            f"{group}.{key}={value}"
            for group, values in self.building.items()
            for key, value in values.items()
        )
        linked = () if self.linked_by is None else (f"embedder={self.linked_by}",)
        first = self.way.strategy if self.draws else self.name
        return _fit(":".join((first, *settings, *linked)))

    @property
    def takes_embedder(self) -> bool:
        """Whether its vectors come from an embedder that can be named."""
        return _takes_embedder(self.name)

    @property
    def building(self) -> Groups:
        """The settings under which the library is made."""
        return _some(self.settings, builds=True)

    @property
    def parsed(self) -> Settings:
        """All settings, those that it names and the defaults."""
        return parse_settings(self.toml().encode(), f"method {self.name}")

    def toml(self, building: bool = False) -> str:
        """An infinimem.toml with the settings, or with those alone under which the library is made."""
        groups = self.building if building else self.settings
        lines = [] if self.way is None else [f"strategy = {_toml(self.way.strategy)}"]
        lines += [
            line
            for group, values in groups.items()
            for line in (f"[{group}]", *(f"{key} = {_toml(value)}" for key, value in values.items()))
        ]
        return "\n".join([*lines, ""])


def parse(text: str) -> Spec:
    """A method and its settings.

    Args:
        text: a name, and `:key=value` for each setting; a key is that of infinimem.toml, as `group.key` where
            two groups have it.

    Raises:
        UsageError: an unknown name or key, or a value that does not fit; the line lists what there is.
    """
    name, *parts = (part.strip() for part in text.strip().split(":"))
    if name not in NAMES:
        raise UsageError(f"no method is called {name!r}; there are {_KNOWN}")
    pairs = [part.partition("=") for part in parts]
    given: dict[str, str] = {}
    for key, equals, value in pairs:
        if not (key and equals and value):
            raise UsageError(f"method {text!r}: a setting is written key=value, for example {name}:key=1")
        if key in given:
            raise UsageError(f"method {text!r} has {key} twice; give it once")
        given[key] = value
    embedder = given.pop("embedder", None) if _takes_embedder(name) else None
    groups: Groups = {}
    for key, value in given.items():
        group, setting = _place(name, key)
        groups.setdefault(group, {})[setting] = _value(value)
    spec = Spec(":".join((name, *parts)), name, groups, embedder)
    try:
        spec.parsed  # noqa: B018 - to be told now what does not fit
    except SettingsError as error:
        raise UsageError(str(error)) from error
    return spec


def parse_all(texts: Sequence[str]) -> tuple[Spec, ...]:
    """Several methods, or groups of them.

    Raises:
        UsageError: as `parse`; none at all, or one of them twice.
    """
    specs = tuple(parse(text) for text in spelled_out(texts) if text.strip())
    if not specs:
        raise UsageError(f"no method is named; there are {_KNOWN}")
    files = [spec.file for spec in specs]
    for spec in specs:
        if files.count(spec.file) > 1:
            raise UsageError(f"method {spec.text!r} is named twice; name it once")
    return specs


def _takes_embedder(name: str) -> bool:
    return name in OWN or "embedder" in BASELINES[name]


def _place(name: str, key: str) -> tuple[str, str]:
    """Group and name of a setting."""
    if name not in OWN:
        if key in BASELINES[name]:
            return "search", key
        known = ", ".join(BASELINES[name]) or "it takes none"
        raise UsageError(f"method {name!r} has no setting {key!r}; known here: {known}")
    groups = _GROUPS[OWN[name].strategy]
    places = {f"{group}.{item.name}": (group, item.name) for group in groups for item in _fields(group)}
    found = [place for long, place in places.items() if key in (long, place[1]) and long not in _TAKEN]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"setting {key!r} is in several groups; write {' or '.join(map('.'.join, found))}")
    short = [setting for group, setting in places.values() if f"{group}.{setting}" not in _TAKEN]
    known = ", ".join(["embedder", *dict.fromkeys(short)])
    raise UsageError(f"method {name!r} has no setting {key!r}; known here: {known}")


def _fields(group: str) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(getattr(Settings(), group))


def _value(text: str) -> Any:
    """A number or truth value as TOML writes it, else the text itself."""
    try:
        found = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
    return found if isinstance(found, bool | int | float) else text


def _some(groups: Mapping[str, Mapping[str, Any]], builds: bool) -> Groups:
    chosen: Groups = {}
    for group, values in sorted(groups.items()):
        for key, value in sorted(values.items()):
            long = f"{group}.{key}"
            if (bool(_BUILDS & {group, long}) and long not in _READS) == builds:
                chosen.setdefault(group, {})[key] = value
    return chosen


def _fit(text: str) -> str:
    return _UNFIT.sub("_", text)


def _toml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)  # of a number, a truth value and a text also TOML
