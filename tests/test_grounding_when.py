"""When something happened: what has the form of a `when`, and what words can mean it."""

from __future__ import annotations

from datetime import date, timedelta

from cases import each
from hypothesis import given
from hypothesis import strategies as st

from infinimem.grounding.sentences import fits, mentions, settled, span_of, when_of

SAID = date(2023, 8, 27)  # a Sunday
DAYS = st.dates(date(1900, 1, 1), date(2100, 12, 31))


@each(
    ("text", "when"),
    [
        ("We went hiking yesterday.", "2023-08-26"),
        ("Two days ago I met Ann.", "2023-08-25"),
        ("The day before yesterday it rained.", "2023-08-25"),
        ("I took a road trip last month.", "2023-07"),
        ("I'm going to a conference next month.", "2023-09"),
        ("Last week I was ill.", "2023-08-14/2023-08-20"),
        ("Last weekend we camped.", "2023-08-19/2023-08-20"),
        ("We married 5 years ago.", "2018"),
        ("I saw him on Monday.", "2023-08-21"),
        ("I need to call Ann on Friday.", "2023-09-01"),
        ("She was born in 1991.", "1991"),
        ("I moved to Lisbon in March.", "2023-03"),
        ("I moved to Lisbon in October.", "2022-10"),
        ("The party is on 5 July 2023.", "2023-07-05"),
        ("It happened on 2023-05-08.", "2023-05-08"),
        ("She was chipped, the booster is due on 15 September.", "2023-09-15"),
    ],
)
def test_what_words_settle(text: str, when: str) -> None:
    assert settled(text, SAID) == when


@each(
    "text",
    [
        "I like tea.",
        "I run every Monday.",
        "I am tired today.",  # that is when it was said
        "We scheduled the sprint, which ends on September 29.",  # the participle is not the sprint's
        "I have an appointment next Friday.",  # of this week or of the next
        "Last summer I worked in Porto.",  # which months that is depends on the hemisphere
        "A few days ago I fell.",
        "I'll visit in two weeks.",  # as "I read five books in two weeks"
        "I may go today or tomorrow.",
        "On 30 February I flew.",
        "We may walk.",
        "A week in Slovenia in June, just Tomas and me.",  # of which year?
        "I took yoga classes on Saturday mornings.",
        "We lived in Rome from 2010 to 2014.",
        "The club meets on the last Wednesday of the month.",
    ],
)
def test_what_words_leave_open(text: str) -> None:
    assert settled(text, SAID) is None
    assert settled("We went hiking yesterday.", None) is None


@each("when", ["", "x", "2023-8", "2023-13", "2023-02-30", "2023-08/2023-07", "2023/2024/2025", "２０２３"])
def test_what_is_no_when(when: str) -> None:
    assert span_of(when) is None
    assert not fits(when, [("In 2023.", SAID)])


@given(first=DAYS, length=st.integers(0, 800))
def test_a_span_is_written_and_read_back(first: date, length: int) -> None:
    span = (first, first + timedelta(days=length))
    assert span_of(when_of(span)) == span


@given(said=DAYS, text=st.text(max_size=60))
def test_what_words_settle_fits_them(said: date, text: str) -> None:
    for words in (text, f"{text} last month", "yesterday", "in 3 weeks", "on Friday we met"):
        if when := settled(words, said):
            assert fits(when, [(words, said)])
        spans = [span for mention in mentions(words, said) for span in mention.spans]
        assert all(first <= last for first, last in spans)


def test_a_when_that_the_words_cannot_mean() -> None:
    told = [("I took a road trip last month.", SAID)]
    assert fits("2023-07", told)
    assert fits("2023-07-20/2023-08-02", told)
    assert not fits("2023-05", told)
    assert not fits("2022-07", told)
    assert not fits("2023-07", [("I took a road trip.", SAID)])
    assert fits("1985", [("In my childhood we had a dog.", SAID)])  # how long ago is not known here
    assert fits("2023-07", [("I took a road trip.", SAID), *told])
