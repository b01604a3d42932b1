"""Paths of a model's files: one document each, and none for a hostile one."""

from __future__ import annotations

import pytest
from cases import each
from hypothesis import assume, given
from hypothesis import strategies as st

from infinimem.adapters.file_tree import MAX_PATH, MemoryPath, Refused, namesake, path_of
from infinimem.law import MAX_NAME

KEPT = {
    "/memories/notes.md": "memories/notes",
    "/memories/plan.txt": "memories/plan.txt",
    "/memories/todo": "memories/todo.",
    "/memories/next.js": "memories/next.js",
    "/memories/next.js.md": "memories/next.js.md",
    "/memories/a.md.md": "memories/a.md.md",
    "/memories/A.MD": "memories/A.MD",
    "/memories/v1.2": "memories/v1.2.",
    "/memories/v1.2.md": "memories/v1.2",
    "/memories/2026-11-22.md": "memories/2026-11-22",
    "/memories/end.": "memories/end..",
    "/memories/end..md": "memories/end..md",
    "/memories/Ünï/日記.txt": "memories/Ünï/日記.txt",
    "/memories/a b/c (1).md": "memories/a b/c (1)",
}


@each(("path", "doc_id"), KEPT.items())
def test_where_a_file_is_kept(path: str, doc_id: str) -> None:
    place = MemoryPath.parse(path)
    assert (place.doc_id, str(place), path_of(doc_id)) == (doc_id, path, path.removeprefix("/memories/"))


def taken(name: str) -> bool:
    try:
        return bool(MemoryPath.parse(f"/memories/{name}").parts)
    except Refused:
        return False


names = (
    st.text(st.sampled_from("ab.MmDd1 -é"), min_size=1, max_size=9)
    | st.builds("".join, st.lists(st.sampled_from(["a", ".md", ".txt", ".", "b"]), min_size=1, max_size=5))
).filter(taken)


@given(st.lists(names, min_size=1, max_size=3), st.lists(names, min_size=1, max_size=3))
def test_no_two_paths_share_a_document(one: list[str], other: list[str]) -> None:
    try:
        places = [MemoryPath.parse("/".join(("/memories", *parts))) for parts in (one, other)]
    except Refused:
        assume(False)
    assert (places[0].doc_id == places[1].doc_id) == (one == other)
    for place in places:
        assert path_of(place.doc_id) == "/".join(place.parts)
        assert place.doc_id.startswith("memories/")


@each("path", ["/memories", "/memories/"])
def test_the_folder_itself(path: str) -> None:
    place = MemoryPath.parse(path)
    assert (place.parts, str(place), place.folder) == ((), "/memories", "memories/")


ELSEWHERE = ["", "/", "memories", "memories/a.txt", "/memoriesx/a.txt", "/Memories/a.txt", "/etc/passwd"]
ELSEWHERE += [
    "/memories\\a.txt",
    "//memories/a.txt",
    "C:\\memories\\a.txt",
    "file:///memories/a",
    "~/memories/a",
]
NAMES = [".", "..", "", "...", ".git", ".infinimem", ".hidden.md", "..%2f", "%2e%2e", "%2E%2E%2Fx", "a%00b"]
NAMES += ["a\0b", "a\nb", "a\rb", "a\tb", "a\x7fb", "a\x1b[31mb", "a\u2028b", "a\u202eb", "a\u200bb"]
NAMES += ["a\ufeffb", "a\ue000b", "a\ud800b", "\U000e0041", "..\\x", "a\\b", "\\\\host\\x", " a", "a ", " "]
NAMES += [
    "x" * (MAX_NAME + 1),
    "é" * MAX_NAME,
    "a\u00a0b",
    "%c0%ae%c0%ae",
    "..%5c",
    "%252e",
    "a%2fb",
]
FORMS = ["/memories/{}", "/memories/{}/a.txt", "/memories/a/{}", "/memories/a/{}/b.md"]
HOSTILE = [*ELSEWHERE, *(form.format(name) for name in NAMES for form in FORMS)]
HOSTILE += ["/memories/a.md/b.txt", "/memories/a.MD/b", "/memories/" + "a/" * MAX_PATH + "b"]
HARMLESS = {"/memories/", "/memories/a/"}


def test_hostile_paths_are_refused_in_one_printable_line() -> None:
    for path in sorted(set(HOSTILE) - HARMLESS):
        with pytest.raises(Refused) as refused:
            MemoryPath.parse(path)
        said = str(refused.value)
        assert said.isprintable() and said.isascii() and len(said) < 700, said


@each("path", [None, 7, b"/memories/a", ["/memories/a"]])
def test_what_is_no_text(path: object) -> None:
    with pytest.raises(Refused):
        MemoryPath.parse(path)


def test_names_that_some_file_systems_take_for_one() -> None:
    ids = ["memories/Notes/a", "memories/caf\u00e9"]
    assert namesake("memories/notes/b", ids) == "memories/Notes"
    assert namesake("memories/Notes/A", ids) == "memories/Notes/a"
    assert namesake("memories/cafe\u0301", ids) == "memories/caf\u00e9"
    assert namesake("memories/Notes/b", ids) is None
    assert namesake("memories/Notes/a", ids) is None
