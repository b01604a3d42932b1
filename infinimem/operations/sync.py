"""Two machines by git: what the other side has is fetched, merged line by line and pushed, and what a merge
leaves is mended. `git-setup` has plain git merge the same way.

Source: docs/GIT.md, and docs/FORMAT.md, Two machines.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from infinimem.errors import LibraryError
from infinimem.markdown.document import Document
from infinimem.model import BUFFERS, Receipt
from infinimem.operations.forget.redaction import without_records
from infinimem.operations.git import GONE, MARKS, OURS, GitUnusable, NoRepository, Repository, advice, commit
from infinimem.spec import folders
from infinimem.store.files import MAX_OWNED, Files
from infinimem.store.library import Library
from infinimem.store.lines import CONFLICT
from infinimem.store.merging import merged
from infinimem.store.plans import Rendered
from infinimem.store.spec import JOURNAL

ATTRIBUTES = ".gitattributes"
DRIVER = f"{shlex.quote(sys.executable)} -m infinimem merge-file %O %A %B %P 2>/dev/null || {MARKS}"
"""Should the program be gone from there, git leaves both sides in the file, which the next command merges."""
EMPTY = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""git's name of a tree without files."""
SYNC_TIMEOUT = 600.0
"""Seconds for all that git does in one `sync`."""

Faulty = Callable[[], Collection[str]]
"""Gives the records of which `doctor` finds errors."""


def _owned() -> tuple[str, ...]:
    """Return how paths of files begin that are merged line by line."""
    return (*(f"{name}.md" for name in BUFFERS), *folders().owned)


class Synced(NamedTuple):
    """What came from another machine and what went there, lines by seq; the remote, "" without a repository;
    receipts of what was mended here; files of a person's that both sides changed, for them to settle."""

    came: Mapping[int, str] = MappingProxyType({})
    went: Mapping[int, str] = MappingProxyType({})
    where: str = ""
    receipts: tuple[str, ...] = ()
    unsettled: tuple[str, ...] = ()


def sync(library: Library, faulty: Faulty, remote: str = "", dry_run: bool = False) -> Synced:
    """Fetch, merge and push, and mend what a merge leaves; in a folder without git only mend. A dry run tells
    what would come and go. LibraryError where git refuses: what was merged until then stays."""
    library.demand_initialised()
    done: list[str] = []
    try:
        repository = Repository(library.files.root, SYNC_TIMEOUT)
        where, branch = repository.upstream(remote)
        if left := () if dry_run else _settled(library, repository, done, faulty):
            return Synced(where=where, receipts=tuple(done), unsettled=left)
        theirs = repository.fetch(where, branch)
        base = repository.base(theirs) if theirs else EMPTY
        came, went = repository.written(base, theirs) if theirs else {}, repository.written(base)
        stands = library.view().entry  # in a file that git does not know yet
        went = {seq: text for seq, text in went.items() if not (text.startswith(GONE) and stands(seq))}
        if not dry_run and theirs and repository.said("rev-list", "-1", f"HEAD..{theirs}"):
            with library.locked():
                repository.merge(theirs)
                _merge_left(library.files, repository)
            left = _settled(library, repository, done, faulty)
        if not (dry_run or left):
            repository.push(where, branch)
    except NoRepository:
        return Synced(receipts=() if dry_run else tuple(mend(library, faulty)))
    except GitUnusable as error:
        raise LibraryError(f"{error}; nothing is lost, and sync goes on from here") from None
    return Synced(came, went, where, tuple(done), left)


def mend(library: Library, faulty: Faulty) -> list[str]:
    """Merge what other programs left of two versions, and take in the rest; return ids of the receipts."""
    receipts = (library.mend(), library.adopt_edits(), drop(library, faulty()))
    return list(dict.fromkeys(receipt.id for receipt in receipts if receipt))


def drop(library: Library, faulty: Collection[str]) -> Receipt | None:
    """Delete records that do not hold together, with all others of their turns: the next call tells those."""
    if not faulty:
        return None
    with library.locked() as view:
        records = without_records(view, (), lambda document: document.id in faulty)
        return library.commit(Rendered({**records}), view, library.of_people("merge"), (), {})


def set_up_rows() -> list[tuple[str, str]]:
    """Return what `set_up` writes: files, and lines of them."""
    tops = (folder for folder in folders().owned if folder.count("/") == 1)
    paths = (*(f"/{name}.md" for name in BUFFERS), *(f"/{folder}**" for folder in tops))
    return [
        *((ATTRIBUTES, f"{path} merge=infinimem") for path in paths),
        (".git/config", f"{OURS} = {DRIVER}"),
        (".git/config", "merge.renames = false"),
    ]


def set_up(root: Path) -> None:
    """Have git call the merge driver for the program's own files, in this clone."""
    files, lines = Files(root), [line for name, line in set_up_rows() if name == ATTRIBUTES]
    try:
        for name, value in ((OURS, DRIVER), ("merge.renames", "false")):
            Repository(root).set(name, value)
    except GitUnusable as error:
        raise LibraryError(advice(error)) from None
    had = (files.read(ATTRIBUTES) or b"").decode("utf-8", "surrogateescape").splitlines()
    text = "".join(f"{line}\n" for line in dict.fromkeys([*had, *lines]))
    files.replace(ATTRIBUTES, text.encode("utf-8", "surrogateescape"))


def merge_versions(name: str | None, base: Path, ours: Path, theirs: Path) -> None:
    """Merge two versions of a file, which git has as files of their own, into that of `ours`."""
    was, mine, yours = (path.read_bytes() for path in (base, ours, theirs))
    named = (Document.parse("", data).header.values.get("id", "") for data in (mine, yours))
    doc_id = (name or max(map(str, named))).removesuffix(".md")
    start = max(doc_id.find(one) for one in (*BUFFERS, *folders().owned))  # of a library below the top
    ours.write_bytes(merged(doc_id[max(start, 0) :], was, mine, yours))


def _settled(library: Library, repository: Repository, done: list[str], faulty: Faulty) -> tuple[str, ...]:
    """Mend what git left of two sides, and commit; return files that are for a person to settle. Ids of the
    receipts are added to `done`."""
    with library.locked():
        _merge_left(library.files, repository, as_ours=True)
    done += mend(library, faulty)
    view = library.view()
    suspects = (view.document(doc_id) for doc_id in view.lines.suspects if not view.is_note(doc_id))
    marked = {f"{one.id}.md" for one in suspects if any(line.startswith(CONFLICT) for line in one.lines)}
    if left := repository.end_merge(_owned(), marked):
        return left
    with library.locked() as view:
        commit(library.files, view, library.clock())
    return ()


def _merge_left(files: Files, repository: Repository, as_ours: bool = False) -> None:
    """Merge files of ours that git stopped at; `as_ours`: where our side stands, for the driver failed, and
    receipts, in which nobody writes."""
    for path, base, ours, theirs in repository.versions(_owned()):
        if not as_ours or path.startswith(JOURNAL) or files.read(path, MAX_OWNED) == ours:
            files.replace(path, merged(path.removesuffix(".md"), base, ours, theirs))
