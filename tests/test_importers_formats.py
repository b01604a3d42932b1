"""Every format: recognised by content, and nothing of what was said is lost or altered."""

from __future__ import annotations

import gzip
import json
import lzma
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from cases import each
from exports import EML, EXPORTS, TELEGRAM

from infinimem.importers import read_turns, survey
from infinimem.importers.exports import without_citations
from infinimem.importers.fields import iso, moment, role_of
from infinimem.importers.messengers import is_whatsapp, text_of_html, whatsapp_turns

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
    fields = {"speaker": "Ann", "time": "2025-03-03", "session": "s1", "key": "k"}
    line = {"role": "user", "text": "Hi", "turn": 4, **fields}
    (turn,) = read_turns(save(tmp_path, "log.jsonl", line)).turns
    assert {name: getattr(turn, name) for name in fields} == fields and turn.turn == "4"


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


# ── chats and mails of people ────────────────────────────────────────────────────────────────────────


@each(
    ("stamps", "expected"),
    [
        (["13/2/24, 09:05 - ", "1/3/24, 21:05 - "], ["2024-02-13T09:05:00", "2024-03-01T21:05:00"]),
        (["2/13/24, 9:05 AM - ", "3/1/24, 9:05 PM - "], ["2024-02-13T09:05:00", "2024-03-01T21:05:00"]),
        (["5/1/24, 12:05 AM - ", "6/1/24, 12:05 PM - "], ["2024-01-05T00:05:00", "2024-01-06T12:05:00"]),
        (
            ["1/5/24, 10:00 - ", "1/6/24, 10:00 - ", "2/1/24, 10:00 - "],
            ["2024-01-05", "2024-01-06", "2024-02-01"],
        ),
        (["2024-05-01, 10:00 - ", "2024-05-31, 10:00 - "], ["2024-05-01T10:00:00", "2024-05-31T10:00:00"]),
        (
            ["[01.05.2024, 10:00:30] ", "[31.05.2024, 10:00:31] "],
            ["2024-05-01T10:00:30", "2024-05-31T10:00:31"],
        ),
        (["[1.5.2024 klo 14.08.18] "], ["2024-05-01T14:08:18"]),
        (["01-05-2024, 10:00 - ", "31-05-2024, 10:00 - "], ["2024-05-01T10:00:00", "2024-05-31T10:00:00"]),
        (["\u200e[5/31/24, 9:59:00\u202fPM] "], ["2024-05-31T21:59:00"]),
        (["31/05/2024, 9:05 p. m. - "], ["2024-05-31T21:05:00"]),
        (["31/05/2024, 29:05 - "], [None]),
    ],
)
def test_the_order_of_day_and_month_is_told_from_all_dates(stamps: list[str], expected: list[str]) -> None:
    """The third is read as days of one month, for a chat goes on from day to day."""
    text = "\n".join(f"{stamp}Ann: hi {number}" for number, stamp in enumerate(stamps))
    assert is_whatsapp(text)
    times = [turn.time for turn in whatsapp_turns(text, "x", Counter())]
    assert [time and time[: len(day)] for time, day in zip(times, expected, strict=True) if day] == [
        day for day in expected if day
    ]


@each(
    "text",
    ["2024-05-01 10:00 - slept: badly\n", "# Log\n1/2/24, 10:00 - Ann: hi\n", "[x] 1/2/24, 10:00\n", ""],
)
def test_a_log_of_ones_own_is_a_note(text: str) -> None:
    assert not is_whatsapp(text)


def test_all_chats_of_an_account_come_in_and_one_may_be_asked_for(tmp_path: Path) -> None:
    other = {**TELEGRAM, "name": "Choir", "id": 5}
    path = tmp_path / "result.json"
    path.write_text(json.dumps({"about": "x", "chats": {"about": "y", "list": [TELEGRAM, other]}}))
    assert survey(path).turns == 4
    assert {turn.session for turn in read_turns(path, only="Choir").turns} == {
        "Choir 2024-02-01",
        "Choir 2024-02-02",
    }


def test_a_mail_in_an_encoding_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "a.eml"
    head, _, body = EML.replace("charset=utf-8", "charset=iso-8859-1").partition("\n\n")
    path.write_bytes(f"{head}\n\n{body}".replace("shed", "Gärtnerei").encode("latin-1"))
    (turn,) = read_turns(path).turns
    assert "in your Gärtnerei." in turn.text


def test_history_below_an_answer_goes(tmp_path: Path) -> None:
    below = "\n\n-----Original Message-----\nFrom: Ada <a@b>\nSent: Monday\n\nWhere is it?\n"
    (tmp_path / "a.eml").write_text(EML.partition("\n\n")[0] + "\n\nIn the shed." + below)
    assert [turn.text for turn in read_turns(tmp_path / "a.eml").turns] == ["In the shed."]


