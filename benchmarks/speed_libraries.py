"""Libraries of any size for measuring speed: real notes and dialogues, recombined.

    python benchmarks/speed_libraries.py --data FOLDER --out FOLDER --sizes 300,3000

FOLDER of the data holds notes_*.tar.xz (folders of Markdown), locomo_dev.json and
longmemeval_dev_oracle.json.xz. Every document is a person's note of three heading blocks, about 9.6 KB.
Beside the notes stands a small memory, made from one conversation by the offline rules. The same seed
gives the same bytes, and a small library is the beginning of a large one.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import re
import shutil
import tarfile
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

SEED = 5
SECTIONS = 3
SECTION_BYTES = 2560
"""A block is full beyond so many bytes; what it takes over that makes 9.6 KB of a document."""
RUN_BYTES = 1200
"""Paragraphs that stood together stay together, up to about so many bytes."""
SHARES = {"til": 3, "EIPs": 3, "longmemeval": 3, "locomo": 1}
"""How often a block is taken from each source; any other folder of notes counts 1."""
CONVERSATION = "conv-26"
MOMENT = datetime(2024, 1, 1, tzinfo=UTC)

_HEADING = re.compile(r"(#{1,6})\s+(.*?)[\s#]*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_PARAGRAPH = range(30, 2400)
"""Bytes of a paragraph that is taken; what is longer is data, not text."""


@dataclass
class Source:
    """Paragraphs of one origin, in their order, with what each stood under."""

    name: str
    texts: list[str] = field(default_factory=list)
    titles: list[tuple[int, str]] = field(default_factory=list)
    """For each paragraph the number of its document or session, and the heading over it."""

    def add(self, document: int, title: str, text: str) -> None:
        if len(text.encode("utf-8", "replace")) in _PARAGRAPH and not re.search(r"^## ", text, re.MULTILINE):
            self.texts.append(text)
            self.titles.append((document, title))

    def fill(self, rng: random.Random) -> tuple[str, list[str]]:
        """One block: a heading and runs of paragraphs."""
        wanted = rng.uniform(0.6, 1.4) * SECTION_BYTES
        heading, block, size = "", [], 0
        while size < wanted:
            at = rng.randrange(len(self.texts))
            document, title = self.titles[at]
            heading, run = heading or title, 0
            while at < len(self.texts) and self.titles[at][0] == document and run < RUN_BYTES:
                block.append(self.texts[at])
                run += len(self.texts[at]) + 2
                at += 1
            size += run
        return heading, block


def paragraphs(text: str) -> Iterator[tuple[str, str]]:
    """(heading, paragraph) of a Markdown text without its header; a fenced block stays whole."""
    text = re.sub(r"\A---\n.*?\n---\n", "", text.replace("\r\n", "\n"), flags=re.DOTALL)
    heading, held, fence = "", [], ""
    for line in [*text.split("\n"), ""]:
        mark = _FENCE.match(line)
        if fence:
            held.append(line)
            if mark and mark[1].startswith(fence):
                fence = ""
            continue
        title = _HEADING.match(line)
        if (title or not line.strip()) and held:
            yield heading, "\n".join(held)
            held = []
        if title:
            heading = title[2]
        elif line.strip():
            held.append(line.rstrip())
            fence = mark[1] if mark else ""


def read_notes(archive: Path) -> Source:
    """The Markdown files of a folder that was packed with tar and xz."""
    source = Source(archive.name.removeprefix("notes_").partition(".")[0])
    found: dict[str, str] = {}
    with tarfile.open(archive) as folder:
        for member in folder:  # in its own order: going back would unpack all anew
            file = folder.extractfile(member) if member.isfile() and member.name.endswith(".md") else None
            if file is not None:
                found[member.name] = file.read().decode("utf-8", "replace").replace("\x00", "")
    for number, name in enumerate(sorted(found)):
        for heading, paragraph in paragraphs(found[name]):
            source.add(number, heading or Path(name).stem.replace("-", " "), paragraph)
    return source


def read_locomo(conversations: Sequence[dict[str, Any]]) -> Source:
    """Turns as list items, a session under its people and its date."""
    source, number = Source("locomo"), 0
    for item in conversations:
        talk = item["conversation"]
        for name in sorted(key for key in talk if re.fullmatch(r"session_\d+", key)):
            number += 1
            title = f"{talk['speaker_a']} and {talk['speaker_b']}, {talk[f'{name}_date_time']}"
            for turn in talk[name]:
                source.add(number, title, f"- {turn['speaker']}: {' '.join(turn['text'].split())}")
    return source


def read_longmemeval(questions: Sequence[dict[str, Any]]) -> Source:
    """What the user said as list items, what the assistant said as it stands; a session under its date."""
    source, number = Source("longmemeval"), 0
    for item in questions:
        for date, session in zip(item["haystack_dates"], item["haystack_sessions"], strict=True):
            number += 1
            for turn in session:
                if turn["role"] == "user":
                    source.add(number, f"Talk of {date}", f"- {' '.join(turn['content'].split())}")
                else:
                    for _, paragraph in paragraphs(turn["content"]):
                        source.add(number, f"Talk of {date}", paragraph)
    return source


def read_sources(data: Path) -> list[Source]:
    """All there is in a folder of data, by name; files that are not there are passed over.

    Raises:
        SystemExit: there is none.
    """
    found = [read_notes(path) for path in sorted(data.glob("notes_*.tar.xz"))]
    if (path := data / "locomo_dev.json").exists():
        found.append(read_locomo(json.loads(path.read_bytes())))
    if (path := data / "longmemeval_dev_oracle.json.xz").exists():
        found.append(read_longmemeval(json.loads(lzma.decompress(path.read_bytes()))))
    found = sorted((source for source in found if source.texts), key=lambda source: source.name)
    if not found:
        raise SystemExit(f"{data}: no notes_*.tar.xz, locomo_dev.json or longmemeval_dev_oracle.json.xz")
    return found


def compose(sources: Sequence[Source], number: int, seed: int = SEED) -> tuple[str, str]:
    """Path and text of one document.

    Args:
        sources: where its blocks come from.
        number: of the document, from 0.
        seed: with the number it decides everything.
    """
    rng = random.Random(f"{seed}/{number}")
    shares = [SHARES.get(source.name, 1) for source in sources]
    blocks = [source.fill(rng) for source in rng.choices(sources, shares, k=SECTIONS)]
    title = blocks[0][0] or "Notes"
    text = [f"# {title}"]
    for heading, block in blocks:
        text += [f"## {heading or 'Notes'}", *block]
    slug = "-".join(re.findall(r"[a-z0-9]+", title.lower()))[:40].strip("-") or "note"
    letters = "abcdefghijklmnopqrstuvwxyz"
    folder = letters[rng.randrange(26)] + letters[rng.randrange(8)]
    return f"notes/{folder}/{slug}-{number}.md", "\n\n".join(text) + "\n"


def write_notes(sources: Sequence[Source], out: Path, numbers: Iterable[int], seed: int = SEED) -> int:
    """Write documents; gives their bytes."""
    made: set[Path] = set()
    total = 0
    for number in numbers:
        name, text = compose(sources, number, seed)
        path, data = out / name, text.encode("utf-8", "replace")
        if path.parent not in made:
            path.parent.mkdir(parents=True, exist_ok=True)
            made.add(path.parent)
        path.write_bytes(data)
        total += len(data)
    return total


def write_memory(out: Path, data: Path) -> None:
    """A library with what one conversation left in it; empty where the conversation is not there.

    It is made once, as `memory` beside the libraries, and copied.
    """
    pattern = out.with_name("memory")
    if not pattern.exists():
        from infinimem.importers import read_turns
        from infinimem.memory import open_memory

        with tempfile.TemporaryDirectory(dir=out.parent) as folder:
            memory = open_memory(folder, model="offline", create=True, clock=lambda: MOMENT)
            if (data / "locomo_dev.json").exists():
                memory.observe(list(read_turns(data / "locomo_dev.json", only=CONVERSATION).turns))
                memory.consolidate()
            shutil.copytree(folder, pattern)
    shutil.copytree(pattern, out)


def build(data: Path, out: Path, documents: int, seed: int = SEED) -> Path:
    """A library of so many documents, a small memory among them, made unless it stands there already.

    Args:
        data: folder of the sources.
        out: the library's folder; beside it, `<name>.json` says what it was made of.
        documents: how many notes and other documents together.
        seed: any number.
    """
    note = out.with_name(f"{out.name}.json")
    made_of = {"documents": documents, "seed": seed}
    if note.exists() and made_of.items() <= json.loads(note.read_bytes()).items():
        return out
    shutil.rmtree(out, ignore_errors=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    write_memory(out, data)
    size = write_notes(read_sources(data), out, range(notes_beside(out, documents)), seed)
    note.write_text(json.dumps({**made_of, "bytes": size}) + "\n")
    return out


def notes_beside(memory: Path, documents: int) -> int:
    """How many notes make so many documents with those of the memory and one that is written meanwhile."""
    return max(documents - sum(1 for _ in memory.rglob("*.md")) - 1, documents // 2)


def short(documents: int) -> str:
    """30000 -> "30k"."""
    return f"{documents // 1000}k" if documents >= 1000 and documents % 1000 == 0 else str(documents)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True, help="folder of the sources")
    parser.add_argument("--out", type=Path, required=True, help="folder for the libraries")
    parser.add_argument("--sizes", default="300,3000,30000,200000", help="numbers of documents")
    options = parser.parse_args()
    for documents in map(int, options.sizes.split(",")):
        began = time.perf_counter()
        out = build(options.data, options.out / short(documents), documents)
        print(f"{out.name}: {documents} documents, {time.perf_counter() - began:.1f} s", flush=True)


if __name__ == "__main__":
    main()
