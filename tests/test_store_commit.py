"""Several files changed as one: a save in between, a crash, a full disk, at the very moment that matters."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from commit_library import Doing, consolidation, doing, fill, prepared
from fault_disk import Call, Crash, hooked
from fault_library import problems

from infinimem import open_memory
from infinimem.errors import LibraryError
from infinimem.markdown.document import Document
from infinimem.model import Move, Plan
from infinimem.store import freshness
from infinimem.store.commit import Moves, replay
from infinimem.store.library import Library, init
from infinimem.store.view import Applied

STAGING = ".infinimem/tx/0002"


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return prepared(tmp_path / "m")[0]


@pytest.fixture
def plan(library: Library) -> Plan:
    texts = [place.text for place in library.view().buffer.entries]
    assert texts == ["Likes oolong", "Has a balcony", "Plays chess", "Drinks green tea"]
    (old,) = library.view().document("topics/tea").entries
    return consolidation([old.seq, *(place.seq for place in library.view().buffer.entries)])


def texts(library: Library, doc_id: str) -> list[str]:
    view = Library(library.root).view()
    return [place.text for place in view.document(doc_id).entries] if doc_id in view else []


def append(path: Path, text: str) -> Callable[[], object]:
    """A person saves the newest bytes and some words."""
    return lambda: path.write_bytes(path.read_bytes() + f"{text}\n".encode())


def put(path: Path, data: bytes) -> Callable[[], object]:
    return lambda: path.write_bytes(data)


def crash() -> None:
    raise Crash


def apply(library: Library, plan: Plan, *doings: Doing) -> None:
    with hooked(doing(*doings)):
        outcome = library.apply(plan, base=library.view())
    assert isinstance(outcome, Applied)
    assert problems(library.root, {}) == []


def crashed(library: Library, plan: Plan, *doings: Doing) -> None:
    with hooked(doing(*doings)), pytest.raises(Crash):
        library.apply(plan, base=library.view())


def in_tree(root: Path) -> str:
    """All that people see."""
    return "\n".join(
        path.read_text() for path in root.rglob("*.md") if ".infinimem" not in path.relative_to(root).parts
    )


def aside(library: Library) -> list[str]:
    folder = library.root / ".infinimem/conflicts"
    return [path.read_text() for path in sorted(folder.iterdir())] if folder.exists() else []


# ── in which order ──────────────────────────────────────────────────────────────────────────────


def watched(library: Library, plan: Plan, *doings: Doing) -> set[str]:
    """Carry a plan out; the lines that stood nowhere after some call to the disk, or after what was done."""
    view, missing = library.view(), set[str]()
    signs = [place.entry.line for place in view.entries()]
    act = doing(*doings)

    def hook(call: Call) -> Any:
        made = act(call)
        there = in_tree(library.root)
        missing.update(line for line in signs if line not in there)
        return made

    with hooked(hook):
        assert isinstance(library.apply(plan, base=view), Applied)
    return missing


def test_at_every_moment_every_line_stands_somewhere(tmp_path: Path) -> None:
    """Two documents give each other a line, and one becomes shorter."""
    library = init(tmp_path / "m")
    long, short, other = fill(library, "A long line, " + "so that its file shrinks " * 9, "short", "other")
    library.apply(Plan("consolidate", moves=(Move(long, "topics/a", "A"), Move(other, "topics/b", "B"))))
    plan = Plan("consolidate", moves=(Move(long, "topics/b", "B"), Move(short, "topics/a", "A")))
    assert watched(library, plan) == set()
    assert texts(library, "topics/a") == ["short"]


# ── a save while it is staged ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("large", [False, True])
def test_a_plan_is_made_anew_on_a_file_that_was_saved_as_it_was_staged(
    library: Library, plan: Plan, large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if large:  # of such a library a call does not look at every file
        monkeypatch.setattr(freshness, "SMALL", 0)
        library = Library(library.root)
        library.view()
    path = library.root / "CURRENT.md"
    edited = put(path, path.read_bytes().replace(b"oolong", b"sencha"))
    apply(library, plan, Doing("open_new", library.root / STAGING / "1.bin", edited))
    assert texts(library, "topics/tea") == ["Drinks green tea", "Likes sencha"]
    assert not any("saved by someone" in note for note in library.receipts()[-1].notes)


def test_someone_who_saves_at_every_try_is_told_of_and_nothing_is_changed(
    library: Library, plan: Plan
) -> None:
    path, staged = library.root / "CURRENT.md", library.root / STAGING / "1.bin"
    saves = [Doing("open_new", staged, append(path, f"word {nth}"), nth) for nth in (1, 2, 3)]
    before = {doc: texts(library, doc) for doc in ("CURRENT", "topics/tea", "topics/home")}
    with hooked(doing(*saves)), pytest.raises(LibraryError, match="try again"):
        library.apply(plan, base=library.view())
    assert {doc: texts(library, doc) for doc in before} == before
    assert path.read_text().endswith("word 1\nword 2\nword 3\n")


def test_a_folder_that_may_not_be_written_is_found_before_anything_is(
    library: Library, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = in_tree(library.root)
    topics = (library.root / "topics").stat()

    def access(path: str, mode: int, *, dir_fd: int) -> bool:
        return not os.path.samestat(os.fstat(dir_fd), topics)

    monkeypatch.setattr(os, "access", access)
    with pytest.raises(LibraryError, match="cannot write topics/"):
        library.apply(plan, base=library.view())
    assert in_tree(library.root) == before
    assert list((library.root / ".infinimem/tx").iterdir()) == []


# ── a save while it is installed ────────────────────────────────────────────────────────────────


def test_a_save_is_told_of_once(library: Library, plan: Plan) -> None:
    """An editor that saves what it read before again and again, so that its file is done several times."""
    path = library.root / "topics/tea.md"
    old = path.read_bytes()
    saves = [Doing("exchange", path, put(path, old + b"typed %d\n" % nth), nth) for nth in (1, 4)]
    saves += [Doing("exchange", path, put(path, old + b"typed 3\n"), 3, after=True)]
    apply(library, plan, *saves)
    assert texts(library, "topics/tea") == ["Drinks green tea", "Likes oolong"]
    notes = [note for note in library.receipts()[-1].notes if "topics/tea.md" in note]
    assert notes == ["topics/tea.md was saved by someone meanwhile; its lines moved in that version"]


def test_what_is_saved_over_ours_in_the_moment_that_theirs_goes_back_stays(
    library: Library, plan: Plan
) -> None:
    path = library.root / "topics/tea.md"
    one = Doing("exchange", path, append(path, "the first save"))
    two = Doing("exchange", path, put(path, path.read_bytes() + b"the second save\n"), nth=2)
    with hooked(doing(one, two)):
        library.apply(plan, base=library.view())
    assert "the second save" in path.read_text()
    assert any("the first save" in text for text in aside(library))
    assert texts(library, "topics/tea") == ["Drinks green tea", "Likes oolong"]


def test_of_two_saves_of_a_file_that_goes_both_stay(library: Library) -> None:
    (line,) = library.view().document("topics/home").entries
    path = library.root / "topics/home.md"
    plan = Plan("merge", moves=(Move(line.seq, "topics/tea", "Tea", "merged"),))
    with hooked(
        doing(
            Doing("rename", path, append(path, "the first save")),
            Doing("put", path, put(path, b"the second save\n")),
        )
    ):
        library.apply(plan, base=library.view())
    assert "the second save" in path.read_text()
    assert any("the first save" in text for text in aside(library))


def test_permissions_stay_whoever_saves(library: Library, plan: Plan) -> None:
    home, tea = library.root / "topics/home.md", library.root / "topics/tea.md"
    home.chmod(0o600)
    tea.chmod(0o640)
    apply(library, plan, Doing("exchange", tea, append(tea, "typed")))
    assert [stat.S_IMODE(path.stat().st_mode) for path in (home, tea)] == [0o600, 0o640]
    assert texts(library, "topics/tea")[-1] == "Likes oolong"


def test_an_older_receipt_that_is_forgotten_in_tells_of_no_save(library: Library, plan: Plan) -> None:
    apply(library, plan)
    path = library.root / "topics/tea.md"
    path.write_text(path.read_text().replace("Likes oolong", "Likes oolong best"))
    (quoting,) = filter(None, [library.adopt_edits()])
    assert len(quoting.quoted) == 1
    memory = open_memory(library.root, model="offline")
    with hooked(doing(Doing("exchange", path, append(path, "typed")))):
        done = memory.forget(match="oolong")
    assert done.receipt is not None
    receipts = library.receipts()
    assert [r.op for r in receipts if any("saved by someone" in note for note in r.notes)] == ["forget"]
    assert "typed" in path.read_text()


# ── after a crash ───────────────────────────────────────────────────────────────────────────────


def test_a_line_that_came_before_a_crash_is_not_held_back(library: Library, plan: Plan) -> None:
    """The person tidies up what stands twice; a line that is still to come they leave alone."""
    path = library.root / "CURRENT.md"
    crashed(library, plan, Doing("exchange", library.root / "topics/home.md", crash, after=True))
    assert texts_raw(library.root / "topics/home.md") == ["Lives in Lisbon", "Has a balcony"]
    path.write_text("".join(x for x in path.read_text().splitlines(keepends=True) if "balcony" not in x))
    library = Library(library.root)
    assert problems(library.root, {}) == []
    assert "Has a balcony" in texts(library, "topics/home")
    (receipt,) = library.receipts()[1:]
    moved = {row.seq: row.now for row in receipt.rows}
    assert moved[plan.moves[1].seq] == "topics/home"
    assert not any("stayed" in note for note in receipt.notes)


def texts_raw(path: Path) -> list[str]:
    """What the bytes of a file say, whatever is to be finished."""
    return [place.text for place in Document.parse("topics/x", path.read_bytes()).entries]


def test_a_backup_that_is_put_back_after_a_crash_gets_its_lines(library: Library, plan: Plan) -> None:
    path = library.root / "topics/tea.md"
    old = path.read_bytes()
    crashed(library, plan, Doing("exchange", path, crash, after=True))
    path.write_bytes(old)
    assert texts(library, "topics/tea") == ["Drinks green tea", "Likes oolong"]
    assert texts(library, "CURRENT") == []


def test_a_save_that_one_crash_caught_outlives_another_while_it_is_brought_back(
    library: Library, plan: Plan
) -> None:
    """What displaced the save is displaced in its turn, and is ours: it does not take the place again."""
    path = library.root / "topics/tea.md"
    first = Doing("exchange", path, append(path, "saved first"))
    caught = Doing("exchange", path, append(path, "caught by the crash"), nth=3)
    crashed(library, plan, first, caught, Doing("exchange", path, crash, nth=3, after=True))
    assert "caught" not in path.read_text()
    with hooked(doing(Doing("exchange", path, crash, after=True))), pytest.raises(Crash):
        Library(library.root)
    assert "caught by the crash" in path.read_text()
    Library(library.root)
    assert "caught by the crash" in path.read_text()
    assert texts(library, "topics/tea") == ["Drinks green tea", "Likes oolong"]


def test_lines_that_found_no_room_stay_where_the_receipt_says_though_a_crash_follows(
    library: Library, plan: Plan, tmp_path: Path
) -> None:
    library.clock = lambda: datetime(2025, 3, 3, 12, tzinfo=UTC)
    shutil.copytree(library.root, tmp_path / "before")
    same = library.apply(plan)  # the same change in the same place at the same time, so the same name
    assert isinstance(same, Applied)
    assert same.receipt
    shutil.rmtree(library.root)
    library = Library(shutil.copytree(tmp_path / "before", library.root), library.clock)
    path = library.root / "topics/tea.md"
    old, receipt = path.read_bytes(), library.root / f"{same.receipt.id}.md"
    saves = [Doing("exchange", path, put(path, old + b"save %d\n" % nth), nth) for nth in range(1, 10)]
    crashed(library, plan, *saves, Doing("put", receipt, crash, after=True))
    assert "Likes oolong" in texts(library, "CURRENT")
    assert texts(library, "topics/tea") == ["Drinks green tea"]
    assert plan.moves[0].seq not in {row.seq for row in library.receipts()[1].rows}
    assert problems(library.root, {}) == []


# ── what was displaced ──────────────────────────────────────────────────────────────────────────


def displaced(library: Library) -> list[str]:
    return sorted(path.name for path in (library.root / ".infinimem/displaced").iterdir())


def test_what_is_kept_for_a_day_gives_way_on_a_full_disk(library: Library, plan: Plan) -> None:
    assert displaced(library) == ["0001"]

    def hook(call: Call) -> Any:
        if call.name == "write" and displaced(library):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return call()

    view = library.view()
    with hooked(hook):
        outcome = library.apply(plan, base=view)
    assert isinstance(outcome, Applied)
    assert texts(library, "topics/new") == ["Plays chess"]


def test_what_an_editor_writes_as_a_transaction_ends_is_back_when_it_returns(
    library: Library, plan: Plan
) -> None:
    path = library.root / "topics/tea.md"
    with path.open("a") as editor:

        def write() -> None:
            editor.write("typed late\n")
            editor.flush()

        apply_only = doing(Doing("rename", library.root / ".infinimem/displaced/0002", write, after=True))
        with hooked(apply_only):
            library.apply(plan, base=library.view())
        assert "typed late" in path.read_text()


def test_who_saved_in_between_and_writes_late_again_and_again_is_followed(
    library: Library, plan: Plan
) -> None:
    """What was put on top of their versions meanwhile is ours, and never set aside as theirs."""
    path = library.root / "topics/tea.md"
    with path.open("a") as editor:

        def write(word: str) -> None:
            editor.write(f"typed {word}\n")
            editor.flush()

        apply(library, plan, Doing("exchange", path, lambda: write("at once")))
        for word in ("late", "later", "last"):
            write(word)
            Library(library.root)
            Library(library.root)
            assert (f"typed {word}" in path.read_text(), aside(library)) == (True, [])


# ── the same moves on another version ───────────────────────────────────────────────────────────


def document(text: str) -> Document:
    return Document.parse("topics/tea", text.encode())


A, B, C = (f"- <seq={seq},source=user> {seq}\n" for seq in (1, 2, 3))


def test_a_version_in_which_a_line_could_no_longer_be_read_is_refused() -> None:
    """Without its first line this would begin with a header, and the second would stand in that."""
    turned = "- <source=user,seq=2> 2\n"
    theirs = document(f"---\n{A}{turned}---\n")
    assert [place.seq for place in theirs.entries] == [1, 2]
    moves = Moves.between(document(A + turned), document(turned))
    with pytest.raises(ValueError, match="no room"):
        replay(moves, theirs)
