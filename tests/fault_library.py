"""What must hold of a library after anything went wrong: the one list that all fault tests check."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from random import SystemRandom
from unittest.mock import patch

import pytest

from infinimem import settings
from infinimem.markdown.document import Document
from infinimem.operations.doctor import examine
from infinimem.store.library import Library
from infinimem.store.view import View


@pytest.fixture
def parsed_once() -> Iterator[None]:
    """What many states of a library share is parsed once: the same bytes give the same document."""
    with (
        patch.object(Document, "parse", lru_cache(maxsize=2000)(Document.parse)),
        patch.object(settings, "parse_values", lru_cache(settings.parse_values)),
    ):
        yield


@pytest.fixture
def seed() -> int:
    """Another number in each run, or $INFINIMEM_SEED; pytest shows it where the test fails."""
    number = int(os.environ.get("INFINIMEM_SEED") or SystemRandom().randrange(10**6))
    print(f"INFINIMEM_SEED={number} repeats this run")
    return number


def tree(root: Path) -> dict[str, bytes]:
    """The bytes of all that people see; machine state left out."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".infinimem" not in path.relative_to(root).parts
    }


def lines(view: View) -> list[tuple[int, str]]:
    """Seq and bytes of every line: live, archived, and what was said."""
    scopes = ("default", "archive", "evidence")
    return sorted(
        (place.seq, place.entry.line)
        for scope in scopes
        for place in view.entries(scope)  # type: ignore[arg-type]
        if not view.is_note(place.doc_id)
    )


def problems(root: Path, acknowledged: Mapping[int, str]) -> list[str]:
    """What is wrong with a library that was opened again after a fault; empty when nothing is.

    Args:
        root: the folder.
        acknowledged: text by seq of every evidence line and entry that a call returned before the fault.
    """
    opened = Library(root)
    found = [f"doctor: {item.what} at {item.where}" for item in examine(opened) if item.level == "error"]
    there = lines(opened.view())
    times = Counter(seq for seq, _ in there)
    found += [f"seq {seq} stands {count} times" for seq, count in sorted(times.items()) if count > 1]
    texts: dict[int, str] = {}
    for scope in ("default", "archive", "evidence"):
        texts.update((place.seq, place.text) for place in opened.view().entries(scope))  # type: ignore[arg-type]
    for seq, text in sorted(acknowledged.items()):
        if seq not in texts:
            found.append(f"seq {seq} was acknowledged and is gone: {text[:60]!r}")
        elif texts[seq] != text:
            found.append(f"seq {seq} says {texts[seq][:60]!r}, not {text[:60]!r}")
    once = tree(root)
    if lines(Library(root).view()) != there or tree(root) != once:
        found.append("opening it a second time changed it")
    return found
