"""Which folders of a library a strategy keeps.

Each strategy has a folder of its own and never reads a sibling's. A view shows by default what its spec
holds live, and people's notes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from infinimem.markdown import scan
from infinimem.model import CURRENT

TOPICS, ARCHIVE = "topics/", "archive/"
EVIDENCE, JOURNAL = "evidence/", "journal/"
MEMORIES = scan.MEMORIES
"""A model's own files, which no strategy keeps (docs/MEMORY_TOOL.md)."""
_WHOLE = scan.RECORDS


@dataclass(frozen=True)
class StrategySpec:
    """A strategy, as the store knows it.

    Args:
        name: of the strategy.
        writes: the folders ("topics/") that its plans may write to.
        live: the folder of what readers see by default.
        archived: the folder of what they see on request.
        buffer: a document beside them that readers see too.
    """

    name: str
    writes: tuple[str, ...]
    live: str
    archived: str
    buffer: str | None = None

    @property
    def folders(self) -> tuple[str, ...]:
        """All folders that it keeps."""
        return tuple(dict.fromkeys((*self.writes, self.live, self.archived)))

    @property
    def has_entries(self) -> bool:
        """Whether it keeps signed lines, and a list of the evidence that they were drawn from; else it keeps
        records, each of which names its evidence."""
        return self.buffer is not None


INFINI = StrategySpec("infini", (TOPICS,), TOPICS, ARCHIVE, CURRENT)
ALLMEM = StrategySpec("allmem", (_WHOLE,), f"{_WHOLE}units/", f"{_WHOLE}archive/")

STRATEGIES: Mapping[str, StrategySpec] = {spec.name: spec for spec in (INFINI, ALLMEM)}

_OF_RECORDS = tuple(spec for spec in STRATEGIES.values() if not spec.has_entries)
RECORDS = tuple(folder for spec in _OF_RECORDS for folder in (spec.live, spec.archived))
"""Folders of records that name their evidence."""
ARCHIVES = tuple(spec.archived for spec in _OF_RECORDS)
"""Those of them that left what readers see."""
LEDGERS = tuple(folder for spec in _OF_RECORDS for folder in spec.writes)
"""Folders of records, and of what is kept beside them: whole files that hold no signed line."""
WHOLE = (*LEDGERS, MEMORIES)
"""All folders of whole files."""
