"""grep over packed text: the very lines that looking at each document finds, whatever changed in between."""

from __future__ import annotations

import os
import random
import threading
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from infinimem.retrieval import cache, packed, packed_grep
from infinimem.retrieval.grep import compile_pattern, first_matches
from infinimem.store.library import Library
from infinimem.store.view import Scope, View
from infinimem.user_folders import cache_root


@pytest.fixture(autouse=True)
def everything_is_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "SMALL_DOCUMENTS", 0)
    monkeypatch.setattr(packed, "FEW", 2)
    monkeypatch.setattr(packed_grep, "WORTH_A_THREAD", 64)
    monkeypatch.setattr(packed_grep, "CHUNK", 32)


def write(root: Path, name: str, data: bytes) -> None:
    path = root / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(f".{threading.get_ident()}")
    new.write_bytes(data)  # a new inode, so that no state of it looks like the last
    new.replace(path)


def notes(root: Path, **texts: str) -> View:
    for name, text in texts.items():
        write(root, name, text.encode("utf-8", "surrogateescape"))
    return Library(root).view()


def hits(view: View, pattern: str, ignore_case: bool = True, most: int = 100) -> list[tuple[str, int]]:
    found = packed_grep.search(view, "default", compile_pattern(pattern, ignore_case), most)
    assert found.total >= len(found.first)
    return [(match.document.id, match.line) for match in found.first]


def same(view: View, pattern: str, ignore_case: bool, most: int = 1000) -> int:
    """Both ways agree; returns how many lines match."""
    expected = first_matches(map(view.document, view.ids()), compile_pattern(pattern, ignore_case), most)
    found = packed_grep.search(view, "default", compile_pattern(pattern, ignore_case), most)
    assert found.total == expected.total, pattern
    assert [(m.document.id, m.line) for m in found.first] == [(m.document.id, m.line) for m in expected.first]
    return found.total


def folder(root: Path) -> Path:
    found = cache.cache_folder(str(root.absolute()), "text")
    assert found
    return found


# ── the same lines ──────────────────────────────────────────────────────────────────────────────

PIECES = (
    "ab",
    "AB",
    "k",
    "K",
    "\u212a",
    "ſ",
    "S",
    "é",
    "É",
    "\u65e5",
    "\udce9",
    "\r",
    " ",
    "-",
    "7",
    "x.y",
    "\ufeff",
)
PATTERNS = (
    *("a", "ab", "kab", "sab", "é", "É", "x.y", "[", "a\\b", "\\r", "\ufffd", "日ab", "\n", "", "abkab"),
    *(
        "^",
        "$",
        "^$",
        "^ab",
        "ab$",
        "^ab$",
        "\\bab\\b",
        "\\Aab",
        "ab\\z",
        "a.*k",
        "a[^b]",
        "[^a]b",
        "\\s",
        "\\Sab",
    ),
    *(
        "(ab|kk|7-)k",
        "(?i)ab",
        "(?-i)ab",
        "(?-m)^ab",
        "(?s)a.b",
        "(abk)+",
        "x?abk",
        "(xab|yab|zab)",
        "\\d",
        "ab{2}",
    ),
    *(
        "[[:upper:]]b",
        "\\p{Lu}",
        "\\P{Lu}b",
        "[A-Z]B",
        "(a+)+$",
        "ab{2,}k",
        "\\Qx.y\\E",
        "k\\.y",
        "\\x41B",
        "\\C\\C\\C",
    ),
)

TEXTS = st.lists(st.sampled_from((*PIECES, "\n", "\n")), max_size=25).map("".join)


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(TEXTS, min_size=1, max_size=8),
    later=st.lists(st.tuples(st.integers(0, 9), st.none() | TEXTS), max_size=8),
    chosen=st.lists(
        st.tuples(st.sampled_from(PATTERNS), st.booleans(), st.integers(1, 5)), min_size=8, max_size=8
    ),
)
def test_agrees_with_looking_at_each_document(
    tmp_path_factory: pytest.TempPathFactory,
    texts: list[str],
    later: list[tuple[int, str | None]],
    chosen: list[tuple[str, bool, int]],
) -> None:
    root = tmp_path_factory.mktemp("notes")
    view = notes(root, **{f"n{number}": text for number, text in enumerate(texts)})
    library = Library(root)
    for step in range(3):
        for number, text in later[step * 3 : step * 3 + 3]:
            if text is None:
                (root / f"n{number}.md").unlink(missing_ok=True)
            else:
                write(root, f"n{number}", text.encode("utf-8", "surrogateescape"))
        view = library.view()
        for pattern, ignore_case, most in chosen:
            same(view, pattern, ignore_case, most)
            same(view, pattern, ignore_case)


