"""All strategies over one folder: each keeps its own, and what is done to the folder is done to all."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from forget_library import held
from git_repository import Repository
from test_strategies_contract import TURNS
from trusting import write_trusted

from infinimem import Memory, Turn, open_memory
from infinimem.errors import UsageError
from infinimem.spec import strategies
from infinimem.store.state.lists import drawn_path

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


def files(root: Path, *folders: str) -> dict[str, bytes]:
    """All that lies in these folders; in none, everything."""
    found = {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}
    return {path: data for path, data in sorted(found.items()) if path.startswith(folders or "")}


def own(root: Path, name: str) -> dict[str, bytes]:
    spec = strategies()[name]
    lists = {drawn_path(spec)} if spec.lists_turns else set()
    alone = {f"{spec.buffer}.md", *lists}
    return {
        path: data for path, data in files(root).items() if path.startswith(spec.folders) or path in alone
    }


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ALL)
def test_only_the_one_that_is_named_writes(root: Path, name: str) -> None:
    """Recording a turn, sorting, a rebuild and an undo change nothing of the others."""
    before = {other: own(root, other) for other in ALL}
    memory = opened(root, name)
    memory.observe([Turn("The pottery class moved to Fridays.", speaker="Ann", session="s6", turn="D10")])
    memory.consolidate()
    memory.rebuild()
    assert own(root, name) != before[name]
    memory.undo()
    changed = {other for other in ALL if own(root, other) != before[other]}
    assert changed <= {name}


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


def test_git_keeps_what_each_writes(tmp_path: Path) -> None:
    repository = Repository.begun(tmp_path / "tree")
    root = repository.memory
    write_trusted(root, f"format = 1\ngit = true\n{SETTINGS}")
    memory = opened(root, create=True)
    memory.observe(TURNS)
    memory.consolidate()
    for name in OTHERS:
        opened(root, name).rebuild()
    kept = {path.removeprefix("memory/") for path in repository.git("ls-files", "memory").split()}
    for name in ALL:
        wanted = {path for path in own(root, name) if path.endswith(".md")}
        assert wanted and wanted <= kept, name
    assert memory.status()["git"]["waiting"] == 0 and opened(root).doctor() == []


def test_compare_asks_all_and_writes_nothing(root: Path) -> None:
    before = files(root, *(folder for name in ALL for folder in strategies()[name].folders), "journal/")
    memory = opened(root, "gam")
    found = memory.compare("Who teaches the pottery class?")
    assert [one.strategy for one in found] == ["gam", *(name for name in ALL if name != "gam")]
    assert [one.reader for one in found] == [
        strategies()[one.strategy].make(None, memory.library.settings).readers[0] for one in found
    ]
    for one in found:
        alone = opened(root, one.strategy).ask("Who teaches the pottery class?")
        assert (one.answer.text, one.answer.citations) == (alone.text, alone.citations)
        assert "Bruno" in one.answer.text and one.answer.usage.calls >= 1
        assert any("Bruno" in item.text for item in one.evidence.items) and one.ms > 0
    assert (
        files(root, *(folder for name in ALL for folder in strategies()[name].folders), "journal/") == before
    )
    with pytest.raises(UsageError, match="empty"):
        memory.compare(" ")
