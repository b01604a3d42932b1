"""From a model's text to data that fits a schema, or to a failure code. Never raises for what it reads.

Looks at the whole text, then at a fenced block, then from the first { to the last }.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from infinimem.llm.base import Failure, Reply
from infinimem.model import KINDS

_THINKING = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_FENCE = re.compile(r"```[a-zA-Z]*[ \t]*\n(.*?)```", re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")

MAX_REPLY = 1024 * 1024
"""Characters; no task asks for as much, and what cannot be an answer is not worth parsing."""
MAX_DEPTH = 50

Fault = tuple[Failure, str]


def read(text: str, schema: Mapping[str, Any]) -> Reply:
    """Read a reply: one with `data`, or with `failure` (EMPTY, REASONING, TRUNCATED, JSON_PARSE_FAIL,
    SCHEMA_FAIL) and `detail`."""
    if len(text) > MAX_REPLY:
        return Reply(None, "TRUNCATED", f"the reply is longer than {MAX_REPLY} characters", text[:MAX_REPLY])
    said = _THINKING.sub("", text)
    if not said.strip():
        kind: Failure = "REASONING" if text.strip() else "EMPTY"
        return Reply(None, kind, KINDS[kind], text)
    fault: Fault = ("JSON_PARSE_FAIL", "the reply holds no JSON object")
    braced = said[max(said.find("{"), 0) : said.rfind("}") + 1]
    for candidate in filter(None, (said, *_FENCE.findall(said), braced)):
        data, problem = _parse(candidate, schema)
        if problem is None:
            return Reply(data, text=text)
        if problem[0] == "SCHEMA_FAIL" or fault[0] != "SCHEMA_FAIL":
            fault = problem
    return Reply(None, *fault, text)


def _parse(text: str, schema: Mapping[str, Any]) -> tuple[dict[str, Any] | None, Fault | None]:
    import fastjsonschema

    try:
        value = _fit(json.loads(text, parse_constant=_refuse), schema)
    except (ValueError, RecursionError) as error:
        return None, ("JSON_PARSE_FAIL", f"not JSON: {error}")
    try:
        _validator(json.dumps(schema, sort_keys=True))(value)
    except fastjsonschema.JsonSchemaValueException as error:
        return None, ("SCHEMA_FAIL", str(error).replace("data", "the reply", 1))
    return value, None


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value")


def _fit(value: Any, schema: Mapping[str, Any], depth: int = 0) -> Any:
    """Mend what servers without schemas get wrong harmlessly: numbers for ids, keys that nobody asked for.
    Lone surrogates, which JSON can spell but no file can hold, become U+FFFD."""
    if depth > MAX_DEPTH:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    if isinstance(value, dict):
        known = schema.get("properties")
        return {
            _clean(key): _fit(item, known.get(key, {}) if known else {}, depth + 1)
            for key, item in value.items()
            if known is None or key in known
        }
    if isinstance(value, list):
        return [_fit(item, schema.get("items", {}), depth + 1) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and "string" in kinds:
        return str(value)
    return _clean(value) if isinstance(value, str) else value


def _clean(text: str) -> str:
    return _SURROGATE.sub("\ufffd", text)


@cache
def _validator(schema: str) -> Callable[[Any], Any]:
    import fastjsonschema

    compiled: Callable[[Any], Any] = fastjsonschema.compile(json.loads(schema))
    return compiled
