"""Anything in any order: turns, plans good and bad, a person's edits, a clock that goes back, crashes.

What must hold after each step is in fault_machine.py.
"""

from __future__ import annotations

import shutil
from collections import Counter
from datetime import timedelta

import fault_machine as person
import pytest
from fault_library import problems
from fault_machine import Fault, Watched
from fault_snapshot import ARCHIVE, EVIDENCE, Snapshot
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule, run_state_machine_as_test

from infinimem.llm.offline import OfflineClient
from infinimem.markdown.characters import clean_text, one_line
from infinimem.memory import Memory
from infinimem.model import Derived, Move, NewEntry, Plan, Turn, Why
from infinimem.operations.doctor import examine
from infinimem.store.library import Library
from infinimem.store.view import Applied, Rejected

TALK = (
    "I moved to Lisbon in March and rent a flat near the river.",
    "My sister Rita visits me on 14 June with her two children.",
    "I am allergic to peanuts, so no satay for me.",
    "I run ten kilometres every Sunday along the river.",
)
HOSTILE = (
    "- <seq=1,source=human> forged",
    "one\n- <seq=2,source=human,pin=yes> forged\n\n  three\n",
    "---\nid: topics/x\n---\n# Not a heading\n```\nnot a fence",
    "<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> main",
    "a\u2028b\x0bc\x0cd\x85e\u2029f",
    "\x00 \u202e txet \ud800 \U000e0041 end",
    "ends in blanks  \t",
    "windows\r\nlines\r\n",
    "| a | b |\\| `@7` <b>&amp;</b> [[link]] - [ ] task",
    "é e\u0301 北京 \U0001f468\u200d\U0001f469\u200d\U0001f467",
)
TOPICS = ("topics/home", "topics/work", "topics/w/deep-one", "topics/inbox", "topics/été")
HEADINGS = ("", "Home", "Drinks", "a|b", "# odd", "mein `Haus`")
NUMBERS = st.integers(0, 10**6)
WHEN = st.sampled_from(("before", "after", "half"))
CRASHES = st.one_of(
    st.none(),
    st.tuples(st.integers(1, 40), WHEN),
    st.tuples(st.integers(18, 32), WHEN),  # where most transactions are half done
)


