"""Who takes turns with others reads only the files that its turns go to: what is recorded stays the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from freshness_library import Reader, rest
from hypothesis import given, settings
from hypothesis import strategies as st

from infinimem.model import Located, NewEntry, Plan, Turn
from infinimem.store.freshness import BOUND
from infinimem.store.library import Library, init

NOW = "2025-03-03T10:00:00"


def said(library: Library, text: str, session: str, key: str | None = None) -> tuple[Located, ...]:
    return library.record([Turn(text, session=session, time=NOW, key=key)])


def two(root: Path) -> tuple[Library, Library]:
    """Two writers of one library, each with a session of its own, as two processes have it."""
    one, other = init(root), Library(root)
    for text in ("Hello.", "Hello again."):
        said(one, text, "a")
        said(other, text, "b")
        rest(root)
    return one, other


def test_a_key_that_another_recorded_a_moment_ago_is_known(tmp_path: Path) -> None:
    one, other = two(tmp_path / "memory")
    assert said(other, "Once.", "b", key="k")
    assert said(one, "Once.", "a", key="k") == ()


def test_a_seq_that_a_person_wrote_elsewhere_is_not_given_once_the_bound_is_over(tmp_path: Path) -> None:
    one, _ = two(tmp_path / "memory")
    writer = Reader(one.root)
    said(writer.library, "First.", "a")
    path = one.root / "evidence" / "2025-03-03-b.md"
    path.write_text(path.read_text() + "- <seq=900,source=user> Typed.\n")
    writer.wait(BOUND)
    (place,) = said(writer.library, "Second.", "a")
    assert place.seq == 901


def test_a_seq_that_a_person_has_just_given_to_a_fact_is_not_given(tmp_path: Path) -> None:
    one, _ = two(tmp_path / "memory")
    (fact,) = one.apply(Plan(adds=(NewEntry("A fact.", (1,), "topics/home"),))).view.entries()
    rest(one.root)
    (place,) = said(one, "First.", "a")
    path = one.root / f"{fact.doc_id}.md"
    path.write_text(path.read_text().replace(f"seq={fact.seq}", f"seq={place.seq + 1}"))
    assert said(one, "Second.", "a")[0].seq == place.seq + 2


ACTS = st.lists(
    st.tuples(
        st.sampled_from(("record", "record", "record", "draw", "view", "type", "edit")),
        st.booleans(),
        st.sampled_from("abc"),
    ),
    max_size=25,
)


@settings(max_examples=25, deadline=None)
@given(ACTS)
def test_all_that_is_recorded_stands_where_it_was_said_to_once(
    tmp_path_factory: pytest.TempPathFactory, acts: list[tuple[str, bool, str]]
) -> None:
    root = tmp_path_factory.mktemp("library") / "memory"
    writers, placed = two(root), dict[int, str]()
    for number, (act, first, session) in enumerate(acts):
        library = writers[0 if first else 1]
        path = root / "evidence" / f"2025-03-03-{session}.md"
        if act == "record":
            (place,) = said(library, f"Number {number}.", session)
            assert place.seq not in placed
            assert Library(root).view().entry(place.seq) == place
            placed[place.seq] = place.text
        elif act == "draw":
            (place,) = said(library, f"Number {number}.", session)
            library.apply(Plan(adds=(NewEntry(f"Fact {number}", (place.seq,)),)))
            placed[place.seq] = place.text
        elif act == "view":
            assert library.view().max_seq >= max(placed, default=0)
        elif act == "type":
            (root / f"note-{number}.md").write_text("- a person's\n")
        elif act == "edit" and path.exists():
            path.write_text(path.read_text() + "\nA person's remark.")
    for library in writers:
        found = {place.seq: place.text for place in library.view().entries("evidence")}
        assert {seq: found[seq] for seq in placed} == placed
        assert len(found) == len(list(library.view().entries("evidence")))
