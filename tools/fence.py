"""How stored text is shown: cut, made visible, and fenced so that it cannot pose as anything else."""

from __future__ import annotations

import re
from collections.abc import Iterable

from infinimem.markdown.signature import clean_text

LINE_LENGTH = 500
RESULT_LENGTH = 16_000
"""Characters of stored text in one result: a caller's context is not ours to fill."""

_CONTROL = re.compile(r"[\x01-\x08\x0b-\x1f\x7f-\x9f]")


def shown(text: str) -> str:
    """One stored line: at most 500 characters, terminal and other control characters as visible escapes."""
    text = _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", clean_text(text))
    return text if len(text) <= LINE_LENGTH else f"{text[: LINE_LENGTH - 1]}…"


def fenced(lines: Iterable[str]) -> str:
    """The lines in a fence longer than any run of backticks among them."""
    body = "\n".join(lines)
    longest = max((len(run) for run in re.findall(r"`+", body)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}memory\n{body}\n{fence}"
