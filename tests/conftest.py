"""Fixtures that several test files share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from cli_runner import Shell
from server import model_url as model_url


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """The command line, in a folder and a HOME of its own."""
    return Shell(tmp_path, monkeypatch)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of public development data beside the checkout; tests that need it skip without it."""
    folder = Path(os.environ.get("INFINIMEM_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no development data at {folder} (set INFINIMEM_DATA)")
    return folder
