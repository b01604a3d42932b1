"""Summaries by rules: keywords and statements, no talk."""

from __future__ import annotations

from infinimem.llm.offline.salience import summary


def summed(*said: tuple[str, str]) -> str:
    lines = [{"id": str(n), "speaker": who, "text": text} for n, (who, text) in enumerate(said, 1)]
    return summary(lines, 100)


def test_a_summary_states_and_does_not_greet() -> None:
    text = summed(
        ("Ana", "Thanks, Bo! I fired a blue bowl in the kiln on Monday. [shares a photo: a dog on a sofa]"),
        ("Bo", "Wow, Ana! What glaze did you use for the bowl in the kiln?"),
        ("Ana", "Yeah, Bo, the bowl got a celadon glaze before the second firing!"),
    )
    keywords, stated = text.split("; ")
    assert stated == (
        "Ana: I fired a blue bowl in the kiln on Monday. / "
        "Ana: the bowl got a celadon glaze before the second firing!"
    )
    assert "bowl" in keywords and not {"dog", "sofa", "ana", "bo"} & set(keywords.lower().split(", "))


def test_a_summary_has_sixty_words_at_most() -> None:
    text = summed(*[("Ana", f"The {word} kiln fires a bowl with a celadon glaze.") for word in "abcdefghij"])
    assert 40 < len(text.split()) <= 60


def test_where_nothing_is_stated_a_summary_says_what_there_is() -> None:
    assert summed(("Ana", "Likes tea")) == "tea; Ana: Likes tea"
