"""hook: what a hook of Claude Code runs, and recall: what it would show.

A hook that is called plainly does not come here (cli/__init__.py).
"""

from __future__ import annotations

from pathlib import Path

import click

from infinimem.cli.hooked import library_of, run
from infinimem.cli.options import OFFLINE, Command, Options, pass_options, words
from infinimem.results import recall_json


@click.command(cls=Command, context_settings={"ignore_unknown_options": True})
@click.argument("event", required=False, default="")
@click.argument("rest", nargs=-1, type=click.UNPROCESSED)
@pass_options
def hook(options: Options, event: str, rest: tuple[str, ...]) -> None:
    """Reads the hook's JSON from standard input.

    SessionStart and UserPromptSubmit print the memory closest to the folder or the prompt, if it is found at
    once. PreCompact and SessionEnd remember the session in the background. Always exits 0.
    """
    run(event, options.library, options.out.say)


@click.command(cls=Command)
@words("prompt", required=False)
@click.option("--cwd", metavar="DIR", default=".", help="The folder that the session is in.")
@pass_options
def recall(options: Options, prompt: str | None, cwd: str) -> None:
    """Each line that came near has its score, the words that counted, and why it is left out. Without PROMPT:
    what the start of a session is shown.
    """
    from infinimem.hooks.answer import Event
    from infinimem.hooks.recall import Recall, said
    from infinimem.memory import open_memory

    folder = Path(cwd).expanduser().resolve()
    recalled = Recall(open_memory(library_of(options.library, folder, options.out.say).path, model=OFFLINE))
    if prompt is None:
        text = recalled.text(Event("SessionStart", cwd=str(folder)))
        hits = [hit for part in recalled.opening(str(folder)) for hit in part]
    else:
        text = recalled.text(Event("UserPromptSubmit", cwd=str(folder), prompt=prompt))
        hits = recalled.near(said(prompt), str(folder))

    def show() -> None:
        rows = [
            (f"{hit.score:.2f}", ", ".join(hit.words), hit.why or "shown", hit.where, hit.text)
            for hit in hits
        ]
        if rows:
            options.out.table(("score", "words", "why", "where", "line"), rows)
        options.out.line(text or "nothing is injected")

    options.out.result(recall_json(text, hits), show)
