"""The folders that FORMAT.md names, and which names of files every system takes."""

from __future__ import annotations

import re

from infinimem.markdown.characters import normalize
from infinimem.model import INBOX as INBOX
from infinimem.spec import MEMORIES as MEMORIES

TOPICS, ARCHIVE = "topics/", "archive/"
EVIDENCE, JOURNAL = "evidence/", "journal/"

WAITING, REFUSED_TURNS = f"{EVIDENCE}inbox/", f"{EVIDENCE}inbox/refused/"
"""The folders of turns that await approval, and, below it, of those that a person refused."""
HIDDEN = (WAITING, f"{ARCHIVE}inbox/")
"""Folders that no model is shown."""
REFUSED = f"{HIDDEN[1]}refused"
"""The document of refused entries."""

REIMPORTED = "reimported"
"""Why a line is archived that was drawn from what a note no longer holds."""
STANDING = f"{TOPICS}instructions-and-preferences"
"""The document of what the user asked for once and for all, whose sections are these two."""
INSTRUCTIONS, PREFERENCES = "Instructions", "Preferences"

FORGETTING = ".infinimem/forgetting"
"""Is there while a `forget` is to be finished, by whoever opens the library; says nothing."""

LONGEST_PATH = 240
"""Characters of a path in a library; Windows by itself takes 260, with the folders before it."""

_DEVICE = re.compile(r"(?:con|prn|aux|nul|(?:com|lpt)[0-9¹²³]|conin\$|conout\$)\Z", re.IGNORECASE)
"""Source: Microsoft, "Naming Files, Paths, and Namespaces". An ending does not help: "con.md" is one too."""
_WINDOWS = re.compile(r'[<>:"\\|?*\x00-\x1f]')
_LINK = re.compile(r"[#^\[\]|]")
"""What a `[[link]]` gives another meaning, so that none can lead to the document."""


def slug(text: str) -> str:
    """Return its letters a-z and digits, with a hyphen for each gap; "" for none ("Dr. Vű": "dr-vu")."""
    plain = normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")


def is_device(name: str) -> bool:
    """Return whether Windows takes a name for a device, whatever comes after its first full stop."""
    return _DEVICE.match(name.partition(".")[0].rstrip(" ")) is not None


def unlawful(doc_id: str) -> str:
    """Return why some system or an Obsidian link cannot hold a document of this id; "" if all can."""
    if len(doc_id) > LONGEST_PATH:
        return f"its path is longer than {LONGEST_PATH} characters, which Windows may refuse"
    *folders, stem = doc_id.split("/")
    if any(name.endswith((" ", ".")) for name in folders):
        return "Windows drops a blank or full stop at the end of a folder's name"
    for name in (*folders, stem):
        if is_device(name):
            return f"Windows takes {name} for a device"
        if match := _WINDOWS.search(name):
            return f"Windows takes no {match[0]!r} in a name"
        if match := _LINK.search(name):
            return f"no [[link]] leads to a name with {match[0]!r}"
    return ""
