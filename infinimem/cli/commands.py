"""Every command: where it is, what it does in a line, and calls to copy.

Help of all commands together is printed from here alone, without importing any of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Listed(NamedTuple):
    """A command as the help lists it.

    Args:
        module: of this package, and behind a colon the attribute where it has another name than the command.
        summary: one line.
        examples: what to type after `infinimem`; each works in a copy of the sample library.
    """

    module: str
    summary: str
    examples: tuple[str, ...]


FIRST_STEPS = ("demo", "add I moved to Lisbon in March", "ask where do I live", "search Lisbon")

SECTIONS: Mapping[str, Mapping[str, Listed]] = {
    "Remember": {
        "init": Listed(
            "writing",
            "Make a folder a library: settings, folders, .gitignore.",
            ("init ~/memory", "init ~/memory --strategy allmem"),
        ),
        "add": Listed(
            "writing",
            "Record one message and extract what is worth keeping.",
            (
                "add I moved to Lisbon last month",
                'add --speaker Ana --time 2025-03-03 "The ferry leaves at 9"',
            ),
        ),
        "import": Listed(
            "writing:import_",
            "Import conversations or notes from a file or a folder.",
            ("import conversations.json", "import ~/notes --record"),
        ),
        "consolidate": Listed(
            "writing",
            "Move the buffer's entries into topics now, due or not.",
            ("consolidate --dry-run", "consolidate"),
        ),
        "rebuild": Listed(
            "writing",
            "Derive records, or headings and summaries, anew.",
            ("rebuild --estimate", "rebuild --strategy allmem"),
        ),
        "demo": Listed("demo", "Show a year of conversation in a temporary library.", ("demo",)),
    },
    "Ask": {
        "ask": Listed(
            "reading",
            "Answer a question and cite the lines the answer rests on.",
            ("ask where does Nora live", "ask --as-of 2025-03-03 where does Nora live"),
        ),
        "search": Listed(
            "lookup",
            "Find the sections that answer a query best.",
            ("search peanut allergy", "search rabies shot -k 3 --scope evidence"),
        ),
        "grep": Listed(
            "lookup",
            "Find lines that match a regular expression (RE2, any case).",
            ("grep rabies", "grep 'cats?|vet' --doc topics/pepper -C 1"),
        ),
        "ls": Listed("lookup", "List the documents and their summaries.", ("ls", "ls --scope evidence")),
        "read": Listed(
            "lookup",
            "Print lines of a document, at most 100 at a time.",
            ("read topics/home", "read topics/home 13:16", "read topics/home --raw"),
        ),
        "retrieve": Listed(
            "reading",
            "Print ranked evidence for a question; calls no model.",
            ("retrieve where does Nora live --budget 500",),
        ),
        "compare": Listed(
            "comparing",
            "Ask every strategy that keeps the library, side by side.",
            ("compare where does Nora live",),
        ),
        "graph": Listed(
            "topology",
            "List the units linked to a unit, archived ones too.",
            ("graph --strategy allmem", "graph rabies shot --strategy allmem --hops 1"),
        ),
    },
    "Look back": {
        "history": Listed(
            "history", "Trace a line from its source turn to where it is now.", ("history 195",)
        ),
        "blame": Listed(
            "history",
            "Show which receipt put each line there, and who said it.",
            ("blame topics/home", "blame topics/home:14"),
        ),
        "log": Listed("history", "List the receipts, newest first.", ("log -n 3",)),
        "undo": Listed("history", "Undo a receipt (the newest by default).", ("undo", "undo 4 --together")),
        "review": Listed("review", "List changes awaiting your approval.", ("review",)),
        "forget": Listed(
            "forgetting",
            "Remove lines and their sources for good.",
            ("forget --match Northgate --dry-run", "forget --seq 197 --yes"),
        ),
        "rename": Listed(
            "forgetting", "Rename a document, in receipts too.", ("rename topics/home-network Network",)
        ),
    },
    "Look after": {
        "status": Listed("care", "Show what the library holds and what it awaits.", ("status",)),
        "doctor": Listed("care", "Check that the library is sound.", ("doctor", "doctor --fix")),
        "lint": Listed("care", "Look for secrets, duplicates and doubtful times.", ("lint",)),
        "config": Listed("trusting", "Show the settings in force, and where each comes from.", ("config",)),
        "trust": Listed("trusting", "Trust a library and its settings.", ("trust . --yes", "trust --list")),
        "watch": Listed("watching", "Report changes in the folder and sign what people type.", ("watch",)),
        "completion": Listed("completion", "Print the completion script of a shell.", ("completion bash",)),
    },
    "Serve and measure": {
        "web": Listed("web", "Show the memory in a browser.", ("web --open",)),
        "mcp": Listed("mcp", "Serve the library to MCP clients.", ("mcp", "mcp --http 127.0.0.1:8765")),
        "fleet": Listed("fleet", "Keep many libraries in an object store.", ("fleet --help",)),
        "hook": Listed("hook", "Recall or remember for a hook of Claude Code.", ("hook SessionStart",)),
        "recall": Listed(
            "hook",
            "Show what hooks would put before a model for PROMPT, and why.",
            ("recall when is the rabies shot", "recall"),
        ),
        "bench": Listed(
            "bench",
            "Compare methods of memory on a public data set.",
            ("bench locomo --data locomo10.json --retrieval-only --estimate",),
        ),
    },
}

GONE = {
    "replay": "replay is gone; `infinimem log` and `infinimem history` say what a consolidation did",
    "consolidate --keep": "--keep is gone; `consolidate` makes what `--dry-run` showed, of the same replies",
    "bench --replay": "--replay is gone; a run's replies lie in its folder, and the same --out asks no more",
}
"""What to do instead of a command or an option of an earlier version."""

COMMANDS: Mapping[str, Listed] = {
    name: listed for section in SECTIONS.values() for name, listed in section.items()
}
