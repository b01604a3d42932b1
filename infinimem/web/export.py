"""The pages as files, for publishing or for looking at offline.

In: a library and an empty folder. Out: HTML files that link to each other. Promise: the same templates as the
server's; no script, no form, and no link that leads out of the folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from importlib.resources import files
from os.path import relpath
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from infinimem.errors import UsageError
from infinimem.memory import Memory
from infinimem.operations.provenance import recorded
from infinimem.store.spec import EVIDENCE, JOURNAL
from infinimem.store.view import View
from infinimem.web import changes, overview, reading
from infinimem.web.app import Handler
from infinimem.web.prose import PAGE
from infinimem.web.site import Asked, Page, Site

ASSETS = ("style.css", "icon.svg")
Query = Mapping[str, object]


def export(memory: Memory, folder: Path) -> int:
    """Write every page that only reads.

    Args:
        memory: the library, as it is now.
        folder: made if it is not there.

    Returns:
        The number of pages.

    Raises:
        UsageError: the folder holds something.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is not empty; name a new folder")
    site, count = Site(memory, live=False), 0
    for handler, path, parts, query in _pages(memory.view):
        asked = Asked(site, path, parts, {name: str(value) for name, value in query.items()})
        page = handler(asked)
        if isinstance(page, Page):
            here = _file(path, query)
            site.link = partial(_relative, here)
            _write(folder, here, site.html(page, asked).encode())
            count += 1
    for name in ASSETS:
        _write(folder, _file(f"/static/{name}"), (files(__package__) / "static" / name).read_bytes())
    return count


def _pages(view: View) -> Iterator[tuple[Handler, str, Mapping[str, str], Query]]:
    """Handler, path, parts of the path and query of each page."""
    receipts, said = recorded(view).receipts, view.owned(EVIDENCE)
    yield reading.home, "/", {}, {}
    yield overview.graph, "/map", {}, {}
    for handler, path, total, step in (
        (reading.topics, "/topics", len(view.ids()), reading.LISTED),
        (overview.conversations, "/conversations", len(said), reading.LISTED),
        (changes.timeline, "/timeline", len(receipts), changes.LISTED),
    ):
        yield from ((handler, path, {}, query) for query in _parts(total, step))
    for doc_id in (one for one in view.ids("all") if view.group(one) != "aside"):
        if not doc_id.startswith(JOURNAL):
            for query in _parts(len(view.document(doc_id).lines), PAGE):
                yield reading.document, f"/doc/{doc_id}", {"id": doc_id}, query
    told = {row.seq for one in receipts for row in one.rows}
    for seq in sorted(told.union(view.lines.places)):
        yield reading.line, f"/fact/{seq}", {"seq": str(seq)}, {}
    for one in receipts:
        yield changes.receipt, f"/receipt/{one.number}", {"name": str(one.number)}, {}


def _parts(total: int, step: int) -> Iterator[Query]:
    yield {}
    yield from ({"from": start} for start in range(1 + step, total + 1, step))


def _file(path: str, query: Query | None = None) -> str:
    """Of a page; one that is not the first part of a list stands in a folder of its own."""
    if path.startswith("/static/"):
        return path[1:]
    start = (query or {}).get("from", 1)
    return ("" if start == 1 else f"part/{start}/") + (f"{path[1:]}.html" if path != "/" else "index.html")


def _relative(here: str, path: str, anchor: str, query: Query) -> str:
    """A link from one file to another."""
    name, _, part = path.rpartition("/")
    known = f"{name}/{part.split('-')[0].lstrip('0')}" if name == "/receipt" else path  # by its number
    link = quote(relpath(_file(known, query), PurePosixPath(here).parent))
    return link + (f"#{quote(anchor)}" if anchor else "")


def _write(folder: Path, name: str, data: bytes) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
