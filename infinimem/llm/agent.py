"""The agent that works with a library as its model: what is asked becomes a task that it answers when it can.

    .infinimem/tasks/0007.md    a task: what is asked at once, as the agent reads it (docs/FORMAT.md, Tasks)
    .infinimem/tasks/run        up to which turn the work goes that they belong to, and what it ends with

Nobody waits for a reply. Work that misses one ends (ReplyAwaited), and is done again from the library's state
once it is there: replies that are kept cost nothing (llm/replies.py). So a task only names its requests, by
their keys; what they ask, and a reply, stands in the folder of replies, where no library can make one up.
Nothing here is needed: tasks that are lost are made again.
"""

from __future__ import annotations

import fcntl
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, timedelta
from functools import cached_property, partial
from importlib import resources
from itertools import groupby
from pathlib import Path
from typing import Any

from infinimem import tokens
from infinimem.errors import ModelNotConfigured, ReplyAwaited, UsageError
from infinimem.llm.base import AGENT
from infinimem.llm.replies import Cached, Kept, kept, put_reply
from infinimem.llm.tasks import filled, read
from infinimem.markdown.characters import clean_text, fenced, one_line
from infinimem.markdown.signature import format_seqs, parse_seqs
from infinimem.model import Usage
from infinimem.store.files import MAX_OWNED, STAGED, digest
from infinimem.store.library import Library
from infinimem.store.state import note_usage
from infinimem.store.view import whole

FOLDER = ".infinimem/tasks"
RUN = f"{FOLDER}/run"
TOGETHER, ROOM = 8, 8000
"""Requests of one kind that a task holds, and tokens of their material."""
CLAIM = timedelta(minutes=10)
"""How long a task that somebody took is nobody else's."""
EVENTS = ("append", "due", "consolidate")
"""Of a strategy's tick (strategies/base.py)."""
FEW = 4
"""Turns; of fewer there may well be nothing to keep."""
NAME_LENGTH = 40  # characters of an agent's name
ANSWERED = 100
"""Tasks that stay after they were answered, to be opened again."""
NAMING = frozenset({"from", "fact_ids", "doc_id", "doc_ids", "id", "ids", "old", "new", "before", "replaces"})
"""Properties of replies that hold ids, each copied from the material."""
_WORD = re.compile(r"[\w/.-]*\w")


@dataclass(frozen=True)
class AgentTask:
    """Requests of one kind, of which `open` await a reply, by their number in the task.

    `claimed` tells until when somebody has it, `doubted` is the digest of a reply that was given back once.
    If it `follows` whoever has it has read a task of the same instructions.
    """

    number: int
    name: str = ""
    keys: tuple[str, ...] = ()
    claimed: str = ""
    doubted: str = ""
    waits: bool = True
    open: Mapping[int, Kept] = field(default_factory=dict)
    follows: bool = False

    @property
    def instructions(self) -> str:
        return next((one.sections["Instructions"] for one in self.open.values()), "")

    @property
    def problems(self) -> Mapping[int, Sequence[str]]:
        """What is wrong with the replies that it mends, by part; none where a part mends none."""
        told = {at: json.loads(one.head.get("problems", "[]")) for at, one in self.open.items()}
        return told if all(told.values()) else {}

    @cached_property
    def text(self) -> str:
        """What the agent reads: the instructions once, unless it `follows`, and the material of each part;
        of one that mends what the agent said before only what is wrong."""
        given: dict[str, str] = {"number": str(self.number), "kind": self.name}
        if self.follows and self.problems:
            told = {at: "\n".join(f"- {one}" for one in some) for at, some in self.problems.items()}
            given["mends"] = ""
        else:
            told = {at: fenced(one.sections["Material"]) for at, one in self.open.items()}
            given["material"] = ""
            given |= {"read": ""} if self.follows else {"instructions": self.instructions}
        if len(self.keys) > 1:
            told = {at: f"## Part {at}\n\n{text}" for at, text in told.items()}
            given["shape"] = "{" + ", ".join(f'"{at}": {{…}}' for at in told) + "}"
        given["parts"] = "".join(f"\n{text.rstrip()}\n" for text in told.values())
        given["size"] = str(tokens.count(given["parts"]) + tokens.count(given.get("instructions", "")))
        return filled(resources.files(__package__).joinpath("agent.md").read_text("utf-8"), given).rstrip()

    @cached_property
    def tokens(self) -> int:
        return tokens.count(self.text)


