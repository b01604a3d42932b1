"""grep over packed text: the very lines that looking at each document finds, whatever changed in between."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from infinimem.index import text
from infinimem.index.grep import compile_pattern, first_matches
from infinimem.store.library import Library
from infinimem.store.view import View
from infinimem.user_folders import cache_folder


@pytest.fixture(autouse=True)
def everything_is_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(text, "SMALL_DOCUMENTS", 0)
    monkeypatch.setattr(text, "FEW", 2)
    monkeypatch.setattr(text, "WORTH_A_THREAD", 64)
    monkeypatch.setattr(text, "CHUNK", 32)


def write(root: Path, name: str, data: bytes) -> None:
    path = root / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(f".{threading.get_ident()}")
    new.write_bytes(data)  # a new inode, so that no state of it looks like the last
    new.replace(path)


def notes(root: Path, **texts: str) -> View:
    for name, said in texts.items():
        write(root, name, said.encode("utf-8", "surrogateescape"))
    return Library(root).view()


def hits(view: View, pattern: str, ignore_case: bool = True, most: int = 100) -> list[tuple[str, int]]:
    found = text.search(view, "default", compile_pattern(pattern, ignore_case), most)
    assert found.total >= len(found.first)
    return [(match.document.id, match.line) for match in found.first]


def same(view: View, pattern: str, ignore_case: bool, most: int = 1000) -> int:
    """Both ways agree; returns how many lines match."""
    expected = first_matches(map(view.document, view.ids()), compile_pattern(pattern, ignore_case), most)
    found = text.search(view, "default", compile_pattern(pattern, ignore_case), most)
    assert found.total == expected.total, pattern
    assert [(m.document.id, m.line) for m in found.first] == [(m.document.id, m.line) for m in expected.first]
    return found.total


def folder(root: Path) -> Path:
    found = cache_folder(str(root.absolute()), "index-infini")
    assert found
    return found


# ── the same lines ──────────────────────────────────────────────────────────────────────────────

PIECES = ("\r", " ", *"ab AB k K \u212a ſ S é É \u65e5 \udce9 - 7 x.y \ufeff".split(" "))
PATTERNS = (
    *("", "\n", "\ufffd", *r"a ab kab sab é É x.y [ a\b \r 日ab abkab".split(" ")),
    *r"^ $ ^$ ^ab ab$ ^ab$ \bab\b \Aab ab\z a.*k a[^b] [^a]b \s \Sab".split(" "),
    *r"(ab|kk|7-)k (?i)ab (?-i)ab (?-m)^ab (?s)a.b (abk)+ x?abk (xab|yab|zab) \d ab{2}".split(" "),
    *r"[[:upper:]]b \p{Lu} \P{Lu}b [A-Z]B (a+)+$ ab{2,}k \Qx.y\E k\.y \x41B \C\C\C".split(" "),
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
    view = notes(root, **{f"n{number}": said for number, said in enumerate(texts)})
    library = Library(root)
    for step in range(3):
        for number, said in later[step * 3 : step * 3 + 3]:
            if said is None:
                (root / f"n{number}.md").unlink(missing_ok=True)
            else:
                write(root, f"n{number}", said.encode("utf-8", "surrogateescape"))
        view = library.view()
        for pattern, ignore_case, most in chosen:
            same(view, pattern, ignore_case, most)
            same(view, pattern, ignore_case)


# ── changes ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("part", ["index.db", "text-*"])
@pytest.mark.parametrize("how", ["gone", "empty", "short"])
def test_damage_is_mended(tmp_path: Path, part: str, how: str) -> None:
    root = tmp_path / "notes"
    view = notes(root, a="x\n", b="xx\n" * 20, c="x\n")
    assert len(hits(view, "x")) == 22
    (path,) = folder(root).glob(part)
    data = path.read_bytes()
    path.unlink()
    if how != "gone":
        path.write_bytes(b"" if how == "empty" else data[:-9])
    assert len(hits(Library(root).view(), "x")) == 22


# ── the disk and other processes ────────────────────────────────────────────────────────────────


def test_a_file_saved_after_the_view_was_made_is_shown_as_it_is(tmp_path: Path) -> None:
    root = tmp_path / "notes"
    view = notes(root, a="x\n", b="1\n2\nx\n", c="x\n")
    assert len(hits(view, "x")) == 3
    library = Library(root)
    view = library.view()
    text.search(view, "default", compile_pattern("x"), 1)
    write(root, "b", b"x\n")
    (root / "c.md").unlink()
    assert hits(view, "x") == [("a", 1), ("b", 1)]


def test_a_full_disk_hides_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(text.Text, "_write", full)  # private: a disk that is full at the right moment
    view = notes(tmp_path / "notes", a="x\n", b="X\n", c="x\n")
    assert hits(view, "x") == hits(view, "X") == [("a", 1), ("b", 1), ("c", 1)]
