"""The rules for episodes and facts: what was said, and nothing else."""

from __future__ import annotations

from language_tasks import by_rules

from infinimem.strategies.recmem.tasks import EPISODES, MERGE, REFINE

TURNS = [
    (
        "1",
        "2025-01-04",
        "Ann",
        "Hi Rob! I moved to Lisbon in March. The flat is near the river Tejo, and it is small.",
    ),
    ("2", "2025-01-04", "Rob", "How lovely! Do you like the flat?"),
    (
        "7",
        "2025-02-01",
        "Ann",
        "I painted the kitchen of the flat blue. My landlord Bruno helped me with the ladder.",
    ),
    ("8", "2025-02-01", "Rob", "Thanks!"),
]


def turn(seq: str, day: str, speaker: str, text: str) -> dict[str, str]:
    return {"id": seq, "role": "user", "speaker": speaker, "time": f"{day}T10:00:00", "text": text}


def told() -> str:
    (episode,) = by_rules(EPISODES, turns=[turn(*row) for row in TURNS])["episodes"]
    assert episode["from"] == ["1", "2", "7", "8"]
    return str(episode["text"])


def test_an_episode_is_made_of_what_was_said_with_day_and_speaker() -> None:
    left = told()
    assert left.startswith("2025-01-04 Ann: ") and left.index("2025-01-04") < left.index("2025-02-01 Ann: ")
    for _, _, _, text in TURNS:
        for sentence in text.replace("! ", "!|").replace(". ", ".|").split("|"):
            left = left.replace(sentence, "")
    assert set(left.split()) == {"2025-01-04", "2025-02-01", "Ann:"}


def test_a_merge_keeps_the_episode_and_adds_what_is_new_of_it() -> None:
    old = told()
    more = turn(
        "11", "2025-02-09", "Ann", "Bruno wants the kitchen of the flat white again, says the contract."
    )
    found = by_rules(MERGE, episode=old, turns=[more])
    assert found == {"should_merge": True, "merged": f"{old} 2025-02-09 Ann: {more['text']}"}


def test_facts_are_what_the_episode_leaves_out_and_no_fact_says() -> None:
    turns = [turn(*row) for row in TURNS]
    facts = by_rules(REFINE, episode="", turns=turns, facts=[])["facts"]
    assert {(fact["text"], *fact["from"]) for fact in facts} == {
        (f"Ann: {TURNS[0][3]}", "1"),
        (f"Ann: {TURNS[2][3]}", "7"),
    }
    known = [{"id": "f1", "time": TURNS[0][1], "text": f"Ann: {TURNS[0][3]}"}]
    (left,) = by_rules(REFINE, episode="", turns=turns, facts=known)["facts"]
    assert left["from"] == ["7"] and left["replaces"] is None
    assert by_rules(REFINE, episode=TURNS[2][3], turns=turns, facts=known) == {"facts": []}
