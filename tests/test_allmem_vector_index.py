"""Vectors of units: exact neighbours with fixed ties, the same however the space came about."""

from __future__ import annotations

import random
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from allmem_library import Library, banked
from in_memory import view_of

from infinimem.embedders.lexical import Lexical
from infinimem.model import Plan
from infinimem.retrieval.vectors import vectors_of
from infinimem.strategies.allmem.spec import SPEC as ALLMEM
from infinimem.strategies.allmem.unit import SURFACE
from infinimem.strategies.records.record import Record, number_of, record_id
from infinimem.strategies.records.record_store import RecordStore, puts
from infinimem.strategies.vector_index import Loaded, VectorIndex

WORDS = "rome oslo chess tea cat dog car tram bread violin sea hill".split()


def many(count: int, seed: int = 1) -> RecordStore:
    chance = random.Random(seed)
    bank = RecordStore(ALLMEM, lambda seq: None)
    for number in range(1, count + 1):
        words = chance.choices(WORDS, k=4)
        bank.put(
            Record(
                record_id("u", number), ALLMEM, " ".join(words), (words[0],), visible=chance.random() < 0.7
            )
        )
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
        names = [name for name in bank.records if archived or name in bank.visible]
        scores = {name: round(float(np.dot(space.row(name).astype(float), query)), 6) for name in names}
        best = sorted(names, key=lambda name: (-scores[name], number_of(name)))
        found = space.nearest(query, 40, ALLMEM.record_folders if archived else SURFACE)
        assert [name for name, _ in found] == best[:40]
        assert [score for _, score in found] == [scores[name] for name in best[:40]]
    without = {name for name, _ in space.nearest(query, 3, SURFACE)}
    assert [name for name, _ in space.nearest(query, 5, SURFACE, without=without)] == [
        name for name, _ in space.nearest(query, 8, SURFACE) if name not in without
    ]


def test_ties_go_by_number_where_numbers_have_more_figures() -> None:
    bank = RecordStore(ALLMEM, lambda seq: None)
    names = [
        record_id("u", 999_999),
        record_id("u", 1_000_000),
        record_id("u", 1_000_000, 99),
        record_id("u", 1_000_000, 100),
    ]
    for name in reversed(names):
        bank.put(Record(name, ALLMEM, "chess", ("chess",)))
    space = spaced(bank)
    assert [name for name, _ in space.nearest(space.embed("chess"), 4, SURFACE)] == names


def test_a_space_that_followed_edits_equals_a_new_one() -> None:
    chance = random.Random(2)
    bank = many(60)
    space = spaced(bank)
    for step in range(60):
        name = chance.choice(sorted(bank.records))
        unit = bank.records[name]
        if step % 4 == 0:
            bank.put(replace(unit, visible=not unit.visible))
        elif step % 4 == 1:
            bank.put(replace(unit, summary=f"{chance.choice(WORDS)} {step}"))
        elif step % 4 == 2:
            name = record_id("u", 1000 + step)
            bank.put(Record(name, ALLMEM, chance.choice(WORDS), ()))
        else:
            del bank.records[name]
        space.sync(bank, [name])
    fresh = spaced(bank)
    for words in WORDS:
        query = space.embed(words)
        assert space.nearest(query, 9, ALLMEM.record_folders) == fresh.nearest(
            query, 9, ALLMEM.record_folders
        )
        assert space.nearest(query, 9, SURFACE) == fresh.nearest(query, 9, SURFACE)
    one, two = sorted(bank.records)[:2]
    assert space.cos(one, two) == space.cos(two, one) == fresh.cos(one, two)


def test_a_space_that_followed_a_trial_is_set_right_for_the_next_who_asks() -> None:
    library = Library()
    library.say("chess in oslo", "tea in rome")
    bank, _ = banked(library, ("chess", "chess in oslo"), ("tea", "tea in rome"))
    library.apply(Plan("write", records=puts(library.bank(), bank)))
    view, loaded = library.view(), Loaded()
    with loaded.at(view) as (known, space):
        whole = space.nearest(space.embed("violin"), 9, ALLMEM.record_folders)
        trial = known.copy()
        trial.put(Record("u-000009", ALLMEM, "violin", ()))
        space.sync(trial, ["u-000009"])
        assert "u-000009" in dict(space.nearest(space.embed("violin"), 9, SURFACE))
    for _ in range(2):
        with loaded.at(view) as (_, space):
            assert space.nearest(space.embed("violin"), 9, ALLMEM.record_folders) == whole


def test_only_texts_that_changed_are_embedded() -> None:
    asked: list[str] = []

    class Asked(Lexical):
        def embed(self, texts: Sequence[str]) -> Any:
            asked.extend(texts)
            return super().embed(texts)

    bank = many(20)
    space = VectorIndex.of(view_of({}, embedder=Asked))
    space.sync(bank)
    assert sorted(asked) == sorted(unit.text for unit in bank.records.values())
    asked.clear()
    space.sync(bank)
    bank.archive("u-000001")
    space.sync(bank)
    bank.put(Record("u-000050", ALLMEM, "new", ()))
    space.sync(bank)
    assert asked == [bank.records["u-000050"].text]


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
    assert space.nearest(space.embed(""), 3, SURFACE) == []
    assert spaced(RecordStore(ALLMEM, lambda seq: None)).nearest(space.embed("tea"), 3, SURFACE) == []


def test_neighbours_are_those_of_a_full_comparison_after_inserts_and_a_deletion() -> None:
    bank = many(40)
    space = spaced(bank)
    for number in range(100, 160):
        bank.put(Record(record_id("u", number), ALLMEM, f"{WORDS[number % 12]} {number}"))
        space.sync(bank, [record_id("u", number)])
    del bank.records["u-000007"]
    space.sync(bank, ["u-000007"])
    found = space.neighbours(sorted(bank.records), 10)
    for name, near in found.items():
        folder = bank.records[name].folder
        others = [one for one, record in bank.records.items() if record.folder == folder and one != name]
        cosines = dict(zip(others, space.cosines(space.row(name), others), strict=True))
        assert near == sorted(cosines.items(), key=lambda one: (-one[1], number_of(one[0])))[:10]


def test_after_a_forget_all_are_found_where_they_stand_then(tmp_path: Path) -> None:
    bank = many(30)
    view = view_of({}, embedder=Lexical, root=str(tmp_path))
    space = VectorIndex.of(view)
    space.sync(bank)
    query = space.embed("chess in oslo")
    whole = space.nearest(query, 30, ALLMEM.record_folders)
    vectors = vectors_of(str(tmp_path), Lexical())
    folder = vectors.folder()
    assert folder
    shutil.rmtree(folder)
    vectors.add(["something else", "and more"])
    bank.put(Record("u-000050", ALLMEM, "zebra", ("zebra",)))
    space.sync(bank, ["u-000050"])
    found = space.nearest(query, 31, ALLMEM.record_folders)
    assert [one for one in found if one[0] != "u-000050"] == whole
