"""Groups of methods that are asked for in one word."""

from __future__ import annotations

from collections.abc import Sequence

from infinimem.spec import strategies

_BESIDE = dict.fromkeys(("five", "five-answers"), ("dense", "bm25"))
"""What stands for itself in a group, after the methods of all strategies that name it."""
GROUPS: dict[str, tuple[str, ...]] = {}
for _groups in (*(spec.groups for spec in strategies().values()), _BESIDE):
    for _name, _those in _groups.items():
        GROUPS[_name] = (*GROUPS.get(_name, ()), *_those)


def spelled_out(methods: Sequence[str]) -> list[str]:
    """The methods, each group in its place as those that it stands for.

    Settings behind a group's name go to each of them that does not have its own; one that was named before is
    not named again.
    """
    found: list[str] = []
    for method in methods:
        name, *settings = method.strip().split(":")
        if name not in GROUPS:
            found.append(method)
            continue
        for member in GROUPS[name]:
            own = {part.partition("=")[0] for part in member.split(":")}
            parts = [*member.split(":"), *(one for one in settings if one.partition("=")[0] not in own)]
            if all(set(parts) != set(other.split(":")) for other in found):
                found.append(":".join(parts))
    return found
