"""Chats and mails of people: dates of any order, what a program put in, and what was quoted."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from cases import each
from exports import CHATGPT, EML, TELEGRAM

from infinimem.importers import read_turns, survey
from infinimem.importers.exports import without_citations
from infinimem.importers.messengers import is_whatsapp, text_of_html, whatsapp_turns


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


def test_chatgpts_export_is_cleaned(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(CHATGPT))
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
