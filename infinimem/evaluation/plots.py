"""The two pictures of a report: quality against tokens, quality by category. One colour a method in both."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLE: Any = {
    "font.size": 9,
    "axes.axisbelow": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.constrained_layout.use": True,
    "grid.color": "#e3e6e8",
}
_MARKS = "osD^vP"
_WITHIN = re.compile(r"(?:R|turns) in (\d+)")

Methods = Mapping[str, Any]
"""`methods` of a report, best first."""


def draw(report: Mapping[str, Any], folder: Path) -> dict[str, str] | None:
    """Draw what a run has figures for into PNG files; return titles by file name, None without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        return None
    measure = report["primary"]
    methods = dict(sorted(report["methods"].items(), key=lambda pair: -pair[1]["mean"].get(measure, 0.0)))
    drawers = {
        "quality_tokens.png": ("Quality against tokens", _against_tokens),
        "quality_categories.png": ("Quality by category", _by_category),
    }
    titles = {}
    with matplotlib.rc_context(_STYLE):
        for name, (title, drawer) in drawers.items():
            (folder / name).unlink(missing_ok=True)  # of an earlier report
            if figure := drawer(methods, measure):
                figure.savefig(folder / name, dpi=150, metadata={"Software": None})
                titles[name] = title
    return titles


def _against_tokens(methods: Methods, measure: str) -> Figure | None:
    """If models were asked, a point a method; else how recall grows with what is read."""
    from matplotlib.figure import Figure

    spent = {
        name: sum(of["tokens_in"] + of["tokens_out"] for of in one["querying"].values()) / one["questions"]
        for name, one in methods.items()
    }
    lines: dict[str, list[tuple[float, float]]] = {}
    for name, one in methods.items():
        if any(spent.values()):
            lines[name] = [(max(spent[name], 1), 100 * one["mean"].get(measure, 0.0))]
        else:
            matches = ((_WITHIN.fullmatch(label), value) for label, value in one["mean"].items())
            lines[name] = sorted((int(match[1]), 100 * value) for match, value in matches if match)
    if not any(lines.values()):
        return None
    figure = Figure(figsize=(8.5, max(4.2, 0.26 * len(methods) + 1.4)))
    axis = figure.subplots()
    for number, (name, points) in enumerate(lines.items()):
        if points:
            label = f"{name:.34}  {points[-1][1]:.1f}"
            mark = _MARKS[number % len(_MARKS)]
            axis.plot(*zip(*points, strict=True), marker=mark, color=f"C{number}", label=label)
    axis.set_xscale("log", base=2)
    low, high = axis.get_xlim()
    axis.set_xlim(low / 2, high * 2)
    axis.minorticks_off()
    axis.xaxis.set_major_formatter("{x:,.0f}")
    axis.set_ylim(0, 102)
    axis.grid(True)
    is_asked = any(spent.values())
    axis.set_xlabel("model tokens a question, in and out" if is_asked else "tokens read, best first")
    axis.set_ylabel(f"{measure}, %" if is_asked else "evidence found, %")
    axis.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    return figure


def _by_category(methods: Methods, measure: str) -> Figure | None:
    """A panel a category, a bar a method, the same order in all."""
    from matplotlib.figure import Figure

    panels: dict[str, list[float | None]] = {}
    for one in methods.values():
        panels.setdefault("all that count", []).append(one["mean"].get(measure))
        for category, of in one["categories"].items():
            label = category if of["counted"] else f"({category})"
            panels.setdefault(label, []).append(of["mean"].get(measure))
    panels = {label: values for label, values in panels.items() if set(values) != {None}}
    if not panels:
        return None
    figure = Figure(figsize=(1.6 + 1.75 * len(panels), 0.3 * len(methods) + 1.1))
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axis, (label, values) in zip(axes, panels.items(), strict=True):
        heights = [100 * (value or 0.0) for value in values]
        bars = axis.barh(range(len(methods)), heights, color=[f"C{at}" for at in range(len(methods))])
        axis.bar_label(bars, ["–" if value is None else f"{100 * value:.1f}" for value in values], padding=2)
        axis.set_title(label, loc="left", fontsize=8.5)
        axis.set_xlim(0, 124)
        axis.set_xticks([0, 50, 100])
        axis.grid(True, axis="x")
    axes[0].invert_yaxis()
    axes[0].set_yticks(range(len(methods)), [f"{name:.34}" for name in methods])
    figure.supxlabel(f"{measure}, %", fontsize=9)
    return figure
