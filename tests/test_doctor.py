"""The doctor: what it finds in a library that something or someone damaged, and what it leaves alone."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from doctor_library import build, findings, one, root_of
from fault_library import tree
from fault_work import copy

from infinimem.errors import LibraryError
from infinimem.llm.connect import connect
from infinimem.memory import Memory
from infinimem.model import Finding, Move, NewEntry, Plan, Reason, Turn, Withheld
from infinimem.operations.doctor import examine, repair
from infinimem.store.commit import Installation
from infinimem.store.files import MAX_FILE
from infinimem.store.library import Library
from infinimem.store.view import Applied
from infinimem.store.withheld import keep_withheld


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("sound") / "memory").root


@pytest.fixture
def library(sound: Path, tmp_path: Path) -> Library:
    copy(sound, tmp_path / "memory")
    return Library(tmp_path / "memory")


def errors(library: Library) -> list[Finding]:
    return [item for item in examine(Library(library.root)) if item.level == "error"]


def test_a_sound_library_has_no_findings_and_fix_writes_nothing(library: Library) -> None:
    def files() -> dict[Path, bytes]:
        found = (path for path in library.root.rglob("*") if path.is_file() and path.name != "lock")
        return {path: path.read_bytes() for path in found}

    before = files()
    assert findings(library) == []
    assert repair(library) == []
    assert files() == before


Damage = Callable[[Path], object]


def append(path: str, data: str | bytes) -> Damage:
    def damage(root: Path) -> None:
        full = root / path
        full.parent.mkdir(exist_ok=True)
        with full.open("ab") as file:
            file.write(data.encode() if isinstance(data, str) else data)

    return damage


def replaced(path: str, old: bytes, new: bytes) -> Damage:
    def damage(root: Path) -> None:
        (file,) = root.glob(path)
        assert old in file.read_bytes()
        file.write_bytes(file.read_bytes().replace(old, new))

    return damage


def twin(path: str, other: str) -> Damage:
    def damage(root: Path) -> None:
        (file,) = root.glob(path)
        file.with_name(other.format(file.stem)).write_bytes(file.read_bytes())

    return damage


def moved(path: str, other: str) -> Damage:
    return lambda root: (root / path).rename(root / other)


BAD, HINT, MENDED, LEFT = "error", "note", True, False
FINDINGS: dict[str, tuple[Damage, str, str, str, bool]] = {
    "signature": (append("topics/food.md", "- <seq=> x\n"), BAD, "cannot be parsed", "topics/food:", LEFT),
    "conflict": (append("CURRENT.md", "<<<<<<< HEAD\n"), BAD, "conflict marker", "CURRENT:", LEFT),
    "note-conflict": (append("mine.md", ">>>>>>> x\n"), HINT, "conflict marker", "mine:1", LEFT),
    "typed": (append("CURRENT.md", "- call Bo\n- and Al\n"), HINT, "2 lines typed", "CURRENT:", MENDED),
    "pasted": (append("CURRENT.md", "- <seq=4> again\n"), BAD, "stands twice", "", MENDED),
    "pasted-said": (append("CURRENT.md", "- <seq=1> again\n"), BAD, "stands twice", "CURRENT:", MENDED),
    "merged": (twin("evidence/s1.md", "s2.md"), BAD, "stand twice", "evidence/s2:", LEFT),
    "high": (append("topics/food.md", "- <seq=900000> x\n"), BAD, "high-water", "topics/food:", MENDED),
    "mark": (
        lambda root: (root / ".infinimem/seq").write_bytes(b"x"),
        HINT, "mark of seqs is lost", ".infinimem/seq", MENDED,
    ),
    "renamed": (moved("topics/food.md", "topics/eat.md"), HINT, "header says id", "topics/eat:1", MENDED),
    "renamed-said": (
        moved("evidence/s1.md", "evidence/s9.md"), HINT, "header says id", "evidence/s9:1", LEFT
    ),
    "header": (replaced("topics/food.md", b"id: ", b"id: ["), BAD, "header:", "topics/food:1", LEFT),
    "note-header": (append("mine.md", "---\na: [\n---\n"), HINT, "header:", "mine:1", LEFT),
    "nul": (append("mine.md", "a\n\x00b\n"), HINT, "NUL", "mine:2", LEFT),
    "bytes": (append("mine.md", b"a\nb\xff\n"), HINT, "not UTF-8", "mine:2", LEFT),
    "case": (append("Mine.md", "a"), BAD, "treat these names as the same", "Mine", LEFT),
    "reason": (append("archive/new.md", "- <seq=10> x\n"), BAD, "without a reason", "archive/new:1", LEFT),
    "successor": (
        append("archive/food.md", "## Superseded by 99 (receipt 1)\n- <seq=10> x\n"),
        HINT, "successor 99", "archive/food:", LEFT,
    ),
    "origin": (
        append("CURRENT.md", "- <seq=10,source=user,origin=77-79> x\n"),
        BAD, "origin 77-79", "CURRENT:", LEFT,
    ),
    "origin-typed": (
        append("CURRENT.md", "- <seq=10,source=human,origin=77> x\n"), HINT, "origin 77", "CURRENT:", LEFT
    ),
    "large": (append("big.md", b"x" * (MAX_FILE + 1)), HINT, "larger than tools read", "big.md", LEFT),
    "name": (append("a\x07b.md", "x"), HINT, "unprintable", "a\\x07b.md", LEFT),
    "link": (lambda root: (root / "l.md").symlink_to("mine.md"), HINT, "a link", "l.md", LEFT),
    "link-to-folder": (lambda root: (root / "l").symlink_to("topics"), HINT, "a link", "l", LEFT),
    "pipe": (lambda root: os.mkfifo(root / "p.md"), HINT, "not a regular file", "p.md", LEFT),
    "conflicts": (
        append(".infinimem/conflicts/0001-topics-food.md", "x"),
        HINT, "take over what you want", ".infinimem/conflicts/0001-topics-food.md", LEFT,
    ),
    "receipts": (
        twin("journal/0001-consolidate-*.md", "{} (1).md"),
        BAD, "a second version of journal/", "journal/", MENDED
    ),
}  # fmt: skip


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", FINDINGS)
def test_damage_is_found_told_and_repaired_or_left(library: Library, name: str) -> None:
    damage, level, words, where, fixable = FINDINGS[name]
    append("mine.md", "")(library.root)
    damage(library.root)
    again = Library(library.root)
    found = one(examine(again), words)
    assert (found.level, bool(found.fix)) == (level, fixable)
    assert found.where.startswith(where)
    before = tree(library.root)
    done = repair(again)
    assert (found in done) == fixable
    left = examine(Library(library.root))
    assert any(words in item.what for item in left) != fixable
    if not fixable:
        assert (done, tree(library.root)) == ([], before)
    once = tree(library.root)
    assert repair(Library(library.root)) == []
    assert tree(library.root) == once


def test_what_a_person_deleted_is_a_note_where_it_is_cited_and_none_once_that_is_recorded(
    library: Library,
) -> None:
    path = library.root / "evidence/s1.md"
    kept = [line for line in path.read_text().splitlines(True) if "seq=2," not in line]
    path.write_text("".join(kept))
    assert one(examine(Library(library.root)), "its origin 2").level == "note"  # it had been drawn from
    shutil.rmtree(library.root / ".infinimem")
    assert one(examine(Library(library.root)), "its origin 2").level == "error"  # nothing tells any more
    row = "| 2 | evidence/s1 | - | deleted |"
    replaced("journal/0001-consolidate-*.md", b"\n## Files", f"{row}\n\n## Files".encode())(library.root)
    assert findings(library) == []


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("key", "kept"),
    [
        ("aliases: [snacks, Drinks]", "aliases: [snacks, Drinks, food]"),
        ("aliases:\n  - snacks\ntags: [a]", "aliases: [snacks, food]\ntags: [a]"),
        ("tags: [a]", "aliases: [food]"),
        ("aliases: snacks", ""),
        ("aliases: [snacks]  # mine", ""),
        ("aliases:\n  - snacks  # mine", ""),
        ("  # a comment of mine", ""),
    ],
)
def test_a_renamed_document_is_called_by_its_old_name_too(library: Library, key: str, kept: str) -> None:
    path = library.root / "topics/food.md"
    path.write_text(path.read_text().replace("id: topics/food\n", f"id: topics/food\n{key}\n"))
    moved("topics/food.md", "topics/eat.md")(library.root)
    before = (library.root / "topics/eat.md").read_text()
    again = Library(library.root)
    found = one(examine(again), "the header says id topics/food")
    assert bool(repair(again)) == bool(found.fix) == bool(kept)
    after = (library.root / "topics/eat.md").read_text()
    if kept:
        assert kept in after
        assert "id: topics/eat\n" in after
        assert Library(library.root).view().resolve("topics/food") == "topics/eat"
        assert library.receipts()[-1].op == "rename"
    else:
        assert after == before


def test_a_document_that_cannot_be_read_stops_no_other_check(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    append("CURRENT.md", "- <seq=> x\n")(library.root)
    again = Library(library.root)
    view = again.view()
    held_back = Withheld(Move(5, "topics/food", why="superseded", by=6), Reason("PROTECTED"))
    keep_withheld(again.files, 1, [held_back], view.entry)
    real = view.document

    def refuse(doc_id: str) -> object:
        if doc_id == "topics/food":
            raise LibraryError("cannot read topics/food.md: Permission denied")
        return real(doc_id)

    monkeypatch.setattr(view, "document", refuse)
    found = [(item.where.partition(":")[0], item.what) for item in examine(again)]
    assert ("topics/food", "cannot read topics/food.md: Permission denied") in found
    assert "CURRENT" in [where for where, _ in found]
    assert len(found) == 2  # what the unread document holds is not missed elsewhere
    assert len(Memory(again, connect("offline", again.settings.llm)).doctor()) == 2


def test_withheld_archivings_are_told_while_both_lines_are_live(library: Library) -> None:
    said = library.record([Turn("I like figs", session="s2"), Turn("I like figs.", session="s2")])
    library.apply(Plan(adds=tuple(NewEntry(turn.text, (turn.seq,)) for turn in said)))
    older, newer = [place.seq for place in library.view().buffer.entries]
    replaced("CURRENT.md", b"origin=7", b"pin=1,origin=7")(library.root)
    library = Library(library.root)
    library.apply(Plan("consolidate", moves=(Move(older, "topics/food", why="duplicate", by=newer),)))
    library.apply(Plan("consolidate", moves=(Move(newer, "topics/food"),)))
    found = one(examine(library), "awaits review")
    assert (found.level, f"line {older} may be a duplicate of {newer}" in found.what) == ("note", True)
    path = library.root / root_of(library, older)
    kept = [line for line in path.read_text().splitlines(True) if f"seq={older}," not in line]
    path.write_text("".join(kept))
    assert not any("awaits review" in item.what for item in examine(Library(library.root)))


# ── lines that receipts name and that stand nowhere: a person's doing is a note, the program's an error ──

FOOD = "topics/food.md"


def cut(path: Path, word: str) -> None:
    """A person deletes the lines with this word."""
    lines = path.read_text().splitlines(True)
    path.write_text("".join(line for line in lines if word not in line))


def more(library: Library, text: str, topic: str) -> Applied:
    """Another consolidation."""
    (turn,) = library.record([Turn(text, session="s1")])
    added = library.apply(Plan(adds=(NewEntry(text, (turn.seq,)),)))
    assert isinstance(added, Applied)
    moved = library.apply(Plan("consolidate", moves=(Move(added.added[0].seq, topic, "More"),)))
    assert isinstance(moved, Applied)
    return moved


def test_a_deleted_line_is_a_note_until_a_receipt_records_it(library: Library) -> None:
    cut(library.root / FOOD, "seq=5,")
    (found,) = [line for line in findings(library) if "line 5" in line]
    assert found.startswith("note topics/food line 5, put here by journal/0001-consolidate-")
    again = Library(library.root)
    again.adopt_edits()
    assert not [line for line in findings(library) if "line 5" in line]


@pytest.mark.parametrize("other", ["topics/eat.md", "archive/food.md"])
def test_a_line_that_a_person_carried_elsewhere_is_not_missing(library: Library, other: str) -> None:
    text = (library.root / FOOD).read_text()
    line = next(line for line in text.splitlines() if "seq=5," in line)
    cut(library.root / FOOD, "seq=5,")
    with (library.root / other).open("a") as file:
        file.write(f"{line}\n")
    assert not [found for found in findings(library) if "put here" in found]


def test_a_checkout_of_an_old_version_is_a_note(library: Library) -> None:
    old = (library.root / FOOD).read_bytes()
    seq = more(library, "I eat figs", "topics/food").view.max_seq
    (library.root / FOOD).write_bytes(old)
    assert [line.split()[0] for line in findings(library) if f"line {seq}" in line] == ["note"]


def test_a_deletion_between_two_consolidations_is_a_note_even_if_none_saw_it(library: Library) -> None:
    cut(library.root / FOOD, "seq=5,")
    more(library, "I eat figs", "topics/food")
    assert [line.split()[0] for line in findings(library) if "line 5" in line] == ["note"]


def test_a_clone_without_machine_state_has_the_same_findings(library: Library) -> None:
    more(library, "I eat figs", "topics/food")
    assert findings(library) == []
    shutil.rmtree(library.root / ".infinimem")
    for path in sorted(library.root.rglob("*.md"), reverse=True):
        path.touch()
    assert findings(library) == []


# ── faults of the program ───────────────────────────────────────────────────────────────────────


def test_a_file_without_the_line_that_its_receipt_names_is_an_error(library: Library) -> None:
    """As a program would leave it that drops a line as it writes the file, and hashes what it wrote."""
    path, receipt = library.root / FOOD, library.root / f"{library.receipts()[0].id}.md"
    before = sha256(path.read_bytes()).hexdigest()
    cut(path, "seq=5,")
    receipt.write_text(receipt.read_text().replace(before, sha256(path.read_bytes()).hexdigest()))
    (found,) = [line for line in findings(library) if "line 5" in line]
    assert found.startswith(f"error topics/food {library.receipts()[0].id} put line")


def test_a_file_that_was_never_put_in_place_is_an_error(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that skips one installation of a transaction and goes on."""
    real = Installation.run

    def skip(self: Installation) -> None:
        if self._step.path != FOOD:  # private: which step it is
            real(self)

    monkeypatch.setattr(Installation, "run", skip)
    seq = more(library, "I eat figs", "topics/food").receipt.rows[0].seq  # type: ignore[union-attr]
    monkeypatch.undo()
    (found,) = [line for line in findings(library) if f"line {seq}" in line]
    assert found.startswith(f"error topics/food {library.receipts()[1].id} put line")
    os.utime(library.root / FOOD)  # someone touched it since, so it may have been them
    (found,) = [line for line in findings(library) if f"line {seq}" in line]
    assert found.startswith("note")
