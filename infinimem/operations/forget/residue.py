"""What is to be nowhere after a `forget`: texts, the machine state that may hold them, the last search.

`finish` needs to know no text, so that whoever opens the library after a crash can finish what was begun:
.infinimem/forgetting says that it is to be done.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from infinimem.errors import LibraryError
from infinimem.markdown.document import Document
from infinimem.markdown.signature import tombstone
from infinimem.model import CURRENT, Located
from infinimem.operations.forget import BEGUN
from infinimem.operations.provenance import recorded
from infinimem.settings import SETTINGS
from infinimem.spec import folders
from infinimem.store import sequence, state, withheld
from infinimem.store.commit import CONFLICTS, clear_displaced
from infinimem.store.files import MAX_OWNED, STAGED, Files
from infinimem.store.lines import aliases_of
from infinimem.store.spec import ARCHIVE, EVIDENCE, MEMORIES, TOPICS, slug
from infinimem.store.view import View
from infinimem.user_folders import caches, user_folder

GIT, STATE = ".git", ".infinimem/"
EMPTIED = (withheld.REJECTED, f"{STATE}tasks", f"{STATE}plans")
"""Folders of what models said, and wanted (earlier versions): all of it goes. Whatever else keeps replies of
models in a library belongs here; in the user's cache folder they go with it."""
SENTENCE, SHORTEST, BOUNDED = 20, 4, 12
"""A longer sentence of a text is looked for by itself, a shorter text not at all; one of fewer bytes only
where it is no part of a word."""
_SEQ = re.compile(r"- <(?:[^>]*,)?seq=([1-9][0-9]{0,17})\b")
_END = re.compile(r"(?<=[.!?…。！？])\s+|\n")
_WORD = re.compile(r"[^\W_]{4,}")
_HEX = re.compile(rb"[0-9a-f]+")
_CHECKSUM = re.compile(r"\b[0-9a-f]{12}-")
"""In the name of a conflict (commit.py): that of the old bytes."""
_SILENT = {SETTINGS, ".gitignore", f"{STATE}.gitignore", f"{STATE}lock", sequence.DOUBTFUL}
_SILENT |= {sequence.MARK, sequence.GIVEN}
"""What holds no text of any line."""
_NAMED = (CURRENT, TOPICS, ARCHIVE, EVIDENCE, MEMORIES)
"""Where documents have names that tell something."""
_DATE = re.compile(rb"(?:19|20)[0-9]{2}[0-9:.tz+-]*|[0-9:.tz+-]{1,3}")
_FORMAT = b"""
    id kind summary token_count created_time update_log op receipt added archived aux from unverified true
    aliases evidence session date participants topics archive journal memories buffer audit
    current_epoch infinimem create consolidate append split merge stamp rename undo forget review memory
    write strategy model usage calls tokens_in tokens_out seconds high was now why files sha256 before
    after nothing notes as it was moved by hand merged edited renumbered cites deleted superseded
    duplicate rewritten removed undone forgotten people none offline client memory-tool seq time
    source user ai tool human origin speaker turn key observed refers role label pin heading plan moves
    adds marks stood code keywords links ref span record unit units type version near temporal
    markdown diff other episodes facts themes
"""
"""Words that files hold whatever was said: they, years and small numbers are not looked for."""


class Texts:
    """What is to be nowhere; what another line says in its own right stays, and is not looked for.

    Args:
        said: in the lines that go, without their signatures.
        words: what was asked for: what a pattern found in them, a session, a name.
        others: every reading of the lines that stay.
        whole: the words count as whole words alone.
    """

    def __init__(
        self, said: Sequence[str], words: Iterable[str], others: Sequence[Located], whole: bool = False
    ) -> None:
        texts = {form for text in said for piece in _pieces(text) for form in _forms(piece)}
        asked = {form for word in words for form in {*_forms(word), slug(word).encode()} if len(form) > 1}
        telling = {form for form in texts | asked if form not in _FORMAT and not _DATE.fullmatch(form)}
        alone = {form for form in texts if len(form) < BOUNDED}
        alone |= {form for form in asked if whole or len(form) < SHORTEST or _HEX.fullmatch(form)}
        self._look_for(telling & alone, telling - alone)
        self.repeated = [one for one in others if self.within(f"{one.text}\n{one.entry.line}")]
        """Lines that stay and say some of it in their own right."""
        own = _lowered("\n".join(f"{one.text}\n{one.entry.line}" for one in self.repeated))
        again = {form for form in telling & alone if _whole([form]).search(own)}
        telling -= again | {form for form in telling - alone if form in own}
        self._look_for(telling & alone, telling - alone)
        self._rare = _words("\n".join(said)).difference(*(_words(one.text) for one in others))

    def hinted(self, text: str) -> bool:
        """Whether a longer word of it stands there that no line has which stays."""
        return not self._rare.isdisjoint(_words(text))

    def _look_for(self, alone: Iterable[bytes], long: Collection[bytes]) -> None:
        self._words, self._long = _whole(alone), sorted(long)
        self._keys: dict[bytes, list[bytes]] = {}
        self._size = min(map(len, long), default=1)
        for form in self._long:
            self._keys.setdefault(form[: self._size], []).append(form)

    def within(self, data: bytes | str, names: Iterable[str] = ()) -> bool:
        """Whether any of it stands there, but for these names."""
        data = _lowered(data)
        for name in names:
            data = data.replace(_lowered(name), b"")
        if len(self._long) < 64:
            found = any(form in data for form in self._long)
        else:  # of many it is passed through once for all of them
            begins = ((at, self._keys.get(data[at : at + self._size], ())) for at in range(len(data)))
            found = any(data.startswith(form, at) for at, forms in begins for form in forms)
        return found or self._words.search(data) is not None


