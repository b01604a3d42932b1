"""A search for a moment, and a choice of what reached the disk, that leave a library broken."""

from __future__ import annotations

import random
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from unittest.mock import patch

import pytest
from fault_library import lines, problems
from fault_power import Cache, Fate, Names, Write, fates, nuls, plant, whole
from fault_power_runs import DAY, NOON, Run, recorded, reopened
from fault_power_tape import Promise, Tape

from infinimem.model import Turn
from infinimem.operations.doctor import examine
from infinimem.store import disk
from infinimem.store.create import init
from infinimem.store.library import Library
from infinimem.store.spec import EVIDENCE

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
        with patch.object(disk, "boot", lambda: "the boot after"):
            return _broken(root, promise, tape)
    except Exception as error:
        return [f"raised {type(error).__name__}: {error}"]


def _broken(root: Path, promise: Promise, tape: Tape) -> list[str]:
    if not promise.ready:
        init(root)
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
    back = promise.struck & {*live, *(place.seq for place in view.uncited())}
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
        plant(cache.tree(tried), root)
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
        tree = cache.tree(kept)
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
            plant(caches[point].tree(kept), self.root)
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
