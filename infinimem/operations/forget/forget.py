"""The two operations that rewrite what is written: `forget` takes lines out, `rename` changes a name.

Each is one transaction over documents and receipts, and then the machine state. The receipt keeps numbers and
places. Afterwards every byte of library and cache is searched, and what is left is reported.
Source: docs/FORMAT.md, Forget, Rename.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from infinimem.errors import DocumentNotFound, LibraryError, UsageError
from infinimem.markdown.characters import clean_text, one_line
from infinimem.markdown.document import Document
from infinimem.markdown.header import flow, quote
from infinimem.model import BUFFERS, CURRENT, Receipt
from infinimem.operations.forget.redaction import (
    Candidate,
    Choice,
    Texts,
    Wanted,
    choose,
    ever_held,
    named_ids,
    readings,
    redact,
    tombstoned,
)
from infinimem.operations.git import GitUnusable, Repository
from infinimem.settings import SETTINGS
from infinimem.spec import folders, texts_of
from infinimem.store import receipts, sequence, state, withheld
from infinimem.store.commit import CONFLICTS, clear_displaced, recheck, recover
from infinimem.store.files import MAX_OWNED, STAGED, Files, digest
from infinimem.store.library import RETRIES, Library
from infinimem.store.lines import ID, aliases_of, fold
from infinimem.store.plans import Rendered, headed, violations
from infinimem.store.spec import ARCHIVE, EVIDENCE, FORGETTING, JOURNAL, MEMORIES, TOPICS, slug, unlawful
from infinimem.store.state import Changes
from infinimem.store.view import View
from infinimem.user_folders import caches, user_folder

GIT, STATE = ".git", ".infinimem/"
EMPTIED = (withheld.REJECTED, f"{STATE}tasks", f"{STATE}plans")
"""Folders of what models said, and wanted (earlier versions): all of it goes. Whatever else keeps replies of
models in a library belongs here; in the user's cache folder they go with it."""
_CHECKSUM = re.compile(r"\b[0-9a-f]{12}-")
"""In the name of a conflict (commit.py): that of the old bytes."""
_SILENT = {SETTINGS, ".gitignore", f"{STATE}.gitignore", f"{STATE}lock", sequence.DOUBTFUL}
_SILENT |= {sequence.MARK, sequence.GIVEN}
"""What holds no text of any line."""
_NAMED = (*BUFFERS, TOPICS, ARCHIVE, EVIDENCE, MEMORIES)
"""Where documents have names that tell something."""
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}-")


@dataclass(frozen=True)
class Forgotten:
    """What would be forgotten, or was: seqs, and the records that go with them.

    `rows` and `files` are lines that would go, and paths that would change; none afterwards. `receipt` is
    None in a dry run. `left` holds some of it still; in a dry run it is what a `forget` will not touch.
    `repeated` are lines that say some of it in their own right, and stay; `history` says that
    an import brings lines back, and what to do about git, for files that `held` any of it at any time;
    `notes` what was taken otherwise than written.
    """

    rows: tuple[Candidate, ...] = ()
    seqs: tuple[int, ...] = ()
    files: tuple[str, ...] = ()
    receipt: Receipt | None = None
    left: tuple[Residue, ...] = ()
    repeated: tuple[int, ...] = ()
    history: str = ""
    records: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    held: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Renamed:
    """What came of it: the ids of a document, what still holds the old name, and what to do about git."""

    receipt: Receipt
    was: str
    now: str
    left: tuple[Residue, ...]
    history: str


def preview_forget(library: Library, wanted: Wanted) -> Forgotten:
    """Return what `forget` would take, and write nothing; UsageError for a number that no line has."""
    view = _look(library)
    choice = _chosen(library, view, wanted)
    done = redact(view, choice, receipts.next_number(view))
    found = _report(view, choice, done)
    first = {(p.seq, p.text): p for p in reversed(choice.lines)}  # quotations only where they read otherwise
    quoted = (JOURNAL, STATE)
    lines = [p for p in choice.lines if not p.doc_id.startswith(quoted) or first[p.seq, p.text] is p]
    rows = (Candidate(p.seq, p.doc_id if p.start_line else "-", p.start_line, p.text) for p in lines)
    documents = {doc_id: view.document(doc_id) for doc_id in view.ids("all")} | done.documents
    after = view.showing({doc_id: document for doc_id, document in documents.items() if document})
    left = find_residue(library.files, after, choice.texts, preview=True)
    return _advised(library, replace(found, rows=(*rows, *choice.unsigned), left=left))


