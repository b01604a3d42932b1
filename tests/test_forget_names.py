"""After a forget by match or by session the word is in no byte and no name, or `left` says where it is."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fault_library import lines, problems, tree

from infinimem import Turn, open_memory
from infinimem.adapters.file_tree import FileTree, Refused
from infinimem.errors import LibraryError, UsageError
from infinimem.memory import Memory
from infinimem.model import Derived, Move, Plan
from infinimem.operations.as_of import Moment, as_of, moment, unreachable
from infinimem.operations.forget.forget import Forgotten
from infinimem.operations.review import keep as keep_plan
from infinimem.store import disk
from infinimem.store.receipts import parse_receipt
from infinimem.store.render import described
from infinimem.store.view import View

SECRET = "zebrafish"
SUBJECTS = ("My sister Rita", "The old bike", "Our flat in Porto", "The choir", "Ana's garden")
DOES = ("moved to", "was painted", "grows beside", "sang about", "is not")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def standing(word: str, root: Path) -> set[str]:
    """Paths below the library, or the cache, whose name or bytes hold a word, in any case."""
    wanted, found = word.casefold().encode(), set()
    for folder in (root, Path(os.environ["XDG_CACHE_HOME"])):
        for path in folder.rglob("*"):
            name = str(path.relative_to(folder)) if folder == root else str(path)
            data = path.read_bytes() if path.is_file() else b""
            if wanted in path.name.casefold().encode() or wanted in data.lower():
                found.add(name)
    return found


def nowhere(done: Forgotten, root: Path, word: str = SECRET) -> None:
    """The word is where `left` says, and nowhere else; what `left` says, is so."""
    assert standing(word, root) == {left.path for left in done.left}
    assert all(": " in left.why for left in done.left), "it says what to do"


def memory_of(root: Path, strategy: str = "infini") -> Memory:
    moments = (datetime(2025, 1, 1, tzinfo=UTC) + timedelta(minutes=n) for n in range(10**6))
    return open_memory(root, model="offline", strategy=strategy, create=True, clock=lambda: next(moments))


def tool(memory: Memory, command: str, path: str, **more: object) -> None:
    FileTree(memory).run({"command": command, "path": path, **more})


# ── the leaks that were ─────────────────────────────────────────────────────────────────────────────


def test_a_file_of_the_memory_tool_is_listed_by_its_name(tmp_path: Path) -> None:
    memory = memory_of(tmp_path / "m")
    memory.observe([Turn(f"I keep a {SECRET}.")])
    tool(memory, "create", f"/memories/{SECRET}.txt", file_text=f"hello\nthe {SECRET} is fine\n")
    shown = memory.forget(match=SECRET, dry_run=True)
    done = memory.forget(match=SECRET)
    nowhere(done, tmp_path / "m")
    assert [(left.path, left.why) for left in done.left] == [
        (f"memories/{SECRET}.txt.md", "its name: rename it")
    ]
    assert shown.left == done.left
    (tmp_path / f"m/memories/{SECRET}.txt.md").rename(tmp_path / "m/memories/fish.txt.md")
    assert memory.forget(match=SECRET).receipt is None
    assert standing(SECRET, tmp_path / "m") == set()


def test_the_receipt_of_the_forget_itself_names_nothing(tmp_path: Path) -> None:
    memory = memory_of(tmp_path / "m")
    memory.observe([Turn("I keep a fish.", session=f"About the {SECRET}", speaker="Ana")])
    memory.consolidate()
    done = memory.forget(session=f"About the {SECRET}")
    assert (done.seqs, done.left) == ((1, 2), ())
    assert standing(SECRET, tmp_path / "m") == set()


def test_a_session_goes_by_its_name_whoever_spoke(tmp_path: Path) -> None:
    memory = memory_of(tmp_path / "m")
    memory.observe([Turn("I keep a fish.", session="a"), Turn("Nice!", role="assistant", session="a")])
    memory.observe([Turn("I moved to Porto.", session="b")])
    assert [row.text for row in memory.forget(session="b", dry_run=True).rows] == ["I moved to Porto."] * 2
    assert {1, 2} <= set(memory.forget(session="a").seqs)
    assert {place.text for place in memory.view.entries("evidence")} == {"I moved to Porto."}
    with pytest.raises(UsageError, match="in one way"):
        memory.forget([1], session="b")


def test_a_session_of_which_lines_stay_gets_another_name(tmp_path: Path) -> None:
    memory = memory_of(tmp_path / "m")
    memory.observe(
        [
            Turn(f"I keep a {SECRET}.", session=f"the {SECRET}", speaker=SECRET.title()),
            Turn("My bike is red.", session=f"the {SECRET}", speaker="Ana"),
        ]
    )
    nowhere(memory.forget(match=SECRET), tmp_path / "m")
    (name,) = memory.view.ids("evidence")
    header = memory.view.document(name).header.values
    assert (name, header["session"]) == ("evidence/2025-01-01-session-1", "2025-01-01-session-1")
    assert (header["id"], header["participants"]) == (name, ["Ana"])
    memory.observe([Turn("It has a bell.", session="2025-01-01-session-1")])
    assert memory.view.ids("evidence") == (name,)


def test_names_and_headings_go_where_no_line_has_the_word(tmp_path: Path) -> None:
    """Of a word that the lines do not hold any more, an older forget may have left the names."""
    memory = memory_of(tmp_path / "m")
    memory.observe([Turn("My bike is red.")])
    move = Move(2, f"topics/the-{SECRET}", f"{SECRET.title()}s")
    memory.library.apply(Plan("consolidate", moves=(move,)))
    (tmp_path / f"m/{SECRET} notes.md").write_text(f"# Mine\nThe {SECRET}.\n")
    shown = memory.forget(match=SECRET, dry_run=True)
    assert (shown.rows, shown.files[-1]) == ((), f"topics/the-{SECRET}.md")
    done = memory.forget(match=SECRET)
    nowhere(done, tmp_path / "m")
    assert {left.why for left in done.left} == {"its name: rename it", "a person's note: edit it"}
    assert [(p.doc_id, p.headings, p.text) for p in memory.view.entries()] == [
        ("topics/topic-2", ("Other",), "My bike is red.")
    ]


def test_a_word_in_the_signature_of_a_line_that_stays_is_told(tmp_path: Path) -> None:
    memory = memory_of(tmp_path / "m")
    memory.observe([Turn(f"I keep a {SECRET}."), Turn("My bike is red.", key=f"{SECRET}-2", session="b")])
    nowhere(done := memory.forget(match=SECRET), tmp_path / "m")
    assert [left.path for left in done.left] == ["evidence/2025-01-01-b.md"]
    nowhere(memory.forget([2]), tmp_path / "m")


def test_a_record_that_a_person_named_goes(tmp_path: Path) -> None:
    memory = memory_of(tmp_path / "m", "allmem")
    memory.observe([Turn(f"I keep a {SECRET}."), Turn("My bike is red.")])
    unit = tmp_path / "m/allmem/units/u-000002.md"
    unit.with_name(f"{SECRET}.md").write_bytes(unit.read_bytes())
    done = memory.forget(match=SECRET)
    nowhere(done, tmp_path / "m")
    assert done.receipt is not None and SECRET in str(done.records)
    memory.observe([])
    assert [place.text for place in memory.view.entries("evidence")] == ["My bike is red."]
    assert memory.view.uncited() == ()


def test_what_a_person_saves_meanwhile_names_it_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = memory_of(tmp_path / "m")
    memory.observe([Turn(f"I keep a {SECRET}."), Turn("My bike is red.")])
    moves = (Move(3, f"topics/my-{SECRET}", "Pets"), Move(4, f"topics/my-{SECRET}", "Bike"))
    memory.library.apply(Plan("consolidate", moves=moves))
    topic, real, saved = tmp_path / f"m/topics/my-{SECRET}.md", disk.rename, list[str]()

    def take(old: disk.At, new: disk.At) -> None:
        if old.path == f"topics/my-{SECRET}.md" and not saved:
            saved.append(topic.read_text())
            topic.write_text(f"{saved[0]}\n## On {SECRET}\nprose of mine\n")
        real(old, new)

    monkeypatch.setattr(disk, "rename", take)
    assert memory.forget(match=SECRET).left == ()
    assert saved and standing(SECRET, tmp_path / "m") == set()
    assert any(b"prose of mine" in data for data in tree(tmp_path / "m").values())


def test_a_conflict_loses_the_word_in_its_text_its_name_and_its_checksum(tmp_path: Path) -> None:
    memory = memory_of(tmp_path / "m")
    memory.observe([Turn(f"I keep a {SECRET}."), Turn("My bike is red.")])
    folder = tmp_path / "m/.infinimem/conflicts"
    folder.mkdir()
    lines = [place.entry.line for place in memory.view.entries()]
    text = f"# On {SECRET}\n{lines[0]}\n{lines[1]}\nprose of mine\n"
    (folder / f"0007-0123456789ab-topics-{SECRET}.md").write_text(text)
    (folder / "0007-0123456789ac-topics-bike.md").write_text(f"{lines[0]}\n{lines[1]}\n")
    (folder / f"torn-topics-{SECRET}.md").write_text(lines[0])
    memory.forget(match=SECRET)
    assert standing(SECRET, tmp_path / "m") == set()
    found = {path.name: path.read_text().split() for path in folder.iterdir()}
    assert sorted(name.partition("-")[0] + name[17:] for name in found) == [
        "0007-topic-1.md",
        "0007-topics-bike.md",
    ]
    assert all(lines[1].split()[-1] in words for words in found.values())
    assert "0123456789a" not in str(found)


def test_accents_do_not_hide_a_word_in_a_name(tmp_path: Path) -> None:
    memory = memory_of(tmp_path / "m")
    memory.observe([Turn("Évora is fine."), Turn("My bike is red.")])
    memory.library.apply(Plan("consolidate", moves=(Move(4, "topics/trip-to-evora", "Trips"),)))
    memory.forget([1])
    assert standing("evora", tmp_path / "m") == set()


@pytest.mark.sample(3)
@pytest.mark.parametrize("word", ["user", "receipt", "topic", "evidence", "moved", "2025", "12", "id"])
def test_words_of_the_format_are_not_taken_for_it(tmp_path: Path, word: str) -> None:
    memory = memory_of(tmp_path / "m")
    memory.observe([Turn(f"It says {word} here.", session="s"), Turn("My bike is red.", session="s")])
    memory.consolidate()
    (tmp_path / "m/mine.md").write_text(f"Mine says {word} too.\n")
    done = memory.forget(match=rf"\b{word}\b")
    assert [(left.path, left.why) for left in done.left] == [("mine.md", "a person's note: edit it")]
    assert "My bike is red." in {place.text for place in memory.view.entries()}
    assert memory.forget(match=rf"\b{word}\b").receipt is None


@pytest.mark.parametrize("word", ["HIV", "Vu"])
def test_short_words_count_where_they_stand_alone(tmp_path: Path, word: str) -> None:
    memory = memory_of(tmp_path / "m")
    memory.observe(
        [Turn(f"About {word} we spoke.", session=f"on {word}"), Turn("I archive all.", session="b")]
    )
    memory.consolidate()
    (tmp_path / f"m/{word.lower()}-notes.md").write_text("nothing\n")
    (tmp_path / f"m/x{word}y.md").write_text(f"ar{word}val\n")
    done = memory.forget(match=rf"\b{word}\b")
    assert [left.path for left in done.left] == [f"{word.lower()}-notes.md"]
    assert f"on-{word.lower()}" not in str(sorted((tmp_path / "m").rglob("*")))


def test_no_checksum_of_it_is_kept(tmp_path: Path) -> None:
    """A short text is found from its checksum by trying."""
    memory = memory_of(tmp_path / "m")
    memory.observe([Turn(f"I keep a {SECRET}."), Turn("My bike is red.")])
    memory.consolidate()
    root = tmp_path / "m"
    held = [path for path in standing(SECRET, root) if path.endswith(".md")]
    sums = {memory.library.files.read(path) for path in held}
    from infinimem.store.files import digest

    known = {digest(data) for data in sums}
    assert any(one.encode() in data for one in known for data in tree(root).values()), "none was there"
    memory.forget(match=SECRET)
    assert [one for one in known if standing(one, root)] == []
    assert problems(root, {}) == []


# ── what the past still shows ───────────────────────────────────────────────────────────────────────


@pytest.fixture
def dropped(tmp_path: Path) -> Memory:
    """Turns 1 to 3, entries 4 to 6 in two topics; then turn 7, and its entry 8; then 4 is forgotten."""
    memory = memory_of(tmp_path / "m")
    memory.observe([Turn(f"I keep a {SECRET}."), Turn("My bike is red."), Turn("Rita sings.")])
    moves = (Move(4, "topics/home", "Pets"), Move(5, "topics/home", "Bike"), Move(6, "topics/choir", "Choir"))
    memory.library.apply(Plan("consolidate", moves=moves))
    memory.observe([Turn("My bike has a bell.")])
    derived = (Derived("topics/home", "a bike that rings", (5, 8)),)
    memory.library.apply(Plan("consolidate", moves=(Move(8, "topics/home", "Bike"),), derived=derived))
    memory.forget([4])
    return memory


def test_as_of_says_so_where_it_does_not_reach(dropped: Memory) -> None:
    past = dropped.at("journal/0001-consolidate").view
    assert unreachable(past) == ["topics/home"]
    assert "cannot be shown" in past.document("topics/home").body
    assert [(p.doc_id, p.text) for p in past.entries()] == [("topics/choir", "Rita sings.")]
    before = as_of(dropped.view, Moment(0, 6))  # there was no topic yet
    assert unreachable(before) == []
    assert [(p.doc_id, p.seq) for p in before.entries()] == [("CURRENT", 5), ("CURRENT", 6)]


def test_undo_says_so_where_a_way_back_was_dropped(dropped: Memory) -> None:
    before = tree(dropped.library.root)
    with pytest.raises(LibraryError, match="0002-consolidate cannot be undone: lines of topics/home were"):
        dropped.undo("2")
    assert tree(dropped.library.root) == before


def test_of_a_line_in_the_buffer_nothing_else_is_dropped(tmp_path: Path) -> None:
    memory = memory_of(tmp_path / "m")
    memory.observe([Turn("My bike is red."), Turn("Rita sings.")])
    memory.library.apply(Plan("consolidate", moves=(Move(3, "topics/home", "Bike"),)))
    memory.observe([Turn(f"I keep a {SECRET}.")])
    memory.forget(match=SECRET)
    past = as_of(memory.view, Moment(0, 4))
    assert unreachable(past) == []
    assert [(p.doc_id, p.seq) for p in past.entries()] == [("CURRENT", 3), ("CURRENT", 4)]
    memory.undo("1")
    assert sorted((p.doc_id, p.seq) for p in memory.view.entries()) == [("CURRENT", 3), ("CURRENT", 4)]
    assert problems(tmp_path / "m", {}) == []


# ── any library ─────────────────────────────────────────────────────────────────────────────────────


class Life:
    """A library in which a word gets everywhere. All other words are said by a turn that stays."""

    def __init__(self, root: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.root = root
        self.memory = memory_of(root, self.chance.choice(("infini", "infini", "allmem")))
        self.memory.observe([Turn(" ".join((*SUBJECTS, *DOES, "today again said more trip talk Ana Bo")))])

    def word(self) -> str:
        return self.chance.choice((SECRET, SECRET.title(), f"{SECRET}es", SECRET.upper()))

    def maybe(self, text: str) -> str:
        return self.chance.choice((text, text, f"{text} {self.word()}"))

    def tell(self) -> None:
        pick = self.chance.choice
        session = pick((None, "talk", f"trip {SECRET}", SECRET.title()))
        for _ in range(3):
            text = self.maybe(f"{pick(SUBJECTS)} {pick(DOES)} {self.maybe(pick(SUBJECTS))} today.")
            text += pick(("", "", f"\nAnd {self.maybe('more')}\n\n  again."))
            speaker = pick((None, "Ana", "Bo", self.maybe("Bo")))
            role = pick(("user", "user", "assistant"))
            self.memory.observe([Turn(text, role=role, session=session, speaker=speaker)])

    def consolidate(self) -> None:
        self.memory.consolidate()

    def stamp(self) -> None:
        self.memory.library.adopt_edits()

    def undo(self) -> None:
        with suppress(LibraryError, UsageError):
            self.memory.undo()

    def use_the_tool(self) -> None:
        pick = self.chance.choice
        path = f"/memories/{pick(('a.txt', 'b/c.txt', f'{SECRET}.md', f'{SECRET}/d.txt'))}"
        text = f"one\n{self.maybe('two')}\nthree\n"
        with suppress(Refused):
            tool(self.memory, "create", path, file_text=text)
        if self.chance.random() < 0.3:
            tool(self.memory, "delete", path)
        elif self.chance.random() < 0.3:
            with suppress(Refused):
                tool(
                    self.memory, "rename", path, old_path=path, new_path=f"/memories/{SECRET}-{len(text)}.txt"
                )

    def plan(self) -> None:
        move = [Move(p.seq, f"topics/{SECRET}", self.maybe("Of it")) for p in self.memory.view.entries()][:2]
        if move:
            keep_plan(
                self.memory.library, Plan("consolidate", moves=tuple(move)), self.memory.view, "infini", "m"
            )

    def move(self) -> None:
        pick = self.chance.choice
        topic = f"topics/{pick(('here', 'there', f'on-{SECRET}'))}"
        moves = [
            Move(p.seq, topic, self.maybe("Of it"))
            for p in self.memory.view.entries()
            if not p.doc_id.startswith("allmem")
        ]
        if self.memory.library.spec.has_entries:
            self.memory.library.apply(Plan("consolidate", moves=tuple(moves[: self.chance.randrange(1, 5)])))

    def file(self) -> Path | None:
        found = sorted((self.root / "topics").glob("*.md"))
        return self.chance.choice(found) if found else None

    def name(self) -> None:
        if path := self.file():
            path.rename(path.with_name(f"{self.word()}-{self.chance.randrange(9)}.md"))

    def type(self) -> None:
        path = self.file() or self.root / "topics/typed.md"
        path.parent.mkdir(exist_ok=True)
        old = path.read_text() if path.exists() else ""
        path.write_text(f"{old}\n# {self.maybe('Mine')}\n- {self.maybe('tea')}\n")

    def edit(self) -> None:
        if path := self.file():
            path.write_text(path.read_text().replace("today.", f"today, {self.maybe('again')}.", 1))

    def delete(self) -> None:
        if (path := self.file()) and (
            found := [n for n in path.read_text().split("\n") if n.startswith("- <")]
        ):
            path.write_text(path.read_text().replace(self.chance.choice(found) + "\n", "", 1))

    def describe(self) -> None:
        if (path := self.file()) and "aliases:" not in path.read_text():
            path.write_text(path.read_text().replace("---\n", f"---\naliases: [x, {self.word()}]\n", 1))

    def note(self) -> None:
        (self.root / self.maybe("notes of mine").lower()).with_suffix(".md").write_text(
            f"# {self.maybe('Mine')}\n"
        )
        (self.root / f"{SECRET}.png").write_bytes(b"\x89PNG")

    def conflict(self) -> None:
        folder = self.root / ".infinimem/conflicts"
        folder.mkdir(exist_ok=True)
        name = f"0001-{self.chance.randrange(16**12):012x}-topics-{self.maybe('here').replace(' ', '-')}.md"
        entry = next(iter([p.entry.line for p in self.memory.view.entries()]), "- tea")
        (folder / name).write_text(f"# {self.maybe('Of it')}\n{entry}\n{self.maybe('prose of mine')}\n")

    def forget_another(self) -> None:
        places = [p for p in self.memory.view.entries("evidence") if SECRET not in p.entry.line.casefold()]
        if len(places) > 3:
            self.memory.forget([self.chance.choice(places[1:]).seq])


WORK: tuple[Callable[[Life], None], ...] = (
    *(Life.tell, Life.tell, Life.consolidate, Life.consolidate, Life.stamp, Life.undo, Life.use_the_tool),
    *(Life.plan, Life.move, Life.name, Life.type, Life.edit, Life.delete, Life.describe, Life.note),
    *(Life.conflict, Life.forget_another),
)


def shown(view: View) -> dict[str, set[tuple[int, str]]]:
    """What each moment had of each document."""
    return {
        doc_id: {(place.seq, place.entry.line) for place in view.document(doc_id).entries}
        for doc_id in view.ids("all")
        if not view.is_note(doc_id) and not doc_id.startswith(("journal", "allmem"))
    }


def unlinked(data: bytes) -> bytes:
    """Without the header keys that change where a topic that it links to goes, or comes."""
    return re.sub(rb"(?m)^(?:see_also|token_count): .*\n", b"", data)


@pytest.mark.parametrize("by", ["match", "session"])
@pytest.mark.parametrize(
    "seed", [*range(5), *(pytest.param(n, marks=pytest.mark.soak) for n in range(5, 300))]
)
def test_whatever_happened_the_word_is_nowhere_or_named(tmp_path: Path, seed: int, by: str) -> None:
    life = Life(tmp_path / "m", seed)
    life.tell()
    for _ in range(18):
        life.chance.choice(WORK)(life)
    life.memory.library.adopt_edits()
    memory, root = life.memory, life.root
    if by == "session":
        memory.observe([Turn("Rita moved to Porto today.", session="quokka trip", speaker="Ana")])
        life.chance.choice((Life.consolidate, Life.stamp))(life)
    word = SECRET if by == "match" else "quokka"
    before, files = memory.view, tree(root)
    stood = lines(before)
    names = [receipt.id for receipt in memory.receipts()]
    pasts = {name: shown(as_of(before, moment(before, name))) for name in names[-4:]}
    quotes = {receipt.id: receipt.quoted for receipt in memory.receipts()}
    done = memory.forget(match=word) if by == "match" else memory.forget(session="quokka trip")

    nowhere(done, root, word)
    assert problems(root, {}) == []
    now = memory.view
    assert lines(now) == [(seq, line) for seq, line in stood if seq not in done.seqs]
    concerned = {place.doc_id for seq in done.seqs if (place := before.entry(seq))}
    topics = map(before.document, before.below("topics/"))
    concerned |= {topic.id for topic in topics if set(done.seqs) & set(described(topic))}
    for path, data in files.items():
        told = word in data.decode(errors="replace").casefold() or word in path.casefold()
        derived = path.startswith(("journal/", "allmem/")) or path.removesuffix(".md") in concerned
        if not told and not derived:
            assert unlinked((root / path).read_bytes()) == unlinked(data), path
    for name, quoted in quotes.items():
        kept = [
            line
            for line in quoted
            if line.startswith("- <") and all(f"<seq={n}," not in line for n in done.seqs)
        ]
        after = parse_receipt(now.document(name)).quoted
        assert [line for line in kept if line not in after] == [], name
    for name, then in pasts.items():
        past = as_of(now, moment(now, name))
        for doc_id, held in shown(past).items():
            if doc_id in then and doc_id not in unreachable(past):
                left = {(seq, line) for seq, line in then[doc_id] if seq not in done.seqs}
                assert held == left, f"{doc_id} at {name}"
    again = memory.forget(match=word)
    assert (again.receipt, again.left) == (None, done.left)
    for name in names[-3:]:
        with suppress(LibraryError):
            memory.undo(name)
        assert problems(root, {}) == []
    assert memory.forget(match=word).receipt is None
