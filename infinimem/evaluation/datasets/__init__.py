"""Public data sets, read as their official files are, each with its own rules of scoring: a row of sets.toml
for people, and one of `benchmark` for the program."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import partial
from importlib.resources import files
from pathlib import Path

from infinimem.errors import UsageError
from infinimem.evaluation import metrics
from infinimem.evaluation.datasets import abilities, dialogues
from infinimem.evaluation.model import Answered, DataSet, Load, Retrieval

ABOUT: Mapping[str, Mapping[str, str]] = tomllib.loads(
    files(__package__).joinpath("sets.toml").read_text("utf-8")
)
"""What each measures, its official file, size and licence."""
NAMES = tuple(ABOUT)


def benchmark(name: str, corrections: Path | None = None, split: str | None = None) -> DataSet:
    """Return a data set by one of `NAMES`; UsageError if there is none, or it is given what it does not take.

    `corrections` is a published audit of LoCoMo's labels; `split` is "dev" or "held", of notes alone.
    """
    if name not in NAMES:
        raise UsageError(f"no data set {name!r}: use one of {', '.join(NAMES)}")
    if split is not None and name != "notes":
        raise UsageError(f"only notes is split: leave --split out for {name}")
    if corrections is not None and name != "locomo":
        raise UsageError(f"corrections are known for locomo only: leave them out for {name}")
    chats = (dialogues.longmemeval, metrics.by_session, metrics.by_words)
    tasks = (abilities.memoryagentbench, abilities.found_answers, abilities.task_words)
    facts = partial(abilities.memoryagentbench, only="factconsolidation")
    loader = partial(dialogues.locomo, corrections=corrections)
    short = partial(metrics.by_turn, budgets=(512, 1024, 2048))
    long = partial(metrics.by_turn, budgets=(1024, 2048, 4096, 8192))
    of_split = partial(abilities.notes, split=split or "dev")
    how: Mapping[str, tuple[Load, Retrieval, Answered]] = {
        "locomo": (loader, short, metrics.locomo_words),
        "locomo-plus": (dialogues.locomo_plus, short, metrics.unscored),
        "longmemeval": chats,
        "longmemeval-mix": chats,
        "memoryagentbench": tasks,
        "factconsolidation": (facts, *tasks[1:]),
        "beam": (dialogues.beam, long, metrics.unscored),
        "personamem": (abilities.personamem, metrics.unscored, metrics.by_choice),
        "precisionmembench": (abilities.precisionmembench, abilities.precise, metrics.unscored),
        "perltqa": (dialogues.perltqa, metrics.by_session, metrics.by_words),
        "dialsim": (dialogues.dialsim, metrics.unscored, metrics.by_choice),
        "notes": (of_split, abilities.by_section, metrics.unscored),
    }
    return DataSet("notes-held" if split == "held" else name, *how[name])
