"""The report of a run: report.md for people, report.json for programs, plots."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any

from infinimem.evaluation import plots
from infinimem.evaluation.metrics.statistics import mean, percentile
from infinimem.evaluation.table import percent
from infinimem.evaluation.tables import headline, primary, tables
from infinimem.evaluation.tally import WORDS, Tallies, Tally, read
from infinimem.evaluation.written import written_figures
from infinimem.model import Usage

NO_PLOTS = "No plots: matplotlib is not installed (pip install 'infinimem[bench]')."
_SHOWN = 7
"""Measures in the short table that the command prints."""


def write_report(folder: Path) -> dict[str, Any]:
    """Write report.md, report.json and the plots beside the run's files.

    Args:
        folder: of the run; one that has not ended is reported as far as it is.

    Returns:
        What report.json holds; `columns` and `rows` are its short table.

    Raises:
        UsageError: the folder holds no run.
    """
    tallies = read(folder)
    drawn = plots.draw(tallies, primary(tallies), folder)
    report = _figures(tallies) | {"plots": [name for name, _ in drawn or ()]}
    text = json.dumps(report, ensure_ascii=False, indent=1) + "\n"
    (folder / "report.json").write_text(text, encoding="utf-8")
    (folder / "report.md").write_text(_markdown(tallies, drawn), encoding="utf-8")
    return report


def _markdown(tallies: Tallies, drawn: list[tuple[str, str]] | None) -> str:
    pictures = [NO_PLOTS] if drawn is None else [f"![{title}]({name})" for name, title in drawn]
    parts = [
        f"# {tallies.config.get('benchmark', 'A run')}: {_methods(len(tallies.methods))}",
        "\n".join(_about(tallies)),
        *pictures,
        *(table.markdown() for table in tables(tallies)),
    ]
    return "\n\n".join(parts) + "\n"


def _about(tallies: Tallies) -> list[str]:
    config = tallies.config
    lines = [f"- {label}: {_said(config[key])}" for label, key in _ABOUT if config.get(key) is not None]
    most = max(len(tally.asked) for tally in tallies.methods)
    short = [
        f"{tally.name} ({len(tally.asked)} of {most})" for tally in tallies.methods if len(tally.asked) < most
    ]
    if short:
        lines.append(f"- Not finished: {', '.join(short)}. Compare differences, which are paired, not means.")
    failed = [
        f"{tally.name} ({sum(tally.failed.values())} of {len(tally.asked)}: {_said(tally.failed)})"
        for tally in tallies.methods
        if tally.failed
    ]
    if failed:
        told = ", ".join(failed)
        lines.append(f"- Not answered, the answerer's reply was unusable: {told}. They are scored 0.")
    ungraded = [(tally.name, tally.ungraded(), len(tally.asked)) for tally in tallies.methods]
    if any(count for _, count, _ in ungraded):
        told = ", ".join(f"{name} ({count} of {asked})" for name, count, asked in ungraded if count)
        lines.append(
            f"- Not graded, the judge's reply was unreadable: {told}. They are in no mean of its grades."
        )
    return lines


_ABOUT = (
    ("data", "data"),
    ("label corrections", "corrections"),
    ("questions of each category, at most", "limit"),
    ("retrieval only", "retrieval_only"),
    ("tokens of evidence, at most", "budget"),
    ("models", "models"),
    ("embedders", "embedders"),
    ("versions", "versions"),
)


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_said(item)}" for key, item in value.items() if item is not None) or "none"
    return str(value)


def _methods(count: int) -> str:
    return f"{count} method" + ("s" if count != 1 else "")


def _figures(tallies: Tallies) -> dict[str, Any]:
    measures = headline(tallies)[:_SHOWN]
    rows = [
        [tally.name, len(tally.counted), *(percent(tally.mean(name)) for name in measures)]
        for tally in tallies.methods
    ]
    return {
        "config": tallies.config,
        "primary": primary(tallies),
        "columns": ["method", "questions", *measures],
        "rows": rows,
        "methods": {tally.name: _method(tally, tallies) for tally in tallies.methods},
    }


def _until(needed: Sequence[float]) -> dict[str, float | None]:
    shares = {f"p{share}": percentile(needed, share / 100) for share in (50, 90)} if needed else {}
    return {share: None if value == inf else value for share, value in shares.items()}


def _method(tally: Tally, tallies: Tallies) -> dict[str, Any]:
    return {
        "questions": len(tally.asked),
        "counted": len(tally.counted),
        "failed": dict(tally.failed),
        "ungraded": tally.ungraded(),
        "graded": len(tally.grades),
        "passed": _round(mean(tally.grades)),
        "cases": len(tally.ingested),
        "mean": _rounded({name: tally.mean(name) for name in tallies.measures}),
        "macro": _rounded({name: tally.macro(name) for name in tallies.measures}),
        "categories": {
            name: {
                "questions": len(tally.categories.get(name, ())),
                "counted": counts,
                "mean": _rounded({measure: tally.mean(measure, name) for measure in tallies.measures}),
            }
            for name, counts in tallies.categories
        },
        "differences": {
            baseline.name: {
                name: {"mean": _round(found.mean), "low": _round(found.low), "high": _round(found.high)}
                for name, found in sorted(tally.differences(baseline).items())
            }
            for baseline in tallies.baselines
            if baseline is not tally
        },
        "tokens_until_all": _until(tally.until_all()),
        "tokens_until_words": _until(tally.until_all(WORDS)),
        "construction": _spent(tally.construction),
        "construction_seconds": _round(sum(item.seconds for item in tally.ingested)),
        "querying": _spent(tally.querying),
        "question_seconds": {f"p{share}": _round(tally.seconds(share / 100)) for share in (50, 90)},
        "evidence_tokens": _round(mean([item.context for item in tally.asked])),
        "document_tokens": tally.sizes,
        "written": written_figures(tally),
    }


def _spent(usages: Mapping[str, Usage]) -> dict[str, dict[str, int]]:
    return {
        phase: {"calls": usage.calls, "tokens_in": usage.tokens_in, "tokens_out": usage.tokens_out}
        for phase, usage in sorted(usages.items())
    }


def _rounded(values: Mapping[str, float | None]) -> dict[str, float]:
    return {name: _round(value) for name, value in values.items() if value is not None}


def _round(value: float) -> float:
    return round(value, 6)
