"""The settings in force, and where each comes from.

What is harmless comes from the library's infinimem.toml. What decides where keys, questions or conversations
go, or what is run, comes from the first of: the environment, config.toml of this user, and infinimem.toml if
its owner trusts it (trust.py). `git` of config.toml counts in libraries of this user alone. Options of a call
go before all of these; the caller knows them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from infinimem import trust
from infinimem.errors import SettingsError, escape
from infinimem.settings import Settings, assembled, defaults, is_harmless, parse_values
from infinimem.user_folders import SETTINGS as SETTINGS
from infinimem.user_folders import user_folder

USER = "config.toml"
LARGEST = 1 << 20
"""Bytes of config.toml that are read."""
EITHER = ("embedder.name", "notes.ignore")
"""Harmless settings that config.toml may give, too."""
VARIABLES: Mapping[str, tuple[str, ...]] = {
    "INFINIMEM_MODEL": ("llm.model",),
    "OPENAI_BASE_URL": ("llm.base_url", "embedder.base_url"),
    "INFINIMEM_EMBEDDER": ("embedder.name",),
}
"""Environment variables, and the settings that they give."""


@dataclass(frozen=True)
class Configuration:
    """Settings by name, with their origins.

    Args:
        values: those that somebody gave and that are in force.
        origins: of these: a variable's name, or a file's.
        suspended: those that would act if the library were trusted.
        proposed: all that infinimem.toml gives and that are not harmless.
    """

    values: Mapping[str, object] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)
    suspended: Mapping[str, object] = field(default_factory=dict)
    proposed: Mapping[str, object] = field(default_factory=dict)

    @cached_property
    def settings(self) -> Settings:
        return assembled(self.values)

    @property
    def digest(self) -> str:
        """Of what `trust` would approve."""
        return trust.digest_of(self.proposed)

    def suspends_model(self, model: str | None) -> bool:
        """Whether a suspended setting would choose the model, or the server that it is asked at.

        Args:
            model: that of the call.
        """
        chosen = model or self.settings.llm.model
        return chosen != "offline" and ("llm.base_url" if chosen else "llm.model") in self.suspended


def configuration(data: bytes = b"", library: Path | None = None, *, trusted: bool = False) -> Configuration:
    """What is in force for a library, or for a call that needs none.

    Args:
        data: of infinimem.toml.
        library: its folder.
        trusted: the caller vouches for it.

    Raises:
        SettingsError, FormatTooNew: a file or a variable cannot be used.
    """
    given = parse_values(data, str(library / SETTINGS) if library else SETTINGS)
    proposed = {name: value for name, value in given.items() if not is_harmless(name, value)}
    values = {name: value for name, value in given.items() if name not in proposed}
    origins = dict.fromkeys(values, SETTINGS)
    user = _of_user()
    here = ((name, names) for name, names in VARIABLES.items() if os.environ.get(name))
    given_here = [(dict.fromkeys(names, os.environ[name]), name) for name, names in here]
    for found, origin in ((user, USER), *given_here):
        values |= found
        origins |= dict.fromkeys(found, origin)
    rest = {name: value for name, value in proposed.items() if origins.get(name) not in (USER, *VARIABLES)}
    suspended: dict[str, object] = {}
    if library and rest:
        trusted = trusted or trust.is_named(library) or trust.approved(library) == trust.digest_of(proposed)
    if rest and not trusted:
        suspended = {name: value for name, value in rest.items() if value != defaults()[name]}
    else:
        values |= rest
        origins |= dict.fromkeys(rest, SETTINGS)
    if library and values.get("git") and origins["git"] == USER and not (trusted or trust.is_mine(library)):
        del values["git"], origins["git"]  # it is said of this user's libraries
        suspended |= {"git": True} if data else {}
    return Configuration(values, origins, suspended, proposed)


def shown(name: str, value: object) -> str:
    """A setting's value on one line; of an address without password and query, which may hold a key."""
    if name.endswith("base_url") and value is not None:
        address, mark, _ = str(value).partition("?")
        value = host_of(address) if "@" in str(value) else f"{address.partition('#')[0]}{mark and '?…'}"
    return escape(value)


def host_of(address: str) -> str:
    """Host and port of an address, nothing else of it, on one line."""
    from urllib.parse import urlsplit

    try:
        return escape(urlsplit(address).netloc.rpartition("@")[2], 300)
    except ValueError:
        return ""


def advice(library: Path, suspended: Mapping[str, object]) -> str:
    """One line about settings that do not count."""
    place, names = escape(library, 4096), ", ".join(sorted(suspended))
    return (
        f"{place} is not trusted, so {names} {'do' if len(suspended) > 1 else 'does'} not count here; "
        f"to see what and where to, run: infinimem trust {place}"
    )


def _of_user() -> dict[str, Any]:
    folder = user_folder("CONFIG")
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
    found = parse_values(data, str(file))
    known = defaults()
    if wrong := [name for name in found if is_harmless(name, known[name]) and name not in EITHER]:
        raise SettingsError(f"{file}: {wrong[0]} belongs to a library; set it in its {SETTINGS}")
    return found
