"""Runs whose every moment is a moment for the power to fail, and a search for a moment, and a choice of what
reached the disk, that leave a library broken."""

from __future__ import annotations

import os
import random
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from unittest.mock import patch

import pytest
from fault_library import lines, problems
from fault_power import Cache, Fate, Names, Promise, Tape, Write, anywhere, fates, nuls, plant, whole

from infinimem.model import Located, Move, NewEntry, Plan, Receipt, Turn
from infinimem.operations.doctor import examine
from infinimem.store import disk
from infinimem.store.disk import At
from infinimem.store.folders import located
from infinimem.store.library import Library, init
from infinimem.store.spec import EVIDENCE
from infinimem.store.view import Applied

NOON = datetime(2025, 3, 3, 12, tzinfo=UTC)
DAY = "2025-03-01"
LONG = "what was said first\n\nand then, at some length, " + "again and " * 60 + "\nat last"


class Run:
    """Calls to a library, each followed by what it promised.

    Args:
        root: an empty folder, or a library.
        tape: writes down what happens to the disk.
    """

    def __init__(self, root: Path, tape: Tape) -> None:
        self.root = root
        self.tape = tape
        self._turns = count()
        self.library = Library(root, clock=lambda: NOON)

    def init(self) -> None:
        """Make the folder a library. Its settings are a person's and short, which makes opening it fast."""
        self.save("infinimem.toml", b"format = 1\n")
        self.library = init(self.root)
        self.library.clock = lambda: NOON
        self.tape.promise = replace(self.tape.promise, ready=True)

    def promise(self, places: Sequence[Located], receipt: Receipt | None = None) -> None:
        """These lines were returned, each with its place; and a receipt."""
        old = self.tape.promise
        for place in places:
            self.tape.texts.setdefault(place.seq, set()).add(place.text)
        self.tape.promise = replace(
            old,
            lines={**old.lines, **{place.seq: place.text for place in places}},
            places={**old.places, **{place.seq: place.doc_id for place in places}},
            receipts=old.receipts | ({receipt.id} if receipt else set()),
            given=old.given | {place.seq for place in places},
            waiting=old.waiting | {proposal.move.seq for proposal in self.library.proposals()},
        )

    def say(self, *texts: str, session: str | None = None) -> list[int]:
        """Record turns; their seqs."""
        turns = tuple(
            Turn(text, time=DAY, session=session, key=f"{self.tape.root.name} {next(self._turns)}")
            for text in texts
        )
        self.tape.promise = replace(self.tape.promise, saying=turns)
        places = self.library.record(turns)
        self.tape.promise = replace(self.tape.promise, saying=())
        self.promise(places)
        return [place.seq for place in places]

    def apply(self, plan: Plan) -> list[int]:
        """Carry out a plan; seqs of the entries it added."""
        self.tape.promise = replace(self.tape.promise, places={})
        outcome = self.library.apply(plan)
        assert isinstance(outcome, Applied), outcome
        moved = [outcome.view.entry(move.seq) for move in plan.moves]
        self.promise([*outcome.added, *(place for place in moved if place)], outcome.receipt)
        return [place.seq for place in outcome.added]

    def draw(self, *texts: str, session: str | None = None) -> list[int]:
        """Record turns and put an entry from each into CURRENT; the entries' seqs."""
        told = self.say(*texts, session=session)
        return self.apply(
            Plan(adds=tuple(NewEntry(f"fact: {text}", (seq,)) for seq, text in zip(told, texts, strict=True)))
        )

    def sort(self, op: str = "consolidate", **targets: Sequence[int]) -> None:
        """Move lines to topics."""
        moves = tuple(Move(seq, f"topics/{name}", "Things") for name, seqs in targets.items() for seq in seqs)
        self.apply(Plan(op, moves=moves))

    def adopt_edits(self) -> None:
        """Sign what people typed."""
        self.tape.promise = replace(self.tape.promise, places={})
        receipt = self.library.adopt_edits()
        if receipt:
            found = [self.library.view().entry(row.seq) for row in receipt.rows if row.now]
            self.promise([place for place in found if place], receipt)

    def save(self, path: str, data: bytes) -> None:
        """A person's editor saves a file, safely."""
        with located(self.root, f"{path}~") as temporary, located(self.root, path) as at:
            descriptor = disk.open_new(temporary)
            disk.write(descriptor, data)
            disk.sync(descriptor)
            os.close(descriptor)
            disk.rename(temporary, at)
            disk.sync_folder(at.folder)

    def edit(self, path: str, old: str, new: str) -> None:
        """A person changes the text of signed lines."""
        changed = {
            place.seq: place.text.replace(old, new)
            for place in self.library.view().document(path.removesuffix(".md")).entries
            if old in place.text
        }
        before = self.tape.promise
        kept = {seq: text for seq, text in before.lines.items() if seq not in changed}
        self.tape.promise = replace(before, lines=kept)
        for seq, text in changed.items():
            self.tape.texts[seq].add(text)
        self.save(path, (self.root / path).read_bytes().replace(old.encode(), new.encode()))
        self.tape.promise = replace(before, lines={**kept, **changed})

    def strike(self, path: str, text: str) -> None:
        """A person deletes the lines that hold a text."""
        struck = [p for p in self.library.view().document(path.removesuffix(".md")).entries if text in p.text]
        before = self.tape.promise
        kept = {seq: line for seq, line in before.lines.items() if seq not in {p.seq for p in struck}}
        self.tape.promise = replace(before, lines=kept, places={})
        lines = (self.root / path).read_bytes().splitlines(keepends=True)
        self.save(path, b"".join(line for line in lines if text.encode() not in line))
        gone = before.struck.union(*(place.entry.origin for place in struck))
        self.tape.promise = replace(self.tape.promise, struck=gone)

    def delete(self, path: str) -> None:
        """A person deletes a file."""
        gone = {place.seq for place in self.library.view().document(path.removesuffix(".md")).entries}
        old = self.tape.promise
        kept = {seq: text for seq, text in old.lines.items() if seq not in gone}
        self.tape.promise = replace(old, lines=kept, places={})
        with located(self.root, path) as at:
            disk.unlink(at)


