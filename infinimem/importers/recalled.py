"""Memory that was shown to a model and stands in the log of the talk: data that must not come in again.

Whoever puts lines of a library before a model (a hook, for one) sets them between these two lines.
"""

from __future__ import annotations

BEGIN, END = "<infinimem-recall>", "</infinimem-recall>"

_AROUND = " \t\r"


def without_recalled(text: str) -> tuple[str, int]:
    """The text without such blocks, and how many there were.

    One that was cut off reaches to the end. A program may set words of its own before the first mark, on its
    line ("hook says: …"); then the block counts only where it is closed.
    """
    if BEGIN not in text:
        return text, 0
    lines = text.split("\n")
    closed = max((at for at, line in enumerate(lines) if line.strip(_AROUND) == END), default=-1)
    kept: list[str] = []
    count, inside = 0, False
    for at, line in enumerate(lines):
        bare = line.strip(_AROUND)
        if inside:
            inside = bare != END
        elif bare == BEGIN or (bare.endswith(BEGIN) and at < closed):
            inside = True
            count += 1
            if before := line[: line.rindex(BEGIN)].rstrip(_AROUND):
                kept.append(before)
        else:
            kept.append(line)
    return "\n".join(kept), count
