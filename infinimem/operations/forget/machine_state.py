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

from infinimem.configuration import SETTINGS
from infinimem.errors import LibraryError
from infinimem.markdown.document import Document
from infinimem.model import CURRENT, Move
from infinimem.operations.forget import BEGUN
from infinimem.operations.forget.choice import numbered
from infinimem.operations.forget.redaction import Redaction
from infinimem.operations.forget.words import Texts
from infinimem.spec import owned_folders
from infinimem.store.commit.install import CONFLICTS, NAMED
from infinimem.store.commit.transaction import DISPLACED, clear_displaced
from infinimem.store.files import MAX_OWNED, STAGED, Files, digest
from infinimem.store.listing import explained
from infinimem.store.spec import EVIDENCE, MEMORIES, TOPICS
from infinimem.store.state import drawn, kept_plans, last_seen, rejected, sequence, tails, withheld
from infinimem.user_folders import cache_root, caches

GIT = ".git"
STATE = ".infinimem/"
_LISTS = (tails.DOUBTFUL, sequence.MARK, sequence.GIVEN, drawn.REFUSED)
_SILENT = frozenset((SETTINGS, ".gitignore", f"{STATE}.gitignore", f"{STATE}lock", *_LISTS))
"""What every library has, beside its folders, and what holds no text of any line."""
_CONFLICT = re.compile(r"((?:[0-9]+-)?(?:late-|torn-)?)([0-9a-f]{12}-)?(.*)\.md")
"""The receipt that it was in the way of, a checksum, and the document (commit/install.py)."""


# ── before ──────────────────────────────────────────────────────────────────────────────────────


def set_aside(files: Files, redaction: Redaction) -> None:
    """Take the lines out of what awaits a person. What cannot be read, or quotes them besides, goes."""
    seqs, texts = redaction.choice.seqs, redaction.texts

    def concerned(move: Move) -> bool:
        return bool(seqs & {move.seq, move.by}) or texts.tells(f"{move.to} {move.heading}")

    proposals = withheld.proposals(files)
    withheld.drop(files, {(item.receipt, item.move.seq) for item in proposals if concerned(item.move)})
    for kept in kept_plans.plans(files):
        plan = kept.plan
        origins = [*(add.origin for add in plan.adds), *(item.origin for item in plan.derived)]
        named = {*kept.marks, *(seq for origin in origins for seq in origin)}
        said = [*(add.text for add in plan.adds), *(item.summary for item in plan.derived), *plan.notes]
        if seqs & named or any(map(concerned, plan.moves)) or any(map(texts.tells, said)):
            files.remove(f"{kept_plans.FOLDER}/{kept.number:04d}.json")
    for path, data in _stored(files, STATE):
        if data is None or path.startswith((DISPLACED, rejected.FOLDER, last_seen.PATH)):
            continue  # `finish` looks after these
        if path.startswith(f"{CONFLICTS}/") and (named_so := _CONFLICT.fullmatch(path, len(CONFLICTS) + 1)):
            _conflict(files, path, named_so, data, redaction)
        elif texts.within(data):
            files.remove(path)


def _conflict(files: Files, path: str, named: re.Match[str], data: bytes, redaction: Redaction) -> None:
    """A version of a document, or lines of one, without the lines and without text that tells of them."""
    head, checksum, name = named.groups("")
    old = Document.parse(f"{EVIDENCE if name.startswith('evidence-') else TOPICS}{name}", data)
    new = old.without(redaction.choice.seqs)
    signed = {n for place in new.entries for n in range(place.start_line, place.end_line + 1)}
    lines = [(n, line) for n, line in enumerate(new.lines, 1) if n not in signed]
    new = new.blanked(
        {n for n, line in lines if numbered(line) in redaction.choice.seqs or redaction.texts.tells(line)}
    )
    names = {old.replace("/", "-"): given.replace("/", "-") for old, given in redaction.names.items()}
    called = names.get(name, f"topic-{redaction.receipt}" if redaction.texts.tells(name) else name)
    if new.lines == old.lines and called == name:
        return
    if new.entries or new.unsigned or new.has_prose:
        checksum = checksum and f"{digest(new.to_bytes())[:NAMED]}-"
        files.replace(f"{CONFLICTS}/{head}{checksum}{called}.md", new.to_bytes())
        if path.endswith(f"/{head}{checksum}{called}.md"):
            return
    files.remove(path)


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


def left(files: Files, texts: Texts, preview: bool = False) -> tuple[Residue, ...]:
    """Files and folders in which any of it stands, but for lines that say the same in their own right.

    Args:
        files: of the library.
        texts: what was forgotten.
        preview: tell only what a `forget` will not touch.
    """
    found = []
    own = (f"{CURRENT}.md", *owned_folders(), STATE)
    stored = _stored(files, unread=(*own, MEMORIES)) if preview else [*_stored(files), *_cached()]
    for path, data in stored:
        ours, by_model = path.startswith((*own, "/")), path.startswith(MEMORIES)
        name = path.rpartition("/")[2]
        if not preview and texts.within(name) if ours else texts.named(name):
            found.append(Residue(path, "its name: rename it"))
        if not data:
            continue
        if texts.holds(data) or (not ours and texts.named(data.decode("utf-8", "replace"))):
            is_note = not ours and not by_model
            why = "a person's note: edit it" if is_note else "not taken out: edit or delete it"
            found.append(Residue(path, why))
    return tuple(found)


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
