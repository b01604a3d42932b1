"""The language tasks of writing topics (llm/tasks.py)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from infinimem.llm.base import Task
from infinimem.llm.tasks import IDS, MAYBE, TEXT, list_of, object_of, task

EXTRACT = task(
    "extract",
    "turns context topics problems",
    4096,
    "keep:extract",
    draws=True,
    entries=list_of(
        ("when", "refers", "label", "topic", "standing"),
        text=TEXT,
        **{"from": IDS},
        **dict.fromkeys(("when", "refers", "label", "topic", "standing"), MAYBE),
    ),
)
"""Turns into standing facts. `context`: the turns just before, for pronouns only. `topics`: titles that there
are. An entry without "topic" has that of the entry before it. `problems`: what was wrong with the last reply
([] at first). `standing`: "instruction" or "preference" of the user's, if it is one that holds from now on.
`label`: what a turn says its label is. Turns that no entry names held nothing to keep."""

EXTRACT_ALONE = replace(EXTRACT, variables=EXTRACT.variables - {"topics"})
"""The same without topics, which are named later."""

REWRITE = task(
    "rewrite", "facts docs problems", 4096, "where:rewrite", topics=list_of(title=TEXT, fact_ids=IDS)
)
"""The buffer's facts that came without a topic, grouped (prompt B). `docs`: [{"title", "tokens"}]."""

PLAN = task(
    "plan",
    "topics docs planned_titles markdown_length problems",
    4096,
    "where:plan",
    assign=list_of(doc_id=MAYBE, new_title=MAYBE, fact_ids=IDS),
)
"""Topics to documents (prompt C), by their own ids or by those of facts. `planned_titles`: titles that the
first half of a bisected plan created."""

COMPARE = task("compare", "groups problems", 2048, "tell:compare", superseded=list_of(old=TEXT, new=TEXT))
"""Which facts newer ones outdate. `groups`: [{"heading", "facts"}], facts that are near to each other."""

LAYOUT = task("layout", "doc problems", 4096, "where:layout", layout=list_of(heading=TEXT, fact_ids=IDS))
"""The crowded sections of a document parted under headings (prompts D and M2).
`doc`: {"id", "title", "sections": [{"heading", "facts"}]}, facts only of what is to be parted."""

MERGE = task("merge", "docs", 1024, "where:merge", groups=list_of(doc_ids=IDS, reason=TEXT))
"""Which small documents belong together (prompt M1). `docs`: [doc, …]."""

SUMMARIZE = Task(
    "summarize",
    frozenset({"docs"}),
    object_of(summaries=list_of(id=TEXT, summary=TEXT)),
    f"{__name__}:keep_summaries",
)
"""What documents hold (the headers of prompts B and D). `docs`: [doc, …], "told" by lines of each; "summary"
is the rule's."""

SUMMARIZE_ALL = replace(SUMMARIZE, variables=frozenset({"docs", "summary_length"}))
"""The same as in the paper: keywords, then the facts."""

TELL = Task(
    "tell",
    frozenset({"title", "text", "facts", "problems"}),
    object_of(sentences=list_of(("heading",), heading=MAYBE, text=TEXT, **{"from": IDS})),
    f"{__name__}:quote_facts",
    8192,
)
"""A document in a model's own words (prompt D): `text` as it stands, Markdown whose items end in the ids of
their facts ("{41, 43}"), with `facts` worked into it. A sentence without "heading" stands under that of the
one before it."""

ALL: tuple[Task, ...] = (
    *(EXTRACT, EXTRACT_ALONE, REWRITE, PLAN, COMPARE, LAYOUT, MERGE),
    *(SUMMARIZE, SUMMARIZE_ALL, TELL),
)


def keep_summaries(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `summarize`: the rule's summaries stand."""
    return {"summaries": [{"id": doc["id"], "summary": doc["summary"]} for doc in variables["docs"]]}


def quote_facts(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `tell`: the text, and the facts word for word behind it."""
    items = re.findall(r"(?:^# (.*)\n)?^- (.*?)(?: \{([0-9, ]+)\})?$", variables["text"], re.MULTILINE)
    old = [{"heading": title, "text": text, "from": ids.split(", ")} for title, text, ids in items]
    return {"sentences": old + [{"text": one["text"], "from": [one["id"]]} for one in variables["facts"]]}