def appends(run: Run) -> None:
    """A new library, and turns in two sessions."""
    run.init()
    with located(run.root, "evidence") as at:
        disk.remove_folder(at)  # as in a clone: git keeps no empty folder
    run.say("hello", session="one")
    run.say("and hello again", LONG, session="one")
    run.say("something else", session="two")


def consolidations(run: Run) -> None:
    """Entries sorted into topics, twice."""
    run.init()
    a, b, c, d = run.draw("tea", "Lisbon", "a red bike", "rain")
    run.sort(drinks=[a], home=[b])
    (e,) = run.draw("coffee")
    run.apply(
        Plan(
            "consolidate",
            moves=(
                Move(c, "topics/things", "Bike"),
                Move(e, "topics/drinks", "Now"),
                Move(a, "topics/drinks", why="superseded", by=e),
                Move(d, "topics/home", "Weather"),
            ),
        )
    )
    run.draw("something new")


def merge(run: Run) -> None:
    """One topic merged into another, and its file deleted."""
    run.init()
    a, b, c = run.draw("tea", "coffee", "rain")
    run.sort(drinks=[a], coffee=[b])
    run.apply(Plan("merge", moves=(Move(b, "topics/drinks", "Coffee", "merged"), Move(c, "topics/weather"))))


def typed(run: Run) -> None:
    """What a person typed, signed."""
    run.init()
    (a,) = run.draw("tea")
    run.sort(drinks=[a])
    path = run.root / "topics/drinks.md"
    run.save("topics/drinks.md", path.read_bytes() + b"- typed by hand\n* and this\n")
    run.save("CURRENT.md", (run.root / "CURRENT.md").read_bytes() + b"- in the buffer\n")
    run.adopt_edits()
    run.edit("topics/drinks.md", "and this", "or perhaps this")
    run.say("later")


