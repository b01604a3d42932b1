"""The tables of a report, from what a run found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf

from infinimem.evaluation.metrics.statistics import Difference, mean, percentile
from infinimem.evaluation.table import NONE, Table, percent, tokens_of, whole
from infinimem.evaluation.tally import UNTIL, WORDS, Tallies, Tally
from infinimem.evaluation.written import written_table
from infinimem.model import Usage

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
    "judge strict",
    "judge rubric",
    "match",
    "F1",
    "R@5",
    "N@5",
    "R in 1024",
    "turns in 1024",
    "answer@5",
)

_Figure = Callable[[Tally, str], float | None]


def primary(tallies: Tallies) -> str:
    """The measure by which methods are ranked."""
    known = set(tallies.measures)
    return next((name for name in PRIMARY if name in known), next(iter(tallies.measures), ""))


def headline(tallies: Tallies) -> list[str]:
    """The measures of this run that tables show."""
    known = set(tallies.measures)
    return [name for name in HEADLINE if name in known]


def tables(tallies: Tallies) -> list[Table]:
    """All tables that this run has figures for."""
    measures = headline(tallies)
    found = [
        _quality("Quality, mean over questions", tallies, measures, lambda tally, name: tally.mean(name)),
        _quality("Quality, mean over categories", tallies, measures, lambda tally, name: tally.macro(name)),
        *(_differences(tallies, baseline) for baseline in tallies.baselines if len(tallies.methods) > 1),
        *(_by_category(tallies, name) for name in _compared(tallies)),
        _reading(tallies, "all evidence is there"),
        _reading(tallies, "all words of the answer are", WORDS),
        _costs(tallies),
        _phases(tallies),
        _documents(tallies),
        written_table(tallies),
        _everything(tallies, measures),
    ]
    return [table for table in found if table.rows]


def _compared(tallies: Tallies) -> list[str]:
    return [name for name in _COMPARED if name in tallies.measures]


def _quality(title: str, tallies: Tallies, measures: Sequence[str], of: _Figure) -> Table:
    rows = [
        [tally.name, str(len(tally.counted)), *(percent(of(tally, name)) for name in measures)]
        for tally in tallies.methods
    ]
    note = "A measure is taken over the questions that have it."
    return Table(title, ["method", "questions", *measures], rows if measures else [], note)


def _differences(tallies: Tallies, baseline: Tally) -> Table:
    measures = _compared(tallies)
    rows = [
        [tally.name, *(_difference(tally.differences(baseline).get(name)) for name in measures)]
        for tally in tallies.methods
        if tally is not baseline
    ]
    note = "Points, with the 95 % interval of a paired bootstrap; bold where the interval leaves out 0."
    return Table(f"Difference to {baseline.name}", ["method", *measures], rows if measures else [], note)


def _difference(found: Difference | None) -> str:
    if found is None:
        return NONE
    text = f"{100 * found.mean:+.1f} [{100 * found.low:+.1f}, {100 * found.high:+.1f}]"
    return f"**{text}**" if found.sure else text


def _by_category(tallies: Tallies, measure: str) -> Table:
    shown = [
        (name, counts)
        for name, counts in tallies.categories
        if any(tally.mean(measure, name) is not None for tally in tallies.methods)
    ]
    rows = [
        [
            tally.name,
            percent(tally.mean(measure)),
            percent(tally.macro(measure)),
            *(percent(tally.mean(measure, name)) for name, _ in shown),
        ]
        for tally in tallies.methods
    ]
    names = [name if counts else f"({name})" for name, counts in shown]
    apart = "A category in brackets is in no mean." if any(not counts for _, counts in shown) else ""
    return Table(
        f"{measure} by category", ["method", "over questions", "over categories", *names], rows, apart
    )


def _reading(tallies: Tallies, what: str, measure: str = UNTIL) -> Table:
    rows = []
    for tally in tallies.methods:
        needed = tally.until_all(measure)
        if any(value < inf for value in needed):
            reached = mean([float(value < inf) for value in needed])
            shares = (whole(percentile(needed, share)) for share in (0.5, 0.9))
            rows.append([tally.name, str(len(needed)), percent(reached), *shares])
    columns = ["method", "questions", "all found", "tokens, p50", "tokens, p90"]
    note = "Pieces are read best first; a question for which not all is found takes endless tokens."
    return Table(f"Tokens read until {what}", columns, rows, note)


def _costs(tallies: Tallies) -> Table:
    ranks = bool(tallies.config.get("retrieval_only"))  # a ranking has no end at which to count
    measures = [name for name in _BESIDE_COSTS if name in tallies.measures]
    rows = []
    for tally in tallies.methods:
        built, spent = tally.construction.values(), tally.querying.values()
        turns, asked = sum(item.turns for item in tally.ingested), len(tally.asked)
        made = (
            (sum(usage.calls for usage in built), 2),
            (tokens_of(built), 0),
            (1000 * sum(item.seconds for item in tally.ingested), 0),
            (sum(item.disk for item in tally.ingested) / 1024, 1),
        )
        needed = tally.until_all() if ranks else [float(item.context) for item in tally.asked]
        shown = percentile(needed, 0.5) if ranks and needed else mean(needed) if needed else None
        rows.append(
            [
                tally.name,
                *(percent(tally.mean(name)) for name in measures),
                *(f"{amount / turns:,.{digits}f}" if turns else NONE for amount, digits in made),
                f"{sum(usage.calls for usage in spent) / asked:,.1f}",
                whole(tokens_of(spent) / asked),
                NONE if shown is None else whole(shown),
                f"{1000 * tally.seconds(0.5):,.0f}",
            ]
        )
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
    return Table("Quality and costs", columns, rows, note)


def _phases(tallies: Tallies) -> Table:
    rows = []
    for tally in tallies.methods:
        for when, usages in (("construction", tally.construction), ("question", tally.querying)):
            rows += [
                [tally.name, when, phase, f"{spent.calls:,}", whole(spent.tokens_in), whole(spent.tokens_out)]
                for phase, spent in _largest_first(usages)
                if spent.calls
            ]
    columns = ["method", "when", "phase", "calls", "tokens in", "tokens out"]
    return Table("Calls and tokens by phase, of the whole run", columns, rows)


def _documents(tallies: Tallies) -> Table:
    rows = []
    for tally in tallies.methods:
        if sizes := tally.sizes:
            shares = (whole(percentile(sizes, share)) for share in (0.1, 0.5, 0.9, 1))
            rows.append([tally.name, str(len(sizes)), whole(mean(sizes)), *shares])
    columns = ["method", "documents", "tokens, mean", "p10", "p50", "p90", "largest"]
    return Table("Sizes of the documents that were made", columns, rows)


def _everything(tallies: Tallies, measures: Sequence[str]) -> Table:
    rows = []
    for tally in tallies.methods:
        for name, counts in tallies.categories:
            asked = tally.categories.get(name, ())
            if asked:
                label = name if counts else f"({name})"
                figures = (percent(tally.mean(measure, name)) for measure in measures)
                rows.append([tally.name, label, str(len(asked)), *figures])
    return Table("Every category", ["method", "category", "questions", *measures], rows if measures else [])


def _largest_first(usages: Mapping[str, Usage]) -> list[tuple[str, Usage]]:
    return sorted(usages.items(), key=lambda pair: (-tokens_of([pair[1]]), pair[0]))
