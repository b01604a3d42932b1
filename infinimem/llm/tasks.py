"""The language tasks: names, variables and reply schemas. Their wording stands in prompts/<task>.md, with
`{{name}}` placeholders; a variable that is missing or unused is an error.

Ids in variables and replies are short strings ("12" for seq 12): models copy them more faithfully than
line text, and code moves what they name (STRATEGIES: reference rewriting).

Shapes that several tasks share:
    turn     {"id", "role", "speaker", "time", "text"}
    fact     {"id", "time", "source", "text"}, and "speaker", "when" where they are known
    topic    {"title", "facts": [fact, …]}
    doc      {"id", "summary"}
    unit     {"id", "time", "speaker", "text", "summary", "keywords"}; "time" and "speaker" may be null
    anchor   {"id", "time", "summary", "keywords"}
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
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
CONFIDENCE: Schema = {"type": "number", "minimum": 0, "maximum": 1}


def _object(**properties: Schema) -> Schema:
    """An object with exactly these properties, all required (what strict servers ask for)."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(**properties: Schema) -> Schema:
    return {"type": "array", "items": _object(**properties)}


def _task(name: str, variables: str, max_tokens: int, **properties: Schema) -> Task:
    return Task(name, frozenset(variables.split()), _object(**properties), max_tokens)


_DUPLICATES = _list(discarded=TEXT, kept=TEXT)
_SUPERSEDED = _list(old=TEXT, new=TEXT)


def turn(entry: Entry, text: str) -> dict[str, str | None]:
    """The shape `turn`.

    Args:
        entry: the turn.
        text: what it says, or the part of it that is shown.
    """
    speaker = entry.fields.get("speaker")
    return {"id": str(entry.seq), "role": entry.role, "speaker": speaker, "time": entry.time, "text": text}


# ── writing, as documents of topics ─────────────────────────────────────────────────────────────────

EXTRACT = _task(
    "extract",
    "turns context problems",
    4096,
    entries=_list(text=TEXT, **{"from": IDS}, when=MAYBE, refers=MAYBE),
)
"""Turns into standing facts. `context`: the turns just before, for pronouns only. `problems`: what was
wrong with the last reply ([] at first). Turns that no entry names held nothing to keep."""

REWRITE = _task(
    "rewrite",
    "facts problems",
    4096,
    topics=_list(title=TEXT, fact_ids=IDS),
    duplicates=_DUPLICATES,
    superseded=_SUPERSEDED,
)
"""The buffer's facts grouped by topic (prompt B as references)."""

PLAN = _task(
    "plan",
    "topics docs planned_titles markdown_length problems",
    4096,
    assign=_list(doc_id=MAYBE, new_title=MAYBE, fact_ids=IDS),
)
"""Topics to documents (prompt C). `planned_titles`: titles that the first half of a bisected plan created."""

LAYOUT = _task(
    "layout",
    "doc incoming summary_length problems",
    4096,
    layout=_list(heading=TEXT, fact_ids=IDS),
    duplicates=_DUPLICATES,
    superseded=_SUPERSEDED,
    summary=TEXT,
)
"""One document with its incoming facts laid out under headings (prompts D and M2).
`doc`: {"id", "title", "summary", "sections": [{"heading", "facts"}]}; `incoming`: [topic, …]."""

MERGE = _task(
    "merge",
    "docs",
    1024,
    groups=_list(doc_ids=IDS, reason=TEXT),
)
"""Which small documents belong together (prompt M1). `docs`: [{"id", "summary", "tokens"}]."""

# ── writing, as units and links (arXiv 2603.19595) ──────────────────────────────────────────────

DESCRIBE = _task("describe", "turn", 512, summary=TEXT, keywords=TEXTS)
"""A turn's descriptor: one or two dense sentences and three to five keywords, which are what is searched."""