def forget(library: Library, wanted: Wanted) -> Forgotten:
    """Take lines out for good: documents, evidence, receipts' quotations, machine state, caches. If the disk
    refuses (LibraryError), nothing was forgotten, or all is next time."""
    return _advised(library, library.written(lambda _: _forget(library, wanted)))


def forget_again(library: Library, seqs: Collection[int]) -> None:
    """Forget here what another copy of the library forgot: its receipt came by a merge."""

    def act(_: View) -> None:
        if _forget(library, Wanted(seqs=seqs)).receipt is None:
            library.files.replace(FORGETTING, b"")  # the files came without it; this machine's own do not
            state.note(library.files, seen=dict.fromkeys({*seqs} & library.seen_lines().keys()))
            finish(library.files)

    library.written(act)


def _forget(library: Library, wanted: Wanted) -> Forgotten:
    recheck(library.files, library.clock().timestamp())  # late saves first
    view = _look(library)
    choice = rest = _chosen(library, view, wanted)
    written = list[Receipt]()
    found = Forgotten()
    while len(written) <= RETRIES:
        done = redact(view, rest, receipts.next_number(view))
        if not written:
            found = _report(view, choice, done)
        if not done.documents:
            break
        known, gone = library.seen_lines(), ", ".join(found.records)
        notes = [f"records deleted, with all links to them: {gone}"] if gone else []
        notice: Changes = {seq: None for seq in rest.seqs if seq in known}
        set_aside(library.files, rest.seqs)
        written.append(_write(library, view, done, receipts.FORGET, notice, notes))
        view = _look(library)  # what someone saved meanwhile is taken out of their version, too
        rest = choose(view, library.seen_lines(), replace(wanted, seqs=choice.seqs))
        rest = replace(rest, texts=choice.texts)
    left = find_residue(library.files, view, choice.texts)
    return replace(found, files=(), left=left, receipt=written[0] if written else None)


def _look(library: Library) -> View:
    """The library to the last file: nothing that somebody has just saved may be passed over."""
    library.fresh.doubt()
    return library.view()


def _write(
    library: Library, view: View, done: Rendered, op: str, notice: Changes, notes: Sequence[str]
) -> Receipt:
    if wrong := violations(view, done):
        raise LibraryError(f"this cannot be rewritten ({wrong[0].code}); run infinimem doctor")
    library.files.replace(FORGETTING, b"")  # durably: from now on `finish` is to be done
    receipt = library.commit(done, view, library.of_people(op), notes, notice)
    recover(library.files)
    finish(library.files)
    return receipt


def _report(view: View, choice: Choice, done: Rendered) -> Forgotten:
    """What is known before it is done; files are those that held any of it, not those that lose links."""
    lost_links = {one for one, new in done.documents.items() if new and one.startswith(folders().ledgers)}
    files = sorted(f"{one}.md" for one in done.documents.keys() - lost_links if one in view)
    records = [one for one, new in done.documents.items() if not new and one.startswith(folders().ledgers)]
    ever = {f"{one}.md" for one in (CURRENT, *ever_held(view, choice, records))}.union(files) if files else ()
    marked = any(place.entry.fields.keys() & {"turn", "key"} for place in choice.lines)
    again = "they came by an import: the next import of the same file brings them back" if marked else ""
    return Forgotten(
        seqs=tuple(sorted(choice.seqs)),
        files=tuple(files),
        repeated=tuple(sorted({place.seq for place in choice.texts.repeated})),
        history=again,
        records=tuple(records),
        held=frozenset(ever),
    )