@pytest.mark.parametrize("ignore_case", [True, False])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_pattern_agrees(tmp_path: Path, pattern: str, ignore_case: bool) -> None:
    rng = random.Random(7)
    texts = {f"n{number}": "".join(rng.choices((*PIECES, "\n"), k=150)) for number in range(12)}
    same(notes(tmp_path / "notes", **texts), pattern, ignore_case)


def test_a_plain_text_is_found_where_it_is_rare_and_where_it_is_everywhere(tmp_path: Path) -> None:
    rare, common = "nothing\n" * 400 + "a Needle here\n", "Needle and needle\n" * 400
    view = notes(tmp_path / "notes", a=rare, b=common, c=rare)
    assert same(view, "needle", True) == 402
    assert same(view, "Needle", False) == 402
    assert same(view, "needle", False) == 400
    assert same(view, "(needle|nothing) (and|here)", True) == 402


# ── changes ─────────────────────────────────────────────────────────────────────────────────────


def test_few_changes_stay_in_memory_and_more_are_written(tmp_path: Path) -> None:
    root = tmp_path / "notes"
    view = notes(root, a="one x\n", b="two\n", c="three\nX\n", d="four\n")
    assert hits(view, "x") == [("a", 1), ("c", 2)]
    before = {path.name for path in folder(root).iterdir()}
    assert len(before) == 4
    view = notes(root, b="x\n", e="x\n")
    assert hits(view, "x") == [("a", 1), ("b", 1), ("c", 2), ("e", 1)]
    assert hits(view, "x", most=2) == [("a", 1), ("b", 1)]
    assert {path.name for path in folder(root).iterdir()} == before
    view = notes(root, f="X\n")
    assert hits(view, "x") == [("a", 1), ("b", 1), ("c", 2), ("e", 1), ("f", 1)]
    manifest = cache.read_manifest(folder(root), packed.FORMAT)
    assert manifest and len(manifest["segments"]) == 2
    assert len(list(folder(root).iterdir())) == 5


def test_too_much_that_is_dead_goes(tmp_path: Path) -> None:
    root = tmp_path / "notes"
    library = notes(root, **{f"n{number}": "secret\n" for number in range(4)})
    assert len(hits(library, "secret")) == 4
    view = notes(root, **{f"n{number}": "Open\n" for number in range(3)})
    assert hits(view, "secret") == [("n3", 1)]
    assert len(hits(view, "Open", ignore_case=False)) == 3
    (text,) = folder(root).glob("text.*")
    assert text.read_bytes() == b"Open\nOpen\nOpen\nsecret\n"


def test_what_is_kept_is_copied_with_its_case(tmp_path: Path) -> None:
    root = tmp_path / "notes"
    texts = {f"n{number}": f"Note {number} oF ONE\n" for number in range(9)}
    assert len(hits(notes(root, **texts), "oF ONE", ignore_case=False)) == 9
    view = notes(root, n1="n\n", n3="n\n", n5="n\n", n7="n\n", n9="n\n")
    assert len(list(folder(root).glob("text.*"))) == 1
    assert len(hits(view, "oF ONE", ignore_case=False)) == 5
    assert len(list(folder(root).glob("text.*"))) == 1


def test_another_process_finds_it_and_other_formats_are_built_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "notes"
    view = notes(root, a="x\n", b="x\n", c="x\n")
    assert len(hits(view, "x")) == 3
    before = {path.name for path in folder(root).iterdir()}
    assert len(hits(Library(root).view(), "x")) == 3
    assert {path.name for path in folder(root).iterdir()} == before
    monkeypatch.setattr(packed, "FORMAT", "packed text of the future")
    assert len(hits(Library(root).view(), "x")) == 3
    assert not {path.name for path in folder(root).glob("text.*")} & before


