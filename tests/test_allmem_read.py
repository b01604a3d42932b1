"""The reader of units: each stage, each switch and the block, on banks small enough to work out by hand."""

from __future__ import annotations

from itertools import pairwise

from allmem_library import Library, banked
from allmem_measured import Measured, block, retrieve, stage, texts, units
from cases import each

from infinimem import tokens
from infinimem.markdown.document import Document
from infinimem.model import Candidate, Plan
from infinimem.strategies.allmem.spec import AllmemSettings
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


class TestRanking:
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


class TestOurWay:
    """What differs from the paper: words, a floor, the best first, and what stands beside it."""

    def test_words_count_beside_the_cosine(self) -> None:
        kept = Measured()
        near, told = kept.turn("a walk by the sea", 0.6), kept.turn("my cello is red", 0.3)
        assert units(kept.retrieve("? cello", words=0), "ranking") == [near, told]
        found = kept.retrieve("? cello", words=1)
        assert units(found, "ranking") == [told, near]
        assert stage(found, "ranking").found[0].parts["words"] == 1

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


@each("face", [retrieve, block])
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


@each("query", HOSTILE)
def test_any_text_can_be_asked(query: str) -> None:
    library = Library()
    library.say("I drink tea.", "The cat sleeps.", "tea\ud800 again")
    bank, space = banked(library, ("tea", "drinks tea"), ("cat", "a cat"), ("tea", "more tea"))
    library.apply(Plan("write", records=puts(library.bank(), bank)))
    library.say("just said")
    for face in (retrieve, block):
        found = face(library.view(), bank, space, query, 50, AllmemSettings())
        assert len({item.seqs for item in found.items}) == len(found.items)
