"""The house rules that a reader relies on: who imports whom, what is packaged, what is phrased where, what
tests look at."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

ROOMS = (
    ("model", "errors"),
    ("settings", "tokens"),
    ("markdown",),
    ("negation",),
    ("law",),
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


# ── tests look at what is public ────────────────────────────────────────────────────────────────

PRIVATE = re.compile(r"_[A-Za-z]\w*")
REASON = re.compile(r"# private: \S")
DOCUMENTED = {"_exit", "_getframe"}
"""Of os and sys, by Python's own manual."""
BY_NAME = {"setattr", "delattr", "getattr", "hasattr", "object", "patch"}
"""Functions, of monkeypatch and unittest.mock too, that take a name as text."""


def looked_at(source: str) -> Iterator[tuple[int, str]]:
    """Where a test imports, reads or patches a private name that it does not define itself: line and name."""
    nodes = list(ast.walk(ast.parse(source)))
    own = set(DOCUMENTED)
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            own.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            own.add(node.attr)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            own.add(node.target.id)
    for node in nodes:
        named: list[tuple[int, str]] = []
        if isinstance(node, ast.Attribute):
            named = [(node.end_lineno or node.lineno, node.attr)]
        elif isinstance(node, ast.Import | ast.ImportFrom):
            module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            named = [(node.lineno, name) for name in (module, *(alias.name for alias in node.names))]
        elif isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            texts = (arg for arg in node.args if isinstance(arg, ast.Constant) and called in BY_NAME)
            named = [(text.lineno, str(text.value)) for text in texts]
        for line, name in named:
            yield from ((line, p) for p in name.split(".") if PRIVATE.fullmatch(p) and p not in own)


def unexplained(source: str) -> list[tuple[int, str]]:
    lines = source.splitlines()
    return sorted({found for found in looked_at(source) if not REASON.search(lines[found[0] - 1])})


def test_tests_look_at_private_names_for_a_reason_alone() -> None:
    """Else they break when rooms move; a comment on the line says why: "# private: " and the reason."""
    found = {path.name: unexplained(path.read_text()) for path in ROOT.glob("tests/**/*.py")}
    assert not {name: there for name, there in found.items() if there}


@pytest.mark.parametrize(
    "line",
    [
        "memory._library.view()",
        "from infinimem.store.plans import _current",
        "import infinimem._hidden",
        'monkeypatch.setattr(packed, "_opened", {})',
        'monkeypatch.setattr("infinimem.tokens._encoding", None)',
        'patch.object(Repository, "_run")',
        'getattr(handler, "_Loader")',
        "view.document(doc_id)._lines  # private",
    ],
)
def test_private_names_are_seen(line: str) -> None:
    assert [number for number, _ in unexplained(f"one = 1\n{line}\n")] == [2]
    assert unexplained(f"one = 1\n{line}  # private: it has no other seam\n") == []


@pytest.mark.parametrize(
    "code",
    [
        "class Twin:\n    def put(self):\n        self._held = 1\n\n    def get(self): return self._held",
        'os._exit(0)\nmonkeypatch.setenv("GIT_AUTHOR_NAME", "_x")\ntask == f"{off}_unit"',
        "for _, row in rows:\n    row.__class__",
    ],
)
def test_what_is_a_tests_own_is_not(code: str) -> None:
    assert unexplained(code) == []
