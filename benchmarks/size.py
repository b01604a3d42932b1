"""Count how large each room of the package is, what a walk passes, and where its form breaks HOUSE's rules.

    python benchmarks/size.py            # a table
    python benchmarks/size.py --budgets  # write today's numbers to tests/budgets.toml; never a larger total

tests/test_house.py fails above these budgets. Lines are those of Python, SQL and templates; statements are
Python's, without docstrings; public names are what a module defines at its top without an underscore.
"""

from __future__ import annotations

import argparse
import ast
import functools
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUDGETS = ROOT / "tests" / "budgets.toml"
SHORT, LONG = 40, 600
"""Lines that a file has at least, and at most."""
COUNTED = (".py", ".sql", ".html")
COLUMNS = ("lines", "statements", "files", "functions", "names")

Counts = dict[str, int]
Tree = dict[str, ast.Module]
"""The parsed modules, by dotted name."""


# ── what is there ───────────────────────────────────────────────────────────────────────────────


def modules() -> list[tuple[str, Path]]:
    """Return the dotted name and the path of every module, in order."""
    outside = [
        (f"infinimem.{room}", path) for room in ("tools", "prompts") for path in ROOT.glob(f"{room}/*.py")
    ]
    inside = [
        (".".join(path.relative_to(ROOT).with_suffix("").parts), path)
        for path in ROOT.glob("infinimem/**/*.py")
    ]
    return sorted(inside + [(f"{package}.{path.stem}", path) for package, path in outside])


def sources() -> list[Path]:
    """Return every file whose lines count."""
    rooms = (ROOT / name for name in ("infinimem", "tools", "prompts"))
    return sorted(path for room in rooms for path in room.rglob("*") if path.suffix in COUNTED)


def room_of(path: Path) -> str:
    """Return the folder below the package, or "top" for a module that stands in none."""
    parts = path.relative_to(ROOT).parts
    return parts[0] if parts[0] != "infinimem" else parts[1] if len(parts) > 2 else "top"


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def trees() -> Tree:
    return {name: parsed(path) for name, path in modules()}


def length(path: Path) -> int:
    return path.read_text().count("\n")


def counts(path: Path) -> Counts:
    """Count one file."""
    found = {
        "lines": length(path),
        "statements": 0,
        "files": int(path.suffix == ".py"),
        "functions": 0,
        "names": 0,
    }
    if path.suffix != ".py":
        return found
    tree = parsed(path)
    for node in ast.walk(tree):
        text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        found["statements"] += isinstance(node, ast.stmt) and not text
        found["functions"] += isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    found["names"] = sum(not name.startswith("_") for name in defined(tree))
    return found


