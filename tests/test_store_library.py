"""The library: what was said is recorded once, plans move lines, what people do by hand is taken in, and what
the program writes of its own accord. Nothing is half-done."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fault_library import tree
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from infinimem.errors import LibraryError, UsageError
from infinimem.model import Derived, Entry, Move, NewEntry, Plan, Receipt, Turn
from infinimem.operations.doctor import examine
from infinimem.store.files import MAX_FILE
from infinimem.store.library import Library, init
from infinimem.store.line_map import from_line_map, line_map, reverted
from infinimem.store.receipts import reverse_diffs
from infinimem.store.view import Applied, View

NOON = datetime(2025, 3, 3, 12, tzinfo=UTC)


@pytest.fixture
def library(tmp_path: Path) -> Library:
    made = init(tmp_path / "memory")
    made.clock = lambda: NOON
    return made


def done(library: Library, plan: Plan, base: View | None = None) -> Applied:
    outcome = library.apply(plan, base=base)
    assert isinstance(outcome, Applied), outcome
    return outcome


def consolidate(library: Library, *moves: Move) -> None:
    done(library, Plan("consolidate", moves=moves))


def fill(library: Library, *texts: str) -> list[int]:
    """Record texts and draw an entry from each; returns the entries' seqs."""
    told = library.record([Turn(text, time="2025-03-01", session="s") for text in texts])
    plan = Plan(adds=tuple(NewEntry(place.entry.text, (place.entry.seq,)) for place in told))
    return [place.entry.seq for place in done(library, plan).added]


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
    assert (
        view.document("archive/home").entries[0].headings[-1]
        == f"Duplicate of {seqs[0]} (receipt {outcome.receipt.label})"
    )
    assert view.epoch == 1
    assert [row.archived for row in view.catalog() if row.id == "topics/home"] == [1]
    assert library.receipts() == (outcome.receipt,)
    assert not [finding for finding in examine(library) if finding.level == "error"]


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
    for doc_id, old in restored(library, library.receipts()[1].id).items():
        assert old == was.get(doc_id)


# ── opening ─────────────────────────────────────────────────────────────────────────────────────


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


# ── links and what cannot be read ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", ["evidence/2025-03-01-s.md", "topics/a.md"])
def test_a_link_is_not_replaced_by_a_new_file(library: Library, tmp_path: Path, path: str) -> None:
    (tmp_path / "mine.md").write_text("mine")
    (library.root / path).symlink_to(tmp_path / "mine.md")
    with pytest.raises(LibraryError, match="is a link"):
        consolidate(library, Move(fill(library, "a")[0], "topics/a"))
    assert (library.root / path).is_symlink()
    assert not [finding for finding in examine(library) if finding.level == "error"]


def test_init_keeps_a_large_buffer_and_a_link(library: Library, tmp_path: Path) -> None:
    large = b"- <seq=1,source=user> one\n" + b"x" * MAX_FILE
    (library.root / "CURRENT.md").write_bytes(large)
    init(library.root)
    assert (library.root / "CURRENT.md").read_bytes() == large
    (tmp_path / "mine.toml").write_text("[infini]\n")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "infinimem.toml").symlink_to(tmp_path / "mine.toml")
    with pytest.raises(LibraryError, match="is a link"):
        init(tmp_path / "linked")
    assert (tmp_path / "mine.toml").read_text() == "[infini]\n"
    assert (tmp_path / "linked" / "infinimem.toml").is_symlink()


# ── names, numbers, headers ─────────────────────────────────────────────────────────────────────


def test_a_number_near_the_end_of_all_takes_none_from_others(library: Library) -> None:
    with (library.root / "CURRENT.md").open("a") as file:
        file.write(f"- <seq={10**18 - 2},source=user> x\n")
    (place,) = library.record([Turn("one", session="s")])
    assert place.entry.seq == 1


# ── what may be replaced, and a save in between ─────────────────────────────────────────────────


def test_a_pasted_line_of_the_evidence_takes_no_turn_away(library: Library) -> None:
    one, two = library.record([Turn("one"), Turn("two")])
    with (library.root / "CURRENT.md").open("a") as buffer:
        buffer.write(f"{one.entry.line}\n")
    assert library.view().uncited() == (one, two)
    library.apply(Plan(empty=(one.seq,)))
    library.adopt_edits()
    (copy,) = library.view().entries()
    assert (copy.seq, copy.entry.origin, copy.text) == (3, (one.seq,), "one")
    assert library.view().entry(one.seq) == one


