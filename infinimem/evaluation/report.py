"""The report of a run: rows added up and compared (report.json), tables made of that (report.md), plots."""

from __future__ import annotations

import json
import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import inf
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from infinimem.evaluation.model import OWN, SHOWS
from infinimem.evaluation.runner import read
from infinimem.importers.fields import at

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NO_PLOTS = "No plots: matplotlib is not installed (pip install 'infinimem[bench]')."
_RESAMPLES = 10_000
_SHOWN = 7
"""Measures in the short table that the command prints."""
_BASELINES = ("bm25", "dense")
"""Methods that others are compared with, beside the first of the run and our own that extract nothing."""
_NONE = "–"
_PERCENT = ".1%"

Report = Mapping[str, Any]
"""What report.json holds."""
Column = tuple[str, Sequence[str], str]
"""Of a table: its head, where a method's figures have the value, and its format."""


def write_report(folder: Path) -> dict[str, Any]:
    """Write report.md, report.json and the plots beside a run's file, as far as it is; UsageError if none.

    Return what report.json holds; `columns` and `rows` are its short table.
    """
    with read(folder) as rows:
        report = _figures(rows)
    pictures = _draw(report, folder)
    report["plots"] = list(pictures or ())
    text = json.dumps(report, ensure_ascii=False, indent=1) + "\n"
    (folder / "report.json").write_text(text, encoding="utf-8")
    count = len(report["methods"])
    parts = [
        f"# {report['config'].get('benchmark', 'A run')}: {count} method{'s' if count != 1 else ''}",
        "\n".join(_about(report)),
        *([NO_PLOTS] if pictures is None else (f"![{title}]({name})" for name, title in pictures.items())),
        *_tables(report),
    ]
    (folder / "report.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return report


def over_runs(reports: Sequence[Report]) -> dict[str, Any]:
    """Return the short table over several runs of the same: mean ± standard deviation, a row a method."""

    def cell(method: str, measure: str) -> str:
        of = [report["methods"][method]["mean"] for report in reports]
        found = [100 * one[measure] for one in of if measure in one]
        return f"{fmean(found):.1f} ± {stdev(found):.1f}" if found[1:] else _NONE

    columns, rows = reports[0]["columns"], reports[0]["rows"]
    told = [[*row[:2], *(cell(row[0], measure) for measure in columns[2:])] for row in rows]
    return {"runs": len(reports), "columns": columns, "rows": told}


# ── rows, added up: of one method, ?1 ───────────────────────────────────────────────────────────

_ASKED = "SELECT count(*), sum(counted), avg(shown) FROM result WHERE method = ?1"
_FAILED = "SELECT failed, count(*) FROM result WHERE method = ?1 AND failed IS NOT NULL GROUP BY failed"
_SECONDS = "SELECT seconds FROM result WHERE method = ?1"
_MEANS = "SELECT measure, avg(value) FROM scored WHERE method = ?1 AND counted GROUP BY measure"
_MACRO = """
SELECT measure, avg(average) FROM (
    SELECT measure, avg(value) AS average FROM scored WHERE method = ?1 AND counted GROUP BY measure, category
) GROUP BY measure"""
_CATEGORIES = """
SELECT category, max(counted), sum(method = ?1) FROM result GROUP BY category ORDER BY 2 DESC, 1"""
_BY_CATEGORY = "SELECT measure, avg(value) FROM scored WHERE method = ?1 AND category = ?2 GROUP BY measure"
_GRADED = """
SELECT count(*), avg(value) FROM scored
WHERE method = ?1 AND counted AND failed IS NULL AND measure IN ('judge strict', 'judge rubric')"""
_UNGRADED = """
SELECT count(*) FROM result WHERE method = ?1 AND json_extract(record, '$.verdicts') <> '{}' AND 2 > (
    SELECT total(iif(measure IN ('judge strict', 'judge lenient'), 1, 2)) FROM score
    WHERE score.result = result.id AND measure LIKE 'judge %' AND measure <> 'judge parts')"""
_UNTIL = """
SELECT coalesce((SELECT value FROM score WHERE score.result = result.id AND measure = ?2), 9e999) FROM result
WHERE method = ?1 AND counted
AND EXISTS (SELECT 1 FROM score WHERE score.result = result.id AND measure LIKE '% in %')"""
_PAIRS = """
SELECT scored.measure, scored.value, theirs.value FROM scored
JOIN result AS other
    ON other.method = ?2 AND other.history = scored.history AND other.question = scored.question
JOIN score AS theirs ON theirs.result = other.id AND theirs.measure = scored.measure
WHERE scored.method = ?1 AND scored.counted ORDER BY scored.id"""
_MADE = "SELECT count(*), total(turns), total(seconds), total(disk) FROM made WHERE method = ?1"
_SIZES = "SELECT value FROM made, json_each(sizes) WHERE method = ?1 ORDER BY value"
_SPENT = """
SELECT phase, sum(calls), sum(tokens_in), sum(tokens_out) FROM spent
WHERE method = ?1 AND (question = '') = ?2 GROUP BY phase"""
_WRITTEN = """
SELECT key, iif(key = 'uncited', sum(json_array_length(written, '$.uncited')), sum(value))
FROM made, json_each(written) WHERE method = ?1 GROUP BY key"""
_UNSHOWN = """
SELECT count(*) FROM (
    SELECT history, turn.value FROM made, json_each(written, '$.uncited') AS turn WHERE method = ?1
    EXCEPT
    SELECT history, turn.value FROM result, json_each(record, '$.found') AS piece,
        json_each(piece.value, '$.turns') AS turn WHERE method = ?1)"""


def _figures(rows: sqlite3.Connection) -> dict[str, Any]:
    config = {name: json.loads(value) for name, value in rows.execute("SELECT name, value FROM config")}
    there = {name for (name,) in rows.execute("SELECT DISTINCT method FROM result")}
    names = [name for name in config["methods"] if name in there]
    own = [name for name, way in OWN.items() if not way.draws]
    bases = {name: name.partition(":")[0] for name in names}
    usual = [name for base in _BASELINES for name in names if bases[name] == base]
    baselines = dict.fromkeys([names[0], *usual, *(name for name in names if bases[name] in own)])
    methods = {name: _method(rows, name, [one for one in baselines if one != name]) for name in names}
    measures = [name for (name,) in rows.execute("SELECT DISTINCT measure FROM scored ORDER BY measure")]
    shown = [name for name in SHOWS["headline"] if name in measures][:_SHOWN]
    return {
        "config": config,
        "measures": measures,
        "baselines": list(baselines),
        "primary": next((name for name in (*SHOWS["primary"], *measures) if name in measures), ""),
        "columns": ["method", "questions", *shown],
        "rows": [
            [name, one["counted"], *(_cell(one, ("mean", measure), _PERCENT) for measure in shown)]
            for name, one in methods.items()
        ],
        "methods": methods,
    }


def _method(rows: sqlite3.Connection, name: str, baselines: Sequence[str]) -> dict[str, Any]:
    def select(query: str, *more: str | bool) -> list[Any]:
        return rows.execute(query, (name, *more)).fetchall()

    def spent(building: bool) -> dict[str, dict[str, int]]:
        kinds = ("calls", "tokens_in", "tokens_out")
        return {phase: dict(zip(kinds, of, strict=True)) for phase, *of in select(_SPENT, building)}

    ((questions, counted, shown),) = select(_ASKED)
    ((cases, turns, seconds, disk),) = select(_MADE)
    ((graded, passed),) = select(_GRADED)
    took = [value for (value,) in select(_SECONDS)]
    sizes = [size for (size,) in select(_SIZES)]
    written = dict(select(_WRITTEN))
    if written:
        written["unshown"] = select(_UNSHOWN)[0][0]
    figures = {
        "questions": questions,
        "counted": counted,
        "failed": dict(select(_FAILED)),
        "ungraded": select(_UNGRADED)[0][0],
        "graded": graded,
        "passed": passed or 0.0,
        "cases": cases,
        "turns": turns,
        "mean": dict(select(_MEANS)),
        "macro": dict(select(_MACRO)),
        "categories": {
            category: {
                "questions": asked,
                "counted": bool(counts),
                "mean": dict(select(_BY_CATEGORY, category)),
            }
            for category, counts, asked in select(_CATEGORIES)
        },
        "differences": {other: _differences(select(_PAIRS, other)) for other in baselines},
        "tokens_until_all": _until(select(_UNTIL, "tokens to all")),
        "tokens_until_words": _until(select(_UNTIL, "tokens to words")),
        "blocks_until_words": _until(select(_UNTIL, "blocks to words")),
        "construction": spent(True),
        "construction_seconds": seconds,
        "disk": disk,
        "querying": spent(False),
        "question_seconds": _percentiles(took, 50, 90),
        "evidence_tokens": shown,
        "document_tokens": sizes,
        "written": written,
    }
    return figures | _shares(figures)


def _shares(one: Report) -> dict[str, Any]:
    """What is computed of a method's figures: sizes of documents, costs of a turn and of a question, and how
    much was kept of what was said."""
    made, asked, sizes, written = (
        one[key] for key in ("construction", "querying", "document_tokens", "written")
    )
    spent = {"calls": _sum(made, "calls"), "tokens": _sum(made)}
    spent |= {"ms": 1000 * one["construction_seconds"], "KB": one["disk"] / 1024}
    return {
        "documents": sizes
        and {"count": len(sizes), "mean": fmean(sizes), **_percentiles(sizes, 10, 50, 90, 100)},
        "turn": {name: amount / one["turns"] for name, amount in spent.items() if one["turns"]},
        "question": {
            "calls": _sum(asked, "calls") / one["questions"],
            "tokens": _sum(asked) / one["questions"],
            "ms": 1000 * one["question_seconds"]["p50"],
        },
        "left_out": written and written["relative"] - written["dated"] - written["unsettled"],
        "kept": {
            name: 1 - written[key] / written["gold"]
            for name, key in (("cited", "uncited"), ("shown", "unshown"))
            if written.get("gold")
        },
    }


def _differences(pairs: Iterable[tuple[str, float, float]]) -> dict[str, dict[str, float]]:
    by_measure = defaultdict(list)
    for measure, ours, theirs in pairs:
        by_measure[measure].append(ours - theirs)
    return {measure: paired_difference(values) for measure, values in sorted(by_measure.items())}


def _until(values: Sequence[tuple[float]]) -> dict[str, float | None]:
    needed = [value for (value,) in values]
    reached = sum(value < inf for value in needed) / max(len(needed), 1)
    return {"questions": len(needed), "reached": reached, **_percentiles(needed, 50, 90)} if needed else {}


def _percentiles(values: Sequence[float], *shares: int) -> dict[str, float | None]:
    """Return by share, in percent, the smallest value that so many reach; 0 of nothing, None for infinity."""
    found = np.percentile([*values] or [0.0], shares, method="inverted_cdf").tolist()
    return {f"p{share}": None if value == inf else value for share, value in zip(shares, found, strict=True)}


def paired_difference(differences: Sequence[float]) -> dict[str, float]:
    """Return the mean, and by bootstrap (Efron and Tibshirani, 1993) its 95 % from "low" to "high"."""
    scores = np.array(differences, dtype=np.float32)
    means = _times_drawn(len(differences)) @ scores / len(differences)
    low, high = np.quantile(means, [0.025, 0.975])
    return {"mean": fmean(differences), "low": float(low), "high": float(high)}


@lru_cache(maxsize=4)
def _times_drawn(questions: int) -> NDArray[np.float32]:
    """Return how often each resample draws each question: the same for all measures and methods of a run."""
    generator = np.random.default_rng(7)
    draws = (generator.integers(0, questions, questions) for _ in range(_RESAMPLES))
    row = np.dtype((np.float32, (questions,)))
    return np.fromiter((np.bincount(draw, minlength=questions) for draw in draws), row, _RESAMPLES)


# ── tables ──────────────────────────────────────────────────────────────────────────────────────


def _about(report: Report) -> list[str]:
    config, methods = report["config"], report["methods"]
    lines = [
        f"- {label}: {_said(config[key])}"
        for key, label in SHOWS["about"].items()
        if config.get(key) is not None
    ]
    most = max(one["questions"] for one in methods.values())
    for name, one in methods.items():
        asked, failed, ungraded = one["questions"], one["failed"], one["ungraded"]
        why = {
            f"Not finished: {name} ({asked} of {most}).": asked < most,
            f"Not answered: {name} ({sum(failed.values())} of {asked}: {_said(failed)}).": failed,
            f"Not graded: {name} ({ungraded} of {asked}).": ungraded,
        }
        lines += [
            f"- {told} {SHOWS['notes'][told.partition(':')[0]]}" for told, is_so in why.items() if is_so
        ]
    return lines


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_said(item)}" for key, item in value.items() if item is not None) or "none"
    return str(value)


