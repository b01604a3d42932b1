"""What lies beside the documents: freed of what is forgotten, and searched for it afterwards.

set_aside    before the documents change: what awaits a person loses the lines, else what quotes them goes
finish       afterwards: backups, old rows of lists, staged copies and caches go. It needs to know no text,
             so that anyone can finish it after a crash: .infinimem/forgetting says that it is to be done
left         the search of every byte and name, in library and cache
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from infinimem.errors import LibraryError
from infinimem.markdown.document import Document
from infinimem.model import CURRENT
from infinimem.operations.forget import BEGUN
from infinimem.operations.forget.choice import Choice, numbered
from infinimem.operations.forget.words import Texts, forms
from infinimem.operations.provenance import recorded
from infinimem.settings import SETTINGS
from infinimem.spec import owned_folders
from infinimem.store.commit.install import CONFLICTS
from infinimem.store.commit.transaction import DISPLACED, clear_displaced
from infinimem.store.files import MAX_OWNED, STAGED, Files
from infinimem.store.listing import explained
from infinimem.store.names import aliases_of
from infinimem.store.spec import ARCHIVE, EVIDENCE, MEMORIES, TOPICS
from infinimem.store.state import drawn, kept_plans, last_seen, rejected, sequence, tails, withheld
from infinimem.store.view import View
from infinimem.user_folders import cache_root, caches

GIT = ".git"
STATE = ".infinimem/"
_LISTS = (tails.DOUBTFUL, sequence.MARK, sequence.GIVEN, drawn.REFUSED)
_SILENT = frozenset((SETTINGS, ".gitignore", f"{STATE}.gitignore", f"{STATE}lock", *_LISTS))
"""What every library has, beside its folders, and what holds no text of any line."""
_SUM = re.compile(r"\b[0-9a-f]{12}-")
"""A checksum in the name of a conflict (commit/install.py)."""


# ── before ──────────────────────────────────────────────────────────────────────────────────────


def set_aside(files: Files, choice: Choice) -> None:
    """Take the lines out of what awaits a person. Plans that wait go, and what quotes them besides."""
    seqs, texts = choice.seqs, choice.texts
    concerned = {
        (item.receipt, item.move.seq)
        for item in withheld.proposals(files)
        if seqs & {item.move.seq, item.move.by} or texts.named(f"{item.move.to} {item.move.heading}")
    }
    withheld.drop(files, concerned)
    for name in files.names(kept_plans.FOLDER):
        files.remove(f"{kept_plans.FOLDER}/{name}")
    for path, data in _stored(files, STATE):
        if data is None or path.startswith((DISPLACED, rejected.FOLDER, last_seen.PATH)):
            continue  # `finish` looks after these
        if path.startswith(f"{CONFLICTS}/"):
            data = _conflict(files, path, data, choice)
        if data and texts.within(data):
            files.remove(path)


def _conflict(files: Files, path: str, data: bytes, choice: Choice) -> bytes:
    """A version of a document, or lines of one: it loses the lines, and lines that hold any of the text."""
    is_evidence = "-evidence-" in path or path.startswith(f"{CONFLICTS}/evidence-")
    old = Document.parse(f"{EVIDENCE if is_evidence else TOPICS}conflict", data)
    new, seqs = old.without(choice.seqs), choice.seqs
    new = new.blanked(
        {n for n, line in enumerate(new.lines, 1) if numbered(line) in seqs or choice.texts.hinted(line)}
    )
    if new.lines == old.lines:
        return data
    if not (new.entries or new.unsigned or new.has_prose):
        files.remove(path)
        return b""
    bare = _SUM.sub("", path)  # a checksum in a name is that of the old bytes
    files.replace(bare, new.to_bytes())
    if bare != path:
        files.remove(path)
    return new.to_bytes() if bare == path else b""


# ── afterwards ──────────────────────────────────────────────────────────────────────────────────


def begin(files: Files) -> None:
    """Note durably that `finish` is to be done."""
    files.replace(BEGUN, b"")


def finish(files: Files) -> None:
    """Drop what may still hold the texts. The caller holds the lock, and nothing is under way."""
    if not files.exists(BEGUN):
        return
    clear_displaced(files)
    for name in files.names(rejected.FOLDER):
        files.remove(f"{rejected.FOLDER}/{name}")
    if files.exists(tails.INTENT):
        files.remove(tails.INTENT)
    last_seen.compact(files)
    for folder, folders, names in os.walk(files.root):
        folders[:] = [name for name in folders if name != GIT]
        if STAGED in names:
            files.remove((Path(folder) / STAGED).relative_to(files.root).as_posix(), durable=False)
    root = cache_root()
    if root is not None and not root.is_symlink():
        with suppress(OSError):  # moved first: who is building one finds no place for what it read before
            root.rename(root.with_name(f"{root.name}.{os.getpid()}.gone"))
    for cache in caches():
        if not cache.is_symlink():
            shutil.rmtree(cache, ignore_errors=True)
    files.remove(BEGUN)


# ── the search ──────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Residue:
    """What holds some of the words still, why that is so, and what to do."""

    path: str
    why: str


def left(files: Files, view: View, texts: Texts, preview: bool = False) -> tuple[Residue, ...]:
    """Files and folders in which any of it stands, but for lines that say the same in their own right.

    Args:
        files: of the library.
        view: the library.
        texts: what was forgotten.
        preview: tell only what a `forget` will not touch.
    """
    own = (f"{CURRENT}.md", *owned_folders(), MEMORIES, STATE)
    names = _named_documents(view, texts)
    found = [Residue(f"{doc_id}.md", _how_named(doc_id, view)) for doc_id in names]
    told = sorted({one for names in names.values() for one in names}, key=len, reverse=True)
    stored = _stored(files, unread=own) if preview else [*_stored(files), *_cached()]
    for path, data in stored:
        ours, name = path.startswith((*own, "/")), path.rpartition("/")[2]
        if not ours and texts.named(name):
            found.append(Residue(path, "its name: rename it"))
        elif ours and path.startswith((STATE, "/")) and texts.within(name):
            found.append(Residue(path, "its name: delete it"))
        if data and (
            texts.holds(data, told if ours else ())
            or (not ours and texts.named(data.decode("utf-8", "replace")))
        ):
            why = "not taken out: edit or delete it" if ours else "a person's note: edit it"
            found.append(Residue(path, why))
    return tuple(found)


def _how_named(doc_id: str, view: View) -> str:
    where = "its name or a heading" if doc_id in view else "it is gone, but receipts name it"
    return f"{where}: `infinimem rename {shlex.quote(doc_id)} NEW` changes the name"


def _named_documents(view: View, texts: Texts) -> dict[str, set[str]]:
    """Documents of the program whose names, titles, sessions or headings tell of it, with what these say."""
    found: dict[str, set[str]] = {}
    known = {name for receipt in recorded(view).receipts for name, _, _ in receipt.files}
    known |= {row.was for receipt in recorded(view).receipts for row in receipt.rows}
    for doc_id in sorted(known.union(view.ids("all"))):
        if not doc_id.startswith((CURRENT, TOPICS, ARCHIVE, EVIDENCE, MEMORIES)):
            continue
        stem = doc_id.rpartition("/")[2]
        names = {stem, stem.replace("-", " ")}
        if doc_id in view:
            document = view.document(doc_id)
            headings = (heading.title for heading in document.headings)
            session = str(document.header.values.get("session", ""))
            names |= {document.title, session, *aliases_of(document), *headings} - {""}
        if any(map(texts.hinted if doc_id.startswith((TOPICS, ARCHIVE)) else texts.named, names)):
            found[doc_id] = {form.decode() for name in names for form in forms(name)}
    return found


def _stored(
    files: Files, below: str = "", unread: tuple[str, ...] = ()
) -> Iterator[tuple[str, bytes | None]]:
    """Paths in the library but for .git, and what files hold; None for folders and what cannot be read.

    Args:
        unread: how paths begin of which the names alone are wanted.
    """
    listed = (*owned_folders(), MEMORIES, STATE)
    for folder, folders, names in os.walk(files.root / below):
        folders[:] = sorted(name for name in folders if name != GIT)
        above = (Path(folder).relative_to(files.root) / "_").as_posix()[:-1]
        for name in (*folders, *sorted(names)):
            path = above + name
            data = None
            with suppress(LibraryError):
                data = None if name in folders or path.startswith(unread) else files.read(path, MAX_OWNED)
            lists = path in _SILENT or path.startswith(drawn.PATH)
            if not lists and f"{path}/" not in listed:
                yield path, data


def _cached() -> Iterator[tuple[str, bytes]]:
    for cache in caches():
        for folder, _, names in os.walk(cache):
            for name in sorted(names):
                with explained("read", name):
                    yield str(Path(folder) / name), (Path(folder) / name).read_bytes()


def git_advice(root: Path, paths: Iterable[str]) -> str:
    """What to do about git's history, where the library lies in a repository; "" where it does not.

    Args:
        root: the library.
        paths: files that held any of it, by the names that they had.
    """
    top = next((folder for folder in (root, *root.parents) if (folder / GIT).exists()), None)
    listed = sorted(paths)
    if top is None or not listed:
        return ""
    options = " ".join(f"--path {shlex.quote((root / path).relative_to(top).as_posix())}" for path in listed)
    return (
        "git keeps what earlier commits held, here and in every clone; its history was not touched. To"
        " rewrite it: commit, copy the library somewhere safe, run"
        f" `git filter-repo --force --invert-paths {options}` in {shlex.quote(str(top))}, copy the files"
        " back, commit, push with --force, and have everyone clone anew; to rewrite commit messages that"
        " name a document, use --replace-message"
    )
