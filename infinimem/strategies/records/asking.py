"""A model asked until its reply can be read, and what it wrote where none could."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from infinimem.llm.base import CUT, LLM, Task
from infinimem.model import RejectedReply

TRIES = 2
"""How often a model is asked for a reply that can be read."""
IN_VAIN = 3
"""Plans in a row without one, after which it is not asked about more in the same call."""


class Asked:
    """Asks, and keeps the replies that could not be read.

    Args:
        llm: the model.
    """

    def __init__(self, llm: LLM) -> None:
        self._llm = llm
        self.rejected: list[RejectedReply] = []
        self.failure = ""
        """Why there was none in the end, of the last question of which that is so."""

    def ask(self, task: Task, **variables: object) -> Mapping[str, Any] | None:
        """A reply, or None where none can be read.

        Raises:
            ModelUnavailable: the model does not answer.
        """
        for _ in range(TRIES):
            reply = self._llm.complete(task, variables)
            if reply.data is not None:
                return reply.data
            failure = reply.failure or "EMPTY"
            self.rejected.append(RejectedReply(task.name, reply.text, (f"{failure}: {reply.detail}",)))
            if failure in CUT:  # it would not fit the next time either
                break
        self.failure = failure
        return None


def named(ids: Iterable[str], among: Iterable[int]) -> list[int]:
    """The seqs that a model names, without those that it made up, each once and ascending."""
    known = {str(seq): seq for seq in among}
    return sorted({known[name] for name in map(bare, ids) if name in known})


def bare(name: str) -> str:
    """An id as it was given; prompts show those of turns in brackets, and models copy these too."""
    return name.strip(" \t\n[]")
