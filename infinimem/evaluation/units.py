"""Figures and tables of memories made of units: their shape, what writing took, the stages of a question.

Source: All-Mem (arXiv 2603.19595), Tables 3 and 11, sections 4.4 and 4.5.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from infinimem.evaluation.metrics.statistics import mean, percentile
from infinimem.evaluation.model import Transaction
from infinimem.evaluation.table import NONE, Table, percent, tokens_of
from infinimem.evaluation.tally import Tallies, Tally

_ONLINE, _OFFLINE = "write", "consolidate"
_OPS = ("split", "merge", "update")
_KINDS = ("version", "sibling", "temporal", "semantic")
_COUNTED = ("visible", "archived", "unreachable", "declined", "runs")
_NAMED = ("links", "proposed", "accepted", "applied", "dropped")

Figures = dict[str, Any]


def unit_figures(tally: Tally) -> Figures:
    """All that there is of it, for programs; of a method that keeps no units the stages alone."""
    found = {
        "structure": structure(tally),
        "themes": themes(tally),
        "writing": writing(tally),
        "stages": stages(tally),
    }
    return {name: figures for name, figures in found.items() if figures}


def unit_tables(tallies: Tallies) -> list[Table]:
    """The tables for which some method has figures."""
    found = [_structure(tallies), _themes(tallies), _proposals(tallies), _writing(tallies), _stages(tallies)]
    return [table for table in found if table.rows]


# ── shape ───────────────────────────────────────────────────────────────────────────────────────


def structure(tally: Tally) -> Figures:
    """The shape of the banks of all cases taken together, counts added up."""
    banks = [item.structure for item in tally.ingested if "visible" in item.structure]
    if not banks:
        return {}
    found: Figures = {name: sum(bank[name] for bank in banks) for name in _COUNTED}
    for name in _NAMED:
        counted = Counter[str]()
        for bank in banks:
            counted.update(bank[name])
        found[name] = dict(sorted(counted.items()))
    units, archived = found["visible"] + found["archived"], found["archived"]
    found["visible_ratio"] = round(found["visible"] / units, 6) if units else 1.0
    for name in ("within", "near"):
        found[name] = reached = _added([bank[name] for bank in banks])
        found[f"coverage_{name}"] = [round(count / archived, 6) for count in reached]
        found[f"h95_{name}"] = next(
            (hop for hop, count in enumerate(reached) if count * 20 >= archived * 19), None
        )
    return found


def themes(tally: Tally) -> Figures:
    """The themes of all cases: how many there are of each size, their facts, and the share of these that
    changed their theme (xMemory, Tables 6 and 7)."""
    banks = [item.structure for item in tally.ingested if "sizes" in item.structure]
    sizes = Counter({int(size): 0 for bank in banks for size in bank["sizes"]})
    for bank in banks:
        sizes.update({int(size): count for size, count in bank["sizes"].items()})
    if not sizes:
        return {}
    facts = sum(size * count for size, count in sizes.items())
    return {
        "themes": sizes.total(),
        "facts": facts,
        "facts_a_theme": round(facts / sizes.total(), 6),
        "largest": max(sizes),
        "reassigned": round(sum(bank["reassigned"] for bank in banks) / facts, 6),
        "sizes": {str(size): sizes[size] for size in sorted(sizes)},
    }


def _themes(tallies: Tallies) -> Table:
    rows = []
    for tally in tallies.methods:
        if found := themes(tally):
            counts = [f"{found[name]:,}" for name in ("themes", "facts")]
            shares = [f"{found['facts_a_theme']:.2f}", str(found["largest"]), percent(found["reassigned"])]
            rows.append([tally.name, *counts, *shares])
    note = "Reassigned: facts that changed their theme at least once, in percent."
    columns = ["method", "themes", "facts", "facts a theme", "largest", "reassigned"]
    return Table("Themes", columns, rows, note)


def _added(rows: Sequence[Sequence[int]]) -> list[int]:
    """Sums place by place; a row that ends stays where it ended."""
    longest = max(map(len, rows), default=0)
    return [sum(row[min(at, len(row) - 1)] for row in rows if row) for at in range(longest)]


def _within(coverage: Sequence[float], hops: int) -> str:
    return percent(coverage[min(hops, len(coverage) - 1)]) if coverage else NONE


def _structure(tallies: Tallies) -> Table:
    rows = []
    for tally in tallies.methods:
        if found := structure(tally):
            along, near = found["coverage_within"], found["coverage_near"]
            rows.append(
                [
                    tally.name,
                    f"{found['visible'] + found['archived']:,}",
                    f"{found['visible_ratio']:.3f}",
                    *(_within(along, hops) for hops in (1, 2)),
                    str(NONE if found["h95_within"] is None else found["h95_within"]),
                    _within(near, 2),
                    f"{found['unreachable']:,}",
                    *(f"{found['links'].get(kind, 0):,}" for kind in _KINDS),
                ]
            )
    columns = ["method", "units", "visible ratio", "R(1)", "R(2)", "H95", "R(2), any link", "unreachable"]
    note = (
        "Of all cases together. R(H): share of the archived units within H version links of the surface, in "
        "percent; H95: the least H whose share is 95 %. Methods that differ only in how they read have the "
        "same units."
    )
    return Table("Structure", [*columns, *(f"{kind} links" for kind in _KINDS)], rows, note)


def _proposals(tallies: Tallies) -> Table:
    rows = []
    for tally in tallies.methods:
        if found := structure(tally):
            ways = [
                "/".join(str(found[stage].get(op, 0)) for stage in ("proposed", "accepted", "applied"))
                for op in _OPS
            ]
            dropped = ", ".join(f"{code} {count:,}" for code, count in found["dropped"].items())
            rows.append([tally.name, str(found["runs"]), *ways, str(found["declined"]), dropped or NONE])
    columns = ["method", "consolidations", *_OPS, "declined", "dropped, by reason"]
    note = "Of the model: made / let through / carried out. A declined one was planned as no change."
    return Table("Proposals", columns, rows, note)


# ── writing ─────────────────────────────────────────────────────────────────────────────────────


def writing(tally: Tally) -> Figures:
    """What writing took online, with each turn, and offline, with each consolidation (Table 3)."""
    every = [item for case in tally.ingested for item in case.transactions]
    online = [item for item in every if item.op == _ONLINE and item.turns]
    if not online:
        return {}
    offline = [item for item in every if item.op == _OFFLINE]
    turns, events = sum(item.turns for item in online), len(offline)
    spent = {"online": _cost(online), "offline": _cost(offline)}
    each = {name: {key: value / turns for key, value in cost.items()} for name, cost in spent.items()}
    seconds = [item.seconds for item in offline]
    return {
        "turns": turns,
        "events": events,
        "online_seconds_a_turn": round(each["online"]["seconds"], 6),
        "online_seconds_a_turn_median": round(median(item.seconds / item.turns for item in online), 6),
        "online_tokens_a_turn": round(each["online"]["tokens"], 3),
        "offline_seconds_an_event": round(mean(seconds), 6) if events else None,
        "offline_seconds_an_event_median": round(median(seconds), 6) if events else None,
        "offline_tokens_an_event": round(spent["offline"]["tokens"] / events, 3) if events else None,
        "turns_an_event": round(turns / events, 3) if events else None,
        "amortised_seconds_a_turn": round(each["offline"]["seconds"], 6),
        "amortised_tokens_a_turn": round(each["offline"]["tokens"], 3),
    }


def _cost(transactions: Sequence[Transaction]) -> dict[str, float]:
    return {
        "seconds": sum(item.seconds for item in transactions),
        "tokens": float(tokens_of(item.usage for item in transactions)),
    }


def _writing(tallies: Tallies) -> Table:
    rows = []
    for tally in tallies.methods:
        if found := writing(tally):
            online, offline = found["online_seconds_a_turn"], found["amortised_seconds_a_turn"]
            rows.append(
                [
                    tally.name,
                    f"{found['turns']:,}",
                    *(_milli(found[f"online_seconds_a_turn{which}"]) for which in ("", "_median")),
                    _count(found["online_tokens_a_turn"]),
                    f"{found['events']:,}",
                    *(_seconds(found[f"offline_seconds_an_event{which}"]) for which in ("", "_median")),
                    _count(found["offline_tokens_an_event"]),
                    _count(found["turns_an_event"]),
                    _milli(offline),
                    _count(found["amortised_tokens_a_turn"]),
                    percent(offline / online if online else None),
                ]
            )
    columns = [
        *("method", "turns", "online ms a turn", "median", "tokens a turn"),
        *("events", "offline s an event", "median", "tokens an event", "turns an event"),
        *("amortised ms a turn", "amortised tokens a turn", "amortised / online, %"),
    ]
    note = (
        "Online is what each turn waits for, offline is consolidation; amortised is offline by turns. "
        "As receipts tell it, to a tenth of a second; one of writing covers a run of turns, and the median "
        "is theirs."
    )
    return Table("Writing, online and offline", columns, rows, note)


def _milli(seconds: float) -> str:
    return f"{1000 * seconds:,.1f}"


def _seconds(value: float | None) -> str:
    return NONE if value is None else f"{value:,.2f}"


def _count(value: float | None) -> str:
    return NONE if value is None else f"{value:,.1f}"


# ── stages of a question ────────────────────────────────────────────────────────────────────────


def stages(tally: Tally) -> Mapping[str, Mapping[str, float]]:
    """Milliseconds of each stage over questions, median and 95th percentile; "all" is their sum."""
    times: defaultdict[str, list[float]] = defaultdict(list)
    for item in tally.asked:
        for stage, milliseconds in item.stages.items():
            times[stage].append(milliseconds)
        if item.stages:
            times["all"].append(sum(item.stages.values()))
    return {
        stage: {"p50": round(percentile(found, 0.5), 4), "p95": round(percentile(found, 0.95), 4)}
        for stage, found in times.items()
    }


def _stages(tallies: Tallies) -> Table:
    found = {tally.name: stages(tally) for tally in tallies.methods}
    names = list(dict.fromkeys(stage for one in found.values() for stage in one if stage != "all"))
    names += ["all"] if names else []
    rows = [
        [
            name,
            *(
                f"{one[stage][share]:,.2f}" if stage in one else NONE
                for stage in names
                for share in ("p50", "p95")
            ),
        ]
        for name, one in found.items()
        if one
    ]
    columns = ["method", *(f"{stage}, {share}" for stage in names for share in ("median", "p95"))]
    return Table("Stages of a question, ms", columns, rows)
