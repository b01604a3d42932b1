"""Every command: what it does in a line, and calls to copy.

Help of all commands together is printed from here alone, without importing any of them.
"""

from __future__ import annotations

from collections.abc import Mapping


class Listed:
    """A command as the help lists it.

    Args:
        summary: one line.
        examples: what to type after `infinimem`; each works in a copy of the sample library.
    """

    def __init__(self, summary: str, *examples: str) -> None:
        self.summary, self.examples = summary, examples


FIRST_STEPS = ("demo", "add I moved to Lisbon in March", "ask where do I live", "search Lisbon")

SECTIONS: Mapping[str, Mapping[str, Listed]] = {
    "Remember": {
        "init": Listed(
            "Make a folder a library: settings, folders, .gitignore.",
            "init ~/memory",
            "init ~/memory --strategy allmem",
        ),
        "add": Listed(
            "Record one message and extract what is worth keeping.",
            "add I moved to Lisbon last month",
            'add --speaker Ana --time 2025-03-03 "The ferry leaves at 9"',
        ),
        "import": Listed(
            "Import conversations or notes from a file or a folder.",
            "import conversations.json",
            "import ~/notes --record",
        ),
        "consolidate": Listed(
            "Move the buffer's entries into topics now, due or not.", "consolidate --dry-run", "consolidate"
        ),
        "rebuild": Listed(
            "Derive records, or headings and summaries, anew.",
            "rebuild --estimate",
            "rebuild --strategy allmem",
        ),
        "demo": Listed("Show a year of conversation in a temporary library.", "demo"),
    },
    "Ask": {
        "ask": Listed(
            "Answer a question and cite the lines the answer rests on.",
            "ask where does Nora live",
            "ask --as-of 2025-03-03 where does Nora live",
        ),
        "search": Listed(
            "Find the sections that answer a query best.",
            "search peanut allergy",
            "search rabies shot -k 3 --scope evidence",
        ),
        "grep": Listed(
            "Find lines that match a regular expression (RE2, any case).",
            "grep rabies",
            "grep 'cats?|vet' --doc topics/pepper -C 1",
        ),
        "ls": Listed("List the documents and their summaries.", "ls", "ls --scope evidence"),
        "read": Listed(
            "Print lines of a document, at most 100 at a time.",
            "read topics/home",
            "read topics/home 13:16",
            "read topics/home --raw",
        ),
        "retrieve": Listed(
            "Print ranked evidence for a question; calls no model.",
            "retrieve where does Nora live --budget 500",
        ),
        "compare": Listed(
            "Ask every strategy that keeps the library, side by side.", "compare where does Nora live"
        ),
        "graph": Listed(
            "List the units linked to a unit, archived ones too.",
            "graph --strategy allmem",
            "graph rabies shot --strategy allmem --hops 1",
        ),
    },
    "Look back": {
        "history": Listed("Trace a line from its source turn to where it is now.", "history 195"),
        "blame": Listed(
            "Show which receipt put each line there, and who said it.",
            "blame topics/home",
            "blame topics/home:14",
        ),
        "log": Listed("List the receipts, newest first.", "log -n 3"),
        "undo": Listed("Undo a receipt (the newest by default).", "undo", "undo 4 --together"),
        "review": Listed("List changes awaiting your approval.", "review", "review --approve p1"),
        "forget": Listed(
            "Remove lines and their sources for good.",
            "forget --match Northgate --dry-run",
            "forget --seq 197 --yes",
        ),
        "rename": Listed("Rename a document, in receipts too.", "rename topics/home-network Network"),
    },
    "Look after": {
        "status": Listed("Show what the library holds and what it awaits.", "status"),
        "doctor": Listed("Check that the library is sound.", "doctor", "doctor --fix"),
        "lint": Listed("Look for secrets, duplicates and doubtful times.", "lint"),
        "config": Listed("Show the settings in force, and where each comes from.", "config"),
        "trust": Listed("Trust a library and its settings.", "trust . --yes", "trust --list"),
        "watch": Listed("Report changes in the folder and sign what people type.", "watch"),
        "completion": Listed("Print the completion script of a shell.", "completion bash"),
    },
    "Serve and measure": {
        "web": Listed("Show the memory in a browser.", "web --open"),
        "mcp": Listed("Serve the library to MCP clients.", "mcp", "mcp --http 127.0.0.1:8765"),
        "fleet": Listed("Keep many libraries in an object store.", "fleet --help"),
        "hook": Listed("Recall or remember for a hook of Claude Code.", "hook SessionStart"),
        "recall": Listed(
            "Show what hooks would put before a model for PROMPT, and why.",
            "recall when is the rabies shot",
            "recall",
        ),
        "bench": Listed(
            "Compare methods of memory on a public data set.",
            "bench locomo --data locomo10.json --retrieval-only --estimate",
        ),
    },
}
COMMANDS: Mapping[str, Listed] = {
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
    "forget": "forgetting",
    "rename": "forgetting",
    "bench": "bench",
}
"""The module of each command, below this package."""

GONE = {"replay": "replay is gone; `infinimem log` and `infinimem history` say what a consolidation did"}
"""What to do instead of a command of an earlier version."""
