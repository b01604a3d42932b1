"""The law: what is conserved, and what a plan may do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from cases import each
from hypothesis import given
from hypothesis import strategies as st

from infinimem import law
from infinimem.grounding.sentences import is_repetition
from infinimem.model import CURRENT, Entry, Located, Move, NewEntry, Plan, Put, Source

verify = partial(law.verify, same=is_repetition)


def entry(seq: int, text: str = "", time: str | None = None, source: Source = "user", **fields: str) -> Entry:
    text = text or f"fact number {seq}"
    return Entry(seq, text, f"- <seq={seq},source={source}> {text}", time, source, fields=fields)


def lookup(*entries: Entry, doc: str = CURRENT) -> Callable[[int], Located | None]:
    places = {one.seq: Located(one, doc, 5, 5) for one in entries}
    return places.get


LINES = st.lists(st.tuples(st.integers(1, 9), st.sampled_from("abc")), max_size=8)


@given(LINES, st.randoms())
def test_moving_lines_conserves_them(lines: list[law.Line], random: object) -> None:
    moved = list(lines)
    random.shuffle(moved)  # type: ignore[attr-defined]
    assert law.conserved(lines, moved) == []


@given(LINES, st.tuples(st.integers(10, 19), st.just("d")))
def test_a_line_more_or_less_is_seen(lines: list[law.Line], extra: law.Line) -> None:
    assert [r.code for r in law.conserved([*lines, extra], lines)] == ["LOST"]
    assert [r.code for r in law.conserved(lines, [*lines, extra])] == ["INVENTED"]
    assert law.conserved(lines, [*lines, extra], added=[extra]) == []
    assert law.conserved([*lines, extra], lines, removed=[extra]) == []


def test_an_altered_line_is_lost_and_invented() -> None:
    codes = [reason.code for reason in law.conserved([(1, "a")], [(1, "b")])]
    assert sorted(codes) == ["INVENTED", "LOST"]


@each(
    ("plan", "code"),
    [
        (Plan(moves=(Move(9, "topics/a"),)), "UNKNOWN_SEQ"),
        (Plan(moves=(Move(1, "topics/a"), Move(1, "topics/b"))), "MOVED_TWICE"),
        (Plan(moves=(Move(1, "notes/a"),)), "BAD_TARGET"),
        (Plan(moves=(Move(1, "topics/../a"),)), "BAD_TARGET"),
        (Plan(moves=(Move(1, "topics/"),)), "BAD_TARGET"),
        (Plan(adds=(NewEntry("x", ()),)), "NO_ORIGIN"),
        (Plan(adds=(NewEntry("  ", (1,)),)), "EMPTY_TEXT"),
        (Plan(adds=(NewEntry("x", (9,)),)), "UNKNOWN_SEQ"),
        (Plan(adds=(NewEntry("x", (1,), to="evidence/a"),)), "BAD_TARGET"),
        (Plan(records=(Put("CURRENT", ""),)), "FOREIGN_RECORD"),
        (Plan(records=(Put("topics/a", "", (1, 9)),)), "UNKNOWN_SEQ"),
    ],
)
def test_a_bad_plan_is_refused_with_one_code(plan: Plan, code: str) -> None:
    verdict = verify(plan, lookup(entry(1), entry(2)), ("topics/",))
    assert {reason.code for reason in verdict.refused} == {code}


@each("doc", ["evidence/e", "mine"])
def test_evidence_and_notes_cannot_be_moved(doc: str) -> None:
    verdict = verify(Plan(moves=(Move(1, "topics/a"),)), lookup(entry(1), doc=doc), ("topics/",))
    assert [reason.code for reason in verdict.refused] == ["BAD_TARGET"]


def test_a_line_of_a_topic_is_moved() -> None:
    plan = Plan(moves=(Move(1, "topics/b"),), adds=(NewEntry("x", (2,), "topics/b"),))
    assert verify(plan, lookup(entry(1), entry(2), doc="topics/a"), ("topics/",)).refused == ()


@each(
    ("name", "fine"),
    [
        ("a", True),
        ("é" * 100, True),
        ("é" * 101, False),
        ("a" * 201, False),
        ("a\x07b", False),
        ("a\u202eb", False),
        (".a", False),
        ("a/.b/c", False),
        ("a//b", False),
    ],
)
def test_a_document_has_a_name_that_disks_take_and_readers_see(name: str, fine: bool) -> None:
    verdict = verify(Plan(moves=(Move(1, f"topics/{name}"),)), lookup(entry(1)), ("topics/",))
    assert [reason.code for reason in verdict.refused] == ([] if fine else ["BAD_TARGET"])


@each(
    ("old", "new", "why", "code"),
    [
        (entry(1, "Drinks coffee"), entry(2, "Owns a cat"), "duplicate", "NOT_A_DUPLICATE"),
        (entry(1, "Paid 5 euros"), entry(2, "Paid 6 euros"), "duplicate", "NOT_A_DUPLICATE"),
        (entry(2, "Lives in Rome"), entry(1, "Lives in Oslo"), "superseded", "NOT_NEWER"),
        (entry(1, "a", "2025-02-01"), entry(2, "b", "2025-01-01"), "superseded", "NOT_NEWER"),
        (entry(1, "x", source="human"), entry(2, "x"), "duplicate", "PROTECTED"),
        (entry(1, "x", pin="yes"), entry(2, "x"), "duplicate", "PROTECTED"),
        (entry(1, "x"), entry(3, "x"), "duplicate", "UNKNOWN_SURVIVOR"),
        (entry(1, "x", speaker="Ann"), entry(2, "x", speaker="Bo"), "duplicate", "OTHER_SPEAKER"),
    ],
)
def test_an_archiving_without_grounds_leaves_the_line_live(
    old: Entry, new: Entry, why: str, code: str
) -> None:
    by = 2 if old.seq == 1 else 1
    if code == "UNKNOWN_SURVIVOR":
        by = 7
    moves = (Move(by, "topics/a", "Home"), Move(old.seq, "topics/a", why=why, by=by))  # type: ignore[arg-type]
    if by == 7:
        moves = moves[1:]
    verdict = verify(Plan(moves=moves), lookup(old, new), ("topics/",))
    assert [(item.reason.code, item.reason.seqs) for item in verdict.withheld] == [(code, (old.seq, by))]
    kept = [(move.why, move.heading) for move in verdict.plan.moves if move.seq == old.seq]
    assert kept == [("moved", "" if code == "UNKNOWN_SURVIVOR" else "Home")]
    named = [replace(move, heading="Own") if move.seq == old.seq else move for move in moves]
    own = verify(Plan(moves=tuple(named)), lookup(old, new), ("topics/",)).plan.moves
    assert [move.heading for move in own if move.seq == old.seq] == ["Own"]


def test_a_line_that_may_not_be_archived_stays_where_it_is() -> None:
    lines = lookup(entry(1, "Drinks coffee"), entry(2, "Owns a cat"), doc="topics/a")
    verdict = verify(Plan(moves=(Move(1, "topics/a", why="duplicate", by=2),)), lines, ("topics/",))
    assert [item.reason.code for item in verdict.withheld] == ["NOT_A_DUPLICATE"]
    assert verdict.plan.moves == ()


@each(
    ("old", "approved", "codes"),
    [
        (entry(1), (), ["NOT_APPROVED"]),
        (entry(1), (1,), []),
        (entry(1, source="human"), (1,), ["PROTECTED"]),
        (entry(1, pin="yes"), (1,), ["PROTECTED"]),
    ],
)
def test_what_a_note_no_longer_holds_goes_by_a_persons_word_alone(
    old: Entry, approved: tuple[int, ...], codes: list[str]
) -> None:
    plan = Plan(moves=(Move(1, "topics/a", why="reimported"),))
    verdict = verify(plan, lookup(old), ("topics/",), approved)
    assert [item.reason.code for item in verdict.withheld] == codes
    assert any(move.archives for move in verdict.plan.moves) == (not codes)


def test_two_lines_cannot_archive_each_other() -> None:
    moves = (Move(1, "topics/a", why="duplicate", by=2), Move(2, "topics/a", why="duplicate", by=1))
    verdict = verify(Plan(moves=moves), lookup(entry(1, "x"), entry(2, "x")), ("topics/",))
    assert [item.reason.code for item in verdict.withheld] == ["UNKNOWN_SURVIVOR"] * 2
    assert not any(move.archives for move in verdict.plan.moves)


def test_who_is_not_named_may_repeat_anybody() -> None:
    lines = lookup(entry(1, "Drinks tea", speaker="Ann"), entry(2, "Drinks tea"))
    verdict = verify(Plan(moves=(Move(1, "topics/a", why="duplicate", by=2),)), lines, ("topics/",))
    assert (verdict.withheld, [move.archives for move in verdict.plan.moves]) == ((), [True])


def test_archiving_stops_at_a_fifth_of_a_run() -> None:
    entries = [entry(seq, f"fact {seq}", f"2025-01-{seq:02}") for seq in range(1, 31)]
    moves = [Move(30, "topics/a")]
    moves += [Move(seq, "topics/a", why="superseded", by=30) for seq in range(1, 30)]
    verdict = verify(Plan(moves=tuple(moves)), lookup(*entries), ("topics/",))
    assert sum(move.archives for move in verdict.plan.moves) == 6
    assert {item.reason.code for item in verdict.withheld} == {"TOO_MANY"}
    assert len(verdict.plan.moves) == 30


def test_copies_take_none_of_that_share_and_a_few_lines_may_always_go() -> None:
    same = [entry(seq, "Drinks tea") for seq in range(1, 10)]
    other = [entry(seq, f"fact {seq}") for seq in range(10, 14)]
    lines = lookup(*same, *other, entry(20, "drinks tea."), entry(30, "newer"))
    copies = [Move(one.seq, "topics/a", why="duplicate", by=20) for one in same]
    replaced = [Move(one.seq, "topics/a", why="superseded", by=30) for one in other]
    verdict = verify(Plan(moves=(*copies, *replaced)), lines, ("topics/",))
    assert [(item.move.seq, item.reason.code) for item in verdict.withheld] == [(13, "TOO_MANY")]
    alone = verify(Plan(moves=(replaced[0],)), lines, ("topics/",))
    assert alone.withheld == ()


@each(
    ("new", "old", "newer"),
    [
        ("2025-01-02", "2025-01-01", True),
        ("2025-01-01", "2025-01-01T23:00:00", True),
        ("2025-01-01T10:00:00+02:00", "2025-01-01T09:00:00Z", False),
        ("2025-01-01T10:00:00Z", "2025-01-01T11:00:00+02:00", True),
        ("2025-01-01T10:00:00Z", "2025-01-01T11:00:00", False),
        (None, "2025-01-01", True),
        ("soon", "2025-01-01", False),
        ("2025-01-01T10:00:00", "2025-01-01T10:00:00", True),
        ("2025-01-01", "2025-01-01", True),
    ],
)
def test_recency_is_time_then_seq(new: str | None, old: str, newer: bool) -> None:
    assert law.is_newer(entry(2, time=new), entry(1, time=old)) is newer


def test_what_is_newer_is_what_was_said_later_whatever_it_tells_of() -> None:
    """Earlier versions wrote the date of an event into `time`."""
    turns = entry(1, time="2023-05-08T10:00:00"), entry(2, time="2023-06-01T10:00:00")
    plan = replace(entry(3, "Moves to Porto in 2030", time="2030-01-01"), origin=(1,))
    news = replace(entry(4, "Stays in Lisbon", time="2023-06-01T10:00:00"), origin=(1, 2))
    find = lookup(*turns, plan, news)
    assert law.is_newer(news, plan, find)
    assert not law.is_newer(plan, news, find)
    assert [law.said_at(one, find) for one in (plan, news)] == [
        "2023-05-08T10:00:00",
        "2023-06-01T10:00:00",
    ]
    assert [law.happened(one, find) for one in (plan, news)] == ["2030-01-01", None]
    assert law.happened(entry(5, when="2010"), find) == "2010"
    assert law.happened(replace(entry(6), origin=(1,)), find) is None
    gone = Plan(moves=(Move(3, "topics/a", why="superseded", by=4),))
    assert verify(gone, find, ("topics/",)).withheld == ()


@given(st.lists(st.sampled_from(["2025-01-01", "2025-01-01T09:00:00", "2025-01-02T00:00:00Z", "soon", None])))
def test_the_latest_time_is_one_of_them(times: list[str | None]) -> None:
    found = law.latest(times)
    assert found in times if any(times) else found is None
    assert law.latest(reversed(times)) == found