def _advised(library: Library, done: Forgotten) -> Forgotten:
    """Add what to do about git, which may take seconds to answer: nobody else waits for it."""
    advice = git_advice(library.root.absolute(), done.held, done.seqs)
    return replace(done, history="\n".join(filter(None, (done.history, advice))))


def _chosen(library: Library, view: View, wanted: Wanted) -> Choice:
    choice = choose(view, library.seen_lines(), wanted)
    if missing := sorted(set(wanted.seqs) - choice.seqs):
        done = receipts.forgotten(library.receipts())
        if unknown := ", ".join(str(seq) for seq in missing if seq not in done):
            raise UsageError(f"no line has seq {unknown}; infinimem grep shows lines with their numbers")
        again = ", ".join(f"{seq} (receipt {done[seq]})" for seq in missing)
        raise UsageError(f"forgotten already: {again}")
    return choice


def set_aside(files: Files, seqs: Collection[int]) -> None:
    """Take lines out of what awaits a person: proposals go, a version of a document gets tombstones."""
    waiting = withheld.proposals(files)
    withheld.drop_withheld(
        files, {(p.receipt, p.move.seq) for p in waiting if {p.move.seq, p.move.by} & {*seqs}}
    )
    for path in [f"{CONFLICTS}/{name}" for name in files.names(CONFLICTS)]:
        lines = (files.read(path, MAX_OWNED) or b"").decode("utf-8", "surrogateescape").split("\n")
        if (new := [*tombstoned(lines, seqs)]) != lines:
            bare = _CHECKSUM.sub("", path)
            files.replace(bare, "\n".join(new).encode("utf-8", "surrogateescape"))
            if bare != path:
                files.remove(path)


def finish(files: Files) -> None:
    """Drop what may still hold the texts, where that was begun, under the lock; nothing is under way. It
    needs to know no text, so that whoever opens the library after a crash can finish it."""
    clear_displaced(files)
    for path in [f"{folder}/{name}" for folder in EMPTIED for name in files.names(folder)]:
        files.remove(path)
    if files.exists(sequence.INTENT):
        files.remove(sequence.INTENT)
    state.compact(files)
    for staged in [path for path in _paths(files.root) if path.name == STAGED]:
        files.remove(staged.relative_to(files.root).as_posix(), durable=False)
    root = user_folder("cache")
    if root is not None and not root.is_symlink():
        with suppress(OSError):  # moved first: who is building one finds no place for what it read before
            root.rename(root.with_name(f"{root.name}.{os.getpid()}.gone"))
    for cache in caches():
        if not cache.is_symlink():
            shutil.rmtree(cache, ignore_errors=True)
    files.remove(FORGETTING)


@dataclass(frozen=True)
class Residue:
    """What holds some of the words still, why that is so, and what to do."""

    path: str
    why: str


def find_residue(files: Files, view: View, texts: Texts, preview: bool = False) -> tuple[Residue, ...]:
    """Files and names in which any of it stands; for a preview only what a `forget` will not touch."""
    found, names = [], set[str]()
    for doc_id in sorted(one for one in named_ids(view) if one.startswith(_NAMED)):
        stem = doc_id.rpartition("/")[2]
        document = view.document(doc_id) if doc_id in view else Document.empty(doc_id)
        called = {stem, stem.replace("-", " "), document.title, *aliases_of(document)}
        called |= {str(document.header.values.get("session", ""))}
        told = (document.summary, *(heading.title for heading in document.headings), *called)
        if any(map(texts.within, called)):
            where = "its name" if doc_id in view else "it is gone, but receipts name it"
            change = f"`infinimem rename {shlex.quote(doc_id)} NEW` changes the name"
            found.append(Residue(f"{doc_id}.md", f"{where}: {change}"))
            names |= called - {""}
        elif doc_id.startswith((*BUFFERS, TOPICS, ARCHIVE)) and any(map(texts.hinted, told)):
            found.append(Residue(f"{doc_id}.md", "its name, summary or a heading shares a word with it"))
    listed, own = {one.path for one in found}, (*folders().owned, STATE, "/")
    places = {path.relative_to(files.root).as_posix(): path for path in _paths(files.root)}
    if not preview:
        places |= {str(path): path for cache in caches() for path in _paths(cache)}
    for name, path in places.items():
        ours, data = name.startswith(own), None
        if name in _SILENT or f"{name}/" in own or (ours and preview):
            continue
        if name not in listed and texts.within(path.name):
            found.append(Residue(name, "its name: rename or delete it"))
        with suppress(LibraryError, OSError):
            data = path.read_bytes() if name.startswith("/") else files.read(name, MAX_OWNED)
        if data and texts.within(data, names if ours else ()):
            whose = "a model's own file" if name.startswith(MEMORIES) else "a person's note"
            whose = "not taken out" if ours else whose
            found.append(Residue(name, f"{whose}: edit {'or delete ' * name.startswith((STATE, '/'))}it"))
    return tuple(sorted(found, key=lambda one: one.path))


