"""What a sentence may claim of its origin, and which two sentences state one fact.

A retelling may not say what its origin denies; a "not" that denies nothing is no reason to refuse one.
"""

from __future__ import annotations

from cases import each
from fault_hang import watched

from infinimem.grounding.sentences import is_duplicate, unsupported


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


LOST = (
    ("I do not eat meat", "Eats meat"),
    ("I don’t eat meat.", "Ana eats meat."),
    ("i dont eat meat", "Eats meat"),
    ("I don't eat meat, fish or eggs.", "Eats eggs."),
    ("I don't eat meat and fish.", "The user eats meat and fish."),
    ("I eat fish, but I don't eat meat.", "The user eats fish and meat. The user eats meat."),
    ("I have no siblings.", "The user has siblings."),
    ("I do not like it.", "Likes it."),
    ("I've never been to the Louvre.", "Has been to the Louvre."),
    ("I never went to Rome with Tom.", "The user went to Rome."),
    ("I no longer work at Siemens.", "The user works at Siemens."),
    ("I stopped smoking last year.", "The user smokes."),
    ("I quit smoking three years ago.", "The user has been smoking for three years."),
    ("We gave up renting.", "They are renting."),
    ("I rarely cook at home.", "The user cooks at home."),
    ("Neither of my brothers smokes.", "The user's brothers smoke."),
    ("I take my coffee without sugar.", "The user takes coffee with sugar."),
    ("My flat isn't near the river.", "The user's flat is near the river."),
    ("I cannot come on Friday, sorry!", "The user can come on Friday."),
    ("You shouldn't call me before ten.", "Call the user before ten."),
    ("Don't use em dashes in mails.", "The user wants em dashes in mails."),
    ("I don't think we will sell the house.", "They will sell the house."),
    ("None of the plants survived the move.", "The plants survived the move."),
    ("So I'm not allergic to nuts, the test said.", "The user is allergic to nuts."),
    ("I don't hate fish.", "The user hates fish."),
    ("I ain't going to the party", "The user is going to the party."),
    ("We didn't get the flat, although we got the keys.", "The user got the flat."),
    ("You don't eat meat, do you?", "The user eats meat."),
    ("I don't like to eat meat.", "The user eats meat. The user does not like Oslo."),
    ("I never found a way.", "The user found a good way."),
    ("I don't eat meat at home. I don't eat meat at work. I never eat meat.", "Eats meat."),
)
"""What was said, and a retelling that inverts it."""

HONEST = (
    ("I do not eat meat", "Does not eat meat"),
    ("I don't eat meat.", "The user avoids meat."),
    ("I don't eat meat any more.", "The user used to eat meat."),
    ("I don't eat meat or fish.", "The user eats neither fish nor meat."),
    ("I don't eat meat and fish.", "Does not eat fish, meat."),
    ("I don't eat meat on Fridays, but I eat meat on Sundays.", "The user eats meat on Sundays."),
    ("I don't eat meat, I eat fish.", "The user eats fish."),
    ("I stopped smoking last year.", "The user is a former smoker."),
    ("I stopped at the café in Graz.", "The user visited the café in Graz."),
    ("I quit my job at Siemens.", "The user left the job at Siemens."),
    ("I'm not happy with my landlord.", "The user is unhappy with the landlord."),
    ("I can't stand cilantro.", "The user dislikes cilantro."),
    ("I haven't been to Rome since 2019.", "The user was last in Rome in 2019."),
    ("I won't move until May.", "The user will move in May."),
    ("I don't drink unless it's Friday.", "The user drinks on Fridays."),
    ("I eat nothing but oats.", "The user eats oats."),
    ("Don't you love the Louvre?", "The user loves the Louvre."),
    ("Isn't Mo a lovely cat, Rita?", "Mo is a lovely cat."),
    ("You love Rome, don't you?", "The speaker's friend loves Rome."),
    ("It's not just a hobby, pottery is my job.", "Pottery is the user's hobby and job."),
    ("I can't wait to see Rome!", "The user looks forward to seeing Rome."),
    ("The food was not bad.", "The food was good, the user says."),
    ("Why don't we meet at ten in the park?", "The user proposes to meet at ten in the park."),
    ("No problem, I moved to Oslo.", "The user moved to Oslo."),
    ("No I live in Oslo", "The user lives in Oslo."),
    ("No, I live in Oslo.", "The user lives in Oslo."),
    ("Don't forget that Emma turns seven.", "Emma turns seven."),
    ("Don't worry about the car, Tom fixed it.", "Tom fixed the car."),
    ("I can't live without coffee.", "The user needs coffee to live."),
    ("I never leave without my keys.", "The user leaves with keys."),
    ("I couldn't be happier with my flat.", "The user is happy with the flat."),
    ("I'm not sure if I told you, I moved to Oslo.", "The user moved to Oslo."),
    ("Nothing beats a cold IPA.", "The user likes a cold IPA."),
    ("use tabs not spaces pls", "The user uses tabs."),
    ("My wife's vegan, I'm not.", "The user's wife is vegan."),
    ("I didn't bring my camera to the festival in Rome.", "The user went to a festival in Rome."),
    ("My dentist Dr. Smith in Porto did not call.", "Dr. Smith in Porto is the user's dentist."),
    ("Never mind the rain, we swam in the lake.", "They swam in the lake."),
    ("If I don't run on Sunday I get grumpy.", "The user runs on Sunday."),
    ("The ticket costs no more than 5 euros.", "The ticket costs at most 5 euros."),
    ("Ich esse kein Fleisch.", "Isst kein Fleisch."),
    ("我不吃肉。", "用户不吃肉。"),
    ("I like oats.", "The user likes oats."),
    ("My bike isn't red.", "The user's bike has a ring."),
)
"""What was said, and a retelling that is true to it, so far as its "not" goes."""