def drawn(library: Library, *turns: Turn) -> Entry:
    """One new line from all of these turns."""
    told = library.record(turns)
    (place,) = done(library, Plan(adds=(NewEntry("Both run", tuple(p.seq for p in told), by="model"),))).added
    return place.entry


def filed(library: Library, *docs: str) -> list[int]:
    """A line in each of these documents, all by one receipt; returns their seqs."""
    told = library.record([Turn(f"fact {number} of {doc}") for number, doc in enumerate(docs)])
    added = done(library, Plan(adds=tuple(NewEntry(place.text, (place.seq,)) for place in told))).added
    moves = (Move(place.seq, doc, "Facts") for place, doc in zip(added, docs, strict=True))
    done(library, Plan("consolidate", moves=tuple(moves)))
    return [place.seq for place in added]


# ── whose words a new line is, and of what time ─────────────────────────────────────────────────


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("speakers", "credited"),
    [
        (("Ann", "Ann"), "Ann"),
        (("Ann", "Bo"), None),
        (("Ann", None), None),
        ((None, None), None),
    ],
)
def test_a_line_is_credited_to_who_said_all_of_it(
    library: Library, speakers: tuple[str | None, ...], credited: str | None
) -> None:
    line = drawn(library, *(Turn(f"I run, {at}", speaker=name) for at, name in enumerate(speakers)))
    assert line.fields.get("speaker") == credited
    assert ("speaker=" in (library.root / "CURRENT.md").read_text()) == (credited is not None)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("times", "told"),
    [
        (("2025-03-01T09:00:00", "2025-03-01T09:00:00"), "2025-03-01T09:00:00"),
        (("2025-03-01T09:01:00", "2025-03-01T09:00:00"), "2025-03-01T09:01:00"),
        (("2025-03-01", "2025-03-02"), "2025-03-02"),
        (("2025-03-01", None), "2025-03-01"),
        ((None, None), None),
    ],
)
def test_a_line_has_the_time_when_the_latest_of_its_origins_was_said(
    library: Library, times: tuple[str | None, ...], told: str | None
) -> None:
    line = drawn(library, *(Turn(f"I run, {at}", time=time) for at, time in enumerate(times)))
    assert line.time == told


# ── the update log ──────────────────────────────────────────────────────────────────────────────


def test_an_update_log_holds_the_last_twenty_receipts(library: Library) -> None:
    """docs/FORMAT.md: `update_log` keeps the last 20."""
    filed(library, "topics/x")
    path = library.root / "topics/x.md"
    rows = "".join(f"\n  - {{time: 2024-01-01, op: update, receipt: {n}}}" for n in range(101, 121))
    path.write_text(path.read_text().replace("update_log:", f"update_log:{rows}"))
    filed(library, "topics/x")
    log = library.view().document("topics/x").header.values["update_log"]
    labels = [receipt.label for receipt in library.receipts()]
    assert isinstance(log, list)
    assert [row["receipt"] for row in log if isinstance(row, dict)] == [*map(str, range(103, 121)), *labels]


# ── a person's word before a plan's ─────────────────────────────────────────────────────────────


def test_entries_wait_in_the_buffer_under_the_topics_that_were_named_for_them(library: Library) -> None:
    told = [place.seq for place in library.record([Turn(text) for text in "abcd"])]
    done(library, Plan(adds=(NewEntry("first", (told[0],)),)))
    headings = ("Food", "Boats", "Food")
    adds = tuple(
        NewEntry(f"x {seq}", (seq,), heading=title) for seq, title in zip(told[1:], headings, strict=True)
    )
    view = done(library, Plan(adds=adds)).view
    assert [(place.headings, place.entry.text) for place in view.buffer.entries] == [
        ((), "first"),
        (("Food",), f"x {told[1]}"),
        (("Food",), f"x {told[3]}"),
        (("Boats",), f"x {told[2]}"),
    ]
    moves = tuple(Move(place.seq, "topics/x", "X") for place in view.buffer.entries)
    left = done(library, Plan("consolidate", moves=moves)).view
    assert (left.buffer.entries, "# " in left.buffer.body) == ((), False)


