"""A text that stands in a line already is not held twice: a library of 100,000 turns is two copies else."""

from __future__ import annotations

from typing import TYPE_CHECKING

LONG = 200
"""Characters of a text from which on memory counts for more than the time to cut it from its line."""


def text_in(line: str) -> str:
    """What follows a signature without "> " in it, continuations without their indent."""
    return line.partition("> ")[2].replace("\n  ", "\n")


class TextInLine:
    """What holds a `line`, and a `text` that may be taken from it: then it is cut whenever asked for."""

    __slots__ = ()

    if not TYPE_CHECKING:  # or every name would be an attribute

        def __getattr__(self, name: str) -> str:
            if name == "text":
                return text_in(self.line)
            raise AttributeError(name)