Work = Callable[[int, Any, Callable[[], None]], None]
"""Extracts up to a turn and ends with an event, until a reply is awaited; calls the last after each plan of
that."""


class Desk:
    """The tasks of a library, and the work that they are for, one at a time.

    Args:
        client: whose requests are asked.
        work: is called again with each reply; what was applied is done, and what was answered costs nothing.
        replies: gives the folder of replies.

    Its methods raise UsageError if another model is asked, ModelNotConfigured if replies are kept nowhere.
    """

    def __init__(
        self, library: Library, client: Cached, work: Work, replies: Callable[[], Path | None]
    ) -> None:
        self._library, self._client, self._work, self._replies = library, client, work, replies
        self._files, self._clock = library.files, library.clock

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Keep others from working on the tasks in the block."""
        self._library.demand_initialised()
        self._look()
        with (self._folder.parent / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _look(self) -> None:
        """See where replies are kept by now; a `forget` gives them another folder."""
        if self._client.name != AGENT:
            raise UsageError(f"tasks are for the model {AGENT!r}; --model or INFINIMEM_MODEL names it")
        if (folder := self._replies()) is None:
            raise ModelNotConfigured(
                "the agent's replies are kept nowhere, so its turns are recorded only;"
                " set replies_days under [llm], and a home folder"
            )
        self._folder = folder

    # ── the work ────────────────────────────────────────────────────────────────────────────────

    def go_on(self, event: str = "due") -> list[AgentTask]:
        """Extract and consolidate as far as replies reach, and return the tasks that await more of them;
        "consolidate" empties the buffer in the end, due or not."""
        with self._held():
            return self._go_on(event)

    def _go_on(self, event: str = "due", again: bool = True) -> list[AgentTask]:
        """All that is asked in a run is about the turns that were there when it began: else each new one
        would change what was asked, and answers would be in vain. Those that came later are asked about in
        another one, if `again`: a reply begins none about the few words that were said meanwhile."""
        while True:
            view = self._library.view()
            run = self._run()
            if run is None:  # nothing came in since: the buffer may be stale
                run = view.max_seq, event if event != "due" or view.pending(AGENT) else "append"
            upto, ends = run[0], "consolidate" if event == "consolidate" else run[1]
            self._begin(upto, ends)
            try:
                # what follows a consolidation is due though the buffer is empty
                self._work(upto, ends, partial(self._begin, upto, "consolidate"))
            except ReplyAwaited as awaited:
                return self._settle([*dict.fromkeys(awaited.asked)])
            self._files.remove(RUN, durable=False)
            self._settle(())
            event = "due"
            if not again or not self._library.view().pending(AGENT):
                return []

    def _run(self) -> tuple[int, str] | None:
        """Return the seq of the last turn that the work under way is about, and with what event it ends."""
        rows = (self._files.read(RUN, MAX_OWNED) or b"").decode("ascii", "replace").split()
        upto = whole(rows[0]) if len(rows) == 2 and rows[1] in EVENTS else None
        return None if upto is None else (upto, rows[1])

    def _begin(self, upto: int, event: str) -> None:
        if self._run() != (upto, event):
            self._put(RUN, f"{upto} {event}\n")

    # ── the tasks ───────────────────────────────────────────────────────────────────────────────

    def open(self) -> list[AgentTask]:
        """Return the tasks that await a reply, by number."""
        self._look()
        tasks = (self._read(number) for number in self._numbers())
        return [task for one in tasks if one.waits and (task := self._filled(one)).open]

    def _numbers(self) -> list[int]:
        numbers = (whole(name.removesuffix(".md")) for name in self._files.names(FOLDER))
        return sorted(number for number in numbers if number)

    def _settle(self, keys: Sequence[str]) -> list[AgentTask]:
        """Let the tasks be those of these requests, and number new ones. A reply to one that nobody asks for
        any more is kept all the same."""
        there, left, covered = self._numbers(), dict[int, AgentTask](), set[str]()
        for task in self.open():
            asked = {task.keys[at - 1] for at in task.open}
            if asked <= {*keys}:
                left[task.number] = task
                covered |= asked
            else:
                self._written(task, stale=True)
        for number in [number for number in there if number not in left][:-ANSWERED]:
            self._files.remove(_path(number), durable=False)
        number = max(there, default=0)
        known = {key: one for key in keys if key not in covered and (one := kept(self._file(key)))}
        for _, alike in groupby(known, key=lambda key: known[key].sections["Instructions"]):
            size = {key: tokens.count(known[key].sections["Material"]) for key in alike}
            for portion in tokens.packed([*size], ROOM, size.__getitem__):
                for some in (portion[at : at + TOGETHER] for at in range(0, len(portion), TOGETHER)):
                    number += 1
                    left[number] = self._written(AgentTask(number, keys=tuple(some)))
        return list(left.values())

    def take(self, number: int | None = None, after: int | None = None) -> AgentTask | None:
        """Claim a task for a while, or the first that nobody has, those before others that mend; None if
        there is none. What the same agent read in the task `after` which it comes is not told again.
        UsageError if the task awaits no reply."""
        with self._held():
            if after is None and not self.open():
                self._go_on()
            now, keys = self._clock().astimezone(UTC), self._read(after).keys if after else ()
            known = kept(self._file(keys[0])) if keys else None
            for task in sorted(self.open(), key=lambda task: not task.problems):
                free = task.claimed <= now.isoformat(timespec="seconds")
                if task.number == number or (number is None and free):
                    task = self._written(replace(task, claimed=(now + CLAIM).isoformat(timespec="seconds")))
                    follows = known is not None and known.sections["Instructions"] == task.instructions
                    return replace(task, follows=follows)
        if number is not None:
            raise UsageError(f"no task {number} awaits a reply; infinimem tasks lists those that do")
        return None

    def answer(self, number: int, text: str, by: str = "") -> list[str]:
        """Keep what is of use in a reply, and go on; return what is wrong with the rest, a line each. A reply
        that names what is not there, or leaves most turns out, is given back once. Receipts of what it does
        tell whom it is `by`.

        Raises:
            UsageError: there is no such task, or it is answered.
        """
        with self._held():
            wrong, took = self._answer(number, text, one_line(clean_text(by))[:NAME_LENGTH])
            note_usage(self._files, self._clock().astimezone(UTC).date().isoformat(), took)
            self._go_on(again=False)
            return wrong

    def _answer(self, number: int, text: str, by: str) -> tuple[list[str], Usage]:
        task = self._filled(self._read(number))
        if not task.open:
            if task.keys and not all(kept(self._file(key)) for key in task.keys):
                raise UsageError(f"task {number} is lost with the cache; infinimem consolidate asks it anew")
            why = "is answered" if task.keys else "is not there (any more)"
            raise UsageError(f"task {number} {why}; infinimem tasks next prints the next one")
        wrong: list[str] = []
        took = Usage()
        given_again = task.doubted == (mark := digest(text.encode("utf-8", "replace")))
        for at, given in self._parts(task, text).items():
            asked = task.open[at]
            reply = read(given, json.loads(asked.sections["Schema"]))
            doubts = [] if given_again else _doubts(asked, reply.data or {})
            if reply.data is None or doubts:
                begin = f"part {at}: " if len(task.keys) > 1 else ""
                wrong += [f"{begin}{one}" for one in (doubts if reply.data is not None else [reply.detail])]
            else:
                took += put_reply(self._file(task.keys[at - 1]), given, not took.calls, by)
        self._written(replace(task, doubted=mark))
        return wrong, took

    def redo(self, number: int) -> list[AgentTask]:
        """Drop the replies to a task and ask anew; turns of which nothing was kept are pending again."""
        with self._held():
            task = self._read(number)
            files = [self._file(key) for key in task.keys]
            rows = [one.head.get("turns", "") for path in files if (one := kept(path))]
            if not rows:
                raise UsageError(f"task {number} is not there (any more)")
            for path in files:
                put_reply(path, "")
            self._written(task)
            self._library.reopen(tuple(seq for row in filter(None, rows) for seq in parse_seqs(row)))
            return self._go_on()

    def counts(self) -> dict[str, int]:
        """Count open tasks, their tokens, and the turns that wait."""
        tasks = [] if self._library.read_only else self.open()
        turns = len(self._library.view().pending(AGENT))
        return {"open": len(tasks), "tokens": sum(task.tokens for task in tasks), "turns": turns}

    def _parts(self, task: AgentTask, text: str) -> dict[int, str]:
        """Return a reply's parts by number, as text; all of it for a task of one part."""
        if len(task.keys) == 1:
            return {1: text}
        names = {str(at): {"type": "object"} for at in task.open}
        reply = read(text, {"type": "object", "properties": names})
        data = reply.data or {}
        if not data:
            raise UsageError(f"{reply.detail or 'no part is answered'}; its keys are {', '.join(names)}")
        return {int(name): json.dumps(part, ensure_ascii=False) for name, part in data.items()}

    # ── files ───────────────────────────────────────────────────────────────────────────────────

    def _file(self, key: str) -> Path:
        return self._folder / f"{key}.md"

    def _read(self, number: int) -> AgentTask:
        """Return what the file says of a task; one of no request for a file that says nothing."""
        lines = (self._files.read(_path(number), MAX_OWNED) or b"").decode("utf-8", "replace").split("\n")
        head = dict(line.split(": ", 1) for line in lines[1:6] if ": " in line)
        keys = tuple(key for key in head.get("requests", "").split() if key.isalnum())
        claimed = head.get("claimed", "")
        return AgentTask(number, "", keys, claimed, head.get("doubted", ""), head.get("waits") != "0")

    def _filled(self, task: AgentTask) -> AgentTask:
        """Return the task with what its requests are by now; without any if one of them is lost."""
        asked = {at: one for at, key in enumerate(task.keys, 1) if (one := kept(self._file(key)))}
        is_whole = len(asked) == len(task.keys)
        left = {at: one for at, one in asked.items() if is_whole and not one.sections["Reply"].strip()}
        name = next((one.head["task"] for one in asked.values()), "")
        return replace(task, name=name, open=left, waits=bool(left))

    def _written(self, task: AgentTask, stale: bool = False) -> AgentTask:
        task = self._filled(task)
        head = {"requests": " ".join(task.keys), "waits": "0" if stale else str(len(task.open))}
        head |= {"claimed": task.claimed, "doubted": task.doubted}
        lines = "".join(f"{name}: {value}\n" for name, value in head.items())
        self._put(_path(task.number), f"---\n{lines}---\n\n{task.text}\n")
        return task

    def _put(self, path: str, text: str) -> None:
        """Write a file at once; it need not outlast a loss of power."""
        self._files.stage(f"{FOLDER}/{STAGED}", text.encode("utf-8", "backslashreplace"), durable=False)
        self._files.rename(f"{FOLDER}/{STAGED}", path)


