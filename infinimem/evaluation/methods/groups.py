"""Groups of methods that are asked for in one word, such as `allmem-ablations`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

GROUPS: Mapping[str, tuple[str, ...]] = {
    "allmem-ablations": (
        "allmem",
        "allmem:visibility=false",
        "allmem:split=false",
        "allmem:merge=false",
        "allmem:update=false",
        "allmem:expand=false",
        "allmem:recovery_links=false",
        "allmem:type_priority=false",
        "allmem:successors_first=false",
    ),
    "allmem-sweep": (
        "allmem",
        "allmem:anchors=5",
        "allmem:anchors=20",
        "allmem:candidates=20",
        "allmem:candidates=80",
        "allmem:final=8",
        "allmem:final=32",
    ),
}
"""All-Mem with one thing left out: those of its Table 10, and our own order of what is superseded; and with
other budgets of reading, one at a time (section 4.3)."""


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
