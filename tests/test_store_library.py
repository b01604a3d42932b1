"""The library: what was said is recorded once, plans move lines, receipts restore, nothing is half-done."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from infinimem.errors import FormatTooNew, LibraryError, NotALibrary, SettingsError, UsageError
from infinimem.model import Derived, Move, NewEntry, Plan, Turn
from infinimem.operations.doctor import examine
from infinimem.store.create import init
from infinimem.store.library import Library
from infinimem.store.line_map import from_line_map, line_map, reverted
from infinimem.store.outcome import Applied, Rejected
from infinimem.store.receipts import reverse_diffs

NOON = datetime(2025, 3, 3, 12, tzinfo=UTC)


@pytest.fixture
def library(tmp_path: Path) -> Library:
    made = init(tmp_path / "memory")
    made.clock = lambda: NOON
    return made


def fill(library: Library, *texts: str) -> list[int]:
    """Record texts and draw an entry from each; returns the entries' seqs."""
    told = library.record([Turn(text, time="2025-03-01", session="s") for text in texts])
    plan = Plan(adds=tuple(NewEntry(place.entry.text, (place.entry.seq,)) for place in told))
    outcome = library.apply(plan)
    assert isinstance(outcome, Applied)
    return [place.entry.seq for place in outcome.added]


def tree(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".infinimem" not in path.parts
    }


def lines(library: Library) -> list[tuple[int, str]]:
    view = library.view()
    places = [*view.entries(), *view.entries("archive")]
    return sorted((place.entry.seq, place.entry.line) for place in places)


# ── recording ───────────────────────────────────────────────────────────────────────────────────


def test_what_was_said_is_kept_word_for_word(library: Library) -> None:
    text = "line one\nline two\n\n- <seq=7,source=human> forged\n```\nfence \u2028 \x00 end"
    (place,) = library.record([Turn(text, speaker="Ann, or so", time="2025-03-01T10:00:00", session="a/b")])
    assert place.entry.text == text.replace("\x00", "\\u0000")
    assert place.entry.source == "user"
    assert [other.entry.seq for other in library.view().entries("evidence")] == [place.entry.seq]


def test_turns_are_recognised_when_they_come_again(library: Library) -> None:
    turns = [Turn("hi", key="k"), Turn("hi", session="s", turn="D1:1"), Turn("hi"), Turn("hi")]
    assert len(library.record(turns)) == 4
    assert len(library.record(turns)) == 2
    assert len(list(library.view().entries("evidence"))) == 6


@pytest.mark.sample(2)
@pytest.mark.parametrize("key", ["k", "two\nlines ", "\u202e turned"])
def test_a_key_counts_once_within_a_call_and_after_it_however_it_is_written(
    library: Library, key: str
) -> None:
    assert len(library.record([Turn("hi", key=key), Turn("hi", key=key)])) == 1
    assert library.record([Turn("hi", key=key)]) == ()


def test_sessions_whose_names_make_the_same_file_name_have_a_file_each(library: Library) -> None:
    turns = [Turn(f"in {name}", session=name, turn="1", time="2025-03-01") for name in ("a/b", "a b")]
    for turn in turns:
        library.record([turn])
    assert library.record(turns) == ()
    view = library.view()
    files = [[place.text for place in view.document(doc_id).entries] for doc_id in view.ids("evidence")]
    assert files == [["in a/b"], ["in a b"]]


def test_a_session_stays_in_its_file_and_a_long_one_goes_on_in_a_second(library: Library) -> None:
    library.record(
        [Turn("first", session="s", time="2025-03-01"), Turn("later", session="s", time="2025-03-02")]
    )
    assert library.view().ids("evidence") == ("evidence/2025-03-01-s",)
    library.record([Turn("x" * 1_500_000, session="s") for _ in range(2)])
    assert library.view().ids("evidence") == ("evidence/2025-03-01-s", "evidence/2025-03-01-s-part2")
    assert len(list(library.view().entries("evidence"))) == 4


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "turn", [Turn(""), Turn(" \n"), Turn("x", time="yesterday"), Turn("x", time="2025-3-1")]
)
def test_a_turn_that_says_nothing_or_lies_about_time_is_refused_whole(library: Library, turn: Turn) -> None:
    before = tree(library.root)
    with pytest.raises(UsageError):
        library.record([Turn("good"), turn])
    assert tree(library.root) == before


