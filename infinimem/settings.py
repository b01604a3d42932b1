"""Settings: what infinimem.toml may say, with defaults; which are in force, and where each comes from.

infinimem.toml is owned by people and never written back. What is harmless comes from the library's own. All
else comes from the first of: the environment, config.toml of this user, and infinimem.toml if its owner
trusts it (user_folders.py).
"""

from __future__ import annotations

import dataclasses
import math
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, get_args, get_type_hints
from urllib.parse import urlsplit

from infinimem import user_folders
from infinimem.errors import FormatTooNew, SettingsError, escape, meant
from infinimem.spec import DEFAULT, broken, plugins, strategies
from infinimem.user_folders import SETTINGS as SETTINGS

FORMAT = 1  # the format of the folder that this version reads and writes (docs/FORMAT.md)


class HarmlessIf(frozenset[object]):
    """Marks a setting of which these values, or any, may act in a library that nobody trusted."""


class OneOf(NamedTuple):
    """Marks a setting that is one of the names which a function gives: packages may add to them."""

    names: Callable[[], Iterable[str]]


class Least(NamedTuple):
    """Marks a number that is at least so much; others are at least 0."""

    number: float


T = TypeVar("T")
Harmless = Annotated[T, HarmlessIf()]
"""A setting decides where keys, questions or conversations go, or what is run, unless it is marked so."""
Portion = Annotated[int, HarmlessIf(), Least(1)]  # tokens by which text is cut
Signed = Annotated[float, HarmlessIf(), Least(-math.inf)]


@dataclass(frozen=True)
class ModelSettings:
    """[llm]: which model answers. Keys come from the environment only."""

    model: str | None = None
    base_url: str | None = None
    timeout: Annotated[float, HarmlessIf(range(1, 601))] = 60.0
    """Seconds for one try: from looking up the server's name to the last byte of its reply."""
    retries: Annotated[int, HarmlessIf(range(11))] = 4
    """Repeats of a try that failed in transport (429, 5xx, no answer within `timeout`)."""
    replies_days: float = 7.0  # how long replies are kept that nobody asks for again; 0 keeps none
    replies_mb: float = 200.0  # what kept replies of a library may take, in MiB; the oldest go first


LANGUAGES = """
arabic armenian basque catalan danish dutch english finnish french german greek hindi hungarian
indonesian irish italian lithuanian nepali norwegian portuguese romanian russian serbian spanish swedish
tamil turkish yiddish
""".split()
"""Those with a stemmer."""


@dataclass(frozen=True)
class SearchSettings:
    """[search]: what is ranked first (docs/SEARCH.md); each of the last five may be switched off."""

    language: Annotated[str, HarmlessIf(), OneOf(LANGUAGES.copy)] = "english"
    """Whose endings words are freed of; a change indexes anew."""
    people: Harmless[bool] = True
    dates: Harmless[bool] = True
    statements: Harmless[bool] = True
    newest: Harmless[bool] = True
    vectors: Harmless[bool] = True


EMBEDDERS = ("lexical", "static", "minilm", "openai")


def embedder_names() -> tuple[str, ...]:
    """Return ours, then those of other packages."""
    return (*EMBEDDERS, *sorted(plugins("embedders").keys() - set(EMBEDDERS)))


@dataclass(frozen=True)
class EmbedderSettings:
    """[embedder]: what gives texts vectors. Keys come from the environment only."""

    name: Annotated[str, HarmlessIf(("lexical", "static")), OneOf(embedder_names)] = "lexical"
    """Words alone; local models; any server of OpenAI's protocol; or a package's."""
    model: str | None = None  # openai: a name that the server knows
    path: str | None = None  # static, minilm: the folder of a model on this machine
    base_url: str | None = None  # openai: of the API; None takes OPENAI_BASE_URL, then OpenAI itself


def reader_names() -> tuple[str, ...]:
    """Return those that all strategies share, then the strategies' own."""
    own = (name for spec in strategies().values() for name in spec.readers)
    return tuple(dict.fromkeys(("auto", "agent", "hybrid", "bm25", "summary", *own)))


@dataclass(frozen=True)
class ReaderSettings:
    """[reader]: how evidence is collected. Budgets are tokens."""

    name: Annotated[str, HarmlessIf(), OneOf(reader_names)] = "auto"  # auto: the first of the strategy's
    agent: Harmless[Literal["answering", "paper"]] = "answering"
    """The agentic reader: whoever answers may ask for more, or one model searches and another answers."""
    max_iterations: Harmless[int] = 7
    """Requests to the model that one question, or its search, costs with the agentic reader, at most."""
    min_retrieval_tokens: Harmless[int] = 500
    """Below which what the search of "paper" names is supplemented by partitions, `fallback_topk` of them."""
    fallback_topk: Harmless[int] = 5
    search_limit: Harmless[int] = 10
    evidence_budget: Harmless[int] = 4096
    retrieve_budget: Harmless[int] = 1024