def _paths(root: Path) -> Iterator[Path]:
    for folder, inner, names in os.walk(root):
        inner[:] = sorted(name for name in inner if name != GIT)
        yield from (Path(folder, name) for name in (*inner, *sorted(names)))


def git_advice(root: Path, paths: Iterable[str], seqs: Collection[int] = ()) -> str:
    """What to do in git's history about these files, and about those that git knows to have held lines of
    these numbers, under names that they had; "" where the library lies in no repository."""
    top = next((folder for folder in (root, *root.parents) if (folder / GIT).exists()), None)
    listed, more = {(root / path).relative_to(top or root).as_posix() for path in paths}, ""
    if top is None or not listed:
        return ""
    try:
        if seqs:
            listed |= Repository(root).changed_by(rf"<(.*,)?seq=({'|'.join(map(str, seqs))})[,>]")
    except GitUnusable as error:
        more = f" (git did not say which other files had the lines under earlier names: {error})"
    options = " ".join(f"--path {shlex.quote(path)}" for path in sorted(listed))
    return (
        "git keeps what earlier commits held, here and in every clone; its history was not touched. To"
        " rewrite it: commit, copy the library somewhere safe, run"
        f" `git filter-repo --force --invert-paths {options}` in {shlex.quote(str(top))}, copy the files"
        f" back, commit, push with --force, and have everyone clone anew{more}"
    )


def rename(library: Library, name: str, new: str) -> Renamed:
    new = one_line(clean_text(new)).strip()
    return library.written(lambda _: _rename(library, name, new))


def _rename(library: Library, name: str, new: str) -> Renamed:
    recheck(library.files, library.clock().timestamp())
    view = _look(library)
    was = name.strip().removesuffix(".md")
    try:
        was = view.resolve(name)
    except DocumentNotFound:
        if was not in named_ids(view):  # a name that only receipts know can be changed, too
            raise
    if view.is_note(was) and not was.startswith(MEMORIES):
        raise UsageError(f"{was} is a person's note: rename the file itself")
    if not was.startswith((TOPICS, ARCHIVE, EVIDENCE, MEMORIES)):
        raise UsageError(f"{was} cannot be renamed: only topics, sessions and a model's own files have names")
    now = _target(view, was, new)
    names = {was: now}
    if was.startswith((TOPICS, ARCHIVE)):  # a topic and its archive have one name
        names = {folder + was.split("/", 1)[1]: folder + now.split("/", 1)[1] for folder in (TOPICS, ARCHIVE)}
        names |= {one: new for one, new in zip(texts_of(was), texts_of(now), strict=True) if one in view}
    old = next((view.document(one) for one in names if one in view), Document.empty(was))
    stem = was.rpartition("/")[2]
    if was.startswith(EVIDENCE):
        stem = _DATE.sub("", stem)
    elif was.startswith(MEMORIES):
        stem = PurePosixPath(stem).stem
    called = {stem, stem.replace("-", " "), old.title, str(old.header.values.get("session", ""))} - {""}
    done = _renamed(view, names, called, new)
    waiting = {(one.receipt, one.move.seq) for one in library.proposals() if one.move.to in names}
    withheld.drop_withheld(library.files, waiting)
    known = library.seen_lines()
    notice: Changes = {
        seq: replace(line, doc_id=names[line.doc_id]) for seq, line in known.items() if line.doc_id in names
    }
    receipt = _write(library, view, done, receipts.RENAME, notice, ())
    view = _look(library)
    texts = Texts((), called - {new, new.casefold()}, readings(view, library.seen_lines()), whole=True)
    left = find_residue(library.files, view, texts)
    files = {f"{doc_id}.md" for doc_id in (*names, *done.documents)}
    return Renamed(receipt, was, now, left, git_advice(library.root.absolute(), files))


