"""Recognise a file or what a folder holds, and read its turns: twice, to check and count, then to record.

No more than one record and one batch of turns is held at a time, and of a session log its turns: some may be
taken back. Of notes that are imported again comes what is new (docs/IMPORTS.md).
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path
from typing import Any

from infinimem.errors import ImportFormatError, UsageError
from infinimem.importers import fields, markdown, messengers, reading
from infinimem.importers.exports import FORMATS
from infinimem.importers.fields import MARKS, Format, Skipped
from infinimem.importers.reading import Source
from infinimem.markdown.characters import clean_text
from infinimem.model import CURRENT, Located, Move, Plan, Receipt, Turn
from infinimem.settings import SETTINGS
from infinimem.spec import load, plugins
from infinimem.store.folders import LEFT_OUT
from infinimem.store.library import Library
from infinimem.store.spec import ARCHIVE, EVIDENCE, REIMPORTED, TOPICS, slug
from infinimem.store.view import Applied, View

_TEXTS = {"mail": messengers.is_mail, "whatsapp": messengers.is_whatsapp}
_BUILT_IN = (*FORMATS, "slack", *_TEXTS, "markdown")

_JSON_START = re.compile(r"\s*(?:\[\s*[{\]]|\{\s*[\"}])")
_JSON_NAME = re.compile(r"\.(?:json|jsonl|ndjson)(?:\.gz|\.xz)?\Z", re.IGNORECASE)
_DAY = re.compile(r" \d{4}-\d\d-\d\d\Z")
_SHOWN = 8
_LEADING = 64  # lines of a log that may come before the first one that tells whose it is
BATCH_TURNS, BATCH_LENGTH = 8192, 8 * 2**20
"""Turns, and characters of their texts, of a batch; many, for each is compared with all that is recorded."""
_KINDS = 5  # of files that are passed over, to name
_TOLD = 1000  # turns after which progress is told

Progress = Callable[[int, int], None]


def formats() -> tuple[str, ...]:
    """Return what an import can be told that a file is: ours, then what packages add."""
    return (*_BUILT_IN, *sorted(plugins("importers").keys() - set(_BUILT_IN)))


class NotThere(ImportFormatError):
    """The file holds no conversation of the name that was asked for."""


@dataclass
class Import:
    """A file that was recognised. `turns` can be read once; `skipped` (reason -> times) fills meanwhile."""

    path: Path
    wanted: str | None
    only: str | None
    stem: str
    format: str = ""
    turns: Iterator[Turn] = field(default_factory=lambda: iter(()))
    skipped: Skipped = field(default_factory=Counter)
    met: dict[str, None] = field(default_factory=dict)  # conversations

    def wants(self, *names: str | None) -> bool:
        """Return whether a conversation of these names was asked for; note its last name."""
        wanted = self.only is None or self.only in names
        if wanted or len(self.met) < _SHOWN:
            self.met[str(self.only if wanted else names[-1])] = None
        return wanted

    def parts(self, folder: Path | None) -> Generator[tuple[str, Iterator[Turn]], None, None]:
        """Yield the format and the turns of each text in the file; there is at least one."""
        name, texts = self.path.name, (*_TEXTS, "markdown")
        with reading.opened(self.path, self.skipped, folder) as sources:
            for source in sources:
                if source.name != name and source.name.rpartition("/")[2] in messengers.SLACK_LISTS:
                    if self.wanted not in (None, "slack"):
                        raise ImportFormatError(f"{name} is a Slack export and not {self.wanted}")
                    files = ((one.name, reading.records(one, one.name)) for one in chain([source], sources))
                    yield "slack", self._of(messengers.slack_turns(files, self.skipped))
                    return
                json = None if self.wanted in texts else _as_json(source, name, self.wanted)
                yield (json[0], self._of_json(*json[1:])) if json else self._as_text(source)

    def _as_text(self, source: Source) -> tuple[str, Iterator[Turn]]:
        """Return the format and the turns of a text that is not JSON; any can be read as Markdown."""
        kind = next((name for name, matches in _TEXTS.items() if matches(source.head)), "markdown")
        if self.wanted not in (None, "markdown", kind):
            to_do = "leave --format out, and it is recognised"
            raise ImportFormatError(f"{source.name} is not {self.wanted}: {to_do}")
        if self.wanted is None and MARKS["no note"].match(source.head):
            to_do = "save its text, or have the program export JSON"
            raise ImportFormatError(f"{source.name} is a web page, or another program's document: {to_do}")
        if (kind := self.wanted or kind) == "mail":
            lines = reading.lines(source, self.path.name)
            return kind, self._of(messengers.mail_turns(lines, self.stem, self.skipped))
        if kind == "markdown" and self.only is not None:
            raise UsageError("--only chooses one of several conversations; a Markdown file is one")
        text = reading.whole_text(source, self.path.name)
        if kind == "whatsapp":
            return kind, self._of(messengers.whatsapp_turns(text, self.stem, self.skipped))
        path = self.path.absolute()
        title = (
            Path(self.stem).name if any(os.access(up / ".obsidian", os.F_OK) for up in path.parents) else None
        )
        role = "assistant" if MARKS["kept by model"].search(path.as_posix()) else "user"
        return kind, markdown.turns(text, self.stem, self.skipped, title, role=role)

    def _of(self, turns: Iterable[Turn]) -> Iterator[Turn]:
        return (turn for turn in turns if self.wants(turn.session, _DAY.sub("", turn.session or "")))

    def _of_json(self, kind: Format, values: Iterable[Any]) -> Iterator[Turn]:
        """Yield the turns of records; damaged lines are left out of a log, and an error elsewhere."""

        def sound() -> Iterator[Any]:
            for value in values:
                if not isinstance(value, ImportFormatError):
                    yield value
                elif kind.is_log:
                    self.skipped["damaged lines"] += 1
                else:
                    raise value

        if kind.is_log:
            yield from self._of(kind.turns(sound(), self.stem, self.skipped))
            return
        for record in sound():
            if not (isinstance(record, dict) and kind.matches(record)):
                self.skipped[fields.OTHER] += 1
            elif self.wants(*kind.names(record, self.stem)):
                yield from kind.turns(record, self.stem, self.skipped)

    def chosen(self, first: Iterator[Turn], parts: Generator[tuple[str, Iterator[Turn]]]) -> Iterator[Turn]:
        """Yield the turns of all parts; the file is closed with them, even if it is damaged."""
        with closing(parts), reading.explained(self.path):
            yield from first
            for _, turns in parts:
                yield from turns
        if self.only is not None and self.only not in self.met:
            others = ", ".join(self.met)
            raise NotThere(f"no conversation {self.only!r} in {self.path.name}; it holds {others}, …")


def read_turns(
    path: Path,
    format: str | None = None,  # noqa: A002
    only: str | None = None,
    stem: str | None = None,
    folder: Path | None = None,
) -> Import:
    """Open a file (plain, .zip, .gz or .xz) and say what it is; its turns follow, each with a key or an id.

    Args:
        format: one of `formats()`; None recognises it by content.
        only: one conversation of several, by its id or title (docs/IMPORTS.md).
        stem: what names a session that has no name; None takes the file's name.
        folder: where the file was found below; then no link is followed from there.

    Raises:
        UsageError: no such format, or `only` for a Markdown file.
        ImportFormatError: here, or while the turns are read: the file cannot be imported.
    """
    if format is not None and format not in formats():
        raise UsageError(f"no format {format!r}: use one of {', '.join(formats())}")
    one = Import(path, format, only, stem or reading.stem_of(path.name))
    parts = one.parts(folder)
    one.format, first = next(parts)
    one.turns = keyed(one.chosen(first, parts), path, one.skipped)
    if one.format == "markdown":
        note = str(path.resolve())
        one.turns = (replace(turn, note=note) for turn in one.turns)
    return one


def _as_json(source: Source, name: str, wanted: str | None) -> tuple[str, Format, Iterator[Any]] | None:
    """Return the format of a JSON file and its records; None for a text, which may begin like JSON."""
    is_named = wanted or (_JSON_NAME.search(source.name) and source.head.strip())
    if not is_named and not _JSON_START.match(source.head):
        return None
    known, leading = _known(wanted), list[Any]()
    values = reading.records(source, name, lenient=True)
    kind = None
    try:
        for record in islice(values, _LEADING):
            leading.append(record)
            kind = next(
                (one for one in known if isinstance(record, dict) and known[one].matches(record)), None
            )
            known = known if kind else {one: row for one, row in known.items() if row.is_log}
            if kind or not known:
                break
    except ImportFormatError as error:
        leading = [error]
    damaged = any(isinstance(one, ImportFormatError) for one in leading)
    if not (kind or is_named) and (damaged or not leading):
        source.text.seek(0)
        return None
    first = leading[0] if leading else None
    if kind is None and isinstance(first, ImportFormatError):
        raise first
    why = ""
    if isinstance(first, dict) and not wanted:
        why = next((told for keys, told in fields.TOLD["no_chats"] if first.keys() >= set(keys)), "")
    if kind and not (why and kind == "openai"):  # which takes what has a role or a sender, and a text
        return kind, known[kind], chain(leading, values)
    asked, to_do = wanted or "of a known format", 'write one {"role": …, "content": …} a line to import it'
    raise ImportFormatError(f"{name} is {why or f'not {asked}: {to_do}'}")


def _known(wanted: str | None) -> dict[str, Format]:
    """Return the JSON formats, or the one that is asked for; a broken one of a package hinders no other."""
    known = {name: one for name, one in FORMATS.items() if wanted in (None, name)}
    for name in formats()[len(_BUILT_IN) :] if wanted not in _BUILT_IN else ():
        with suppress(*() if wanted else (UsageError,)):
            if wanted in (None, name):
                one = load(plugins("importers")[name])
                names = getattr(one, "names", None)
                known[name] = Format(one.matches, one.turns, names or fields.named_by(), is_log=names is None)
    return known


def keyed(turns: Iterator[Turn], path: Path, skipped: Skipped) -> Iterator[Turn]:
    """Give turns without an id a key to be known by when they come again, and leave out empty ones. Equal
    ones of a session are told apart by their order, different ones under one id by a longer id."""
    times: Counter[bytes] = Counter()
    words: dict[bytes, bytes] = {}
    count = 0
    for turn in turns:
        text, recalled = fields.without_recalled(turn.text)
        skipped[fields.RECALLED] += recalled
        if not text.strip():
            skipped[fields.EMPTY] += not recalled
            continue
        count += 1
        turn = replace(turn, text=text) if recalled else turn
        said = _digest(turn.role, turn.speaker, turn.text)
        if turn.turn is not None:
            if words.setdefault(_digest(turn.session, turn.turn), said) != said:
                turn = replace(turn, turn=f"{turn.turn}~{said.hex()}")
        elif turn.key is None:
            key = _digest(turn.session, said.hex())
            times[key] += 1
            key = _digest(key.hex(), str(times[key])) if times[key] > 1 else key
            turn = replace(turn, key=key.hex())
        yield turn
    skipped += Counter()  # drops what was counted zero times
    if not count:
        raise ImportFormatError(f"{path.name} holds no message with text: there is nothing to import")


def _digest(*parts: str | None) -> bytes:
    joined = "\0".join(part or "" for part in parts)
    return blake2b(joined.encode("utf-8", "surrogatepass"), digest_size=8).digest()


# ── what an import brings ───────────────────────────────────────────────────────────────────────


@dataclass
class Survey:
    """What an import would bring in; `notes` has the passages of a note by path."""

    formats: tuple[str, ...] = ()
    turns: int = 0
    sessions: int = 0
    skipped: Skipped = field(default_factory=Counter)
    left_out: dict[str, str] = field(default_factory=dict)
    notes: dict[str, set[bytes]] = field(default_factory=dict)
    readings: list[Callable[[], Import]] = field(default_factory=list)

    def batches(self) -> Iterator[list[Turn]]:
        """Yield the turns in portions to record; ImportFormatError if a file changed since."""
        batch: list[Turn] = []
        size = 0
        for turn in chain.from_iterable(read().turns for read in self.readings):
            batch.append(turn)
            size += len(turn.text)
            if len(batch) == BATCH_TURNS or size >= BATCH_LENGTH:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch


def survey(
    path: Path,
    format: str | None = None,  # noqa: A002
    only: str | None = None,
    progress: Progress | None = None,
) -> Survey:
    """Read a file, or every file of a folder that is recognised, and say what it holds; arguments and errors
    as of `read_turns`. `progress` is called with the turns read so far, and 0 for the total."""
    found, sessions = Survey(), set[str | None]()
    for file, stem in _files(path, found):
        folder, turns, named = path if stem else None, 0, set[str | None]()
        read = partial(read_turns, file, format, only, stem, folder)
        try:
            one = read()
            for turns, turn in enumerate(one.turns, 1):
                named.add(turn.session)
                if turn.note:
                    found.notes.setdefault(turn.note, set()).add(passage(turn.text, turn.session))
                if progress and turns % _TOLD == 0:
                    progress(found.turns + turns, 0)
        except (ImportFormatError, UsageError) as error:
            if folder is None:
                raise
            if not isinstance(error, NotThere):
                found.left_out[file.relative_to(path).as_posix()] = str(error)
            continue
        sessions |= named  # what is counted is sound
        found.formats = tuple(dict.fromkeys((*found.formats, one.format)))
        found.turns += turns
        found.skipped += one.skipped
        found.readings.append(read)
    if not found.formats:
        what = f"no conversation {only!r}" if only else "no chat, log or note that can be imported"
        why = next(iter(found.left_out.values()), "")
        raise ImportFormatError(f"{path} holds {what}" + (f"; the first file: {why}" if why else ""))
    found.sessions = len(sessions)
    return found


def _files(path: Path, found: Survey) -> Iterator[tuple[Path, str | None]]:
    """Yield the file, or what a folder holds by name, links too, each with the name of its session."""
    with reading.explained(path):
        is_folder = path.is_dir()
    if not is_folder:
        yield path, None
        return
    if any(os.access(place / SETTINGS, os.F_OK) for place in (path.resolve(), *path.resolve().parents)):
        raise UsageError(f"{path} lies in a library, and what is there is remembered already")

    def leave_out(name: str, why: str) -> None:
        found.left_out[Path(name).relative_to(path).as_posix()] = why

    others: Counter[str] = Counter()
    no_note = Library(path).left_out() or (lambda _: False)
    walk = os.walk(path, onerror=lambda error: leave_out(error.filename, f"cannot be read: {error.strerror}"))
    for place, folders, names in walk:
        entered, inside = list[str](), Path(place)
        if reading.slack_export(inside):
            yield inside, inside.relative_to(path).as_posix() if inside != path else None
            names, folders[:] = [], []
        for name in sorted({*folders, *names}):
            file, is_folder = inside / name, name in folders
            if name.startswith("."):
                continue
            if no_note(file.relative_to(path).as_posix() + "/" * is_folder):
                leave_out(f"{place}/{name}" + "/" * is_folder, LEFT_OUT)
            elif is_folder and not os.path.islink(file):  # noqa: PTH114, it may lie where nothing is read
                if os.access(file / SETTINGS, os.F_OK):
                    leave_out(f"{place}/{name}", "a library, which is remembered already")
                else:
                    entered.append(name)
            elif is_folder or name.lower().endswith((*reading.ENDINGS, *reading.PACKED, "mbox")):
                yield file, file.relative_to(path).with_name(reading.stem_of(name)).as_posix()
            else:
                others[file.suffix.lower() or name] += 1
        folders[:] = entered
    if others:
        endings = ", ".join(ending for ending, _ in others.most_common(_KINDS))
        found.skipped[f"files of other kinds ({endings})"] += others.total()


# ── notes that are imported again ─────────────────────────────────────────────────────────────────

Contents = Mapping[str, Set[bytes]]  # of each note, by path, its passages


def passage(text: str, session: str | None) -> bytes:
    """Return what tells a passage of a note from others: its text without the note's name before it."""
    title = (session or "").rpartition("/")[2]
    return _digest(clean_text(text).rstrip().removeprefix(title))


