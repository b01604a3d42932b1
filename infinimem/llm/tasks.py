"""Language tasks: names, variables, reply schemas, and the rules that answer them offline. Their wording
stands in prompts/<task>.md, with `{{name}}` placeholders; a variable that is missing or unused is an error.
What stands between `{{#name}}` and `{{/name}}` is for those of its tasks that have this variable.
Those of a strategy stand in its own tasks.py, those of the bench in evaluation/judge.py.

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

import re
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from infinimem.llm.base import Task
from infinimem.llm.shown import shown
from infinimem.model import Entry

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


def task(name: str, variables: str, max_tokens: int, rule: str, **properties: Schema) -> Task:
    """Return a task of ours, whose rule is "file:function" in llm/offline/, with these properties of the
    reply."""
    rule = f"infinimem.llm.offline.{rule}"
    return Task(name, frozenset(variables.split()), object_of(**properties), rule, max_tokens)


def turn(entry: Entry, text: str) -> dict[str, str | None]:
    """Return the shape `turn` of an entry, with the part of its text that is shown."""
    speaker = entry.fields.get("speaker")
    return {"id": str(entry.seq), "role": entry.role, "speaker": speaker, "time": entry.time, "text": text}


# ── reading ─────────────────────────────────────────────────────────────────────────────────────

SELECT = task("select", "question docs limit", 512, "where:select", ids=IDS)
"""Documents to read in full, by their summaries (prompt S)."""

ANSWER = task("answer", "question evidence now", 512, "answer:answer", answer=TEXT, cites=IDS)
"""Evidence to answer (prompt Q). `evidence`: [{"doc_id", "lines": [line, …]}], best first, where a line is a
fact that may have `refers` too, or a `heading` alone; ids are seqs, or "doc:line" for lines that no one
signed. `cites` names the lines relied upon."""

CALLS = list_of(name=TEXT, arguments={"type": "object"})

SEARCHING = Task(
    ANSWER.name,
    ANSWER.variables | {"catalog", "calls", "rounds_left", "tools"},
    object_of(answer=TEXT, cites=IDS, calls=CALLS),
    ANSWER.rule,
    ANSWER.max_tokens,
)
"""The same, or calls of tools that show more. `catalog` and `calls` are what a model is told of documents,
and of its calls so far; `tools` are those that packages add."""

SEEK = task(
    "seek",
    "question catalog calls rounds_left tools",
    1024,
    "where:seek",
    done={"type": "boolean"},
    calls=CALLS,
    relevant_snippets=list_of(doc_id=TEXT, start_line={"type": "integer"}, end_line={"type": "integer"}),
    relevant_docs=IDS,
)
"""What an answer is to be read from, or calls of tools (prompt E); `calls` holds the lines that they found,
too."""

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
    return frozenset(_PLACEHOLDER.findall("\n".join(_for(task))))


def _for(task: Task) -> Prompt:
    """Return its template, without sections `{{#name}}` to `{{/name}}` whose variable it has not."""
    halves = (
        _SECTION.sub(lambda m: m[2] if m[1] in task.variables else "", half)
        for half in template(task.name, task.prompts)
    )
    return Prompt(*halves)


def render(task: Task, variables: Mapping[str, Any]) -> Prompt:
    """Fill a task's template with variables as `shown` tells them; placeholders inside values are text."""
    check(task.name, placeholders(task), variables)
    return Prompt(*(_PLACEHOLDER.sub(lambda m: shown(variables[m[1]]), half) for half in _for(task)))


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
