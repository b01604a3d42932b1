"""Links that the program writes for people: between topics that share names, from receipts to documents."""

from __future__ import annotations

from pathlib import Path

import pytest

from infinimem.memory import open_memory
from infinimem.model import Move, NewEntry, Plan, Turn
from infinimem.store.create import init
from infinimem.store.library import Library
from infinimem.store.outcome import Applied
from infinimem.store.receipts import cells_of, file_of, format_receipt, parse_receipt
from infinimem.store.see_also import known, links_of


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


def test_a_name_that_many_topics_have_links_none(library: Library) -> None:
    put(library, {f"topics/{name}": f"What Nora says of {name}" for name in ("a", "b", "c", "d")})
    assert not any(links(library).values())


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


def test_a_document_changes_for_no_link_alone(library: Library) -> None:
    put(library, FIRST)
    before = {path.name: path.read_bytes() for path in library.root.glob("topics/*.md")}
    put(library, {"topics/tea": "We buy tea in Ghent"})
    changed = {name for name, data in before.items() if (library.root / "topics" / name).read_bytes() != data}
    assert changed == {"tea.md"}
    assert links(library)["topics/tea"] == ["topics/music"]


def test_a_link_to_a_topic_that_goes_goes_with_it(library: Library) -> None:
    seqs = put(library, FIRST)
    moves = (Move(seqs["topics/music"], "topics/tea"),)
    assert isinstance(library.apply(Plan("merge", moves=moves)), Applied)
    assert not (library.root / "topics/music.md").exists()
    assert links(library)["topics/cat"] == ["topics/vet"]
    assert links(library)["topics/tea"] == ["topics/cat"]


def test_what_a_person_makes_of_it_is_written_over_and_its_other_keys_are_not(library: Library) -> None:
    put(library, FIRST)
    path = library.root / "topics/cat.md"
    path.write_text(path.read_text().replace("see_also: [", 'tags: [pet]\nsee_also: ["[[nowhere]]", '))
    put(library, {"topics/cat": "She sleeps a lot"})
    assert "tags: [pet]\n" in path.read_text()
    assert links(library)["topics/cat"] == ["topics/music", "topics/vet"]
    assert not open_memory(library.root, model="offline").doctor()


def test_no_tool_and_no_fact_knows_of_a_link(library: Library) -> None:
    put(library, FIRST)
    memory = open_memory(library.root, model="offline")
    assert memory.tools.grep(pattern="see_also")["total_matches"] == 0
    assert memory.tools.grep(pattern="topics/vet")["total_matches"] == 0
    assert not any(hit["doc_id"] == "topics/cat" for hit in memory.tools.search(query="music")["hits"])
    assert not any("[[" in place.entry.text for place in memory.view.entries("all"))


def test_an_undo_takes_links_back_too(library: Library) -> None:
    put(library, FIRST)
    before = (library.root / "topics/tea.md").read_bytes()
    put(library, {"topics/tea": "We buy tea in Ghent"})
    open_memory(library.root, model="offline").undo()
    assert (library.root / "topics/tea.md").read_bytes() == before


def test_names_are_taken_over_from_the_snapshot_before(library: Library) -> None:
    put(library, FIRST)
    first = library.view()
    made = first.derived(known)
    put(library, {"topics/tea": "We buy tea in Ghent"})
    now = library.view()
    asked: list[str] = []

    class Counted:
        def document(self, doc_id: str) -> object:
            asked.append(doc_id)
            return now.document(doc_id)

        def __contains__(self, doc_id: str) -> bool:
            return doc_id in now

    assert known(Counted(), made, ("topics/tea", "CURRENT")) == now.derived(known)  # type: ignore[arg-type]
    assert asked == ["topics/tea"]


# ── receipts ────────────────────────────────────────────────────────────────────────────────────


def test_a_receipt_links_the_documents_that_are_there(library: Library) -> None:
    seqs = put(library, FIRST)
    library.apply(Plan("merge", moves=(Move(seqs["topics/music"], "topics/tea"),)))
    text = (library.root / "journal/0002-merge.md").read_text()
    assert "\n| [topics/tea](../topics/tea.md) | " in text
    assert "\n| topics/music | " in text, "it is gone"
    receipt = library.receipts()[-1]
    assert {name for name, *_ in receipt.files} == {"topics/cat", "topics/music", "topics/tea"}


def test_receipts_of_before_and_links_that_an_editor_changed_read_the_same(library: Library) -> None:
    put(library, FIRST)
    (receipt,) = library.receipts()
    path = library.root / "journal/0001-consolidate.md"
    text = path.read_text()
    for link, instead in (
        ("[topics/tea](../topics/tea.md)", "topics/tea"),
        ("(../topics/cat.md)", "(x/y.md)"),
    ):
        assert link in text
        text = text.replace(link, instead)
    path.write_text(text)
    assert library.receipts() == (receipt,)


def test_a_name_that_would_need_escapes_is_not_linked(library: Library) -> None:
    put(library, FIRST)
    (receipt,) = library.receipts()
    odd = ("memories/a (b) [c]", "-", "0" * 64)
    from dataclasses import replace

    from infinimem.markdown.document import Document

    data = format_receipt(replace(receipt, files=(odd,)), ())
    assert "\n| memories/a (b) [c] | - | " in data.decode()
    assert parse_receipt(Document.parse(receipt.id, data)).files == (odd,)
    assert file_of(cells_of("| seq | was | now | why |")) is None
