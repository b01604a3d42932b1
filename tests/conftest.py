"""Fixtures that several test files share."""

from __future__ import annotations

import gc
import importlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType

import pytest
from cli_runner import Shell
from fleet_engines import Engines, missing, running
from hypothesis import HealthCheck, settings
from server import model_url as model_url

pytest_plugins = ["hung"]

# How long an example takes is no matter of the tests: the machine may be busy with other tests.
settings.register_profile("whole", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ordinary", settings.get_profile("whole"), max_examples=30)

LONGEST_SOAK = 12 * 3600
"""Seconds until one of the long forms counts as hung."""

MEMORY = Path("/dev/shm")
"""A file system in memory, where the system has one."""
ROOM = 2 << 30
"""Bytes that must be free there."""
ON_DISK = ("test_faults_", "test_retrieval_disk", "test_store_disk", "test_store_tails")
"""Files of tests that are about disks, by the beginning of their names."""


def pytest_configure(config: pytest.Config) -> None:
    """Take fewer examples without the long forms, keep bytecode, and put tmp_path in memory if there is room.

    Without bytecode every process that tests start compiles the package anew, and pytest rewrites every test
    anew: ten seconds a worker. In memory tests of the store take a fifth less time; PYTEST_DEBUG_TEMPROOT,
    pytest's own variable, names another place.
    """
    settings.load_profile("ordinary" if config.option.markexpr == "not soak" else "whole")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= ROOM:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """Pytest's own, but on a disk for tests that are about disks."""
    if not request.path.name.startswith(ON_DISK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave cases beyond a test's sample, which is spread evenly, to the long forms."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for some in cases.values():
        for number, item in enumerate(some):
            sample = item.get_closest_marker("sample")
            if sample and number * sample.args[0] % len(some) >= sample.args[0]:
                item.add_marker(pytest.mark.soak)
            if item.get_closest_marker("soak"):
                item.add_marker(pytest.mark.timeout(LONGEST_SOAK))


def pytest_collection_finish() -> None:
    """Look for garbage among what modules hold no more: it takes half a second each time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def engines() -> Iterator[Engines]:
    """A database server and an S3 for the whole run; a skip where they are not installed or do not start."""
    if reason := missing():
        pytest.skip(reason)
    with ExitStack() as stack:
        try:
            found = stack.enter_context(running())
        except Exception as error:
            pytest.skip(f"PostgreSQL or SeaweedFS does not start here: {' '.join(str(error).split())[:200]}")
        yield found


@pytest.fixture(scope="session", autouse=True)
def own_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Folders of the tests' own for cache, settings and trust: nobody's are touched."""
    with pytest.MonkeyPatch.context() as patch:
        for kind in ("CACHE", "CONFIG", "DATA"):
            patch.setenv(f"XDG_{kind}_HOME", str(tmp_path_factory.mktemp(kind.lower())))
        yield


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """The command line, in a folder and a HOME of its own."""
    return Shell(tmp_path, monkeypatch)


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Imports a script of the benchmarks' folder by its name."""
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "benchmarks")
    return importlib.import_module


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of public development data beside the checkout; tests that need it skip without it."""
    folder = Path(os.environ.get("INFINIMEM_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no development data at {folder} (set INFINIMEM_DATA)")
    return folder
