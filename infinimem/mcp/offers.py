"""What MCP offers beside the five tools: `remember`, `forget`, `ask`, and the tasks of an agent as the model.

In: a library. Out: tools by name, each with what the protocol tells of it. Promise: what writes only adds,
but for `forget`, which does nothing before a person agreed.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, Literal

from infinimem.answer import LINE_LENGTH
from infinimem.errors import ModelUnavailable
from infinimem.llm.base import AGENT
from infinimem.markdown.characters import clean_text, visible
from infinimem.markdown.signature import parse_seqs
from infinimem.memory import Memory
from infinimem.model import NOTHING, Turn
from infinimem.operations.forget.forget import Forgotten
from infinimem.reader import Reader
from infinimem.results import counted, tasks_claimed
from infinimem.store.state import unanswered_message
from infinimem.tools.tool import Result, Rule, Tool, shown, span

FORGET = "forget"
ASKED = 20  # lines that a person is shown
caller: ContextVar[str] = ContextVar("caller", default="")
"""The name of the client whose call is answered."""


def _object(**properties: str | tuple[str, ...]) -> dict[str, Any]:
    types = {
        name: {"type": list(kind) if isinstance(kind, tuple) else kind} for name, kind in properties.items()
    }
    return {"type": "object", "properties": types, "required": list(types)}


_MATCHES = {"matches": "array", "total_matches": "integer", "truncated": "boolean"}
_SHOWN: Mapping[str, tuple[str, dict[str, Any]]] = {
    "grep": ("Find a pattern in all documents", _object(**_MATCHES)),
    "grep_doc": ("Find a pattern in one document", _object(doc_id="string", **_MATCHES)),
    "search": ("Search memory", _object(hits="array")),
    "list_docs": ("List documents", _object(docs="array", total="integer", has_more="boolean")),
    "read_lines": (
        "Read lines of a document",
        _object(doc_id="string", lines="array", total_lines="integer"),
    ),
    "remember": (
        "Remember",
        _object(recorded="boolean", seq=("integer", "null"), source=("string", "null"), entries="array"),
    ),
    "ask": ("Ask memory", _object(answer="string", citations="array")),
    FORGET: ("Forget", _object(forgotten="integer", left="array")),
    "memory_tasks": ("Next task of the memory", _object(task=("integer", "null"), left="integer")),
    "memory_answer": ("Answer a task", _object(wrong="array", task=("integer", "null"), left="integer")),
}
"""Of each tool its name for people, and the schema of its result."""


@dataclass(frozen=True)
class Offer:
    """A tool as a client sees it, with the JSON schema of its result.

    Args:
        asks: whether it calls the library's model and may take long.
        writes: whether it adds to the library at each call, unless the caller gives a key.
        outward: whether it may call something outside this machine's library.
        approved: does what the tool only plans, once a person has agreed to that; None for all others.
    """

    tool: Tool
    title: str
    output: Mapping[str, Any]
    asks: bool
    writes: bool
    outward: bool
    approved: Callable[..., Result] | None = None


def offers(memory: Memory, reading: Reader, trust_user: bool = False) -> dict[str, Offer]:
    """Return the tools by name: those of a library, those that packages add, `ask`, `remember` and `forget`;
    `ask` has those of tasks in its place where the client is the model."""
    agents = [] if memory.library.read_only else [tasks_tool(memory), answer_tool(memory)]
    asking = agents if memory.by_agent else [ask_tool(reading)]
    if not memory.library.read_only:
        asking.insert(0, remember_tool(memory, trust_user))
    outward = memory.llm.name not in ("offline", AGENT)
    found = {}
    for tool in (*reading.tools, *asking):
        name, asks = tool.name, tool in asking
        title, shape = _SHOWN.get(name, (name, _object()))
        writes = name in ("remember", "memory_tasks", "memory_answer")
        found[name] = Offer(tool, title, shape, asks, writes, asks and outward)
    if not memory.library.read_only and reading is memory:  # else it would show more than the project
        tool, approved = forget_tool(memory)
        found[FORGET] = Offer(
            tool, *_SHOWN[FORGET], asks=False, writes=True, outward=False, approved=approved
        )
    return found


class TaskTool(Tool):
    """A tool whose result is no data but what is to be done; what was recorded stands in blocks in it."""

    def told(self, result: Result) -> str:
        """See `Tool.told`."""
        return super().told(result) if "error" in result else "\n".join(self.rows(result))


def _task_rows(result: Result) -> Iterator[str]:
    yield from result.get("wrong", ())
    yield result["text"]


def _next(memory: Memory, number: int | None = None, after: int | None = None) -> Result:
    task = memory.tasks.take(number, after)
    left = memory.tasks.open()
    if task is None:
        return {"task": None, "left": len(left), "text": tasks_claimed(left)}
    rest = sum(one.tokens for one in left if one.number != task.number)
    text = f"{task.text}\n\nAnswer with memory_answer; {len(left) - 1} more tasks, about {rest} tokens, wait."
    return {"task": task.number, "left": len(left), "text": visible(clean_text(text))}


def tasks_tool(memory: Memory) -> Tool:
    """Make the tool that gives the next task."""

    def memory_tasks(task: int | None = None) -> Result:
        """Give the next thing that this memory would ask a model, and claim it for ten minutes: you are its
        model. Call it when the user asks you to consolidate memory, and answer with memory_answer.

        Args:
            task: the number of a task that others have; without it the first that nobody has
        """
        return _next(memory, task)

    return TaskTool.of(memory_tasks, _task_rows)


def answer_tool(memory: Memory) -> Tool:
    """Make the tool that takes the reply to a task."""

    def memory_answer(task: int, reply: Annotated[str, Rule(longest=400_000)]) -> Result:
        """Answer a task of memory_tasks. Gives what is wrong with the reply, or the next task.

        Args:
            task: its number
            reply: the JSON that it asks for
        """
        if wrong := memory.tasks.answer(task, reply, by=caller.get()):
            left = len(memory.tasks.open())
            return {"wrong": wrong, "task": task, "left": left, "text": "nothing of it is kept; answer again"}
        return {"wrong": [], **_next(memory, after=task)}

    return TaskTool.of(memory_answer, _task_rows)


def _answer_rows(result: Result) -> Iterator[str]:
    yield from result["answer"].split("\n")
    for cited in result["citations"]:
        yield f"{cited['doc_id']}:{cited['start_line']}-{cited['end_line']} {cited['text']}"


def ask_tool(memory: Reader) -> Tool:
    """Make the tool that answers from memory, with the lines that the answer rests on."""

    def ask(question: Annotated[str, Rule(longest=4000)]) -> Result:
        """Answer a question from memory, with citations. Slower than search: a model reads what is found.
        Says so where memory holds nothing about it.

        Args:
            question: a question in plain words
        """
        answer = memory.ask(question)
        citations = [
            {**asdict(cited), "text": span(cited.text, 0, LINE_LENGTH)[0]} for cited in answer.citations
        ]
        return {"answer": visible(clean_text(answer.text)), "citations": citations}

    return Tool.of(ask, _answer_rows)


def _recorded_rows(result: Result) -> Iterator[str]:
    yield f"recorded as {result['seq']}, source {result['source']}" if result["recorded"] else "known before"
    for entry in result["entries"]:
        yield f"{entry['seq']} {entry['text']}"


def remember_tool(memory: Memory, trust_user: bool = False) -> Tool:
    """Make the tool that writes down what a client says before a model is asked, and draws from all that
    waits. Only if `trust_user` can the caller say that a text is the user's."""

    def remember(
        text: Annotated[str, Rule(longest=50_000)],
        session: str | None = None,
        speaker: Annotated[str, Rule(longest=200)] | None = None,
        time: Annotated[str, Rule(longest=40)] | None = None,
        key: Annotated[str, Rule(longest=500)] | None = None,
        role: Literal["assistant", "user"] = "assistant",
    ) -> Result:
        """Write something down for later conversations. Nothing is overwritten: a correction is remembered
        anew. Gives the number it was recorded under and the entries drawn from it.

        Args:
            text: one fact or a short passage, with names instead of pronouns
            session: name of the conversation
            speaker: name of who said it
            time: when it was said, ISO 8601
            key: the same key is recorded once
            role: user: these are the user's own words; assistant: yours, or a summary
        """
        given = {"speaker": speaker, "time": time, "session": session, "key": key}
        about = {name: value for name, value in given.items() if value and value.strip() not in NOTHING}
        places = memory.record([Turn(text, role, **about)])
        notes = []
        try:
            if failed := memory.observe(()).unanswered:
                notes.append(unanswered_message(failed))
        except ModelUnavailable as error:
            notes.append(str(error))
        seq = places[0].entry.seq if places else None
        drawn = [place.entry for place in memory.view.entries() if seq in place.entry.origin] if seq else []
        result: Result = {
            "recorded": seq is not None,
            "seq": seq,
            "source": places[0].entry.source if places else None,
            "entries": [{"seq": entry.seq, "text": shown(entry.text)} for entry in drawn],
        }
        return {**result, "notes": notes} if notes else result

    made = Tool.of(remember, _recorded_rows)
    if not trust_user:  # then nobody can tell a person's words from a model's
        properties = {name: rule for name, rule in made.parameters["properties"].items() if name != "role"}
        made = replace(made, parameters={**made.parameters, "properties": properties})
    return made


