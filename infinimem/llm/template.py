"""Prompt templates: prompts/<task>.md with `{{name}}` placeholders, strict in both directions.

Knows no task by name and no model; it turns a template and variables into the two texts of a chat.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

_PLACEHOLDER = re.compile(r"\{\{([a-z_]+)\}\}")
_RULE = "\n---\n"


class Prompt(NamedTuple):
    """What a model is shown: instructions, and below them the material."""

    system: str
    user: str


@cache
def template(name: str) -> Prompt:
    """The two halves of prompts/<name>.md, unfilled.

    Raises:
        FileNotFoundError: there is no such template.
        ValueError: it has no line `---` between instructions and material.
    """
    text = (resources.files("infinimem.prompts") / f"{name}.md").read_text(encoding="utf-8")
    system, rule, user = text.partition(_RULE)
    if not rule:
        raise ValueError(f"prompts/{name}.md needs a line --- between instructions and material")
    return Prompt(system.strip(), user.strip())


def placeholders(name: str) -> frozenset[str]:
    """The variables that a template uses."""
    return frozenset(_PLACEHOLDER.findall("\n".join(template(name))))


def render(name: str, variables: Mapping[str, Any]) -> Prompt:
    """Fill a template.

    Args:
        name: of the task and its template.
        variables: strings go in as they are, everything else as JSON. Placeholders inside values are
            text like any other.

    Raises:
        ValueError: a variable is missing, or the template does not use it.
    """
    check(name, placeholders(name), variables)
    system, user = (_PLACEHOLDER.sub(lambda m: _text(variables[m[1]]), half) for half in template(name))
    return Prompt(system, user)


def check(name: str, expected: Iterable[str], variables: Mapping[str, Any]) -> None:
    """Refuse a call whose variables are not exactly the expected ones.

    Raises:
        ValueError: names what is missing and what is unused.
    """
    wanted = set(expected)
    faults = [
        f"{what}: {', '.join(sorted(names))}"
        for what, names in (("missing", wanted - set(variables)), ("unused", set(variables) - wanted))
        if names
    ]
    if faults:
        raise ValueError(f"variables of task {name!r} do not fit its template; {'; '.join(faults)}")


def _text(value: Any) -> str:
    """A value as the prompt shows it; a list has one item a line, so that a model can point at it."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and value:
        return "[\n" + ",\n".join(_json(item) for item in value) + "\n]"
    return _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
