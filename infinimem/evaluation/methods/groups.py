"""Groups of methods that are asked for in one word."""

from __future__ import annotations

from collections.abc import Sequence

from infinimem.spec import strategies

_BESIDE = {"five": ("dense", "bm25"), "five-answers": ("dense", "bm25")}
"""What stands for itself in a group, after the methods of all strategies that name it."""
GROUPS = {
    name: (
        *(method for spec in strategies().values() for method in spec.groups.get(name, ())),
        *_BESIDE.get(name, ()),
    )
    for name in dict.fromkeys((*(name for spec in strategies().values() for name in spec.groups), *_BESIDE))
}


def spelled_out(methods: Sequence[str]) -> list[str]:
    """The methods, each group in its place as those that it stands for.

    Settings behind a group's name go to each of them; one that was named before is not named again.
    """
    found: list[str] = []
    for method in methods:
        name, colon, settings = method.strip().partition(":")
        if name not in GROUPS:
            found.append(method)
            continue
        members = (f"{member}{colon}{settings}" for member in GROUPS[name])
        found += [member for member in members if member not in found]
    return found