def forget_tool(memory: Memory) -> tuple[Tool, Callable[..., Result]]:
    """Make the tool that plans what is to be forgotten, and what does it."""

    def chosen(match: str | None, seqs: str | None, dry_run: bool = False) -> Forgotten:
        return memory.forget(parse_seqs(seqs) if seqs else (), match=match, dry_run=dry_run)

    def forget(match: Annotated[str, Rule(longest=1000)] | None = None, seqs: str | None = None) -> Result:
        """Take lines out for good, with all that they came from. Only when the user asks for it: they are
        shown what would go, and must agree.

        Args:
            match: lines in which this pattern occurs (RE2, any case)
            seqs: lines by number, 41 or 41-43+50
        """
        going = chosen(match, seqs, dry_run=True)
        if not going.files:
            return {"forgotten": 0, "left": []}
        lines = [f"- {shown(row.text)}" for row in going.rows[:ASKED]]
        more = [f"and {len(going.rows) - ASKED} more"] if len(going.rows) > ASKED else []
        what = f"{counted(len(going.rows), 'line')} of {counted(len(going.files), 'file')} would go for good:"
        how = f"--match {shlex.quote(match)}" if match else f"--seq {seqs}"
        return {"question": "\n".join([what, *lines, *more]), "command": f"infinimem forget {how}"}

    def approved(match: str | None = None, seqs: str | None = None) -> Result:
        done = chosen(match, seqs)
        return {"forgotten": len(done.seqs), "left": [f"{left.path}: {left.why}" for left in done.left]}

    return Tool.of(forget, _forgotten_rows), approved


def _forgotten_rows(result: Result) -> Iterator[str]:
    yield f"{counted(result['forgotten'], 'line')} forgotten"
    yield from (f"some of it is left in {shown(left)}" for left in result["left"])
