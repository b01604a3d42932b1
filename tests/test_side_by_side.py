"""All strategies over one folder: each keeps its own, and what is done to the folder is done to all."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from forget_library import held
from test_strategies_contract import TURNS

from infinimem import Memory, open_memory
from infinimem.spec import strategies

NOW = datetime(2025, 3, 3, 12, tzinfo=UTC)
SETTINGS = "[recmem]\ntheta_sim = 0.1\ntheta_count = 2\n"
"""With which RecMem makes something of so short a talk."""
ALL = [*strategies()]
OTHERS = [name for name in ALL if name != "infini"]


def opened(root: Path, name: str | None = None, **how: Any) -> Memory:
    return open_memory(root, model="offline", strategy=name, clock=lambda: NOW, embedder="lexical", **how)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Kept by infini, and rebuilt under the name of each other."""
    root = tmp_path_factory.mktemp("five") / "library"
    root.mkdir()
    (root / "infinimem.toml").write_text(SETTINGS)
    memory = opened(root, create=True)
    memory.observe(TURNS)
    memory.consolidate()
    for name in OTHERS:
        opened(root, name).rebuild()
    return root


@pytest.fixture
def root(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "library"))


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", OTHERS)
def test_what_one_was_told_no_other_finds(root: Path, name: str) -> None:
    """Nor its vectors: a person edits a record, each searches, and each has indexed the library."""
    kind = strategies()[name].kinds[-1]
    path = min((root / kind.folder).glob("*.md"))
    header = path.read_text().split("\n")
    at = next(number for number, line in enumerate(header) if line.startswith("summary:"))
    path.write_text(
        "\n".join([*header[:at], "summary: The xylophone stands in the attic.", *header[at + 1 :]])
    )
    doc_id = str(path.relative_to(root)).removesuffix(".md")
    for other in ALL:
        memory = opened(root, other)
        found = {item.doc_id for item in memory.read("Where is the xylophone?", "bm25").items}
        assert (doc_id in found) == (other == name)
        shown = memory.retrieve("Where is the xylophone?").items
        foreign = tuple(folder for one in ALL if one != other for folder in strategies()[one].folders)
        assert not any(item.doc_id.startswith(foreign) for item in shown)
        assert doc_id not in memory.view.ids() or other == name


def test_a_forgotten_turn_is_gone_from_all(root: Path) -> None:
    texts = [TURNS[4].text, TURNS[0].text]
    memory = opened(root)
    seqs = [place.seq for place in memory.view.entries("evidence") if place.entry.text in texts]
    done = memory.forget(seqs)
    assert done.left == () and held(texts, root) == {}
    for name in OTHERS:
        folders = strategies()[name].folders
        assert any(record.startswith(folders) for record in done.records), name
        assert opened(root, name).doctor() == []
    for one in memory.compare("Where does Ann live?"):
        shown = " ".join(item.text for item in one.evidence.items)
        assert "Coimbra" in shown and "near the river" not in shown


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", OTHERS)
def test_doctor_checks_all(root: Path, name: str) -> None:
    assert opened(root).doctor() == []
    kind = strategies()[name].kinds[0]
    path = min((root / kind.folder).glob("*.md"))
    path.write_text(
        path.read_text().replace("evidence:\n  - {ref:", "evidence:\n  - {ref: 9999}\n  - {ref:", 1)
    )
    wrong = [finding for finding in opened(root).doctor() if path.stem in finding.where]
    assert wrong == [finding for finding in opened(root, name).doctor() if path.stem in finding.where] != []
