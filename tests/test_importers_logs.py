"""Session logs of coding agents: what was typed and answered comes in, all that the program adds does not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from cases import each
from exports import altered

from infinimem.errors import ImportFormatError
from infinimem.importers import read_turns
from infinimem.importers.fields import BEGIN, END, without_recalled
from infinimem.store.evidence import check_turn

SESSION = "11111111-aaaa"


def said(number: int, kind: str, content: Any, **more: Any) -> dict[str, Any]:
    """A line of Claude Code's log."""
    return {
        "parentUuid": None,
        "isSidechain": False,
        "sessionId": SESSION,
        "cwd": "/w",
        "version": "2.1.0",
        "type": kind,
        "message": {"role": kind, "content": content},
        "uuid": f"u-{number}",
        "timestamp": f"2026-03-01T10:00:{number:02d}.123Z",
        **more,
    }


CLAUDE_CODE: list[Any] = [
    {"type": "summary", "summary": "Bread", "leafUuid": "x"},
    {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}},
    said(1, "user", "Caveat: what follows is local", isMeta=True),
    said(2, "user", "<command-name>/clear</command-name>"),
    said(3, "user", "My oven is a Gaggen.\n<system-reminder>\nbe brief\n</system-reminder>\n"),
    said(4, "assistant", [{"type": "thinking", "thinking": "hm", "signature": "s"}]),
    said(
        5, "assistant", [{"type": "text", "text": "Noted."}, {"type": "tool_use", "id": "t", "name": "Read"}]
    ),
    said(6, "user", [{"type": "tool_result", "tool_use_id": "t", "content": "file"}], toolUseResult={}),
    said(7, "assistant", [{"type": "text", "text": "sub"}], isSidechain=True),
    said(8, "user", "This session is continued from …", isCompactSummary=True),
    said(9, "assistant", [{"type": "text", "text": "No response requested."}], isApiErrorMessage=True),
    said(10, "user", "[Request interrupted by user]"),
    {**said(11, "system", "hook"), "subtype": "informational", "content": "hook ran"},
    said(12, "user", [{"type": "text", "text": "and this?"}, {"type": "image", "source": {}}]),
    {"type": "attachment", "attachment": {"type": "hook_additional_context"}, "sessionId": SESSION},
]


def envelope(second: int, kind: str, **payload: Any) -> dict[str, Any]:
    """A line of Codex's log."""
    return {"timestamp": f"2026-04-02T09:00:{second:02d}.000Z", "type": kind, "payload": payload}


