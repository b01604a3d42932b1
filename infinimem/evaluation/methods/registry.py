"""From a method's name to the method."""

from __future__ import annotations

from infinimem.evaluation.methods.answering import Means
from infinimem.evaluation.methods.baselines import Baseline
from infinimem.evaluation.methods.library import LibraryMethod, Making
from infinimem.evaluation.methods.notes import NotesSearch
from infinimem.evaluation.methods.spec import Spec, parse
from infinimem.evaluation.model import Method


def method(spec: str | Spec, means: Means, making: Making) -> Method:
    """A method, holding no case yet.

    Args:
        spec: its name and settings.
        means: what it works with.
        making: the libraries of the run.

    Raises:
        UsageError: there is no such method or setting.
    """
    found = parse(spec) if isinstance(spec, str) else spec
    if found.way is not None:
        kind = NotesSearch if found.way.ranked_by == "search" else LibraryMethod
        return kind(found, means, making)
    return Baseline(found, means)
