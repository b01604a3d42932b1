"""The language tasks of writing topics (llm/tasks.py)."""

from __future__ import annotations

from infinimem.llm.base import Task
from infinimem.llm.tasks import IDS, MAYBE, TEXT, list_of, task

EXTRACT = task(
    "extract",
    "turns context topics problems",
    4096,
    "keep:extract",
    entries=list_of(
        ("when", "refers", "topic", "standing"),
        text=TEXT,
        **{"from": IDS},
        when=MAYBE,
        refers=MAYBE,
        topic=MAYBE,
        standing=MAYBE,
    ),
)
"""Turns into standing facts. `context`: the turns just before, for pronouns only. `topics`: titles that there
are. An entry without "topic" has that of the entry before it. `problems`: what was wrong with the last reply
([] at first). `standing`: "instruction" or "preference" of the user's, if it is one that holds from now on.
Turns that no entry names held nothing to keep."""

REWRITE = task(
    "rewrite",
    "facts docs problems",
    4096,
    "where:rewrite",
    topics=list_of(title=TEXT, fact_ids=IDS),
)
"""The buffer's facts that came without a topic, grouped (prompt B as references). `docs`: [{"title",
"tokens"}]."""

PLAN = task(
    "plan",
    "topics docs planned_titles markdown_length problems",
    4096,
    "where:plan",
    assign=list_of(doc_id=MAYBE, new_title=MAYBE, fact_ids=IDS),
)
"""Topics to documents (prompt C), by their own ids or by those of facts. `planned_titles`: titles that the
first half of a bisected plan created."""

COMPARE = task(
    "compare",
    "groups problems",
    2048,
    "tell:compare",
    superseded=list_of(old=TEXT, new=TEXT),
)
"""Which facts newer ones outdate. `groups`: [{"heading", "facts"}], facts that are near to each other."""

LAYOUT = task(
    "layout",
    "doc problems",
    4096,
    "where:layout",
    layout=list_of(heading=TEXT, fact_ids=IDS),
)
"""The crowded sections of a document parted under headings (prompts D and M2).
`doc`: {"id", "title", "sections": [{"heading", "facts"}]}, facts only of what is to be parted."""

MERGE = task(
    "merge",
    "docs",
    1024,
    "where:merge",
    groups=list_of(doc_ids=IDS, reason=TEXT),
)
"""Which small documents belong together (prompt M1). `docs`: [doc, …]."""

ALL: tuple[Task, ...] = (EXTRACT, REWRITE, PLAN, COMPARE, LAYOUT, MERGE)
