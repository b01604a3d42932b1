"""Each formula of xMemory by itself, against figures that were worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import count, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from infinimem.llm.base import Reply
from infinimem.strategies.xmemory.gate import Probe, admitted, uncertainty
from infinimem.strategies.xmemory.objective import (
    Theme,
    bell,
    nearest,
    objective,
    semantics,
    sparsity,
)
from infinimem.strategies.xmemory.partition import Partition
from infinimem.strategies.xmemory.select import gain, min_max, normaliser, pick
from infinimem.strategies.xmemory.spec import XmemorySettings, scaled
from infinimem.strategies.xmemory.split import candidates, components, means, runs


def rows(*degrees: float) -> NDArray[np.float64]:
    """Vectors of these directions in a plane."""
    return np.array([(math.cos(math.radians(one)), math.sin(math.radians(one))) for one in degrees])


def themes(*degrees: tuple[float, ...]) -> list[Theme]:
    return [Theme.of(rows(*those)) for those in degrees]


class TestObjective:
    def test_sparsity_is_one_for_themes_of_one_size_and_less_for_others(self) -> None:
        assert sparsity([4]) == sparsity([1, 1]) == sparsity([5, 5, 5]) == 1
        assert sparsity([3, 1]) == pytest.approx(16 / (2 * 10))
        assert sparsity([6, 2, 1]) == pytest.approx(81 / (3 * 41))

    def test_cohesion_is_the_mean_cosine_to_the_centre(self) -> None:
        theme = Theme.of(rows(0, 60))
        assert theme.centre == pytest.approx(rows(30)[0])
        assert theme.cohesion == pytest.approx(math.cos(math.radians(30)))
        assert Theme.of(rows(0, 90, 90)).cohesion == pytest.approx(math.sqrt(5) / 3)
        assert Theme.of(rows(0, 180)).cohesion == 0 and Theme.of(np.zeros((2, 2))).cohesion == 0

    def test_s_is_the_cosine_of_the_nearest_other_centre(self) -> None:
        assert nearest(rows(0, 60, 90)) == pytest.approx([0.5, math.sqrt(3) / 2, math.sqrt(3) / 2])
        assert list(nearest(rows(70))) == [0]

    def test_the_bell_is_one_at_the_median_and_falls_on_both_sides(self) -> None:
        found = bell(np.array([0.5, 0.9, 0.7]))  # m = .7, sigma = .2 + .001
        assert found == pytest.approx([math.exp(-0.04 / (2 * 0.201**2))] * 2 + [1])
        assert bell(np.array([0.4])) == pytest.approx([1])
        assert bell(np.array([0.4, 0.4, 0.4, 0.41])) == pytest.approx([1, 1, 1, math.exp(-(0.01**2) / 2e-6)])

    def test_f_is_the_sum_of_both(self) -> None:
        assert objective(themes((0,), (60,))) == 2  # even, coherent, equally near
        assert objective(themes((0, 60))) == pytest.approx(1 + math.cos(math.radians(30)), abs=1e-6)
        three = themes((0, 0, 0), (60,), (90,))
        s = np.array([0.5, math.sqrt(3) / 2, math.sqrt(3) / 2])
        assert semantics(three) == pytest.approx(np.mean(bell(s)))
        assert objective(three) == pytest.approx(25 / (3 * 11) + np.mean(bell(s)), abs=1e-6)
        assert objective(()) == 0

    def test_purity_is_the_mean_cosine_of_pairs(self) -> None:
        assert Theme.of(rows(0, 60, 120)).purity == pytest.approx((0.5 + 0.5 - 0.5) / 3)
        assert Theme.of(rows(10)).purity == 1


class TestSplit:
    def test_components_hang_together_and_are_cut_at_the_cap_by_age(self) -> None:
        found = components(rows(0, 90, 10, 100, 20), math.cos(math.radians(11)), 12)
        assert found == [[0, 2, 4], [1, 3]]
        assert components(rows(0, 90, 10, 100, 20), math.cos(math.radians(11)), 2) == [[0, 2], [4], [1, 3]]

    def test_runs_follow_the_first_principal_axis(self) -> None:
        line = np.array([[5.0, 0.1], [1.0, 0.0], [4.0, 0.0], [2.0, 0.1], [3.0, 0.0]])
        assert runs(line, 2) == [[1, 3], [2, 4], [0]] and runs(line, 12) == [[1, 3, 4], [0, 2]]

    def test_means_begin_with_the_farthest_pair(self) -> None:
        assert means(rows(0, 5, 90, 95), 2) == [[0, 1], [2, 3]]
        assert means(rows(0, 5, 50, 90, 95), 3) == [[0, 1], [3, 4], [2]]
        assert means(rows(7, 7, 7), 3) == [[0, 1, 2]]

    @given(st.lists(st.integers(0, 359), min_size=2, max_size=30), st.integers(1, 12), st.floats(0, 1))
    def test_every_candidate_is_a_partition_within_the_cap(
        self, degrees: list[int], cap: int, edge: float
    ) -> None:
        found = candidates(rows(*degrees), cap, edge)
        assert found
        for parts in found:
            assert sorted(one for part in parts for one in part) == [*range(len(degrees))]
            assert len(parts) > 1 and all(1 <= len(part) <= cap for part in parts)


class TestPick:
    NEAR = ({0: 1.0, 1: 0.5}, {1: 1.0, 0: 0.5, 2: 0.25}, {2: 1.0})

    def test_shares_run_from_the_least_to_the_largest(self) -> None:
        assert min_max([2, 4, 3]) == [0, 1, 0.5] and min_max([7, 7]) == [0.5, 0.5] and min_max([]) == []

    def test_z_is_the_largest_sum_or_the_sum_of_all(self) -> None:
        assert normaliser(self.NEAR, "max") == 1.75 and normaliser(self.NEAR, "total") == 4.25

    def test_coverage_counts_what_is_not_covered_yet(self) -> None:
        assert gain(self.NEAR[1], (), 1.75) == 1
        assert gain(self.NEAR[1], {0, 1}, 1.75) == pytest.approx(0.25 / 1.75)

    def test_each_step_takes_the_largest_sum_of_both_terms(self) -> None:
        # .7 * (1.5, 1.75, 1) / 1.75 + .3 * (1, 0, .5): .9, .7, .55; then .7 * (.25, 1) / 1.75: .1, .4 + .15
        assert pick([0.9, 0.1, 0.5], self.NEAR, 3, 0.7) == [0, 2]
        assert pick([0.9, 0.1, 0.5], self.NEAR, 1, 0.7) == [0]
        assert pick([0.9, 0.1, 0.5], self.NEAR, 3, 0.0) == [0, 2]
        assert pick([0.9, 0.1, 0.5], self.NEAR, 3, 1.0) == [1]  # it covers all
        assert pick([], (), 3, 0.7) == []

    def test_of_two_twins_one_is_taken_and_another_component_before_the_second(self) -> None:
        twins = ({0: 1.0, 1: 0.99}, {1: 1.0, 0: 0.99}, {2: 1.0})
        assert pick([0.9, 0.89, 0.3], twins, 3, 0.7) == [0, 2]
        many = [{at: 1.0, 1 - at: 0.99} if at < 2 else {at: 1.0} for at in range(12)]
        total = pick([0.9, 0.89, *[0.3] * 10], many, 3, 0.7, kind="total")
        assert total[:2] == [0, 1]  # under the published code's Z nearness alone counts


class TestGate:
    def test_uncertainty_is_the_mean_over_the_tokens_of_the_answer(self) -> None:
        told = (('{"', -9.0), ("answer", -9.0), ('": "', -9.0), ("Lis", -1.0), ("bon", -0.5), ('"}', -9.0))
        assert uncertainty(Reply({}, logprobs=told)) == pytest.approx(0.75)
        assert uncertainty(Reply({}, logprobs=(("Lisbon", -2.0),))) == 2 and uncertainty(Reply({})) is None

    @pytest.mark.parametrize(
        ("gains", "shown", "probes"),
        [
            ("no", [0], 1),
            ("yes no", [0], 2),
            ("yes yes no", [0, 1], 3),
            ("yes yes yes no yes yes no yes", [0, 1, 2, 4, 5], 7),
            ("yes yes yes no yes", [0, 1, 2, 4], 5),
            ("", [], 0),
        ],
    )
    def test_probing_ends_at_one_failure_in_three_or_two_in_all(
        self, gains: str, shown: list[int], probes: int
    ) -> None:
        made: list[float] = []

        def each() -> Iterator[Probe]:
            for one in gains.split():
                made.append(1.0)
                yield 1.0, one == "yes", False

        found = admitted(each())
        assert [at for at, _ in found.shown] == shown and len(made) == len(found.gains) == probes
        assert bool(found.stop) == (probes < len(gains.split()) or gains.endswith("no"))


class Facts:
    """Facts f0, f1, … in these directions, put into a partition."""

    def __init__(self, *degrees: float, **own: Any) -> None:
        self._rows = rows(*degrees)
        self.own = scaled(XmemorySettings(**own), 1.0)
        self.names = [f"f{at:02d}" for at in range(len(degrees))]
        named = count()
        self.themes = Partition(
            {},
            lambda name: self._rows[int(name[1:])],
            lambda fact: f"t-{fact}-{next(named):04d}",
            lambda name: (name.split("-")[1:], name),
            self.own,
        )

    def put(self) -> Partition:
        for name in self.names:
            self.themes.attach(name)
        return self.themes


class TestPartition:
    def test_a_fact_joins_the_nearest_theme_and_with_room_a_less_near_one(self) -> None:
        cos = {one: math.cos(math.radians(one)) for one in (5, 20, 30)}
        near = Facts(0, 19, 60, attach=cos[20], attach_room=cos[20]).put()
        assert [*near.themes.values()] == [["f00", "f01"], ["f02"]]
        room = Facts(0, 0, 29, attach=cos[5], attach_room=cos[30], theme_max=3).put()
        full = Facts(0, 0, 29, attach=cos[5], attach_room=cos[30], theme_max=2).put()
        assert len(room.themes) == 1 and len(full.themes) == 2
        over = Facts(0, 0, 3, attach=cos[5], attach_room=cos[30], theme_max=2).put()
        assert len(over.themes) == 1  # near enough even without room: it is split then

    def test_of_equal_themes_the_smaller_takes_it(self) -> None:
        found = Facts(0, 0, 40, 20, attach=0.93, attach_room=0.93).put()
        assert [*found.themes.values()] == [["f00", "f01"], ["f02", "f03"]]

    def test_the_candidate_taken_has_the_largest_f_of_all_and_f_forces_no_split(self) -> None:
        facts = Facts(0, 4, 8, 90, 94, 98, 45, attach=-2, attach_room=-2, theme_max=6, purity=-2.0)
        assert facts.put().themes and len(facts.themes.themes) == 1
        facts.themes.split()
        (change,) = facts.themes.changes
        points = rows(0, 4, 8, 90, 94, 98, 45)
        scores = [
            objective([Theme.of(points[part]) for part in parts])
            for parts in candidates(points, 6, facts.own.edge)
        ]
        assert change.f_after == max(scores) and len(change.after) == len(facts.themes.themes)
        full = Facts(*[0] * 6, attach=-2, attach_room=-2, theme_max=6)
        full.put().split()
        assert not full.themes.changes

    def test_a_full_theme_that_is_not_pure_is_split(self) -> None:
        mixed = Facts(0, 0, 90, 90, attach=-2, attach_room=-2, theme_max=4, purity=0.5)
        mixed.put().split()
        assert sorted(mixed.themes.themes.values()) == [["f00", "f01"], ["f02", "f03"]]

    def test_a_gain_of_nothing_merges_nothing(self) -> None:
        apart = Facts(0, 20, attach=2, attach_room=2, merge_min=0.9, tiny_min=0.9)
        apart.put().merge()  # f of one theme of both is 1.98, of two it is 2
        assert len(apart.themes.themes) == 2 and not apart.themes.changes

    def test_the_merge_that_gains_most_is_made_and_the_larger_theme_survives(self) -> None:
        points = (0, 1, 2, 3, 90, 4)
        facts = Facts(*points, attach=0.9999, attach_room=0.9999, merge_min=0.99, tiny_min=0.99)
        before = {name: list(those) for name, those in facts.put().themes.items()}
        context = [Theme.of(rows(*(points[int(one[1:])] for one in those))) for those in before.values()]
        facts.themes.merge()
        for change in facts.themes.changes:
            assert change.f_after > change.f_before
        if facts.themes.changes:
            first = facts.themes.changes[0]
            gains = []
            names = [*before]
            for one, other in product(range(len(names)), repeat=2):
                if one < other and float(context[one].centre @ context[other].centre) >= 0.99:
                    joint = [*before[names[one]], *before[names[other]]]
                    rest = [theme for at, theme in enumerate(context) if at not in (one, other)]
                    whole = Theme.of(rows(*(points[int(fact[1:])] for fact in joint)))
                    gains.append(objective([whole, *rest]) - objective([context[one], context[other], *rest]))
            assert first.f_after - first.f_before == pytest.approx(max(gains), abs=2e-6)

    @given(
        st.lists(st.lists(st.integers(0, 359), min_size=1, max_size=9), max_size=8),
        st.integers(1, 12),
        st.floats(-1, 1),
    )
    def test_after_any_blocks_each_fact_is_in_one_theme_and_none_is_over_the_cap(
        self, blocks: list[list[int]], cap: int, attach: float
    ) -> None:
        facts = Facts(
            *(one for block in blocks for one in block),
            theme_max=cap,
            attach=attach,
            attach_room=attach - 0.1,
        )
        left = iter(facts.names)
        for block in blocks:
            for _ in block:
                facts.themes.attach(next(left))
            facts.themes.split()
            facts.themes.merge()
            assert all(1 <= len(those) <= cap for those in facts.themes.themes.values())
        found = [one for those in facts.themes.themes.values() for one in those]
        assert sorted(found) == facts.names