DIAGNOSE = _task(
    "diagnose",
    "target anchors",
    1024,
    split_tasks=_list(node_id=TEXT, confidence=CONFIDENCE, reason=TEXT),
    merge_tasks=_list(node_ids=IDS, confidence=CONFIDENCE, reason=TEXT),
    update_tasks=_list(current_id=TEXT, superseded_id=TEXT, confidence=CONFIDENCE, reason=TEXT),
)
"""What a unit and its neighbours need. `target`: a unit whose id is the word `TARGET` (models mistype ids);
`anchors`: [anchor, …]. How many ids a merge names is for the router to check."""

SPLIT_UNIT = _task(
    "split_unit",
    "unit reason",
    4096,
    do_split={"type": "boolean"},
    segments=_list(segment_text=TEXT, segment_summary=TEXT, segment_keywords=TEXTS, topic_label=TEXT),
    split_rationale=TEXT,
)
"""A unit's text cut at its topics. Segments are pieces of the text, byte for byte; without a split there is
one, the text itself."""

MERGE_UNITS = _task(
    "merge_units",
    "units",
    1024,
    summary=TEXT,
    keywords=TEXTS,
    salient_points=TEXTS,
)
"""One descriptor for units that say the same. `units`: [unit, …], oldest first."""

UPDATE_UNIT = _task(
    "update_unit",
    "current superseded anchors",
    1024,
    updated_summary=TEXT,
    updated_keywords=TEXTS,
    deprecations=TEXTS,
    alignment_note=TEXT,
)
"""The descriptor of a unit that makes an older one untrue. `current`, `superseded`: units; `deprecations`:
what of the older one no longer holds."""

# ── reading ─────────────────────────────────────────────────────────────────────────────────────

SELECT = _task("select", "question docs limit", 512, ids=IDS)
"""Documents to read in full, by their summaries (prompt S)."""

STEP = _task(
    "step",
    "question catalog doc_count now tools history rounds_left",
    1024,
    done={"type": "boolean"},
    tool_calls=_list(name=TEXT, arguments={"type": "object"}),
    relevant_snippets=_list(doc_id=TEXT, start_line={"type": "integer"}, end_line={"type": "integer"}),
    relevant_docs=IDS,
)
"""One round of the search agent (prompt E). `tools`: [{"name", "description", "parameters"}];
`history`: [{"name", "arguments", "result"}], results as the tools return them (tools/)."""

ANSWER = _task(
    "answer",
    "question evidence now",
    512,
    answer=TEXT,
    cites=IDS,
)
"""Evidence to answer (prompt Q). `evidence`: [{"doc_id", "lines": [line, …]}], best first, where a line is a
fact that may have `refers` too, or a `heading` alone; ids are seqs, or "doc:line" for lines that no one
signed. `cites` names the lines relied upon."""

# ── measuring ───────────────────────────────────────────────────────────────────────────────────


def _judge(name: str) -> Task:
    return _task(name, "question kind expected answer", 256, reason=TEXT, correct={"type": "boolean"})


JUDGE = _judge("judge_strict")
"""Whether an answer says all that is expected. `expected`: wordings of which any counts; `kind`:
"preference", "time", "update", "unanswerable", or "plain"."""

JUDGE_LENIENT = _judge("judge_lenient")
"""The same under the rule of published tables, which lets vague answers pass."""

_READING = (SELECT, STEP, ANSWER)
_JUDGING = (JUDGE, JUDGE_LENIENT)
_FILING = (EXTRACT, REWRITE, PLAN, LAYOUT, MERGE)
_LINKING = (DESCRIBE, DIAGNOSE, SPLIT_UNIT, MERGE_UNITS, UPDATE_UNIT)
ALL: tuple[Task, ...] = (*_FILING, *_LINKING, *_READING, *_JUDGING)


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
        variables: as `shown` tells them. Placeholders inside values are text like any other.

    Raises:
        ValueError: a variable is missing, or the template does not use it.
    """
    check(name, placeholders(name), variables)
    system, user = (_PLACEHOLDER.sub(lambda m: shown(variables[m[1]]), half) for half in template(name))
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
