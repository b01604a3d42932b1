"""The audit of a run: every proposal, what became of it and why, with tables for people.

Rows of the block, each with its `row`:
    diagnosis  one for each unit that waited: its neighbours, and the reply or the code of its failure
    proposal   one for each proposal, by operator and ids: how far it came, its plan and its edits
    metrics    counts over the run

Source: All-Mem, Appendix C.5.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from infinimem.strategies.allmem.diagnose import OPS, Diagnosis, Proposal
from infinimem.strategies.allmem.execute import Compiled, Done
from infinimem.strategies.allmem.operators import Edits
from infinimem.strategies.allmem.route import Dropped, Routed
from infinimem.strategies.allmem.unit import HOME
from infinimem.strategies.records.descriptor import Descriptor
from infinimem.strategies.records.ledger import bounded, ledger_text
from infinimem.strategies.records.record import is_record_id, number_of
from infinimem.strategies.records.record_store import RecordStore

AUDIT = f"{HOME}audit/run-"
SHORT = 500
"""Of a reason."""
IDS, NAME = 10, 80
"""Ids of a proposal, and characters of one; those that are none may be many and long."""
Row = dict[str, Any]


def audit_text(
    doc_id: str,
    embedder: str,
    diagnosed: Sequence[Diagnosis],
    routed: Routed,
    done: Sequence[Done],
    before: RecordStore,
    after: RecordStore,
) -> str:
    """The audit's file."""
    dropped = [_dropped(one) for one in routed.dropped]
    proposals = sorted((*dropped, *map(_done, done)), key=_order)
    metrics = _metrics(diagnosed, proposals, before, after)
    rows = [_diagnosis(one) for one in diagnosed]
    rows += [{"row": "proposal", **row} for row in proposals]
    rows.append({"row": "metrics", **metrics})
    number = int(doc_id.removeprefix(AUDIT))
    return ledger_text(doc_id, {"kind": "audit", "embedder": embedder}, _prose(number, metrics), rows)


def _diagnosis(one: Diagnosis) -> Row:
    row: Row = {"row": "diagnosis", "unit": one.context.target, "near": list(one.context.anchors)}
    if one.reply is not None:
        return {**row, "reply": bounded(one.reply)}
    return {**row, "code": one.code, "detail": one.detail[:SHORT]}


def _proposal(one: Proposal, ids: Sequence[str]) -> Row:
    return {
        "op": one.op,
        "ids": [name[:NAME] for name in ids[:IDS]],
        "confidence": one.confidence,
        "reason": one.reason[:SHORT],
        "unit": one.context.target,
    }


def _dropped(one: Dropped) -> Row:
    return {**_proposal(one.proposal, one.proposal.ids), "came": "routing", "code": one.code, "sub": one.sub}


def _done(one: Done) -> Row:
    row = _proposal(one.item.proposal, one.item.ids)
    if one.reply is not None:
        row["reply"] = bounded(_without_evidence(one.reply))
    if one.edits is not None and one.plan is not None:
        return {**row, "came": "applied", "plan": written(one.plan), "edits": _edits(one.edits)}
    if one.code:
        return {**row, "came": "execution", "code": one.code, "sub": one.sub[:SHORT]}
    return {**row, "came": "declined"}


def _order(row: Row) -> tuple[Any, ...]:
    """By operator, then by ids as they are executed; ids that are none come last."""
    known = [number_of(name) if is_record_id(name) else (1 << 62, 0) for name in row["ids"]]
    return OPS.index(row["op"]), known, row["ids"], number_of(row["unit"])


def _without_evidence(reply: Mapping[str, Any]) -> Mapping[str, Any]:
    """A plan's reply without the words of the evidence: the plan names them by their place."""
    if "segments" not in reply:
        return reply
    rows = [{key: row[key] for key in row if key != "segment_text"} for row in reply["segments"]]
    return {**reply, "segments": rows}


# ── plans and edits ─────────────────────────────────────────────────────────────────────────────


def written(plan: Compiled) -> Any:
    """A compiled plan as JSON."""
    if isinstance(plan, Descriptor):
        return {"summary": plan.summary, "keywords": list(plan.keywords)}
    return [
        {"refs": [[ref.seq, *(ref.span or ())] for ref in part.refs], **written(part.descriptor)}
        for part in plan
    ]


def _edits(edits: Edits) -> Row:
    return {
        "created": list(edits.created),
        "archived": list(edits.archived),
        "added": [list(link) for link in edits.added],
        "redirected": [[link.source, link.old, link.new] for link in edits.redirected],
    }


# ── metrics ─────────────────────────────────────────────────────────────────────────────────────


def _metrics(
    diagnosed: Sequence[Diagnosis], proposals: Sequence[Row], before: RecordStore, after: RecordStore
) -> Row:
    applied = [row["edits"] for row in proposals if row["came"] == "applied"]
    codes = Counter(row["code"] for row in proposals if "code" in row)
    codes.update(one.code for one in diagnosed if one.code)
    return {
        "units": len(diagnosed),
        "proposed": {op: sum(row["op"] == op for row in proposals) for op in OPS},
        "accepted": {
            op: sum(row["op"] == op and row["came"] != "routing" for row in proposals) for op in OPS
        },
        "applied": {op: sum(row["op"] == op and row["came"] == "applied" for row in proposals) for op in OPS},
        "declined": sum(row["came"] == "declined" for row in proposals),
        "dropped": dict(sorted(codes.items())),
        "created": sum(len(edits["created"]) for edits in applied),
        "archived": sum(len(edits["archived"]) for edits in applied),
        "added": sum(len(edits["added"]) for edits in applied),
        "redirected": sum(len(edits["redirected"]) for edits in applied),
        "visible": [len(before.visible), len(after.visible)],
    }


def _prose(number: int, metrics: Row) -> list[str]:
    lines = [
        f"# Consolidation {number}",
        "",
        f"{metrics['units']} units were looked at; {metrics['created']} came, {metrics['archived']} went to "
        f"the archive, {metrics['redirected']} links were redirected. The surface had "
        f"{metrics['visible'][0]} units and has {metrics['visible'][1]}.",
        "",
        "| operator | proposed | accepted | applied |",
        "| --- | --- | --- | --- |",
    ]
    stages = ("proposed", "accepted", "applied")
    lines += [f"| {op} | {' | '.join(str(metrics[stage][op]) for stage in stages)} |" for op in OPS]
    if metrics["dropped"]:
        lines += ["", "| dropped for | count |", "| --- | --- |"]
        lines += [f"| {code} | {count} |" for code, count in metrics["dropped"].items()]
    return lines
