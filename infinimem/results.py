"""Results as every face gives them: as JSON objects, whose keys docs/CLI.md names, and in short words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from infinimem.errors import LibraryError
from infinimem.markdown.signature import format_seqs
from infinimem.model import CURRENT, Answer, Receipt

if TYPE_CHECKING:
    from infinimem.llm.agent import AgentTask
    from infinimem.operations.forget.forget import Forgotten
    from infinimem.operations.history import Event
    from infinimem.terms import Analyzer

_WORD = re.compile(r"\w+(?:['’]\w+)*")
_NAMES_A_LINE = re.compile(r" (by|of|as|from|\d).*")


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def place(item: Any) -> str:
    """Return "topics/food:12-14" of anything with a document and lines."""
    lines = f"{item.start_line}" if item.start_line == item.end_line else f"{item.start_line}-{item.end_line}"
    return f"{item.doc_id}:{lines}"


def demand(result: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a tool; raise LibraryError if it is an error."""
    if "error" in result:
        raise LibraryError(str(result["error"]))
    return result


def without_blanks(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if value not in ("", ())}


def receipt_json(receipt: Receipt | None) -> dict[str, Any] | None:
    return None if receipt is None else {"id": receipt.id, **asdict(receipt)}


def answer_json(answer: Answer) -> dict[str, Any]:
    fields = asdict(answer)
    return {"answer": fields.pop("text"), **fields}


def history_json(events: Iterable[Event]) -> dict[str, Any]:
    return {"rows": [without_blanks(asdict(event)) for event in events]}


def log_json(receipts: Iterable[Receipt]) -> dict[str, Any]:
    rows = []
    for receipt in receipts:
        row = {key: getattr(receipt, key) for key in ("id", "time", "op", "strategy", "model")}
        row |= {"lines": len(receipt.rows), "reasons": reasons(receipt)}
        rows.append({**row, "files": [name for name, *_ in receipt.files], "notes": list(receipt.notes)})
    return {"rows": rows}


def forgotten_json(done: Forgotten, *, planned: bool = False) -> dict[str, Any]:
    left = [asdict(item) for item in done.left]
    about = {"left": left, "history": done.history, "records": list(done.records)}
    if planned:
        rows = [asdict(row) for row in done.rows]
        return {"receipt": None, "rows": rows, "files": list(done.files), **about}
    receipt, seqs = done.receipt.id if done.receipt else None, [{"seq": seq} for seq in done.seqs]
    return {"receipt": receipt, "rows": seqs, **about, "repeated": list(done.repeated)}


def asked_for(text: str, terms: frozenset[str], words: Analyzer) -> Iterator[tuple[int, int]]:
    """Yield where the words of a text stand that have one of these index terms, in any form."""
    for word in _WORD.finditer(text):
        if terms.intersection(words.tokens(word[0])):
            yield word.span()


def diff(changes: Mapping[str, tuple[bytes, bytes]]) -> str:
    """Return a unified diff of documents, bytes before and after by id; what left the buffer comes last."""
    import difflib

    parts: list[str] = []
    for doc_id, (before, after) in sorted(changes.items(), key=lambda item: (item[0] == CURRENT, item[0])):
        old, new = (data.decode("utf-8", "backslashreplace").split("\n") for data in (before, after))
        name = f"{doc_id}.md"
        parts += difflib.unified_diff(old, new, name if before else "/dev/null", name, lineterm="", n=1)
    return "\n".join(parts)


def reasons(receipt: Receipt) -> dict[str, int]:
    counts = Counter(_NAMES_A_LINE.sub("", row.why) or row.why for row in receipt.rows)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def summary(receipt: Receipt) -> str:
    """Return a receipt in half a line: "30 moved, 8 superseded; 20 files"."""
    lines = ", ".join(f"{times} {why}" for why, times in reasons(receipt).items())
    files = counted(len(receipt.files), "file")
    return f"{lines or 'no lines'}; {files}" + "".join(f"; {note}" for note in receipt.notes[:1])


def event_words(event: Event) -> str:
    match event.event:
        case "said":
            session = event.session and f"session {event.session}"
            about = filter(None, [event.where, session, event.turn and f"turn {event.turn}"])
            return f"{event.speaker or event.source} said, in {', '.join(about)}"
        case "drawn":
            into = f" into {event.where}" if event.where else ""
            return f"drawn from {format_seqs(event.origin)}{into}" + (f", {event.why}" if event.why else "")
        case "typed":
            by_hand = event.source == "human"
            who = "typed by a person" if by_hand else f"from {event.source}, of unknown origin"
            return f"{who}, in {event.where}" if event.where else who
        case "receipt":
            return f"{event.receipt}: {event.why}, {_way(event)}{', before:' if event.text else ''}"
        case "held":
            return f"is held by {event.where}{', archived' if event.why else ''}"
        case "heir":
            return f"{event.why}, in {event.where}" if event.where else f"{event.why}, and is gone"
        case "now" if event.where:
            under = f", under {event.now}" if event.now and not event.why else ""
            return f"is in {event.where}{under}{': ' if event.why else ''}{event.why}"
        case _:
            return f"is gone: {event.why}"


def _way(event: Event) -> str:
    if event.was == event.now:
        return f"in {event.now}"
    if event.was in ("", "-"):
        return f"to {event.now}"
    return f"from {event.was}" if event.now in ("", "-") else f"{event.was} → {event.now}"


def tasks_json(task: AgentTask) -> dict[str, Any]:
    told = {"number": task.number, "kind": task.name, "parts": len(task.open), "tokens": task.tokens}
    return {**told, "claimed": task.claimed or None}


def tasks_left(tasks: Collection[AgentTask]) -> str:
    if not tasks:
        return "nothing to do: no task awaits a reply"
    size = sum(task.tokens for task in tasks)
    awaits = "awaits" if len(tasks) == 1 else "await"
    return f"{counted(len(tasks), 'task')} {awaits} the agent, about {size} tokens: infinimem tasks next"


def tasks_claimed(tasks: Sequence[AgentTask]) -> str:
    """Say that others have what is left, if anything is."""
    rows = ", ".join(f"{task.number} until {task.claimed[11:19]}" for task in tasks)
    return f"others have what is left: {rows}; a number prints it all the same" if tasks else tasks_left(())
