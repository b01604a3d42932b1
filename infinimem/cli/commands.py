"""Every command: what it does in a line, and calls to copy.

Help of all commands together is printed from here alone, without importing any of them.
"""

from __future__ import annotations

from collections.abc import Mapping


class HelpEntry:
    """A command as the help lists it; an example is what to type after `infinimem` in the sample library."""

    def __init__(self, summary: str, *examples: str) -> None:
        self.summary, self.examples = summary, examples


FIRST_STEPS = ("demo", "add I moved to Lisbon in March", "ask where do I live", "search Lisbon")

SECTIONS: Mapping[str, Mapping[str, HelpEntry]] = {
    "Remember": {
        "init": HelpEntry(
            "Make a folder a library: settings, folders, .gitignore.",
            "init ~/memory",
            "init ~/memory --strategy allmem",
        ),
        "add": HelpEntry(
            "Record one message and extract what is worth keeping.",
            "add I moved to Lisbon last month",
            'add --speaker Ana --time 2025-03-03 "The ferry leaves at 9"',
        ),
        "import": HelpEntry(
            "Import conversations or notes from a file or a folder.",
            "import conversations.json",
            "import ~/notes --record",
        ),
        "consolidate": HelpEntry(
            "Move the buffer's entries into topics now, due or not.", "consolidate --dry-run", "consolidate"
        ),
        "rebuild": HelpEntry(
            "Derive records, or headings and summaries, anew.",
            "rebuild --estimate",
            "rebuild --strategy allmem",
        ),
        "demo": HelpEntry("Show a year of conversation in a temporary library.", "demo"),
    },
    "Ask": {
        "ask": HelpEntry(
            "Answer a question and cite the lines the answer rests on.",
            "ask where does Nora live",
            "ask --as-of 2025-03-03 where does Nora live",
        ),
        "search": HelpEntry(
            "Find the sections that answer a query best.",
            "search peanut allergy",
            "search rabies shot -k 3 --scope evidence",
        ),
        "grep": HelpEntry(
            "Find lines that match a regular expression (RE2, any case).",
            "grep rabies",
            "grep 'cats?|vet' --doc topics/pepper -C 1",
        ),
        "ls": HelpEntry("List the documents and their summaries.", "ls", "ls --scope evidence"),
        "read": HelpEntry(
            "Print lines of a document, at most 100 at a time.",
            "read topics/home",
            "read topics/home 13:16",
            "read topics/home --raw",
        ),
        "retrieve": HelpEntry(
            "Print ranked evidence for a question; calls no model.",
            "retrieve where does Nora live --budget 500",
        ),
        "compare": HelpEntry(
            "Ask every strategy that keeps the library, side by side.", "compare where does Nora live"
        ),
        "graph": HelpEntry(
            "List the units linked to a unit, archived ones too.",
            "graph --strategy allmem",
            "graph rabies shot --strategy allmem --hops 1",
        ),
    },
    "Look back": {
        "history": HelpEntry("Trace a line from its source turn to where it is now.", "history 195"),
        "blame": HelpEntry(
            "Show which receipt put each line there, and who said it.",
            "blame topics/home",
            "blame topics/home:14",
        ),
        "log": HelpEntry("List the receipts, newest first.", "log -n 3"),
        "undo": HelpEntry("Undo a receipt (the newest by default).", "undo", "undo 4 --together"),
        "review": HelpEntry("List changes awaiting your approval.", "review"),
        "forget": HelpEntry(
            "Remove lines and their sources for good.",
            "forget --match Northgate --dry-run",
            "forget --seq 197 --yes",
        ),
        "rename": HelpEntry("Rename a document, in receipts too.", "rename topics/home-network Network"),
    },
    "Look after": {
        "status": HelpEntry("Show what the library holds and what it awaits.", "status"),
        "doctor": HelpEntry("Check that the library is sound.", "doctor", "doctor --fix"),
        "lint": HelpEntry("Look for secrets, duplicates and doubtful times.", "lint"),
        "config": HelpEntry("Show the settings in force, and where each comes from.", "config"),
        "trust": HelpEntry("Trust a library and its settings.", "trust . --yes", "trust --list"),
        "watch": HelpEntry("Report changes in the folder and sign what people type.", "watch"),
        "completion": HelpEntry("Print the completion script of a shell.", "completion bash"),
    },
    "Serve and measure": {
        "web": HelpEntry("Show the memory in a browser.", "web --open"),
        "mcp": HelpEntry("Serve the library to MCP clients.", "mcp", "mcp --http 127.0.0.1:8765"),
        "fleet": HelpEntry("Keep many libraries in an object store.", "fleet --help"),
        "hook": HelpEntry("Recall or remember for a hook of Claude Code.", "hook SessionStart"),
        "recall": HelpEntry(
            "Show what hooks would put before a model for PROMPT, and why.",
            "recall when is the rabies shot",
            "recall",
        ),
        "bench": HelpEntry(
            "Compare methods of memory on a public data set.",
            "bench locomo --data locomo10.json --retrieval-only --estimate",
        ),
    },
}
COMMANDS: Mapping[str, HelpEntry] = {
    name: listed for section in SECTIONS.values() for name, listed in section.items()
}

_MODULES = {
    "Remember": "writing",
    "Ask": "reading",
    "Look back": "history",
    "Look after": "care",
    "Serve and measure": "serving",
}
MODULES = {name: _MODULES[title] for title, section in SECTIONS.items() for name in section} | {
    "demo": "demo",
    "bench": "bench",
}
"""The module of each command, below this package."""

GONE = {
    "replay": "replay is gone; `infinimem log` and `infinimem history` say what a consolidation did",
    "consolidate --keep": "--keep is gone; `consolidate` makes what `--dry-run` showed, of the same replies",
    "bench --replay": "--replay is gone; a run's replies lie in its folder, and the same --out asks no more",
}
"""What to do instead of a command or an option of an earlier version."""
