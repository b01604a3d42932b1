"""A library's folder at one moment, read without the store: lines, a person's items and words, bytes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from fault_library import tree

from infinimem.markdown.document import Document
from infinimem.model import Located

LIVE = ("CURRENT.md", "topics/")
ARCHIVE, EVIDENCE, JOURNAL = "archive/", "evidence/", "journal/"
WORD = re.compile(r"\bmine\d+\b")
"""Words that only a person writes; each stands once where it was typed."""


@lru_cache(maxsize=20_000)
def _parsed(path: str, data: bytes) -> Document:
    return Document.parse(path.removesuffix(".md"), data)


@dataclass(frozen=True)
class Snapshot:
    """The bytes of all files by path, but for machine state and what a crash left half-written."""

    files: Mapping[str, bytes]

    @classmethod
    def of(cls, root: Path) -> Snapshot:
        return cls({path: data for path, data in tree(root).items() if not path.endswith(".new")})

    def part(self, *prefixes: str) -> dict[str, bytes]:
        return {path: data for path, data in self.files.items() if path.startswith(prefixes)}

    def documents(self, *prefixes: str) -> Iterator[Document]:
        for path, data in self.part(*prefixes).items():
            yield _parsed(path, data)

    @cached_property
    def places(self) -> tuple[Located, ...]:
        """Every signed line: live, archived, and what was said."""
        return tuple(p for document in self.documents(*LIVE, ARCHIVE, EVIDENCE) for p in document.entries)

    @cached_property
    def lines(self) -> Counter[tuple[int, str]]:
        return Counter((place.seq, place.entry.line) for place in self.places)

    @cached_property
    def texts(self) -> Counter[str]:
        """Texts of all lines, and of a person's items, which get a signature and keep their text."""
        return Counter([*(place.text for place in self.places), *self.typed])

    @cached_property
    def typed(self) -> tuple[str, ...]:
        return tuple(item.text for document in self.documents(*LIVE) for item in document.unsigned)

    @cached_property
    def by_seq(self) -> Mapping[int, list[Located]]:
        found: dict[int, list[Located]] = {}
        for place in self.places:
            found.setdefault(place.seq, []).append(place)
        return found

    @cached_property
    def kept(self) -> Mapping[int, str]:
        """Live and archived lines by seq, but for those that stand twice or carry a seq of the evidence."""
        return {
            seq: places[0].entry.line
            for seq, places in self.by_seq.items()
            if len(places) == 1 and not places[0].doc_id.startswith(EVIDENCE)
        }

    @cached_property
    def damaged(self) -> frozenset[int]:
        """Seqs of lines whose signature a person broke."""
        documents = self.documents(*LIVE, ARCHIVE)
        broken = (document.lines[number - 1] for document in documents for number in document.malformed)
        return frozenset(int(seq) for line in broken for seq in re.findall(r"\bseq=(\d+)", line))

    @property
    def doubled(self) -> set[int]:
        return {seq for seq, places in self.by_seq.items() if len(places) > 1}

    @cached_property
    def words(self) -> Counter[str]:
        """A person's words in bodies; summaries and headings are derived and repeat words."""
        found: Counter[str] = Counter()
        for document in self.documents(*LIVE, ARCHIVE):
            titles = {heading.line for heading in document.headings}
            body = enumerate(document.lines, 1)
            kept = (text for n, text in body if n > document.header.end and n not in titles)
            found.update(WORD.findall("\n".join(kept)))
        return found

    @cached_property
    def keys(self) -> Counter[str]:
        """A person's header lines."""
        return Counter(
            line.rstrip("\r")
            for document in self.documents(*LIVE)
            for line in document.lines[: document.header.end]
            if line.startswith("mine")
        )
