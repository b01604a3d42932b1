"""Requests to models and their replies, kept in a folder: a run that asks the same again is answered from
there, and after a change only the requests that it changed are asked.

DIR/<hash>.json          a request and its reply; the hash is of task, model and prompt
OUT/requests.jsonl       of a run: a line for each request, and whether it was replayed
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, get_args

from infinimem.errors import ModelUnavailable
from infinimem.evaluation.record import lines_of, object_of
from infinimem.evaluation.spending import Spending
from infinimem.llm import reading, tasks
from infinimem.llm.base import LLM, Failure, Reply, Task, Wrapper
from infinimem.model import Usage

REQUESTS = "requests.jsonl"
COUNTS = ("replayed", "replayed_tokens", "asked", "asked_tokens")


class Replayed(Wrapper):
    """A client that is asked only what was not asked before; any number of threads may share it.

    Args:
        llm: is asked; its calls are booked.
        spending: where replayed calls are booked as they were recorded; they take nothing of a ceiling.
        folder: of the replies.
        told: what became of each request, a row of requests.jsonl.
    """

    def __init__(
        self, llm: LLM, spending: Spending, folder: Path, told: Callable[[Mapping[str, Any]], None]
    ) -> None:
        super().__init__(llm)
        self._spending = spending
        self._folder = folder
        self._told = told

    def complete(self, task: Task, variables: Mapping[str, Any]) -> Reply:
        """Ask once; see `LLM.complete`."""
        self._spending.demand(paid=False)
        prompt = tasks.render(task, variables)
        request = {"task": task.name, "model": self.name, "system": prompt.system, "user": prompt.user}
        key = hashlib.sha256("\0".join(request.values()).encode("utf-8", "surrogatepass")).hexdigest()
        path = self._folder / f"{key}.json"
        kept = _read(path, task)
        if kept is not None:
            self._spending.add(task.name, kept.usage, paid=False)
        reply = kept or self._llm.complete(task, variables)
        if kept is None:
            _write(path, request, reply)
        used = reply.usage.tokens_in + reply.usage.tokens_out
        self._told({"task": task.name, "request": key, "replayed": kept is not None, "tokens": used})
        return reply


class Unasked:
    """Stands for a model that is not configured: what it once said is replayed, and nothing else.

    Args:
        name: of the model.
        why: it cannot be asked, in one line.
    """

    def __init__(self, name: str, why: str) -> None:
        self.name = name
        self.usage: dict[str, Usage] = {}
        self._why = why

    def complete(self, task: Task, variables: Mapping[str, Any]) -> Reply:
        """See `LLM.complete`; raises ModelUnavailable."""
        raise ModelUnavailable(f"no reply is kept for a request of the task {task.name}, and {self._why}")


def requests_of(out: Path) -> dict[str, dict[str, int]]:
    """The requests of a run by task, and their tokens, in and out; none where no replies are kept.

    Returns:
        By task what `COUNTS` names.

    Raises:
        UsageError: a line is damaged.
    """
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for line in lines_of(out / REQUESTS):
        row = object_of(line)
        kind = "replayed" if row["replayed"] else "asked"
        found[row["task"]].update({kind: 1, f"{kind}_tokens": row["tokens"]})
    return {task: {name: found[task][name] for name in COUNTS} for task in sorted(found)}


def _read(path: Path, task: Task) -> Reply | None:
    """A kept reply; None where there is none, it is damaged, or it does not fit the task any more."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        text, failure, detail = (values[key] for key in ("text", "failure", "detail"))
        usage = Usage(**{name: int(count) for name, count in values["usage"].items()})
        if failure in get_args(Failure):
            return Reply(None, failure, str(detail), str(text), usage)
        reply = replace(reading.read(text, task.schema), usage=usage)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return None if reply.failure else reply


def _write(path: Path, request: Mapping[str, str], reply: Reply) -> None:
    text = reply.text or ("" if reply.data is None else json.dumps(reply.data, ensure_ascii=False))
    told = {"text": text, "failure": reply.failure, "detail": reply.detail, "usage": asdict(reply.usage)}
    path.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=".", delete=False) as part:
        json.dump({**request, **told}, part, indent=1)
    Path(part.name).replace(path)
