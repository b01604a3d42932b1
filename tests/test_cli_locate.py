"""Which library a command means."""

from __future__ import annotations

from pathlib import Path

import pytest

from infinimem.cli.locate import Location, locate
from infinimem.errors import UsageError


def test_the_option_comes_first_then_the_environment(tmp_path: Path) -> None:
    env = {"INFINIMEM_LIBRARY": "/from/env", "HOME": "/home/u"}
    (tmp_path / "infinimem.toml").touch()
    assert locate("/named", env, tmp_path) == Location(Path("/named"))
    assert locate("near", env, tmp_path) == Location(tmp_path / "near")
    assert locate(None, env, tmp_path) == Location(Path("/from/env"))
    assert locate(None, {"INFINIMEM_LIBRARY": ""}, tmp_path) == Location(tmp_path)


def test_the_nearest_library_above_comes_next(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "infinimem.toml").touch()
    assert locate(None, {}, inner) == Location(tmp_path)
    (tmp_path / "a" / "infinimem.toml").touch()
    assert locate(None, {}, inner) == Location(tmp_path / "a")


def test_the_default_library_comes_last(tmp_path: Path) -> None:
    home = {"HOME": "/home/u"}
    default = Location(Path("/home/u/.local/share/infinimem/default"), is_default=True)
    assert locate(None, home, tmp_path) == default
    assert locate(None, {**home, "XDG_DATA_HOME": "relative"}, tmp_path) == default
    assert locate(None, {**home, "XDG_DATA_HOME": "/data"}, tmp_path).path == Path("/data/infinimem/default")
    with pytest.raises(UsageError, match="--library"):
        locate(None, {"HOME": ""}, tmp_path)
