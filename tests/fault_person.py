"""What a person does to a library's files, with an editor and a file manager; never through the store.

Every `pick` is any whole number: it chooses among what there is, so that a test can draw it beforehand.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

SIGNED = re.compile(rb"- <(?:[a-z_]+=[^>]*,)?seq=(\d+)[,>]")
T = TypeVar("T")


@dataclass(frozen=True)
class Spot:
    """A signed line of a live or archived document: file, index of the line, its bytes without line end."""

    path: Path
    index: int
    line: bytes


def choose(options: Sequence[T], pick: int) -> T | None:
    return options[pick % len(options)] if options else None


def files(root: Path, *folders: str) -> list[Path]:
    """CURRENT and the documents of these folders, sorted."""
    found = [path for folder in folders for path in sorted((root / folder).rglob("*.md"))]
    current = root / "CURRENT.md"
    return [current, *found] if current.exists() else found


def spots(root: Path, *folders: str) -> list[Spot]:
    """Signed lines of CURRENT and of these folders."""
    return [
        Spot(path, index, line)
        for path in files(root, *folders)
        for index, line in enumerate(path.read_bytes().split(b"\n"))
        if SIGNED.match(line)
    ]


def save(path: Path, data: bytes, pick: int) -> None:
    """As editors do: in place, or under another name that takes the file's place."""
    if pick % 2:
        path.write_bytes(data)
    else:
        draft = path.with_name(f"{path.name}~")
        draft.write_bytes(data)
        draft.replace(path)


def _replace(spot: Spot, lines: Sequence[bytes], pick: int) -> None:
    """Other lines in the place of one."""
    body = spot.path.read_bytes().split(b"\n")
    body[spot.index : spot.index + 1] = lines
    save(spot.path, b"\n".join(body), pick)


def edit_text(root: Path, pick: int, word: str) -> None:
    """Rewrite what a signed line says."""
    spot = choose(spots(root, "topics", "archive"), pick)
    if spot is None:
        return
    head, _, text = spot.line.partition(b"> ")
    end = b"\r" if text.endswith(b"\r") else b""
    said = [text.removesuffix(b"\r") + b" " + word.encode(), word.encode() + b" > instead", word.encode()]
    _replace(spot, [head + b"> " + said[pick % 3] + end], pick)


def edit_signature(root: Path, pick: int, word: str) -> None:
    """Change what a line says of itself: its source, a key of one's own, its seq; or break it."""
    spot = choose(spots(root, "topics"), pick)
    if spot is None:
        return
    seq = int(SIGNED.match(spot.line)[1])  # type: ignore[index]
    highest = max(int(SIGNED.match(other.line)[1]) for other in spots(root, "topics", "archive"))  # type: ignore[index]
    changes = (
        (b">", f",label={word}>".encode()),
        (b">", b",pin=yes>"),
        (b"source=user", b"source=human"),
        (b"seq=%d" % seq, b"seq=%d" % (highest + 1 + pick % 5)),
        (b"seq=%d" % seq, b"seq=%d" % max(1, seq - 1)),
        (b"source=", b"source=x"),
    )
    old, new = changes[pick // 7 % len(changes)]
    _replace(spot, [spot.line.replace(old, new, 1)], pick)


def delete_line(root: Path, pick: int) -> None:
    spot = choose(spots(root, "topics", "archive"), pick)
    if spot is not None:
        _replace(spot, [], pick)


def paste_line(root: Path, pick: int, cut: bool) -> None:
    """Copy a signed line to the end of another live document, or move it there."""
    spot = choose(spots(root, "topics") if cut else spots(root, "topics", "archive", "evidence"), pick)
    target = choose(files(root, "topics"), pick // 3)
    if spot is None or target is None:
        return
    if cut:
        _replace(spot, [], pick)
    body = target.read_bytes()
    gap = b"" if body.endswith(b"\n") or not body else b"\n"
    save(target, body + gap + spot.line.removesuffix(b"\r") + b"\n", pick // 5)


def write_text(root: Path, pick: int, word: str) -> None:
    """Type list items, a task, prose, a header key, at the end or above the first line; often in CURRENT."""
    path = choose(files(root, "topics") if pick % 2 else files(root), pick)
    if path is None:
        return
    typed = (
        f"- {word}, typed\n",
        f"* one {word}\n+ two   \n- [ ] three {word}\n",
        f"\nSome prose of {word}.\nAnd more | of it.\n",
        f"# Mine\n- item {word}\r\n- <b>bold</b> {word}\n",
        f"no line end {word}",
        f"\n- -- {word} `- <seq=1>`\n",
        f"- no line end either, {word}",
    )[pick // 3 % 7].encode()
    body = path.read_bytes()
    if pick % 5 == 4 and body.startswith(b"---\n"):
        save(path, body.replace(b"---\n", f"---\n{word}: [a, b]\n".encode(), 1), pick)
        return
    gap = b"" if body.endswith(b"\n") or not body else b"\n"
    save(path, body + gap + typed, pick)


def resave(root: Path, pick: int) -> None:
    """Save a file unchanged but for its line ends or a byte order mark."""
    path = choose(files(root, "topics", "archive"), pick)
    if path is None:
        return
    bom, body = b"\xef\xbb\xbf", path.read_bytes()
    plain = body.removeprefix(bom).replace(b"\r\n", b"\n")
    save(path, (plain.replace(b"\n", b"\r\n"), bom + plain, plain)[pick // 3 % 3], pick)


def delete_file(root: Path, pick: int) -> None:
    """Any document but a receipt."""
    path = choose(files(root, "topics", "archive", "evidence"), pick)
    if path is not None:
        path.unlink()


def rename_topic(root: Path, pick: int, word: str) -> None:
    path = choose([path for path in files(root, "topics") if path.parent != root], pick)
    if path is not None:
        path.rename(root / "topics" / (f"{word}.md", f"{word}, as I call it.md")[pick % 2])


def delete_state(root: Path) -> None:
    shutil.rmtree(root / ".infinimem", ignore_errors=True)


def clone(root: Path, copy: Path) -> None:
    """The folder as version control or a copy without hidden files gives it."""
    shutil.copytree(root, copy, ignore=shutil.ignore_patterns(".infinimem"))