def asked(run: Run) -> None:
    """A person's line would be archived: they are asked."""
    run.init()
    run.save("CURRENT.md", (run.root / "CURRENT.md").read_bytes() + b"- I like tea\n")
    run.adopt_edits()
    (typed,) = [place.seq for place in run.library.view().entries()]
    (later,) = run.draw("coffee")
    run.sort(drinks=[typed, later])
    run.apply(Plan("consolidate", moves=(Move(typed, "topics/drinks", why="superseded", by=later),)))


def saves(run: Run) -> None:
    """A person saves files while they are being replaced: once, too often, and one that is being deleted."""
    run.init()
    a, b, c, d = run.draw("tea", "coffee", "rain", "snow")
    run.sort(drinks=[a], coffee=[b])
    with saving(run, "topics/drinks.md", "A thought."):
        run.sort(drinks=[c])
    with saving(run, "topics/coffee.md", "My own words."):
        run.sort("merge", drinks=[b])
    with saving(run, "topics/drinks.md", *(f"Thought {number}." for number in range(9))):
        run.sort(drinks=[d])
    run.say("later")


@contextmanager
def saving(run: Run, path: str, *proses: str) -> Iterator[None]:
    """A person writes on in a file that they opened before, and saves it just before it is replaced."""
    left, written = list(proses), (run.root / path).read_bytes()
    exchange, rename = disk.exchange, disk.rename

    def save(replaced: At) -> None:
        nonlocal written
        if left and replaced.path == path:
            prose = left.pop(0)
            written += f"\n{prose}\n".encode()
            run.save(path, written)
            run.tape.promise = replace(run.tape.promise, prose=run.tape.promise.prose | {prose})

    with (
        patch.object(disk, "exchange", lambda one, other: (save(other), exchange(one, other))),
        patch.object(disk, "rename", lambda old, new: (save(old), rename(old, new))),
    ):
        yield


def deletions(run: Run) -> None:
    """A person deletes what was just said, or drawn: no seq is given again, no deleted line comes back."""
    run.init()
    run.say("first", session="one")
    run.say("second", session="two")
    run.delete(f"evidence/{DAY}-two.md")
    run.say("third", session="three")
    run.delete(f"evidence/{DAY}-three.md")
    run.draw("tea", session="four")
    run.strike("CURRENT.md", "tea")
    run.draw("coffee", "rain", session="four")
    run.strike("CURRENT.md", "coffee")
    run.sort(weather=[place.seq for place in run.library.view().buffer.entries])
    run.strike("topics/weather.md", "rain")
    run.say("last", session="five")
    run.delete(f"evidence/{DAY}-five.md")


def wandering(seed: int) -> Callable[[Run], None]:
    """A run of calls and a person's doings at random."""

    def wander(run: Run) -> None:
        chance = random.Random(seed)
        run.init()
        for step in range(8):
            live = [
                p.seq for p in run.library.view().entries() if p.doc_id.startswith(("CURRENT", "topics/"))
            ]
            topics = [doc_id for doc_id in run.library.view().ids() if doc_id.startswith("topics/")]
            texts = [
                f"{step}.{n} {chance.choice(('tea', 'rain', LONG))}" for n in range(chance.randint(1, 3))
            ]
            act = chance.randrange(7)
            if act == 0:
                run.say(*texts, session=chance.choice(("one", "two", None)))
            elif act == 1 or not live:
                run.draw(*(text.split("\n")[0] for text in texts), session=chance.choice(("three", None)))
            elif act == 2:
                moved = chance.sample(live, chance.randint(1, len(live)))
                half = len(moved) // 2
                run.sort(drinks=moved[:half], weather=moved[half:])
            elif act == 3 and len(live) > 1:
                old, new = sorted(chance.sample(live, 2))
                run.sort(drinks=[new])
                run.apply(Plan("consolidate", moves=(Move(old, "topics/drinks", why="superseded", by=new),)))
            elif act == 4:
                path = f"{chance.choice(['CURRENT', *topics])}.md"
                run.save(path, (run.root / path).read_bytes() + b"- typed by hand\n")
                run.adopt_edits()
            elif act == 5 and topics:
                run.edit(f"{chance.choice(topics)}.md", "tea", f"green tea {step}")
            else:
                run.library = Library(run.root, clock=lambda: NOON)
                run.say(*texts, session="gone")
                run.delete(f"evidence/{DAY}-gone.md")

    return wander


