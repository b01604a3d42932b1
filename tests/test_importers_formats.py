"""Every format: recognised by content, and nothing of what was said is lost or altered."""

from __future__ import annotations

import gzip
import json
import lzma
import zipfile
from pathlib import Path
from typing import Any

import pytest
from cases import each

from infinimem.importers import read_turns
from infinimem.importers.fields import iso, moment, role_of

LOCOMO = {
    "sample_id": "conv-9",
    "conversation": {
        "speaker_a": "Ann",
        "speaker_b": "Bob",
        "session_2_date_time": "12:05 am on 1 June, 2023",
        "session_2": [{"speaker": "Ann", "dia_id": "D2:1", "text": "Look!", "blip_caption": "a red kite"}],
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ann", "dia_id": "D1:1", "text": "Hi Bob"},
            {"speaker": "Bob", "dia_id": "D1:2", "text": "Hi Ann"},
        ],
        "session_3_date_time": "9:00 am on 2 June, 2023",
    },
    "qa": [],
}

LONGMEMEVAL = {
    "question_id": "q1",
    "question": "?",
    "haystack_dates": ["2023/05/26 (Fri) 20:21", "2023/05/21 (Sun) 00:41"],
    "haystack_session_ids": ["later", "sooner"],
    "haystack_sessions": [
        [{"role": "user", "content": "second"}, {"role": "assistant", "content": "third"}],
        [{"role": "user", "content": "first", "has_answer": True}],
    ],
}


def node(ident: str, parent: str | None, children: list[str], message: Any = None) -> dict[str, Any]:
    return {"id": ident, "parent": parent, "children": children, "message": message}


def said(ident: str, role: str, text: str, **more: Any) -> dict[str, Any]:
    return {
        "id": ident,
        "author": {"role": role},
        "create_time": 1700000000.5,
        "content": {"content_type": "text", "parts": [text]},
        **more,
    }


CHATGPT = {
    "title": "Trip to Porto",
    "conversation_id": "6f3a2c1b-0000",
    "create_time": 1699999999.0,
    "current_node": "c",
    "mapping": {
        "root": node("root", None, ["s"]),
        "s": node(
            "s",
            "root",
            ["h"],
            said("s", "system", "x", metadata={"is_visually_hidden_from_conversation": True}),
        ),
        "h": node("h", "s", ["a"], said("h", "assistant", "withdrawn", weight=0)),
        "a": node("a", "h", ["b", "c"], said("a", "user", "Where to?", weight=1.0)),
        "b": node("b", "a", [], said("b", "assistant", "Lisbon")),
        "c": node("c", "a", [], said("c", "assistant", "Porto")),
    },
}


BENCH = {
    "context": "Here is a list of facts:\n0. Ann lives in Rome.\n1. Ann lives in Oslo.",
    "questions": ["Where?"],
    "metadata": {"source": "fc_6k"},
}


def save(folder: Path, name: str, content: Any) -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def rows(path: Path, **options: str) -> list[tuple[str, str, str | None, str | None, str | None]]:
    return [(t.text, t.role, t.session, t.turn, t.time) for t in read_turns(path, **options).turns]


def test_locomo_reads_sessions_in_order_with_captions_and_ids(tmp_path: Path) -> None:
    imported = read_turns(save(tmp_path, "anything.dat", [LOCOMO]))
    assert imported.format == "locomo"
    turns = list(imported.turns)
    assert [(t.speaker, t.text, t.session, t.turn, t.time) for t in turns] == [
        ("Ann", "Hi Bob", "conv-9-s01", "D1:1", "2023-05-08T13:56:00"),
        ("Bob", "Hi Ann", "conv-9-s01", "D1:2", "2023-05-08T13:56:00"),
        ("Ann", "Look! [shares a photo: a red kite]", "conv-9-s02", "D2:1", "2023-06-01T00:05:00"),
    ]
    assert {t.role for t in turns} == {"user"}


def test_locomo_takes_a_single_conversation_too(tmp_path: Path) -> None:
    alone = read_turns(save(tmp_path, "talk.json", LOCOMO["conversation"]))
    assert alone.format == "locomo"
    assert next(alone.turns).session == "talk-s01"


@each("text", ["", "1:56 pm on 38 May, 2023", "x", None, 3])
def test_a_session_time_that_does_not_read_is_left_out(text: object) -> None:
    assert moment(text) is None


def test_longmemeval_reads_sessions_as_time_passed(tmp_path: Path) -> None:
    path = save(tmp_path, "haystack", [LONGMEMEVAL])
    assert rows(path, only="q1") == [
        ("first", "user", "sooner", "sooner_1", "2023-05-21T00:41:00"),
        ("second", "user", "later", "later_1", "2023-05-26T20:21:00"),
        ("third", "assistant", "later", "later_2", "2023-05-26T20:21:00"),
    ]


def test_different_messages_under_one_id_are_both_kept(tmp_path: Path) -> None:
    other = {
        **LONGMEMEVAL,
        "question_id": "q2",
        "haystack_sessions": [[], [{"role": "user", "content": "else"}]],
    }
    turns = list(read_turns(save(tmp_path, "mix.jsonl", [LONGMEMEVAL, other])).turns)
    assert [turn.text for turn in turns if turn.session == "sooner"] == ["first", "else"]
    assert len({(turn.session, turn.turn) for turn in turns}) == 4


