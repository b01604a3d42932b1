"""Memory that was shown to a model and stands in the log of the talk: data that must not come in again.

Whoever puts lines of a library before a model (a hook, for one) sets them between these two lines.
"""

from __future__ import annotations

BEGIN, END = "<infinimem-recall>", "</infinimem-recall>"

_AROUND = " \t\r"


def without_recalled(text: str) -> tuple[str, int]:
    """The text without such blocks, and how many there were: only what stands between both lines goes.

    A program may set words of its own before the first mark, on its line ("hook says: …"): they stay. A mark
    alone on its line is never recalled text, so that the last of these begins the block; a line of it may
    well end with a mark.
    """
    if BEGIN not in text:
        return text, 0
    kept: list[str] = []
    count, begun = 0, -1
    for line in text.split("\n"):
        bare = line.strip(_AROUND)
        if bare == END and begun >= 0:
            before = kept[begun][: kept[begun].rindex(BEGIN)].rstrip(_AROUND)
            kept[begun:] = [before] if before else []
            count, begun = count + 1, -1
            continue
        if bare == BEGIN or (bare.endswith(BEGIN) and begun < 0):
            begun = len(kept)
        kept.append(line)
    return "\n".join(kept), count
