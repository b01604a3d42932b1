"""The reader of units: each stage, each switch and the block, on banks small enough to work out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from allmem_library import PAPER, Library
from numpy.typing import NDArray

from infinimem import Turn, open_memory
from infinimem.index.vectors import Vectors
from infinimem.markdown.document import Document
from infinimem.memory import Memory
from infinimem.model import Candidate, Evidence, Plan, Stage
from infinimem.store.view import Applied, View
from infinimem.strategies.allmem.spec import SPEC as ALLMEM
from infinimem.strategies.allmem.spec import AllmemSettings
from infinimem.strategies.allmem.strategy import UnitSearch
from infinimem.strategies.records.record import Link, Record, Ref, number_of, record_id
from infinimem.strategies.records.record_store import RecordStore, VectorIndex, puts
from infinimem.testing import ScriptedLLM


class Angles:
    """Gives "? …" one direction, a text whose last line is a number that cosine to it, and all else none."""

    name, size, semantic = "angles", 2, True

    def embed(self, texts: Sequence[str], kind: str = "passage") -> NDArray[np.float32]:
        return np.array([self._row(text.rsplit("\n", 1)[-1]) for text in texts], np.float32).reshape(-1, 2)

    def _row(self, last: str) -> tuple[float, float]:
        try:
            near = 1.0 if last.startswith("?") else float(last)
            return near, (1 - near**2) ** 0.5
        except (ValueError, TypeError):
            return 0.0, 0.0


class Measured:
    """A library of units under construction."""

    def __init__(self) -> None:
        self.library = Library()
        self.bank = RecordStore(self.library.view())

    def turn(self, text: str, near: float, time: str | None = None, visible: bool = True) -> str:
        """A turn and its unit."""
        (place,) = self.library.say(text, **({"time": time} if time else {}))
        self.bank.view = self.library.view()
        return self._put(
            Record(
                record_id("u", place.seq),
                ALLMEM,
                str(near),
                (),
                time,
                "s1",
                (Ref(place.seq),),
                visible=visible,
            )
        )

    def split(self, name: str, *parts: tuple[str, float]) -> list[str]:
        """Siblings for these parts of a unit's text, linked to it and to each other; it is archived."""
        text, made = self.bank.text(name), []
        for part, near in parts:
            start = text.index(part)
            refs = self.bank.cut(name, start, start + len(part))
            fresh = self.bank.new_id("u", number_of(name)[0])
            made.append(self._put(replace(self.bank.records[name], id=fresh, summary=str(near), refs=refs)))
        for one in made:
            self.link(one, "version", name)
            for other in made:
                if other != one:
                    self.link(one, "sibling", other)
        self.bank.archive(name)
        return made

    def merge(self, *names: str, near: float) -> str:
        """A representative for units, which are archived."""
        newest = max((self.bank.records[name] for name in names), key=lambda unit: unit.age)
        fresh = self.bank.new_id("u", number_of(newest.id)[0])
        self._put(replace(newest, id=fresh, summary=str(near), refs=(), sources=names, visible=True))
        for name in names:
            self.bank.archive(name)
            self.link(fresh, "version", name)
        return fresh

    def _put(self, unit: Record) -> str:
        self.bank.put(unit)
        return unit.id

    def link(self, source: str, kind: str, to: str) -> None:
        self.bank.link(source, Link(kind, to))

    def view(self) -> View:
        """With the units' files as they are now."""
        for doc_id in [doc_id for doc_id in self.library.documents if doc_id.startswith("allmem/")]:
            del self.library.documents[doc_id]
        for name, unit in self.bank.records.items():
            data = self.bank.render(name).encode()
            self.library.documents[unit.doc_id] = Document.parse(unit.doc_id, data)
        return self.library.view()

    def retrieve(self, query: str = "?", budget: int = 1000, **settings: Any) -> Evidence:
        return self._search(query, budget, AllmemSettings(**{**PAPER, **settings})).by_rank()

    def block(self, query: str = "?", budget: int = 4096, **settings: Any) -> Evidence:
        own = AllmemSettings(**{**PAPER, **settings})
        return self._search(query, min(budget, own.block_tokens), own).for_answer()

    def _search(self, query: str, budget: int, own: AllmemSettings) -> UnitSearch:
        space = VectorIndex(Vectors(None, Angles()))
        space.sync(self.bank)
        return UnitSearch(self.view(), (self.bank, space), query, budget, own, ScriptedLLM({}))