def test_the_thread_of_a_mail_is_its_session(tmp_path: Path) -> None:
    answer = EML.replace("<b2@", "<b3@").replace(
        "In-Reply-To: <b1@example.org>", "References: <b1@example.org> <b2@x>"
    )
    other = EML.replace("<b1@", "<z1@").replace("<b2@", "<z2@")
    for name, text in (("a", EML), ("b", answer), ("c", other)):
        (tmp_path / f"{name}.eml").write_text(text)
    found = [turn.session for batch in survey(tmp_path).batches() for turn in batch]
    assert found[0] == found[1] != found[2]


def test_pages_become_text() -> None:
    html = "<p>One <b>two</b>&amp;<br>three</p><!-- x --><script>a<b</script><table><tr><td>4<td>5</tr>"
    assert text_of_html(html) == "One two&\nthree\n\n4 5"
    assert text_of_html("a<blockquote type='cite'>old <p>older</p></blockquote>b") == "a\nb"
    assert text_of_html("<p>a </i> b < c</p>") == "a b < c"


@each(
    ("text", "expected"),
    [
        ("Rain\ue200cite\ue202turn0search1\ue202turn0news2\ue201.", "Rain."),
        ("Rain citeturn0search1turn3view0 again", "Rain again"),
        ("\ue203Rain\ue204\ue200cite\ue202turn0search1\ue201 falls", "Rain falls"),
        ("See 【12†source】【4:0†a.pdf】 here【7†L3-L5】.", "See here."),
        ("[the table](sandbox:/mnt/data/t.csv) and sediment://file_00ab", "the table and"),
        ("https://a.example/x?utm_source=chatgpt.com", "https://a.example/x"),
        ("https://a.example/x?utm_source=chatgpt.com&b=1#c", "https://a.example/x?b=1#c"),
        ("(https://a.example/x?b=1&utm_source=chatgpt.com)", "(https://a.example/x?b=1)"),
        ("\ue200url\ue202Kolb\ue202turn0view1\ue201", "Kolb"),
        ("\ue200navlist\ue202News\ue202turn0news1\ue201", ""),
        ("\ue200entity\ue202broken\ue201", ""),
        ('\ue200entity\ue202["city","Kolb"]\ue201', "Kolb"),
        ("I cite Ann; it was turned 【off】 at https://a.example/x?utm_source=mail", None),
    ],
)
def test_marks_of_chatgpts_page_go_and_words_stay(text: str, expected: str | None) -> None:
    assert without_citations(text) == (text if expected is None else expected)


def test_marks_that_are_cut_off_are_read_at_once() -> None:
    assert without_citations("\ue200cite" + "\ue202view" * 200 + " cut") == "cite" + "view" * 200 + " cut"
    assert without_citations("\ue200url\ue202" + "a" * 10**6) == "url" + "a" * 10**6  # or it takes minutes


def test_chatgpts_export_is_cleaned(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(EXPORTS["ChatGPT"].files["conversations.json"]))
    assert not any(mark in turn.text for turn in read_turns(tmp_path / "a.json").turns for mark in "\ue200†")


def test_headers_in_plain_utf8_and_a_long_way_to_the_sender(tmp_path: Path) -> None:
    path = tmp_path / "a"
    route = "Received: by x\n" + "".join(f"X-Hop-{number}: {'y' * 90}\n" for number in range(60))
    path.write_text(
        route + EML.replace("Return-Path: <bo@example.org>\n", "").replace("Re: Ladder", "Gärtnerei")
    )
    (turn,) = read_turns(path).turns
    assert (turn.speaker, (turn.session or "")[:10]) == ("Bo", "Gärtnerei ")
    assert turn.text.startswith("Gärtnerei: The ladder")


def test_a_mail_inside_a_mail_is_attached_and_not_said(tmp_path: Path) -> None:
    inner = "--b\nContent-Type: message/rfc822\n\nFrom: Ida <i@b>\nSubject: Old\n\nnot mine\n--b--\n"
    mixed = "Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\nlook at this\n"
    (tmp_path / "a.eml").write_text("From: Bo <a@b>\nTo: c@d\n" + mixed + inner)
    assert [turn.text for turn in read_turns(tmp_path / "a.eml").turns] == [
        "look at this [attached: message/rfc822]"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Date: 5 May\nWeather: sun\n\nslept\n",
        "From: Ann\n\nslept\n",
        "Subject: pears\nplain words\n",
        "From 8:00 to 9\n",
    ],
)
def test_a_note_that_begins_like_a_mail_is_a_note(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(text)
    assert read_turns(tmp_path / "a.txt").format == "markdown"


@pytest.mark.parametrize(("plain", "expected"), [("yes", "yes"), ("", "no")])
def test_of_a_text_and_its_html_one_is_taken(plain: str, expected: str, tmp_path: Path) -> None:
    parts = f"--b\nContent-Type: text/plain\n\n{plain}\n--b\nContent-Type: text/html\n\n<p>no</p>\n--b--\n"
    head = "From: Bo <a@b>\nTo: c@d\nContent-Type: multipart/alternative; boundary=b\n\n"
    (tmp_path / "a.eml").write_text(head + parts)
    assert [turn.text for turn in read_turns(tmp_path / "a.eml").turns] == [expected]
