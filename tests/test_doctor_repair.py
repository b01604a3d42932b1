"""`doctor --fix` under random damage: it takes no word away, leaves no more errors, and is done in one go."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from doctor_library import build
from fault_library import tree
from fault_work import copy as copied
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from infinimem.markdown.document import Document, item_start
from infinimem.markdown.signature import text_start
from infinimem.operations.doctor import examine, repair
from infinimem.store.library import Library

OWN_KEYS = ("id:", "aliases:")
"""The lines of a header that `--fix` writes."""
DERIVED = {"token_count", "aux", "see_also"}
"""Keys of a topic that go with a merge of two versions of its header."""

Damage = Callable[[Path, int], None]


def texts(root: Path) -> Counter[str]:
    """What stands in every file but receipts: each line without its signature or bullet; of a header that
    somebody pasted, in whole or in part, once."""
    found: Counter[str] = Counter()
    for path in root.rglob("*.md"):
        doc_id = str(path.relative_to(root))[:-3]
        if doc_id.startswith(("journal/", ".infinimem/")):
            continue
        document = Document.parse(doc_id, path.read_bytes())
        own = [line[text_start(line.removesuffix("\r")) or item_start(line) :] for line in document.lines]
        head = {*own[: document.header_end]}
        words = (line for line in (*head, *(one for one in own if one not in head)))
        found.update(line for line in words if not line.startswith((*OWN_KEYS, "---")))
    return found


def doubled(root: Path) -> set[str]:
    """The keys that stand twice in a document, as somebody pasted its header: one of them may go."""
    found: set[str] = set()
    for path in root.rglob("*.md"):
        keys = Counter(re.findall(rb"(?m)^([\w-]+):", path.read_bytes()))
        found |= {key.decode() for key, count in keys.items() if count > 1}
    return found | (DERIVED if found else set())


def _files(root: Path) -> list[Path]:
    own = ("topics", "archive", "evidence")
    return sorted([root / "CURRENT.md", *(path for name in own for path in (root / name).glob("*.md"))])


def _lines(path: Path) -> list[bytes]:
    return path.read_bytes().split(b"\n")


def insert(data: bytes) -> Damage:
    """A line of bytes somewhere in a file."""

    def damage(root: Path, n: int) -> None:
        files = _files(root)
        path = files[n % len(files)]
        lines = _lines(path)
        lines.insert(n // 7 % (len(lines) + 1), data)
        path.write_bytes(b"\n".join(lines))

    return damage


def edit(how: Callable[[bytes], bytes]) -> Damage:
    """Any line of any file, changed or cut."""

    def damage(root: Path, n: int) -> None:
        files = _files(root)
        path = files[n % len(files)]
        lines = _lines(path)
        at = n // 7 % len(lines)
        lines[at] = how(lines[at])
        path.write_bytes(b"\n".join(lines))

    return damage


def paste(root: Path, n: int) -> None:
    """A line of one file into another."""
    files = _files(root)
    lines = _lines(files[n % len(files)])
    insert(lines[n // 5 % len(lines)])(root, n // 11)


def copy(root: Path, n: int) -> None:
    files = _files(root)
    path = files[n % len(files)]
    path.with_name(f"copy-{n % 3}.md").write_bytes(path.read_bytes())


def rename(root: Path, n: int) -> None:
    files = [path for path in _files(root) if path.name != "CURRENT.md"]
    if files:
        path = files[n % len(files)]
        path.rename(path.with_name(f"renamed-{n % 3}.md"))


def remove(root: Path, n: int) -> None:
    files = _files(root)
    files[n % len(files)].unlink()
    (root / "CURRENT.md").touch()


def forget(root: Path, n: int) -> None:
    """Lost machine state, a file of it or all."""
    names = ("seq", "seq.given", "state.db", "append")
    if n % 5 == 4:
        shutil.rmtree(root / ".infinimem", ignore_errors=True)
    else:
        (root / ".infinimem" / names[n % 5]).unlink(missing_ok=True)


def garble(root: Path, n: int) -> None:
    names = ("seq", "seq.given", "state.db", "drawn", "tx/0009/manifest", "withheld/0001.json")
    path = root / ".infinimem" / names[n % 6]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x00 {nonsense\n")


DAMAGES: tuple[Damage, ...] = (
    *map(
        insert,
        (b"- typed by hand", b"- typed\r", b"- [ ] a task", b"prose", b"", b"---", b"```", b"# Drinks"),
    ),
    *map(insert, (b"- <seq=5> another five", b"- <seq=1,source=user> another one", b"- <seq=9999> high")),
    *map(
        insert, (b"- <seq=", b"- <seq=7,time=> x", b"<<<<<<< HEAD", b">>>>>>> theirs", b"\xff\x00", b"  deep")
    ),
    insert(b"- <seq=999999999999999999> the last"),
    *map(edit, (lambda line: b"", lambda line: line + b" and more", lambda line: line + b"\r")),
    *map(edit, (lambda line: b"\xef\xbb\xbf" + line, lambda line: line[:-1], lambda line: line[1:])),
    edit(lambda line: line.replace(b"seq=", b"seq=1")),
    edit(lambda line: line.replace(b"id: ", b"id: topics/other")),
    paste,
    copy,
    rename,
    remove,
    forget,
    garble,
)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("sound") / "memory").root


def check(sound: Path, damages: list[tuple[int, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "memory"
        copied(sound, root)
        for kind, n in damages:
            DAMAGES[kind](root, n)
        library = Library(root)
        found = examine(library)
        said, twice = texts(root), doubled(root)
        done = repair(library)
        left = examine(Library(root))
        now = texts(root)
        assert not now - said and {line.partition(":")[0] for line in said - now} <= twice
        assert sum(item.level == "error" for item in left) <= sum(item.level == "error" for item in found)
        assert not [item for item in left if item.fix], (found, done)
        once = tree(root)
        assert repair(Library(root)) == []
        assert tree(root) == once


damaged = st.lists(
    st.tuples(st.integers(0, len(DAMAGES) - 1), st.integers(0, 10_000)), min_size=1, max_size=8
)
quiet = {"deadline": None, "suppress_health_check": list(HealthCheck)}


@settings(max_examples=40, **quiet)  # type: ignore[arg-type]
@given(damaged)
def test_a_repair_keeps_every_word(sound: Path, damages: list[tuple[int, int]]) -> None:
    check(sound, damages)


@pytest.mark.soak
@settings(max_examples=3000, **quiet)  # type: ignore[arg-type]
@given(damaged)
def test_a_repair_keeps_every_word_long(sound: Path, damages: list[tuple[int, int]]) -> None:
    check(sound, damages)