WORKLOADS: tuple[Callable[[Run], None], ...] = (
    appends,
    consolidations,
    merge,
    typed,
    deletions,
    asked,
    saves,
)


def recorded(root: Path, work: Callable[[Run], None], before: Tape | None = None, point: int = 0) -> Tape:
    """What a run does to the disk.

    Args:
        root: the folder, as it is at the beginning.
        work: the run.
        before, point: the run that the power cut short, and where; what it promised holds.
    """
    tape = Tape(root, before.promised(point) if before else None)
    tape.texts = {seq: set(texts) for seq, texts in before.texts.items()} if before else {}
    with tape.recording():
        work(Run(root, tape))
    return tape


def reopened(run: Run) -> None:
    """The library is opened again, which repairs it, and something is said."""
    if not run.tape.promise.ready:
        init(run.root)
        run.library = Library(run.root, clock=lambda: NOON)
    run.say("after it", session="late")


MEMORY = Path("/dev/shm")


@pytest.fixture
def scratch(tmp_path: Path, parsed_once: None) -> Iterator[Path]:
    """A folder in memory where there is one."""
    home = Path(tempfile.mkdtemp(dir=MEMORY)) if MEMORY.is_dir() else tmp_path
    try:
        yield home
    finally:
        if home != tmp_path:
            shutil.rmtree(home)


def broken(root: Path, tape: Tape, point: int) -> list[str]:
    """What is wrong with the folder that a power failure left at a point of a run; empty when nothing is."""
    promise = tape.promised(point)
    try:
        with patch.object(disk, "boot", lambda: "the boot after"), anywhere():
            return _broken(root, promise, tape, point)
    except Exception as error:
        return [f"raised {type(error).__name__}: {error}"]


