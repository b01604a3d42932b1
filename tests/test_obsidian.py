"""Obsidian, or any other reader of Markdown with YAML headers, opens a library without a warning."""

from __future__ import annotations

import datetime
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import Any
from urllib.parse import unquote

import pytest
import yaml
from git_repository import run_git

from infinimem import Turn, open_memory
from infinimem.memory import Memory
from infinimem.store.library import init
from infinimem.store.plans import links_of
from infinimem.store.spec import unlawful

SAMPLE = Path(__file__).parents[1] / "sample_library"
ODD = (
    "yes",
    "0b101",
    "2025-02-30",
    "190:20:30.15",
    "a: b #c",
    "[x]|^#",
    "CON",
    "- x",
    "'",
    '"',
    "💥",
    "=",
    "~",
    "1e3",
)
"""Names that YAML, file systems or links would take for something else."""


def odd(root: Path, strategy: str) -> Memory:
    """A memory in which everything has a name that invites misreading."""
    memory = open_memory(root, model="offline", create=True, strategy=strategy)
    for name in ODD:
        memory.observe(
            [Turn(f"My cat is called {name} since I moved to Lisbon.", speaker=name, session=name)]
        )
    memory.consolidate()
    return memory


@pytest.fixture(scope="module", params=["sample", "infini", "allmem"])
def memory(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Memory:
    root = tmp_path_factory.mktemp("library")
    if request.param != "sample":
        return odd(root, request.param)
    shutil.copytree(SAMPLE, root, dirs_exist_ok=True)
    return open_memory(root, model="offline")


# ── headers ─────────────────────────────────────────────────────────────────────────────────────


def headers(memory: Memory) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Of each document: its id, the text of its header, and what the program reads there."""
    for doc_id in memory.view.ids("all"):
        document = memory.view.document(doc_id)
        if document.header.end:
            text = "\n".join(document.lines[1 : document.header.end - 1])
            yield doc_id, text, dict(document.header.values)


def same(read: Any, typed: Any) -> bool:
    """Whether a typed reader finds what the program does, but for dates and the program's own numbers."""
    if isinstance(read, dict):
        return isinstance(typed, dict) and all(same(one, typed.get(key)) for key, one in read.items())
    if isinstance(read, list):
        return isinstance(typed, list) and all(map(same, read, typed))
    if isinstance(typed, float):
        return float(read) == typed
    return isinstance(typed, datetime.date) or read == (
        typed if isinstance(typed, str) else json.dumps(typed)
    )


@pytest.mark.sample(2)
def test_headers_are_valid_for_other_readers(memory: Memory) -> None:
    from ruamel.yaml import YAML

    strict = YAML(typ="safe", pure=True)  # YAML 1.2, as Obsidian's; a key that stands twice is an error
    count = 0
    for doc_id, text, read in headers(memory):
        count += 1
        for typed in (yaml.safe_load(text), strict.load(text)):
            assert same(read, typed), (doc_id, read, typed)
            assert typed["id"] == doc_id
            for key in ("session", "speaker", "summary"):
                assert isinstance(typed.get(key, ""), str | datetime.date), (doc_id, key)
            for key in ("aliases", "tags", "participants", "keywords"):
                assert all(isinstance(one, str) for one in typed.get(key, [])), (doc_id, key)
    assert count > 5


@pytest.mark.sample(2)
def test_no_two_kinds_of_value_under_one_key(memory: Memory) -> None:
    """Obsidian gives a property one type for all notes, and marks those that do not fit it."""
    kinds: dict[str, set[str]] = {}
    for _, text, _ in headers(memory):
        for key, value in yaml.safe_load(text).items():
            kind = "date" if isinstance(value, datetime.date) else type(value).__name__
            kinds.setdefault(key, set()).add(kind)
    mixed = {key: found for key, found in kinds.items() if len(found) > 1}
    assert {
        key: found for key, found in mixed.items() if found not in ({"int", "float"}, {"str", "date"})
    } == {}


# ── names and links ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.sample(2)
def test_names_are_lawful_everywhere(memory: Memory) -> None:
    ids = memory.view.ids("all")
    assert {doc_id: why for doc_id in ids if (why := unlawful(doc_id))} == {}
    assert not [doc_id for doc_id in ids if re.search(r"[#^\[\]|:\\]", doc_id)]
    assert len({doc_id.casefold() for doc_id in ids}) == len(ids)


def links(text: str) -> Iterator[str]:
    """The targets of `[[…]]` and of Markdown links to notes, outside code."""
    text = re.sub(r"^(```+|~~~+).*?^\1", "", text, flags=re.M | re.S)
    text = re.sub(r"`[^`\n]*`", "", text)
    for target in re.findall(r"\[\[([^\]|#^\n]+)", text):
        yield target
    for target in re.findall(r"\]\(<?([^)>#\s]+\.md)", text):
        if "://" not in target:
            yield unquote(target).removesuffix(".md")


def leads(memory: Memory, target: str) -> bool:
    """Whether a link leads to one note by Obsidian's rules: the path, its end, or an alias."""
    ids = memory.view.ids("all")
    if any(doc_id == target or doc_id.endswith(f"/{target}") for doc_id in ids):
        return True
    return any(target in read.get("aliases", ()) for _, _, read in headers(memory))


@pytest.mark.sample(2)
def test_every_link_leads_somewhere(memory: Memory) -> None:
    gone = {name for receipt in memory.receipts() for name, _, after in receipt.files if after == "-"}
    for doc_id in memory.view.ids("all"):
        document = memory.view.document(doc_id)
        if not doc_id.startswith("evidence/"):  # what was said is left as it was said
            ends = (
                normpath(join(dirname(doc_id), one)) if one[:2] == ".." else one
                for one in links(document.body)
            )
            lost = {one for one in ends if not leads(memory, one)}
            # a receipt is never written again: what it names may have gone with a later one
            assert lost <= (gone if doc_id.startswith("journal/") else set()), doc_id
            assert [one for one in links_of(document) if one not in memory.view] == [], doc_id
    assert [one for one in memory.doctor() if one.what.startswith("links to")] == []


def test_links_of_people_lead_where_obsidian_leads_them(tmp_path: Path) -> None:
    root = tmp_path / "library"
    shutil.copytree(SAMPLE, root)
    note = "[[topics/books#Read|b]] [[books]] [[CURRENT]] [h](topics/home.md) [n](topics/home-network.md#x)\n"
    (root / "index.md").write_text(note)
    memory = open_memory(root, model="offline")
    found = list(links(note))
    assert found == ["topics/books", "books", "CURRENT", "topics/home", "topics/home-network"]
    assert all(leads(memory, target) for target in found)
    assert [one.what for one in memory.doctor()] == []
    assert memory.view.resolve("books") == "topics/books"
    (root / "index.md").write_text("[[nowhere]]\n")
    assert not leads(memory, "nowhere")
    assert ["links to nowhere" in one.what for one in memory.doctor()] == [True]


# ── Obsidian's own files ────────────────────────────────────────────────────────────────────────


def test_obsidians_folders_are_passed_over_and_its_windows_ignored_by_git(tmp_path: Path) -> None:
    root = tmp_path / "library"
    init(root)
    for name in (".obsidian/plugins/x/README.md", ".trash/old.md", "notes/plan.md"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("# Lisbon\n")
    (root / ".obsidian/workspace.json").write_text("{}")
    (root / ".obsidian/workspace-mobile.json").write_text("{}")
    (root / ".obsidian/app.json").write_text("{}")
    memory = open_memory(root, model="offline")
    assert memory.view.ids("all") == ("CURRENT", "notes/plan")
    assert memory.doctor() == []
    run_git(root, "init", "--quiet", env={})
    seen = run_git(root, "ls-files", "--others", "--exclude-standard", env={}).split()
    assert [name for name in seen if name.startswith(".")] == [
        ".gitignore",
        ".obsidian/app.json",
        ".obsidian/plugins/x/README.md",
    ]
