"""Killed at any point of three appends and a consolidation, and of what mends that; or the disk refuses.

What a call returned is there, once; what failed says so in one line; opening the library mends it, the same
way however often; and doing the work again leads to the library of an undisturbed run.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import fault_strace as strace
import pytest
from cli_runner import Shell
from fault_disk import Crash, Hook, When, die, fail, hooked, nothing, short
from fault_library import parsed_once as parsed_once
from fault_library import problems
from fault_strace import traceable as traceable
from fault_work import acknowledged, append_to, copy, only_wrong, opened, state, work, wrong
from fault_work import expected as expected
from fault_work import prepared as prepared

from infinimem.errors import LibraryError

pytestmark = pytest.mark.usefixtures("parsed_once")


Told = dict[int, str]


def disturbed(root: Path, hook: Hook) -> tuple[Told, list[str], list[str]]:
    """Do the work until it dies or the disk refuses: what was acknowledged, the calls, wrong errors."""
    told: Told = {}
    wrong = []
    with hooked(hook) as calls:
        try:
            work(root, lambda lines: told.update((line.seq, line.text) for line in lines))
        except Crash:
            pass
        except LibraryError as error:
            wrong += ["an error of several lines"] if "\n" in str(error) else []
        except Exception as error:
            wrong.append(f"raised {error!r}")
    return told, calls, wrong


# ── in process, at the calls that change the disk ───────────────────────────────────────────────


WHENS: tuple[When, ...] = ("before", "half", "most", "after")


@pytest.mark.parametrize(
    ("when", "step"),
    [*((when, 9) for when in WHENS[:3]), *(pytest.param(when, 1, marks=pytest.mark.soak) for when in WHENS)],
)
def test_dead_at_any_call(
    when: When, step: int, prepared: Path, expected: dict[str, int], tmp_path: Path
) -> None:
    """Every `step`-th call, of writes those that "half" leaves to "most".

    That nothing happens after a call is the same as that the next one does not: "after" is soak.
    """
    _, calls, _ = disturbed(copy(prepared, tmp_path / "m"), nothing)
    assert len(calls) > 50
    violations = {}
    points = [(n, name) for n, name in enumerate(calls, 1) if name == "write" or when in ("before", "after")]
    for number, name in points[step - 1 if when == "most" else 0 :: step]:
        root = copy(prepared, tmp_path / "m")
        told, _, _ = disturbed(root, die(number, when))
        violations[f"{when} call {number}, {name}"] = wrong(root, told, expected)
    assert only_wrong(violations) == {}, f"of {len(violations)} points"


@pytest.mark.parametrize("step", [23, pytest.param(1, marks=pytest.mark.soak)])
def test_dead_at_any_call_of_the_recovery(
    step: int, prepared: Path, expected: dict[str, int], tmp_path: Path
) -> None:
    """Every `step`-th death of the consolidation, and after each a death at every call that mends it."""
    _, calls, _ = disturbed(copy(prepared, tmp_path / "m"), nothing)
    violations = {}
    tried = 0
    for first in range(len(calls), 0, -step):
        broken = copy(prepared, tmp_path / "broken")
        told, _, _ = disturbed(broken, die(first))
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


TRIES = 3
"""Runs that may live through a point, one after the other."""


@pytest.mark.usefixtures("traceable")
@pytest.mark.parametrize("count", [4, pytest.param(None, marks=pytest.mark.soak)])
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
        for _ in range(TRIES):  # by the clock one run makes some calls more than another
            told.unlink(missing_ok=True)
            copy(prepared, root)
            if died := strace.killed(job, point):
                break
        lived += [] if died else [point]
        found[point] = wrong(root, acknowledged(told), expected)
    assert len(lived) <= max(len(points) // 20, 1), lived
    assert only_wrong(found) == {}, f"of {len(found)} points"


CODES = (errno.ENOSPC, errno.EIO, errno.EROFS)
SOAK = pytest.mark.soak


# ── the library, in process ─────────────────────────────────────────────────────────────────────


Faults = Callable[[int], list[Hook]]
FAULTS: dict[str, Faults] = {
    "once": lambda number: [fail(number, code) for code in CODES],
    "half": lambda number: [fail(number, code, half=True) for code in CODES],
    "onward": lambda number: [fail(number, code, onward=True) for code in CODES],
    "half, onward": lambda number: [fail(number, code, onward=True, half=True) for code in CODES],
    "short": lambda number: [short(number)],
}


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=SOAK)])
@pytest.mark.parametrize("kind", FAULTS)
def test_the_disk_refuses(
    kind: str, every: bool, prepared: Path, expected: dict[str, int], tmp_path: Path
) -> None:
    """Every seventh call fails (or all from it on), or every third write, with one error number in turn;
    `every`: all, with each.
    """
    _, calls, _ = disturbed(copy(prepared, tmp_path / "m"), nothing)
    assert len(calls) > 50
    found = {}
    whole = kind in ("once", "onward")
    points = [(number, name) for number, name in enumerate(calls, 1) if whole or name == "write"]
    step = 1 if every else 7 if whole else 3
    for turn, (number, name) in enumerate(points[list(FAULTS).index(kind) % step :: step]):
        hooks = FAULTS[kind](number)
        for code, hook in enumerate(hooks):
            if every or code == turn % len(hooks):
                root = copy(prepared, tmp_path / "m")
                told, _, raised = disturbed(root, hook)
                found[f"{kind}: call {number}, {name}, {code}"] = raised + wrong(root, told, expected)
    assert only_wrong(found) == {}, f"of {len(found)} points"


@pytest.mark.parametrize("step", [19, pytest.param(1, marks=SOAK)])
def test_what_was_said_can_be_read_while_the_disk_refuses(step: int, prepared: Path, tmp_path: Path) -> None:
    """Whatever a crash left to finish: reading it needs no writing, and nothing is gone."""
    _, calls, _ = disturbed(copy(prepared, tmp_path / "m"), nothing)
    found = {}
    for number, name in list(enumerate(calls, 1))[::step]:
        root, told = copy(prepared, tmp_path / "m"), tmp_path / "told"
        told.unlink(missing_ok=True)
        with hooked(die(number)), suppress(Crash):
            work(root, append_to(told))
        with hooked(fail(1, errno.EROFS, onward=True)):
            try:
                view = opened(root).view()
            except (LibraryError, OSError) as error:
                found[f"call {number}, {name}"] = [str(error)]
                continue
            there = {
                place.text for scope in ("default", "archive", "evidence") for place in view.entries(scope)
            }
        found[f"call {number}, {name}"] = sorted({*acknowledged(told).values()} - there)
    assert only_wrong(found) == {}, f"of {len(found)} points"


# ── at system calls ─────────────────────────────────────────────────────────────────────────────

READS = "read pread64 lseek newfstatat statx access getdents64 close flock fcntl ioctl".split()


def errors(name: str, every: bool, number: int) -> Sequence[str]:
    """What a call may fail with."""
    if name in READS:
        return ("EIO",)
    return ("ENOSPC", "EIO", "EROFS") if every else (("ENOSPC", "EIO", "EROFS")[number % 3],)


@pytest.mark.parametrize("count", [4, pytest.param(None, marks=SOAK)])
def test_system_calls_fail(
    count: int | None, traceable: None, prepared: Path, expected: dict[str, int], tmp_path: Path
) -> None:
    """Reading fails as well here: every call that reaches a file, closing it included."""
    root, told = tmp_path / "m", tmp_path / "told"

    def job() -> None:
        work(root, append_to(told))

    copy(prepared, root)
    found = {}
    for point in strace.chosen(strace.points(job), count):
        for error in errors(point[0], count is None, point[1]):
            told.unlink(missing_ok=True)
            copy(prepared, root)
            why = strace.failed(job, point, error).splitlines()
            raised = [] if not why or why[-1].startswith("infinimem.errors.") else why[-5:]
            found[point, error] = raised + wrong(root, acknowledged(told), expected)
    assert only_wrong(found) == {}, f"of {len(found)} points"


# ── the command line, in process ────────────────────────────────────────────────────────────────

CHAT = [
    {"role": "user", "content": "I moved to Lisbon in March.", "session": "s1", "time": "2025-03-03"},
    {"role": "assistant", "content": "Lisbon it is.", "session": "s1", "time": "2025-03-03"},
    {"role": "user", "content": "My sister Ana paints boats.", "session": "s2", "time": "2025-04-01"},
]
COMMANDS = {
    "add": ("add", "My bike is red.", "--session", "s0", "--time", "2025-03-02", "--key", "k"),
    "import": ("import", "../chat.json"),
    "consolidate": ("consolidate",),
}


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    (tmp_path / "chat.json").write_text(json.dumps(CHAT))
    shell = Shell(tmp_path, monkeypatch)
    with hooked(nothing):
        assert shell("init", "../before").code == 0
        assert shell("--library", "../before", "add", "I drink tea.", "--time", "2025-03-01").code == 0
        assert shell("--library", "../before", "consolidate").code == 0
        assert shell("--library", "../before", "add", "Ana has a cat.", "--time", "2025-03-01").code == 0
    return shell


@pytest.mark.sample(3)
@pytest.mark.parametrize("step", [3, pytest.param(1, marks=SOAK)])
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("onward", [False, True])
def test_a_command_on_a_disk_that_refuses(
    command: str, onward: bool, step: int, shell: Shell, tmp_path: Path
) -> None:
    """Every `step`-th call of the command fails; the same command again goes through."""
    before, root = tmp_path / "before", tmp_path / "m"
    call = ("--model", "offline", "--library", str(root), *COMMANDS[command])
    told = acknowledged_in(before)
    copy(before, root)
    with hooked(nothing) as calls:
        assert shell(*call).code == 0
    expected = state(root)
    found = {}
    for number, name in list(enumerate(calls, 1))[::step]:
        copy(before, root)
        with hooked(fail(number, CODES[number % len(CODES)], onward=onward)):
            ran = shell(*call)
        violations = [] if ran.code == 0 else refused(ran.code, ran.out, ran.err)
        with hooked(nothing):
            violations += problems(root, told)
            again = shell(*call)
            violations += problems(root, told)
        if again.code or state(root) != expected:
            violations += [f"again: {again}", *map(str, state(root).items() ^ expected.items())]
        found[f"call {number}, {name}"] = violations
    assert only_wrong(found) == {}, f"of {len(found)} points"


def refused(code: int, out: str, err: str) -> list[str]:
    """What is wrong with how a command failed."""
    one_line = err.startswith("error: ") and err.count("\n") == 1
    return [] if (code, out) == (1, "") and one_line else [f"exit code {code}, {out!r}, {err!r}"]


def acknowledged_in(root: Path) -> Told:
    from infinimem.store.library import Library

    view = Library(root).view()
    return {place.seq: place.text for scope in ("default", "evidence") for place in view.entries(scope)}