def _target(view: View, was: str, new: str) -> str:
    above, _, stem = was.rpartition("/")
    own = slug(new)
    if not own:
        raise UsageError(f"{new!r} is no name; it needs a letter or digit")
    if was.startswith(EVIDENCE) and (date := _DATE.match(stem)):
        own = date[0] + own
    elif was.startswith(MEMORIES):
        own += PurePosixPath(stem).suffix
    now = f"{above}/{own}"
    twin = {TOPICS: ARCHIVE, ARCHIVE: TOPICS}.get(f"{above}/", f"{above}/") + own
    there = {doc_id for one in (now, twin) for doc_id in view.lines.named(ID, fold(one))}
    if taken := [one for one in sorted(there) if now != was and fold(one.split("/", 1)[1]) != fold(stem)]:
        raise UsageError(f"there is {taken[0]} already; give another name")
    if why := unlawful(now):
        raise UsageError(f"{now} is no name for a file: {why}")
    return now


def _renamed(view: View, names: dict[str, str], called: Collection[str], new: str) -> Rendered:
    """The documents that change: headers, headings, receipts; of other documents only what is its id."""
    sums = receipts.Checksums(receipts.next_number(view))
    done = Rendered(names=names, sums=sums.known, reverse_diffs=[])
    ids = re.compile("|".join(rf"(?<![\w-]){re.escape(was)}(?![\w/-])" for was in names))
    old_name = f"[\"']?(?:{'|'.join(map(re.escape, sorted(called)))})[\"']?"
    title = re.compile(
        rf"\A((?:[+-]>)?(?:#+ |(?:title|summary|session): )){old_name}(?=\r?\Z)", re.IGNORECASE
    )

    def renamed(line: str, is_own: bool = True) -> str:
        line = ids.sub(lambda found: names[found[0]], line)
        if is_own or line.startswith("session: "):
            line = title.sub(lambda found: found[1] + (new if "#" in found[1] else quote(new)), line)
        return line

    def told(line: str) -> str:
        now = line if line.startswith(("- <", "+>- <", "->- <")) else renamed(line)
        file = receipts.file_of(receipts.cells_of(now)) if now != line and now.startswith("| ") else None
        return receipts.row_of(receipts.file_cells(file[0], *map(sums.of, file[1:]))) if file else now

    for doc_id in view.ids("all"):
        old, is_own = view.document(doc_id), doc_id in names
        lines, end, is_titled = old.lines, old.header.end, is_own or doc_id in BUFFERS
        if doc_id.startswith(JOURNAL):
            lines = tuple(map(told, old.lines))
        elif is_titled or doc_id.startswith((TOPICS, *folders().records)):
            lines = tuple(renamed(line, is_titled) for line in old.lines[:end])
            lines += tuple(
                renamed(line) if is_titled and line[:1] == "#" else line for line in old.lines[end:]
            )
        if is_own and doc_id.startswith(MEMORIES):
            lines = old.lines
        document = replace(old, id=names.get(doc_id, doc_id), lines=lines)
        if is_own and doc_id.startswith(TOPICS):
            aliases = [one for one in aliases_of(old) if not re.fullmatch(old_name, one, re.IGNORECASE)]
            changes = {"aliases": flow(aliases) if aliases else None} if aliases != aliases_of(old) else {}
            document = headed(document, {**changes, "title": quote(new)})
        if is_own:
            done.documents |= {doc_id: None, document.id: document}
        elif lines != old.lines:
            done.documents[doc_id] = document
    for doc_id in filter(view.__contains__, done.documents):
        sums.of(digest(view.document(doc_id).to_bytes()))
    return done
