"""Language tasks: names, variables, reply schemas, rules that answer offline, and the reading of replies.

Their wording stands in prompts/<task>.md, with `{{name}}` placeholders; a missing or unused one is an error.
What stands between `{{#name}}` and `{{/name}}` is for those of its tasks that have this variable.
Those of a strategy stand in its own tasks.py, those of the bench in evaluation/metrics.py.

Ids in variables and replies are short strings ("12" for seq 12): models copy them more faithfully than
line text, and code moves what they name (STRATEGIES: reference rewriting).

Shapes that several tasks share:
    turn     {"id", "role", "speaker", "time", "text"}, and "session" and "cwd" for programs
    fact     {"id", "time", "source", "text"}, and "speaker", "when" where they are known
    topic    {"title", "facts": [fact, …]}
    doc      {"id", "summary"}, "title" where it has one, and "tokens" where it may grow
    anchor   {"id", "summary", "keywords"}, and "time", "speaker", "when" where they are known
    unit     an anchor and "text"
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from importlib import resources
from typing import Any, NamedTuple

from infinimem.llm.base import Failure, Reply, Task
from infinimem.markdown.characters import name as name_of
from infinimem.markdown.characters import one_line, sound
from infinimem.model import KINDS, Entry

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
MAYBE: Schema = {"type": ["string", "null"]}
IDS: Schema = {"type": "array", "items": TEXT}
TEXTS: Schema = {"type": "array", "items": TEXT}


def object_of(optional: Collection[str] = (), /, **properties: Schema) -> Schema:
    """Return an object with exactly these properties; strict servers ask that none is optional."""
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


def list_of(optional: Collection[str] = (), /, **properties: Schema) -> Schema:
    return {"type": "array", "items": object_of(optional, **properties)}


def task(
    name: str, variables: str, max_tokens: int, rule: str, draws: bool = False, **properties: Schema
) -> Task:
    """Return a task of ours with these properties of the reply; `rule` is "file:function" in llm/offline/."""
    rule = f"infinimem.llm.offline.{rule}"
    return Task(name, frozenset(variables.split()), object_of(**properties), rule, max_tokens, draws=draws)


def turn(entry: Entry, text: str) -> dict[str, str | None]:
    """Return the shape `turn` of an entry, with the part of its text that is shown."""
    speaker = entry.fields.get("speaker")
    return {"id": str(entry.seq), "role": entry.role, "speaker": speaker, "time": entry.time, "text": text}


# ── reading ─────────────────────────────────────────────────────────────────────────────────────

SELECT = task("select", "question docs limit", 512, "where:select", ids=IDS)
"""Documents to read in full, by their summaries (prompt S)."""

ANSWER = task("answer", "question evidence now", 2048, "tell:answer", answer=TEXT, cites=IDS)
"""Evidence to answer (prompt Q). `evidence`: [{"doc_id", "lines": [line, …]}], best first, where a line is a
fact that may have `refers` too, or a `heading` alone; ids are seqs, or "doc:line" for lines that no one
signed. `cites` names the lines relied upon. Kinds of records that are shown apart are further variables."""

CALLS = list_of(name=TEXT, arguments={"type": "object"})

SEARCHING = replace(
    ANSWER,
    variables=ANSWER.variables | {"catalog", "calls", "rounds_left", "tools"},
    schema=object_of(answer=TEXT, cites=IDS, calls=CALLS),
)
"""The same, or calls of tools that show more. `catalog` and `calls` are what a model is told of documents,
and of its calls so far; `tools` are those that packages add."""

SEEK = task(
    "seek",
    "question catalog calls rounds_left tools",
    1024,
    "tell:seek",
    done={"type": "boolean"},
    calls=CALLS,
    relevant_snippets=list_of(doc_id=TEXT, start_line={"type": "integer"}, end_line={"type": "integer"}),
    relevant_docs=IDS,
)
"""What an answer is to be read from, or calls of tools (prompt E); `calls` also holds the lines found."""

ALL: tuple[Task, ...] = (SELECT, ANSWER, SEARCHING, SEEK)
"""Those that belong to no strategy, and not to the bench."""


_PLACEHOLDER = re.compile(r"\{\{([a-z_]+)\}\}")
_SECTION = re.compile(r"\{\{#([a-z_]+)\}\}\n?(.*?)\{\{/\1\}\}\n?", re.DOTALL)
_RULE = "\n---\n"


class Prompt(NamedTuple):
    """What a model is shown: instructions, and below them the material."""

    system: str
    user: str


@cache
def template(name: str, package: str = "infinimem.prompts") -> Prompt:
    """Return the two halves of <name>.md, unfilled."""
    text = (resources.files(package) / f"{name}.md").read_text(encoding="utf-8")
    system, rule, user = text.partition(_RULE)
    if not rule:
        raise ValueError(f"{name}.md needs a line --- between instructions and material")
    return Prompt(system.strip(), user.strip())


def placeholders(task: Task) -> frozenset[str]:
    """The variables that its template uses."""
    halves = (_chosen(half, task.variables) for half in template(task.name, task.prompts))
    return frozenset(_PLACEHOLDER.findall("\n".join(halves)))


def _chosen(text: str, names: Collection[str]) -> str:
    return _SECTION.sub(lambda m: m[2] if m[1] in names else "", text)


def filled(text: str, values: Mapping[str, str]) -> str:
    """Return a text with the sections whose names have a value, and the values in their places."""
    return _PLACEHOLDER.sub(lambda m: values[m[1]], _chosen(text, values))


def render(task: Task, variables: Mapping[str, Any]) -> Prompt:
    """Fill a task's template with variables as `shown` tells them; placeholders inside values are text."""
    check(task.name, placeholders(task), variables)
    told = {name: shown(value) for name, value in variables.items()}
    return Prompt(*(filled(half, told) for half in template(task.name, task.prompts)))


