"""Settings: what infinimem.toml may say, with defaults. Owned by people, never written back.

A strategy's group is a type of its own (infinimem/spec.py), checked and marked like those that stand here.
"""

from __future__ import annotations

import dataclasses
import json
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, get_args, get_type_hints

from infinimem.errors import FormatTooNew, SettingsError, escape, meant
from infinimem.plugins import plugins
from infinimem.spec import DEFAULT, broken, strategies

FORMAT = 1
"""The format of the folder that this version reads and writes (docs/FORMAT.md)."""


class HarmlessIf:
    """Marks a setting that may act in a library that nobody trusted (docs/SECURITY.md).

    Args:
        values: those that may; none for any.
    """

    def __init__(self, *values: str) -> None:
        self.values = values


class OneOf:
    """Marks a setting that is one of some names, which packages may add to.

    Args:
        names: gives them.
    """

    def __init__(self, names: Callable[[], Iterable[str]]) -> None:
        self.names = names


class NotZero:
    """Marks a number that cannot be 0, such as a length by which text is cut."""


T = TypeVar("T")
Harmless = Annotated[T, HarmlessIf()]
"""A setting decides where keys, questions or conversations go, or what is run, unless it is marked so."""
Portion = Annotated[int, HarmlessIf(), NotZero()]
"""Tokens by which text is cut."""


@dataclass(frozen=True)
class ModelSettings:
    """[llm]: which model answers. Keys come from the environment only."""

    model: str | None = None
    base_url: str | None = None
    timeout: float = 60.0
    """Seconds for one try: from looking up the server's name to the last byte of its reply."""
    retries: int = 4
    """Repeats of a try that failed in transport (429, 5xx, no answer within `timeout`)."""
    replies_days: float = 7.0
    """How long replies are kept that nobody asks for again; 0 keeps none."""
    replies_mb: float = 200.0
    """What kept replies of a library may take, in MiB; the oldest go first."""


# fmt: off
Language = Literal[
    "arabic", "armenian", "basque", "catalan", "danish", "dutch", "english", "finnish", "french", "german",
    "greek", "hindi", "hungarian", "indonesian", "irish", "italian", "lithuanian", "nepali", "norwegian",
    "portuguese", "romanian", "russian", "serbian", "spanish", "swedish", "tamil", "turkish", "yiddish",
]
# fmt: on
"""Languages with a stemmer."""


@dataclass(frozen=True)
class SearchSettings:
    """[search]: what is ranked first. Each of the last five may be switched off by itself."""

    language: Harmless[Language] = "english"
    """Whose endings words are freed of; a change indexes anew."""
    people: Harmless[bool] = True
    """A question that names one speaker prefers what that one said; "I" is the user."""
    dates: Harmless[bool] = True
    """A question that names a day, month or year prefers entries of that time."""
    statements: Harmless[bool] = True
    """Statements before questions."""
    newest: Harmless[bool] = True
    """Newer before older where scores are equal."""
    vectors: Harmless[bool] = True
    """Nearness in meaning beside words, where the embedder knows more than words."""


EMBEDDERS = ("lexical", "static", "minilm", "openai")


def embedder_names() -> tuple[str, ...]:
    """Ours, then those of other packages."""
    return (*EMBEDDERS, *sorted(plugins("embedders").keys() - set(EMBEDDERS)))


@dataclass(frozen=True)
class EmbedderSettings:
    """[embedder]: what gives texts vectors. Keys come from the environment only."""

    name: Annotated[str, HarmlessIf("lexical", "static"), OneOf(embedder_names)] = "lexical"
    """lexical: words alone, no model; static, minilm: local models; openai: any server of that protocol; or a
    package's."""
    model: str | None = None
    """openai: a name that the server knows."""
    path: str | None = None
    """static, minilm: the folder of a model on this machine."""
    base_url: str | None = None
    """openai: of the API; None takes OPENAI_BASE_URL, then OpenAI itself."""


def reader_names() -> tuple[str, ...]:
    """Those that all strategies share, then the strategies' own."""
    own = (name for spec in strategies().values() for name in spec.readers)
    return tuple(dict.fromkeys(("auto", "agent", "hybrid", "bm25", "summary", *own)))


@dataclass(frozen=True)
class ReaderSettings:
    """[reader]: how evidence is collected. Budgets are tokens."""

    name: Annotated[str, HarmlessIf(), OneOf(reader_names)] = "auto"
    """auto: the first of the strategy's."""
    max_iterations: Harmless[int] = 7
    """Requests to the model that one question costs with the agentic reader, at most."""
    search_limit: Harmless[int] = 10
    evidence_budget: Harmless[int] = 4096
    retrieve_budget: Harmless[int] = 1024


