"""Links that the program writes for people: between topics that share names, from receipts to documents."""

from __future__ import annotations

from pathlib import Path

import pytest

from infinimem.memory import open_memory
from infinimem.model import Move, NewEntry, Plan, Turn
from infinimem.store.library import Library, init
from infinimem.store.plans import links_of
from infinimem.store.view import Applied


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return init(tmp_path / "memory")


def put(library: Library, lines: dict[str, str]) -> dict[str, int]:
    """A line into each document, by one receipt; gives the seqs."""
    told = library.record([Turn(text) for text in lines.values()])
    adds = Plan(adds=tuple(NewEntry(place.text, (place.seq,)) for place in told))
    drawn = library.apply(adds)
    assert isinstance(drawn, Applied)
    seqs = [place.seq for place in drawn.added]
    moves = tuple(Move(seq, doc) for seq, doc in zip(seqs, lines, strict=True))
    assert isinstance(library.apply(Plan("consolidate", moves=moves)), Applied)
    return dict(zip(lines, seqs, strict=True))


def links(library: Library) -> dict[str, list[str]]:
    """The links of each topic."""
    view = library.view()
    return {doc_id: links_of(view.document(doc_id)) for doc_id in view.below("topics/")}


FIRST = {
    "topics/cat": "The cat eats what Tomas brings from Northgate",
    "topics/vet": "We saw the vet at Northgate on two Mondays in May",
    "topics/music": "My friend Tomas plays the horn in Ghent",
    "topics/tea": "Green tea on Mondays in May",
}


def test_topics_that_share_names_link_to_each_other(library: Library) -> None:
    put(library, FIRST)
    assert links(library) == {
        "topics/cat": ["topics/music", "topics/vet"],
        "topics/vet": ["topics/cat"],
        "topics/music": ["topics/cat"],
        "topics/tea": [],
    }
    text = (library.root / "topics/cat.md").read_text()
    assert 'see_also: ["[[topics/music]]", "[[topics/vet]]"]\n' in text
    assert "see_also" not in (library.root / "topics/tea.md").read_text()


def test_the_three_topics_that_share_most_are_linked(library: Library) -> None:
    shared = {
        "topics/a": "We met Anna, Berta, Clara, Doris and Emma",
        "topics/b": "We rowed with Anna",
        "topics/c": "We sang with Berta",
        "topics/d": "We hiked with Clara",
        "topics/e": "We ate with Doris and Emma",
    }
    put(library, shared)
    assert links(library)["topics/a"] == ["topics/e", "topics/b", "topics/c"]


def test_what_a_person_makes_of_it_is_written_over_and_its_other_keys_are_not(library: Library) -> None:
    put(library, FIRST)
    path = library.root / "topics/cat.md"
    path.write_text(path.read_text().replace("see_also: [", 'tags: [pet]\nsee_also: ["[[nowhere]]", '))
    put(library, {"topics/cat": "She sleeps a lot"})
    assert "tags: [pet]\n" in path.read_text()
    assert links(library)["topics/cat"] == ["topics/music", "topics/vet"]
    assert not open_memory(library.root, model="offline").doctor()
