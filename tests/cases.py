"""Cases of one promise: all of them in one test, or a few of them in the ordinary run.

`each` is for cases that cost next to nothing and touch nothing that lasts; a failure names its case. The mark
`sample(n)` is for the others: the ordinary run takes n of them, spread evenly, and -m soak the rest.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest


def each(names: str | Sequence[str], cases: Iterable[Any], ids: object = None) -> Callable[[Any], Any]:
    """Take pytest's parametrize's place: one test that goes through all cases.

    Args:
        names: of the arguments, as one text with commas or as a sequence.
        cases: a value, or a sequence of values, for each.
        ids: are not needed.
    """
    named = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    rows = list(cases)

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(*args: Any, **fixtures: Any) -> None:
            for case in rows:
                if isinstance(case, type(pytest.param())):
                    case = case.values if len(named) > 1 else case.values[0]
                given = dict(zip(named, case, strict=True)) if len(named) > 1 else {named[0]: case}
                try:
                    test(*args, **fixtures, **given)
                except BaseException as error:
                    error.add_note(f"in the case {given!r:.1000}")
                    raise

        signature = inspect.signature(test)
        kept = [value for name, value in signature.parameters.items() if name not in named]
        run.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        del run.__wrapped__  # type: ignore[attr-defined]  # pytest would look at what it wraps
        return run

    return decorate