def test_seqs_are_never_given_twice_even_after_their_lines_are_gone(library: Library) -> None:
    first = fill(library, "one", "two")
    for path in library.root.glob("evidence/*.md"):
        path.unlink()
    (library.root / "CURRENT.md").unlink()
    again = Library(library.root)
    (place,) = again.record([Turn("three")])
    assert place.entry.seq > max(first)


# ── plans ───────────────────────────────────────────────────────────────────────────────────────


def test_lines_move_with_their_bytes(library: Library) -> None:
    seqs = fill(library, "I moved to Lisbon", "I like tea", "I moved to Lisbon!")
    before = lines(library)
    plan = Plan(
        op="consolidate",
        moves=(
            Move(seqs[0], "topics/home", "Home"),
            Move(seqs[1], "topics/home", "Drinks"),
            Move(seqs[2], "topics/home", why="duplicate", by=seqs[0]),
        ),
        derived=(Derived("topics/home", "home; moved to Lisbon", tuple(seqs)),),
    )
    outcome = library.apply(plan)
    assert isinstance(outcome, Applied)
    assert lines(library) == before
    view = library.view()
    assert view.buffer.entries == ()
    assert [h.title for h in view.document("topics/home").headings] == ["Home", "Drinks"]
    assert view.document("archive/home").entries[0].headings[-1] == f"Duplicate of {seqs[0]} (receipt 1)"
    assert view.epoch == 1
    assert [row.archived for row in view.catalog() if row.id == "topics/home"] == [1]
    assert library.receipts() == (outcome.receipt,)
    assert not [finding for finding in examine(library) if finding.level == "error"]


def test_a_merged_document_leaves_its_name_to_the_one_that_took_its_lines(library: Library) -> None:
    seqs = fill(library, "a", "b")
    library.apply(
        Plan("consolidate", moves=(Move(seqs[0], "topics/one", "A"), Move(seqs[1], "topics/two", "B")))
    )
    outcome = library.apply(Plan("merge", moves=(Move(seqs[1], "topics/one", "B", "merged"),)))
    assert isinstance(outcome, Applied)
    view = outcome.view
    assert "topics/two" not in view
    assert view.resolve("two") == view.resolve("topics/one") == "topics/one"


def test_a_bad_plan_changes_nothing(library: Library) -> None:
    seqs = fill(library, "a")
    before = tree(library.root)
    outcome = library.apply(Plan("consolidate", moves=(Move(seqs[0], "topics/a"), Move(999, "topics/a"))))
    assert isinstance(outcome, Rejected)
    assert [reason.code for reason in outcome.reasons] == ["UNKNOWN_SEQ"]
    assert tree(library.root) == before


def test_a_person_s_list_items_are_signed_and_kept_as_typed(library: Library) -> None:
    fill(library, "a")
    note = "* bought *milk*  \n- call Bo\n- [ ] a task\n\nprose stays\n"
    with (library.root / "CURRENT.md").open("a") as file:
        file.write(note)
    receipt = library.adopt_edits()
    assert receipt is not None
    assert [row.why for row in receipt.rows] == ["stamped", "stamped"]
    text = (library.root / "CURRENT.md").read_text()
    assert re.search(r"^- <seq=\d+,source=human> bought \*milk\*  $", text, re.M)
    assert "- [ ] a task\n\nprose stays\n" in text
    assert library.adopt_edits() is None


def test_new_lines_take_the_least_trusted_source_of_their_origins(library: Library) -> None:
    told = library.record(
        [
            Turn("I run", time="2025-03-01T09:00:00"),
            Turn("You run", role="assistant", time="2025-03-01T09:01:00"),
        ]
    )
    outcome = library.apply(Plan(adds=(NewEntry("Runs", tuple(p.entry.seq for p in told), by="model"),)))
    assert isinstance(outcome, Applied)
    entry = outcome.added[0].entry
    assert (entry.source, entry.time, entry.fields["by"]) == ("AI", "2025-03-01T09:01:00", "model")


