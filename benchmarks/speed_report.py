"""The figures of a run as Markdown tables; the plot is in speed_plot.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from speed_engines import NAMES
from speed_libraries import short
from speed_queries import KINDS

Figures = Mapping[str, Any]
Median = Callable[[Figures, str, str], float | None]
"""In ms, of an engine and a kind of query or pattern."""

GOALS: Sequence[tuple[str, str, tuple[float, ...]]] = (
    ("search, 8 terms, p50", "ms", (2, 3, 6, 15)),
    ("grep, literal, p50", "ms", (10, 30, 120, 800)),
    ("first answer of a new process", "s", (0.25, 0.25, 0.5, 1.5)),
    ("index built from nothing", "s", (0.5, 4, 45, 300)),
)
"""What is aimed at for 300, 3,000, 30,000 and 200,000 documents."""
GOAL_SIZES = (300, 3_000, 30_000, 200_000)
WAYS = {
    "observed": "through infinimem, same process",
    "observed, next door": "through infinimem, a second process",
    "hand": "by another program, same process",
    "hand, next door": "by another program, a second process",
}


def report(figures: Figures) -> str:
    """All tables of a run.

    Args:
        figures: as speed.py writes them; what was not measured stays blank.
    """
    sizes = {
        int(key): value for key, value in sorted(figures["sizes"].items(), key=lambda item: int(item[0]))
    }
    told = figures["machine"]
    parts = [
        f"{told['cores']} cores, {told['memory_gib']} GiB, {told['system']}, Python {told['python']}. "
        "Times are warm unless the column says otherwise; MB are 10^6 bytes.",
        "### Goals\n\n" + table(("goal / measured", *map(short, GOAL_SIZES)), goals(sizes)),
        "### Ratios within this run\n\n" + table(("", *map(short, sizes)), filled(ratios(sizes))),
    ]
    for documents, size in sizes.items():
        if "search" in size:
            head = ("engine", "build s", "peak MB, building", "peak MB, asking (anonymous)", "disk MB")
            columns = (
                *head,
                "first answer of a new process, ms",
                *(f"{name}, ms" for name in KINDS.values()),
            )
            parts.append(
                f"### Search, {documents:,} documents\n\n" + table(columns, searches(size["search"]))
            )
    parts.append("### Grep, ms\n\n" + greps(sizes))
    if figures.get("grep"):
        parts.append("### Grep in one file of 8 MB, ms\n\n" + grep_table(figures["grep"]))
    head = ("what is written", "documents", "added to the next search, ms", "found by it", "found after, ms")
    parts.append("### Something is written\n\n" + table(head, written(sizes)))
    return "\n\n".join(parts)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def number(value: float | None) -> str:
    """Three digits, never more than are known."""
    if value is None:
        return ""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.{0 if value >= 100 else 1 if value >= 10 else 2}f}"


def get(figures: Any, *keys: str) -> Any:
    """What stands under these keys; None where one is missing."""
    for key in keys:
        figures = figures.get(key) if isinstance(figures, Mapping) else None
    return figures


def p50(size: Figures, engine: str, kind: str) -> float | None:
    found: float | None = get(size, "search", engine, "warm", "kinds", kind, "p50_ms")
    return found


def grep_p50(size: Figures, engine: str, kind: str) -> float | None:
    found: float | None = get(size, "grep", engine, "kinds", kind, "p50_ms")
    return found


def goals(sizes: Mapping[int, Figures]) -> Iterator[list[str]]:
    """A row a goal, each cell the goal and what was measured."""

    def measured(name: str, size: Figures) -> float | None:
        ours = get(size, "search", "infinimem")
        first = get(ours, "first_ms")
        found: dict[str, float | None] = {
            "search": p50(size, "infinimem", "eight"),
            "grep": grep_p50(size, "infinimem", "literal"),
            "first": first and first / 1e3,
            "index": get(ours, "build", "build_s"),
        }
        return found[name]

    for name, unit, aims in GOALS:
        values = [measured(name.split(",")[0].split()[0], sizes.get(n, {})) for n in GOAL_SIZES]
        yield [f"{name}, {unit}", *(f"{aim:g} / {number(v)}" for aim, v in zip(aims, values, strict=True))]


def ratios(sizes: Mapping[int, Figures]) -> Iterator[list[str]]:
    """Ours against each other, size by size."""

    def beside(median: Median, peer: str, kind: str, told: Callable[[float, float], str]) -> list[str]:
        """A cell a size, of our median and the peer's; blank where one was not measured."""
        pairs = [(median(size, "infinimem", kind), median(size, peer, kind)) for size in sizes.values()]
        return [told(ours, theirs) if ours and theirs else "" for ours, theirs in pairs]

    def times(ours: float, theirs: float) -> str:
        return number(theirs / ours)

    def more(ours: float, theirs: float) -> str:
        return f"{ours - theirs:+.2f}"

    for kind, name in KINDS.items():
        okapi = beside(p50, "rank_bm25", kind, times)
        yield [f"rank_bm25 Okapi takes so many times as long, {name}", *okapi]
    for kind, name in KINDS.items():
        yield [f"ours beside tantivy alone, ms, {name}", *beside(p50, "tantivy", kind, more)]
    kinds = next((get(size, "grep", "infinimem", "kinds") for size in sizes.values()), None) or {}
    for kind in kinds:
        yield [f"ripgrep takes so many times as long, {kind}", *beside(grep_p50, "ripgrep", kind, times)]
    cells = []
    for size in sizes.values():
        slowest = {kind: get(size, "grep", "infinimem", "kinds", kind, "max_ms") or 0.0 for kind in kinds}
        nested = slowest.pop("nested repeats", 0.0)
        cells.append(number(nested / max(slowest.values())) if any(slowest.values()) else "")
    yield ["our slowest of nested repeats, times our slowest other pattern", *cells]


