"""The figures of a run as one picture: how time grows with the library, engine by engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, floor, log10
from pathlib import Path
from typing import Any

from speed_engines import NAMES
from speed_libraries import short
from speed_report import get, grep_p50, p50

INK = "#222222"
COLOURS = {"infinimem": "#c0392b"}
"""One line stands out; the others are told by their labels."""
GREY = "#7a8288"
SHOWN = tuple(name for name in NAMES if name != "rank_bm25+")
"""rank_bm25's two variants take the same time."""


def lines(figures: Mapping[str, Any]) -> list[tuple[str, dict[str, list[tuple[int, float]]]]]:
    """(title, points by engine) of each panel."""
    sizes = {int(key): value for key, value in figures["sizes"].items()}

    def points(value: Any) -> list[tuple[int, float]]:
        return [(n, found) for n, size in sorted(sizes.items()) if (found := value(size))]

    panels: list[tuple[str, Any, Sequence[str]]] = [
        ("search, 8 terms", lambda e: lambda s: p50(s, e, "eight"), SHOWN),
        ("first answer of a new process", lambda e: lambda s: get(s, "search", e, "first_ms"), SHOWN),
        ("grep, a literal", lambda e: lambda s: grep_p50(s, e, "literal"), SHOWN),
    ]
    return [
        (title, {engine: found for engine in engines if (found := points(of(engine)))})
        for title, of, engines in panels
    ]


def plot(figures: Mapping[str, Any], out: Path) -> bool:
    """Draw it.

    Args:
        figures: as speed.py writes them.
        out: a PNG file.

    Returns:
        False where matplotlib is not installed; nothing is drawn.
    """
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.ticker import FuncFormatter, NullFormatter

    panels = lines(figures)
    figure, axes = pyplot.subplots(1, len(panels), figsize=(13, 4.2), layout="constrained")
    sizes = sorted(int(key) for key in figures["sizes"])
    for axis, (title, found) in zip(axes, panels, strict=True):
        axis.set_xscale("log")
        axis.set_yscale("log")
        for engine, points in found.items():
            colour = COLOURS.get(engine, GREY)
            axis.plot(
                *zip(*points, strict=True),
                "o-",
                color=colour,
                zorder=3 if engine in COLOURS else 2,
                markersize=3.5,
                linewidth=1.8,
            )
        every = [y for points in found.values() for _, y in points]
        if every:
            axis.set_ylim(10 ** floor(log10(min(every))), 10 ** ceil(log10(max(every))))
            _label(axis, {engine: points[-1] for engine, points in found.items()}, sizes[-1])
        axis.set_title(f"{title}, ms (p50)", loc="left", fontsize=10, color=INK)
        axis.set_xticks(sizes, [short(size) for size in sizes], fontsize=9, color=INK)
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.set_xlim(sizes[0] / 1.5, sizes[-1] * max(sizes[-1] / sizes[0], 10) ** 0.4)
        axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        axis.yaxis.set_minor_formatter(NullFormatter())
        axis.tick_params(which="both", length=0, colors=INK, labelsize=9)
        axis.grid(axis="y", color="#e6e8ea", linewidth=0.8)
        axis.set_axisbelow(True)
        for side in ("top", "right", "left", "bottom"):
            axis.spines[side].set_visible(False)
    figure.supxlabel("documents of 9.8 KB; both axes logarithmic", fontsize=9, color=GREY)
    figure.savefig(out, dpi=110)
    pyplot.close(figure)
    return True


def _label(axis: Any, ends: Mapping[str, tuple[int, float]], last: int) -> None:
    """Each line's name at its end, moved apart where they would touch; over it where it ends early."""
    low, high = (log10(limit) for limit in axis.get_ylim())
    gap = (high - low) * 0.06
    ranked = sorted((e for e in ends if ends[e][0] == last), key=lambda engine: (ends[engine][1], engine))
    places = [log10(ends[engine][1]) for engine in ranked]
    for _ in range(100):
        for at in range(1, len(places)):
            apart = max(gap - (places[at] - places[at - 1]), 0.0) / 2
            places[at - 1], places[at] = places[at - 1] - apart, places[at] + apart
    places = [min(place, high) for place in places]
    early = sorted(set(ends).difference(ranked))
    heights = {**dict(zip(ranked, places, strict=True)), **{e: log10(ends[e][1]) + gap / 2 for e in early}}
    for engine, height in heights.items():
        axis.annotate(
            NAMES[engine].removesuffix(" Okapi"),
            (ends[engine][0] * (1.2 if engine in ranked else 0.95), 10**height),
            ha="left" if engine in ranked else "right",
            va="center",
            fontsize=9,
            color=COLOURS.get(engine, GREY),
            weight="bold" if engine in COLOURS else "normal",
            annotation_clip=False,
        )