class Again:
    """Notes that are imported, held against what was recorded of them; `gone` are turns that they lost."""

    def __init__(self, contents: Contents, view: View) -> None:
        self._view, self._archived = view, _archived(view) if contents else frozenset[int]()
        known: dict[str, dict[bytes, list[int]]] = {}
        for doc_id in view.below(EVIDENCE) if contents else ():
            document = view.document(doc_id)
            session = document.header.values.get("session")
            for place in document.entries:
                if note := place.entry.fields.get("note"):
                    about = passage(place.text, session if isinstance(session, str) else None)
                    known.setdefault(note, {}).setdefault(about, []).append(place.seq)
        current = {
            note: {about for about, seqs in passages.items() if not self._archived.issuperset(seqs)}
            for note, passages in known.items()
        }
        moved = _moved(contents, current)
        self._held: dict[str, Mapping[bytes, Sequence[int]]] = {}  # seqs by path of today and passage
        gone = set[int]()
        for path, now in contents.items():
            before = moved.get(path, path)
            there = known.get(before, {})
            if path in known or now == current.get(before):
                self._held[path] = there
            kept = now & self._held.get(path, {}).keys()
            gone.update(seq for about, seqs in there.items() if about not in kept for seq in seqs)
        self.gone = frozenset(gone)

    def new(self, turns: Iterable[Turn]) -> Iterator[Turn]:
        """Yield the turns that are not recorded; what comes back, or what another note says, is said anew."""
        for turn in turns:
            seqs = self._held.get(turn.note or "", {}).get(passage(turn.text, turn.session), ())
            if seqs and self._archived.issuperset(seqs):
                yield replace(turn, key=f"{turn.key}-{len(seqs)}")
            elif not seqs:
                taken = self._view.lines.marked(("key", turn.key or "")) if turn.note else None
                place = self._view.document(taken[0]).entry(taken[1]) if taken else None
                is_of_other = place and place.entry.fields.get("note", turn.note) != turn.note
                other_key = f"{turn.key}-{passage(turn.note or '', None).hex()}"
                yield replace(turn, key=other_key) if is_of_other else turn