def check(name: str, expected: Iterable[str], variables: Mapping[str, Any]) -> None:
    """Refuse a call whose variables are not exactly the expected ones, with a ValueError that names them."""
    wanted = set(expected)
    faults = [
        f"{what}: {', '.join(sorted(names))}"
        for what, names in (("missing", wanted - set(variables)), ("unused", set(variables) - wanted))
        if names
    ]
    if faults:
        raise ValueError(f"variables of task {name!r} do not fit its template; {'; '.join(faults)}")


# ── values as a model is shown them ─────────────────────────────────────────────────────────────
# A line costs half of its JSON and says the same: `[517] 2023-05-18 Ann (AI): text (when 2023-04)`.

_json = partial(json.dumps, ensure_ascii=False)
_NOTED = ("when", "refers", "label", "superseded_by")
_BREAK = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_INDENT = "\n" + 8 * " "
"""Before what goes on on another line: no text can pass for a line of its own."""


def shown(value: Any) -> str:
    """Return a variable of a prompt: a string as it is, or JSON values, in which whatever has an id and a
    text, or a summary, is told in a line, and lists of such below what they belong to. Of what has `told`,
    these lines are shown, and all else is for programs."""
    if isinstance(value, str):
        return value
    rows = value if isinstance(value, list | tuple) and value else (value,)
    return "\n".join(line for row in rows for line in _lines(row))


def _lines(value: Any) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield _json(value)
    elif "told" in value:
        first, *rest = map(one_line, value["told"])
        yield from (first, *(f"  {line}" for line in rest))
    elif _is_said(value):
        yield _line(value)
    elif "span" in value:
        yield one_line(f"{value['doc_id']} {value['span']}")
        yield from _evidence(value["lines"])
    elif "day" in value:
        yield value["day"]
        yield from _evidence(value["lines"], {"time": value["day"]})
    elif {"id", "summary"} <= value.keys() <= {"id", "title", "summary"}:
        yield one_line(": ".join(filter(None, (value["id"], value.get("title"), value["summary"]))))
    else:
        told = {key: item for key, item in value.items() if not _has_said(item)}
        is_heading = told.keys() == {"heading"}
        yield f"# {one_line(told['heading'])}" if is_heading else _json(told)
        for rows in filter(_has_said, value.values()):
            yield from (f"  {line}" for row in rows for line in _lines(row))


def _has_said(value: Any) -> bool:
    return isinstance(value, list | tuple) and any(
        isinstance(item, Mapping) and (_is_said(item) or any(map(_has_said, item.values()))) for item in value
    )


