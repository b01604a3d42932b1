"""The command bench: methods side by side on a public data set."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from infinimem.cli.options import COUNT, FILE, Options, cap_option, command
from infinimem.cli.output import Output
from infinimem.errors import InfinimemError, UsageError
from infinimem.evaluation.datasets import ABOUT, NAMES, benchmark
from infinimem.evaluation.metrics import indifferent
from infinimem.evaluation.model import GROUPS
from infinimem.results import counted
from infinimem.settings import configuration

if TYPE_CHECKING:
    from infinimem.evaluation.runner import Request, Run
    from infinimem.evaluation.spending import Estimate
    from infinimem.llm.base import LLM

RANKING = "infini-retrieve,bm25,dense"
ANSWERING = "infini-h,bm25,dense,grep,full,none"
SEARCHING = "infini-search,fts5,bm25,grep"  # methods that are compared if nothing is said
RANKED = ("notes", "precisionmembench")
"""Data sets whose labels say what is to be found, not what the answer is."""
PATIENCE = 600.0
"""Seconds for one call, unless more are set: nobody waits for it, and a local model may take its time."""


@command()
@click.argument("name", type=click.Choice(NAMES), metavar="NAME", required=False)
@click.option("--data", type=FILE, help="Its official file or folder.")
@click.option("--list", "listed", is_flag=True, help="Tell what each measures, its file and licence.")
@click.option(
    "--methods",
    metavar="A,B",
    help=f"Methods to compare; name:key=value changes a setting. Groups: {', '.join(GROUPS)}.",
)
@click.option("--split", type=click.Choice(("dev", "held")), help="Half of the questions about notes.")
@click.option("--retrieval-only", is_flag=True, help="Score retrieval alone; answer nothing.")
@click.option("--answerer", metavar="MODEL", help="The model that answers; default is --model.")
@click.option("--judge", "grader", metavar="MODEL", help="The model that grades; default is the answerer.")
@click.option("--judge-url", metavar="URL", help="The judge's server, where it is another one.")
@click.option("--limit", type=COUNT, metavar="N", help="At most N questions of each category.")
@click.option(
    "--budget", type=COUNT, default=4096, metavar="TOKENS", help="Evidence for each answer, at most."
)
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Folder for the results.")
@click.option("--corrections", type=FILE, help="A file of corrected labels.")
@click.option("--jobs", type=click.IntRange(1, 64), metavar="N", help="Model calls to make at the same time.")
@cap_option
@click.option("--runs", type=COUNT, default=1, metavar="N", help="Run N times; each asks the models anew.")
@click.option("--estimate", is_flag=True, help="Estimate the tokens it would take; start nothing.")
@click.option("--yes", is_flag=True, help="Start without asking.")
@click.option("--keep", is_flag=True, help="Keep the libraries that the run makes.")
def bench(
    options: Options,
    /,
    name: str | None,
    listed: bool,
    split: str | None,
    out: Path | None,
    runs: int,
    estimate: bool,
    yes: bool,
    **how: Any,
) -> None:
    """NAME is one of those that --list tells of. --model keeps memories. Run the same command again to resume
    a run that ended early."""
    from infinimem.evaluation.runner import Request

    if listed:
        rows = [[one, *about.values()] for one, about in ABOUT.items()]
        table = {"columns": ["name", *ABOUT[NAMES[0]]], "rows": rows}
        _show(options.out, table, "--data names the file")
        return
    if name is None or how["data"] is None:
        raise UsageError("name a data set and, with --data, its official file; --list tells which there are")
    how["retrieval_only"] |= name in RANKED
    how["embedder"], how["max_tokens"] = options.embedder, options.max_tokens
    usual = SEARCHING if name == "notes" else RANKING if how["retrieval_only"] else ANSWERING
    keeper, answerer, judge = _models(options.model, how)
    asks_models = {keeper.name, answerer.name, judge.name} != {"offline"}
    how["methods"] = (how["methods"] or usual).split(",")
    how["jobs"] = how["jobs"] or (4 if asks_models else 1)  # without a model, threads only take turns
    request = Request(out=out or Path(), keeper=keeper, answerer=answerer, judge=judge, **how)
    reports = []
    for number in range(1, runs + 1):
        folder = out / f"run-{number}" if out and runs > 1 else out
        run, size, folder = _prepared(replace(request, run=number), name, split, folder)
        if estimate:
            _show_estimate(options.out, size)
        else:
            reports.append(_start(options, run, size, folder, name, yes))
    if len(reports) > 1:
        from infinimem.evaluation.report import over_runs

        _show(options.out, over_runs(reports), f"over {runs} runs: mean ± standard deviation")


def _start(options: Options, run: Run, size: Estimate, folder: Path, name: str, yes: bool) -> dict[str, Any]:
    from infinimem.evaluation.report import write_report

    options.out.say(f"{counted(size.questions, 'question')} to ask, {size}")
    if not yes and size.total.calls and options.out.talks and sys.stdin.isatty():
        click.confirm("Start?", abort=True, err=True)
    try:
        with options.out.progress(name) as step:
            failed = run.start(step, size.questions + size.cases)
        report = write_report(folder)
    except KeyboardInterrupt:
        options.out.say(f"interrupted; finished work is kept in {folder}, run the same command to go on")
        raise
    _show(options.out, report, f"report: {folder / 'report.md'}")
    if doubt := indifferent(report["methods"]):
        options.out.say(doubt)
    if failed:
        raise InfinimemError(
            f"{counted(failed, 'case or question')} failed, see {folder / 'errors.jsonl'}; run the same"
            " command to retry"
        )
    return report


def _show(out: Output, table: dict[str, Any], told: str) -> None:
    if out.result(table):
        columns, rows = table["columns"], table["rows"]
        out.table(columns, rows if out.for_people else [columns, *rows])
        out.say(told)


def _prepared(request: Request, name: str, split: str | None, out: Path | None) -> tuple[Run, Estimate, Path]:
    """The run, what it will take, and its folder: the one named, else the first of today that is free."""
    from infinimem.evaluation.runner import OtherRun, Run

    first, number = f"bench-{name}-{date.today().isoformat()}", 1
    while True:
        folder = out or Path(first if number == 1 else f"{first}-{number}")
        run = Run(replace(request, out=folder), benchmark(name, request.corrections, split))
        try:
            return run, run.estimate(), folder
        except OtherRun:
            if out:
                raise
            number += 1


def _models(keeper: str | None, how: dict[str, Any]) -> tuple[LLM, LLM, LLM]:
    """The models that keep, answer and grade, each in for the next; their options go out of `how`."""
    from infinimem.llm.connect import connect

    answerer, judge, judge_url = (how.pop(name) for name in ("answerer", "grader", "judge_url"))
    settings = configuration().settings.llm
    settings = replace(settings, timeout=max(PATIENCE, settings.timeout))
    first = connect(keeper, settings)
    second = connect(answerer, settings) if answerer else first
    if judge_url and not judge:
        raise UsageError("--judge-url says where the judge is; name it, too, with --judge")
    own = replace(settings, base_url=judge_url or settings.base_url)
    return first, second, connect(judge, own) if judge else second


def _show_estimate(out: Output, size: Estimate) -> None:
    rows = [(*key, used.calls, used.tokens_in, used.tokens_out) for key, used in size.usage.items()]
    names = ("method", "phase", "calls", "tokens_in", "tokens_out")
    data = {"questions": size.questions, "rows": [dict(zip(names, row, strict=True)) for row in rows]}
    if out.result(data):
        out.table(names, rows)
        out.say(f"{counted(size.questions, 'question')} to ask, {size}")
