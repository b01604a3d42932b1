"""Malformed files in every place of a library: no hang, no crash, no byte lost that nobody had to touch."""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest
from fault_disk import hooked, nothing
from fault_files import by_hand, corpus, generated
from fault_hang import watched

from infinimem.errors import InfinimemError
from infinimem.markdown.characters import clean_text
from infinimem.markdown.document import Document
from infinimem.memory import Memory, open_memory
from infinimem.model import CURRENT, Move, NewEntry, Plan, Turn
from infinimem.store.library import Library, init
from infinimem.store.plans import HEADER_KEYS
from infinimem.store.view import Applied, View

SAMPLE = Path(__file__).parents[1] / "sample_library"
MARKDOWN = (
    "topics/x.md",
    "CURRENT.md",
    "evidence/2025-01-01.md",
    "archive/x.md",
    "journal/0001-x.md",
    "notes/x.md",
)
STATE = ("infinimem.toml", ".infinimem/seq", ".infinimem/state.db", ".infinimem/drawn", ".infinimem/lock")
STAGED = (
    ".infinimem/tx/0001/manifest",
    ".infinimem/tx/0001/1.bin",
    ".infinimem/tx/x",
    ".infinimem/displaced/x",
)
OURS = frozenset({"topics", "CURRENT.md", "evidence", "archive"})