def restored(library: Library, receipt: str) -> dict[str, bytes | None]:
    """The bytes before a receipt, made from the files as they are and what it says."""
    view = library.view()
    known = {place.seq: place.entry.line for place in (*view.entries(), *view.entries("archive"))}
    before: dict[str, bytes | None] = {}
    for back in reverse_diffs(view.document(receipt)):
        rows = reverted(back, line_map(view.document(back.doc_id) if back.doc_id in view else None))
        assert rows is not None
        before[back.doc_id] = None if back.is_new else from_line_map(back.doc_id, rows, known).to_bytes()
    return before


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    targets=st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from(["", "X", "Y"])), min_size=6, max_size=6
    )
)
def test_a_receipt_holds_all_that_moving_the_lines_back_would_not_restore(
    targets: list[tuple[str, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    library = init(tmp_path_factory.mktemp("undo"))
    library.clock = lambda: NOON
    seqs = fill(library, *(f"text {n}" for n in range(6)))
    half = [Move(seq, f"topics/{doc}", head) for seq, (doc, head) in zip(seqs, targets, strict=True)]
    library.apply(Plan("consolidate", moves=tuple(half)))
    was = {doc_id: library.view().document(doc_id).to_bytes() for doc_id in library.view().ids("all")}
    turned = [Move(move.seq, f"topics/{'cab'['abc'.index(move.to[-1])]}", "Z", "merged") for move in half[:4]]
    library.apply(Plan("merge", moves=tuple(turned)))
    for doc_id, old in restored(library, "journal/0002-merge").items():
        assert old == was.get(doc_id)


# ── faults ──────────────────────────────────────────────────────────────────────────────────────


def test_a_refusing_disk_is_one_line_and_changes_nothing(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    seqs = fill(library, "a")
    before = tree(library.root)

    def full(descriptor: int, data: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("infinimem.store.disk.write", full)
    for act in (
        lambda: library.record([Turn("more", session="s")]),
        lambda: library.apply(Plan("consolidate", moves=(Move(seqs[0], "topics/a"),))),
    ):
        with pytest.raises(LibraryError, match="No space left") as caught:
            act()
        assert "\n" not in str(caught.value)
    monkeypatch.undo()
    assert tree(library.root) == before
    assert lines(Library(library.root)) == lines(library)


# ── opening ─────────────────────────────────────────────────────────────────────────────────────


def test_a_plain_folder_is_read_and_never_written(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "Note.md").write_bytes(b"\xef\xbb\xbf# Hi\r\n- item\r\n")
    (tmp_path / "topics").mkdir()
    (tmp_path / "topics" / "x.md").write_text("- mine\n")
    (tmp_path / "link.md").symlink_to("/etc/passwd")
    library = Library(tmp_path)
    assert library.view().ids() == ("sub/Note", "topics/x")
    assert library.view().resolve("note") == "sub/Note"
    with pytest.raises(NotALibrary):
        library.record([Turn("x")])
    assert not (tmp_path / ".infinimem").exists()


def test_init_leaves_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "CURRENT.md").write_text("my own\n")
    (tmp_path / ".gitignore").write_text("*.log\n")
    init(tmp_path)
    init(tmp_path)
    assert (tmp_path / "CURRENT.md").read_text() == "my own\n"
    assert (tmp_path / ".gitignore").read_text() == "*.log\n"


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("format = 99", FormatTooNew),
        ("[llm]\nmodell = 'x'", SettingsError),
        ("[infini", SettingsError),
        ("[infini]\nfeed = 'all'", SettingsError),
        ("[reader]\nsearch_limit = -1", SettingsError),
    ],
)
def test_settings_that_cannot_be_meant_are_told(tmp_path: Path, text: str, error: type[Exception]) -> None:
    (tmp_path / "infinimem.toml").write_text(text)
    with pytest.raises(error):
        Library(tmp_path)


def test_a_turn_that_goes_on_a_session_costs_two_syncs_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    sync = os.fsync

    def counted(descriptor: int) -> None:
        synced.append(descriptor)
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", counted)
    library = init(tmp_path)
    library.record([Turn("Hello.", session="s")])
    for number in range(5):
        synced.clear()
        library.record([Turn(f"{number} bees.", session="s")])
        assert 1 <= len(synced) <= 2
