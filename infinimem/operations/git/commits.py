"""One commit per receipt: when it is made, of which files, with which message; and why it has to wait.

    .infinimem/git      the newest receipt that git has, and the last reason for waiting that was logged

Called under the library's lock, so that a commit holds a consistent state and two processes never commit at
once. Git itself is asked what it has; the note only saves asking. A crash before the commit loses nothing:
the next receipt's commit includes both. A message never contains the text of a line.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from infinimem.errors import LibraryError
from infinimem.log import log
from infinimem.model import CURRENT, Finding, Receipt
from infinimem.operations.git.repository import Changed, GitUnusable, NoRepository, Repository
from infinimem.spec import owned_folders
from infinimem.store.files import Files
from infinimem.store.library import Library
from infinimem.store.receipts import number_of, parse_receipt
from infinimem.store.spec import EVIDENCE, JOURNAL, MEMORIES
from infinimem.store.view import View

PATH = ".infinimem/git"
LENGTH = 30_000
"""Characters of a message, which ends there: it is one argument of a command."""
IGNORED = ".gitignore leaves out journal/, and commits are made of receipts; take it out of there"


@dataclass(frozen=True)
class Uncommitted:
    """Receipts that no commit has, oldest first, and why: "" where nothing is in the way."""

    receipts: tuple[str, ...] = ()
    why: str = ""


def keep(library: Library, unless_known: bool = False) -> None:
    """Commit what no commit has, under the lock. A problem with git is logged once, and stops nothing.

    Args:
        library: the library.
        unless_known: ask git only where there is a receipt that it is not known to have.
    """
    files, note, known = library.files, _read(library.files), None
    try:
        view = library.view()
        newest = _receipts(view)[-1:]
        if unless_known and note.get("newest", []) == newest:
            return
        _commit(files, view, library.clock())
        told, known = "", newest
    except (GitUnusable, LibraryError, OSError) as error:
        told = _advice(error)
    if told and told != note.get("said"):
        log.warning("git = true: %s", told)
    with suppress(LibraryError):
        files.stage(f"{PATH}.new", json.dumps({"newest": known, "said": told}).encode(), durable=False)
        files.rename(f"{PATH}.new", PATH)


def _commit(files: Files, view: View, now: datetime) -> None:
    """Commit all that differs."""
    repository = Repository(files.root)
    if obstacle := repository.obstacle():
        raise GitUnusable(obstacle)
    changed = repository.changed(_ours())
    if fault := _fault(changed, view):
        raise GitUnusable(fault)
    ours = changed.only(lambda path: _is_ours(path, files))
    if ours.paths:
        waiting = _new_receipts(changed, view)
        receipts = [parse_receipt(view.document(doc_id)) for doc_id in waiting]
        time = _time(receipts[-1].time, now) if receipts else now
        text = message(receipts, *_said(view, waiting, ours.paths))
        repository.commit(ours, text, time, now)


def _fault(changed: Changed, view: View) -> str:
    """What a person has to mend before anything can be committed; "" for nothing."""
    if changed.unmerged:
        return f"{changed.unmerged[0]} has an unresolved conflict"
    newest = [f"{doc_id}.md" for doc_id in _receipts(view)[-1:]]
    return IGNORED if newest and {"", JOURNAL, *newest}.intersection(changed.left_out) else ""


def _ours() -> tuple[str, ...]:
    return (f"{CURRENT}.md", *(folder.removesuffix("/") for folder in (*owned_folders(), MEMORIES)))


def _said(view: View, waiting: Collection[str], paths: Collection[str]) -> tuple[int, int]:
    """Turns and lines in these files that came after the newest receipt that does not wait."""
    done = [doc_id for doc_id in _receipts(view) if doc_id not in waiting]
    high = parse_receipt(view.document(done[-1])).high if done else 0
    documents = [view.document(doc_id) for path in paths if (doc_id := path.removesuffix(".md")) in view]
    came = [place for document in documents for place in document.entries if place.seq > high]
    turns = sum(place.doc_id.startswith(EVIDENCE) for place in came)
    return turns, sum(bool(place.entry.origin) for place in came)


def uncommitted(files: Files, view: View) -> Uncommitted:
    """What no commit has. Reads only."""
    try:
        repository = Repository(files.root)
        changed = repository.changed(_ours())
        receipts = tuple(_new_receipts(changed, view))
        why = (repository.obstacle() or str(_read(files).get("said", ""))) if receipts else ""
        return Uncommitted(receipts, _fault(changed, view) or why)
    except NoRepository as error:
        return Uncommitted(tuple(_receipts(view)), _advice(error))
    except (GitUnusable, OSError) as error:
        return Uncommitted((), _advice(error))


def findings(files: Files, view: View) -> list[Finding]:
    """What `doctor` says of it."""
    found = uncommitted(files, view)
    if not found.why:
        return []
    count = len(found.receipts)
    what = f"{count} receipt{'s' * (count != 1)} not committed: {found.why}" if count else found.why
    return [Finding("note", f"git = true: {what}", found.receipts[0] if count else JOURNAL)]


def _advice(error: Exception) -> str:
    if isinstance(error, NoRepository):
        return f"{error}; to begin one, run: git init"
    return f"{error}; the commit is made with the next receipt"


def _receipts(view: View) -> list[str]:
    """Ids of all receipts, oldest first."""
    return sorted(view.below(JOURNAL), key=lambda doc_id: (number_of(doc_id), doc_id))


def _new_receipts(changed: Changed, view: View) -> list[str]:
    new = set(changed.new)
    return [doc_id for doc_id in _receipts(view) if f"{doc_id}.md" in new]


def _is_ours(path: str, files: Files) -> bool:
    """Whether the program writes it: Markdown in its folders, no link, nothing hidden or half written."""
    plain = (
        path.endswith(".md") and path.isprintable() and not any(p.startswith(".") for p in path.split("/"))
    )
    return plain and (files.is_plain(path) or not files.exists(path))


def _time(said: str, now: datetime) -> datetime:
    try:
        return datetime.strptime(said, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        return now


def _read(files: Files) -> dict[str, object]:
    try:
        found = json.loads(files.read(PATH) or b"{}")
    except (ValueError, RecursionError, LibraryError):
        return {}
    return found if isinstance(found, dict) else {}


# ── messages ────────────────────────────────────────────────────────────────────────────────────


def message(receipts: Sequence[Receipt], turns: int, lines: int) -> str:
    """A subject, and a paragraph for each receipt.

    Args:
        receipts: oldest first; none where there is only what was said and written since, more than one where
            some had to wait.
        turns, lines: how many were said, and drawn from that, since the receipts that were committed before.
    """
    said = ", ".join([f"{n} {what}{'s' * (n != 1)}" for n, what in ((turns, "turn"), (lines, "line")) if n])
    if not receipts:
        return f"record: {said}\n" if said else "edit: by hand\n"
    *earlier, last = receipts
    more = f" (and {len(earlier)} earlier)" if earlier else ""
    parts = [f"{_subject(last)}{more}", *("\n".join(_listed(receipt)) for receipt in receipts)]
    text = "\n\n".join([*parts, *([f"record: {said}"] if said else [])])
    # A receipt is a file, and may say anything.
    return "".join(c if c == "\n" or c.isprintable() else " " for c in text)[:LENGTH] + "\n"


def _subject(receipt: Receipt) -> str:
    what, number = ("line", len(receipt.rows)) if receipt.rows else ("file", len(receipt.files))
    return f"{receipt.op[:30]}: {number} {what}{'s' * (number != 1)}"


def _listed(receipt: Receipt) -> Iterator[str]:
    """The receipt's name, and what went where."""
    by = f", {receipt.strategy}" if receipt.strategy not in ("", "people") else ""
    model = f", {receipt.model[:60]}" if receipt.model not in ("", "none") else ""
    yield f"{receipt.id}: {_subject(receipt)}{by}{model}"
    ways = sorted(Counter((row.was, row.now) for row in receipt.rows if row.was != row.now).items())
    listed = [f"  {was} -> {now}: {count}" for (was, now), count in ways]
    yield from listed or (f"  {name}" for name, *_ in receipt.files)