def _whole(words: Iterable[bytes]) -> re.Pattern[bytes]:
    """Finds any of them where it is no part of a word."""
    either = b"|".join(sorted(map(re.escape, words))) or b"(?!)"
    return re.compile(rb"(?<![\w\x80-\xff])(?:%b)(?![\w\x80-\xff])" % either)


def _pieces(text: str) -> set[str]:
    """A text, and each of its lines and sentences that is long enough to be nobody else's."""
    parts = {part.strip() for part in (*_END.split(text), *text.split("\n"))}
    whole = {text.strip()} if len(text.strip()) >= SHORTEST else set[str]()
    return whole | {part for part in parts if len(part) > SENTENCE}


def _forms(piece: str) -> set[bytes]:
    """How it reads in a document, a header, a table, a signature or JSON, or on one line; in lower case."""
    written = {piece, piece.replace("\n", "\n  "), " ".join(piece.split()), piece.replace("|", "\\|")}
    written |= {json.dumps(piece, ensure_ascii=plain)[1:-1] for plain in (False, True)}
    return {_lowered(form) for form in written}


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


def _lowered(data: bytes | str) -> bytes:
    text = data if isinstance(data, str) else data.decode("utf-8", "surrogateescape")
    return text.casefold().encode("utf-8", "surrogateescape")


def numbered(line: str) -> int | None:
    """The number that a line begins with, be its signature whole or damaged."""
    match = _SEQ.match(line)
    return int(match[1]) if match else None


def tombstoned(lines: Iterable[str], seqs: Collection[int], continued: bool = True) -> Iterator[str]:
    """Lines with tombstones, in a diff their rows, for those that carry a forgotten seq; if `continued`, with
    the indented and blank lines after them."""
    side = None
    for line in lines:
        head = line[:2] if line[:2] in ("+>", "->") else ""
        text = line[len(head) :]
        if (seq := numbered(text)) in seqs and seq:
            side = head if continued else None
            yield f"{head[0]}@{seq}" if head else tombstone(seq) + "\r" * text.endswith("\r")
        elif head != side or (text.strip() and not text.startswith("  ")):
            side = None
            yield line


def set_aside(files: Files, seqs: Collection[int]) -> None:
    """Take lines out of what awaits a person: proposals go, a version of a document gets tombstones."""
    waiting = withheld.proposals(files)
    withheld.drop(files, {(p.receipt, p.move.seq) for p in waiting if {p.move.seq, p.move.by} & {*seqs}})
    for path in [f"{CONFLICTS}/{name}" for name in files.names(CONFLICTS)]:
        lines = (files.read(path, MAX_OWNED) or b"").decode("utf-8", "surrogateescape").split("\n")
        if (new := [*tombstoned(lines, seqs)]) != lines:
            bare = _CHECKSUM.sub("", path)
            files.replace(bare, "\n".join(new).encode("utf-8", "surrogateescape"))
            if bare != path:
                files.remove(path)


def finish(files: Files) -> None:
    """Drop what may still hold the texts, where that was begun, under the lock; nothing is under way."""
    if not files.exists(BEGUN):
        return
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
    files.remove(BEGUN)


@dataclass(frozen=True)
class Residue:
    """What holds some of the words still, why that is so, and what to do."""

    path: str
    why: str


def left(files: Files, view: View, texts: Texts, preview: bool = False) -> tuple[Residue, ...]:
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
        elif doc_id.startswith((CURRENT, TOPICS, ARCHIVE)) and any(map(texts.hinted, told)):
            found.append(Residue(f"{doc_id}.md", "its name, summary or a heading shares a word with it"))
    listed, own = {one.path for one in found}, (f"{CURRENT}.md", *folders().owned, STATE, "/")
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


def named_ids(view: View) -> set[str]:
    """Ids of the documents that are there, or that a receipt names."""
    told = recorded(view).receipts
    was = {row.was for one in told for row in one.rows}
    return was.union(view.ids("all"), (file[0] for one in told for file in one.files))


def _paths(root: Path) -> Iterator[Path]:
    for folder, inner, names in os.walk(root):
        inner[:] = sorted(name for name in inner if name != GIT)
        yield from (Path(folder, name) for name in (*inner, *sorted(names)))


def git_advice(root: Path, paths: Iterable[str]) -> str:
    """What to do about these files in git's history; "" where the library lies in no repository."""
    top = next((folder for folder in (root, *root.parents) if (folder / GIT).exists()), None)
    if top is None or not (listed := sorted(paths)):
        return ""
    options = " ".join(f"--path {shlex.quote((root / path).relative_to(top).as_posix())}" for path in listed)
    return (
        "git keeps what earlier commits held, here and in every clone; its history was not touched. To"
        " rewrite it: commit, copy the library somewhere safe, run"
        f" `git filter-repo --force --invert-paths {options}` in {shlex.quote(str(top))}, copy the files"
        " back, commit, push with --force, and have everyone clone anew"
    )