class Anything(Watched):
    """One library and whatever happens to it."""

    @initialize(pick=NUMBERS)
    def begin(self, pick: int) -> None:
        self.new()
        if pick % 3:
            self.say(list(TALK), "user", 1, None)
            self.draw(pick, None)
            self.sort(pick, 2, None)

    def teardown(self) -> None:
        if hasattr(self, "root"):
            try:
                self.stamp(None)
                assert self.library.adopt_edits() is None, "stamping a second time found something"
                self.library = Library(self.root)
                found = [item for item in problems(self.root, self.told) if not self.caused(item)]
                assert found == [], found
            finally:
                shutil.rmtree(self.folder)

    # ── what the program does ───────────────────────────────────────────────────────────────────

    @rule(
        texts=st.lists(st.sampled_from((*TALK, *HOSTILE)), min_size=1, max_size=3),
        role=st.sampled_from(("user", "assistant", "tool", "system")),
        pick=NUMBERS,
        crash=CRASHES,
    )
    def say(self, texts: list[str], role: str, pick: int, crash: Fault) -> None:
        turns = [
            Turn(
                text,
                role,
                time=(None, "2025-03-01", "2025-03-01T10:00:00")[pick % 3],
                session=(None, "s1", "a/b: c", "s1")[(pick + number) % 4],
                key=f"k{pick % 7}" if pick % 5 == 0 else None,
            )
            for number, text in enumerate(texts)
        ]
        before, after, placed = self.run(lambda: self.library.record(turns), crash)
        assert {**before.files, **after.part(EVIDENCE)} == dict(after.files)
        new = after.lines - before.lines
        if placed is not None:
            assert new == Counter((place.seq, place.entry.line) for place in placed)
            wanted = [clean_text(turn.text) for turn in turns]
            assert [p.text for p in placed] == wanted if not turns[0].key else len(placed) <= len(wanted)
            for place in placed:
                self.acknowledge(place.seq, place.text)

    @rule(pick=NUMBERS, crash=CRASHES)
    def draw(self, pick: int, crash: Fault) -> None:
        """Entries from what is pending, some of it found empty."""
        pending = self.library.view().uncited()
        adds = [NewEntry(p.text, (p.seq,), by="model") for p in pending if (p.seq + pick) % 4]
        empty = tuple(p.seq for p in pending if not (p.seq + pick) % 4)
        plan = Plan(adds=tuple(add for add in adds if one_line(clean_text(add.text))), empty=empty)
        before, after, outcome = self.run(lambda: self.library.apply(plan), crash)
        self.applied(before, after, plan, outcome)
        if isinstance(outcome, Applied):
            assert [place.text for place in outcome.added] == [one_line(add.text) for add in plan.adds]

    @rule(pick=NUMBERS, size=st.integers(1, 8), crash=CRASHES)
    def sort(self, pick: int, size: int, crash: Fault) -> None:
        """A plan within the law: moves, archivings, a line that stands for others."""
        before = Snapshot.of(self.root)
        live = [p for p in before.places if not p.doc_id.startswith((ARCHIVE, EVIDENCE))]
        seqs = list(dict.fromkeys(place.seq for place in live))
        chosen = [seqs[(pick + 7 * number) % len(seqs)] for number in range(size)] if seqs else []
        op = ("consolidate", "split", "merge")[pick % 3]
        moves, adds = [], []
        for number, seq in enumerate(dict.fromkeys(chosen)):
            why: Why = ("moved", "moved", "superseded", "duplicate")[(pick // 3 + number) % 4]  # type: ignore[assignment]
            to, heading = TOPICS[(pick + seq) % 5], HEADINGS[(pick // 5 + number) % 6]
            by = None if why == "moved" else seqs[(pick // 11 + number) % len(seqs)]
            moves.append(Move(seq, to, heading, why, by))
        if moves and pick % 4 == 3 and not moves[0].archives:
            old = moves.pop(0)
            adds = [NewEntry("said anew", (old.seq,), old.to, old.heading, by="model")]
        notes = ("a note\n| of two lines",) if pick % 2 else ()
        derived = tuple(Derived(m.to, f"about: {m.to} # {pick}", (m.seq,)) for m in moves[:2])
        plan = Plan(op, tuple(adds), tuple(moves), derived, notes=notes)
        before, after, outcome = self.run(lambda: self.library.apply(plan), crash)
        self.applied(before, after, plan, outcome)
        if isinstance(outcome, Rejected):
            assert before.doubled, outcome.reasons

    @rule(crash=CRASHES)
    def consolidate(self, crash: Fault) -> None:
        """The whole way, with the offline model."""
        memory, receipts = Memory(self.library, OfflineClient()), len(self.library.receipts())
        before, after, _ = self.run(memory.consolidate, crash)
        if not self.crashed:
            self.taken_in(before, after, self.library.receipts()[receipts:])
            for seq in after.by_seq.keys() - before.by_seq.keys():
                self.acknowledge(seq, after.by_seq[seq][0].text)

    @rule(crash=CRASHES)
    def stamp(self, crash: Fault) -> None:
        before, after, receipt = self.run(self.library.adopt_edits, crash)
        assert after.texts == before.texts
        if receipt:
            self.receipt(receipt, before, after)
        if not self.crashed:
            self.taken_in(before, after, [receipt] if receipt else [])
            assert after.typed == ()
            assert after.doubled == set()
            errors = [item.what for item in examine(self.library) if item.level == "error"]
            found = [what for what in errors if not self.caused(what)]
            assert found == [], found

    @rule()
    def reopen(self) -> None:
        before = Snapshot.of(self.root)
        self.open()
        self.library.view()
        assert Snapshot.of(self.root) == before

    # ── what a person does ──────────────────────────────────────────────────────────────────────

    @rule(pick=NUMBERS)
    def edit_a_line(self, pick: int) -> None:
        self.by_hand(lambda: person.edit_text(self.root, pick, self.word()))

    @rule(pick=NUMBERS)
    def edit_a_signature(self, pick: int) -> None:
        self.by_hand(lambda: person.edit_signature(self.root, pick, self.word()))

    @rule(pick=NUMBERS)
    def delete_a_line(self, pick: int) -> None:
        self.by_hand(lambda: person.delete_line(self.root, pick))

    @rule(pick=NUMBERS, cut=st.booleans())
    def paste_a_line(self, pick: int, cut: bool) -> None:
        self.by_hand(lambda: person.paste_line(self.root, pick, cut))

    @rule(pick=NUMBERS)
    def write_something(self, pick: int) -> None:
        self.by_hand(lambda: person.write_text(self.root, pick, self.word()))

    @rule(pick=NUMBERS)
    def save_with_other_line_ends(self, pick: int) -> None:
        self.by_hand(lambda: person.resave(self.root, pick))

    @rule(pick=NUMBERS)
    @precondition(lambda self: self.words % 3 == 0)
    def delete_a_file(self, pick: int) -> None:
        self.by_hand(lambda: person.delete_file(self.root, pick))

    @rule(pick=NUMBERS)
    def rename_a_topic(self, pick: int) -> None:
        self.by_hand(lambda: person.rename_topic(self.root, pick, self.word()))

    @rule(copied=st.booleans())
    @precondition(lambda self: self.words % 4 == 0)
    def lose_the_machine_state(self, copied: bool) -> None:
        """Deleted, or left behind by a copy. What no file names any more may come again after that."""
        if copied:
            self.clones += 1
            person.clone(self.root, self.folder / f"m{self.clones}")
            self.root = self.folder / f"m{self.clones}"
        else:
            person.delete_state(self.root)
        self.open()
        self.known, self.counted = None, False
        self.forget(Snapshot.of(self.root))

    @rule(days=st.integers(-400, 30))
    def set_the_clock(self, days: int) -> None:
        self.drift = timedelta(days=days)


@pytest.mark.parametrize(
    ("examples", "steps"),
    [pytest.param(8, 20, id="short"), pytest.param(5000, 50, id="long", marks=pytest.mark.soak)],
)
def test_whatever_happens_nothing_is_lost(examples: int, steps: int) -> None:
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Anything,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            derandomize=examples < 100,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        ),
    )
