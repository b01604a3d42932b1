"""What a sentence may claim of its origin, and which two sentences state one fact."""

from __future__ import annotations

from cases import each

from infinimem.grounding.claims import is_duplicate, unsupported


@each(
    ("one", "other", "same"),
    [
        ("I moved to Lisbon.", "i moved to lisbon", True),
        ("He writes C++", "He writes C#", False),
        ("🙂", "🎉", False),
        ("Lives in Ｌｉｓｂｏｎ", "lives in Lisbon", True),
        ("Drinks tea", "Drinks tea and owns a cat", False),
        ("Drinks tea and owns a cat", "Drinks tea", False),
        ("!!!", "???", False),
        ("Meeting on 12 May in the big room upstairs", "Meeting on 14 May in the big room upstairs", False),
        (
            "The whole team met in the big room upstairs and talked about plans until 12",
            "The whole team met in the big room upstairs and talked about plans until 14",
            False,
        ),
        (
            "She does eat fish every week with her family",
            "She doesn't eat fish every week with her family",
            False,
        ),
    ],
)
def test_duplicates_are_one_fact_said_twice(one: str, other: str, same: bool) -> None:
    assert is_duplicate(one, other) is same


@each(
    ("text", "origin", "claims"),
    [
        ("Lives in Lisbon since March", "I moved to Lisbon in March", []),
        ("Lives in Porto", "I moved to Lisbon", ["name porto"]),
        ("Paid 40 euros", "I paid 30 euros", ["number 40"]),
        ("Does not eat meat", "I eat meat", ["negation not"]),
        ('Said "never again"', "I was angry", ["negation not", "quotation never again"]),
        ("Caroline's cat is called Mo", "caroline: my cat is called mo", []),
        ("Rita has a cat", "rita's cat is black", []),
        ("Paid by Ann", "I paid the annual fee", ["name ann"]),
        ("Paid 3.5 euros", "I paid 5.3 euros", ["number 3.5"]),
        ('Says "tea time"', "It is tea and not yet time", ["quotation tea time"]),
    ],
)
def test_what_a_model_says_must_be_borne_out(text: str, origin: str, claims: list[str]) -> None:
    assert sorted(unsupported(text, [origin])) == claims
