"""The demo: a year of conversation in a temporary library, from first turn to answer, on one screen."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
import tempfile
import textwrap
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from infinimem.cli.options import Options, command
from infinimem.importers import read_turns
from infinimem.llm.base import Reply, Task
from infinimem.llm.offline import OfflineClient
from infinimem.memory import open_memory
from infinimem.results import answer_json, place, receipt_json
from infinimem.store.spec import TOPICS

CONVERSATION = Path(__file__).with_name("demo_conversation.json")
QUESTION = "Which nuts is Nora allergic to?"
EXCERPT, CHANGE = ("s03.1", "s08.11"), "s13.5"
"""Turns that are shown, and the one in which the router got another address."""
OLD_ADDRESS = "192.168.8.1 "
WIDTH = 79


class _Demonstrator(OfflineClient):
    """The offline rules plus what a model would do: sort by topic, and notice one contradiction."""

    def __init__(self, new: str) -> None:
        super().__init__()
        sessions = json.loads(CONVERSATION.read_text(encoding="utf-8"))
        self._topics = {one["text"]: one["topic"] for each in sessions for one in each["messages"]}
        self._new = new

    def complete(self, task: Task, variables: Mapping[str, Any]) -> Reply:
        reply = super().complete(task, variables)
        if task.name == "extract" and isinstance(reply.data, dict):
            said = {turn["id"]: turn["text"] for turn in variables["turns"]}
            for entry in reply.data["entries"]:
                entry["topic"] = self._topics[said[entry["from"][0]]]
        if task.name == "compare" and isinstance(reply.data, dict):
            ids = {fact["text"]: fact["id"] for group in variables["groups"] for fact in group["facts"]}
            if new := ids.get(self._new):
                olds = [ids[text] for text in ids if OLD_ADDRESS in f"{text} "]
                reply.data["superseded"] = [{"old": old, "new": new} for old in olds]
        return reply


@command()
def demo(options: Options) -> None:
    """Needs no key."""
    out = options.out
    turns = list(read_turns(CONVERSATION).turns)
    (change,) = (turn.text for turn in turns if turn.turn == CHANGE)
    late = sorted({turn.session or "" for turn in turns})[-2:]
    memory = open_memory(
        tempfile.mkdtemp(prefix="infinimem-demo-"),
        model=options.model or _Demonstrator(change),
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
        out.line(f"A year of notes to an assistant, {len(turns)} messages, such as:", "bold")
        for turn in turns:
            if turn.turn in EXCERPT:
                out.line(_shortened(turn.text, f"  {_day(turn.time)}  "))
        topics = sorted(memory.view.catalog(folder=TOPICS), key=lambda row: (-row.tokens, row.id))
        out.line(f"\nConsolidated into {len(topics)} topics:", "bold")
        out.line(_shortened(", ".join(row.title for row in topics), "  "))
        out.line(f"\nAsked: {QUESTION}", "bold")
        out.line(_shortened(answer.citations[0].text if answer.citations else answer.text, "  "))
        for source in answer.citations[:1]:
            entry = memory.view.entry(source.seqs[0])
            out.line(f"  from {place(source)}" + (f", said on {_day(entry.entry.time)}" if entry else ""))
        seq = 1
        for one in memory.changes().rows if receipt else ():
            if one.kind == "replaced" and (old := memory.view.entry(one.seq)):
                seq = one.seq
                out.line("\nOne fact changed. The old line was moved, not deleted:", "bold")
                out.line(_shortened(one.was, "  was  "))
                out.line(textwrap.fill(one.now, WIDTH, initial_indent="  now  ", subsequent_indent=" " * 7))
                out.line(f"  line {seq}: {one.where} -> {old.doc_id}")
                break
        out.line()
        if not options.model:
            out.line("Offline; what takes a model, to sort and to notice a change, is scripted here.")
        program = _program()
        out.line(f"Look around:    {program} --library {memory.library.root} history {seq}")
        out.line(f"In a browser:   {program} --library {memory.library.root} web")
        out.line(f"Begin your own: {program} init ~/memory")
        out.line(f"Import chats:   {program} --library ~/memory import conversations.json")
        out.line(f"Connect agents: {program} --library ~/memory connect")


def _program() -> str:
    """Return how this program is called from any folder."""
    called = Path(sys.argv[0]).absolute()
    if called.stem != "infinimem":
        return f"{sys.executable} -m infinimem"
    return "infinimem" if shutil.which("infinimem") == str(called) else shlex.quote(str(called))


def _day(time: str | None) -> str:
    return datetime.fromisoformat(time).strftime("%d %b") if time else "?"


def _shortened(text: str, lead: str) -> str:
    return lead + textwrap.shorten(text, WIDTH - len(lead), placeholder=" …", break_on_hyphens=False)