def message(second: int, role: str, *texts: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": text} for text in texts]
    return envelope(second, "response_item", type="message", role=role, content=content)


CODEX: list[Any] = [
    envelope(0, "session_meta", id="s-1", cwd="/w", source="cli", base_instructions={"text": "You are"}),
    message(1, "developer", "<permissions instructions>ask</permissions instructions>"),
    message(2, "user", "# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\nx\n</INSTRUCTIONS>"),
    message(3, "user", "<environment_context>\n<cwd>/w</cwd>\n</environment_context>", "Name it Karla."),
    envelope(3, "event_msg", type="user_message", message="Name it Karla."),
    envelope(4, "turn_context", cwd="/w", model="m"),
    envelope(5, "response_item", type="reasoning", summary=[], encrypted_content="…"),
    envelope(6, "response_item", type="function_call", name="shell", arguments="{}", call_id="c"),
    envelope(7, "response_item", type="function_call_output", call_id="c", output="ok"),
    envelope(8, "event_msg", type="agent_message", message="Done."),
    message(8, "assistant", "Done."),
    message(
        9, "user", "# Context from my IDE setup:\n\n## Open tabs:\n- a.py\n\n## My request for Codex:\nyes"
    ),
    envelope(10, "compacted", message="The person named it Karla."),
    message(11, "user", "yes"),
]


def save(folder: Path, lines: Sequence[Any], name: str = "log.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_claude_code_takes_what_was_typed_and_answered(tmp_path: Path) -> None:
    found = read_turns(save(tmp_path, CLAUDE_CODE))
    assert found.format == "claude-code"
    assert [(t.role, t.text.strip(), t.session, t.turn, t.key, t.time) for t in found.turns] == [
        ("user", "My oven is a Gaggen.", SESSION, "u-3", "u-3", "2026-03-01T10:00:03Z"),
        ("assistant", "Noted.", SESSION, "u-5", "u-5", "2026-03-01T10:00:05Z"),
        ("user", "and this?", SESSION, "u-12", "u-12", "2026-03-01T10:00:12Z"),
    ]
    assert found.skipped == {
        "notices of the program": 6,
        "passages of thinking": 1,
        "tool calls and results": 2,
        "messages of sub-agents": 1,
        "attached files and pictures": 1,
    }


def test_codex_takes_messages_once_and_without_what_surrounds_them(tmp_path: Path) -> None:
    found = read_turns(save(tmp_path, CODEX))
    assert found.format == "codex"
    turns = list(found.turns)
    assert [(t.role, t.text, t.session, t.time) for t in turns] == [
        ("user", "Name it Karla.", "s-1", "2026-04-02T09:00:03Z"),
        ("assistant", "Done.", "s-1", "2026-04-02T09:00:08Z"),
        ("user", "yes", "s-1", "2026-04-02T09:00:09Z"),
        ("user", "yes", "s-1", "2026-04-02T09:00:11Z"),
    ]
    assert len({turn.key for turn in turns}) == 4
    assert found.skipped == {
        "system prompts": 4,
        "passages of thinking": 1,
        "tool calls and results": 2,
        "notices of the program": 1,
    }


def test_a_log_that_grew_gives_the_same_keys_and_some_more(tmp_path: Path) -> None:
    before = [turn.key for turn in read_turns(save(tmp_path, CODEX[:-1])).turns]
    after = [turn.key for turn in read_turns(save(tmp_path, CODEX)).turns]
    assert after[: len(before)] == before
    assert len(after) == len(before) + 1


def test_codex_of_an_early_version(tmp_path: Path) -> None:
    content = [{"type": "input_text", "text": "hello"}]
    lines = [
        {"id": "s-0", "timestamp": "2025-05-07T17:24:21.123Z", "instructions": None},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": content},
        {"type": "reasoning", "summary": []},
    ]
    found = read_turns(save(tmp_path, lines))
    assert [(turn.text, turn.session, turn.time) for turn in found.turns] == [
        ("hello", "s-0", "2025-05-07T17:24:21Z")
    ]


def test_the_log_of_a_sub_agent_holds_nobody_s_words(tmp_path: Path) -> None:
    meta = envelope(0, "session_meta", id="s-2", source={"subagent": {"thread_spawn": {}}})
    with pytest.raises(ImportFormatError, match="nothing to import"):
        list(read_turns(save(tmp_path, [meta, *CODEX[1:]])).turns)


@pytest.mark.parametrize("lines", [CLAUDE_CODE, CODEX])
def test_damaged_lines_are_left_out_and_counted(tmp_path: Path, lines: list[Any]) -> None:
    path = save(tmp_path, lines)
    whole = [turn.text for turn in read_turns(path).turns]
    data = path.read_text().splitlines(keepends=True)
    bad = ['{"type": "user", "message": {"ro\n', "[1, 2]\n", "nonsense\n", '{"a": "b' + data[0]]
    path.write_text("".join([*data[:3], *bad, *data[3:], data[-1][:-9]]))
    found = read_turns(path)
    assert [turn.text for turn in found.turns] == whole
    assert (found.skipped["damaged lines"], found.skipped["records of another shape"]) == (4, 1)


def test_what_a_fork_repeats_keeps_its_key(tmp_path: Path) -> None:
    of = {"sessionId": SESSION, "messageUuid": "u-3"}
    path = save(tmp_path, [CLAUDE_CODE[4], said(3, "user", "x", sessionId="s2", uuid="u-90", forkedFrom=of)])
    assert [(turn.session, turn.turn, turn.key) for turn in read_turns(path).turns] == [
        (SESSION, "u-3", "u-3"),
        ("s2", "u-90", "u-3"),
    ]


@each(
    ("text", "left", "count"),
    [
        (f"Before\n{BEGIN}\n- I like tea\n{END}\nAfter", "Before\nAfter", 1),
        (f"  {BEGIN}\na\n{END}\n{BEGIN}\nb\n{END}", "", 2),
        (f"Before\n{BEGIN}\nnever closed", f"Before\n{BEGIN}\nnever closed", 0),
        (f"{END}\nBefore\n{BEGIN}", f"{END}\nBefore\n{BEGIN}", 0),
        (f"{BEGIN}\nmine\n{BEGIN}\n- tea\n{END}\nAfter", f"{BEGIN}\nmine\nAfter", 1),
        (f"{BEGIN}\n- tea\n{END}\nmine\n{BEGIN}\nmine", f"mine\n{BEGIN}\nmine", 1),
        (f"about {BEGIN}\nmine\n{BEGIN}\n- tea\n{END}", f"about {BEGIN}\nmine", 1),
        (f"{BEGIN}\n- tea\n- type {BEGIN}\n- oats\n{END}\nAfter", "After", 1),
        (f"hook says: {BEGIN}\n- tea\n- type {BEGIN}\n- oats\n{END}\nAfter", "hook says:\nAfter", 1),
        (f"it begins with {BEGIN}\nand goes on", f"it begins with {BEGIN}\nand goes on", 0),
        (f"hook says: {BEGIN}\r\n- tea\r\n{END}\r\nAfter", "hook says:\nAfter", 1),
        (f"{BEGIN}\na\n{END} and on\n{END}\nAfter", "After", 1),
        (f"the tag {BEGIN} is used so", f"the tag {BEGIN} is used so", 0),
    ],
)
def test_recalled_memory_does_not_come_in_again(text: str, left: str, count: int) -> None:
    assert without_recalled(text) == (left, count)


def test_a_reminder_that_is_cut_off_is_the_program_s_to_its_end(tmp_path: Path) -> None:
    text = "My oven is a Gaggen.\n<system-reminder>\nbe brief"
    found = read_turns(save(tmp_path, [said(1, "user", text)]))
    assert [turn.text for turn in found.turns] == ["My oven is a Gaggen.\n"]
    assert found.skipped == {"notices of the program": 1}


def test_a_hook_s_output_is_left_out_of_every_format(tmp_path: Path) -> None:
    recalled = f"{BEGIN}\n- <seq=3> I like tea\n{END}\n"
    lines = [said(1, "user", recalled + "What do I like?"), said(2, "user", recalled)]
    found = read_turns(save(tmp_path, lines))
    assert [turn.text for turn in found.turns] == ["What do I like?"]
    assert found.skipped == {"passages of recalled memory": 2}
    chat = read_turns(save(tmp_path, [{"role": "user", "content": recalled + "hm"}]))
    assert [turn.text for turn in chat.turns] == ["hm"]


# ── values where others are expected ────────────────────────────────────────────────────────────


@pytest.mark.parametrize("lines", [CLAUDE_CODE, CODEX])
def test_an_odd_value_anywhere_is_an_import_error_at_worst(tmp_path: Path, lines: list[Any]) -> None:
    for changed in altered(lines):
        try:
            for turn in read_turns(save(tmp_path, changed)).turns:
                check_turn(turn)
        except ImportFormatError as error:
            assert "\n" not in str(error)
