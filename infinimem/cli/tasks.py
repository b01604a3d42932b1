"""Commands of the agent that is the model: tasks, and what is below it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from infinimem.cli.options import Options, Section
from infinimem.errors import UsageError
from infinimem.estimate import for_agent, tokens_a_turn
from infinimem.results import counted, tasks_claimed, tasks_json, tasks_left
from infinimem.spec import DEFAULT

if TYPE_CHECKING:
    from infinimem.memory import Memory

DEAR = 400
"""Tokens a turn of which an agent is warned."""
MAX_REPLY = 4 * 2**20
"""Bytes of a reply."""


@click.group(cls=Section, invoke_without_command=True)
@click.option("--estimate", "estimates", is_flag=True, help="Estimate tasks and tokens; make no task.")
@click.pass_context
def tasks(context: click.Context, estimates: bool) -> None:
    """With the model "agent" whoever works with the library answers what a model would be asked: extract from
    turns, and consolidate. Without a command, lists what awaits a reply.
    """
    if context.invoked_subcommand is not None:
        return
    options = context.find_root().ensure_object(Options)
    memory, out = options.writing(), options.out
    if estimates:
        told = for_agent(memory.view)
        say = f"up to {counted(told['tasks'], 'task')}, about {told['tokens']} tokens"
        out.result(told, lambda: out.line(say))
        return
    each, name = tokens_a_turn(memory.view), memory.library.spec.name
    if each > DEAR:
        out.say(f"{name} takes some {each} tokens a turn; {DEFAULT} takes a fraction of it")
    waiting = memory.tasks.go_on()
    rows = [[one.number, one.name, len(one.open), one.tokens, one.claimed or "-"] for one in waiting]

    def show() -> None:
        out.table(("task", "kind", "parts", "tokens", "claimed until"), rows)
        out.say(tasks_left(waiting))

    out.result({"tasks": [tasks_json(one) for one in waiting]}, show)


@tasks.command("next")
@click.argument("number", type=int, required=False)
def next_(options: Options, number: int | None) -> None:
    """Print the next task that nobody has, or task NUMBER, and claim it for ten minutes."""
    _show_next(options, options.writing(), number)


@tasks.command()
@click.argument("number", type=int)
@click.argument("file", type=click.File("rb"))
def answer(options: Options, number: int, file: Any) -> None:
    """Keep the reply to a task, from FILE or `-`, go on with the work, and print the next task. What is wrong
    with a reply is said in a line each, and the task stays."""
    data = file.read(MAX_REPLY + 1)
    if len(data) > MAX_REPLY:
        raise UsageError(f"the reply is over {MAX_REPLY >> 20} MB")
    memory = options.writing()
    if wrong := memory.tasks.answer(number, data.decode("utf-8", "replace")):
        options.out.result({"wrong": wrong, "task": None, "left": len(memory.tasks.open())}, lambda: None)
        for line in wrong if not options.json else ():
            click.echo(f"error: {line}", err=True)
        click.get_current_context().exit(1)
    _show_next(options, memory, after=number)


@tasks.command()
@click.argument("number", type=int)
def redo(options: Options, number: int) -> None:
    """Drop the reply to a task and ask anew; turns of which nothing was kept are read again. What was applied
    stays: `undo` takes that back."""
    waiting, out = options.writing().tasks.redo(number), options.out
    out.result({"tasks": [tasks_json(one) for one in waiting]}, lambda: out.line(tasks_left(waiting)))


def _show_next(options: Options, memory: Memory, number: int | None = None, after: int | None = None) -> None:
    task, out = memory.tasks.take(number, after), options.out
    left = memory.tasks.open()

    def show() -> None:
        if task is None:
            out.line(tasks_claimed(left))
            return
        out.line(task.text)
        rest = f"; {counted(len(left) - 1, 'more task')} after it" if len(left) > 1 else ""
        out.line(f"\nAnswer: infinimem tasks answer {task.number} FILE, or - and the reply on stdin{rest}.")

    told = {**tasks_json(task), "text": task.text} if task else None
    out.result({"task": told, "left": len(left)}, show)