def _path(number: int) -> str:
    return f"{FOLDER}/{number:04d}.md"


def _doubts(asked: Kept, data: Mapping[str, Any]) -> list[str]:
    """Return what speaks against a reply that has the right form, a line each."""
    named = [*_named(data)]
    words = {*_WORD.findall(asked.sections["Material"])}
    unknown = [name for name in dict.fromkeys(named) if name and name not in words]
    doubts = []
    if unknown:
        doubts.append(
            f"not in the material: {', '.join(name[:20] for name in unknown[:10])}; copy ids exactly"
        )
    turns = parse_seqs(asked.head["turns"]) if "turns" in asked.head else ()
    left = [seq for seq in turns if str(seq) not in named]
    if len(turns) >= FEW and 4 * len(left) > 3 * len(turns):
        doubts.append(f"no entry for {format_seqs(left)}; is there nothing in them to keep?")
    if doubts:
        doubts.append("if it is right so, send the same again")
    return doubts


def _named(data: Any, name: str = "") -> Iterator[str]:
    if isinstance(data, Mapping):
        for key, value in data.items():
            yield from _named(value, key)
    elif isinstance(data, list):
        for value in data:
            yield from _named(value, name)
    elif isinstance(data, str) and name in NAMING:
        yield data.strip(" #[]<>")