@pytest.mark.parametrize("part", ["manifest.json", "rows.*", "text.*"])
@pytest.mark.parametrize("how", ["gone", "empty", "garbled", "long", "short", "one bit"])
def test_damage_is_mended(tmp_path: Path, part: str, how: str) -> None:
    root = tmp_path / "notes"
    view = notes(root, a="x\n", b="xx\n" * 20, c="x\n")
    assert len(hits(view, "x")) == 22
    (path,) = folder(root).glob(part)
    data = path.read_bytes()
    path.unlink()
    left = {
        "empty": b"",
        "garbled": b"\xff" * len(data),
        "long": data + b"1\n1",
        "short": data[:-9],
        "one bit": bytes([data[0], data[1] ^ 4]) + data[2:],
    }
    if how != "gone":
        path.write_bytes(left[how])
    assert len(hits(Library(root).view(), "x")) == 22


def test_scopes_are_kept_apart(tmp_path: Path) -> None:
    root = tmp_path / "memory"
    for name in ("topics/a", "archive/a", "evidence/b", "journal/0001-x", "note"):
        write(root, name, b"x\n")
    (root / "infinimem.toml").write_text("format = 1\n")
    for step in range(8):
        if step == 4:
            write(root, "evidence/c", b"x\n")  # this one is read from its file
        view, scope = Library(root).view(), get_args(Scope)[step % 6]
        found = packed_grep.search(view, scope, compile_pattern("x"), 10)
        assert [match.document.id for match in found.first] == list(view.ids(scope))
        assert found.total == len(view.ids(scope))


# ── the disk and other processes ────────────────────────────────────────────────────────────────


def test_a_file_saved_after_the_view_was_made_is_shown_as_it_is(tmp_path: Path) -> None:
    root = tmp_path / "notes"
    view = notes(root, a="x\n", b="1\n2\nx\n", c="x\n")
    assert len(hits(view, "x")) == 3
    library = Library(root)
    view = library.view()
    packed_grep.search(view, "default", compile_pattern("x"), 1)
    write(root, "b", b"x\n")
    (root / "c.md").unlink()
    assert hits(view, "x") == [("a", 1), ("b", 1)]


def test_without_a_cache_directory_every_document_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert hits(notes(tmp_path / "notes", a="x\n", b="X\n", c="x\n"), "x") == [("a", 1), ("b", 1), ("c", 1)]


def test_a_full_disk_hides_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache.Writer, "commit", full)
    view = notes(tmp_path / "notes", a="x\n", b="X\n", c="x\n")
    assert hits(view, "x") == hits(view, "X") == [("a", 1), ("b", 1), ("c", 1)]


def test_what_was_read_before_a_forget_is_not_packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A view holds the old text, and the cache was deleted after the files were changed."""
    root = tmp_path / "notes"
    view = notes(root, a="secret\n", b="secret\n", c="secret\n", d="x\n")
    assert len(hits(view, "secret")) == 3
    stale = packed_grep.packed_text(view)
    for name in "abc":
        write(root, name, b"redacted\n")
    top = cache_root()
    assert stale and top and view.stored
    top.rename(tmp_path / "gone")
    packed.Packed(folder(root)).at(view.ids("all"), view.stored)  # that view in another process
    assert not any(b"secret" in path.read_bytes() for path in top.rglob("*") if path.is_file())


def test_readers_and_writers_at_once(tmp_path: Path) -> None:
    """Each view gives its own lines, while others commit and sweep the files that it was found in."""
    root = tmp_path / "notes"
    notes(root, **{f"n{number:02}": "x\n" for number in range(20)})
    wrong: list[object] = []

    def work(seed: int) -> None:
        rng = random.Random(seed)
        own = packed.Packed(folder(root))  # as another process would have it
        for _ in range(15):
            for number in rng.sample(range(20), 4):
                write(root, f"n{number:02}", f"{'x' * rng.randrange(1, 9)}\n".encode())
            view = Library(root).view()
            stored = view.stored
            assert stored
            snapshot = own.at(view.ids("all"), stored)
            for doc_id, (segment, start, length) in snapshot.places.items():
                text = snapshot.segments[segment][start : start + length]
                if length != stored.stamps[doc_id].size or text.strip(b"x") != b"\n":
                    wrong.append((doc_id, text))

    threads = [threading.Thread(target=work, args=[seed]) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_unreadable_notes_are_passed_over(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("everything is readable to root")
    root = tmp_path / "notes"
    notes(root, a="x\n", b="x\n", c="x\n", d="x\n")
    (root / "b.md").chmod(0)
    assert len(hits(Library(root).view(), "x")) == 3
