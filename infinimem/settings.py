"""Settings: what infinimem.toml may say, with defaults. Owned by people, never written back.

Defaults of the `infini` group are the paper's (arXiv 2606.10677, section 4.1) where it gives a number.
"""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeVar, get_args, get_type_hints

from infinimem.errors import FormatTooNew, SettingsError

FORMAT = 1
"""The format of the folder that this version reads and writes (docs/FORMAT.md)."""


class HarmlessIf:
    """Marks a setting that may act in a library that nobody trusted (docs/SECURITY.md).

    Args:
        values: those that may; none for any.
    """

    def __init__(self, *values: str) -> None:
        self.values = values


T = TypeVar("T")
Harmless = Annotated[T, HarmlessIf()]
"""A setting decides where keys, questions or conversations go, or what is run, unless it is marked so."""


@dataclass(frozen=True)
class ModelSettings:
    """[llm]: which model answers. Keys come from the environment only."""

    model: str | None = None
    base_url: str | None = None
    timeout: float = 60.0
    """Seconds for one try: from looking up the server's name to the last byte of its reply."""
    retries: int = 4
    """Repeats of a try that failed in transport (429, 5xx, no answer within `timeout`)."""


@dataclass(frozen=True)
class InfiniSettings:
    """[infini]: the writing of topic documents. Lengths are tokens."""

    feed: Harmless[Literal["chunk", "exchange", "turn"]] = "chunk"
    chunk_tokens: Harmless[int] = 4096
    workers: Harmless[int] = 4
    """Extractions that a model is asked for side by side; a server that answers one at a time lets the others
    wait, within the same `timeout`."""
    current_threshold: Harmless[int] = 5000
    stale_seconds: Harmless[float] = 3600.0
    markdown_length: Harmless[int] = 5000
    plan_split_threshold: Harmless[int] = 5000
    planner_docs: Harmless[int] = 50
    plan_retries: Harmless[int] = 3
    merge_max_tokens: Harmless[int] = 1000
    merge_frequency: Harmless[int] = 10
    merge_trigger_min_count: Harmless[int] = 50
    merge_group_max: Harmless[int] = 4
    summary_length: Harmless[int] = 100
    maintenance: Harmless[bool] = True


@dataclass(frozen=True)
class AllmemSettings:
    """[allmem]: units, their links and their consolidation (arXiv 2603.19595), then how they are read.

    Where the paper lost a number, it is chosen here (theta_coh, merges of at most 4, degrees).
    """

    split: Harmless[bool] = True
    merge: Harmless[bool] = True
    update: Harmless[bool] = True
    """Each operator may be switched off by itself."""
    confidence: Harmless[float] = 0.9
    """Least confidence of a proposal (Eq. 28)."""
    coherence: Harmless[float] = 0.7
    """Least mean cosine over the pairs of a merge (Eq. 29)."""
    merge_max: Harmless[int] = 4
    coverage: Harmless[float] = 0.8
    """Least share of a unit's text that its segments hold together."""
    online_anchors: Harmless[int] = 10
    """Neighbours on the surface that a new unit is compared with (Eq. 4)."""
    attach: Harmless[int] = 3
    """Of these, how many it is linked to."""
    attach_min: Harmless[float] = 0.65
    """Least cosine of such a link."""
    degree_semantic: Harmless[int] = 8
    degree_sibling: Harmless[int] = 8
    degree_temporal: Harmless[int] = 1
    degree_version: Harmless[int] = 0
    """Most version links of a unit; 0 for any number."""
    raise_version_cap: Harmless[bool] = False
    """Where more version links than that are indispensable: keep just these, instead of all."""
    every_sessions: Harmless[int] = 3
    """Sessions after which the buffer is consolidated; 0 for never."""
    buffer_max: Harmless[int] = 200
    """Units in the buffer after which it is, whatever the sessions; 0 for any number."""
    workers: Harmless[int] = 8
    """Calls of a model that run side by side."""
    anchors: Harmless[int] = 10
    """Units of the surface from which a question starts."""
    candidates: Harmless[int] = 40
    """Units that a question looks at, anchors included."""
    hops: Harmless[int] = 2
    final: Harmless[int] = 16
    """Units that an answer may rest on."""
    block_tokens: Harmless[int] = 2048
    visibility: Harmless[bool] = True
    """Whether a question starts from the surface alone."""
    expand: Harmless[bool] = True
    """Whether links are followed at all."""
    recovery_links: Harmless[bool] = True
    """Whether version and sibling links are followed."""
    type_priority: Harmless[bool] = True
    """Whether version and sibling links are followed before the others."""
    successors_first: Harmless[bool] = True
    """Whether an archived unit ranks behind the one that stands for it; the paper ranks by nearness alone."""


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