def _broken(root: Path, promise: Promise, tape: Tape, point: int) -> list[str]:
    if not promise.ready:
        init(root)
    is_kept = tape.has_state(root, point)
    found = problems(root, promise.lines)
    library = Library(root, clock=lambda: NOON)
    view = library.view()
    there = lines(view)
    # By any receipt: a line that was signed where it stands may leave, and come back by a later one.
    brought = {(row.seq, row.now) for receipt in library.receipts() for row in receipt.rows}
    for seq, _ in there:
        place = view.entry(seq)
        half = place and place.text not in tape.texts.get(seq, (place.text,))
        if place and half and not place.doc_id.startswith(EVIDENCE):
            found.append(f"seq {seq} stands half: {place.text[:60]!r}")
        if place and place.doc_id.startswith(("topics/", "archive/")) and (seq, place.doc_id) not in brought:
            found.append(f"seq {seq} came to {place.doc_id}, and no receipt says so")
        if place and promise.places.get(seq, place.doc_id) != place.doc_id:
            found.append(f"seq {seq} was said to be in {promise.places[seq]} and is in {place.doc_id}")
    live = {seq for place in view.entries() for seq in (place.seq, *place.entry.origin)}
    back = promise.struck & {*live, *(place.seq for place in view.uncited())} if is_kept else set[int]()
    found += [f"evidence {seq} is drawn from again, but its line was deleted" for seq in sorted(back)]
    for receipt in library.receipts():
        for aside in re.findall(r"see (\S+)$", "\n".join(receipt.notes), re.M):
            if receipt.id in promise.receipts and not (root / aside).read_bytes().strip(b"\0"):
                found.append(f"{receipt.id} names {aside}, which is empty")
    found += [f"{name} was returned and is gone" for name in sorted(promise.receipts) if name not in view]
    texts = [path.read_text("utf-8", "replace") for path in root.rglob("*.md")] if promise.prose else []
    lost = [prose for prose in sorted(promise.prose) if not any(prose in text for text in texts)]
    found += [f"a person's words are gone: {prose}" for prose in lost]
    waiting = {proposal.move.seq for proposal in library.proposals()}
    found += [f"nobody asks about seq {seq}" for seq in sorted(promise.waiting - waiting)]
    library.record(promise.saying)
    said = [place.text for place in library.view().entries("evidence")]
    for turn in promise.saying:
        if said.count(turn.text) != 1:
            found.append(f"said again, it stands {said.count(turn.text)} times: {turn.text[:60]!r}")
    there = lines(library.view())
    (new,) = library.record([Turn("after the failure", time=DAY, session="after")])
    if new.seq in promise.given or new.seq in dict(there):
        found.append(f"seq {new.seq} was given twice")
    again = Library(root)
    if sorted(lines(again.view())) != sorted([*there, (new.seq, new.entry.line)]):
        found.append("a turn more changed other lines")
    found += [f"later, doctor: {item.what}" for item in examine(again) if item.level == "error"]
    return found


def told(cache: Cache, tape: Tape, point: int, kept: Mapping[int, Fate]) -> str:
    """A state in words: what became of the operations that were pending."""
    last = tape.ops[point - 1] if point else None
    said = [f"after {point} of {len(tape.ops)} operations, the last of them {last and last.what}"]
    for number, change in cache.pending.items():
        fate = kept.get(number)
        if fate is None:
            said.append(f"  {number}. {change.what}: lost")
        elif isinstance(change, Write) and (new := fate(change.data)) != change.data:
            start = f"{new[:60]!r}…" if len(new) > 60 else repr(new)
            said.append(f"  {number}. {change.what}: became {start}, {len(new)} bytes")
    return "\n".join([*said, "  all else: there"])


def explained(tape: Tape, cache: Cache, point: int, kept: dict[int, Fate], root: Path) -> str:
    """The state in words with as little lost as shows what is broken, and what that is."""

    def judged(tried: dict[int, Fate]) -> list[str]:
        plant(tape.tree(cache, point, tried), root)
        return broken(root, tape, point)

    for number, change in cache.pending.items():
        tried = {**kept, number: whole}
        if kept.get(number) is not whole and judged(tried):
            kept = tried
        elif number not in kept and not isinstance(change, Names) and judged({**kept, number: nuls}):
            kept = {**kept, number: nuls}
    return "\n".join([told(cache, tape, point, kept), *judged(kept)])


