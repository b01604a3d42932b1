"""Which folders of a library a strategy keeps, and which names of files every system takes.

Each strategy has a folder of its own and never reads a sibling's. A view shows by default what its spec
holds live, and people's notes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from infinimem.markdown import scan
from infinimem.markdown.characters import normalize
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


LONGEST_PATH = 240
"""Characters of a path in a library; Windows by itself takes 260, with the folders before it."""

_DEVICE = re.compile(r"(?:con|prn|aux|nul|(?:com|lpt)[0-9¹²³]|conin\$|conout\$)\Z", re.IGNORECASE)
"""Source: Microsoft, "Naming Files, Paths, and Namespaces". An ending does not help: "con.md" is one too."""
_WINDOWS = re.compile(r'[<>:"\\|?*\x00-\x1f]')
_LINK = re.compile(r"[#^\[\]|]")
"""What a `[[link]]` gives another meaning, so that none can lead to the document."""


def slug(text: str) -> str:
    """Its letters a-z and digits, with a hyphen for each gap; "" where it has none ("Dr. Vű": "dr-vu")."""
    plain = normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")


def is_device(name: str) -> bool:
    """Whether Windows takes a name for a device, whatever comes after its first full stop."""
    return _DEVICE.match(name.partition(".")[0].rstrip(" ")) is not None


def unlawful(doc_id: str) -> str:
    """Why some system or an Obsidian link cannot hold a document of this id; "" if all can."""
    if len(doc_id) > LONGEST_PATH:
        return f"its path is longer than {LONGEST_PATH} characters, which Windows may refuse"
    *folders, stem = doc_id.split("/")
    if any(name.endswith((" ", ".")) for name in folders):
        return "Windows drops a blank or full stop at the end of a folder's name"
    for name in (*folders, stem):
        if is_device(name):
            return f"Windows takes {name} for a device"
        if found := _WINDOWS.search(name):
            return f"Windows takes no {found[0]!r} in a name"
        if found := _LINK.search(name):
            return f"no [[link]] leads to a name with {found[0]!r}"
    return ""