def _moved(contents: Contents, known: Contents) -> dict[str, str]:
    holding: dict[bytes, list[str]] = {}
    for note in known.keys() - contents.keys():
        for about in known[note]:
            holding.setdefault(about, []).append(note)
    likely: list[tuple[bool, int, str, str]] = []
    for path in contents.keys() - known.keys():
        own = contents[path]
        for note, shared in Counter(note for about in own for note in holding.get(about, ())).items():
            same = own == known[note]
            if same or (2 * shared >= min(len(own), len(known[note])) and not os.path.lexists(note)):
                likely.append((same, shared, path, note))
    moved: dict[str, str] = {}
    for same, _, path, note in sorted(likely, reverse=True):
        if path not in moved and (same or note not in moved.values()):
            moved[path] = note
    return moved


def _archived(view: View) -> frozenset[int]:
    """Return the turns of which all lines were archived because their note no longer held them."""
    reason = REIMPORTED.capitalize()
    places = (place for doc_id in view.below(ARCHIVE) for place in view.document(doc_id).entries)
    old = (place for place in places if place.headings and place.headings[-1].startswith(reason))
    live = {seq for place in _live(view) for seq in place.entry.origin}
    return frozenset({seq for place in old for seq in place.entry.origin} - live)


def _live(view: View) -> Iterator[Located]:
    for doc_id in (CURRENT, *view.below(TOPICS)):
        yield from view.document(doc_id).entries if doc_id in view else ()


def set_aside(library: Library, gone: Set[int]) -> Receipt | None:
    """Archive what was drawn only from turns that their notes lost, unless people edited or pinned it."""
    library.adopt_edits()
    view, moves = library.view(), list[Move]()
    if pending := tuple(place.seq for place in view.uncited(gone)):
        library.apply(Plan(empty=pending), base=view)
    for place in _live(view):
        entry, topic = place.entry, place.doc_id
        if entry.origin and gone >= set(entry.origin) and entry.source != "human" and not entry.pinned:
            if topic == CURRENT and (turn := view.entry(entry.origin[0])):
                topic = f"{TOPICS}{slug(turn.doc_id.rpartition('/')[2])}"
            moves.append(Move(place.seq, topic, why="reimported"))
    if not moves:
        return None
    plan, approved = Plan("reimport", moves=tuple(moves)), {move.seq for move in moves}
    done = library.apply(plan, base=view, strategy="people", model="none", approved=approved)
    return done.receipt if isinstance(done, Applied) else None