@dataclass(frozen=True)
class MemoryToolSettings:
    """[memory_tool]: the files that a model keeps in memories/ (docs/MEMORY_TOOL.md)."""

    observe: bool = False
    """Whether what it writes there is recorded as said by an AI, too, and drawn from."""


@dataclass(frozen=True)
class HookSettings:
    """[hooks]: what hooks of agent programs recall and spend (docs/CLAUDE_CODE.md)."""

    recall: Harmless[Literal["prompt", "start", "off"]] = "prompt"
    """prompt: at the start of a session and at each prompt; start: only at its start; off: never."""
    budget: Portion = 300
    """Tokens of each part that is recalled."""
    daily_tokens: int = 200_000
    """Once the library's calls of a day took so many, hooks record and have no model draw from it."""


@dataclass(frozen=True)
class NotesSettings:
    """[notes]: what of a person's own files counts as notes."""

    ignore: Harmless[tuple[str, ...]] = ()
    """Patterns as in .gitignore of what is passed over; never of the program's own files."""


@dataclass(frozen=True)
class Settings:
    """All groups, and the format number of the folder."""

    format: Harmless[int] = FORMAT
    strategy: Annotated[str, HarmlessIf(), OneOf(strategies)] = DEFAULT
    """Which system keeps the library."""
    git: bool = False
    """Whether each receipt becomes a commit of the repository around the folder."""
    block_ids: Harmless[bool] = False
    """Whether the line of an entry ends in its number as Obsidian's block id: ^41."""
    llm: ModelSettings = field(default_factory=ModelSettings)
    search: SearchSettings = field(default_factory=SearchSettings)
    embedder: EmbedderSettings = field(default_factory=EmbedderSettings)
    reader: ReaderSettings = field(default_factory=ReaderSettings)
    memory_tool: MemoryToolSettings = field(default_factory=MemoryToolSettings)
    hooks: HookSettings = field(default_factory=HookSettings)
    notes: NotesSettings = field(default_factory=NotesSettings)
    own: tuple[Any, ...] = ()
    """Groups of strategies, each of its type; those that are not here have their defaults."""

    def of(self, group: type[T]) -> T:
        """The group of a strategy."""
        return next((held for held in self.own if isinstance(held, group)), None) or group()


def parse_settings(data: bytes, where: str = "infinimem.toml") -> Settings:
    """Read infinimem.toml.

    Args:
        data: the file's bytes; empty gives the defaults.
        where: name of the file, for messages.

    Raises:
        SettingsError: not TOML, an unknown name, or a value of the wrong type or range.
        FormatTooNew: written by a later version.
    """
    return assembled(parse_values(data, where))


def parse_values(data: bytes, where: str = "infinimem.toml") -> dict[str, object]:
    """The settings that a file gives, by name: "git", "llm.model".

    Args, raises: as `parse_settings`.
    """
    try:
        values = tomllib.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:  # also numbers and nesting beyond all use
        raise SettingsError(
            f"{where} is not valid TOML ({escape(error, 200)}); mend the line or restore the file"
        ) from error
    found = values.get("format", FORMAT)
    if isinstance(found, int) and found > FORMAT:
        raise FormatTooNew(f"{where} says format {found}, this version knows {FORMAT}; upgrade infinimem")
    return dict(_values(values, where))


def assembled(values: Mapping[str, object]) -> Settings:
    """Settings from values by name; the others have their defaults."""
    groups: dict[str, dict[str, Any]] = {}
    top: dict[str, Any] = {}
    for name, value in values.items():
        group, _, key = name.rpartition(".")
        (groups.setdefault(group, {}) if group else top)[key] = value
    made = {name: kind(**held) for name, held in groups.items() if (kind := _group(name))}
    own = tuple(made.pop(name) for name in [*made] if name not in _ours())
    return Settings(**top, **made, own=own)


def is_harmless(name: str, value: object) -> bool:
    """Whether a setting may act in a library that nobody trusted."""
    group, _, key = name.rpartition(".")
    hint = (_hints(_group(group) or Settings) if group else _top())[key]
    marks = [mark for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, HarmlessIf)]
    return any(not mark.values or value in mark.values for mark in marks)


def defaults() -> dict[str, object]:
    """Every setting by name, with its default."""
    top = {name: getattr(Settings, name) for name in _top()}
    return top | {
        f"{name}.{item.name}": item.default
        for name, group in _groups().items()
        for item in dataclasses.fields(group)
    }