def _tables(report: Report) -> list[str]:
    methods, notes = report["methods"], SHOWS["notes"]
    headline, compared, costs = (
        [(one, ["mean", one], _PERCENT) for one in SHOWS[which] if one in report["measures"]]
        for which in ("headline", "compared", "costs")
    )
    counted: Column = ("questions", ["counted"], "")
    macro = [(one, ["macro", one], how) for one, _, how in headline]
    tables = [
        _listed(methods, "Quality, mean over questions", [counted, *headline], note=notes["quality"]),
        _listed(methods, "Quality, mean over categories", [counted, *macro], note=notes["quality"]),
    ]
    for baseline in report["baselines"] if compared else ():
        needs = ["differences", baseline]
        columns = [(one, [*needs, one], "") for one, *_ in compared]
        tables.append(_listed(methods, f"Difference to {baseline}", columns, needs, notes["difference"]))
    for measure, mean, how in compared:
        shown = _categories(methods, measure)
        columns = [("over questions", mean, how), ("over categories", ["macro", measure], how)]
        columns += [(label, ["categories", name, "mean", measure], how) for label, name in shown.items()]
        note = notes["category"] if list(shown) != list(shown.values()) else ""
        tables.append(_listed(methods, f"{measure} by category", columns, note=note))
    tables += [_listed(methods, **table) for table in SHOWS["table"]]
    ranks = bool(report["config"].get("retrieval_only"))  # a ranking has no end at which to count
    columns = [*costs, *SHOWS["spent"], SHOWS["read"][ranks], ("ms a question", ["question", "ms"], ",.0f")]
    note = notes["costs"] + (notes["ranked"] if ranks else ".")
    tables.append(_listed(methods, "Quality and costs", columns, note=note))
    rows = [
        [name, when, phase, *(f"{of[kind]:,}" for kind in ("calls", "tokens_in", "tokens_out"))]
        for name, one in methods.items()
        for when, spent in (("construction", one["construction"]), ("question", one["querying"]))
        for phase, of in sorted(spent.items(), key=lambda pair: (-_sum(dict([pair])), pair[0]))
        if of["calls"]
    ]
    heads = ["method", "when", "phase", "calls", "tokens in", "tokens out"]
    return [
        *filter(None, tables),
        *filter(None, [_table("Calls and tokens by phase, of the whole run", heads, rows)]),
    ]


