"""Derived data on disk: found again, private, one writer, and no reader ever sees half a commit."""

from __future__ import annotations

import os
import threading
import zlib
from pathlib import Path

import pytest

from infinimem.markdown.document import Document
from infinimem.retrieval import cache
from infinimem.settings import Settings
from infinimem.store.listing import Stamp
from infinimem.store.view import Stored, View
from infinimem.user_folders import cache_root, caches

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
    assert folder.parent.parent == base / "infinimem" == cache_root()
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


def test_without_a_variable_it_is_in_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_root() == tmp_path / ".cache/infinimem"
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    assert cache_root() == tmp_path / ".cache/infinimem"
    assert caches() == (tmp_path / ".cache/infinimem",)


def test_without_a_home_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("HOME", raising=False)
    assert cache_root() is None
    assert cache.cache_folder("/library", "text") is None
    assert caches() == ()


def test_where_it_cannot_be_made_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert cache.cache_folder("/library", "text") is None


def test_a_link_or_a_strangers_folder_is_not_used(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (base / "elsewhere").mkdir(parents=True)
    (base / "infinimem").symlink_to("elsewhere")
    assert cache.cache_folder("/library", "text") is None, "forget follows no link"
    (base / "infinimem").unlink()
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    assert cache.cache_folder("/library", "text") is None


def test_a_manifest_is_read_as_it_was_written(folder: Path) -> None:
    assert cache.read_manifest(folder, FORMAT) is None
    with cache.exclusive(folder, True) as writer:
        assert writer
        writer.commit({"format": FORMAT, "files": ["a"]}, ["a"])
    assert cache.read_manifest(folder, FORMAT) == {"format": FORMAT, "files": ["a"]}
    assert cache.read_manifest(folder, "test 2") is None
    assert cache.read_manifest(folder / "missing", FORMAT) is None


@pytest.mark.parametrize(
    "data", [b"", b"{", b"\xff", b"[1]", b"null", b"[" * 100_000, b'{"format": ["test 1"]}']
)
def test_a_garbled_manifest_is_none(folder: Path, data: bytes) -> None:
    for checksum in (b"", b"\n%d\n" % zlib.crc32(data)):
        (folder / "manifest.json").write_bytes(data + checksum)
        assert cache.read_manifest(folder, FORMAT) is None


def test_a_manifest_with_one_bit_wrong_is_none(folder: Path) -> None:
    with cache.exclusive(folder, True) as writer:
        assert writer
        writer.commit({"format": FORMAT, "count": 4}, ["a"])
    path = folder / "manifest.json"
    path.write_bytes(path.read_bytes().replace(b"4", b"5", 1))
    assert cache.read_manifest(folder, FORMAT) is None


def test_one_writes_at_a_time(folder: Path) -> None:
    with cache.exclusive(folder, True) as mine, cache.exclusive(folder, False) as other:
        assert mine and not other
    with cache.exclusive(folder, False) as later:
        assert later
    with cache.exclusive(folder / "missing", True) as nowhere:
        assert not nowhere


def test_one_that_waits_gets_its_turn(folder: Path) -> None:
    turns: list[str] = []

    def second() -> None:
        with cache.exclusive(folder, True) as mine:
            turns.append(f"second {mine is not None}")

    with cache.exclusive(folder, True) as writer:
        assert writer
        thread = threading.Thread(target=second)
        thread.start()
        thread.join(0.05)
        turns.append("first")
    thread.join()
    assert turns == ["first", "second True"]


def test_a_file_is_written_once_and_whole_or_not(folder: Path) -> None:
    with cache.exclusive(folder, True) as writer:
        assert writer
        writer.write("a", b"one ", memoryview(b"two"))
        with pytest.raises(FileExistsError):
            writer.write("a", b"other")
        with pytest.raises(ZeroDivisionError), writer.file("b") as file:
            file.write(b"half")
            raise ZeroDivisionError
    assert (folder / "a").read_bytes() == b"one two"
    assert not (folder / "b").exists()
    assert cache.new_name("a") != cache.new_name("a")


def test_sweeping_leaves_what_is_named(folder: Path) -> None:
    (folder / "subfolder").mkdir()
    with cache.exclusive(folder, True) as writer:
        assert writer
        for name in ("a", "b", "manifest.json.torn"):
            writer.write(name, b"")
        writer.commit({"format": FORMAT}, {"a"})
    assert {path.name for path in folder.iterdir()} == {"a", "lock", "manifest.json", "subfolder"}


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


def test_a_reader_never_sees_half_a_commit(folder: Path) -> None:
    """Files vanish under readers, but those that one manifest names always belong together."""
    stop = threading.Event()
    seen: set[int] = set()
    wrong: list[object] = []

    def write() -> None:
        for number in range(60):
            with cache.exclusive(folder, True) as writer:
                assert writer
                names = [cache.new_name("a"), cache.new_name("b")]
                for name in names:
                    writer.write(name, b"%d" % number)
                writer.commit({"format": FORMAT, "number": number, "files": names}, names)
        stop.set()

    def read() -> None:
        while not stop.is_set() or not seen:
            manifest = cache.read_manifest(folder, FORMAT)
            if manifest is None:
                continue
            try:
                found = {int((folder / name).read_bytes()) for name in manifest["files"]}
            except FileNotFoundError:
                if cache.read_manifest(folder, FORMAT) == manifest:
                    wrong.append("a named file is gone, and no newer manifest there")
                continue
            if found != {manifest["number"]}:
                wrong.append((manifest, found))
            seen.update(found)

    threads = [threading.Thread(target=write), *(threading.Thread(target=read) for _ in range(2))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert seen


@pytest.mark.parametrize(("count", "size", "large"), [(300, 100, False), (301, 0, True), (5, 1 << 20, True)])
def test_a_library_is_large_by_number_or_by_size(count: int, size: int, large: bool) -> None:
    ids = tuple(f"n{number:03}" for number in range(count))
    stored = Stored("/library", {doc_id: Stamp(0, size, 0) for doc_id in ids}, Document.empty)
    assert cache.is_large(View(ids, Document.empty, Settings(), stored=stored)) == large
    assert not cache.is_large(View(ids, Document.empty, Settings())), "of what is no folder nothing is kept"
