"""Derived data on disk: found again, private, and what was deleted stays so."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from infinimem.retrieval import cache
from infinimem.user_folders import user_folder

FORMAT = "test 1"


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def folder(base: Path) -> Path:
    found = cache.cache_folder("/library", "text")
    assert found is not None
    return found


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_library_has_one_folder_a_part_for_its_owner_alone(base: Path, folder: Path) -> None:
    assert folder.parent.parent == base / "infinimem" == user_folder("cache")
    assert len(folder.parent.name) == 16 and int(folder.parent.name, 16) >= 0
    assert cache.cache_folder("/library", "text") == folder
    assert cache.cache_folder("/library", "index") == folder.with_name("index")
    assert cache.cache_folder("/other", "text") != folder
    assert cache.cache_folder("/caf\udce9", "text"), "a path that is not UTF-8"
    for made in (folder, folder.parent, folder.parent.parent):
        assert mode(made) == 0o700
    folder.parent.chmod(0o755)
    cache.cache_folder("/library", "text")
    assert mode(folder.parent) == 0o700
    with cache.exclusive(folder, True) as writer:
        assert writer
        writer.write("a", b"x")
        writer.commit({"format": FORMAT}, ["a"])
    assert {mode(path) for path in folder.iterdir()} == {0o600}


def test_a_link_or_a_strangers_folder_is_not_used(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (base / "elsewhere").mkdir(parents=True)
    (base / "infinimem").symlink_to("elsewhere")
    assert cache.cache_folder("/library", "text") is None, "forget follows no link"
    (base / "infinimem").unlink()
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    assert cache.cache_folder("/library", "text") is None


def write_all(folder: Path) -> None:
    with cache.exclusive(folder, False) as writer:
        assert writer
        writer.write("a", b"new")
        writer.commit({"format": FORMAT}, ["a"])


def test_what_was_read_before_a_deletion_is_written_nowhere(folder: Path) -> None:
    """A `forget` moves the folder away; a writer that read the old text must not put it into a new one."""
    with cache.exclusive(folder, True) as writer:
        assert writer
        with pytest.raises(OSError), writer.file("a") as file:
            file.write(b"secret")
            folder.rename(folder.with_name("moved"))
            assert cache.cache_folder("/library", "text") == folder
        with pytest.raises(OSError):
            writer.write("b", b"secret")
        with pytest.raises(OSError):
            writer.commit({"format": FORMAT}, ["a"])
        other = threading.Thread(target=write_all, args=[folder])
        other.start()
        other.join()
        with pytest.raises(OSError):
            writer.write("c", b"secret")
    left = [path.name for path in [*folder.iterdir(), *folder.with_name("moved").iterdir()]]
    assert sorted(left) == ["a", "lock", "lock", "manifest.json"]
    assert (folder / "a").read_bytes() == b"new", "the new folder is another one, with a writer of its own"
