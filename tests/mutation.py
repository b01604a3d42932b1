"""Small faults for the program, and which tests should notice each.

The fixed list is mutants/*.toml, one file a group, an array of tables:

    [[mutant]]
    id = "mend-dropped"              # unique in its group, as words of a file name
    file = "store/library.py"        # below infinimem/, or below the checkout: "tools/search.py"
    old = "tails.mend("              # stands once in that file; what is put in its place is `new`
    new = "len("
    tests = ["test_store_tails.py"]  # below tests/, most likely first; pytest's "file::test" too
    why = "torn tails stay"          # what goes wrong, in few words

A fault that changes nothing a user could see is no row. `mutate.py` runs them; `systematic` makes more from
the syntax of a module.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
LIST = Path(__file__).with_name("mutants")


@dataclass(frozen=True)
class Mutant:
    """One fault; the names are those of a row."""

    group: str
    id: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    why: str

    def __str__(self) -> str:
        return f"{self.group}/{self.id}"

    def path(self, checkout: Path = CHECKOUT) -> Path:
        """The file that it changes."""
        inside = checkout / "infinimem" / self.file
        return inside if inside.exists() else checkout / self.file

    def applied(self, source: str) -> str:
        """The source with the fault in it."""
        return source.replace(self.old, self.new)


def listed(folder: Path = LIST) -> list[Mutant]:
    """The fixed list.

    Raises:
        TypeError: a row lacks a key, or has one too many.
    """
    return [
        Mutant(file.stem, **{**row, "tests": tuple(row["tests"])})
        for file in sorted(folder.glob("*.toml"))
        for row in tomllib.loads(file.read_text())["mutant"]
    ]


def problem(mutant: Mutant) -> str:
    """Why a mutant is none, or none any more; "" if it is one."""
    source = mutant.path().read_text() if mutant.path().exists() else ""
    if (times := source.count(mutant.old)) != 1:
        return f"`old` stands {times} times in {mutant.file}"
    if mutant.old == mutant.new:
        return "it changes nothing"
    try:
        ast.parse(mutant.applied(source))
    except SyntaxError as error:
        return f"it does not compile: {error}"
    missing = [test for test in mutant.tests if not (LIST.parent / test.partition("::")[0]).is_file()]
    return f"there is no {missing[0]}" if missing else "" if mutant.tests else "it names no tests"


# ── made from the syntax ────────────────────────────────────────────────────────────────────────

_NEGATED: dict[type[ast.cmpop], str] = {
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Lt: ">=",
    ast.GtE: "<",
    ast.Gt: "<=",
    ast.LtE: ">",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}


def systematic(file: Path, group: str, tests: tuple[str, ...]) -> list[Mutant]:
    """Mutants of a module, in the order of its source: a comparison negated, a `not` dropped, a call that
    is a statement left out, `and` and `or` swapped, a condition of one dropped, a whole number one larger.

    Args:
        file: the module.
        group, tests: of the mutants.
    """
    source = file.read_text()
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    name = str(file.relative_to(CHECKOUT)).removeprefix("infinimem/")
    data, found = source.encode(), []
    for node, new in sorted(_changes(ast.parse(source)), key=lambda change: _place(change[0])):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        changed = (data[:start] + new.encode() + data[end:]).decode()
        why = f"line {node.lineno}: {_short(data[start:end].decode())} became {_short(new)}"
        key = f"{name.removeprefix(f'{group}/')}:{len(found) + 1}"
        found.append(Mutant(group, key, name, source, changed, tests, why))
    return found


def _place(node: ast.expr | ast.stmt) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _short(code: str) -> str:
    return f"`{code}`" if len(code := " ".join(code.split())) < 60 else f"`{code[:58]}…`"


def _changes(tree: ast.Module) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """What to put in the place of which node. Annotations, decorators and f-strings are left alone: the first
    two change no behaviour worth a test, and Python 3.11 does not tell where the parts of the last stand."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        for name, value in ast.iter_fields(node):
            if name not in ("annotation", "returns", "decorator_list"):
                inner = value if isinstance(value, list) else [value]
                pending += [n for n in inner if isinstance(n, ast.AST) and not isinstance(n, ast.JoinedStr)]
        if isinstance(node, ast.expr):
            yield from ((node, f"({new})") for new in _expressions(node))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield node, "pass"


def _expressions(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        right = ast.unparse(node.comparators[0])
        yield f"({ast.unparse(node.left)}) {_NEGATED[type(node.ops[0])]} ({right})"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield ast.unparse(node.operand)
    elif isinstance(node, ast.BoolOp):
        other = ast.And() if isinstance(node.op, ast.Or) else ast.Or()
        yield ast.unparse(ast.BoolOp(other, node.values))
        for dropped in range(len(node.values)):
            left = [value for at, value in enumerate(node.values) if at != dropped]
            yield ast.unparse(left[0] if len(left) == 1 else ast.BoolOp(node.op, left))
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield str(node.value + 1)
