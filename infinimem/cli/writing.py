"""Commands that write: init, add, import, consolidate, rebuild; tasks of the agent that is the model."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from infinimem.cli.history import show_receipt, unsigned
from infinimem.cli.options import (
    OFFLINE,
    Options,
    Section,
    command,
    numbers,
    raw_option,
    spending_options,
    words,
)
from infinimem.cli.output import Output
from infinimem.errors import ReplyAwaited, UsageError
from infinimem.estimate import for_turns, tokens_a_turn
from infinimem.model import Receipt, Turn, Unanswered
from infinimem.results import counted, diff, receipt_json, tasks_claimed, tasks_json, tasks_left
from infinimem.spec import DEFAULT
from infinimem.store.folders import LEFT_OUT
from infinimem.store.receipts import next_number, receipts_of
from infinimem.store.state import newly_unanswered, unanswered_message

if TYPE_CHECKING:
    from infinimem.importers import Survey
    from infinimem.memory import Memory

SHOWN = 8  # files that were passed over, before the rest are only counted
MAX_STDIN = 64 * 2**20  # bytes of one turn; more is a file to import
DEAR = 400  # tokens a turn of which an agent is warned
MAX_REPLY = 4 * 2**20  # bytes of a reply
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}


@command()
@click.argument("directory", metavar="[DIR]", required=False)
def init(options: Options, directory: str | None) -> None:
    """DIR defaults to --library, then to the current folder; it is created if missing. Notes in it are not
    changed."""
    from infinimem.memory import open_memory

    path = Path.cwd() / Path(directory or options.library or ".").expanduser()
    library = str(open_memory(path, model=OFFLINE, create=True, strategy=options.strategy).library.root)
    options.out.result({"library": library}, lambda: options.out.line(library))


@command()
@words("text")
@click.option(
    "--role", type=click.Choice(["user", "assistant", "tool", "system"]), default="user", help="Who said it."
)
@click.option("--speaker", help="Name of who said it.")
@click.option("--session", help="Name of the conversation.")
@click.option("--time", help="When it was said, ISO 8601.")
@click.option("--key", help="Idempotency key: recorded once.")
@spending_options
def add(options: Options, /, text: str, **about: Any) -> None:
    """`-` reads the message from standard input."""
    if text == "-":
        data = sys.stdin.buffer.read(MAX_STDIN + 1)
        if len(data) > MAX_STDIN:
            raise UsageError(
                f"over {MAX_STDIN >> 20} MB on standard input; save it to a file and import that"
            )
        try:
            text = data.decode("utf-8").removesuffix("\n")
        except UnicodeDecodeError as error:
            raise UsageError(
                "standard input is not UTF-8 text; convert it first, or import a file"
            ) from error
    turn = Turn(text=text, **about)
    if not text.strip():
        raise UsageError("the text is empty; say what is to be remembered")
    memory, out = options.writing(), options.out
    if options.estimate:
        _estimate(options, memory, [turn.text])
        return
    before = next_number(memory.view)
    with out.progress("Reading"):
        evidence = [place.entry.seq for place in memory.record([turn])]
        entries = memory.observe((), max_tokens=options.max_tokens)
    *_, receipt = None, *receipts_of(memory.view, before - 1)  # where the buffer fell due on the way

    def show() -> None:
        for place in entries:
            out.line(f"{place.entry.seq}\t{place.entry.text}")
        waiting = _say_inbox(out, memory)
        if not evidence:
            out.say("it was recorded before, nothing was added")
        elif memory.by_agent:
            out.say(f"recorded as evidence {evidence[0]}; {_waits(memory)}")
        elif not entries:
            is_done = not (waiting or evidence[0] in memory.unanswered())
            out.say(f"recorded as evidence {evidence[0]}" + "; nothing in it to keep beyond that" * is_done)
        if receipt:
            show_receipt(out, receipt)

    seqs = [place.entry.seq for place in entries]
    result = {"evidence": evidence, "entries": seqs, "receipt": receipt_json(receipt)}
    _end(options, result, show, entries.unanswered)


def _say_inbox(out: Output, memory: Memory) -> int:
    from infinimem.operations.review import inbox

    if waiting := len(inbox(memory.view)):
        out.say(f"awaiting approval: {counted(waiting, 'line')}; infinimem review")
    return waiting


def _waits(memory: Memory, drawn: bool = False) -> str:
    if drawn:
        left = len(memory.view.buffer.entries)
        return f"{counted(left, 'fact')} to sort into topics: infinimem consolidate" if left else ""
    if not memory.by_agent:
        return "recorded only: the next add, import or consolidate extracts entries"
    told = memory.tasks.counts()
    tasks = f"{counted(told['open'], 'task')}, " if told["open"] else ""
    return f"for the agent: {tasks}{counted(told['turns'], 'turn')}; infinimem tasks next"


def _estimate(
    options: Options, memory: Memory, texts: Iterable[str] = (), sorting: int = 0, anew: bool = False
) -> None:
    size = sorting + for_turns(memory.view, texts, anew).tokens
    options.out.result({"receipt": None, "estimate": size}, lambda: options.out.line(f"{size} tokens"))


def _end(
    options: Options, data: dict[str, Any], show: Callable[[], None], failed: Mapping[int, Unanswered]
) -> None:
    """Print a result, and end with exit code 3 where the model gave no usable answer about turns."""
    rows = [{"seq": seq, **one._asdict()} for seq, one in failed.items()]
    options.out.result(data | ({"unanswered": rows} if rows else {}), show)
    if failed and not options.json:
        click.echo(f"error: {unanswered_message(failed)}", err=True)
    if failed:
        click.get_current_context().exit(3)


@command("import")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--format", "format_", metavar="NAME", help="The format; recognised if not given.")
@click.option("--only", metavar="NAME", help="Only this conversation, by id or title.")
@click.option("--record", is_flag=True, help="Record only; extract entries later.")
@spending_options
def import_(options: Options, path: Path, format_: str | None, only: str | None, record: bool) -> None:
    """The format is recognised: exports of ChatGPT, Claude, Gemini, mem0, WhatsApp, Telegram and Slack (as
    downloaded), the MCP memory server's file, session logs of Claude Code and Codex, mails (mbox, eml), chat
    JSON or JSONL, Obsidian, basic-memory and other Markdown. Importing again adds only what is new, and
    resumes an import that was interrupted.
    """
    from infinimem.importers import survey
    from infinimem.importers.read import Again, set_aside

    out = options.out
    # Read to its end before anything is recorded: a file that is damaged further down leaves no half.
    with out.progress(f"Reading {path.name}") as step:
        source = survey(path, format_, only, step)
    memory = options.writing()
    if options.estimate:
        turns = (turn for batch in source.batches() for turn in batch)
        _estimate(options, memory, () if record else (turn.text for turn in turns))
        return
    before, tried = next_number(memory.view), memory.unanswered()
    done = recorded = entries = 0
    notes, record = Again(source.notes, memory.view), record or memory.by_agent
    try:
        with out.progress(f"Recording {path.name}") as step:
            for batch in source.batches():
                recorded += len(memory.record(notes.new(batch)))
                done += len(batch)
                step(done, source.turns)
        if not record:
            with out.progress("Extracting") as step:
                entries = memory.draw(step, options.max_tokens)
        archived = set_aside(memory.library, notes.gone) if notes.gone else None
    except KeyboardInterrupt:
        out.say(f"interrupted: {counted(recorded, 'turn')} recorded; run the same command again to go on")
        raise
    receipts = [*receipts_of(memory.view, before - 1)]
    moved = sum(len(receipt.rows) for receipt in receipts)
    data = {
        "format": ", ".join(source.formats),
        "sessions": source.sessions,
        "turns": source.turns,
        "recorded": recorded,
        "entries": entries,
        "skipped": sum(source.skipped.values()),
        "skipped_why": dict(sorted(source.skipped.items())),
        "left_out": source.left_out,
        "receipt": receipt_json(receipts[-1] if receipts else None),
    }

    def show() -> None:
        known = f", {source.turns - recorded} there before" if source.turns != recorded else ""
        what = f"{counted(source.sessions, 'session')}, {counted(source.turns, 'turn')}, {entries}"
        out.line(f"{data['format']}: {what} entr{'y' if entries == 1 else 'ies'}{known}")
        if receipts:
            what = f"{counted(moved, 'line')} sorted, " if moved else ""
            out.say(f"{what}see " + " to ".join(dict.fromkeys((receipts[0].id, receipts[-1].id))))
        _say_left(out, source, archived, _waits(memory, not record) if recorded else "")
        _say_inbox(out, memory)

    _end(options, data, show, newly_unanswered(tried, memory.unanswered()))


def _say_left(out: Output, source: Survey, archived: Receipt | None, waiting: str) -> None:
    for why, times in sorted(source.skipped.items()):
        out.say(f"skipped: {times} {why}")
    by_worth = sorted(source.left_out.items(), key=lambda one: one[1] == LEFT_OUT)
    for name, why in by_worth[:SHOWN]:
        out.say(f"skipped {name}: {why}")
    if (rest := len(by_worth) - SHOWN) > 0:
        out.say(f"skipped {counted(rest, 'more file')}, --json names all")
    if archived:
        gone = f"{counted(len(archived.rows), 'line')} archived that the notes no longer hold"
        out.say(f"{gone}; {archived.id}, infinimem undo takes it back")
    if waiting:
        out.say(waiting)


@command()
@click.option("--dry-run", is_flag=True, help="Show the changes as a diff; write nothing.")
@click.option("--as-of", "repeated", metavar="RECEIPT", help="With --check: the consolidation to repeat.")
@click.option("--check", is_flag=True, help="Say whether the same replies give the same bytes.")
@click.option("--retry", is_flag=True, help="Ask again about turns that were given up or left.")
@click.option("--leave", metavar="N[,N…]", help="Turns to leave as they were said.")
@raw_option
@spending_options
def consolidate(
    options: Options, dry_run: bool, repeated: str | None, check: bool, retry: bool, leave: str | None
) -> None:
    if (retry or leave) and (dry_run or options.estimate):
        raise UsageError("--retry and --leave write; take them without --dry-run and --estimate")
    if dry_run and options.estimate:
        raise UsageError("--dry-run and --estimate exclude each other; choose one")
    if check != bool(repeated) or (check and (retry or leave or dry_run or options.estimate)):
        raise UsageError("--as-of RECEIPT and --check repeat a consolidation; give both, and nothing else")
    out, memory = options.out, options.writing()
    if repeated:
        with out.progress("Consolidating"):
            differ = memory.repeat(repeated)
        data = {"receipt": repeated, "equal": not differ, "differ": list(differ)}
        same = f"other than then: {', '.join(differ)}" if differ else "the same bytes as then"
        out.result(data, lambda: out.line(same))
        if differ:
            click.get_current_context().exit(1)
        return
    if options.estimate:
        _estimate(options, memory, sorting=memory.estimate())
        return
    if dry_run:
        with out.progress("Planning"):
            text = diff(memory.preview(options.max_tokens))
        if out.result({"receipt": None, "diff": text}):
            shown = unsigned if out.for_people and not options.raw else str
            for line in text.splitlines():
                out.line(shown(line), _DIFF_STYLES.get(line[:1]))
        return
    if retry:
        memory.retry()
    if leave:
        memory.leave(numbers(leave, "--leave"))
    tried, receipt, before = memory.unanswered(), None, next_number(memory.view)
    try:
        with out.progress("Consolidating"):
            receipt = memory.consolidate(options.max_tokens)
    except ReplyAwaited as awaited:
        tasks = awaited.asked
        data = {"receipt": None, "tasks": [tasks_json(one) for one in tasks]}
        out.result(data, lambda: out.line(tasks_left(tasks)))
        return
    failed = newly_unanswered(tried, memory.unanswered())

    def show() -> None:
        stamps = [one for one in receipts_of(memory.view, before - 1) if one.op == "stamp"]
        for one in stamps:
            out.say(f"{counted(len(one.rows), 'line')} changed by hand, as noted in {one.id}")
        if receipt is None and not failed and not stamps:
            out.say("nothing waits, there was nothing to do")
        elif receipt:
            show_receipt(out, receipt)

    _end(options, {"receipt": receipt_json(receipt)}, show, failed)


@command()
@spending_options
def rebuild(options: Options) -> None:
    """Lines stay in their topics, and what was said is not changed."""
    out, memory = options.out, options.writing()
    if options.estimate:
        _estimate(options, memory, anew=True)
        return
    tried = memory.unanswered()
    with out.progress("Rebuilding") as step:
        receipts = memory.rebuild(step, options.max_tokens)
    status, failed = memory.status(), newly_unanswered(tried, memory.unanswered())
    documents, turns = counted(status["documents"], "document"), counted(status["evidence"], "turn")
    if status["evidence"] and not status["documents"]:
        out.say(f"{status['strategy']} makes nothing of these turns; a question finds them as they were said")
    data = {name: status[name] for name in ("strategy", "documents", "evidence")}
    data["receipts"] = [receipt.id for receipt in receipts]
    _end(options, data, lambda: out.line(f"{documents} from {turns}"), failed)


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
        size = for_turns(memory.view)
        told = {"tasks": size.calls, "tokens": size.tokens, "turns": len(memory.view.uncited())}
        cost = f"up to {counted(size.calls, 'task')}, about {size.tokens} tokens"
        out.result(told, lambda: out.line(f"{counted(told['turns'], 'turn')}: {cost}"))
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
