"""What a person typed comes in once and as theirs, and what they took back does not."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from cli_runner import Ran, Shell

SAID = re.compile(r"^- <seq=\d+,(?P<fields>[^>]*)> (?P<text>.*(?:\n  .*|\n(?=\n  ))*)", re.MULTILINE)
REFUSED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file "
    "edit, the new_string was NOT written to the file). To tell you how to proceed, the user said:\n"
)
ROOT = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    made = Shell(tmp_path, monkeypatch)
    made("init", ".")
    return made


def imported(shell: Shell, content: Any, name: str = "conversations.json") -> Ran:
    path = shell.home / name
    lines = name.endswith(".jsonl")
    path.write_text("".join(json.dumps(row) + "\n" for row in content) if lines else json.dumps(content))
    return shell("import", str(path), "--record")


def said(shell: Shell) -> list[tuple[str, str]]:
    """Source and text of all that was recorded."""
    texts = [path.read_text() for path in sorted((shell.library / "evidence").glob("*.md"))]
    lines = [match for text in texts for match in SAID.finditer(text)]
    return [
        ("user" if "source=user" in line["fields"] else "AI", line["text"].replace("\n  ", "\n"))
        for line in lines
    ]


def message(ident: str, parent: Any, text: str, minute: int, **more: Any) -> dict[str, Any]:
    """A message of a Claude export; ids of what the assistant said begin with "a"."""
    return {
        "uuid": ident,
        "sender": "assistant" if ident.startswith("a") else "human",
        "content": [{"type": "text", "text": text}] if text else [],
        "text": text,
        "created_at": f"2025-06-01T10:{minute:02d}:00.0Z",
        "parent_message_uuid": parent,
        **more,
    }


def conversation(*messages: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    return [{"uuid": "c-1", "name": "Boats", "chat_messages": list(messages), **more}]


def edited(root: Any) -> tuple[dict[str, Any], ...]:
    return (
        message("h1", root, "We sail on Friday.", 1),
        message("a1", "h1", "Friday then.", 2),
        message("h2", "a1", "Bring the red rope.", 3),
        message("a2", "h2", "A red rope.", 4),
        message("h1b", root, "We sail on Sunday.", 5),
        message("a1b", "h1b", "Sunday then.", 6),
    )


@pytest.mark.parametrize("root", [ROOT, None])
def test_of_edited_prompts_the_newest_branch_comes_in(shell: Shell, root: Any) -> None:
    """Without a mark the branch of the newest message is open; the others are counted."""
    done = imported(shell, conversation(*edited(root)))
    assert said(shell) == [("user", "We sail on Sunday."), ("AI", "Sunday then.")]
    assert "skipped: 4 messages of branches that were edited away" in done.err


def test_the_branch_that_was_open_comes_in(shell: Shell) -> None:
    """The leaf that an export names decides, whatever is newer; so for an answer that was asked for anew."""
    again = message("a2b", "h2", "Any rope will do.", 9)
    done = imported(shell, conversation(*edited(ROOT), again, current_leaf_message_uuid="a2"))
    assert [text for _, text in said(shell)] == [
        "We sail on Friday.", "Friday then.", "Bring the red rope.", "A red rope.",
    ]  # fmt: skip
    assert "skipped: 3 messages of branches" in done.err


@pytest.mark.parametrize("parents", [(None, None, None), (ROOT, "gone", "a1"), (ROOT, ROOT, ROOT)])
def test_a_conversation_without_branches_is_whole(shell: Shell, parents: tuple[Any, ...]) -> None:
    """Parents that are missing or not in the export cost no message."""
    idents = zip(("h1", "a1", "h2"), parents, strict=True)
    rows = [message(ident, parent, f"Words {at}.", at) for at, (ident, parent) in enumerate(idents)]
    done = imported(shell, conversation(*rows))
    assert [text for _, text in said(shell)] == ["Words 0.", "Words 1.", "Words 2."]
    assert "branches" not in done.err


def test_other_chats_with_parents_have_an_open_branch_too(shell: Shell) -> None:
    """Messages of a general chat that name their parents come in as the branch of the newest one."""
    rows = [
        {"messageId": "1", "parentMessageId": ROOT, "sender": "User", "text": "The tent is green."},
        {"messageId": "2", "parentMessageId": "1", "sender": "GPT", "text": "Green tent."},
        {"messageId": "3", "parentMessageId": ROOT, "sender": "User", "text": "The tent is grey."},
        {"messageId": "4", "parentMessageId": "3", "sender": "GPT", "text": "Grey tent."},
    ]
    done = imported(shell, {"conversationId": "x", "title": "Tents", "messages": rows}, "chat.json")
    assert [text for _, text in said(shell)] == ["The tent is grey.", "Grey tent."]
    assert "skipped: 2 messages of branches" in done.err


@pytest.mark.parametrize("beside", ["", "Please sum this up:"])
def test_a_long_paste_is_recorded_with_its_message(shell: Shell, beside: str) -> None:
    """A paste that became an attachment is part of what was said; files without text are counted."""
    attachments = [
        {"file_name": "paste.txt", "extracted_content": "Water meter 7718, read in May."},
        {"file_name": "scan.pdf", "extracted_content": ""},
    ]
    done = imported(shell, conversation(message("h1", ROOT, beside, 1, attachments=attachments)))
    assert said(shell) == [("user", f"{beside}\n\nWater meter 7718, read in May.".strip())]
    assert "skipped: 1 attached files" in done.err


# ── session logs ────────────────────────────────────────────────────────────────────────────────


def line(ident: str, parent: str | None, kind: str, content: Any, **more: Any) -> dict[str, Any]:
    """A line of Claude Code's log."""
    return {
        "type": kind,
        "uuid": ident,
        "parentUuid": parent,
        "sessionId": "s-1",
        "timestamp": "2026-05-01T09:00:00.000Z",
        "message": {"role": kind, "content": content},
        **more,
    }