def _is_said(value: Mapping[str, Any]) -> bool:
    return {"id", "text"} <= value.keys() and "keywords" not in value


def _evidence(rows: Iterable[Mapping[str, Any]], above: Mapping[str, Any] | None = None) -> Iterator[str]:
    for row in rows:
        if "text" in row:
            yield _line(row, above)
            above = row
        else:
            yield from _lines(row)


def _line(row: Mapping[str, Any], above: Mapping[str, Any] | None = None) -> str:
    text, speaker = row["text"], row.get("speaker") or ""
    if speaker and text.startswith(f"{speaker}:"):
        text = text[len(speaker) + 1 :].lstrip()
    head = _head(row)
    if above and (day := _day(row)) == _day(above):
        head = "-" if head == _head(above) else head.removeprefix(day).lstrip()
    notes = ", ".join(f"{key.replace('_', ' ')} {row[key]}" for key in _NOTED if row.get(key))
    told = _BREAK.sub(_INDENT, text) + (f" ({notes})" if notes else "")
    begin = f"[{row['id']}] {head}".rstrip()
    return f"{begin} {told}" if head == "-" else f"{begin}: {told}"


def _day(row: Mapping[str, Any]) -> str:
    return (row.get("time") or "")[:10]


def _head(row: Mapping[str, Any]) -> str:
    source = row.get("source") or row.get("role") or "user"
    who = (name_of(row.get("speaker") or ""), "" if source in ("user", "human") else f"({source})")
    return " ".join(filter(None, (_day(row), *who)))


# ── replies ───────────────────────────────────────────────────────────────────────────────────────
# The whole text is looked at, then a fenced block, then from the first { to the last }.

_THINKING = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_FENCE = re.compile(r"```[a-zA-Z]*[ \t]*\n(.*?)```", re.DOTALL)

MAX_REPLY = 1024 * 1024
"""Characters; no task asks for as much, and what cannot be an answer is not worth parsing."""
MAX_DEPTH = 50


def read(text: str, schema: Mapping[str, Any]) -> Reply:
    """Read a reply: one with `data`, or with `failure` (EMPTY, REASONING, TRUNCATED, JSON_PARSE_FAIL,
    SCHEMA_FAIL) and `detail`."""
    if len(text) > MAX_REPLY:
        return Reply(None, "TRUNCATED", f"the reply is longer than {MAX_REPLY} characters", text[:MAX_REPLY])
    said = _THINKING.sub("", text)
    if not said.strip():
        kind: Failure = "REASONING" if text.strip() else "EMPTY"
        return Reply(None, kind, KINDS[kind], text)
    failed = Reply(None, "JSON_PARSE_FAIL", "the reply holds no JSON object", text)
    braced = said[max(said.find("{"), 0) : said.rfind("}") + 1]
    for candidate in filter(None, (said, *_FENCE.findall(said), braced)):
        reply = replace(_parse(candidate, schema), text=text)
        if reply.data is not None:
            return reply
        if reply.failure == "SCHEMA_FAIL" or failed.failure != "SCHEMA_FAIL":
            failed = reply
    return failed


def _parse(text: str, schema: Mapping[str, Any]) -> Reply:
    import fastjsonschema

    try:
        value = _fit(json.loads(text, parse_constant=_refuse), schema)
    except (ValueError, RecursionError) as error:
        return Reply(None, "JSON_PARSE_FAIL", f"not JSON: {error}")
    try:
        _validator(json.dumps(schema, sort_keys=True))(value)
    except fastjsonschema.JsonSchemaValueException as error:
        return Reply(None, "SCHEMA_FAIL", str(error).replace("data", "the reply", 1))
    return Reply(value)


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
            sound(key): _fit(item, known.get(key, {}) if known else {}, depth + 1)
            for key, item in value.items()
            if known is None or key in known
        }
    if isinstance(value, list):
        return [_fit(item, schema.get("items", {}), depth + 1) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and "string" in kinds:
        return str(value)
    return sound(value) if isinstance(value, str) else value


@cache
def _validator(schema: str) -> Callable[[Any], Any]:
    import fastjsonschema

    compiled: Callable[[Any], Any] = fastjsonschema.compile(json.loads(schema))
    return compiled