def defined(tree: ast.Module) -> Iterator[str]:
    """Yield the names that a module defines at its top."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (
                each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)
            )


def rooms() -> dict[str, Counts]:
    """Count each room."""
    found: dict[str, Counts] = {}
    for path in sources():
        room = found.setdefault(room_of(path), dict.fromkeys(COLUMNS, 0))
        for column, count in counts(path).items():
            room[column] += count
    return dict(sorted(found.items()))


def total() -> int:
    """Return the lines of all that counts."""
    return sum(length(path) for path in sources())


def walks() -> Counts:
    """Count the files that each walk passes."""
    command = [sys.executable, str(ROOT / "benchmarks" / "walks.py")]
    told = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return {name: int(count) for name, count in re.findall(r"^(\w+) +(\d+) files", told, re.M)}


# ── who imports whom ────────────────────────────────────────────────────────────────────────────


def imports(name: str, path: Path, known: Collection[str]) -> set[str]:
    """Return the modules of the package that one imports; of `from room import module` the module."""
    found: set[str] = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            package = name if path.name == "__init__.py" else name.rpartition(".")[0]
            above = package.split(".")[: package.count(".") + 2 - node.level] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                module = f"{base}.{alias.name}"
                found.add(module if module in known else base)
    return {item for item in found if item.startswith("infinimem.")} - {name}


def graph() -> dict[str, set[str]]:
    """Return what each module imports."""
    paths = {name.removesuffix(".__init__"): path for name, path in modules()}
    return {name: imports(name, path, paths) for name, path in paths.items()}


def circles(edges: Mapping[str, Collection[str]]) -> Counts:
    """Return the edges that lead in a circle, as "from -> to"."""
    left = {name: set(found) for name, found in edges.items()}
    closed: set[tuple[str, str]] = set()
    while True:
        try:
            TopologicalSorter(left).prepare()
        except CycleError as error:
            after = error.args[1]  # each is imported by the next
            step = (after[1], after[0])
            closed.add(step)
            left[step[0]].discard(step[1])
        else:
            return {f"{name} -> {other}": 1 for name, other in sorted(closed)}


# ── form ────────────────────────────────────────────────────────────────────────────────────────


def _unlike(returns: ast.expr | None) -> bool:
    """Tell whether a tuple of three or more parts that are not all alike is among what is returned."""
    for node in ast.walk(returns) if returns else ():
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "tuple":
            parts = [ast.unparse(part) for part in getattr(node.slice, "elts", ())]
            if len(parts) > 2 and len(set(parts)) > 1:
                return True
    return False


def form() -> dict[str, Counts]:
    """Return what breaks the rules of form, and how often; each list may only become shorter."""
    by_name, imported = trees(), graph()
    between: dict[str, set[str]] = {}
    for name, others in imported.items():
        of = name.split(".")[1] if "." in name else name
        between.setdefault(of, set()).update({other.split(".")[1] for other in others} - {of})
    classes = Counter(
        node.name for tree in by_name.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    )
    tuples = Counter(
        f"{module}.{node.name}"
        for module, tree in by_name.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _unlike(node.returns)
    )
    lengths = {
        str(path.relative_to(ROOT)): length(path) for _, path in modules() if path.name != "__init__.py"
    }
    return {
        "circles of rooms": circles(between),
        "circles of files": circles(imported),
        "classes of several meanings": {name: count for name, count in sorted(classes.items()) if count > 1},
        "tuples of unlike parts": dict(sorted(tuples.items())),
        "short files": {path: 1 for path, count in lengths.items() if count < SHORT},
        "long files": {path: 1 for path, count in lengths.items() if count > LONG},
    }


# ── budgets ─────────────────────────────────────────────────────────────────────────────────────


def over(now: Mapping[str, int], budget: Mapping[str, int]) -> list[str]:
    """Return what is above its budget; what has none may not be there."""
    return [
        f"{name}: {count}, budget {budget.get(name, 0)}"
        for name, count in now.items()
        if count > budget.get(name, 0)
    ]


def refusals(old: Mapping[str, object], lines: int, lists: Mapping[str, Counts]) -> list[str]:
    """Return why today's numbers may not become the budgets."""
    most = int(str(old.get("total", lines)))
    grown = [f"the total is {lines} lines and may be {most}: take {lines - most} out"] if lines > most else []
    before = old.get("form", lists)
    assert isinstance(before, Mapping)
    for name, found in lists.items():
        had = sum(before.get(name, {}).values())
        if sum(found.values()) > had:
            new = ", ".join(sorted(found.keys() - before.get(name, {}).keys())) or "one of the old more often"
            grown.append(f"{name}: {sum(found.values())} and may be {had}: {new}")
    return grown


def written(lines: int, sizes: Mapping[str, Counts], passed: Counts, lists: Mapping[str, Counts]) -> str:
    """Return the budgets as TOML."""
    out = [
        "# Budgets: python benchmarks/size.py --budgets writes them, tests/test_house.py holds them.",
        f"total = {lines}",
    ]
    out += ["", "[rooms]"]
    for room, found in sizes.items():
        out.append(f"{room} = {{ {', '.join(f'{name} = {count}' for name, count in found.items())} }}")
    out += ["", "[walks]", *(f"{name} = {count}" for name, count in passed.items())]
    for name, some in lists.items():
        out += ["", f'[form."{name}"]', *(f'"{each}" = {count}' for each, count in some.items())]
    return "\n".join([*out, ""])


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--budgets", action="store_true", help="write tests/budgets.toml")
    write = parser.parse_args().budgets
    sizes, lines, lists, passed = rooms(), total(), form(), walks()
    if write:
        old = tomllib.loads(BUDGETS.read_text()) if BUDGETS.exists() else {}
        if grown := refusals(old, lines, lists):
            print("\n".join(grown), file=sys.stderr)
            return 1
        BUDGETS.write_text(written(lines, sizes, passed, lists))
    print(f"{'room':14}" + "".join(f"{column:>12}" for column in COLUMNS))
    sums = {column: sum(found[column] for found in sizes.values()) for column in COLUMNS}
    for room, found in [*sizes.items(), ("all", sums)]:
        print(f"{room:14}" + "".join(f"{found[column]:12,}" for column in COLUMNS))
    for name, count in passed.items():
        print(f"walk {name}: {count} files")
    for name, some in lists.items():
        print(f"{name}: {sum(some.values())}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