def _categories(methods: Report, measure: str) -> dict[str, str]:
    """Categories that have the measure, by what they are called."""
    return {
        name if of["counted"] else f"({name})": name
        for one in methods.values()
        for name, of in one["categories"].items()
        if measure in of["mean"]
    }


def _listed(
    methods: Report, title: str, columns: Iterable[Column], needs: Sequence[str] = (), note: str = ""
) -> str:
    """A row for each method that has the figures that are needed."""
    heads, *cells = zip(*columns, strict=True)
    rows = [
        [name, *(_cell(one, path, how) for path, how in zip(*cells, strict=True))]
        for name, one in methods.items()
        if at(one, *needs)
    ]
    return _table(title, ["method", *heads], rows, note)


def _cell(of: Any, path: Iterable[str], how: str) -> str:
    for key in path:
        if key not in of:
            return _NONE
        of = of[key]
    if isinstance(of, Mapping):
        text = f"{100 * of['mean']:+.1f} [{100 * of['low']:+.1f}, {100 * of['high']:+.1f}]"
        return f"**{text}**" if of["low"] > 0 or of["high"] < 0 else text
    return "never" if of is None else format(of, how).removesuffix("%")


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], note: str = "") -> str:
    if not rows:
        return ""
    marks = ["---", *["---:"] * (len(columns) - 1)]
    lines = [columns, marks, *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return "\n\n".join(filter(None, (f"## {title}", note, text)))


def _sum(spent: Mapping[str, Mapping[str, int]], *kinds: str) -> int:
    return sum(of[kind] for of in spent.values() for kind in kinds or ("tokens_in", "tokens_out"))


# ── plots ───────────────────────────────────────────────────────────────────────────────────────

_WITHIN = re.compile(r"(?:R|turns) in (\d+)")


def _draw(report: Report, folder: Path) -> dict[str, str] | None:
    """Draw what a run has figures for into PNG files; return titles by file name, None without matplotlib."""
    try:
        import matplotlib.figure as figures
    except ImportError:
        return None
    measure, titles = report["primary"], {}
    methods = dict(sorted(report["methods"].items(), key=lambda pair: -pair[1]["mean"].get(measure, 0.0)))
    for name, title, draw in (
        ("quality_tokens.png", "Quality against tokens", _against_tokens),
        ("quality_categories.png", "Quality by category", _by_bars),
    ):
        (folder / name).unlink(missing_ok=True)  # of an earlier report
        figure = figures.Figure(figsize=(10, max(4.2, 0.3 * len(methods) + 1.4)), layout="constrained")
        if draw(figure.subplots(), methods, measure):
            figure.axes[0].grid(True, color="#e3e6e8")
            figure.axes[0].set_axisbelow(True)
            figure.axes[0].legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
            figure.savefig(folder / name, dpi=150, metadata={"Software": None})
            titles[name] = title
    return titles


def _against_tokens(axis: Axes, methods: Report, measure: str) -> bool:
    """If models were asked, a point a method; else how recall grows with what is read."""
    spent = {name: _sum(one["querying"]) / one["questions"] for name, one in methods.items()}
    is_asked = any(spent.values())
    for name, one in methods.items():
        points = [(max(spent[name], 1), 100 * one["mean"].get(measure, 0.0))]
        if not is_asked:
            matches = ((_WITHIN.fullmatch(label), value) for label, value in one["mean"].items())
            points = sorted((int(match[1]), 100 * value) for match, value in matches if match)
        if points:
            axis.plot(*zip(*points, strict=True), marker="o", label=f"{name:.34}  {points[-1][1]:.1f}")
    axis.set_xscale("log", base=2)
    axis.set_xlabel("model tokens a question, in and out" if is_asked else "tokens read, best first")
    axis.set_ylabel(f"{measure}, %" if is_asked else "evidence found, %")
    axis.set_ylim(0, 102)
    return bool(axis.lines)


def _by_bars(axis: Axes, methods: Report, measure: str) -> bool:
    """A group of bars a category, a bar a method, the same order in all."""
    shown = _categories(methods, measure)
    for number, (name, one) in enumerate(methods.items()):
        means = [one["mean"], *(one["categories"][key]["mean"] for key in shown.values())]
        places = [place + 0.8 * number / len(methods) for place in range(len(means))]
        heights = [100 * mean.get(measure, 0.0) for mean in means]
        axis.bar(places, heights, 0.8 / len(methods), align="edge", label=f"{name:.34}")
    labels = ["all that count", *shown]
    axis.set_xticks([place + 0.4 for place in range(len(labels))], labels, rotation=30, ha="right")
    axis.set_ylabel(f"{measure}, %")
    return any(measure in one["mean"] for one in methods.values())