@dataclass(frozen=True)
class WriteSettings:
    """[write]: what becomes of what is recorded."""

    approve: Harmless[bool] = False
    """Whether a person approves it, and what is extracted, before a model that does not extract sees it."""


@dataclass(frozen=True)
class MemoryToolSettings:
    """[memory_tool]: the files that a model keeps in memories/ (docs/MEMORY_TOOL.md)."""

    observe: bool = False
    """Whether what it writes there is recorded as said by an AI, too, and extracted from."""


@dataclass(frozen=True)
class HookSettings:
    """[hooks]: what hooks of agent programs recall and spend (docs/CLAUDE_CODE.md)."""

    recall: Harmless[Literal["first", "prompt", "start", "off"]] = "first"
    """first: once, at a session's first prompt; prompt: at its start and at each prompt; start: only at its
    start; off: never."""
    budget: Portion = 800  # tokens of the lines that are recalled
    daily_tokens: int = 200_000
    """Once the library's calls of a day took so many, hooks record and have no model draw from it."""


@dataclass(frozen=True)
class NotesSettings:
    """[notes]: what of a person's own files counts as notes."""

    ignore: Harmless[tuple[str, ...]] = ()
    """Patterns as in .gitignore of what is passed over; never of the program's own files."""


def _preset_names() -> tuple[str, ...]:
    """Return the presets of all strategies, and "" for none."""
    return ("", *dict.fromkeys(name for spec in strategies().values() for name in spec.presets))


@dataclass(frozen=True)
class Settings:
    """All groups, and the format number of the folder."""

    format: Harmless[int] = FORMAT
    strategy: Annotated[str, HarmlessIf(), OneOf(strategies)] = DEFAULT  # which system keeps the library
    preset: Annotated[str, HarmlessIf(), OneOf(_preset_names)] = ""
    """A set of values by name that the strategy brings; what is set beside it goes before them."""
    git: bool = False  # whether each receipt becomes a commit of the repository around the folder
    block_ids: Harmless[bool] = False
    """Whether the line of an entry ends in its number as Obsidian's block id: ^41."""
    llm: ModelSettings = field(default_factory=ModelSettings)
    search: SearchSettings = field(default_factory=SearchSettings)
    embedder: EmbedderSettings = field(default_factory=EmbedderSettings)
    reader: ReaderSettings = field(default_factory=ReaderSettings)
    write: WriteSettings = field(default_factory=WriteSettings)
    memory_tool: MemoryToolSettings = field(default_factory=MemoryToolSettings)
    hooks: HookSettings = field(default_factory=HookSettings)
    notes: NotesSettings = field(default_factory=NotesSettings)
    own: tuple[Any, ...] = ()
    """Groups of strategies, each of its type; those that are not here have their defaults."""

    def of(self, group: type[T]) -> T:
        """Return the group of a strategy."""
        return next((held for held in self.own if isinstance(held, group)), None) or group()


def parse_settings(data: bytes, where: str = SETTINGS) -> Settings:
    """Read infinimem.toml; raises as `parse_values`."""
    return _settings(_with_preset(parse_values(data, where)))


def parse_values(data: bytes, where: str = SETTINGS) -> dict[str, object]:
    """Return the settings that the bytes of a file give, by name: "git", "llm.model".

    Raises:
        SettingsError: not TOML, an unknown name, or a value of the wrong type or range.
        FormatTooNew: written by a later version.
    """
    try:
        values = tomllib.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:  # also numbers and nesting beyond all use
        raise SettingsError(
            f"{where} is not valid TOML ({escape(error, 200)}); mend the line or restore the file"
        ) from error
    number = values.get("format", FORMAT)
    if isinstance(number, int) and number > FORMAT:
        raise FormatTooNew(f"{where} says format {number}, this version knows {FORMAT}; upgrade infinimem")
    return dict(_values(values, where))


def _with_preset(values: Mapping[str, object]) -> dict[str, object]:
    """Return the values with those of the preset that they name, for all strategies; given ones stand, and
    none that needs trust comes of a preset."""
    name, strategy = values.get("preset"), str(values.get("strategy", Settings.strategy))
    presets = strategies()[strategy].presets
    if name and name not in presets:
        known = f"it has {', '.join(presets)}" if presets else "it has none"
        raise SettingsError(f"{strategy} has no preset {name!r}; {known}")
    rows = {one: spec.presets.get(str(name), {}) for one, spec in strategies().items()}
    others = {one: groups[one] for one, groups in rows.items() if one in groups}
    held = _values({**others, **presets[str(name)]}, f"preset {name}") if name else ()
    return {key: value for key, value in held if is_harmless(key, value)} | dict(values)


