"""The demo: a year of conversation in a temporary library, from first turn to answer, on one screen."""

from __future__ import annotations

import tempfile
import textwrap
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from infinimem.cli.options import Options, command
from infinimem.cli.output import Output
from infinimem.importers import read_turns
from infinimem.llm.base import Reply, Task
from infinimem.llm.offline import OfflineClient
from infinimem.memory import open_memory
from infinimem.model import Receipt
from infinimem.results import answer_json, place, receipt_json
from infinimem.store.spec import TOPICS
from infinimem.store.view import View

CONVERSATION = Path(__file__).with_name("demo_conversation.json")
QUESTION = "Which nuts is Nora allergic to?"
EXCERPT = ("s01.11", "s03.1", "s04.3", "s08.11", "s13.5")
"""The turns that are shown; the last one contradicts the third."""
WIDTH = 79


class _Demonstrator(OfflineClient):
    """The offline rules plus one scripted contradiction: the rules themselves claim none, a model would."""

    def __init__(self, old: str, new: str) -> None:
        super().__init__()
        self._old, self._new = old, new

    def complete(self, task: Task, variables: Mapping[str, Any]) -> Reply:
        reply = super().complete(task, variables)
        if task.name == "compare" and isinstance(reply.data, dict):
            ids = {fact["text"]: fact["id"] for group in variables["groups"] for fact in group["facts"]}
            if {self._old, self._new} <= ids.keys():
                reply.data["superseded"] = [{"old": ids[self._old], "new": ids[self._new]}]
        return reply


@command()
def demo(options: Options) -> None:
    """Needs no key."""
    out = options.out
    turns = list(read_turns(CONVERSATION).turns)
    excerpt = [turn for turn in turns if turn.turn in EXCERPT]
    late = sorted({turn.session or "" for turn in turns})[-2:]
    memory = open_memory(
        tempfile.mkdtemp(prefix="infinimem-demo-"),
        model=options.model or _Demonstrator(excerpt[2].text, excerpt[4].text),
        create=True,
        trust=True,
    )
    with out.progress("Remembering") as step:
        memory.observe([turn for turn in turns if turn.session not in late], step)
        memory.consolidate()
        memory.observe([turn for turn in turns if turn.session in late], step)
        receipt = memory.consolidate()
        answer = memory.ask(QUESTION)
    answers = [{"question": QUESTION, **answer_json(answer)}]
    data = {"receipt": receipt_json(receipt), "answer": answer.text, "answers": answers}
    if out.result({"library": str(memory.library.root), **data}):
        out.line(f"A year of notes to an assistant, {len(turns)} messages. Five of them:", "bold")
        for turn in excerpt[:-1]:
            out.line(_shortened(turn.text, f"  {_day(turn.time)}  "))
        out.line(_wrapped(excerpt[-1].text, f"  {_day(excerpt[-1].time)}  "))
        catalog = memory.view.catalog(folder=TOPICS)
        topics = sorted(catalog, key=lambda row: (row.title[-4:].isdecimal(), -row.tokens, row.id))
        out.line()
        out.line(f"Consolidated into {len(topics)} topics, among them:", "bold")
        out.line(_shortened(", ".join(row.id.removeprefix(TOPICS) for row in topics), "  "))
        out.line()
        out.line(f"Asked: {QUESTION}", "bold")
        out.line(_shortened(answer.citations[0].text if answer.citations else answer.text, "  "))
        for source in answer.citations[:1]:
            said = memory.view.entry(source.seqs[0])
            out.line(f"  from {place(source)}" + (f", said on {_day(said.entry.time)}" if said else ""))
        changed = _show_change(out, memory.view, receipt)
        out.line()
        if not options.model:
            out.line("Done offline by rules. Noticing a change takes a model; here it is scripted.")
        out.line(f"Look around: cd {memory.library.root} && infinimem history {changed}")


def _show_change(out: Output, view: View, receipt: Receipt | None) -> int:
    """Show one line that another superseded, and where it went; its seq, else 1."""
    for row in receipt.rows if receipt else ():
        why, _, by = row.why.rpartition(" ")
        old, new = view.entry(row.seq), view.entry(int(by)) if why == "superseded by" else None
        if receipt and old and new:
            out.line()
            out.line("One fact changed. The old line was moved, not deleted:", "bold")
            out.line(_shortened(old.entry.text, "  was  "))
            out.line(_wrapped(new.entry.text, "  now  "))
            out.line(f"  line {row.seq}: {row.was} -> {old.doc_id} (receipt {receipt.number})")
            return row.seq
    return 1


def _day(time: str | None) -> str:
    return datetime.fromisoformat(time).strftime("%d %b") if time else "?"


def _shortened(text: str, lead: str) -> str:
    return lead + textwrap.shorten(text, WIDTH - len(lead), placeholder=" …", break_on_hyphens=False)


def _wrapped(text: str, lead: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent=lead, subsequent_indent=" " * len(lead))
