"""What befalls an index on disk: old snapshots, other writers, dead rows, harmed files, lines that went."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from disk_library import assert_same, index_folder, large_library, write_note

from infinimem.memory import Memory, open_memory
from infinimem.model import Turn
from infinimem.retrieval import cache, committed, index
from infinimem.retrieval.disk import disk_index
from infinimem.retrieval.searcher import indexed, searcher
from infinimem.retrieval.tantivy_index import TantivyIndex

memory = pytest.fixture(large_library, name="memory")


def found(memory: Memory, word: str) -> list[str]:
    return [item.doc_id for item in searcher(memory.view).blocks(word, limit=50)]


def lexical(memory: Memory) -> list[Path]:
    return sorted(index_folder(memory).glob("lexical.*"))


def test_dead_rows_take_nobodys_place(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    write_note(memory.library.root, 20, "# foo\n\nfoo\n" * 60)
    write_note(memory.library.root, 21, "something of foo among other words\n")
    indexed(memory.view)
    monkeypatch.setattr("infinimem.retrieval.searcher.CANDIDATES", {"entries": 8, "blocks": 8})
    (memory.library.root / "notes" / "n20.md").unlink()
    assert [item.doc_id for item in searcher(memory.view).blocks("foo", limit=2)] == ["notes/n21"]


def test_parts_of_another_commit_are_not_taken_for_overlaid_ones(memory: Memory) -> None:
    indexed(memory.view)
    write_note(memory.library.root, 30, "zither\n")
    disk_index.cache_clear()
    manifest = json.loads((index_folder(memory) / cache.MANIFEST).read_bytes())
    writer = TantivyIndex(lexical(memory)[0]).write()
    for ordinal in range(9):  # what a writer wrote that has not committed yet, or died
        writer.add("both/live", (manifest["uid"] << 24) + ordinal, ["zither"])
    writer.commit()
    assert found(memory, "zither") == ["notes/n30"]
    assert_same(memory.view)


def test_an_old_snapshot_writes_nothing(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committed, "OVERLAY_DOCUMENTS", 2)
    old = memory.view
    for number in range(40, 50):
        write_note(memory.library.root, number, "zither\n")
    indexed(memory.view)
    manifest = (index_folder(memory) / cache.MANIFEST).read_bytes()
    assert_same(old)
    assert manifest == (index_folder(memory) / cache.MANIFEST).read_bytes()


def test_what_a_snapshot_holds_does_not_come_back_into_the_cache(memory: Memory) -> None:
    write_note(memory.library.root, 3, "xyzzy is a secret\n")
    view = memory.view
    assert "xyzzy" in view.document("notes/n3").text(1, 1)
    write_note(memory.library.root, 3, "nothing here\n")  # another process may not know of it yet
    indexed(view)
    assert all(TantivyIndex(path).candidates(["xyzzi"], 9, ["both/live"]) == [] for path in lexical(memory))
    assert_same(memory.view)


def test_a_tantivy_folder_that_was_emptied_is_built_anew(memory: Memory) -> None:
    indexed(memory.view)
    disk_index.cache_clear()
    for path in lexical(memory)[0].iterdir():
        path.unlink()
    assert found(memory, "violin")
    assert_same(memory.view)


def test_a_manifest_that_says_nonsense_is_built_anew(memory: Memory) -> None:
    indexed(memory.view)
    disk_index.cache_clear()
    path = index_folder(memory) / cache.MANIFEST
    manifest = json.loads(path.read_bytes())
    for row in manifest["segments"]:
        del row["columns"]
    path.write_text(json.dumps(manifest))
    assert_same(memory.view)


@pytest.mark.parametrize("at", range(5))
def test_columns_that_do_not_fit_are_built_anew(memory: Memory, at: int) -> None:
    indexed(memory.view)
    disk_index.cache_clear()
    manifest = json.loads((index_folder(memory) / cache.MANIFEST).read_bytes())
    row = max(manifest["segments"], key=lambda row: row["columns"][-1][-1])
    names = ("parts", "own.ends", "around.ends", "cite_ends", "documents")
    offset = next(column[3] for column in row["columns"] if column[0] == names[at])
    with (index_folder(memory) / row["file"]).open("r+b") as file:
        file.seek(offset)
        file.write(b"\n\xff\x13\n" * 4)
    assert_same(memory.view)


def test_a_note_that_could_not_be_read_is_found_once_it_can(
    memory: Memory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_note(memory.library.root, 3, "a zither\n")
    read = index.Files.read_stamped

    def refused(self: index.Files, path: str, *bounds: int) -> tuple[bytes, object]:
        if path == "notes/n3.md":
            raise index.LibraryError("too many open files")
        return read(self, path, *bounds)

    with monkeypatch.context() as patch:
        patch.setattr(index.Files, "read_stamped", refused)
        assert found(memory, "zither") == []
    disk_index.cache_clear()
    searcher.cache_clear()
    assert found(open_memory(memory.library.root, model="offline"), "zither") == ["notes/n3"]


def test_where_no_lock_can_be_had_memory_serves(
    memory: Memory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cache.fcntl, "flock", lambda *_: (_ for _ in ()).throw(OSError("no locks here")))
    assert "notes/n0" in found(memory, "violin")


def test_a_turn_that_is_gone_leaves_its_entries(memory: Memory) -> None:
    memory.observe([Turn(role="user", text="I play the zither on Fridays.", time="2024-01-02", session="z1")])
    old = memory.view
    indexed(old)
    searcher.cache_clear()
    for path in (memory.library.root / "evidence").glob("*z1*"):
        path.write_text("---\nkind: evidence\n---\n")
    assert [item.text for item in searcher(old).entries("zither")] == ["I play the zither on Fridays."]


def test_evidence_that_comes_after_its_entries_is_taken_in(memory: Memory) -> None:
    root = memory.library.root
    (root / "topics" / "late.md").write_text("# Late\n- <seq=9001,source=user,origin=9000> plays it daily\n")
    (root / "topics" / "later.md").write_text("# Later\n- <seq=9002,source=user,origin=9001> plays it well\n")
    assert_same(memory.view)
    (root / "evidence" / "late.md").write_text(
        "---\nkind: evidence\n---\n- <seq=8999,source=user> the zither\n"
        "- <seq=9000,source=user> plays it daily\n"
    )
    assert_same(memory.view)
    assert {item.doc_id for item in searcher(memory.view).entries("zither")} >= {
        "topics/late",
        "topics/later",
    }


def test_of_lines_with_one_number_both_engines_take_the_same(memory: Memory) -> None:
    root = memory.library.root
    for name in ("b", "a"):
        (root / "evidence" / f"x{name}.md").write_text(
            f"---\nkind: evidence\n---\n- <seq=9000,source=user,speaker=Q{name}> the zither {name}\n"
        )
    (root / "topics" / "x.md").write_text("# X\n- <seq=9001,source=user,origin=9000> plays it\n")
    write_note(root, 5, "- <seq=9001,source=user,origin=1> a line that a note quotes\n")
    assert_same(memory.view)
    entry = searcher(memory.view).entries("Qb plays it")[0]
    assert (entry.doc_id, entry.speaker) == ("topics/x", "Qb")