def _settings(values: Mapping[str, object]) -> Settings:
    """Return settings from values by name; the others have their defaults."""
    groups: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        group, _, key = name.rpartition(".")
        groups.setdefault(group, {})[key] = value
    made = {name: _groups()[name](**held) for name, held in groups.items() if name}
    own = tuple(made.pop(name) for name in [*made] if name not in Settings.__dataclass_fields__)
    return Settings(**groups.get("", {}), **made, own=own)


def is_harmless(name: str, value: object) -> bool:
    """Tell whether a setting may act in a library that nobody trusted."""
    group, _, key = name.rpartition(".")
    marks = getattr(_hints(_groups()[group])[key], "__metadata__", ())
    return any(not mark or value in mark for mark in marks if isinstance(mark, HarmlessIf))


def defaults() -> dict[str, object]:
    """Return every setting by name, with its default."""
    return {
        f"{group}.{name}".removeprefix("."): getattr(kind, name)
        for group, kind in _groups().items()
        for name in _hints(kind)
    }


@cache
def _groups() -> Mapping[str, Any]:
    hints = get_type_hints(Settings, include_extras=True)
    ours = {name: hint for name, hint in hints.items() if dataclasses.is_dataclass(hint)}
    own = {name: spec.settings for name, spec in strategies().items() if spec.settings}
    return {"": Settings, "llm": ours.pop("llm"), **own, **ours}


@cache
def _hints(group: type) -> Mapping[str, Any]:
    """Return what the settings of a group may be; to find out takes longer than to read infinimem.toml."""
    hints = get_type_hints(group, include_extras=True).items()
    return {name: hint for name, hint in hints if name != "own" and not dataclasses.is_dataclass(hint)}


def _values(values: Mapping[str, Any], where: str, group: str = "") -> Iterator[tuple[str, object]]:
    hints = _hints(_groups()[group])
    inner = [] if group else [name for name in _groups() if name]
    for name, value in values.items():
        if name in hints:
            yield f"{group}.{name}".removeprefix("."), _checked(name, value, hints[name], where)
        elif name not in inner:
            known = sorted((*hints, *inner))
            what = f"unknown setting '{escape(name)}'; known here: {', '.join(known)}{meant(name, known)}"
            raise SettingsError(f"{where}: {what}")
        elif not isinstance(value, dict):
            raise SettingsError(f"{where}: {name} is a group; write it as [{name}]")
        else:
            yield from _values(value, f"{where} [{name}]", name)


def _checked(name: str, value: object, hint: Any, where: str) -> object:
    marks = getattr(hint, "__metadata__", ())
    hint = hint.__origin__ if marks else hint
    if hint == tuple[str, ...] and isinstance(value, list) and all(isinstance(one, str) for one in value):
        return tuple(value)
    named = (tuple(mark.names()) for mark in marks if isinstance(mark, OneOf))
    choices: tuple[Any, ...] = next(named, get_args(hint))
    kinds = choices or (hint,)
    if float in kinds and type(value) is int:
        value = float(value)
    least = next((mark.number for mark in marks if isinstance(mark, Least)), 0)
    if hint == tuple[str, ...]:
        why = "a list of strings is wanted"
    elif choices and all(isinstance(choice, str) for choice in choices):
        if value in choices:
            return value
        unusable = broken().get(str(value)) if name == "strategy" else None
        why = unusable or f"choose one of {', '.join(choices)}{meant(str(value), choices)}"
    elif type(value) not in kinds:
        wanted = " or ".join(kind.__name__ for kind in kinds if kind is not type(None))
        why = f"a {wanted} is wanted"
    elif isinstance(value, int | float) and value < least:
        why = "it cannot be negative" if value < 0 else "nothing fits into that"
    else:
        return value
    raise SettingsError(f"{where}: {name} = {escape(repr(value))}; {why}")


def template(strategy: str | None = None) -> str:
    """Return the infinimem.toml that `init` writes: the settings that people change, commented out."""
    text = Path(__file__).with_name("template.toml").read_text(encoding="utf-8")
    return re.sub("# strategy = .*", f'strategy = "{strategy}"', text) if strategy else text


def often() -> frozenset[str]:
    """Return the settings that people change."""
    return frozenset(parse_values(re.sub(r"(?m)^# (?=\w+ = )", "", template()).encode()))


