"""What the offline rules take for something that a user asks for once and for all."""

from __future__ import annotations

from cases import each

from infinimem.llm.offline.extract import parted, standing


@each(
    ("sentence", "what"),
    [
        ("Always answer in metric units.", "instruction"),
        ("Please always include version numbers.", "instruction"),
        ("Never mention my ex.", "instruction"),
        ("Don't ever mention my ex.", "instruction"),
        ("From now on call me Bo.", "instruction"),
        ("From now on, please don't use emojis.", "instruction"),
        ("Call me Bo.", "instruction"),
        ("When I ask about dates, always give the weekday.", "instruction"),
        ("Answer in French from now on.", "instruction"),
        ("I prefer short answers.", "preference"),
        ("I'd generally prefer the train.", "preference"),
        ("My strong preference is tea.", "preference"),
        ("Never been to a shelter before.", None),
        ("Never give up!", None),
        ("Never say never!", None),
        ("Always good to hear from you.", None),
        ("Call me later.", None),
        ("Use the blue one.", None),
        ("She prefers tea.", None),
    ],
)
def test_clear_patterns_are_recognised(sentence: str, what: str | None) -> None:
    assert standing(sentence) == what


def test_a_message_is_parted_where_it_turns_into_a_wish_and_keeps_every_word() -> None:
    text = "I moved to Lisbon. Always answer in metric units. I rent a flat."
    assert list(parted(text)) == [
        ("I moved to Lisbon.", None),
        ("Always answer in metric units.", "instruction"),
        ("I rent a flat.", None),
    ]
    assert list(parted("私は。猫です。")) == [("私は。猫です。", None)]
