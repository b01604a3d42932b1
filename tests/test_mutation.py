"""The list of faults fits the code, and the script that puts them in tells what notices them."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter

import mutate
import pytest
from mutation import CHECKOUT, Mutant, listed, problem, systematic

SCRIPT = CHECKOUT / "tests" / "mutate.py"
ROWS = listed()


def test_every_row_fits_the_code() -> None:
    """A row whose `old` is gone: write it anew for the code as it is now, or drop it."""
    assert {str(mutant): why for mutant in ROWS if (why := problem(mutant))} == {}
    assert [name for name, times in Counter(map(str, ROWS)).items() if times > 1] == []


@pytest.mark.parametrize(
    ("old", "new", "tests", "why"),
    [
        ("no such code", "x", ("test_law.py",), "stands 0 times"),
        ("return", "yield", ("test_law.py",), "times"),
        ("def conserved(", "def conserved((", ("test_law.py",), "does not compile"),
        ('"""The law:', '"""The law:', ("test_law.py",), "changes nothing"),
        ("def conserved(", "def other(", ("test_none.py",), "no test_none.py"),
        ("def conserved(", "def other(", (), "names no tests"),
    ],
)
def test_a_row_that_is_no_mutant_is_told(old: str, new: str, tests: tuple[str, ...], why: str) -> None:
    assert why in problem(Mutant("x", "y", "law.py", old, new, tests, ""))


def test_mutants_are_made_of_every_kind_and_each_compiles() -> None:
    made = [
        mutant
        for name in ("law.py", "grounding/claims.py")
        for mutant in systematic(CHECKOUT / "infinimem" / name, "law", ("test_law.py",))
    ]
    whys = [mutant.why.partition(": ")[2] for mutant in made]
    assert "`add.to != CURRENT` became `((add.to) == (CURRENT))`" in whys
    assert "`not add.origin` became `(add.origin)`" in whys
    assert "`left.update(added)` became `pass`" in whys
    assert "`a or b` became `(a and b)`" in whys
    assert "`a or b` became `(a)`" in whys
    assert "`80` became `(81)`" in whys
    for mutant in made:
        ast.parse(mutant.new)
    assert [problem(mutant) for mutant in made[::100]] == [""] * len(made[::100])


def test_a_sample_is_the_same_for_the_same_seed() -> None:
    one, again, other = (mutate.sampled(["law", "store/state"], 5, seed) for seed in (1, 1, 2))
    assert one == again != other
    assert len({mutant.file for mutant in mutate.sampled(["store/state"], 500, 1)}) > 5


def test_what_notices_a_fault_is_told_and_the_checkout_stays_as_it_is() -> None:
    (fault,) = [mutant for mutant in ROWS if str(mutant) == "grounding/annual-ann"]
    before = fault.path().read_bytes()
    ran = subprocess.run(
        [sys.executable, str(SCRIPT), "--id", str(fault), "--jobs", "1"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith(
        "grounding/annual-ann: noticed by test_grounding_claims.py::test_what_a_model_says_must_be_borne_out"
    )
    assert "| grounding | 1 | 1 | 0 |" in ran.stdout
    assert fault.path().read_bytes() == before
