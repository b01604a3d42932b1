"""Our handler for python-frontmatter: strings, lists and mappings only, built from parser events.

Imported when the first header is read, for yaml is slow to import. Nothing here recurses, and the parser is
stopped at the first event that a header may not hold, so a bomb costs no more than its first bytes.
"""

from __future__ import annotations

import re
from typing import Any

import frontmatter
import yaml
from frontmatter.default_handlers import BaseHandler

MAX_DEPTH = 8
MAX_EVENTS = 20_000

LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
"""What parses: libyaml, where PyYAML was built with it; both refuse the same headers."""


class RefusedError(ValueError):
    """Why a header is not read; one line."""


class StringsHandler(BaseHandler):
    """Reads one header; afterwards `keys` says where its top-level keys stand."""

    FM_BOUNDARY = re.compile(r"^---$", re.MULTILINE)

    def __init__(self) -> None:
        super().__init__()
        self.keys: list[tuple[str, int, int]] = []
        """(key, physical line index, column), in order."""

    def split(self, text: str) -> tuple[str, str]:
        """The YAML between the first and the last line, which are the delimiters; no content follows."""
        return text[text.index("\n") + 1 : text.rindex("\n") + 1], ""

    def load(self, fm: str) -> dict[str, Any]:
        """The header as a dict.

        Raises:
            RefusedError: an alias, an anchor, a tag, a key that stands twice, or too much of anything.
        """
        root: list[Any] = []
        stack: list[tuple[Any, list[str]]] = [(root, [])]  # a container, and the key that waits for its value
        for count, event in enumerate(yaml.parse(fm, Loader=LOADER)):
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
                    self.keys.append((value, fm.count("\n", 0, at) + 1, at - fm.rfind("\n", 0, at) - 1))
            if not isinstance(event, yaml.ScalarEvent):
                stack.append((value, []))
        return root[0] if root else {}


def load(text: str) -> tuple[dict[str, Any], list[tuple[str, int, int]]]:
    """Values and key positions of a header, given with its two delimiter lines.

    Raises:
        RefusedError: it is not one that we read.
    """
    handler = StringsHandler()
    try:
        values, _ = frontmatter.parse(text, handler=handler)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 2 if error.problem_mark else 1
        raise RefusedError(f"{error.problem or error.context} (line {line})") from None
    except (yaml.YAMLError, UnicodeError):
        raise RefusedError("it holds bytes or characters that YAML does not allow") from None
    return values, handler.keys
