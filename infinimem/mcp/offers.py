"""What MCP offers beside the five tools: `remember`, `forget`, `ask`, and the tasks of an agent as the model.

In: a library. Out: tools by name, each with what the protocol tells of it. Promise: what writes only adds,
but for `forget`, which does nothing before a person agreed.
"""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import asdict, dataclass, replace
from importlib import resources
from typing import Annotated, Literal

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
from infinimem.store.view import is_hidden
from infinimem.tools.tool import Result, Rule, Tool, shown, span

ASKED = 20  # lines that a person is shown
caller: ContextVar[str] = ContextVar("caller", default="")  # the name of the client whose call is answered


TABLES = tomllib.loads(resources.files(__package__).joinpath("offers.toml").read_text("utf-8"))


@dataclass(frozen=True)
class Offer:
    """A tool as a client sees it.

    Args:
        asks: whether it calls the library's model and may take long.
        outward: whether it may call something outside this machine's library.
        approved: does what the tool only plans, once a person has agreed to that; None for all others.
    """

    tool: Tool
    asks: bool = False
    outward: bool = False
    approved: Callable[..., Result] | None = None

    @property
    def writes(self) -> bool:
        """Whether it changes the library at each call, unless the caller gives a key."""
        return bool(TABLES["tools"].get(self.tool.name, {}).get("writes"))


def offers(memory: Memory, reading: Reader, trust_user: bool = False) -> dict[str, Offer]:
    """Return the tools by name; where the client is the model those of tasks stand in the place of `ask`.
    Only if `trust_user` can the caller say that a text is the user's."""
    may_write, calls = not memory.library.read_only, _Calls(memory, reading)
    outward, remember = memory.llm.name not in ("offline", AGENT), Tool.of(calls.remember, _recorded_rows)
    if not trust_user:  # then nobody can tell a person's words from a model's
        known = {name: rule for name, rule in remember.parameters["properties"].items() if name != "role"}
        remember = replace(remember, parameters={**remember.parameters, "properties": known})
    tasks = [TaskTool.of(one, _task_rows) for one in (calls.memory_tasks, calls.memory_answer)]
    asking = [remember, *(tasks if memory.by_agent else [Tool.of(calls.ask, _answer_rows)])]
    offered = [Offer(tool) for tool in reading.tools] + [Offer(tool, True, outward) for tool in asking]
    if reading is memory:  # else it would show more than the project
        offered.append(Offer(Tool.of(calls.forget, _forgotten_rows), approved=calls.forget_agreed))
    return {offer.tool.name: offer for offer in offered if may_write or not offer.writes}


class TaskTool(Tool):
    """A tool whose result is no data but what is to be done; what was recorded stands in blocks in it."""

    def told(self, result: Result) -> str:
        return super().told(result) if "error" in result else "\n".join(self.rows(result))


