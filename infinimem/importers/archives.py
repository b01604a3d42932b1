"""Which files of an export hold what was said, by their paths: in a zip as it came, or in a folder."""

from __future__ import annotations

import re
from collections.abc import Iterable

SLACK_LISTS = ("users.json", "org_users.json", "channels.json", "groups.json", "dms.json", "mpims.json")
"""Slack's lists, people first: these names are needed to read the talks."""
SLACK_DAY = re.compile(r"(?:.*/)?([^/]+)/\d{4}-\d\d-\d\d\.json")

ENDINGS = (".json", ".jsonl", ".ndjson", ".md", ".markdown", ".txt", ".eml", ".html", ".mbox")
"""Of files that hold what was said or noted."""
PACKED = (".zip", ".gz", ".xz", ".zst")

_READ = re.compile(
    r"(?:.*/)?(?:"
    r"conversations(?:-\d+)?\.json"  # ChatGPT, Claude
    r"|memories\.json|projects\.json|(?:memories|projects)/[\w-]+\.json"  # Claude
    r"|_chat\.txt|[^/]*WhatsApp[^/]*\.txt"
    r"|result\.json"  # Telegram
    r"|(?:Gemini|Gemini Apps|Bard)/My ?Activity\.json"  # Google Takeout
    r"|[^/]+\.mbox"
    r")"
)


def stem_of(name: str) -> str:
    """A file's name without the endings that say what it is: "Dr. Holm.md" and "Dr. Holm" are "Dr. Holm"."""
    for endings in (PACKED, (*ENDINGS, ".log", ".text", ".org", ".rst")):
        end = next(
            (end for end in endings if name.lower().endswith(end) and name[: -len(end)].strip(".")), ""
        )
        name = name.removesuffix(name[len(name) - len(end) :])
    return name


def slack_files(names: Iterable[str]) -> list[str]:
    """The files of a Slack export in the order to read them, lists first; none where it is no export.

    Args:
        names: paths with "/" between their parts; all may lie in one folder.
    """
    known = set(names)
    for people in sorted(name for name in known if name.rpartition("/")[2] in SLACK_LISTS[:2]):
        root = people[: len(people) - len(people.rpartition("/")[2])]
        lists = [root + name for name in SLACK_LISTS if root + name in known]
        if not known.isdisjoint(root + name for name in SLACK_LISTS[2:]):
            below = (
                name for name in known if name.startswith(root) and SLACK_DAY.fullmatch(name[len(root) :])
            )
            return [*lists, *sorted(below)]
    return []


def read_members(names: Iterable[str]) -> list[str]:
    """The members of a zip that are read, in order."""
    listed = sorted(names)
    return slack_files(listed) or [name for name in listed if _READ.fullmatch(name)]