def filled(rows: Iterable[Sequence[str]]) -> Iterator[Sequence[str]]:
    """Those in which something was measured."""
    return (row for row in rows if any(row[1:]))


def searches(size: Figures) -> Iterator[list[str]]:
    """A row an engine."""
    for engine, found in size.items():
        kinds = get(found, "warm", "kinds") or {}
        anonymous = get(found, "warm", "anonymous_mb")
        yield [
            NAMES[engine],
            number(found["build"]["build_s"]),
            number(found["build"]["peak_mb"]),
            f"{number(found['warm']['peak_mb'])} ({number(anonymous)})",
            number(found["disk_mb"]),
            number(found["first_ms"]),
            *(spread(kinds.get(kind)) for kind in KINDS),
        ]


def spread(found: Figures | None) -> str:
    """Median and 95th percentile, and of how many where they are few."""
    if not found or not found["n"]:
        return ""
    few = f", n={found['n']:.0f}" if found["n"] < 100 else ""
    return f"{number(found['p50_ms'])} (p95 {number(found['p95_ms'])}{few})"


def greps(sizes: Mapping[int, Figures]) -> str:
    """A row a kind of pattern and a size."""
    rows = []
    for documents, size in sizes.items():
        found = size.get("grep", {})
        rows += [[short(documents), kind, *cells] for kind, cells in _rows(found).items()]
    return table(("documents", "pattern", *(NAMES[name] for name in _GREPS)), rows)


_GREPS = ("infinimem", "ripgrep", "re")


def _cell(found: Figures | None, kind: str) -> str:
    row = get(found, "kinds", kind)
    if not row:
        return ""
    gave_up = (
        f"; over {row['limit_s']:.0f} s: {' '.join(f'`{_barred(text)}`' for text in row['gave_up'])}"
        if row["gave_up"]
        else ""
    )
    return (f"{number(row['p50_ms'])} (max {number(row['max_ms'])})" if row["n"] else "") + gave_up


def _barred(text: str) -> str:
    return text.replace("|", "\\|")


def grep_table(found: Figures) -> str:
    """A row a kind of pattern, for one file."""
    rows = ([kind, *cells] for kind, cells in _rows(found).items())
    return table(("pattern", *(NAMES[name] for name in _GREPS)), rows)


def _rows(found: Figures) -> dict[str, list[str]]:
    """The cells of each kind of pattern."""
    kinds = get(next(iter(found.values()), None), "kinds") or {}
    return {kind: [_cell(found.get(name), kind) for name in _GREPS] for kind in kinds}


def written(sizes: Mapping[int, Figures]) -> Iterator[list[str]]:
    """A row a way and a size; peers that can take in a change at the end."""
    for way, name in WAYS.items():
        for documents, size in sizes.items():
            found = get(size, "changes", way)
            if found:
                at_once = f"{found['at_once']} of {found['n']}"
                after = f"{number(found['until_p50_ms'])} (max {number(found['until_max_ms'])})"
                yield [name, short(documents), spread(found), at_once, after]
    for documents, size in sizes.items():
        writing = get(size, "changes", "writing")
        if writing:
            yield ["`observe` itself, ms", short(documents), spread(writing), "", ""]
    for engine, name in NAMES.items():
        for documents, size in sizes.items():
            found = get(size, "search", engine, "change", "peer")
            if found:
                told = f"{found['found']} of {found['n']}"
                yield [f"one document, {name}, writing included", short(documents), spread(found), told, ""]