EmbedderName = Literal["lexical", "static", "minilm", "openai"]


@dataclass(frozen=True)
class EmbedderSettings:
    """[embedder]: what gives texts vectors. Keys come from the environment only."""

    name: Annotated[EmbedderName, HarmlessIf("lexical", "static")] = "lexical"
    """lexical: words alone, no model; static, minilm: local models; openai: any server of that protocol."""
    model: str | None = None
    """openai: a name that the server knows."""
    path: str | None = None
    """static, minilm: the folder of a model on this machine."""
    base_url: str | None = None
    """openai: of the API; None takes OPENAI_BASE_URL, then OpenAI itself."""


ReaderName = Literal["auto", "agent", "hybrid", "bm25", "summary", "topology"]


@dataclass(frozen=True)
class ReaderSettings:
    """[reader]: how evidence is collected. Budgets are tokens."""

    name: Harmless[ReaderName] = "auto"
    """auto: the first of the strategy's, agent for infini and topology for allmem."""
    max_iterations: Harmless[int] = 7
    search_limit: Harmless[int] = 10
    fallback_empty: Harmless[int] = 5
    fallback_small: Harmless[int] = 3
    min_tokens: Harmless[int] = 500
    evidence_budget: Harmless[int] = 4096
    retrieve_budget: Harmless[int] = 1024


@dataclass(frozen=True)
class MemoryToolSettings:
    """[memory_tool]: the files that a model keeps in memories/ (docs/MEMORY_TOOL.md)."""

    observe: bool = False
    """Whether what it writes there is recorded as said by an AI, too, and drawn from."""


@dataclass(frozen=True)
class Settings:
    """All groups, and the format number of the folder."""

    format: Harmless[int] = FORMAT
    strategy: Harmless[Literal["infini", "allmem"]] = "infini"
    """Which system keeps the library."""
    git: bool = False
    """Whether each receipt becomes a commit of the repository around the folder."""
    llm: ModelSettings = field(default_factory=ModelSettings)
    infini: InfiniSettings = field(default_factory=InfiniSettings)
    allmem: AllmemSettings = field(default_factory=AllmemSettings)
    search: SearchSettings = field(default_factory=SearchSettings)
    embedder: EmbedderSettings = field(default_factory=EmbedderSettings)
    reader: ReaderSettings = field(default_factory=ReaderSettings)
    memory_tool: MemoryToolSettings = field(default_factory=MemoryToolSettings)


_GONE = frozenset({"reader.decompose", "infini.rewrite"})
"""Settings of earlier versions that mean nothing any more; they are passed over."""
_PORTIONS = frozenset({"chunk_tokens", "markdown_length", "plan_split_threshold"})
"""Settings by which text is cut."""


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
            f"{where} is not valid TOML ({str(error)[:200]}); mend the line or restore the file"
        ) from error
    found = values.get("format", FORMAT)
    if isinstance(found, int) and found > FORMAT:
        raise FormatTooNew(f"{where} says format {found}, this version knows {FORMAT}; upgrade infinimem")
    return dict(_values(Settings, values, where))


