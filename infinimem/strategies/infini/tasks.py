"""The language tasks of writing topics (llm/tasks.py)."""

from __future__ import annotations

from infinimem.llm.base import Task
from infinimem.llm.tasks import IDS, MAYBE, TEXT, list_of, task

_DUPLICATES = list_of(discarded=TEXT, kept=TEXT)
_SUPERSEDED = list_of(old=TEXT, new=TEXT)

EXTRACT = task(
    "extract",
    "turns context problems",
    4096,
    "extract:extract",
    entries=list_of(("standing",), text=TEXT, **{"from": IDS}, when=MAYBE, refers=MAYBE, standing=MAYBE),
)
"""Turns into standing facts. `context`: the turns just before, for pronouns only. `problems`: what was
wrong with the last reply ([] at first). `standing`: "instruction" or "preference" of the user's, if it is one
that holds from now on. Turns that no entry names held nothing to keep."""

REWRITE = task(
    "rewrite",
    "facts docs problems",
    4096,
    "topics:rewrite",
    topics=list_of(title=TEXT, fact_ids=IDS),
    duplicates=_DUPLICATES,
    superseded=_SUPERSEDED,
)
"""The buffer's facts grouped by topic (prompt B as references). `docs`: [{"title", "tokens"}]."""

PLAN = task(
    "plan",
    "topics docs planned_titles markdown_length problems",
    4096,
    "filing:plan",
    assign=list_of(doc_id=MAYBE, new_title=MAYBE, fact_ids=IDS),
)
"""Topics to documents (prompt C). `planned_titles`: titles that the first half of a bisected plan created."""

LAYOUT = task(
    "layout",
    "doc incoming summary_length problems",
    4096,
    "filing:layout",
    layout=list_of(heading=TEXT, fact_ids=IDS),
    duplicates=_DUPLICATES,
    superseded=_SUPERSEDED,
    summary=TEXT,
)
"""One document with its incoming facts laid out under headings (prompts D and M2).
`doc`: {"id", "title", "summary", "sections": [{"heading", "facts"}]}; `incoming`: [topic, …]."""

MERGE = task(
    "merge",
    "docs",
    1024,
    "filing:merge",
    groups=list_of(doc_ids=IDS, reason=TEXT),
)
"""Which small documents belong together (prompt M1). `docs`: [doc, …]."""

ALL: tuple[Task, ...] = (EXTRACT, REWRITE, PLAN, LAYOUT, MERGE)