class Search:
    """Goes through states of runs, none twice.

    Args:
        scratch: an empty folder.
        seed: what decides which states; the same finds the same.
    """

    def __init__(self, scratch: Path, seed: int) -> None:
        self.root = scratch / "state"
        self.scratch = scratch
        self.states = 0
        self.chance = random.Random(seed)
        self._known: dict[tuple[object, ...], list[str]] = {}

    def record(
        self, name: str, work: Callable[[Run], None], before: Tape | None = None, point: int = 0
    ) -> Tape:
        """A run in a folder of its own; what `before` left at `self.root` is its beginning."""
        root = self.scratch / name
        shutil.rmtree(root, ignore_errors=True)
        if before:
            shutil.copytree(self.root, root)
        else:
            root.mkdir()
        return recorded(root, work, before, point)

    def look(self, tape: Tape, cache: Cache, point: int, kept: dict[int, Fate]) -> list[str]:
        """What is wrong with one state."""
        tree = tape.tree(cache, point, kept)
        key = (tape, id(tape.promised(point)), hash(frozenset(tree.items())))
        if key not in self._known:
            self.states += 1
            plant(tree, self.root)
            self._known[key] = broken(self.root, tape, point)
        return self._known[key]

    def explore(self, tape: Tape, size: int) -> list[str]:
        """Up to `size` states of a run; what was wrong with them, each kind once."""
        caches, wrong, end = tape.caches(), dict[str, str](), self.states + size
        for point, kept in self._choices(caches, 4 * size):
            found = self.look(tape, caches[point], point, kept)
            if found and found[-1][:40] not in wrong:
                wrong[found[-1][:40]] = explained(tape, caches[point], point, kept, self.root)
            if self.states >= end:
                break
        return list(wrong.values())

    def _choices(self, caches: Sequence[Cache], size: int) -> Iterator[tuple[int, dict[int, Fate]]]:
        """Each operation lost, torn, the only or the latest, at the last moment when it may be; then any."""
        last = {number: point for point, cache in enumerate(caches) for number in cache.pending}
        first = [(point, dict[int, Fate]()) for point in range(len(caches))]
        for number, point in last.items():
            cache = caches[point]
            first.append((point, {number: whole}))
            first.append((point, {n: whole for n in cache.pending if n <= number}))
            first += [(point, fates(cache, self.chance, [number], kind)) for kind in ("none", "torn")]
        self.chance.shuffle(first)
        yield from first
        uncertain = [point for point, cache in enumerate(caches) if cache.pending]
        for point in self.chance.choices(uncertain, k=size):
            yield point, fates(caches[point], self.chance)

    def interrupted(self, tape: Tape, number: int, name: str = "interrupted") -> Iterator[Tape]:
        """Runs that open what a power failure left of a transaction, and finish it."""
        caches = tape.caches()
        points = [point for point, cache in enumerate(caches) if _unfinished(cache)]
        for point in self.chance.sample(points, min(number, len(points))):
            kept = fates(caches[point], self.chance)
            plant(tape.tree(caches[point], point, kept), self.root)
            yield self.record(name, reopened, tape, point)

    def without(self, tape: Tape, role: str, size: int) -> str:
        """What breaks a build in which the syncs of a role do nothing, and no other; "" if none is found."""
        sound, weak = tape.caches(), tape.caches(role)
        points: dict[tuple[int, ...], list[int]] = {}
        for point, (before, after) in enumerate(zip(sound, weak, strict=True)):
            if more := tuple(number for number in after.pending if number not in before.pending):
                points.setdefault(more, []).append(point)
        returned = {since for since, _ in tape.promises}
        for turn in range(max(2, size // max(1, len(points)))):
            for more, among in points.items():
                # At the last moment of all and where a call has just returned the most is promised; in the
                # middle of a transaction the most is under way.
                told = [point for point in among if point in returned]
                point = self.chance.choice(([among[-1]], among, told or among)[turn % 3])
                cache, kind = weak[point], "none" if turn < 2 else ""
                kept = fates(cache, self.chance, more, kind)
                if turn % 2:
                    rest = fates(cache, self.chance, kind=kind).items()
                    kept = {n: fate for n, fate in kept.items() if n in more}
                    kept.update((n, fate) for n, fate in rest if n not in more)
                found = self.look(tape, weak[point], point, kept)
                if found and not self.look(tape, sound[point], point, _same(sound[point], kept)):
                    return found[-1]
        return ""


def _same(cache: Cache, kept: Mapping[int, Fate]) -> dict[int, Fate]:
    """The choice that all those syncs leave of another."""
    return {number: fate for number, fate in kept.items() if number in cache.pending}


def _unfinished(cache: Cache) -> bool:
    return any(path.startswith(".infinimem/tx/") for path in cache.tree({}))
