"""Every byte of a library and of the caches, and in which forms a text could stand there."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import yaml


def holding(text: str, *folders: Path) -> list[str]:
    """Files below these folders that hold a text in any form; a name that holds it counts too."""
    wanted = forms(text)
    return sorted(
        {
            str(path.relative_to(folder))
            for folder in folders
            for path in folder.rglob("*")
            if any(
                form in data
                for data in (str(path.relative_to(folder)).encode(), _bytes(path))
                for form in wanted
            )
        }
    )


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() and not path.is_symlink() else b""


def forms(text: str) -> set[bytes]:
    """The whole text, each line of it, and each long sentence; as it is, and escaped."""
    parts = {text, *text.split("\n"), *re.split(r"(?<=[.!?])\s+|\n", text)}
    parts = {part.strip() for part in parts if len(part.strip()) > 20} | {text.strip()}
    return {form.encode() for part in parts for form in _written(part)}


def _written(text: str) -> Iterator[str]:
    yield text
    yield text.replace("\n", "\n  ")
    yield json.dumps(text)[1:-1]
    yield json.dumps(text, ensure_ascii=False)[1:-1]
    yield text.replace("|", "\\|")
    for width in (10**6,):
        yield yaml.safe_dump(text, default_style='"', width=width).strip()[1:-1]
        yield yaml.safe_dump(text, default_style="'", width=width).strip()[1:-1]


def held(texts: Iterable[str], root: Path) -> dict[str, list[str]]:
    """Texts that stand anywhere in a library or in the cache of this process, and where."""
    cache = Path(os.environ["XDG_CACHE_HOME"])
    found = {text: holding(text, root, cache) for text in texts}
    return {text: where for text, where in found.items() if where}
