"""Which strategies there are. Each is imported when it is used."""

from __future__ import annotations

from infinimem.errors import UsageError
from infinimem.llm.base import LLM
from infinimem.settings import Settings
from infinimem.strategies.base import Strategy

NAMES = ("infini", "allmem")


def known(name: str) -> str:
    """The name, if a strategy has it.

    Raises:
        UsageError: none has.
    """
    if name not in NAMES:
        raise UsageError(f"no strategy is called {name!r}; there are {', '.join(NAMES)}")
    return name


def make(name: str, llm: LLM, settings: Settings) -> Strategy:
    """A strategy.

    Args:
        name: one of `NAMES`.
        llm: the model that helps it.
        settings: those of the library.
    """
    if name == "allmem":
        from infinimem.strategies.allmem.strategy import AllMem

        return AllMem(llm, settings)
    from infinimem.strategies.infini.strategy import Infini

    return Infini(llm, settings)
