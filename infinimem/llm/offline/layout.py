"""A document with what comes in: sections stay, new facts join the section that they fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from infinimem.grounding.duplicates import Fact, find_duplicates
from infinimem.llm.offline.lexicon import content_terms
from infinimem.llm.offline.summary import summary
from infinimem.terms import fold

Sections = dict[str, list[Fact]]


def layout(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `layout`; no contradiction is claimed."""
    sections = _sections(variables["doc"], variables["incoming"])
    duplicates = find_duplicates([fact for facts in sections.values() for fact in facts])
    gone = {pair["discarded"] for pair in duplicates}
    kept = {
        heading: [fact for fact in facts if fact["id"] not in gone] for heading, facts in sections.items()
    }
    return {
        "layout": [
            {"heading": heading, "fact_ids": [fact["id"] for fact in facts]}
            for heading, facts in kept.items()
            if facts
        ],
        "duplicates": duplicates,
        "superseded": [],
        "summary": _summary(kept, variables["summary_length"]),
    }


def _sections(doc: Mapping[str, Any], incoming: Sequence[Mapping[str, Any]]) -> Sections:
    """Headings in their order with old and new facts; a heading that occurs twice is one section."""
    sections: Sections = {}
    for section in doc["sections"]:
        sections.setdefault(section["heading"], []).extend(section["facts"])
    for topic in incoming:
        sections.setdefault(_fitting(sections, topic["title"]), []).extend(topic["facts"])
    return sections


def _fitting(headings: Iterable[str], title: str) -> str:
    """The first that says the same as a title, or holds all its telling words; else the title itself."""
    wanted = frozenset(content_terms(title))
    same = next((heading for heading in headings if fold(heading) == fold(title)), None)
    holds = (heading for heading in headings if wanted and wanted <= frozenset(content_terms(heading)))
    return same or next(holds, title)


def _summary(sections: Mapping[str, Sequence[Fact]], limit: Any) -> str:
    return summary([fact for facts in sections.values() for fact in facts], int(limit))