USER = "config.toml"
LARGEST = 1 << 20  # bytes of config.toml that are read
EITHER = ("embedder.name", "notes.ignore", "llm.timeout", "llm.retries")
"""Harmless settings that config.toml may give, too."""
VARIABLES: Mapping[str, tuple[str, ...]] = {
    "INFINIMEM_MODEL": ("llm.model",),
    "OPENAI_BASE_URL": ("llm.base_url", "embedder.base_url"),
    "INFINIMEM_EMBEDDER": ("embedder.name",),
}
"""Environment variables, and the settings that they give."""


@dataclass(frozen=True)
class Configuration:
    """Settings in force, by name, with their origins: a variable's name, or a file's. Those `suspended` would
    act if the library were trusted; `proposed` are all of infinimem.toml that are not harmless."""

    values: Mapping[str, object] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)
    suspended: Mapping[str, object] = field(default_factory=dict)
    proposed: Mapping[str, object] = field(default_factory=dict)

    @cached_property
    def settings(self) -> Settings:
        return _settings(self.values)

    @property
    def digest(self) -> str:
        """Return the digest of what `trust` would approve."""
        return user_folders.digest_of(self.proposed)

    def suspends_model(self, model: str | None) -> bool:
        """Tell whether a suspended setting would choose the model, or its server, of a call."""
        chosen = model or self.settings.llm.model
        return chosen != "offline" and ("llm.base_url" if chosen else "llm.model") in self.suspended


def configuration(data: bytes = b"", library: Path | None = None, *, trusted: bool = False) -> Configuration:
    """Return what is in force for a library, or for a call that needs none; `trusted` if the caller vouches.
    SettingsError or FormatTooNew if a file or a variable cannot be used."""
    given = parse_values(data, str(library / SETTINGS) if library else SETTINGS)
    proposed = {name: value for name, value in given.items() if not is_harmless(name, value)}
    if library and proposed and not trusted:
        digest = user_folders.digest_of(proposed)
        trusted = user_folders.approved(library) == digest or user_folders.is_named(library)
    layers: list[tuple[str, Mapping[str, object]]] = [
        (SETTINGS, {name: value for name, value in given.items() if trusted or name not in proposed}),
        (USER, _of_user()),
    ]
    for variable, names in VARIABLES.items():
        if value := os.environ.get(variable):
            layers.append((variable, dict.fromkeys(names, value)))
    values: dict[str, object] = {}
    origins: dict[str, str] = {}
    for origin, layer in layers:
        values |= layer
        origins |= dict.fromkeys(layer, origin)
    suspended = {
        name: value for name, value in proposed.items() if name not in values and value != defaults()[name]
    }
    # `git` of config.toml is said of this user's libraries.
    of_user = values.get("git") and origins["git"] == USER
    if library and of_user and not (trusted or user_folders.is_mine(library)):
        del values["git"], origins["git"]
        suspended |= {"git": True} if data else {}
    full = _with_preset(values)
    origins = dict.fromkeys(full, f"preset {values.get('preset')}") | origins
    return Configuration(full, origins, suspended, proposed)


def shown(name: str, value: object) -> str:
    """Return a setting's value on one line; an address without password and query, which may hold a key."""
    if name.endswith("base_url") and value is not None:
        address, mark, _ = str(value).partition("?")
        value = host_of(address) if "@" in str(value) else f"{address.partition('#')[0]}{mark and '?…'}"
    return escape(value)


def host_of(address: str) -> str:
    """Return host and port of an address, nothing else of it, on one line."""
    try:
        return escape(urlsplit(address).netloc.rpartition("@")[2], 300)
    except ValueError:
        return ""


def advice(library: Path, suspended: Mapping[str, object]) -> str:
    """Return one line about settings that do not count."""
    place, names = escape(library, 4096), ", ".join(sorted(suspended))
    return (
        f"{place} is not trusted, so {names} {'do' if len(suspended) > 1 else 'does'} not count here; "
        f"to see what and where to, run: infinimem trust {place}"
    )


def _of_user() -> dict[str, Any]:
    folder = user_folders.user_folder("config")
    if folder is None:
        return {}
    file = folder / USER
    try:
        with file.open("rb") as opened:
            data = opened.read(LARGEST)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise SettingsError(f"{file}: {error.strerror}; mend or remove it") from error
    values, known = parse_values(data, str(file)), defaults()
    if wrong := [name for name in values if is_harmless(name, known[name]) and name not in EITHER]:
        raise SettingsError(f"{file}: {wrong[0]} belongs to a library; set it in its {SETTINGS}")
    return values
