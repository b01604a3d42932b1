"""Reads the YAML of a header: strings, lists and mappings only, built from parser events.

Imported when the first header is read, for yaml is slow to import. Nothing here recurses, and the parser is
stopped at the first event that a header may not hold, so a bomb costs no more than its first bytes.
"""

from __future__ import annotations

from typing import Any

import yaml

MAX_DEPTH = 8
MAX_EVENTS = 20_000

LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
"""What parses: libyaml, where PyYAML was built with it; both refuse the same headers."""

Key = tuple[str, int, int]
"""A top-level key: its name, its physical line from 0 with the delimiter before it, its column."""


class RefusedError(ValueError):
    """Why a header is not read; one line."""


def load(text: str) -> tuple[dict[str, Any], list[Key]]:
    """Values and top-level keys, in order, of the YAML between the delimiters of a header.

    Raises:
        RefusedError: an alias, an anchor, a tag, a key that stands twice, too much of anything, or no YAML.
    """
    try:
        return _load(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 2 if error.problem_mark else 1
        raise RefusedError(f"{error.problem or error.context} (line {line})") from None
    except (yaml.YAMLError, UnicodeError):
        raise RefusedError("it holds bytes or characters that YAML does not allow") from None


def _load(text: str) -> tuple[dict[str, Any], list[Key]]:
    keys: list[Key] = []
    root: list[Any] = []
    stack: list[tuple[Any, list[str]]] = [(root, [])]  # a container, and the key that waits for its value
    for count, event in enumerate(yaml.parse(text, Loader=LOADER)):
        if count > MAX_EVENTS or len(stack) > MAX_DEPTH + 1:
            raise RefusedError("it is nested too deeply or holds too many values")
        if isinstance(event, yaml.DocumentStartEvent) and (root or event.version or event.tags):
            raise RefusedError("it holds a second YAML document or a directive")
        if isinstance(event, yaml.AliasEvent):
            raise RefusedError("aliases are not allowed")
        if isinstance(event, yaml.CollectionEndEvent):
            stack.pop()
        if not isinstance(event, (yaml.ScalarEvent, yaml.CollectionStartEvent)):
            continue
        if event.anchor is not None or event.tag is not None:
            raise RefusedError("anchors and tags are not allowed")
        if not root and not (isinstance(event, yaml.MappingStartEvent) and not event.flow_style):
            raise RefusedError("it does not consist of `key: value` lines")
        value: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
        if isinstance(event, yaml.ScalarEvent):
            value = event.value
        container, waiting = stack[-1]
        if isinstance(container, list):
            container.append(value)
        elif waiting:
            container[waiting.pop()] = value
        elif not isinstance(value, str):
            raise RefusedError("a key is not a plain string")
        elif value in container:
            raise RefusedError(f"the key {value[:40]!r} stands twice")
        else:
            container[value] = ""
            waiting.append(value)
            if container is root[0] and event.start_mark:
                # Not the mark's own line: YAML breaks lines at more than "\n".
                at = event.start_mark.index
                keys.append((value, text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at) - 1))
        if not isinstance(event, yaml.ScalarEvent):
            stack.append((value, []))
    return (root[0] if root else {}), keys
