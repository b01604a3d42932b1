"""Memory that was shown to a model and stands in the log of the talk: data that must not come in again.

Whoever puts lines of a library before a model (a hook, for one) sets them between these two lines.
"""

from __future__ import annotations

import re

BEGIN, END = "<infinimem-recall>", "</infinimem-recall>"

_BLOCK = re.compile(
    rf"^[ \t]*{re.escape(BEGIN)}[ \t]*$.*?(?:^[ \t]*{re.escape(END)}[ \t]*$\n?|\Z)", re.DOTALL | re.MULTILINE
)


def without_recalled(text: str) -> tuple[str, int]:
    """The text without such blocks, and how many there were; one that was cut off reaches to the end."""
    if BEGIN not in text:
        return text, 0
    return _BLOCK.subn("", text)
