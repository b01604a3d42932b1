"""The two pictures of a report: quality against tokens, quality by category.

One colour a method, the same in all of them: the project's own in warm colours, baselines in cool ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from math import ceil, floor
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from infinimem.evaluation.methods.spec import OWN
from infinimem.evaluation.table import percent, tokens_of
from infinimem.evaluation.tally import Tallies, Tally

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#222222"
GRID = "#e3e6e8"
_OWN = (
    *("#b3261e", "#e8710a", "#d9a400", "#8e3b8a", "#e0529c", "#7a4a21", "#ff9d76", "#5c1010"),
    *("#c9a0c8", "#8a7a00", "#ff5a5f", "#e6c9a8"),
)
_OTHERS = ("#1f6fb2", "#2a9d8f", "#6b7a86", "#3f4e9e", "#79b8e0", "#4f8a3c", "#a7b0b7", "#12343b")
_MARKS = "osD^vP"
_WITHIN = re.compile(r"(R|turns) in (\d+)")
_LONGEST = 34  # characters of a method's name in a picture

Drawer = Callable[[Tallies, str], "Figure | None"]


def draw(tallies: Tallies, measure: str, folder: Path) -> list[tuple[str, str]] | None:
    """Draw what this run has figures for.

    Args:
        tallies: the run.
        measure: by which methods are ranked.
        folder: where the PNG files go.

    Returns:
        Name and title of each picture; None where matplotlib is not installed.
    """
    try:
        import matplotlib
    except ImportError:
        return None
    drawers: Mapping[str, tuple[str, Drawer]] = {
        "quality_tokens.png": ("Quality against tokens", _quality_tokens),
        "quality_categories.png": ("Quality by category", _quality_categories),
    }
    drawn = []
    with matplotlib.rc_context({"font.size": 9, "text.color": INK, "axes.labelcolor": INK}):
        for name, (title, drawer) in drawers.items():
            figure = drawer(tallies, measure)
            if figure is None:
                (folder / name).unlink(missing_ok=True)  # of an earlier report
                continue
            part = folder / f".{name}"  # the earlier one stays until this one is whole
            figure.savefig(part, dpi=150, format="png", metadata={"Software": None})
            part.replace(folder / name)
            drawn.append((name, title))
    return drawn


def _figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _colours(tallies: Tallies) -> dict[str, str]:
    own = [tally.name for tally in tallies.methods if tally.base in OWN]
    others = [tally.name for tally in tallies.methods if tally.name not in own]
    return {
        name: palette[number % len(palette)]
        for names, palette in ((own, _OWN), (others, _OTHERS))
        for number, name in enumerate(names)
    }


def _ranked(tallies: Tallies, measure: str) -> list[Tally]:
    """Best first."""
    order = {tally.name: number for number, tally in enumerate(tallies.methods)}
    return sorted(tallies.methods, key=lambda tally: (-(tally.mean(measure) or 0.0), order[tally.name]))


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"


def _clean(axis: Axes, grid: Literal["both", "x", "y"] = "both") -> None:
    axis.spines[["top", "right"]].set_visible(False)
    axis.spines[["left", "bottom"]].set_color("#9aa3a9")
    axis.tick_params(colors=INK, length=3)
    axis.grid(True, axis=grid, color=GRID, linewidth=0.8)
    axis.set_axisbelow(True)


def _quality_tokens(tallies: Tallies, measure: str) -> Figure | None:
    """If models were asked, a point a method; else how recall grows with what is read."""
    if any(tokens_of(tally.querying.values()) for tally in tallies.methods):
        spent = {
            tally.name: tokens_of(tally.querying.values()) / len(tally.asked) for tally in tallies.methods
        }
        return _points(tallies, measure, spent, "model tokens a question, in and out")
    return _growth(tallies)


def _points(tallies: Tallies, measure: str, tokens: Mapping[str, float], label: str) -> Figure:
    figure = _figure(8.5, max(4.2, 0.26 * len(tallies.methods) + 1.4))
    axis = figure.subplots()
    colours = _colours(tallies)
    for number, tally in enumerate(_ranked(tallies, measure)):
        axis.plot(
            [max(tokens[tally.name], 1)],
            [100 * (tally.mean(measure) or 0.0)],
            _MARKS[number % len(_MARKS)],
            color=colours[tally.name],
            markersize=9,
            markeredgecolor="white",
            linestyle="none",
            label=f"{_short(tally.name)}  {percent(tally.mean(measure))}",
        )
    axis.set_xscale("log")
    low, high = axis.get_xlim()
    wider = max(1.0, 10 * low / high) ** 0.5  # a decade at least
    axis.set_xlim(low / wider, high * wider)
    _token_ticks(axis)
    axis.set_xlabel(label)
    axis.set_ylabel(f"{measure}, %")
    _heights(axis)
    _clean(axis)
    _legend(axis, measure)
    return figure


def _growth(tallies: Tallies) -> Figure | None:
    budgets = {name: int(found[2]) for name in tallies.measures if (found := _WITHIN.fullmatch(name))}
    if not budgets:
        return None
    last = max(budgets, key=lambda name: budgets[name])
    figure = _figure(8.5, max(4.2, 0.26 * len(tallies.methods) + 1.4))
    axis = figure.subplots()
    colours = _colours(tallies)
    for number, tally in enumerate(_ranked(tallies, last)):
        points = [
            (at, 100 * value) for name, at in budgets.items() if (value := tally.mean(name)) is not None
        ]
        if points:
            axis.plot(
                *zip(*sorted(points), strict=True),
                marker=_MARKS[number % len(_MARKS)],
                color=colours[tally.name],
                markersize=6,
                markeredgecolor="white",
                linewidth=1.8,
                label=f"{_short(tally.name)}  {percent(tally.mean(last))}",
            )
    axis.set_xscale("log", base=2)
    axis.set_xticks(sorted(budgets.values()), [f"{at:,}" for at in sorted(budgets.values())])
    axis.minorticks_off()
    axis.set_xlabel("tokens read, best first")
    axis.set_ylabel("evidence found, %")
    _heights(axis)
    _clean(axis)
    _legend(axis, last)
    return figure


def _heights(axis: Axes) -> None:
    """Whole tens of percent, 20 points at least: a small difference shall not look large."""
    low, high = axis.get_ylim()
    middle = (low + high) / 2
    bottom = max(0, 10 * floor(min(low, middle - 10) / 10))
    axis.set_ylim(bottom, min(102, max(10 * ceil(high / 10), bottom + 20)))


def _legend(axis: Axes, title: str) -> None:
    count = len(axis.get_legend_handles_labels()[0])
    axis.legend(
        title=f"{title}, best first" if count > 1 else title,
        loc="center left",
        bbox_to_anchor=(1.01, 0.5),
        frameon=False,
        alignment="left",
    )


def _token_ticks(axis: Axes) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axis.xaxis.set_minor_formatter(NullFormatter())


def _quality_categories(tallies: Tallies, measure: str) -> Figure | None:
    """A panel a category, a bar a method, the same order in all."""
    shown = [
        (name, counts)
        for name, counts in tallies.categories
        if any(tally.mean(measure, name) is not None for tally in tallies.methods)
    ]
    if not shown:
        return None
    methods = _ranked(tallies, measure)[::-1]
    panels = len(shown) + 1
    figure = _figure(1.6 + 1.75 * panels, 0.3 * len(methods) + 1.1)
    axes = figure.subplots(1, panels, sharey=True, squeeze=False)[0]
    colours = _colours(tallies)
    titles = ["all that count", *(name if counts else f"({name})" for name, counts in shown)]
    for axis, title, category in zip(axes, titles, [None, *(name for name, _ in shown)], strict=True):
        values = [tally.mean(measure, category) for tally in methods]
        heights = [100 * (value or 0.0) for value in values]
        axis.barh(range(len(methods)), heights, height=0.68, color=[colours[tally.name] for tally in methods])
        for at, (value, height) in enumerate(zip(values, heights, strict=True)):
            axis.text(height + 2, at, percent(value), va="center", fontsize=7.5)
        asked = max(len(tally.values(measure, category)) for tally in methods)
        axis.set_title(
            f"{title.replace('single-session', '1-session')}\nn = {asked:,}", fontsize=8.5, loc="left"
        )
        axis.set_xlim(0, 118)
        axis.set_ylim(-0.6, len(methods) - 0.4)
        axis.set_xticks([0, 50, 100])
        _clean(axis, "x")
        axis.tick_params(axis="y", length=0)
    axes[0].set_yticks(range(len(methods)), [_short(tally.name) for tally in methods])
    figure.supxlabel(f"{measure}, %", fontsize=9)
    return figure
