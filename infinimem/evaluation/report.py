"""The report of a run: its rows added up (report.json), the tables made of that (report.md), and plots."""

from __future__ import annotations

import json
import re
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from infinimem.evaluation.metrics import FIRST, HITS, paired_difference, percentile
from infinimem.evaluation.runner import read
from infinimem.evaluation.spec import OWN

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NO_PLOTS = "No plots: matplotlib is not installed (pip install 'infinimem[bench]')."
PRIMARY = ("match", "judge strict", "judge rubric", "F1", "R@5", "answer@5")
"""By which methods are ranked: the first of these that a run measured."""
HEADLINE = (
    *("judge strict", "judge lenient", "judge parts", "judge rubric", "match", "F1", "BLEU-1", "ROUGE-L"),
    *("R@5", "N@5", "MRR", "doc R@5", "doc N@5", "doc MRR", "R@10", "R@50", "hit@5", "all@5"),
    *("own R@5", "own N@5", "own turn R@5", "own turn N@5"),
    *("R in 512", "R in 1024", "R in 2048", "R in 4096", "R in 8192"),
    *("turns in 1024", "turns in 2048", "turns in 4096"),
    *("answer@1", "answer@5", "answer@10", "answer@50"),
)
"""The measures that tables show, in this order; report.json holds all."""
_COMPARED = (
    *("judge strict", "judge rubric", "match", "F1", "R@5", "N@5", "own R@5", "own N@5"),
    *("R in 1024", "R in 4096", "turns in 2048", "answer@5"),
)
_BESIDE_COSTS = (
    *("judge strict", "judge rubric", "match", "F1", "R@5", "N@5"),
    *("R in 1024", "turns in 1024", "answer@5"),
)
_BASELINES = ("bm25", "dense")
"""Methods that others are compared with, beside the first of the run and our own that extract nothing."""
_ABOUT = {
    "data": "data",
    "corrections": "label corrections",
    "limit": "questions of each category, at most",
    "retrieval_only": "retrieval only",
    "budget": "tokens of evidence, at most",
    "models": "models",
    "embedders": "embedders",
    "versions": "versions",
}
_NONE = "–"

Report = Mapping[str, Any]


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
_CATEGORIES = "SELECT category, max(counted) FROM result GROUP BY category ORDER BY 2 DESC, 1"
_BY_CATEGORY = "SELECT measure, avg(value) FROM scored WHERE method = ?1 AND category = ?2 GROUP BY measure"
_IN_CATEGORY = "SELECT count(*) FROM result WHERE method = ?1 AND category = ?2"
_GRADED = """
SELECT count(*), avg(value) FROM scored
WHERE method = ?1 AND counted AND failed IS NULL AND measure IN ('judge strict', 'judge rubric')"""
_UNGRADED = """
SELECT count(*) FROM result WHERE method = ?1 AND json_extract(record, '$.answer') IS NOT NULL AND 2 > (
    SELECT total(iif(measure = 'judge rubric', 2, 1)) FROM score
    WHERE score.result = result.id AND measure IN ('judge strict', 'judge lenient', 'judge rubric'))"""
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
    shown = [name for name in HEADLINE if name in measures][:7]  # in the short table
    return {
        "config": config,
        "measures": measures,
        "baselines": list(baselines),
        "primary": next((name for name in (*PRIMARY, *measures) if name in measures), ""),
        "columns": ["method", "questions", *shown],
        "rows": [
            [name, one["counted"], *(_percent(one["mean"].get(measure)) for measure in shown)]
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
    written = dict(select(_WRITTEN))
    return {
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
                "questions": select(_IN_CATEGORY, category)[0][0],
                "counted": bool(counts),
                "mean": dict(select(_BY_CATEGORY, category)),
            }
            for category, counts in rows.execute(_CATEGORIES)
        },
        "differences": {other: _differences(select(_PAIRS, other)) for other in baselines},
        "tokens_until_all": _until(select(_UNTIL, "tokens to all")),
        "tokens_until_words": _until(select(_UNTIL, "tokens to words")),
        "blocks_until_words": _until(select(_UNTIL, "blocks to words")),
        "construction": spent(True),
        "construction_seconds": seconds,
        "disk": disk,
        "querying": spent(False),
        "question_seconds": _percentiles([value for (value,) in select(_SECONDS)], 50, 90),
        "evidence_tokens": shown,
        "document_tokens": [size for (size,) in select(_SIZES)],
        "written": written and {**written, "unshown": select(_UNSHOWN)[0][0]},
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
    """None stands for what is never reached."""
    found = {f"p{share}": percentile(values, share / 100) for share in shares}
    return {name: None if value == inf else value for name, value in found.items()}


# ── tables ──────────────────────────────────────────────────────────────────────────────────────


def _about(report: Report) -> list[str]:
    config, methods = report["config"], report["methods"]
    lines = [
        f"- {label}: {_said(config[key])}" for key, label in _ABOUT.items() if config.get(key) is not None
    ]
    most = max(one["questions"] for one in methods.values())
    notes = {
        "Not finished: {}. Compare differences, which are paired, not means.": {
            name: f"{one['questions']} of {most}" for name, one in methods.items() if one["questions"] < most
        },
        "Not answered, the answerer's reply was unusable: {}. They are scored 0.": {
            name: f"{sum(one['failed'].values())} of {one['questions']}: {_said(one['failed'])}"
            for name, one in methods.items()
            if one["failed"]
        },
        "Not graded, the judge's reply was unreadable: {}. They are in no mean of its grades.": {
            name: f"{one['ungraded']} of {one['questions']}"
            for name, one in methods.items()
            if one["ungraded"]
        },
    }
    for note, those in notes.items():
        if those:
            lines.append("- " + note.format(", ".join(f"{name} ({what})" for name, what in those.items())))
    return lines


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_said(item)}" for key, item in value.items() if item is not None) or "none"
    return str(value)


