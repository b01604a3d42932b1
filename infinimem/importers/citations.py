"""What ChatGPT's page draws as links and an export leaves as marks in the text: they are nobody's words.

The marks stand between characters of Unicode's private area. Where these were lost on the way, the names of
the sources alone are left ("citeturn0search1").
"""

from __future__ import annotations

import json
import re

_MARK = re.compile(r"\ue200(\w+)((?:\ue202[^\ue200\ue201]*)*)\ue201")
_BARE = re.compile(r" ?\b(?:file|nav)?cite(?:turn\d+[a-z]+\d+)+")
_BRACKETED = re.compile(r" ?【\d+(?::\d+)?†[^【】\n]*】")
_FILE = re.compile(r" ?\b(?:sediment|file-service|sandbox)://?[^\s)\]]+")
_LINK = re.compile(r"!?\[([^\[\]\n]*)\]\((?:sandbox|sediment|file-service):[^()\n]*\)")
_CAMPAIGN = re.compile(r"([?&])utm_source=(?:chatgpt\.com|openai)(&|(?![\w.]))")
_PRIVATE = re.compile(r"[\ue200-\ue206]")


def without_citations(text: str) -> str:
    """The text as its reader saw it: what a mark showed stays, what it pointed to goes."""
    if "\ue200" in text:
        text = _PRIVATE.sub("", _MARK.sub(_shown, text))
    if "cite" in text:
        text = _BARE.sub("", text)
    if "†" in text:
        text = _BRACKETED.sub("", text)
    if ":/" in text:
        text = _CAMPAIGN.sub(_joined, _FILE.sub("", _LINK.sub(r"\1", text)))
    return text


def _shown(match: re.Match[str]) -> str:
    """What the page shows for a mark: the title of a link, the name of a thing, nothing for a source."""
    kind, values = match[1], match[2].split("\ue202")[1:]
    if kind == "url" and values:
        return values[0]
    if kind == "entity" and values:
        try:
            entity = json.loads(values[0])
        except ValueError:
            return ""
        named = isinstance(entity, list) and len(entity) > 1 and isinstance(entity[1], str)
        return str(entity[1]) if named else ""
    return ""


def _joined(match: re.Match[str]) -> str:
    return match[1] if match[2] else ""
