"""Killed at any point of three appends and a consolidation, and again while that is mended.

What a call returned is there, once; opening the library mends it, the same way however often; and doing the
work again leads to the library of an undisturbed run.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import fault_strace as strace
import pytest
from fault_disk import Crash, Hook, When, die, hooked, nothing
from fault_library import parsed_once as parsed_once
from fault_strace import traceable as traceable
from fault_work import acknowledged, append_to, copy, only_wrong, opened, work, wrong
from fault_work import expected as expected
from fault_work import prepared as prepared

pytestmark = pytest.mark.usefixtures("parsed_once")


def disturbed(root: Path, hook: Hook) -> tuple[dict[int, str], list[str]]:
    """Do the work; gives what was acknowledged, and the calls made until it died."""
    told: dict[int, str] = {}
    with hooked(hook) as calls, suppress(Crash):
        work(root, lambda lines: told.update((line.seq, line.text) for line in lines))
    return told, calls


# ── in process, at the calls that change the disk ───────────────────────────────────────────────


WHENS: tuple[When, ...] = ("before", "half", "most", "after")


@pytest.mark.parametrize(
    ("when", "step"),
    [*((when, 5) for when in WHENS[:3]), *(pytest.param(when, 1, marks=pytest.mark.soak) for when in WHENS)],
)
def test_dead_at_any_call(
    when: When, step: int, prepared: Path, expected: dict[str, int], tmp_path: Path
) -> None:
    """Every `step`-th call, of writes those that "half" leaves to "most".

    That nothing happens after a call is the same as that the next one does not: "after" is soak.
    """
    _, calls = disturbed(copy(prepared, tmp_path / "m"), nothing)
    assert len(calls) > 50
    violations = {}
    points = [(n, name) for n, name in enumerate(calls, 1) if name == "write" or when in ("before", "after")]
    for number, name in points[step - 1 if when == "most" else 0 :: step]:
        root = copy(prepared, tmp_path / "m")
        told, _ = disturbed(root, die(number, when))
        violations[f"{when} call {number}, {name}"] = wrong(root, told, expected)
    assert only_wrong(violations) == {}, f"of {len(violations)} points"


@pytest.mark.parametrize("step", [23, pytest.param(1, marks=pytest.mark.soak)])
def test_dead_at_any_call_of_the_recovery(
    step: int, prepared: Path, expected: dict[str, int], tmp_path: Path
) -> None:
    """Every `step`-th death of the consolidation, and after each a death at every call that mends it."""
    _, calls = disturbed(copy(prepared, tmp_path / "m"), nothing)
    violations = {}
    tried = 0
    for first in range(len(calls), 0, -step):
        broken = copy(prepared, tmp_path / "broken")
        told, _ = disturbed(broken, die(first))
        with hooked(nothing) as mending:
            opened(copy(broken, tmp_path / "m"))
        for second in range(1, len(mending) + 1):
            root = copy(broken, tmp_path / "m")
            with hooked(die(second)), pytest.raises(Crash):
                opened(root)
            violations[f"call {first}, {calls[first - 1]}, then {second}"] = wrong(root, told, expected)
            tried += 1
    assert tried > 10
    assert only_wrong(violations) == {}, f"of {len(violations)} points"


@pytest.mark.usefixtures("traceable")
@pytest.mark.parametrize("count", [6, pytest.param(None, marks=pytest.mark.soak)])
def test_killed_at_system_calls(
    count: int | None, prepared: Path, expected: dict[str, int], tmp_path: Path
) -> None:
    root, told = tmp_path / "m", tmp_path / "told"

    def job() -> None:
        work(root, append_to(told))

    copy(prepared, root)
    points = strace.chosen(strace.points(job), count)
    found, lived = {}, []
    for point in points:
        told.unlink(missing_ok=True)
        copy(prepared, root)
        lived += [] if strace.killed(job, point) else [point]
        found[point] = wrong(root, acknowledged(told), expected)
    # By the clock one run makes some calls more than another.
    assert len(lived) <= len(points) // 20, lived
    assert only_wrong(found) == {}, f"of {len(found)} points"
