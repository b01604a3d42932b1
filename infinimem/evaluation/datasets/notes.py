"""Questions about two public collections of hand-kept notes, each with the sections that answer it.

The questions come with the package (notes.jsonl) and were written by reading the notes; the notes do not.
docs/BENCHMARKS.md says where to get them and how the questions were made.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from typing import Any

from infinimem.errors import UsageError
from infinimem.evaluation import metrics
from infinimem.evaluation.datasets.exports import Quota
from infinimem.evaluation.model import Case, Found, Question
from infinimem.markdown.document import Document
from infinimem.markdown.sections import partitions
from infinimem.model import Turn

COLLECTIONS = ("til", "EIPs")
CUTS = (5, 10)


class Notes:
    """The half "dev", or "held", by which no choice may be made; a turn is a block, its id says which."""

    def __init__(self, split: str = "dev") -> None:
        self.name = "notes" if split == "dev" else f"notes-{split}"
        self._split = split

    def cases(self, path: Path, limit: int | None = None) -> Iterator[Case]:
        """Yield a case for each collection: of an archive, or a folder of archives (notes_til.tar.xz) or of
        what they hold (til/). UsageError if there are no notes, or one lacks a section of a label."""
        quota, asked = Quota(limit), questions()
        found = 0
        for name in COLLECTIONS:
            notes = read(path, name)
            found += len(notes)
            rows = [row for row in asked if row["split"] == self._split]
            rows = [row for row in rows if row["gold"][0][0].startswith(f"{name}/")]
            taken = quota.take(_question(row, notes) for row in rows) if notes else ()
            if taken:
                blocks = (turn for doc, data in notes.items() for turn in _blocks(doc, data))
                yield Case(name, tuple(blocks), taken, notes)
        if not found:
            raise UsageError(f"no notes at {path}: give notes_til.tar.xz, notes_EIPs.tar.xz or their folder")

    def retrieval(self, case: Case, question: Question, found: Sequence[Found]) -> Mapping[str, float]:
        """By section and by document ("doc …").

        A hit has the sections that its block touches; one without a gold section, or with one that an
        earlier hit had, still takes a place. Documents are ranked by their best hit.
        """
        gold = [_place(section) for section in question.turns]
        ranked: list[str] = []
        docs: list[str] = []
        for rank, item in enumerate(found[: metrics.CUTS[-1]]):
            for doc, first, last in map(_place, item.turns):
                touched = [
                    _id(doc, start, end)
                    for other, start, end in gold
                    if other == doc and first <= end and last >= start
                ]
                ranked += [section for section in touched if section not in ranked] or [f"{rank}"]
                docs.append(doc)
        return {
            **metrics.measures(ranked, question.turns, CUTS),
            "MRR": metrics.reciprocal_rank(ranked, question.turns),
            **metrics.measures(docs, question.sessions, CUTS, "doc "),
            "doc MRR": metrics.reciprocal_rank(dict.fromkeys(docs), question.sessions),
        }

    def answered(self, question: Question, answer: str) -> Mapping[str, float]:
        """Nothing: the questions say where the answer stands, not what it is."""
        return {}


def questions() -> list[Mapping[str, Any]]:
    """Return rows with id, split, group, question, gold: path, heading and, of several, which, from 1."""
    text = files(__package__).joinpath("notes.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def read(path: Path, name: str) -> dict[str, bytes]:
    """Return the notes of a collection by path; UsageError if its archive is damaged or leads elsewhere."""
    archive = path if path.is_file() else path / f"notes_{name}.tar.xz"
    if archive.is_file():
        found = _packed(archive)
    else:
        below = sorted((path / name).rglob("*.md"))
        found = {file.relative_to(path).as_posix(): file.read_bytes() for file in below}
    return {doc: found[doc] for doc in sorted(found) if doc.startswith(f"{name}/")}


def first_line(turn: str) -> int:
    """Where a block begins, by the id that it has as a turn."""
    return _place(turn)[1]


def _packed(archive: Path) -> dict[str, bytes]:
    found = {}
    try:
        with tarfile.open(archive, "r:xz") as tar:
            for member in tar:
                if PurePosixPath(member.name).is_absolute() or ".." in PurePosixPath(member.name).parts:
                    raise UsageError(f"{archive.name} names a file outside its folder: {member.name!r}")
                if member.isfile() and member.name.endswith(".md") and (file := tar.extractfile(member)):
                    found[member.name] = file.read()
    except (OSError, EOFError, LZMAError, tarfile.TarError) as error:
        raise UsageError(f"{archive.name} is no archive that can be read: {error}") from error
    return found


def _question(row: Mapping[str, Any], notes: Mapping[str, bytes]) -> Question:
    gold = frozenset(_section(notes, *label) for label in row["gold"])
    docs = frozenset(_place(section)[0] for section in gold)
    return Question(row["id"], row["question"], row["group"], (), gold, docs)


def _section(notes: Mapping[str, bytes], doc: str, title: str, ordinal: int = 1) -> str:
    """The lines of a section with those of the sections in it."""
    document = Document.parse(doc, notes.get(doc, b""))
    named = [heading for heading in document.headings if heading.title == title]
    if len(named) < ordinal:
        raise UsageError(f"{doc} has no section {title!r}: the questions are about other notes")
    head = named[ordinal - 1]
    below = (other for other in document.headings if other.line > head.line)
    after = (other.line for other in below if other.level <= head.level)
    return _id(doc, head.line, next(after, len(document.lines) + 1) - 1)


def _blocks(doc: str, data: bytes) -> Iterator[Turn]:
    """The note's path stands where a speaker does, so that baselines know it too."""
    document = Document.parse(doc.removesuffix(".md"), data)
    header = [(1, document.header.end)] if document.header.end else []
    for first, last in (*header, *((part.start_line, part.end_line) for part in partitions(document))):
        text = document.text(first, last)
        yield Turn(text, speaker=document.id, session=doc, turn=_id(doc, first, last))


def _id(doc: str, first: int, last: int) -> str:
    return f"{doc}:{first}-{last}"


def _place(section: str) -> tuple[str, int, int]:
    doc, _, lines = section.rpartition(":")
    first, _, last = lines.partition("-")
    return doc, int(first), int(last)
