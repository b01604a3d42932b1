"""What waits for a person's word: withheld archivings, approved, rejected, void."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from history_library import DOG, FLAT, HOME, LISBON, PORTO, apply, moved, rewrite, superseded
from history_library import filled as sorted_library

from infinimem import law
from infinimem.errors import LibraryError, UsageError
from infinimem.grounding.sentences import is_repetition
from infinimem.memory import Memory
from infinimem.model import Move, NewEntry, Plan, Turn


def pin(memory: Memory, seq: int) -> None:
    """A person pins a line."""
    place = memory.view.entry(seq)
    assert place is not None
    rewrite(memory, place.doc_id, f"- <seq={seq},", f"- <seq={seq},pin=yes,")
    memory.library.adopt_edits()


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    """Line 5 was pinned; to supersede it was withheld by receipt 5."""
    memory = sorted_library(tmp_path / "m")
    memory.undo()
    pin(memory, LISBON)
    apply(memory, superseded(LISBON, PORTO))
    assert [proposal.code for proposal in memory.library.proposals()] == ["PROTECTED"]
    return memory


def item(memory: Memory) -> str:
    return str(memory.library.proposals()[0].receipt)


def where(memory: Memory, seq: int) -> str:
    place = memory.view.entry(seq)
    assert place is not None
    return place.doc_id


def lines(memory: Memory) -> list[tuple[int, str]]:
    """Every line of the library."""
    view = memory.view
    return sorted((p.seq, p.entry.line) for scope in ("default", "archive") for p in view.entries(scope))


# ── the law ─────────────────────────────────────────────────────────────────────────────────────


def test_a_persons_word_lets_pass_what_is_protected_or_too_much_and_nothing_else(memory: Memory) -> None:
    view = memory.view
    for move, code in (
        (superseded(LISBON, PORTO), None),
        (superseded(PORTO, LISBON), "NOT_NEWER"),
        (superseded(PORTO, LISBON, DOG), "NOT_NEWER"),
        (Move(LISBON, HOME, "", "duplicate", PORTO), "NOT_A_DUPLICATE"),
        (superseded(LISBON, 99), "UNKNOWN_SURVIVOR"),
        (superseded(LISBON, LISBON), "UNKNOWN_SURVIVOR"),
        (superseded(LISBON, 3), "UNKNOWN_SURVIVOR"),
    ):
        verdict = law.verify(
            Plan("review", moves=(move,)), view.entry, ("topics/",), {move.seq}, same=is_repetition
        )
        assert [held.reason.code for held in verdict.withheld] == ([code] if code else []), move
        assert verdict.plan.moves == (() if code else (move,))
        unasked = law.verify(Plan("review", moves=(move,)), view.entry, ("topics/",), same=is_repetition)
        assert unasked.withheld or move.seq == PORTO


def test_approval_of_one_line_is_no_approval_of_another(memory: Memory) -> None:
    plan = Plan("review", moves=(superseded(LISBON, PORTO),))
    verdict = law.verify(plan, memory.view.entry, ("topics/",), {FLAT}, same=is_repetition)
    assert [held.reason.code for held in verdict.withheld] == ["PROTECTED"]


# ── withheld ────────────────────────────────────────────────────────────────────────────────────


def test_a_proposal_is_shown_with_both_lines(memory: Memory) -> None:
    (row,) = memory.review()
    assert (row.item, row.seq, row.by, row.code, row.void) == (item(memory), LISBON, PORTO, "PROTECTED", "")
    assert (row.text, row.by_text) == ("I live in Lisbon.", "I moved to Porto.")
    assert row.was.startswith(f"{HOME}:")
    assert row.now == "archive/home"


def test_approved_is_archived_with_a_receipt(memory: Memory) -> None:
    before = lines(memory)
    (receipt,) = memory.decide([item(memory)])
    assert (receipt.op, receipt.strategy) == ("review", "people")
    assert [(row.seq, row.was, row.now, row.why) for row in receipt.rows] == [
        (LISBON, HOME, "archive/home", f"superseded by {PORTO}")
    ]
    assert lines(memory) == before
    assert where(memory, LISBON) == "archive/home"
    assert memory.review() == memory.library.proposals() == ()
    assert memory.status()["lines_awaiting_review"] == 0


def test_the_line_goes_from_where_it_is_now_to_the_archive_of_its_survivors_document(memory: Memory) -> None:
    apply(memory, moved(LISBON, "topics/old", "Old"), moved(PORTO, "topics/new", "New"))
    (receipt,) = memory.decide([item(memory)])
    assert [(row.was, row.now) for row in receipt.rows] == [("topics/old", "archive/new")]


def test_rejected_is_dropped_and_moves_nothing(memory: Memory) -> None:
    before = lines(memory), where(memory, LISBON)
    assert memory.decide(reject=[f"{item(memory)}:{LISBON}"]) == ()
    assert (lines(memory), where(memory, LISBON)) == before
    assert memory.review() == ()
    assert not list((memory.library.root / ".infinimem/withheld").glob("*.json"))


def test_one_line_of_several(tmp_path: Path) -> None:
    memory = sorted_library(tmp_path / "m")
    memory.undo()
    for seq in (LISBON, FLAT):
        pin(memory, seq)
    apply(memory, superseded(LISBON, PORTO), superseded(FLAT, PORTO))
    name = item(memory)
    assert [row.seq for row in memory.review()] == [LISBON, FLAT]
    memory.decide([f"{name}:{FLAT}"])
    assert (where(memory, FLAT), where(memory, LISBON)) == ("archive/home", HOME)
    assert [row.seq for row in memory.review()] == [LISBON]
    memory.decide(reject=[name])
    assert memory.review() == ()


def test_a_chain_is_archived_link_by_link(memory: Memory) -> None:
    memory.library.record([Turn("I moved to Faro.", speaker="Nora", time="2025-09-01", session="s3")])
    apply(memory, op="append", adds=(NewEntry("I moved to Faro.", (9,)),))
    apply(memory, moved(10))
    pin(memory, PORTO)
    apply(memory, superseded(PORTO, 10))
    names = [str(proposal.receipt) for proposal in memory.library.proposals()]
    assert len(memory.decide(names)) == 2
    assert where(memory, LISBON) == where(memory, PORTO) == "archive/home"
    assert memory.review() == ()


def edited(memory: Memory) -> None:
    rewrite(memory, HOME, "I live in Lisbon.", "I live in Lisbon, mostly.")
    memory.library.adopt_edits()


def survivor_edited(memory: Memory) -> None:
    rewrite(memory, HOME, "I moved to Porto.", "I moved to Porto for a week.")


def deleted(memory: Memory) -> None:
    path = memory.library.root / f"{HOME}.md"
    path.write_text("".join(s for s in path.read_text().splitlines(True) if "live in Lisbon" not in s))


def survivor_archived(memory: Memory) -> None:
    memory.library.record([Turn("I moved to Faro.", speaker="Nora", time="2025-09-01", session="s3")])
    apply(memory, op="append", adds=(NewEntry("I moved to Faro.", (9,)),))
    apply(memory, superseded(PORTO, 10))


def archived(memory: Memory) -> None:
    rewrite(memory, HOME, ",pin=yes", "")
    memory.library.adopt_edits()
    rewrite(memory, HOME, "source=human", "source=user")
    memory.library.adopt_edits()
    memory.library.apply(Plan("review", moves=(superseded(LISBON, PORTO),)), approved={LISBON})


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("what", "words"),
    [
        (edited, "edited"),
        (survivor_edited, "edited"),
        (deleted, "gone"),
        (survivor_archived, "not live"),
        (archived, "already"),
    ],
)
def test_what_cannot_be_done_any_more_is_void_and_dropped(memory: Memory, what, words: str) -> None:  # type: ignore[no-untyped-def]
    name = item(memory)
    what(memory)
    before = lines(memory)
    with pytest.raises(LibraryError, match=words):
        memory.decide([f"{name}:{LISBON}"])
    (row,) = (row for row in memory.review() if row.seq == LISBON)
    assert words in row.void
    assert lines(memory) == before
    assert [row for row in memory.review() if row.seq == LISBON] == []


def test_a_whole_item_with_only_void_lines_moves_nothing(memory: Memory) -> None:
    name = item(memory)
    edited(memory)
    number = len(memory.receipts())
    assert memory.decide([name]) == ()
    assert len(memory.receipts()) == number


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", ["", "9999", "x", ":5", "5:", "5:x", "5:99", "5:5-1", "-1"])
def test_names_of_nothing(memory: Memory, name: str) -> None:
    assert item(memory) == "5"
    before = memory.review()
    for call in ({"approve": [name]}, {"reject": [name]}, {"approve": ["5"], "reject": [name]}):
        with pytest.raises(UsageError):
            memory.decide(**call)
    with pytest.raises(UsageError, match="both"):
        memory.decide(["5"], ["5:5"])
    assert memory.review() == before
    assert where(memory, LISBON) == HOME


def test_proposals_hold_no_word_of_the_lines(memory: Memory) -> None:
    text = (memory.library.root / f".infinimem/withheld/{int(item(memory)):04d}.json").read_text()
    assert "Lisbon" not in text
    assert "Porto" not in text


@pytest.mark.parametrize("junk", ["{", '[{"move": {}, "code": "PROTECTED"}]'])
def test_a_damaged_proposal_is_passed_over(memory: Memory, junk: str) -> None:
    (memory.library.root / ".infinimem/withheld/0009.json").write_text(junk)
    assert [row.item for row in memory.review()] == ["5"]


def test_a_proposal_of_before_marks_were_kept_can_be_approved(memory: Memory) -> None:
    path = memory.library.root / f".infinimem/withheld/{int(item(memory)):04d}.json"
    path.write_text(
        json.dumps([{k: v for k, v in row.items() if k != "marks"} for row in json.loads(path.read_text())])
    )
    assert len(memory.decide([item(memory)])) == 1