@cache
def _hints(group: type) -> Mapping[str, Any]:
    """What the fields of a group may be; to work it out takes longer than to read a library's settings."""
    return get_type_hints(group, include_extras=True)


def _top() -> dict[str, Any]:
    hints = _hints(Settings)
    return {
        name: hint for name, hint in hints.items() if name != "own" and not dataclasses.is_dataclass(hint)
    }


def _ours() -> dict[str, Any]:
    return {name: hint for name, hint in _hints(Settings).items() if dataclasses.is_dataclass(hint)}


def _groups() -> dict[str, Any]:
    """Types of the groups: the model's, the strategies', the others."""
    found, own = _ours(), {name: spec.settings for name, spec in strategies().items() if spec.settings}
    return {"llm": found.pop("llm"), **own, **found}


def _group(name: str) -> Any:
    """The type of a group; None for no group. Strategies are asked last: to know them takes time."""
    return _ours().get(name) or _groups().get(name)


def _values(values: Mapping[str, Any], where: str) -> Iterator[tuple[str, object]]:
    top = _top()
    for name, value in values.items():
        if name in top:
            yield name, _checked(name, value, top[name], where)
        elif (group := _group(name)) is None:
            raise _unknown(name, (*top, *_groups()), where)
        elif not isinstance(value, dict):
            raise SettingsError(f"{where}: {name} is a group; write it as [{name}]")
        else:
            hints = _hints(group)
            for key, held in value.items():
                if key not in hints:
                    raise _unknown(key, hints, f"{where} [{name}]")
                yield f"{name}.{key}", _checked(key, held, hints[key], f"{where} [{name}]")


def _unknown(name: str, known: Iterable[str], where: str) -> SettingsError:
    known = sorted(known)
    return SettingsError(
        f"{where}: unknown setting '{escape(name)}'; known here: {', '.join(known)}{meant(name, known)}"
    )


def _checked(name: str, value: object, hint: Any, where: str) -> object:
    """The value, if it fits its type; whole numbers pass for floats, and no number may be negative."""
    marks = getattr(hint, "__metadata__", ())
    hint = hint.__origin__ if marks else hint
    choices: tuple[Any, ...] = next(
        (tuple(mark.names()) for mark in marks if isinstance(mark, OneOf)), get_args(hint)
    )
    if choices and all(isinstance(choice, str) for choice in choices):
        if value not in choices:
            unusable = broken().get(str(value)) if name == "strategy" else None
            why = unusable or f"choose one of {', '.join(choices)}{meant(str(value), choices)}"
            raise SettingsError(f"{where}: {name} = {escape(repr(value))}; {why}")
        return value
    if hint == tuple[str, ...]:
        if not (isinstance(value, list) and all(isinstance(one, str) for one in value)):
            raise SettingsError(f"{where}: {name} = {value!r}; a list of strings is wanted")
        return tuple(value)
    kinds = choices or (hint,)
    if float in kinds and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not any(type(value) is kind for kind in kinds):
        wanted = " or ".join(kind.__name__ for kind in kinds if kind is not type(None))
        raise SettingsError(f"{where}: {name} = {escape(repr(value))}; a {wanted} is wanted")
    if isinstance(value, int | float) and not isinstance(value, bool) and value < 0:
        raise SettingsError(f"{where}: {name} = {escape(repr(value))}; it cannot be negative")
    if value == 0 and any(isinstance(mark, NotZero) for mark in marks):
        raise SettingsError(f"{where}: {name} = 0; nothing fits into that")
    return value


def template(strategy: str | None = None) -> str:
    """The infinimem.toml that `init` writes: every setting, commented out, with its default.

    Args:
        strategy: of the library; one that is named stands there as chosen.
    """
    lines = [
        "# Settings of this memory. Uncomment what you change; the program never rewrites this file.",
        "# [llm], [embedder], [memory_tool], daily_tokens and git count after `infinimem trust`"
        " (docs/SECURITY.md).",
        f"format = {FORMAT}",
        f"strategy = {_toml(strategy)}" if strategy else f"# strategy = {_toml(Settings.strategy)}",
        f"# git = {_toml(Settings.git)}",
        f"# block_ids = {_toml(Settings.block_ids)}",
    ]
    for name, group in _groups().items():
        lines += ["", f"[{name}]"]
        lines += [f"# {item.name} = {_toml(item.default)}" for item in dataclasses.fields(group)]
    return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    if value is None:
        return '""'
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return json.dumps(value, ensure_ascii=False)
    return f'"{value}"' if isinstance(value, str) else str(value)
