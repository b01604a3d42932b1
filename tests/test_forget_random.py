"""Forgetting in random libraries, after random work of people and program: the words are nowhere."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fault_library import lines, problems
from forget_library import holding

from infinimem import Turn, open_memory
from infinimem.errors import LibraryError, UsageError
from infinimem.model import CURRENT, Located
from infinimem.operations.forget.forget import Forgotten
from infinimem.store.lines import drawn_from

SUBJECTS = (
    "My sister Rita",
    "The old bike",
    "Our flat in Porto",
    "Dr. Vu",
    "The choir",
    'My "own" garden | plot',
)
DOES = ("moved to", "was painted", "grows, since 2021,", "needs", "sang about", "is not")
MARK = re.compile("zq[0-9]+xk")


class Life:
    """A library in which each thing said has a word of its own, that nobody else says."""

    def __init__(self, root: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        moments = (datetime(2025, 1, 1, tzinfo=UTC) + timedelta(minutes=n) for n in range(10**6))
        self.memory = open_memory(root, model="offline", create=True, clock=lambda: next(moments))
        self.root = root
        self.words = 0
        self.deleted = set[int]()

    def word(self) -> str:
        self.words += 1
        return f"zq{self.words}xk"

    def text(self) -> str:
        pick = self.chance.choice
        said = f"{pick(SUBJECTS)} {pick(DOES)} {self.word()} {pick(('today.', 'again.', 'in März'))}"
        return said + pick(("", "", "\nAnd more of it,\n\n  indented.", f" {pick(SUBJECTS)} too."))

    def live(self) -> list[Located]:
        view = self.memory.view
        return [p for p in (*view.entries(), *view.entries("archive")) if not view.is_note(p.doc_id)]

    # ── what happens ────────────────────────────────────────────────────────────────────────────

    def tell(self) -> None:
        session = self.chance.choice(("s1", "s2", None))
        role = self.chance.choice(("user", "user", "assistant"))
        self.memory.observe([Turn(self.text(), role=role, session=session) for _ in range(3)])

    def consolidate(self) -> None:
        self.memory.consolidate()

    def stamp(self) -> None:
        self.memory.library.adopt_edits()

    def undo(self) -> None:
        with suppress(LibraryError, UsageError):
            self.memory.undo()

    def edit(self) -> None:
        place = self.chance.choice(self.live())
        self._change(place, f"{place.entry.line} {self.word()}")

    def delete(self) -> None:
        place = self.chance.choice(self.live())
        self.deleted.add(place.seq)
        self._change(place, "")

    def paste(self) -> None:
        place = self.chance.choice(self.live())
        self._change(place, f"{place.entry.line}\n{place.entry.line}")

    def carry(self) -> None:
        place = self.chance.choice(self.live())
        self._change(place, "")
        path = self.root / "topics" / self.chance.choice(("carried.md", "here.md"))
        path.write_text((path.read_text() if path.exists() else "") + f"{place.entry.line}\n")

    def type(self) -> None:
        path = self.root / "topics" / self.chance.choice(("typed.md", "here.md"))
        text = self.text().split("\n")[0]
        path.write_text((path.read_text() if path.exists() else "# Mine\n") + f"- {text}\n")

    def rename(self) -> None:
        topics = sorted((self.root / "topics").glob("*.md"))
        place = self.chance.choice(self.live())
        found = MARK.search(place.text)
        if topics and found:
            self.chance.choice(topics).rename(self.root / f"topics/about-{found[0]}.md")

    def head(self) -> None:
        place = self.chance.choice(self.live())
        found = MARK.search(place.text)
        if found and place.doc_id.startswith("topics/"):
            self._change(place, f"## Of {found[0]}\n{place.entry.line}")

    def _change(self, place: Located, line: str) -> None:
        path = self.root / f"{place.doc_id}.md"
        text = path.read_text()
        new = text.replace(place.entry.line + "\n", f"{line}\n" * bool(line), 1)
        path.write_text(new)

    def forget(self) -> None:
        place = self.chance.choice([*self.live(), *self.memory.view.entries("evidence")])
        word = MARK.search(place.text)
        before = self.memory.view
        if word and self.chance.random() < 0.4:
            done = self.memory.forget(match=word[0])
        else:
            word, done = None, self.memory.forget([place.seq])
        after = self.memory.view
        assert place.seq in done.seqs
        assert set(lines(after)) == {(seq, line) for seq, line in lines(before) if seq not in done.seqs}
        assert [seq for p in self.live() for seq in drawn_from(p.entry) if seq in done.seqs] == []
        texts = [p.text for seq in done.seqs if (p := before.entry(seq))]
        pieces = {piece for text in texts for piece in re.split(r"(?<=[.!?])\s+|\n", text) if len(piece) > 20}
        stay = "\n".join(one.text for seq in done.repeated if (one := after.entry(seq)))
        seen = self.memory.library.seen_lines()  # lines, too, that a person deleted
        stay += "\n".join(seen[seq].line for seq in done.repeated if seq in seen)
        stay += "\n".join(line for receipt in self.memory.receipts() for line in receipt.quoted)
        told = {one.path for one in done.left}
        for piece in (piece for piece in pieces if piece.strip() not in stay):
            assert set(holding(piece, self.root)) <= told, (piece, done)
        for path in holding(word[0], self.root) if word else ():
            assert path in told or self.names_alone(path, word[0], done), (word, done)  # type: ignore[index]

    def names_alone(self, path: str, word: str, done: Forgotten) -> bool:
        """Whether a word stands in a file, and in its name, only in names that were reported."""
        told = (
            path
            + "\n"
            + ((self.root / path).read_text(errors="replace") if (self.root / path).is_file() else "")
        )
        for one in done.left:
            name = re.escape(one.path.removesuffix(".md").rpartition("/")[2]).replace("\\-", "[- ]")
            told = re.sub(name, "", told, flags=re.IGNORECASE)
        return word not in told


WORK = ("tell", "tell", "consolidate", "consolidate", "stamp", "undo", "edit", "edit", "delete", "paste")
MORE = ("carry", "type", "rename", "head", "forget", "forget")


@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(n, marks=pytest.mark.soak) for n in range(3, 200))]
)
def test_whatever_happened_what_is_forgotten_is_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    life = Life(tmp_path / "memory", seed)
    life.tell()
    given = 0
    for _ in range(25):
        name = life.chance.choice((*WORK, *MORE))
        act: Callable[[], None] = getattr(life, name)
        if name in ("tell", "consolidate", "stamp", "undo") or life.live():
            act()
        given = max(given, life.memory.view.max_seq)
    if life.live():
        life.forget()
    life.tell()
    assert min(p.seq for p in life.memory.view.entries("evidence") if p.seq > given) > given
    life.memory.library.adopt_edits()
    cited = tuple(f"its origin {seq} is not in the library" for seq in life.deleted)  # and a copy stays
    assert [one for one in problems(life.root, {}) if not any(told in one for told in cited)] == []
    assert CURRENT in life.memory.view