@dataclass(frozen=True)
class _Calls:
    """What the tools do; a client is told what the docstrings say."""

    memory: Memory
    reading: Reader

    def memory_tasks(self, task: int | None = None) -> Result:
        """Give the next thing that this memory would ask a model, and claim it for ten minutes: you are its
        model. Call it when the user asks you to consolidate memory, and answer with memory_answer.

        Args:
            task: the number of a task that others have; without it the first that nobody has
        """
        return self._next(task)

    def memory_answer(self, task: int, reply: Annotated[str, Rule(longest=400_000)]) -> Result:
        """Answer a task of memory_tasks. Gives what is wrong with the reply, or the next task.

        Args:
            task: its number
            reply: the JSON that it asks for
        """
        if wrong := self.memory.tasks.answer(task, reply, by=caller.get()):
            left = len(self.memory.tasks.open())
            return {"wrong": wrong, "task": task, "left": left, "text": "nothing of it is kept; answer again"}
        return {"wrong": [], **self._next(after=task)}

    def _next(self, number: int | None = None, after: int | None = None) -> Result:
        task = self.memory.tasks.take(number, after)
        left = self.memory.tasks.open()
        if task is None:
            return {"task": None, "left": len(left), "text": tasks_claimed(left)}
        rest = sum(one.tokens for one in left if one.number != task.number)
        others = f"; {len(left) - 1} more are open, about {rest} tokens" if rest else ""
        text = f"{task.text}\n\nAnswer with memory_answer, which may give further tasks{others}."
        return {"task": task.number, "left": len(left), "text": visible(clean_text(text))}

    def ask(self, question: Annotated[str, Rule(longest=4000)]) -> Result:
        """Answer a question from memory, with citations. Slower than search: a model reads what is found.
        Says so where memory holds nothing about it.

        Args:
            question: a question in plain words
        """
        answer = self.reading.ask(question)
        citations = [{**asdict(one), "text": span(one.text, 0, LINE_LENGTH)[0]} for one in answer.citations]
        return {"answer": visible(clean_text(answer.text)), "citations": citations}

    def remember(
        self,
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
        places = self.memory.record([Turn(text, role, **about)])
        notes = []
        try:
            if failed := self.memory.observe(()).unanswered:
                notes.append(unanswered_message(failed))
        except ModelUnavailable as error:
            notes.append(str(error))
        if places and is_hidden(places[0].doc_id):
            notes.append("no tool shows it until a person approves it: infinimem review")
        turn = places[0].entry if places else None
        view = self.memory.view
        drawn = [one.entry for one in view.entries() if turn.seq in one.entry.origin] if turn else []
        result: Result = {
            "recorded": turn is not None,
            "seq": turn.seq if turn else None,
            "source": turn.source if turn else None,
            "entries": [{"seq": entry.seq, "text": shown(entry.text)} for entry in drawn],
        }
        return {**result, "notes": notes} if notes else result

    def forget(
        self, match: Annotated[str, Rule(longest=1000)] | None = None, seqs: str | None = None
    ) -> Result:
        """Take lines out for good, with all that they came from. Only when the user asks for it: they are
        shown what would go, and must agree.

        Args:
            match: lines in which this pattern occurs (RE2, any case)
            seqs: lines by number, 41 or 41-43+50
        """
        going = self._forget(match, seqs, dry_run=True)
        if not going.files:
            return {"forgotten": 0, "left": []}
        lines = [f"- {shown(row.text)}" for row in going.rows[:ASKED]]
        more = [f"and {len(going.rows) - ASKED} more"] if len(going.rows) > ASKED else []
        what = f"{counted(len(going.rows), 'line')} of {counted(len(going.files), 'file')} would go for good:"
        how = f"--match {shlex.quote(match)}" if match else f"--seq {seqs}"
        return {"question": "\n".join([what, *lines, *more]), "command": f"infinimem forget {how}"}

    def forget_agreed(self, match: str | None = None, seqs: str | None = None) -> Result:
        done = self._forget(match, seqs)
        return {"forgotten": len(done.seqs), "left": [f"{left.path}: {left.why}" for left in done.left]}

    def _forget(self, match: str | None, seqs: str | None, dry_run: bool = False) -> Forgotten:
        return self.memory.forget(parse_seqs(seqs) if seqs else (), match=match, dry_run=dry_run)


def _task_rows(result: Result) -> Iterator[str]:
    yield from result.get("wrong", ())
    yield result["text"]


def _answer_rows(result: Result) -> Iterator[str]:
    yield from result["answer"].split("\n")
    for cited in result["citations"]:
        yield f"{cited['doc_id']}:{cited['start_line']}-{cited['end_line']} {cited['text']}"


def _recorded_rows(result: Result) -> Iterator[str]:
    yield f"recorded as {result['seq']}, source {result['source']}" if result["recorded"] else "known before"
    for entry in result["entries"]:
        yield f"{entry['seq']} {entry['text']}"


def _forgotten_rows(result: Result) -> Iterator[str]:
    yield f"{counted(result['forgotten'], 'line')} forgotten"
    yield from (f"some of it is left in {shown(left)}" for left in result["left"])