def _tables(report: Report) -> list[str]:
    methods, measures = report["methods"], [name for name in HEADLINE if name in report["measures"]]
    compared = [name for name in _COMPARED if name in measures]
    tables = [
        _quality(methods, "questions", "mean", measures),
        _quality(methods, "categories", "macro", measures),
        *(_comparison(methods, baseline, compared) for baseline in report["baselines"] if compared),
        *(_by_category(methods, measure) for measure in compared),
        _reading(methods, "all evidence is there", "tokens_until_all"),
        _reading(methods, "all words of the answer are", "tokens_until_words"),
        _density(methods),
        _costs(report, [name for name in _BESIDE_COSTS if name in measures]),
        _phases(methods),
        _documents(methods),
        _written(methods),
    ]
    return [table for table in tables if table]


def _quality(methods: Report, what: str, key: str, measures: Sequence[str]) -> str:
    rows = _rows(methods, lambda one: [one["counted"], *_percents(one[key], measures)])
    note = "A measure is taken over the questions that have it."
    return _table(f"Quality, mean over {what}", ["method", "questions", *measures], rows, note)


def _comparison(methods: Report, baseline: str, measures: Sequence[str]) -> str:
    def cells(one: Report) -> list[str]:
        to = one["differences"].get(baseline)
        return [] if to is None else [_difference(to.get(measure)) for measure in measures]

    note = "Points, with the 95 % interval of a paired bootstrap; bold where the interval leaves out 0."
    return _table(f"Difference to {baseline}", ["method", *measures], _rows(methods, cells), note)


def _difference(of: Mapping[str, float] | None) -> str:
    if of is None:
        return _NONE
    text = f"{100 * of['mean']:+.1f} [{100 * of['low']:+.1f}, {100 * of['high']:+.1f}]"
    return f"**{text}**" if of["low"] > 0 or of["high"] < 0 else text


def _by_category(methods: Report, measure: str) -> str:
    shown = {
        name: name if of["counted"] else f"({name})"
        for one in methods.values()
        for name, of in one["categories"].items()
        if measure in of["mean"]
    }

    def cells(one: Report) -> Iterable[str]:
        means = [one["mean"], one["macro"], *(one["categories"][name]["mean"] for name in shown)]
        return (_percent(mean.get(measure)) for mean in means)

    columns = ["method", "over questions", "over categories", *shown.values()]
    note = "A category in brackets is in no mean." if list(shown) != list(shown.values()) else ""
    return _table(f"{measure} by category", columns, _rows(methods, cells), note)


def _reading(methods: Report, what: str, key: str) -> str:
    def cells(one: Report) -> list[object]:
        of = one[key]
        shares = [_whole(of[share]) for share in ("p50", "p90")] if of else []
        return [of["questions"], _percent(of["reached"]), *shares] if of and of["reached"] else []

    columns = ["method", "questions", "all found", "tokens, p50", "tokens, p90"]
    note = "Pieces are read best first; a question for which not all is found takes endless tokens."
    return _table(f"Tokens read until {what}", columns, _rows(methods, cells), note)


def _density(methods: Report) -> str:
    def cells(one: Report) -> list[object]:
        of, shares = one["blocks_until_words"], _percents(one["mean"], HITS)
        return [_whole(of["p50"]), _whole(of["p90"]), *shares] if of and HITS[0] in one["mean"] else []

    columns = ["method", "pieces until all are read, p50", "p90", *HITS]
    note = f"Of the first {FIRST} pieces, the shares that hold one, two and more of the telling words."
    return _table("Words of the answer in the pieces", columns, _rows(methods, cells), note)


