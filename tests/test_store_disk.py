"""Moves of a file where the system, or the file system, cannot make them in one step."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infinimem.store import disk
from infinimem.store.disk import At
from infinimem.store.folders import located, opened


@pytest.fixture(params=["in one step", "with hard links", "without"])
def places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[tuple[Path, At, At]]:
    """A folder, and two names in two folders of it."""

    def refuses(*_: Any, **__: Any) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    if request.param != "in one step":
        monkeypatch.setattr(disk, "_atomic_rename", lambda: None)  # private: no test mounts such a disk
    if request.param == "without":
        monkeypatch.setattr(os, "link", refuses)
    with located(tmp_path, "a/one", make=True) as one, located(tmp_path, "b/other", make=True) as other:
        (tmp_path / "a/one").write_text("1")
        yield tmp_path, one, other


def standing(root: Path) -> dict[str, str]:
    files = (path for path in root.rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): path.read_text() for path in files}


def test_a_file_is_put_where_none_is(places: tuple[Path, At, At]) -> None:
    root, one, other = places
    disk.put(one, other)
    assert standing(root) == {"b/other": "1"}


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", ["file", "link"])
def test_nothing_is_put_over_another(places: tuple[Path, At, At], kind: str) -> None:
    root, one, other = places
    (root / "b/mine").write_text("2")
    if kind == "file":
        (root / "b/other").write_text("2")
    else:
        (root / "b/other").symlink_to("mine")
    before = standing(root)
    with pytest.raises(FileExistsError):
        disk.put(one, other)
    assert standing(root) == before


def test_two_files_are_exchanged(places: tuple[Path, At, At]) -> None:
    root, one, other = places
    (root / "b/other").write_text("2")
    disk.exchange(one, other)
    assert standing(root) == {"a/one": "2", "b/other": "1"}


def test_an_exchange_with_a_link_brings_in_nothing_from_behind_it(places: tuple[Path, At, At]) -> None:
    root, one, other = places
    (root / "secret").write_text("s")
    (root / "b/other").symlink_to("../secret")
    try:
        disk.exchange(one, other)
    except OSError:
        assert (root / "a/one").read_text() == "1"
    else:
        assert (root / "a/one").is_symlink()
    assert (root / "secret").read_text() == "s"


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    "path", ["..", "a/..", "a/../b", "/b", "a//b", ".", "a/./b", "a\0b", "linked", "linked/b"]
)
def test_no_way_leads_out(tmp_path: Path, path: str) -> None:
    for name in ("a", "b", "a/b"):
        (tmp_path / name).mkdir()
    (tmp_path / "linked").symlink_to("a")
    with pytest.raises(NotADirectoryError), opened(tmp_path, path, make=True):
        pass
    with pytest.raises(NotADirectoryError), located(tmp_path, f"{path}/new", make=True):
        pass
    assert not list(tmp_path.rglob("new"))
