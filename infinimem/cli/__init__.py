"""The command line: a face over the facade."""

from __future__ import annotations

import sys


def main() -> None:
    """The entry point `infinimem`. A hook that is called plainly does without what other commands import."""
    if len(sys.argv) == 3 and sys.argv[1] == "hook" and not sys.argv[2].startswith("-"):
        from infinimem.cli.locate import run

        run(sys.argv[2])
        sys.exit(0)
    from infinimem.cli.app import main as run_command

    run_command()
