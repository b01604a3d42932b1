"""The house rules that a reader relies on: who imports whom, what is packaged, what is phrased where."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

ROOMS = (
    ("model", "errors"),
    ("settings", "tokens"),
    ("markdown",),
    ("negation",),
    ("law",),
    ("remote",),
    ("embedders",),
    ("store",),
    ("retrieval",),
    ("prompts",),
    ("llm",),
    ("tools",),
    ("strategies",),
    ("answer", "estimate"),
    ("importers",),
    ("reader",),
    ("memory",),
    ("watch",),
    ("testing",),
    ("adapters", "bench", "hooks", "lint", "mcp"),
    ("cli",),
    ("__main__",),
)
"""From the ground up; a room imports only what stands above it in this list, or beside it."""
LEVEL = {room: level for level, rooms in enumerate(ROOMS) for room in rooms}


def modules() -> list[tuple[str, Path]]:
    found = [
        (".".join(path.relative_to(ROOT).with_suffix("").parts), path)
        for path in ROOT.glob("infinimem/**/*.py")
    ]
    found += [
        (f"infinimem.{folder}.{path.stem}", path)
        for folder in ("tools", "prompts")
        for path in ROOT.glob(f"{folder}/*.py")
    ]
    return sorted(found)


def imports(name: str, path: Path) -> set[str]:
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            full = ".".join([*base, *([node.module] if node.module else [])])
            found |= (
                {full, *(f"{full}.{alias.name}" for alias in node.names)} if full == "infinimem" else {full}
            )
    return {item for item in found if item.startswith("infinimem.")}


def room(module: str) -> str:
    return module.split(".")[1]


@pytest.mark.parametrize(
    ("name", "path"), modules(), ids=lambda value: str(value) if isinstance(value, str) else ""
)
def test_rooms_import_only_rooms_above(name: str, path: Path) -> None:
    name = name.removesuffix(".__init__")
    if name == "infinimem":
        return
    for imported in imports(name, path):
        if room(imported) not in LEVEL:
            continue
        assert LEVEL[room(imported)] <= LEVEL[room(name)], f"{name} imports {imported}"
        if room(name) == room(imported) == "strategies" and name.count(".") > 2:
            system = name.split(".")[2]
            other = imported.split(".")[2]
            assert other in (system, "base", "graph", "readers"), f"{name} imports a sibling, {imported}"


def test_packages_are_listed() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    there = {"infinimem.tools", "infinimem.prompts"}
    there |= {".".join(path.parent.relative_to(ROOT).parts) for path in ROOT.glob("infinimem/**/*.py")}
    assert sorted(listed) == sorted(there)


def test_no_file_is_too_long() -> None:
    long = {
        str(path.relative_to(ROOT)): count
        for _, path in modules()
        if (count := len(path.read_text().splitlines())) > 400
    }
    assert not long


def test_nothing_phrased_for_a_model_stands_in_python() -> None:
    phrased = re.compile(r"You are an? |[Rr]eturn (only )?JSON|Respond with|Answer in JSON")
    found = [str(path) for _, path in modules() if phrased.search(path.read_text())]
    assert not found
