"""The run of the tests itself: a test that hangs or breaks the report fails alone, and skips are counted."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TESTS = """
import contextlib, time
import pytest
from hypothesis import given, strategies as st

@pytest.mark.timeout(0.2)
@given(st.integers())
def test_hangs(number):
    with contextlib.suppress(Exception):
        time.sleep(600)

def lineless():
    raise ValueError("from a line that is not known")

NO_LINE = 0x80 | 15 << 3 | 7  # for eight instructions, in Objects/locations.md of CPython
size = -(-len(lineless.__code__.co_code) // 16)
lineless.__code__ = lineless.__code__.replace(co_linetable=bytes([NO_LINE] * size))

def test_fails_without_a_line():
    lineless()

def test_goes_on():
    pass

@pytest.mark.parametrize("number", [1, 2])
def test_needs_what_is_not_here(number):
    pytest.skip("no engine here")
"""


def test_a_hung_test_fails_alone_a_failure_is_reported_and_skips_are_counted(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["hung"]\n')
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-o", "timeout=600", "test_it.py"]
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    ran = subprocess.run(
        command, cwd=tmp_path, env={"PYTHONPATH": path, "HOME": str(tmp_path)}, capture_output=True, text=True
    )
    assert "2 failed, 1 passed, 2 skipped" in ran.stdout, ran.stdout + ran.stderr
    assert "INTERNALERROR" not in ran.stdout
    assert "test_hangs took longer than 0.2 s" in ran.stdout
    assert "ValueError: from a line that is not known" in ran.stdout
    assert "2 skipped: no engine here" in ran.stdout