def assembled(values: Mapping[str, object]) -> Settings:
    """Settings from values by name; the others have their defaults."""
    groups: dict[str, dict[str, Any]] = {}
    top: dict[str, Any] = {}
    for name, value in values.items():
        group, _, key = name.rpartition(".")
        (groups.setdefault(group, {}) if group else top)[key] = value
    hints = get_type_hints(Settings)
    return Settings(**top, **{group: hints[group](**held) for group, held in groups.items()})


def is_harmless(name: str, value: object) -> bool:
    """Whether a setting may act in a library that nobody trusted."""
    group, _, key = name.rpartition(".")
    hint = _hints(_groups()[group] if group else Settings)[key]
    marks = [mark for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, HarmlessIf)]
    return any(not mark.values or value in mark.values for mark in marks)


def defaults() -> dict[str, object]:
    """Every setting by name, with its default."""
    found = dataclasses.asdict(Settings())
    return {
        f"{group}.{name}" if name else group: value
        for group, held in found.items()
        for name, value in (held.items() if isinstance(held, dict) else [("", held)])
    }


def _hints(group: type) -> dict[str, Any]:
    return get_type_hints(group, include_extras=True)


def _groups() -> dict[str, Any]:
    return {name: hint for name, hint in _hints(Settings).items() if dataclasses.is_dataclass(hint)}


def _values(
    group: type, values: Mapping[str, Any], where: str, prefix: str = ""
) -> Iterator[tuple[str, object]]:
    hints = get_type_hints(group)
    for name, value in values.items():
        if f"{prefix}{name}" in _GONE:
            continue
        if name not in hints:
            known = ", ".join(sorted(hints))
            raise SettingsError(f"{where}: unknown setting {name!r}; known here: {known}")
        hint = hints[name]
        if dataclasses.is_dataclass(hint):
            if not isinstance(value, dict):
                raise SettingsError(f"{where}: {name} is a group; write it as [{name}]")
            yield from _values(hint, value, f"{where} [{name}]", f"{name}.")  # type: ignore[arg-type]
        else:
            yield f"{prefix}{name}", _checked(name, value, hint, where)


def _checked(name: str, value: object, hint: Any, where: str) -> object:
    """The value, if it fits its type; whole numbers pass for floats, and no number may be negative."""
    choices = get_args(hint)
    if choices and all(isinstance(choice, str) for choice in choices):
        if value not in choices:
            raise SettingsError(f"{where}: {name} = {value!r}; choose one of {', '.join(choices)}")
        return value
    kinds = choices or (hint,)
    if float in kinds and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not any(type(value) is kind for kind in kinds):
        wanted = " or ".join(kind.__name__ for kind in kinds if kind is not type(None))
        raise SettingsError(f"{where}: {name} = {value!r}; a {wanted} is wanted")
    if isinstance(value, int | float) and not isinstance(value, bool) and value < 0:
        raise SettingsError(f"{where}: {name} = {value!r}; it cannot be negative")
    if value == 0 and name in _PORTIONS:
        raise SettingsError(f"{where}: {name} = 0; nothing fits into that")
    return value


def template(strategy: str | None = None) -> str:
    """The infinimem.toml that `init` writes: every setting, commented out, with its default.

    Args:
        strategy: of the library; one that is named stands there as chosen.
    """
    lines = [
        "# Settings of this memory. Uncomment what you change; the program never rewrites this file.",
        "# [llm], [embedder], [memory_tool] and git count after `infinimem trust` (docs/SECURITY.md).",
        f"format = {FORMAT}",
        f"strategy = {_toml(strategy)}" if strategy else f"# strategy = {_toml(Settings.strategy)}",
        f"# git = {_toml(Settings.git)}",
    ]
    defaults = Settings()
    for group in ("llm", "infini", "allmem", "search", "embedder", "reader", "memory_tool"):
        lines += ["", f"[{group}]"]
        for item in dataclasses.fields(getattr(defaults, group)):
            lines.append(f"# {item.name} = {_toml(item.default)}")
    return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    if value is None:
        return '""'
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)
