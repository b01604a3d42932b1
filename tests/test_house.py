"""The house rules that a reader relies on: who imports whom, what is packaged, what is phrased where, what
tests look at."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import size
from size import graph, modules

from infinimem.spec import strategies

ROOT = Path(__file__).parents[1]

ROOMS = (
    ("log",),
    ("model", "errors", "user_folders"),
    ("spec",),
    ("settings", "tokens"),
    ("markdown",),
    ("terms",),
    ("law",),
    ("grounding",),
    ("remote",),
    ("embedders",),
    ("store",),
    ("index",),
    ("retrieval",),
    ("operations",),
    ("prompts",),
    ("llm",),
    ("tools",),
    ("strategies",),
    ("answer", "estimate"),
    ("importers",),
    ("reader",),
    ("memory",),
    ("async_memory", "watch"),
    ("testing",),
    ("serving",),
    ("adapters", "evaluation", "fleet", "hooks", "mcp", "results", "web"),
    ("cli",),
    ("__main__",),
)
"""From the ground up; a room imports only what stands above it in this list, or beside it."""
LEVEL = {room: level for level, rooms in enumerate(ROOMS) for room in rooms}


def room(module: str) -> str:
    return module.split(".")[1]


def test_rooms_import_only_rooms_above() -> None:
    upwards = [
        f"{name} imports {imported}"
        for name, found in graph().items()
        if name != "infinimem"
        for imported in sorted(found)
        if room(imported) in LEVEL and LEVEL[room(imported)] > LEVEL[room(name)]
    ]
    assert not upwards


def test_a_strategy_imports_no_other() -> None:
    shared = {"base", "links", "readers", "records", "segment", "vector_index"}
    siblings = [
        f"{name} imports {imported}"
        for name, found in graph().items()
        if name.startswith("infinimem.strategies.") and name.count(".") > 2
        for imported in sorted(found)
        if imported.startswith("infinimem.strategies.")
        if imported.split(".")[2] not in {name.split(".")[2], *shared}
    ]
    assert not siblings


NAMED = {
    "infinimem/spec.py": "the default",
    "infinimem/cli/bench.py": "the methods that a run compares where none is named",
    "infinimem/evaluation/model.py": "an example of a method's name",
}
"""Where a strategy is named outside its folder."""


def test_no_other_room_names_a_strategy() -> None:
    """What the program knows of one stands in its row: strategies/*/spec.py."""
    named = re.compile(rf"\b(?:{'|'.join(strategies())})\b")
    found = {
        str(path.relative_to(ROOT))
        for name, path in modules()
        if not name.startswith(tuple(f"infinimem.strategies.{one}." for one in strategies()))
        if named.search(path.read_text())
    }
    assert found == set(NAMED)


def test_the_rows_of_strategies_import_little() -> None:
    """They are read whenever a library is opened."""
    code = "import sys, infinimem.spec; infinimem.spec.strategies(); print(*sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    found = {name.removeprefix("infinimem.") for name in told.stdout.split() if name.startswith("infinimem.")}
    own = {f"strategies.{name}{end}" for name in strategies() for end in ("", ".spec")}
    assert found == {"errors", "settings", "spec", "strategies", "user_folders", *own}


def test_the_law_knows_no_english_and_what_checks_a_model_no_offline_rules() -> None:
    found = graph()
    assert not {name for name in found["infinimem.law"] if "grounding" in name}
    outside = [
        f"{name} imports {imported}"
        for name, those in found.items()
        if "." in name and room(name) in ("grounding", "store", "operations", "strategies")
        for imported in sorted(those)
        if imported.startswith("infinimem.llm.offline")
    ]
    assert not outside


def test_every_room_has_its_row() -> None:
    """AGENTS.md is the map."""
    rows = "".join(line for line in (ROOT / "AGENTS.md").read_text().splitlines() if line.startswith("| `"))
    rooms = {room(name) for name, _ in modules() if "." in name} - {
        "__init__",
        "__main__",
        "testing",
        "estimate",
    }
    assert not {name for name in rooms if f"`{name}.py`" not in rows and f"`{name}/`" not in rows}


def test_packages_are_listed() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    there = {"infinimem.tools", "infinimem.prompts"}
    there |= {".".join(path.parent.relative_to(ROOT).parts) for path in ROOT.glob("infinimem/**/*.py")}
    assert sorted(listed) == sorted(there)


# ── budgets: `python benchmarks/size.py --budgets` writes the table ─────────────────────────────

BUDGETS = tomllib.loads(size.BUDGETS.read_text())


def test_the_package_does_not_grow() -> None:
    """What does not fit replaces something."""
    assert size.total() <= BUDGETS["total"]


def test_every_room_keeps_its_budget() -> None:
    """A commit may move lines from room to room, and then writes the table anew."""
    above = {room: size.over(now, BUDGETS["rooms"].get(room, {})) for room, now in size.rooms().items()}
    assert not {room: found for room, found in above.items() if found}


def test_the_walks_do_not_become_longer() -> None:
    walks = size.walks()
    assert walks.keys() == BUDGETS["walks"].keys()
    assert not size.over(walks, BUDGETS["walks"])


def test_lists_of_what_breaks_the_form_only_shrink() -> None:
    above = {name: size.over(now, BUDGETS["form"].get(name, {})) for name, now in size.form().items()}
    assert not {name: found for name, found in above.items() if found}


def test_a_larger_total_and_a_longer_list_are_refused_as_budgets() -> None:
    old = {"total": 100, "form": {"short files": {"a.py": 1}}}
    assert size.refusals(old, 100, {"short files": {"renamed.py": 1}}) == []
    assert size.refusals(old, 101, {"short files": {}}) == [
        "the total is 101 lines and may be 100: take 1 out"
    ]
    (told,) = size.refusals(old, 99, {"short files": {"a.py": 1, "b.py": 1}})
    assert told == "short files: 2 and may be 1: b.py"


def test_no_function_is_too_long() -> None:
    """Or has its reason on the line of its name: "# long: " and the reason. Ruff bounds the complexity."""
    lines = {path: path.read_text().splitlines() for _, path in modules()}
    long = {
        f"{path.relative_to(ROOT)}: {node.name}": count
        for path, text in lines.items()
        for node in ast.walk(ast.parse("\n".join(text)))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if (count := (node.end_lineno or 0) - node.lineno + 1) > 60
        if not re.search(r"# long: \S", text[node.lineno - 1])
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
