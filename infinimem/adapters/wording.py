"""How files and directories are shown to a model, as Anthropic documents it for the memory tool. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from infinimem.adapters.paths import Refused

DEPTH = 2
"""Levels that a listing shows."""


def listing(path: str, sizes: Mapping[str, int]) -> str:
    """A directory, `DEPTH` levels deep, by name.

    Args:
        path: of the directory.
        sizes: bytes of each file below it, by its path from there.
    """
    rows: dict[str, int] = {}
    for name, size in sizes.items():
        parts = name.split("/")
        for level in range(1, min(len(parts), DEPTH) + 1):
            shown = "/".join(parts[:level]) + "/" * (level < len(parts))
            rows[shown] = rows.get(shown, 0) + size
    head = f"Here're the files and directories up to {DEPTH} levels deep in {path}, excluding hidden items:"
    below = [f"{_size(size)}\t{path}/{name}" for name, size in sorted(rows.items())]
    return "\n".join((head, f"{_size(sum(sizes.values()))}\t{path}", *below))


def _size(count: int) -> str:
    """Bytes for people: 0B, 512B, 1.5K, 3M."""
    size, unit = float(count), "B"
    for larger in "KMG":
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.1f}".removesuffix(".0") + unit


def numbered(lines: Sequence[str], first: int, last: int) -> str:
    """Lines `first` to `last`, each behind its number; they count from 1."""
    return "\n".join(f"{number:6}\t{lines[number - 1]}" for number in range(first, last + 1))


def line_range(view_range: object, count: int) -> tuple[int, int]:
    """The first and the last line to show.

    Args:
        view_range: as a model gives it: two line numbers, -1 for the last line; None for all.
        count: lines of the file.

    Raises:
        Refused: it is no such range, or holds no line of the file.
    """
    if view_range is None:
        return 1, count
    if not isinstance(view_range, list | tuple) or [type(one) for one in view_range] != [int, int]:
        raise Refused(f"Invalid `view_range`: {ascii(view_range)[:60]}. It should be a list of two integers.")
    first, last = max(1, view_range[0]), count if view_range[1] == -1 else min(view_range[1], count)
    if not first <= last:
        raise Refused(f"Invalid `view_range`: {list(view_range)}. The file has {count} lines.")
    return first, last


def occurrences(text: str, words: str) -> list[int]:
    """Numbers of the lines in which words begin, overlapping ones too, each once."""
    found: dict[int, None] = {}
    at = text.find(words)
    while at >= 0:
        found[text.count("\n", 0, at) + 1] = None
        at = text.find(words, at + 1)
    return list(found)
