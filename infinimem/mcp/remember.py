"""remember: writes down what a client says, and draws from it what is worth keeping. It only ever adds.

What is said is on disk before a model is asked. Of calls side by side the first draws from all that waits,
the others find it done.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Literal

from infinimem.errors import ModelUnavailable
from infinimem.memory import Memory
from infinimem.model import NOTHING, Turn
from infinimem.store.state.lists import unanswered_message
from infinimem.tools.tool import Result, Rule, Tool, shown


def rows(result: Result) -> Iterator[str]:
    """What was recorded, then each entry."""
    yield f"recorded as {result['seq']}, source {result['source']}" if result["recorded"] else "known before"
    for entry in result["entries"]:
        yield f"{entry['seq']} {entry['text']}"


def tool(memory: Memory, trust_user: bool = False) -> Tool:
    """The tool, bound to a library and its model.

    Args:
        memory: where it is written.
        trust_user: let the caller say that a text is the user's; else all of it counts as an AI's.
    """

    def remember(
        text: Annotated[str, Rule(longest=50_000)],
        session: str | None = None,
        speaker: Annotated[str, Rule(longest=200)] | None = None,
        time: Annotated[str, Rule(longest=40)] | None = None,
        key: Annotated[str, Rule(longest=500)] | None = None,
        role: Literal["assistant", "user"] = "assistant",
    ) -> Result:
        """Write something down for later conversations. Nothing is overwritten: a correction is remembered
        anew. Gives the number it was recorded under and the entries drawn from it.

        Args:
            text: one fact or a short passage, with names instead of pronouns
            session: name of the conversation
            speaker: name of who said it
            time: when it was said, ISO 8601
            key: the same key is recorded once
            role: user: these are the user's own words; assistant: yours, or a summary
        """
        given = {"speaker": speaker, "time": time, "session": session, "key": key}
        about = {name: value for name, value in given.items() if value and value.strip() not in NOTHING}
        places = memory.record([Turn(text, role, **about)])
        notes = []
        try:
            if failed := memory.observe(()).unanswered:
                notes.append(unanswered_message(failed))
        except ModelUnavailable as error:
            notes.append(str(error))
        seq = places[0].entry.seq if places else None
        drawn = [place.entry for place in memory.view.entries() if seq in place.entry.origin] if seq else []
        result: Result = {
            "recorded": seq is not None,
            "seq": seq,
            "source": places[0].entry.source if places else None,
            "entries": [{"seq": entry.seq, "text": shown(entry.text)} for entry in drawn],
        }
        return {**result, "notes": notes} if notes else result

    made = Tool.of(remember, rows)
    if not trust_user:  # then nobody can tell a person's words from a model's
        properties = {name: rule for name, rule in made.parameters["properties"].items() if name != "role"}
        made = replace(made, parameters={**made.parameters, "properties": properties})
    return made
