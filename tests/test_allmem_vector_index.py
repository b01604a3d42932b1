"""Vectors of units: exact neighbours with fixed ties, the same however the space came about."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from allmem_library import Library, banked
from in_memory import view_of

from infinimem.embedders.lexical import Lexical
from infinimem.model import Plan
from infinimem.strategies.allmem.record_store import RecordStore, puts
from infinimem.strategies.allmem.unit import Unit, number_of, unit_id
from infinimem.strategies.allmem.vector_index import Loaded, VectorIndex

WORDS = "rome oslo chess tea cat dog car tram bread violin sea hill".split()


def many(count: int, seed: int = 1) -> RecordStore:
    chance = random.Random(seed)
    bank = RecordStore(lambda seq: None)
    for number in range(1, count + 1):
        words = chance.choices(WORDS, k=4)
        bank.put(Unit(unit_id(number), " ".join(words), (words[0],), visible=chance.random() < 0.7))
    return bank


def spaced(bank: RecordStore) -> VectorIndex:
    space = VectorIndex.of(Library().view())
    space.sync(bank)
    return space


def test_the_nearest_are_those_of_a_full_comparison_with_ties_by_creation() -> None:
    bank = many(300)
    space = spaced(bank)
    query = space.embed("chess in oslo, rome rome")
    for archived in (False, True):
        names = [name for name in bank.units if archived or name in bank.visible]
        scores = {name: round(float(np.dot(space.row(name).astype(float), query)), 6) for name in names}
        best = sorted(names, key=lambda name: (-scores[name], number_of(name)))
        found = space.nearest(query, 40, archived=archived)
        assert [name for name, _ in found] == best[:40]
        assert [score for _, score in found] == [scores[name] for name in best[:40]]
    without = {name for name, _ in space.nearest(query, 3)}
    assert [name for name, _ in space.nearest(query, 5, without=without)] == [
        name for name, _ in space.nearest(query, 8) if name not in without
    ]


def test_ties_go_by_number_where_numbers_have_more_figures() -> None:
    bank = RecordStore(lambda seq: None)
    names = [unit_id(999_999), unit_id(1_000_000), unit_id(1_000_000, 99), unit_id(1_000_000, 100)]
    for name in reversed(names):
        bank.put(Unit(name, "chess", ("chess",)))
    space = spaced(bank)
    assert [name for name, _ in space.nearest(space.embed("chess"), 4)] == names


def test_a_space_that_followed_edits_equals_a_new_one() -> None:
    chance = random.Random(2)
    bank = many(60)
    space = spaced(bank)
    for step in range(60):
        name = chance.choice(sorted(bank.units))
        unit = bank.units[name]
        if step % 4 == 0:
            bank.put(replace(unit, visible=not unit.visible))
        elif step % 4 == 1:
            bank.put(replace(unit, summary=f"{chance.choice(WORDS)} {step}"))
        elif step % 4 == 2:
            name = unit_id(1000 + step)
            bank.put(Unit(name, chance.choice(WORDS), ()))
        else:
            del bank.units[name]
        space.sync(bank, [name])
    fresh = spaced(bank)
    for words in WORDS:
        query = space.embed(words)
        assert space.nearest(query, 9, archived=True) == fresh.nearest(query, 9, archived=True)
        assert space.nearest(query, 9) == fresh.nearest(query, 9)
    one, two = sorted(bank.units)[:2]
    assert space.cos(one, two) == space.cos(two, one) == fresh.cos(one, two)


def test_a_space_that_followed_a_trial_is_set_right_for_the_next_who_asks() -> None:
    library = Library()
    library.say("chess in oslo", "tea in rome")
    bank, _ = banked(library, ("chess", "chess in oslo"), ("tea", "tea in rome"))
    library.apply(Plan("write", records=puts(library.bank(), bank)))
    view, loaded = library.view(), Loaded()
    with loaded.at(view) as (known, space):
        whole = space.nearest(space.embed("violin"), 9, archived=True)
        trial = known.copy()
        trial.put(Unit("u-000009", "violin", ()))
        space.sync(trial, ["u-000009"])
        assert "u-000009" in dict(space.nearest(space.embed("violin"), 9))
    for _ in range(2):
        with loaded.at(view) as (_, space):
            assert space.nearest(space.embed("violin"), 9, archived=True) == whole


def test_only_texts_that_changed_are_embedded() -> None:
    asked: list[str] = []

    class Asked(Lexical):
        def embed(self, texts: Sequence[str]) -> Any:
            asked.extend(texts)
            return super().embed(texts)

    bank = many(20)
    space = VectorIndex.of(view_of({}, embedder=Asked))
    space.sync(bank)
    assert sorted(asked) == sorted(unit.text for unit in bank.units.values())
    asked.clear()
    space.sync(bank)
    bank.archive("u-000001")
    space.sync(bank)
    bank.put(Unit("u-000050", "new", ()))
    space.sync(bank)
    assert asked == [bank.units["u-000050"].text]


def test_coherence_is_the_mean_over_pairs() -> None:
    library = Library()
    library.say("a", "b", "c")
    _, space = banked(library, ("tea", "tea"), ("tea", "tea"), ("zebra", "zebra"))
    names = ["u-000001", "u-000002", "u-000003"]
    far = space.cos("u-000001", "u-000003")
    assert space.coherence(names[:2]) == 1.0
    assert abs(space.coherence(names) - (1 + 2 * far) / 3) < 1e-6


def test_nothing_is_near_to_nothing() -> None:
    space = spaced(many(5))
    assert space.nearest(space.embed(""), 3) == []
    assert spaced(RecordStore(lambda seq: None)).nearest(space.embed("tea"), 3) == []