def now() -> datetime:
    return datetime(2025, 3, 3, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small library with a line in every place."""
    library = init(tmp_path_factory.mktemp("base") / "memory")
    library.clock = now
    with hooked(nothing):
        told = library.record([Turn(f"fact {n}", time="2025-01-01") for n in range(6)])
        done = library.apply(Plan(adds=tuple(NewEntry(p.text, (p.seq,)) for p in told[:5])))
        assert isinstance(done, Applied)
        seqs = [place.seq for place in done.added]
        moves = [
            Move(seqs[0], "topics/x", "A"),
            Move(seqs[1], "topics/y", "B"),
            Move(seqs[2], "topics/y", "B"),
        ]
        library.apply(Plan("consolidate", moves=tuple(moves)))
        again = Move(seqs[2], "topics/x", why="superseded", by=seqs[0])
        library.apply(Plan("consolidate", moves=(Move(seqs[3], "topics/y"), again)))
    (library.root / "notes").mkdir()
    (library.root / "notes/n.md").write_text("# Mine\n\nOat milk, [[x]]\n")
    return library.root


class Handled:
    """Works on a library as people and programs do; an error of ours is an answer, any other is a crash."""

    def __init__(self, root: Path, planted: Iterable[str]) -> None:
        self.root = root
        self.planted = planted
        self.errors: list[str] = []

    def all(self) -> None:
        memory = self._try(lambda: open_memory(self.root, model="offline", clock=now))
        if memory is None:
            return
        for work in (memory.doctor, memory.status, *self._readings(memory)):
            self._try(work)
        self._try(memory.library.adopt_edits)
        self._try(lambda: memory.library.record([Turn("a turn that is new", time="2025-01-01")]))
        self._try(lambda: self._extract(memory.library))
        self._try(lambda: self._move(memory.library))
        again = self._try(lambda: open_memory(self.root, model="offline", clock=now))
        if again is not None:
            self._try(again.doctor)

    def _try(self, work: Callable[[], Any]) -> Any:
        try:
            with watched():
                return work()
        except InfinimemError as error:
            self.errors.append(str(error))
            return None

    def _readings(self, memory: Memory) -> Iterator[Callable[[], Any]]:
        for scope in ("default", "all"):
            yield partial(memory.tools.list_docs, scope=scope)
            yield partial(memory.tools.grep, pattern="(a+)+$|fact|oat", scope=scope)
            yield partial(memory.tools.search, query="oat milk fact", scope=scope)
        for tool in memory.tools:
            for path in self.planted:
                arguments = {"doc_id": path, "pattern": r"^(\w+\s?)*$", "query": "fact"}
                yield partial(memory.tools.text, tool.name, arguments)
        yield partial(memory.retrieve, "what about oat milk?", sources=["human"])

    def _extract(self, library: Library) -> None:
        waiting = library.view().uncited()[:3]
        library.apply(
            Plan(adds=tuple(NewEntry(place.text, (place.seq,)) for place in waiting if place.text.strip()))
        )

    def _move(self, library: Library) -> None:
        """Every document gives lines, and gets some."""
        view = library.view()
        moves: list[Move] = []
        for start, to in ((CURRENT, "topics/x"), ("topics/x", "topics/y"), ("topics/y", "topics/x")):
            lines = (
                [p for p in view.document(start).entries if view.entry(p.seq) == p] if start in view else []
            )
            moves += [Move(place.seq, to, heading="A") for place in lines[:2]]
        library.apply(Plan("consolidate", moves=tuple(moves)))


def opened(root: Path) -> View | None:
    """The library; None where it says in one line why it does not open."""
    try:
        return Library(root).view()
    except InfinimemError:
        return None


def texts(view: View) -> Counter[str]:
    scopes = ("default", "archive", "evidence")
    return Counter(
        place.text
        for scope in scopes
        for place in view.entries(scope)  # type: ignore[arg-type]
        if not view.is_note(place.doc_id)
    )


def _to_draw_from(view: View) -> set[str]:
    """Texts of turns that nothing was drawn from, that share a number, or that lines which share one cite."""
    turns = list(view.entries("evidence"))
    lines = [*turns, *view.entries(), *view.entries("archive")]
    times = Counter(line.seq for line in lines)
    free = {turn.seq for turn in view.uncited()}
    free |= {seq for line in lines if times[line.seq] > 1 for seq in (line.seq, *line.entry.origin)}
    return {turn.text for turn in turns if turn.seq in free}


def plain(text: str) -> str:
    return " ".join(clean_text(text).split())


def untouchable(document: Document) -> list[str]:
    """What no work may change: all lines but entries, list items, titles and a header that is read."""
    free = {*range(1, document.header.end + 1)} if document.header.problem is None else set()
    free |= {n for place in document.entries for n in range(place.start_line, place.end_line + 1)}
    free |= {item.line for item in document.unsigned} | {heading.line for heading in document.headings}
    lines = enumerate(document.lines, 1)
    return [line.rstrip("\r") for n, line in lines if n not in free and line.strip()]


def inside(few: list[str], many: list[str]) -> bool:
    """Whether the few stand among the many in their order."""
    rest = iter(many)
    return all(line in rest for line in few)


def _numberless(data: bytes) -> bytes:
    """Without seqs: of one that stands twice the later line gets another, and nothing else of it changes."""
    return re.sub(rb",was=[0-9]+", b"", re.sub(rb"(?m)^- <seq=[0-9]+", b"- <seq=", data))


def check_bytes(path: str, old: bytes, root: Path) -> None:
    """What was planted is there, but for what had to be touched."""
    new = (root / path).read_bytes() if (root / path).is_file() else None
    top = path.split("/")[0]
    if top not in OURS:
        assert new == old, "a file of no concern was changed"
    elif top == "evidence":
        assert new is not None
        assert _numberless(new).startswith(_numberless(old)), "a file that only grows was changed"
    else:
        before, after = Document.parse(path[:-3], old), Document.parse(path[:-3], new or b"")
        fixed = untouchable(before)
        rules = [n for n, line in enumerate(fixed) if line == "---"][:2]
        if after.header.end and not before.header.end and len(rules) == 2:
            del fixed[rules[0] : rules[1] + 1]  # a signed line stood in the way of its being read
        assert inside(fixed, [line.rstrip("\r") for line in after.lines]), "a line was touched"
        if before.header.problem is None and new is not None:
            kept = {key: value for key, value in before.header.values.items() if key not in HEADER_KEYS}
            kept.pop("current_epoch", None)
            assert kept.items() <= after.header.values.items(), "a key of a person's header was lost"
        assert before.bom <= after.bom or new is None


def plant(base: Path, root: Path, files: Mapping[str, bytes]) -> None:
    """A fresh library with these files in it."""
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(base, root, copy_function=shutil.copyfile)
    for path, data in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)


def attempt(base: Path, root: Path, files: Mapping[str, bytes]) -> None:
    """All of it, with these files in a library."""
    plant(base, root, files)
    with hooked(nothing):
        start = opened(root) or Library(base).view()
        before = texts(start)
        typed = Counter(item.text for doc_id in start.ids() for item in start.document(doc_id).unsigned)
        waiting = _to_draw_from(start)
        handled = Handled(root, files)
        handled.all()
        view = opened(root)
    assert all("\n" not in error and len(error) < 1500 for error in handled.errors), handled.errors
    for path, data in files.items():
        if path in (*MARKDOWN, "infinimem.toml"):
            check_bytes(path, data, root)
    if view is not None:
        after = texts(view)
        assert not before - after, "a line is lost"
        known = {*typed, *waiting, "a turn that is new"}
        assert set(map(plain, after - before)) <= set(map(plain, known)), "a line came from nowhere"
    assert not (root.parent.parent / "x.md").exists()


def attempts(
    base: Path, root: Path, places: Sequence[str], files: Iterator[tuple[str, bytes]], at_once: int = 1
) -> None:
    """The files in the places in turn; so many of them in one library."""
    turn = cycle(places)
    while some := list(islice(files, at_once)):
        planted = {next(turn): named for named in some}
        try:
            attempt(base, root, {path: data for path, (_, data) in planted.items()})
        except BaseException as error:
            for path, (name, data) in planted.items():
                error.add_note(f"file {name} at {path}: {data[:300]!r}")
            raise


GROUPS = {"markdown": (MARKDOWN, len(MARKDOWN)), "state": (STATE, 1), "staged": (STAGED, 1)}
"""Places, and how many of them get a file at once."""
SHORT = {"markdown": 60, "state": 10, "staged": 10}
LONG = {"markdown": 22_500, "state": 1500, "staged": 1000}
"""Of each of four parts, that can run beside each other."""


@pytest.fixture(scope="module")
def real() -> list[bytes]:
    data = Path(os.environ.get("INFINIMEM_DATA", SAMPLE.parent.parent / "shared" / "data"))
    return corpus(SAMPLE, data)


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.soak) for part in range(1, 5))])
@pytest.mark.parametrize("group", GROUPS)
def test_generated_files(base: Path, tmp_path: Path, real: list[bytes], group: str, part: int) -> None:
    places, at_once = GROUPS[group]
    count = (LONG if part else SHORT)[group]
    attempts(base, tmp_path / "m", places, generated(part, count, real), at_once)


HEAVY = frozenset(
    (
        *("headings", "blank lines", "origins", "deeper headings", "one line", "blanks", "less-than"),
        *("header of a megabyte", "toml tables", "a rule of stars", "carriage returns", "open quotation"),
        *("words on one line", "open fences", "openers", "bidi", "hashes", "a table row of bars"),
        *("four thousand entries", "commas", "one field", "surrogates", "one entry"),
    )
)
"""Those that take their time: hundreds of thousands of lines or marks."""


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.soak) if name in HEAVY else name for name in by_hand()],
)
def test_a_file_made_by_hand_where_it_hurts(base: Path, tmp_path: Path, name: str) -> None:
    place = (
        "infinimem.toml" if name.startswith("toml") else STAGED[0] if name.startswith("json") else MARKDOWN[0]
    )
    attempts(base, tmp_path / "m", (place,), iter([(name, by_hand()[name])]))


@pytest.mark.soak
@pytest.mark.parametrize("place", (*MARKDOWN, *STATE, *STAGED))
def test_files_made_by_hand_in_every_place(base: Path, tmp_path: Path, place: str) -> None:
    attempts(base, tmp_path / "m", (place,), iter(by_hand().items()))