@pytest.fixture
def lived_in(library: Library) -> Library:
    """Two lines in a topic, one in the buffer; evidence 1-3, entries 4-6."""
    turns = [
        Turn("I drink oat latte", session="s"),
        Turn("I live in Lisbon"),
        Turn("Ann is back", time="2025-03-02"),
    ]
    told = library.record(turns)
    texts = ["Drinks oat latte", "Lives in Lisbon", "Ann is back"]
    adds = [NewEntry(text, (place.seq,), by="model") for text, place in zip(texts, told, strict=True)]
    library.apply(Plan(adds=tuple(adds)))
    library.apply(
        Plan("consolidate", moves=(Move(4, "topics/life", "Drinks"), Move(5, "topics/life", "Home")))
    )
    library.adopt_edits()
    return library


def edit(library: Library, doc_id: str, old: str, new: str) -> None:
    path = library.root / f"{doc_id}.md"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def rows(receipt: Receipt | None) -> list[tuple[int, str, str, str]]:
    assert receipt is not None
    return [(row.seq, row.was, row.now, row.why) for row in receipt.rows]


def test_an_edit_made_while_a_line_moves_is_told_too(lived_in: Library) -> None:
    edit(lived_in, "CURRENT", "Ann is back", "Ann is in Porto")
    lived_in.apply(Plan("consolidate", moves=(Move(6, "topics/people", "Ann"),)))
    receipt = lived_in.adopt_edits()
    assert rows(receipt) == [(6, "topics/people", "topics/people", "edited")]
    assert "source=human,origin=3> Ann is in Porto" in (lived_in.root / "topics/people.md").read_text()


def carry(library: Library, seq: int, to: str) -> None:
    """A person cuts a line out of its document and pastes it into another."""
    place = library.view().entry(seq)
    assert place is not None
    source, target = (library.root / f"{doc_id}.md" for doc_id in (place.doc_id, to))
    source.write_text(source.read_text().replace(f"{place.entry.line}\n", ""))
    target.write_text((target.read_text() if target.exists() else "") + f"{place.entry.line}\n")


def test_a_plan_leaves_what_a_person_carried_or_took_away_meanwhile(library: Library) -> None:
    mine, gone, other = filed(library, "topics/one", "topics/one", "topics/one")
    base = library.view()
    carry(library, mine, "topics/mine")
    carry(library, gone, "topics/gone")
    (library.root / "topics/gone.md").unlink()
    moves = tuple(Move(seq, "topics/far", "Far", "split") for seq in (mine, gone, other))
    outcome = done(library, Plan("split", moves=moves), base)
    places = {seq: place.doc_id for seq in (mine, gone, other) if (place := outcome.view.entry(seq))}
    assert places == {mine: "topics/mine", other: "topics/far"}
    assert outcome.receipt is not None
    assert outcome.receipt.notes == (f"left out, moved or deleted meanwhile: {mine}-{gone}",)


def test_of_a_pasted_line_that_was_edited_the_untouched_one_keeps_its_seq(lived_in: Library) -> None:
    line = next(
        place.entry.line for place in lived_in.view().document("topics/life").entries if place.seq == 4
    )
    (lived_in.root / "topics/aside.md").write_text(line.replace("oat latte", "anything") + "\n")
    receipt = lived_in.adopt_edits()
    assert receipt is not None
    (row,) = receipt.rows
    assert (row.now, row.why) == ("topics/aside", "renumbered from 4")
    assert lived_in.view().document("topics/life").entries[0].entry.line == line
    (copy,) = lived_in.view().document("topics/aside").entries
    assert (copy.text, copy.entry.origin) == ("Drinks anything", (1, 4))


def test_a_broken_signature_is_no_deletion(lived_in: Library) -> None:
    edit(lived_in, "topics/life", "seq=4,source=user", "seq=4,source=me")
    assert lived_in.adopt_edits() is None
    edit(lived_in, "topics/life", "seq=4,source=me", "seq=4,source=user")
    assert lived_in.adopt_edits() is None