def texts(evidence: Evidence) -> list[str]:
    return [item.text for item in evidence.items]


def stage(evidence: Evidence, name: str) -> Stage:
    """A step of the trace."""
    return next(step for step in evidence.trace if step.stage == name)


def units(evidence: Evidence, name: str) -> list[str]:
    """The units that a step of the trace names."""
    return [unit.id for unit in stage(evidence, name).found]


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


# ── on disk ─────────────────────────────────────────────────────────────────────────────────────────


def told(root: Path, strategy: str = "allmem") -> Memory:
    memory = open_memory(root, model="offline", strategy=strategy, create=True, embedder="lexical")
    talk = (
        ("I moved to Lisbon.", "user"),
        ("Peanuts make you ill.", "assistant"),
        ("I play chess.", "user"),
    )
    memory.observe(
        Turn(text, role=role, session="s1", time=f"2025-01-0{day}")
        for day, (text, role) in enumerate(talk, 1)
    )
    return memory


def test_a_turn_whose_unit_a_person_made_unreadable_is_found(tmp_path: Path) -> None:
    memory = told(tmp_path)
    path = tmp_path / "allmem/units/u-000003.md"
    path.write_text(path.read_text().replace("kind: unit", "kind: mine"))
    assert memory.status()["units"] == 2
    for found in (memory.retrieve("Who plays chess?"), memory.read("Who plays chess?")):
        assert [item.origin for item in found.items if "I play chess." in item.text] == [(3,)]


def test_what_stands_for_units_of_other_sources_hides_none_of_those_that_are_asked_for(
    tmp_path: Path,
) -> None:
    memory = told(tmp_path)
    view = memory.view
    bank = RecordStore.load(view)
    one, two = sorted(bank.records)[1:]
    merged = replace(bank.records[two], id=bank.new_id("u", 3), refs=(), sources=(one, two))
    after = bank.copy()
    after.put(merged)
    for name in (one, two):
        after.archive(name)
        after.link(merged.id, Link("version", name))
    plan = Plan(op="consolidate", records=puts(bank, after))
    assert isinstance(memory.library.apply(plan, base=view, strategy="allmem", model="m"), Applied)
    assert {item.seqs for item in memory.retrieve("chess peanuts").items} == {(1,), (2,), (3,)}
    assert texts(memory.retrieve("chess", sources=["user"])) == ["I play chess.", "I moved to Lisbon."]
    assert texts(memory.read("chess", sources=["AI"])) == ["Peanuts make you ill."]


# ── by rules alone ───────────────────────────────────────────────────────────────────────────────────


FACTS = (
    "The capital of Chad is Abeche.",
    "Lou Reed was born in the city of Brooklyn.",
    "The author of Emma is Jane Austen.",
    "The capital of Chad is N'Djamena.",
    "The author of Emma is Jane Austen.",
)


def heard(root: Path, *texts: str, session: str = "s1", **about: str) -> Memory:
    memory = open_memory(root, model="offline", strategy="allmem", create=True, embedder="lexical")
    memory.observe([Turn(text, session=session, **about) for text in texts])
    memory.consolidate()
    return memory


def test_rules_archive_nothing(tmp_path: Path) -> None:
    memory = heard(tmp_path, *FACTS)
    counts = memory.status()
    assert counts["archived"] == 0
    assert "N'Djamena" in memory.ask("What is the capital of Chad?").text


def test_what_two_people_say_of_themselves_stays_apart(tmp_path: Path) -> None:
    memory = open_memory(tmp_path, model="offline", strategy="allmem", create=True, embedder="lexical")
    for speaker, place in (("Ann", "Lisbon"), ("Rita", "Porto")):
        memory.observe([Turn(f"I live in {place}.", speaker=speaker, session="s1")])
    memory.consolidate()
    assert memory.status()["archived"] == 0