def _costs(report: Report, measures: Sequence[str]) -> str:
    ranks = bool(report["config"].get("retrieval_only"))  # a ranking has no end at which to count

    def cells(one: Report) -> Iterator[str]:
        yield from _percents(one["mean"], measures)
        for amount, digits in (
            (_sum(one["construction"], "calls"), 2),
            (_sum(one["construction"]), 0),
            (1000 * one["construction_seconds"], 0),
            (one["disk"] / 1024, 1),
        ):
            yield f"{amount / one['turns']:,.{digits}f}" if one["turns"] else _NONE
        yield f"{_sum(one['querying'], 'calls') / one['questions']:,.1f}"
        yield _whole(_sum(one["querying"]) / one["questions"])
        until = one["tokens_until_all"]
        yield (_whole(until["p50"]) if until else _NONE) if ranks else _whole(one["evidence_tokens"])
        yield f"{1000 * one['question_seconds']['p50']:,.0f}"

    columns = [
        *("method", *measures, "calls a turn", "tokens a turn", "ms a turn", "KB a turn"),
        *("calls a question", "tokens a question"),
        *("tokens to all evidence" if ranks else "evidence tokens", "ms a question"),
    ]
    note = (
        "Tokens are of models, in and out, without the judge's. Of the offline rules, the prompts count that "
        "a model would have been sent, and their replies. Methods that share a library each carry what "
        "making it took. KB: of the library's files, without indexes and vectors. Milliseconds on the clock, "
        "of a question the median"
    ) + ("; of half of the questions all evidence is in so many tokens, or fewer." if ranks else ".")
    return _table("Quality and costs", columns, _rows(report["methods"], cells), note)


def _phases(methods: Report) -> str:
    rows = [
        [name, when, phase, *(_whole(of[kind]) for kind in ("calls", "tokens_in", "tokens_out"))]
        for name, one in methods.items()
        for when, spent in (("construction", one["construction"]), ("question", one["querying"]))
        for phase, of in sorted(spent.items(), key=lambda pair: (-_sum(dict([pair])), pair[0]))
        if of["calls"]
    ]
    columns = ["method", "when", "phase", "calls", "tokens in", "tokens out"]
    return _table("Calls and tokens by phase, of the whole run", columns, rows)


def _documents(methods: Report) -> str:
    def cells(one: Report) -> list[object]:
        sizes = one["document_tokens"]
        shares = _percentiles(sizes, 10, 50, 90, 100).values()
        return [len(sizes), _whole(fmean(sizes)), *map(_whole, shares)] if sizes else []

    columns = ["method", "documents", "tokens, mean", "p10", "p50", "p90", "largest"]
    return _table("Sizes of the documents that were made", columns, _rows(methods, cells))


def _written(methods: Report) -> str:
    def cells(one: Report) -> list[object]:
        of = one["written"]
        if not of:
            return []
        shares = (1 - of[key] / of["gold"] if of["gold"] else None for key in ("uncited", "unshown"))
        counts = (of[key] for key in ("entries", "verbatim", "discarded", "undone"))
        times = [of[key] for key in ("relative", "dated", "unsettled")]
        return [of["gold"], *map(_percent, shares), *counts, *times, times[0] - times[1] - times[2]]

    columns = [
        *("method", "gold turns", "cited, %", "cited or shown, %", "entries", "word for word", "discarded"),
        *("came back", "relative times", "with when", "not settled", "left out"),
    ]
    note = (
        "Gold turns hold the evidence of the questions that were asked. Relative times: entries whose words "
        "name another day than theirs, without its date; not settled: their words can mean several."
    )
    return _table("What was written", columns, _rows(methods, cells), note)


def _rows(methods: Report, cells: Callable[[Report], Iterable[object]]) -> list[list[str]]:
    rows = {name: [str(cell) for cell in cells(one)] for name, one in methods.items()}
    return [[name, *row] for name, row in rows.items() if row]


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], note: str = "") -> str:
    if not rows:
        return ""
    marks = ["---", *["---:"] * (len(columns) - 1)]
    lines = [columns, marks, *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return "\n\n".join(filter(None, (f"## {title}", note, text)))


def _percents(values: Mapping[str, float], measures: Iterable[str]) -> Iterator[str]:
    return (_percent(values.get(measure)) for measure in measures)


def _percent(value: float | None) -> str:
    return _NONE if value is None else f"{100 * value:.1f}"


def _whole(value: float | None) -> str:
    return "never" if value is None else f"{value:,.0f}"


def _sum(spent: Mapping[str, Mapping[str, int]], *kinds: str) -> int:
    return sum(of[kind] for of in spent.values() for kind in kinds or ("tokens_in", "tokens_out"))


# ── plots ───────────────────────────────────────────────────────────────────────────────────────

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


def _draw(report: Report, folder: Path) -> dict[str, str] | None:
    """Draw what a run has figures for into PNG files; return titles by file name, None without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        return None
    measure = report["primary"]
    methods = dict(sorted(report["methods"].items(), key=lambda pair: -pair[1]["mean"].get(measure, 0.0)))
    drawers = {
        "quality_tokens.png": ("Quality against tokens", _against_tokens),
        "quality_categories.png": ("Quality by category", _bars),
    }
    titles = {}
    with matplotlib.rc_context(_STYLE):
        for name, (title, drawer) in drawers.items():
            (folder / name).unlink(missing_ok=True)  # of an earlier report
            if figure := drawer(methods, measure):
                figure.savefig(folder / name, dpi=150, metadata={"Software": None})
                titles[name] = title
    return titles


def _against_tokens(methods: Report, measure: str) -> Figure | None:
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


def _bars(methods: Report, measure: str) -> Figure | None:
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
