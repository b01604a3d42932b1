"""What can be reached from the surface, on banks small enough to count by hand."""

from __future__ import annotations

import json
from itertools import pairwise

from allmem_measured import Measured

from infinimem.strategies.allmem.spec import SPEC as ALLMEM
from infinimem.strategies.records.figures import counts
from infinimem.strategies.records.record_store import RecordStore


def test_an_empty_bank_has_nothing_to_recover() -> None:
    found = counts(RecordStore(ALLMEM, lambda seq: None), "version")
    assert (found["units"], found["archived"], found["visible_ratio"]) == (0, 0, 1.0)
    assert found["links"] == {"version": 0, "sibling": 0, "temporal": 0, "semantic": 0}
    nothing = {"unreachable": 0, "coverage": [], "h95": None}
    assert found["recovery"] == {"version": nothing, "all": nothing}


def test_archived_units_are_counted_by_their_distance_along_version_links_and_along_all() -> None:
    kept = Measured()
    names = [kept.turn(f"turn {number}", 0.5) for number in range(6)]
    for one, two in pairwise(names[:4]):  # a path of three archived units
        kept.link(one, "version", two)
        kept.bank.archive(two)
    kept.link(names[0], "semantic", names[3])
    kept.bank.archive(names[4])  # only a semantic link leads there
    kept.link(names[5], "semantic", names[4])
    kept.link(names[5], "temporal", names[0])
    found = counts(kept.bank, "version")
    assert (found["units"], found["visible"], found["archived"]) == (6, 2, 4)
    assert found["visible_ratio"] == 0.3333
    assert found["links"] == {"version": 3, "sibling": 0, "temporal": 1, "semantic": 2}
    assert found["recovery"] == {
        "version": {"unreachable": 1, "coverage": [0.0, 0.25, 0.5, 0.75], "h95": None},
        "all": {"unreachable": 0, "coverage": [0.0, 0.75, 1.0], "h95": 2},
    }
    assert json.loads(json.dumps(found)) == found


def test_splits_and_merges_leave_all_within_reach() -> None:
    kept = Measured()
    one, two = kept.turn("tea. cat.", 0.5), kept.turn("more tea.", 0.5)
    tea, cat = kept.split(one, ("tea.", 0.5), ("cat.", 0.5))
    kept.merge(tea, two, near=0.5)
    found = counts(kept.bank, "version")
    assert (found["visible"], found["archived"]) == (2, 3)
    version = found["recovery"]["version"]
    assert version == {"unreachable": 0, "coverage": [0.0, 1.0], "h95": 1}  # the sibling stands for the turn
    kept.bank.archive(cat)  # nothing stands for it: only its sibling, archived too, leads there
    found = counts(kept.bank, "version")["recovery"]
    assert found["version"] == {"unreachable": 1, "coverage": [0.0, 0.5, 0.75], "h95": None}
    assert found["all"] == {"unreachable": 0, "coverage": [0.0, 0.5, 1.0], "h95": 2}
