"""A folder of someone's notes, never initialised: all of it can be read, none of it is touched."""

from __future__ import annotations

import hashlib
import tarfile
from pathlib import Path

import pytest

from infinimem.memory import open_memory


def digest(root: Path) -> str:
    total = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        total.update(f"{path.relative_to(root)} {path.stat().st_mtime_ns}".encode())
        if path.is_file():
            total.update(path.read_bytes())
    return total.hexdigest()


@pytest.fixture(scope="module")
def notes(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    archive = shared_data / "notes_til.tar.xz"
    if not archive.is_file():
        pytest.skip("no notes_til.tar.xz in the development data")
    folder = tmp_path_factory.mktemp("notes")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    return folder


def test_a_folder_of_notes_is_searched_grepped_listed_and_read_untouched(notes: Path) -> None:
    before = digest(notes)
    memory = open_memory(notes, model="offline")
    total = memory.tools.list_docs()["total"]
    assert total == len(list(notes.rglob("*.md"))) == 1873
    hits = memory.tools.search(query="undo the last git commit")["hits"]
    assert any("git" in hit["doc_id"] for hit in hits)
    found = memory.tools.grep(pattern=r"git rebase -i\b")
    assert found["total_matches"] == len(found["matches"]) > 0
    match = found["matches"][0]
    read = memory.tools.read_lines(doc_id=match["doc_id"], start=match["line"], end=match["line"])
    assert read["lines"] == [{"line": match["line"], "text": match["text"]}]
    assert memory.tools.grep_doc(doc_id=match["doc_id"], pattern="rebase")["matches"]
    pages = [memory.tools.list_docs(offset=at)["docs"] for at in range(0, 100, 20)]
    assert len({doc["id"] for page in pages for doc in page}) == 100
    items = memory.retrieve("rename a column in postgres").items
    assert items
    assert items[0].source == "human"
    assert digest(notes) == before
