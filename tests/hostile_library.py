"""A library that would like to steer the terminal of whoever looks at it."""

from __future__ import annotations

from pathlib import Path

from infinimem.memory import open_memory
from infinimem.model import Move, NewEntry, Plan, Turn
from infinimem.store.view import Applied

MARKUP = "[red]markup[/red] [link=https://evil.example]link[/link] :bomb:"
"""What rich would interpret."""
COMMANDS = (
    "\x1b[38;5;201m",  # a colour
    "\x1b[5;7H",  # moves the cursor
    "\x1b]0;owned\x07",  # the window's title
    "\x1b]8;;https://evil.example\x1b\\",  # a link
    "\x1b]52;c;ZXZpbA==\x07",  # into the clipboard
    "\x1bP$q\x1b\\",
    "\x9b31m",
    "\x9d0;owned\x9c",
    "\x08\x0b\x0c\x0e\x7f\x85",
)
HIDDEN = "\u202eevil\u202c \u2066live\u2069 a\u200eb\u200fc\u061cd e\u200bf\xadg\ufeffh \U000e0065"
POISON = f"{''.join(COMMANDS)} {HIDDEN} {MARKUP}"
END = " \x00 \u2028 end"
"""Of a line of a file."""
FILE = POISON + END
NAME = f"[red]n $(touch pwned) {''.join(COMMANDS[:3])}\u202e"
"""Of a file or folder."""

LISBON, PORTO = 3, 4
"""Seqs of two lines: the second superseded the first."""


def hostile_library(root: Path, strategy: str | None = None, poison: str = POISON) -> Path:
    """Turns, entries, headings, names, receipts and notes that hold poison."""
    memory = open_memory(root, model="offline", create=True, strategy=strategy)
    about = {"speaker": f"Nora {poison}", "session": f"s {poison}"}
    turns = [
        Turn(f"{text} {poison}", time=time, turn=f"{time} {poison}", **about)
        for text, time in (("I live in Lisbon", "2025-03-03"), ("I moved to Porto", "2025-06-01"))
    ]
    if strategy:
        memory.observe(turns)
        memory.consolidate()
    else:
        told = memory.library.record(turns)
        memory.library.apply(Plan(adds=tuple(NewEntry(place.text, (place.seq,)) for place in told)))
        moves = [Move(seq, "topics/home", f"Home {poison}") for seq in (LISBON, PORTO)]
        gone = Move(LISBON, "topics/home", "", "superseded", PORTO)
        for plan in (Plan("consolidate", moves=tuple(moves)), Plan("consolidate", moves=(gone,))):
            assert isinstance(memory.library.apply(plan), Applied)
    (root / "notes [red]").mkdir()
    note = root / "notes [red]" / "[bold]Lisbon $(touch pwned).md"
    text = poison + END
    note.write_text(f"---\nsummary: Lisbon {text}\n---\n# Lisbon {text}\n\n- Lisbon \r {text}\n", newline="")
    (root / f"{NAME}.md").write_text("- Lisbon\n")
    return root