def test_chatgpt_follows_the_branch_that_was_seen_last(tmp_path: Path) -> None:
    imported = read_turns(save(tmp_path, "conversations.json", [CHATGPT]))
    assert imported.format == "chatgpt"
    assert [(t.text, t.role, t.session, t.turn, t.time) for t in imported.turns] == [
        ("Where to?", "user", "Trip to Porto 6f3a2c1b", "a", "2023-11-14T22:13:20Z"),
        ("Porto", "assistant", "Trip to Porto 6f3a2c1b", "c", "2023-11-14T22:13:20Z"),
    ]
    assert imported.skipped == {
        "messages of branches that were edited away": 1,
        "system prompts": 1,
        "hidden messages": 1,
    }


def test_chatgpt_without_a_current_node_takes_the_last_branch(tmp_path: Path) -> None:
    without = {key: value for key, value in CHATGPT.items() if key != "current_node"}
    assert [row[0] for row in rows(save(tmp_path, "c.json", without))] == ["Where to?", "Porto"]


def test_chatgpt_tree_with_a_loop_ends(tmp_path: Path) -> None:
    loop = {
        "title": "x",
        "current_node": "a",
        "mapping": {"a": node("a", "a", ["a"], said("a", "user", "hm"))},
    }
    assert [row[0] for row in rows(save(tmp_path, "c.json", loop))] == ["hm"]


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "content",
    [
        [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}],
        {"messages": [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}]},
        '{"role": "user", "content": "one"}\n{"role": "assistant", "content": "two"}\n',
        '{"role": "user", "text": "one"}\r\n\r\n{"role": "ai", "content": [{"type": "text", "text": "two"}]}',
        {"conversations": [{"from": "human", "value": "one"}, {"from": "gpt", "value": "two"}]},
        [{"messages": [{"role": "user", "content": "one"}]}, {"messages": [{"role": "ai", "text": "two"}]}],
    ],
)
def test_chat_messages_in_their_usual_shapes(tmp_path: Path, content: Any) -> None:
    imported = read_turns(save(tmp_path, "log", content))
    assert imported.format == "openai"
    assert [(t.role, t.text) for t in imported.turns] == [("user", "one"), ("assistant", "two")]


def test_a_message_may_carry_every_field_of_a_turn(tmp_path: Path) -> None:
    line = {
        "role": "user",
        "text": "Hi",
        "speaker": "Ann",
        "time": "2025-03-03",
        "session": "s1",
        "turn": 4,
        "key": "k",
    }
    (turn,) = read_turns(save(tmp_path, "log.jsonl", line)).turns
    assert (turn.speaker, turn.time, turn.session, turn.turn, turn.key) == (
        "Ann",
        "2025-03-03",
        "s1",
        "4",
        "k",
    )


def test_a_name_in_place_of_a_role_is_a_speaker() -> None:
    assert role_of("Melanie") == ("user", "Melanie")
    assert role_of("ASSISTANT") == ("assistant", None)
    assert role_of(None) == ("user", None)


def test_tool_calls_without_text_are_counted(tmp_path: Path) -> None:
    messages = [{"role": "assistant", "content": None, "tool_calls": [{}]}, {"role": "user", "content": "hm"}]
    imported = read_turns(save(tmp_path, "log.json", messages))
    assert [turn.text for turn in imported.turns] == ["hm"]
    assert imported.skipped == {"tool calls and results": 1}


def test_bench_facts_are_one_turn_each(tmp_path: Path) -> None:
    assert [row[:4] for row in rows(save(tmp_path, "fc.json", [BENCH]), only="fc_6k")] == [
        ("Here is a list of facts:", "user", "fc_6k", None),
        ("Ann lives in Rome.", "user", "fc_6k", None),
        ("Ann lives in Oslo.", "user", "fc_6k", None),
    ]


@each(
    ("value", "expected"),
    [
        ("2025-03-03", "2025-03-03"),
        ("2025-03-03 10:00", "2025-03-03T10:00:00"),
        ("2025-03-03T10:00:00.5+02:00", "2025-03-03T10:00:00+02:00"),
        (1700000000, "2023-11-14T22:13:20Z"),
        ("1700000000000", "2023-11-14T22:13:20Z"),
        (True, None),
        ("soon", None),
        (float("nan"), None),
        (1e300, None),
        (-5, None),
        ({}, None),
    ],
)
def test_times_become_iso_or_nothing(value: Any, expected: str | None) -> None:
    assert iso(value) == expected


def test_packed_files_are_the_same_as_plain_ones(tmp_path: Path) -> None:
    plain = save(tmp_path, "log.json", [CHATGPT])
    expected = rows(plain)
    data = plain.read_bytes()
    (tmp_path / "log.gz").write_bytes(gzip.compress(data))
    (tmp_path / "log.xz").write_bytes(lzma.compress(data))
    with zipfile.ZipFile(tmp_path / "export.bin", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("user.json", "{}")
        archive.writestr("chats/conversations.json", data)
    for name in ("log.gz", "log.xz", "export.bin"):
        assert rows(tmp_path / name) == expected


def test_the_first_messages_come_before_the_file_is_read_to_its_end(tmp_path: Path) -> None:
    lines = [json.dumps({"role": "user", "content": f"{n} " + "x" * 3000}) for n in range(1000)]
    turns = read_turns(save(tmp_path, "log.jsonl", "\n".join([*lines, '{"role": ']))).turns
    assert next(turns).text.startswith("0 ")


def test_importing_twice_gives_the_same_keys_and_equal_messages_differ(tmp_path: Path) -> None:
    path = save(tmp_path, "log.json", [{"role": "user", "content": "yes"}] * 3)
    once, again = ([turn.key for turn in read_turns(path).turns] for _ in range(2))
    assert once == again
    assert len(set(once)) == 3
