"""Checking a call's arguments against a tool's JSON schema: kinds are mended, ranges clamped and told."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any


class ArgumentError(ValueError):
    """The call cannot be made; the message is one line for whoever made it."""


def check(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The arguments to call with, and what was changed about them.

    Args:
        schema: an object whose properties are strings, integers and booleans, with `required`, `default`,
            `minimum`, `maximum`, `maxLength` and `enum`.
        arguments: what the caller gave; None counts as not given, an unknown name is ignored and told.

    Raises:
        ArgumentError: one is missing, empty, or of a kind that cannot be mended.
    """
    properties: Mapping[str, Mapping[str, Any]] = schema["properties"]
    checked: dict[str, Any] = {}
    notes: list[str] = []
    for name in arguments:
        if name not in properties:
            near = difflib.get_close_matches(name, properties, n=1)
            meant = f"; did you mean {near[0]!r}?" if near else ""
            notes.append(f"there is no argument {name[:40]!r}, it was ignored{meant}")
    for name, rule in properties.items():
        value = arguments.get(name)
        if value is None:
            if name in schema["required"]:
                raise ArgumentError(f"{name!r} is missing: {rule['description']}")
            checked[name] = rule.get("default")
            continue
        checked[name] = _mended(name, value, rule, notes)
    return checked, notes


def _mended(name: str, value: Any, rule: Mapping[str, Any], notes: list[str]) -> Any:
    match rule["type"]:
        case "integer":
            return _integer(name, value, rule, notes)
        case "boolean":
            return _boolean(name, value)
        case _:
            return _string(name, value, rule)


def _integer(name: str, value: Any, rule: Mapping[str, Any], notes: list[str]) -> int:
    try:
        if isinstance(value, bool):
            raise ValueError
        number = int(value) if not isinstance(value, float) or value.is_integer() else None
        if number is None:
            raise ValueError
    except (TypeError, ValueError):
        raise ArgumentError(f"{name!r} is {str(value)[:40]!r}; a whole number is wanted") from None
    clamped: int = min(max(number, rule.get("minimum", number)), rule.get("maximum", number))
    if clamped != number:
        notes.append(f"{name} = {str(number)[:20]} is out of range, {clamped} was used")
    return clamped


def _boolean(name: str, value: Any) -> bool:
    known = {"true": True, "false": False, "1": True, "0": False}
    found = known.get(str(value).lower())
    if found is None:
        raise ArgumentError(f"{name!r} is {str(value)[:40]!r}; true or false is wanted")
    return found


def _string(name: str, value: Any, rule: Mapping[str, Any]) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise ArgumentError(f"{name!r} is a {type(value).__name__}; a string is wanted")
    if not value.strip():
        raise ArgumentError(f"{name!r} is empty: {rule['description']}")
    if len(value) > rule.get("maxLength", len(value)):
        raise ArgumentError(f"{name!r} is too long: {rule['description']}")
    if "enum" in rule and value not in rule["enum"]:
        raise ArgumentError(f"{name!r} is {value[:40]!r}; choose one of {', '.join(rule['enum'])}")
    return value
