"""The reader of units: each stage, each switch and the block, on banks small enough to work out by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from allmem_library import Library, banked
from allmem_measured import Measured, stage, texts, units
from hypothesis import given, settings
from hypothesis import strategies as st

from infinimem import tokens
from infinimem.markdown.document import Document
from infinimem.model import Candidate, Plan
from infinimem.strategies.allmem import read
from infinimem.strategies.allmem.spec import AllmemSettings
from infinimem.strategies.records.evidence_builder import joined
from infinimem.strategies.records.record_store import puts


class TestAnchors:
    def test_are_the_nearest_of_the_surface_with_ties_by_creation(self) -> None:
        kept = Measured()
        for near in (0.5, 0.9, 0.7, 0.9, 0.7):
            kept.turn(f"said {near}", near)
        found = kept.retrieve(anchors=4, expand=False)
        assert units(found, "anchors") == ["u-000002", "u-000004", "u-000003", "u-000005"]
        assert [unit.score for unit in stage(found, "anchors").found] == [0.9, 0.9, 0.7, 0.7]
        assert [item.seqs for item in found.items] == [(2,), (4,), (3,), (5,)]

    def test_are_never_archived_unless_the_surface_is_switched_off(self) -> None:
        kept = Measured()
        old, new = kept.turn("in Rome", 0.9), kept.turn("in Oslo", 0.4)
        kept.link(new, "version", old)
        kept.bank.archive(old)
        assert units(kept.retrieve(), "anchors") == [new]
        assert units(kept.retrieve(visibility=False, expand=False), "anchors") == [old, new]

    def test_what_lost_its_representative_counts_as_the_surface(self) -> None:
        kept = Measured()
        lost, held = kept.turn("in Rome", 0.9, visible=False), kept.turn("in Bonn", 0.8, visible=False)
        kept.link(kept.turn("in Oslo", 0.4), "version", held)
        assert units(kept.retrieve(expand=False), "anchors") == [lost, "u-000003"]
        assert units(kept.retrieve(anchors=1), "anchors") == [lost]

    def test_a_question_without_a_direction_has_none(self) -> None:
        kept = Measured()
        kept.turn("in Rome", 0.9, visible=False)
        kept.turn("in Oslo", 0.4)
        for query in ("", " \n", "nothing of this"):
            assert kept.retrieve(query).items == kept.block(query).items == ()


def chained() -> tuple[Measured, list[str]]:
    """Five units: 1 on the surface, from which a path of version links leads to 2, 3, 4; 5 is far away."""
    kept = Measured()
    names = [kept.turn(f"turn {number}", near) for number, near in enumerate((0.9, 0.2, 0.8, 0.7, 0.1), 1)]
    for one, two in pairwise(names[:4]):
        kept.link(one, "version", two)
    for name in names[1:4]:
        kept.bank.archive(name)
    return kept, names


class TestLinks:
    def test_are_followed_so_many_hops(self) -> None:
        kept, names = chained()
        for hops, reached in ((0, []), (1, names[1:2]), (2, names[1:3]), (3, names[1:4])):
            found = kept.retrieve(anchors=1, hops=hops)
            assert units(found, "links") == reached
        assert stage(kept.retrieve(anchors=1), "links").found == (
            Candidate(names[1], {"hop": 1}, via=f"version {names[0]}"),
            Candidate(names[2], {"hop": 2}, via=f"version {names[1]}"),
        )

    def test_are_followed_in_their_direction_alone(self) -> None:
        kept, names = chained()
        kept.link(names[4], "semantic", names[0])
        assert units(kept.retrieve(anchors=1), "links") == names[1:3]

    def test_can_be_switched_off(self) -> None:
        kept, _ = chained()
        found = kept.retrieve(anchors=1, expand=False)
        assert units(found, "links") == [] and [item.seqs for item in found.items] == [(1,)]

    def test_are_followed_until_there_are_enough_candidates_anchors_included(self) -> None:
        kept, names = chained()
        assert units(kept.retrieve(anchors=2, candidates=3), "ranking") == [names[0], names[1], names[4]]
        assert units(kept.retrieve(anchors=2, candidates=1), "ranking") == names[:1]

    def test_come_by_kind_then_by_time_then_by_id(self) -> None:
        kept, names = star()
        version, sibling, temporal, late, early = names[1:]
        assert units(kept.retrieve(anchors=1), "links") == [version, sibling, temporal, early, late]
        assert units(kept.retrieve(anchors=1, candidates=3), "links") == [version, sibling]

    def test_come_by_time_and_id_alone_without_priority(self) -> None:
        kept, names = star()
        version, sibling, temporal, late, early = names[1:]
        found = kept.retrieve(anchors=1, type_priority=False)
        assert units(found, "links") == [early, temporal, sibling, version, late]

    def test_of_recovery_can_be_left_out(self) -> None:
        kept, names = star()
        _, _, temporal, late, early = names[1:]
        found = kept.retrieve(anchors=1, recovery_links=False)
        assert units(found, "links") == [temporal, early, late]


def star() -> tuple[Measured, list[str]]:
    """A unit with a link of each kind, two of them semantic; the newest first."""
    kept = Measured()
    days = (
        ("now", "09"),
        ("version", "06"),
        ("sibling", "04"),
        ("temporal", "03"),
        ("late", "07"),
        ("early", "02"),
    )
    names = [kept.turn(word, 0.9 if word == "now" else 0.3, f"2024-01-{day}") for word, day in days]
    kinds = ("version", "sibling", "temporal", "semantic", "semantic")
    for kind, to in zip(kinds, names[1:], strict=True):
        kept.link(names[0], kind, to)
    return kept, names


class TestRanking:
    def test_is_by_cosine_over_all_candidates_with_ties_by_id(self) -> None:
        kept, names = chained()
        found = kept.retrieve(hops=3)
        assert units(found, "ranking") == [names[number] for number in (0, 2, 3, 1, 4)]
        assert [item.seqs[0] for item in found.items] == [1, 3, 4, 2, 5]
        assert [item.score for item in found.items] == [0.9, 0.8, 0.7, 0.2, 0.1]
        equal = Measured()
        far = [equal.turn(str(number), 0.5) for number in range(3)]
        equal.link(far[0], "semantic", far[2])
        assert units(equal.retrieve(anchors=2), "ranking") == far

    def test_puts_what_was_superseded_behind_what_stands_for_it(self) -> None:
        kept = Measured()
        said = (("Rome", 0.9), ("Bonn", 0.8), ("Oslo", 0.3), ("Paris", 0.5))
        oldest, older, new, near = (kept.turn(text, cosine) for text, cosine in said)
        kept.link(new, "version", older)
        kept.link(older, "version", oldest)
        for name in (oldest, older):
            kept.bank.archive(name)
        found = kept.retrieve()
        assert units(found, "ranking") == [near, new, oldest, older]
        assert [unit.score for unit in stage(found, "ranking").found] == [0.5, 0.3, 0.3, 0.3]
        as_in_the_paper = kept.retrieve(successors_first=False)
        assert units(as_in_the_paper, "ranking") == [oldest, older, near, new]

    def test_puts_what_several_stand_for_behind_the_best_of_them(self) -> None:
        kept = Measured()
        whole, first, second = kept.turn("all", 0.9), kept.turn("a part", 0.2), kept.turn("the rest", 0.7)
        for part in (first, second):
            kept.link(part, "version", whole)
        kept.bank.archive(whole)
        assert units(kept.retrieve(), "ranking") == [second, whole, first]

    def test_links_that_a_person_led_in_a_circle_do_no_harm(self) -> None:
        kept, names = chained()
        kept.link(names[3], "version", names[1])
        assert set(units(kept.retrieve(hops=3), "ranking")) == set(names)

    def test_says_how_long_each_stage_took(self) -> None:
        kept, _ = chained()
        for found in (kept.retrieve(), kept.block()):
            stages = [step.stage for step in found.trace if step.stage != "units"]
            assert stages == ["query", "anchors", "links", "ranking", "evidence"]
            assert all(step.ms >= 0 for step in found.trace)


class TestEvidence:
    def test_is_the_turn_and_where_it_was_said(self) -> None:
        kept = Measured()
        kept.library.say("Hello", role="assistant")
        kept.turn("I moved to Rome.\nIt is warm.", 0.9, "2024-05-01")
        item = kept.retrieve().items[0]
        assert (item.doc_id, item.text) == ("evidence/s1", "I moved to Rome.\nIt is warm.")
        assert (item.seqs, item.origin, item.time, item.source) == ((2,), (2,), "2024-05-01", "user")
        shown = kept.view().document(item.doc_id).text(item.start_line, item.end_line)
        assert "I moved to Rome." in shown and "It is warm." in shown

    def test_a_turn_of_several_units_counts_once_at_its_best_rank(self) -> None:
        kept = Measured()
        one, two, three = (kept.turn(text, near) for text, near in (("a", 0.3), ("b", 0.6), ("c", 0.5)))
        merged = kept.merge(one, two, near=0.7)
        found = kept.retrieve()
        assert units(found, "ranking") == [merged, two, three, one]
        assert [(item.seqs[0], item.score) for item in found.items] == [(1, 0.7), (2, 0.7), (3, 0.5)]

    def test_turns_that_say_the_same_are_two(self) -> None:
        kept = Measured()
        kept.merge(kept.turn("Thank you!", 0.3), kept.turn("Thank you!", 0.6), near=0.7)
        assert [item.seqs for item in kept.retrieve().items] == [(1,), (2,)]
        assert [item.seqs for item in kept.block().items] == [(1,), (2,)]

    def test_parts_of_a_turn_are_put_together_at_the_best_rank(self) -> None:
        kept = Measured()
        name = kept.turn("I moved to Rome. My cat is ill. Tea is nice.", 0.1)
        kept.turn("else", 0.6)
        kept.split(name, ("I moved to Rome.", 0.5), ("Tea is nice.", 0.8))
        found = kept.retrieve(expand=False)
        assert texts(found) == ["I moved to Rome. … Tea is nice.", "else"]
        assert found.items[0].doc_id == "evidence/s1" and found.items[0].score == 0.8
        alone = kept.retrieve(anchors=1, expand=False).items
        assert [item.text for item in alone] == ["Tea is nice."]
        assert texts(kept.retrieve()) == ["I moved to Rome. My cat is ill. Tea is nice.", "else"]

    def test_what_does_not_fit_is_passed_over_for_what_does(self) -> None:
        kept = Measured()
        kept.turn("word " * 50, 0.9)
        kept.turn("short", 0.8)
        assert texts(kept.retrieve(budget=20)) == ["short"]
        assert texts(kept.retrieve(budget=0)) == []

    def test_what_was_just_said_and_what_people_wrote_comes_behind(self) -> None:
        kept = Measured()
        for number in range(40):
            kept.turn(f"a word about tea number {number}", 0.9)
        kept.library.say("the teapot is blue")
        kept.library.documents["mine"] = Document.parse("mine", b"# Pots\n\n- the teapot leaks\n")
        for face in (kept.retrieve, kept.block):
            found = face("? teapot", 120)
            assert "the teapot is blue" in texts(found)[-2:] and len(texts(found)) > 5
        from_notes = kept.retrieve("teapot")
        assert {item.doc_id for item in from_notes.items} == {"mine", "evidence/s1"}
        for number in range(40):
            kept.library.say(f"a teapot, number {number}, was said just now")
        found = kept.retrieve("? teapot", 120)
        waiting = [item for item in found.items if "teapot" in item.text]
        assert 20 < sum(tokens.count(item.text) for item in waiting) <= 30

    def test_spans_with_blanks_between_them_are_one(self) -> None:
        text = "one  two three"
        assert joined(text, [(5, 8), (0, 3)]) == ((0, 8),)
        assert joined(text, [(0, 3), (9, 14)]) == ((0, 3), (9, 14))
        assert joined(text, [(0, 8), (1, 2), (3, 5)]) == ((0, 8),)
        assert joined(text, [(3, 5)]) == ()


class TestBlock:
    def test_is_in_the_order_in_which_it_was_said_with_the_undated_last(self) -> None:
        kept = Measured()
        for text, near, time in (
            ("third", 0.9, "2024-03-01"),
            ("undated", 0.8, None),
            ("first", 0.7, "2024-01-01"),
            ("second", 0.6, "2024-02-01T10:00:00"),
            ("too far", 0.1, "2023-01-01"),
            ("undated too", 0.5, None),
        ):
            kept.turn(text, near, time)
        assert texts(kept.block(final=5)) == ["first", "second", "third", "undated", "undated too"]

    def test_ends_before_the_first_unit_that_does_not_fit(self) -> None:
        kept = Measured()
        for text, near in (("tea " * 10, 0.9), ("cat " * 20, 0.8), ("dog", 0.7)):
            kept.turn(text.strip(), near)
        sizes = [tokens.count(text) for text in ("tea " * 9 + "tea", "cat " * 19 + "cat", "dog")]
        for budget, seqs in (
            (sum(sizes), [1, 2, 3]),
            (sum(sizes) - 1, [1, 2]),
            (sum(sizes[:2]), [1, 2]),
            (sum(sizes[:2]) - 1, [1]),
        ):
            assert [item.seqs[0] for item in kept.block(budget=budget).items] == seqs
            assert [item.seqs[0] for item in kept.block(block_tokens=budget).items] == seqs

    def test_passes_over_a_unit_that_no_block_could_hold(self) -> None:
        kept = Measured()
        for text, near in (("long " * 99, 0.9), ("cat", 0.8)):
            kept.turn(text, near)
        assert texts(kept.block(budget=50)) == ["cat"]
        assert texts(kept.block(budget=0)) == []

    def test_what_a_representative_stands_for_is_not_shown_beside_it(self) -> None:
        kept = Measured()
        one, two, three, four = (
            kept.turn(word, near, f"2024-0{month}-01")
            for word, near, month in (("a", 0.3, 1), ("b", 0.6, 4), ("c", 0.5, 2), ("d", 0.4, 3))
        )
        merged = kept.merge(one, four, two, near=0.7)
        found = kept.block(final=3)
        assert units(found, "units") == [merged, three], "archived ones are not shown beside it"
        assert texts(found) == ["a", "c", "d", "b"]
        assert units(kept.block(final=3, successors_first=False), "units") == [merged, two, three]
        assert texts(kept.block(final=1)) == ["a", "d", "b"]

    def test_counts_what_two_units_show_once(self) -> None:
        kept = Measured()
        one, two = kept.turn("tea " * 10, 0.6), kept.turn("cat", 0.5)
        kept.merge(one, two, near=0.9)
        size = tokens.count(("tea " * 10).strip()) + tokens.count("cat")
        assert [item.seqs[0] for item in kept.block(budget=size).items] == [1, 2]

    def test_counts_a_turn_whose_parts_come_one_by_one_as_it_is_shown(self) -> None:
        kept = Measured()
        text = "I moved to Rome last year. My cat is ill since Monday."
        kept.split(kept.turn(text, 0.1), (text[:26], 0.9), (text[27:], 0.8))
        for face in (kept.block, kept.retrieve):
            assert texts(face(budget=tokens.count(text))) == [text]
            assert texts(face(budget=tokens.count(text) - 1)) == [text[:26]]


class TestOurWay:
    """What differs from the paper: words, a floor, the best first, and what stands beside it."""

    def test_words_count_beside_the_cosine(self) -> None:
        kept = Measured()
        near, told = kept.turn("a walk by the sea", 0.6), kept.turn("my cello is red", 0.3)
        assert units(kept.retrieve("? cello", words=0), "ranking") == [near, told]
        found = kept.retrieve("? cello", words=1)
        assert units(found, "ranking") == [told, near]
        assert stage(found, "ranking").found[0].parts["words"] == 1

    def test_words_find_what_stands_for_an_archived_unit(self) -> None:
        kept = Measured()
        old, new = kept.turn("my cello is red", 0.3), kept.turn("I sold it", 0.1)
        far = [kept.turn(f"else {number}", 0.2) for number in range(3)]
        kept.link(new, "version", old)
        kept.bank.archive(old)
        found = kept.retrieve("? cello", words=1, anchors=1)
        assert units(found, "anchors") == [new]
        assert units(found, "ranking") == [new, old] and far

    def test_what_scores_little_beside_the_best_is_left_out(self) -> None:
        kept = Measured()
        best, near, far = (kept.turn(text, cosine) for text, cosine in (("a", 0.9), ("b", 0.5), ("c", 0.2)))
        assert units(kept.retrieve(floor=0.5), "anchors") == [best, near]
        kept.link(best, "semantic", far)
        assert units(kept.block(floor=0.5), "units") == [best, near]

    def test_the_best_come_first_with_the_turns_beside_them(self) -> None:
        kept = Measured()
        said = (("asked", 0.1), ("answered", 0.9), ("thanked", 0.1), ("else", 0.5), ("far", 0.1))
        names = [kept.turn(text, near, f"2024-01-0{day}") for day, (text, near) in enumerate(said, 1)]
        for new, old in ((1, 0), (2, 1), (4, 3)):
            kept.link(names[new], "temporal", names[old])
        shown = texts(kept.block(final=2, beside=1, by_time=False))
        assert shown == ["answered", "else", "asked", "thanked"]
        assert texts(kept.block(final=2, beside=1)) == ["asked", "answered", "thanked", "else"]

    def test_a_part_is_not_shown_beside_the_whole_that_it_was_cut_from(self) -> None:
        kept = Measured()
        name = kept.turn("I moved to Rome. My cat is ill. Tea is nice.", 0.1)
        kept.split(name, ("I moved to Rome.", 0.5), ("Tea is nice.", 0.8))
        assert texts(kept.block()) == ["I moved to Rome. … Tea is nice."]

    def test_evidence_tells_when_it_happened(self) -> None:
        kept = Measured()
        name = kept.turn("I fell yesterday", 0.9, "2024-05-08")
        kept.bank.put(replace(kept.bank.records[name], when="2024-05-07"))
        for face in (kept.retrieve, kept.block):
            assert [item.when for item in face().items] == ["2024-05-07"]


@pytest.mark.parametrize("face", [read.retrieve, read.block])
def test_an_empty_library_has_no_evidence(face: object) -> None:
    library = Library()
    bank, space = banked(library)
    for query in ("", "tea", "\x00", "a" * 100_000, "🫖 \ud800"):
        assert face(library.view(), bank, space, query, 100, AllmemSettings()).items == ()  # type: ignore[operator]


HOSTILE = [
    "",
    " ",
    "?" * 5000,
    "(((",
    "[[a]] `rm`",
    "\x00\x1b[31m",
    "ﷺ" * 50,
    "\ud800",
    "tea\n\n# tea",
    "u-000001",
]


@pytest.mark.parametrize("query", HOSTILE)
def test_any_text_can_be_asked(query: str) -> None:
    library = Library()
    library.say("I drink tea.", "The cat sleeps.", "tea\ud800 again")
    bank, space = banked(library, ("tea", "drinks tea"), ("cat", "a cat"), ("tea", "more tea"))
    library.apply(Plan("write", records=puts(library.bank(), bank)))
    library.say("just said")
    for face in (read.retrieve, read.block):
        found = face(library.view(), bank, space, query, 50, AllmemSettings())
        assert len({item.seqs for item in found.items}) == len(found.items)


NEAR = st.sampled_from([0.1, 0.3, 0.5, 0.7, 0.9])


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_no_budget_is_exceeded_and_no_turn_is_shown_twice(data: st.DataObject) -> None:
    kept = Measured()
    names = [
        kept.turn(
            " ".join(
                data.draw(st.lists(st.sampled_from("tea cat rome sea".split()), min_size=2, max_size=30))
            ),
            data.draw(NEAR),
            data.draw(st.sampled_from([None, "2024-01-01", "2024-02-01", "soon"])),
        )
        for _ in range(data.draw(st.integers(1, 7)))
    ]
    for _ in range(data.draw(st.integers(0, 4))):
        shown = sorted(kept.bank.visible)
        if data.draw(st.booleans()) and len(shown) > 2:
            kept.merge(
                *data.draw(st.lists(st.sampled_from(shown), min_size=2, max_size=3, unique=True)), near=0.5
            )
        else:
            name = data.draw(st.sampled_from(shown))
            text = kept.bank.text(name)
            if len(text) > 4 and "\n" not in text and not kept.bank.records[name].sources:
                at = data.draw(st.integers(2, len(text) - 2))
                kept.split(name, (text[:at], data.draw(NEAR)), (text[at:], data.draw(NEAR)))
    everything = sorted(kept.bank.records)
    for _ in range(data.draw(st.integers(0, 8))):
        one, two = data.draw(st.sampled_from(everything)), data.draw(st.sampled_from(everything))
        if one != two:
            kept.link(one, data.draw(st.sampled_from(["semantic", "temporal"])), two)
    if data.draw(st.booleans()):
        kept.library.say("tea was just said")
    budget = data.draw(st.integers(0, 120))
    said = {seq: kept.bank.turn(seq) for seq in range(1, len(names) + 2)}
    for face in (kept.retrieve, kept.block):
        found = (
            face("?", budget, final=data.draw(st.integers(1, 16)))
            if face == kept.block
            else face("?", budget)
        )
        assert sum(tokens.count(item.text) for item in found.items) <= budget
        seqs = [item.seqs for item in found.items]
        assert len(set(seqs)) == len(seqs)
        for item in found.items:
            place = said[item.seqs[0]]
            assert place and all(part in place.text for part in item.text.split(" … "))
            shown_there = kept.view().document(item.doc_id).text(item.start_line, item.end_line)
            assert item.text.split()[-1] in shown_there
    scores = [item.score for item in kept.retrieve("?", 10_000).items if item.seqs[0] <= len(names)]
    assert scores == sorted(scores, reverse=True)