@each(("said", "told"), LOST)
def test_a_negation_that_is_dropped_is_seen(said: str, told: str) -> None:
    assert "negation lost" in unsupported(told, [said])


@each(("said", "told"), HONEST)
def test_what_is_true_to_a_negation_is_taken(said: str, told: str) -> None:
    assert "negation lost" not in unsupported(told, [said])


def test_all_that_was_said_bears_a_retelling_out() -> None:
    assert unsupported("Eats meat.", ["Ana: I don't eat meat.", "Mel: Oats are fine."]) == ["negation lost"]
    assert not unsupported("Ana eats meat.", ["Mel: I don't eat meat.", "Ana: I eat meat."])


def test_a_name_of_who_spoke_is_not_what_a_negation_is_about() -> None:
    told = ["Mel: I haven't seen Ana since May.", "Ana: I flew to Oslo."]
    assert unsupported("Ana went to Norway.", told) == ["name norway"]


@each(
    ("one", "other"),
    [
        (
            "She likes fish and rice with her whole family",
            "She hardly likes fish and rice with her whole family",
        ),
        (
            "He does not eat meat and does not drink wine on any day of the week",
            "He does not eat meat and does drink wine on any day of the week",
        ),
        (
            "He does not eat meat and does drink wine on any day of the week",
            "He does eat meat and does not drink wine on any day of the week",
        ),
        ("Likes fish", "Does not like fish"),
        ("She does not eat fish, and he does not", "She does not eat fish, and he does"),
    ],
)
def test_lines_that_deny_different_things_are_no_duplicates(one: str, other: str) -> None:
    assert not is_duplicate(one, other)
    assert not is_duplicate(other, one)


def test_a_denial_said_twice_is_a_duplicate() -> None:
    one, other = "She does not eat any fish at home, not ever.", "she does not eat any fish at home not ever!"
    assert is_duplicate(one, other)


@each(
    "text",
    [
        "not " * 20_000,
        "I don't eat meat, " * 6000,
        "no" + " " * 100_000 + "meat",
        "a, b" + ", c" * 50_000 + " or",
        "can't say " * 10_000,
        "x" * 200_000 + "n't",
        "'" * 100_000,
        "not " + " ".join(f"x{n}" for n in range(20_000)),
        "not, " + ", ".join(f"x a{n}" for n in range(20_000)),
        "not e" + "\u0301\u0316" * 50_000,
    ],
    ids=lambda text: text[:12],
)
def test_no_text_hangs(text: str) -> None:
    with watched():
        unsupported(text, [text])
        unsupported(f"{text} meat", [text, "I don't eat meat."])
        is_duplicate(text, f"{text} meat")
