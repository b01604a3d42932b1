"""The demo: a conversation of a year in a library of its own, from first turn to answers."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from infinimem.cli.options import OFFLINE, Command, Options, pass_options
from infinimem.cli.show import answer_json, diff, receipt_json, show_answer, show_receipt

CONVERSATION = Path(__file__).with_name("demo_conversation.json")
QUESTIONS = (
    "Which nuts is Nora allergic to?",
    "When do they fly to Slovenia?",
    "What is the address of heron?",
)
SHOWN = 40
"""Lines of the diff that are shown."""


@click.command(cls=Command)
@pass_options
def demo(options: Options) -> None:
    """A year of notes with an assistant, in a temporary library: consolidate, diff, ask. Needs no key."""
    from infinimem.importers import read_turns
    from infinimem.memory import open_memory

    out = options.out
    turns = list(read_turns(CONVERSATION).turns)
    sessions = list(dict.fromkeys(turn.session for turn in turns))
    late = sessions[-2:]
    memory = open_memory(
        tempfile.mkdtemp(prefix="infinimem-demo-"), model=options.model or OFFLINE, create=True, trust=True
    )
    library = str(memory.library.root)
    out.say(f"{len(turns)} turns in {len(sessions)} sessions of 2025, into {library}")
    with out.progress("Remembering") as step:
        memory.observe([turn for turn in turns if turn.session not in late], step)
        memory.consolidate()
        memory.observe([turn for turn in turns if turn.session in late], step)
        changes = diff(memory.preview()).splitlines()
        receipt = memory.consolidate()
        answers = [(question, memory.ask(question)) for question in QUESTIONS]

    def show() -> None:
        out.line("What the last two sessions changed:", "bold")
        out.diff("\n".join(changes[:SHOWN]))
        if len(changes) > SHOWN:
            out.line(f"… {len(changes) - SHOWN} more lines")
        if receipt:
            out.line()
            show_receipt(out, receipt)
        for question, answer in answers:
            out.line()
            out.line(question, "bold")
            show_answer(out, answer)
        out.line()
        out.line(f"Look around: infinimem --library {library} ls")

    told = [{"question": question, **answer_json(answer)} for question, answer in answers]
    out.result(
        {"library": library, "receipt": receipt_json(receipt), "answer": told[0]["answer"], "answers": told},
        show,
    )