def queue(operation: str, **more: Any) -> dict[str, Any]:
    return {"type": "queue-operation", "operation": operation, "sessionId": "s-1", **more}


def queued(ident: str, prompt: Any, **more: Any) -> dict[str, Any]:
    attachment = {"type": "queued_command", "prompt": prompt, "commandMode": "prompt", **more}
    return {**line(ident, "1", "attachment", ""), "attachment": attachment}


def result(ident: str, text: Any, error: bool = True, **more: Any) -> dict[str, Any]:
    part = {"type": "tool_result", "tool_use_id": "t-1", "content": text, "is_error": error}
    return line(ident, "1", "user", [part], **more)


FIRST = line("1", None, "user", "Paint the fence.")


@pytest.mark.parametrize(
    "rows",
    [
        [queue("enqueue", content="Use green."), queue("remove"), queued("2", "Use green.")],
        [queued("2", [{"type": "text", "text": "Use green."}], origin={"kind": "human"})],
        [queue("enqueue", content="Use green."), queue("dequeue"), line("2", "1", "user", "Use green.")],
        [
            queue("enqueue", content="Use green."),
            queue("remove", reason="absorbed_mid_turn", content="Use green."),
        ],
    ],
    ids=["in the midst", "with parts", "as a message", "without a record of its own"],
)
def test_a_prompt_that_waited_comes_in_once(shell: Shell, rows: list[Any]) -> None:
    """What was typed while the assistant worked is the person's, whichever way it was sent."""
    imported(shell, [FIRST, *rows, line("9", "1", "assistant", "Done.")], "log.jsonl")
    assert said(shell) == [("user", "Paint the fence."), ("user", "Use green."), ("AI", "Done.")]


def test_a_prompt_that_was_taken_back_and_one_of_the_program_stay_out(shell: Shell) -> None:
    """A prompt that went back to be edited was not said, nor was what a program put into the queue."""
    rows = [
        queue("enqueue", content="Use blue."),
        queue("popAll"),
        queued("2", "Job 7 ended", commandMode="task-notification"),
        queued("3", "from another agent", origin={"kind": "peer"}),
    ]
    imported(shell, [FIRST, *rows], "log.jsonl")
    assert said(shell) == [("user", "Paint the fence.")]


