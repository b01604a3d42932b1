"""The language tasks of units and their consolidation (llm/tasks.py). Source: arXiv 2603.19595."""

from __future__ import annotations

from infinimem.llm.tasks import IDS, MAYBE, TEXT, TEXTS, Schema, list_of, task

_CONFIDENCE: Schema = {"type": "number", "minimum": 0, "maximum": 1}

DESCRIBE = task(
    "describe",
    "context turns",
    4096,
    "tell:describe",
    cards=list_of(id=TEXT, summary=TEXT, keywords=TEXTS, when=MAYBE),
)
"""Turns' descriptors: one or two dense sentences and a few keywords, which are searched; both empty for a
turn that says nothing. `context`: turns before `turns`, which explain them; `when`: when it happened."""

DIAGNOSE = task(
    "diagnose",
    "target anchors confidence",
    1024,
    "tell:diagnose",
    split_tasks=list_of(node_id=TEXT, confidence=_CONFIDENCE, reason=TEXT),
    merge_tasks=list_of(node_ids=IDS, confidence=_CONFIDENCE, reason=TEXT),
    update_tasks=list_of(current_id=TEXT, superseded_id=TEXT, confidence=_CONFIDENCE, reason=TEXT),
)
"""What a unit and its neighbours need. `target`: a unit whose id is the word `TARGET` (models mistype ids);
`number`: its id; `anchors`: [anchor, …]; `confidence`: what a proposal needs. How many ids a merge names is
for the router to check."""

SPLIT_UNIT = task(
    "split_unit",
    "unit reason",
    4096,
    "tell:split_unit",
    do_split={"type": "boolean"},
    segments=list_of(segment_text=TEXT, segment_summary=TEXT, segment_keywords=TEXTS, topic_label=TEXT),
    split_rationale=TEXT,
)
"""A unit's text cut at its topics. Segments are pieces of the text, byte for byte; without a split there is
one, the text itself."""

MERGE_UNITS = task(
    "merge_units",
    "units",
    1024,
    "tell:merge_units",
    summary=TEXT,
    keywords=TEXTS,
    salient_points=TEXTS,
)
"""One descriptor for units that say the same. `units`: [unit, …], oldest first."""

UPDATE_UNIT = task(
    "update_unit",
    "current superseded anchors",
    1024,
    "tell:update_unit",
    updated_summary=TEXT,
    updated_keywords=TEXTS,
    deprecations=TEXTS,
    alignment_note=TEXT,
)
"""The descriptor of a unit that makes an older one untrue. `current`, `superseded`: units; `deprecations`:
what of the older one no longer holds."""
