"""A model asked until its reply can be read and is right, and the replies that were not taken."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from infinimem.llm.base import CUT, LLM, Reply, Task
from infinimem.model import Reason, RejectedReply

Data = Mapping[str, Any]

TRIES = 2
"""How often a model is asked for a reply that can be read, or is right."""
IN_VAIN = 3
"""Plans in a row without one, after which it is not asked about more in the same call."""


class Asker:
    """Asks a model, and keeps the replies that were not taken unchanged until someone takes them."""

    def __init__(self, llm: LLM) -> None:
        self.llm = llm
        self.failure = ""
        """Why `ask` had no reply in the end, of the last question of which that is so."""
        self._rejected: dict[tuple[str, str], list[str]] = {}

    def take(self, other: Asker) -> None:
        """Keep what another one kept, which asked in another thread."""
        for reply, lines in other._rejected.items():
            self._rejected.setdefault(reply, []).extend(lines)

    def complete(self, task: Task, variables: Mapping[str, Any]) -> Reply:
        """Ask as `LLM.complete` does; a reply that cannot be read is kept."""
        reply = self.llm.complete(task, variables)
        if reply.data is None:
            self.reject(task, reply, [unreadable(reply)])
        return reply

    def ask(self, task: Task, **variables: object) -> Data | None:
        """Ask, and once more if the reply cannot be read; None if neither can.

        Raises:
            ModelUnavailable: the model does not answer.
        """
        data, wrong = self.ask_checked(task, variables, lambda _: ())
        self.failure = self.failure if data is not None else wrong[0].code
        return data

    def ask_checked(
        self, task: Task, variables: Mapping[str, object], check: Callable[[Data], Sequence[Reason]]
    ) -> tuple[Data | None, Sequence[Reason]]:
        """Ask, and once more if the reply is wrong; with its problems, where the task has such a variable.

        Returns:
            The better of the replies (None if neither could be read), and what is still wrong with it.
        """
        best: Data | None = None
        left: Sequence[Reason] = ()
        problems: Sequence[Reason] = ()
        mends = "problems" in task.variables
        for _ in range(TRIES):
            told = {"problems": [str(reason) for reason in problems]} if mends else {}
            reply = self.complete(task, {**variables, **told})
            if reply.data is None:
                problems = (unreadable(reply),)
                left = left if best is not None else problems
                if reply.failure in CUT and not mends:  # it would not fit the next time either
                    break
                continue
            problems = tuple(check(reply.data))
            self.reject(task, reply, problems)
            if best is None or len(problems) <= len(left):
                best, left = reply.data, problems
            if not problems:
                break
        return best, left

    def reject(self, task: Task, reply: Reply, reasons: Iterable[Reason]) -> None:
        """Keep a reply because of these reasons; without any, nothing is kept."""
        lines = [str(reason) for reason in reasons]
        if lines:
            text = reply.text or ("" if reply.data is None else json.dumps(reply.data, ensure_ascii=False))
            self._rejected.setdefault((task.name, text), []).extend(lines)

    def rejected(self) -> tuple[RejectedReply, ...]:
        """Return what was kept since this was last called, in the order in which it came."""
        kept, self._rejected = self._rejected, {}
        return tuple(
            RejectedReply(task, text, tuple(dict.fromkeys(lines))) for (task, text), lines in kept.items()
        )


def unreadable(reply: Reply) -> Reason:
    """Return why a reply has no data."""
    return Reason(reply.failure or "EMPTY", (), reply.detail)


def named(ids: Iterable[str], among: Iterable[int]) -> list[int]:
    """Return the seqs that a model names, without those that it made up, each once and ascending."""
    known = {str(seq): seq for seq in among}
    return sorted({known[name] for name in map(bare, ids) if name in known})


def bare(name: str) -> str:
    """Return an id as it was given; prompts show those of turns in brackets, and models copy these too."""
    return name.strip(" \t\n[]")