@pytest.mark.parametrize("after", ["", "\n\nNote: The user's next message may contain a correction."])
def test_the_words_of_a_refusal_are_the_person_s(shell: Shell, after: str) -> None:
    """Words by which a tool was refused come in without what the program puts around them."""
    text = f"{REFUSED}Not the gate.\nIt is new.{after}"
    imported(shell, [FIRST, result("2", text), result("3", [{"type": "text", "text": text}])], "log.jsonl")
    assert said(shell)[1:] == [("user", "Not the gate.\nIt is new.")] * 2


@pytest.mark.parametrize("error", [True, False])
def test_what_a_tool_prints_is_nobody_s(shell: Shell, error: bool) -> None:
    """The words of a refusal within the output of a tool, or in output that is no error, are no one's."""
    text = f"1  {REFUSED}Sell the house." if error else f"{REFUSED}Sell the house."
    forged = {"answers": {"Sell?": "Sell the house."}}
    done = imported(
        shell, [FIRST, result("2", text, error), result("3", "x", toolUseResult=forged)], "log.jsonl"
    )
    assert said(shell) == [("user", "Paint the fence.")]
    assert "skipped: 2 tool calls and results" in done.err


def test_answers_to_questions_come_in(shell: Shell) -> None:
    """What a person answers to a question of the assistant comes in with the question."""
    call = {"type": "tool_use", "id": "t-1", "name": "AskUserQuestion", "input": {}}
    answers = {"answers": {"Which colour?": "Moss green"}}
    rows = [FIRST, line("2", "1", "assistant", [call]), result("3", "answered", False, toolUseResult=answers)]
    imported(shell, rows, "log.jsonl")
    assert said(shell)[1:] == [("user", "Which colour? Moss green")]


def test_what_was_typed_to_be_remembered_comes_in(shell: Shell) -> None:
    """Words that a person had the program note are theirs, without its marks."""
    noted = line("2", "1", "user", "<user-memory-input>always oil the hinges</user-memory-input>")
    imported(shell, [FIRST, noted], "log.jsonl")
    assert said(shell)[1:] == [("user", "always oil the hinges")]


def test_an_edited_prompt_of_a_log_goes_with_its_answer(shell: Shell) -> None:
    """Of prompts that answer the same message the last one stands; results of tools side by side all do."""
    rows = [
        line("a1", "1", "assistant", "Which?"),
        line("2", "a1", "user", "The north fence."),
        line("a2", "2", "assistant", "North it is."),
        line("3", "a1", "user", "The south fence."),
        line("a3", "3", "assistant", "South it is."),
    ]
    done = imported(shell, [FIRST, *rows], "log.jsonl")
    assert [text for _, text in said(shell)] == [
        "Paint the fence.", "Which?", "The south fence.", "South it is.",
    ]  # fmt: skip
    assert "skipped: 2 messages of branches that were edited away" in done.err


def test_prompts_that_were_rolled_back_stay_out(shell: Shell) -> None:
    """Codex: what the person took back goes with what was answered to it."""

    def spoken(role: str, text: str) -> dict[str, Any]:
        kind = "output_text" if role == "assistant" else "input_text"
        payload = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
        return {"type": "response_item", "timestamp": "2026-05-01T09:00:00Z", "payload": payload}

    rows = [
        {"type": "session_meta", "payload": {"id": "s-2", "source": "cli"}},
        *(spoken("user", "Sand it."), spoken("assistant", "Sanded.")),
        *(spoken("user", "Use lead paint."), spoken("assistant", "Hm.")),
        {"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 1}},
        spoken("user", "Use linseed oil."),
    ]
    done = imported(shell, rows, "rollout.jsonl")
    assert [text for _, text in said(shell)] == ["Sand it.", "Sanded.", "Use linseed oil."]
    assert "skipped: 2 messages of branches" in done.err
