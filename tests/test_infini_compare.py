"""What repeats and what is outdated: near lines are shown, the law decides, every survivor stays."""

from __future__ import annotations

from typing import Any

from cases import each
from garbage import GarbageLLM
from hypothesis import given, settings
from hypothesis import strategies as st
from infini_library import Library, document, entry, outdated

from infinimem.model import CURRENT
from infinimem.strategies.infini.compare import Claim, Comparison, allowed, compare
from infinimem.strategies.records.asking import Asker
from infinimem.testing import ScriptedLLM


def compared(library: Library, *replies: Any, standing: str = "") -> tuple[Comparison, ScriptedLLM]:
    """The buffer compared with itself and with a document."""
    view = library.view()
    llm = ScriptedLLM({"compare": replies})
    fresh = [place.entry for place in view.buffer.entries]
    stands = [place.entry for place in view.document(standing).entries] if standing else []
    return compare(fresh, stands, (), view, Asker(llm)), llm


def test_what_is_near_is_shown_together_once_and_the_rest_is_not() -> None:
    library = Library({"topics/home": document(entry(11, "Ana lives in Rome", time="2023-01-01"))})
    library.buffer("Ana lives in Oslo now", "Plays chess on Mondays", speaker="Ana", time="2024-01-01")
    found, llm = compared(library, outdated((11, 12)), standing="topics/home")
    assert found.claims == (Claim(11, 12, "superseded"),)
    (group,) = llm.calls[0].variables["groups"]
    assert group["facts"] == [
        {"id": "11", "time": "2023-01-01", "source": "user", "text": "Ana lives in Rome", "speaker": None},
        {
            "id": "12",
            "time": "2024-01-01",
            "source": "user",
            "speaker": None,
            "text": "Ana lives in Oslo now",
        },
    ]


@each(
    ("lines", "marks"),
    [
        (("Plays chess on Mondays", "Drinks green tea"), {}),
        (("I have a dog called Rex", "I have a dog called Taro"), {"speaker": True}),
        (("Went to Rome by train", "Went to Rome by night"), {"origin": "1"}),
    ],
    ids=["not near", "of two speakers", "said in one breath"],
)
def test_what_cannot_be_outdated_is_not_shown(lines: tuple[str, str], marks: dict[str, Any]) -> None:
    library = Library()
    told = ""
    for number, line in enumerate(lines):
        fields = {"speaker": "AB"[number]} if "speaker" in marks else {}
        origin = ",origin=1" if "origin" in marks else ""
        told += entry(number + 2, line, **fields).replace(",source=user", f",source=user{origin}") + "\n"
    library.write(CURRENT, told)
    assert len(library.view().buffer.entries) == 2
    found, llm = compared(library)
    assert (found.claims, llm.calls) == ((), [])


def test_a_claim_that_names_what_was_not_shown_goes_back_once() -> None:
    library = Library()
    library.buffer("Has 2 cats and a dog", "Has 3 cats and a dog")
    wrong = outdated((1, 77), (9, 2), (2, 2))
    found, llm = compared(library, wrong, outdated((1, 2)))
    assert llm.calls[1].variables["problems"] == [
        "UNKNOWN_SURVIVOR 1: 77",
        "UNKNOWN: 9",
        "UNKNOWN_SURVIVOR 2: 2",
    ]
    assert (found.claims, found.notes) == ((Claim(1, 2, "superseded"),), ())


def test_a_model_is_told_why_a_line_may_not_go_and_what_it_insists_on_is_withheld() -> None:
    library = Library()
    library.buffer("Has 2 cats and a dog", "Has 3 cats and a dog")
    found, llm = compared(library, outdated((2, 1)), outdated((2, 1)))
    assert llm.calls[1].variables["problems"] == ["NOT_NEWER 2, 1"]
    assert (found.claims, found.notes) == ((), ("withheld: NOT_NEWER 2, 1",))


def test_what_a_person_may_overrule_is_withheld_and_not_asked_again() -> None:
    library = Library({"topics/home": document(entry(11, "Has 2 cats and a dog", source="human"))})
    library.buffer("Has 3 cats and a dog")
    found, llm = compared(library, outdated((11, 12)))
    assert len(llm.calls) == 1
    assert (found.claims, found.notes) == ((), ("withheld: PROTECTED 11, 12",))


@each(
    ("lines", "claims", "held"),
    [
        (["Has 2 cats", "Has 3 cats"], [(1, 2, "duplicate")], ()),
        (["old", "new"], [(2, 1, "superseded")], ()),
        (["Has a cat", "Has a cat", "Has no cat"], [(1, 2, "duplicate"), (2, 3, "superseded")], (1, 2)),
        (["Has two cats", "Has two cats", "Has six cats"], [(1, 2, "duplicate"), (2, 3, "duplicate")], (1,)),
        (["same", "same"], [(1, 2, "duplicate"), (2, 1, "duplicate")], ()),
        (["same", "same", "same"], [(1, 2, "duplicate"), (2, 3, "duplicate"), (3, 2, "duplicate")], ()),
    ],
    ids=["numbers differ", "older", "chain", "broken chain", "circle", "into a circle"],
)
def test_claims_hold_only_where_the_law_lets_them(
    lines: list[str], claims: list[tuple[int, int, Any]], held: tuple[int, ...]
) -> None:
    view = Library().buffer(*lines)
    found, _ = allowed([Claim(*claim) for claim in claims], range(1, len(lines) + 1), view)
    assert tuple(claim.seq for claim in found) == held
    assert all(claim.by not in held for claim in found)


@given(st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_nonsense_leaves_every_survivor(seed: int) -> None:
    library = Library({"topics/home": document(entry(21, "Lives in Rome"), entry(22, "Drinks tea"))})
    library.buffer("Drinks tea", "Drinks tea", "Lives in Rome", "Lives in Oslo since 2020", "x", "北京")
    view = library.view()
    fresh = [place.entry for place in view.buffer.entries]
    stands = [place.entry for place in view.document("topics/home").entries]
    found = compare(fresh, stands, (), view, Asker(GarbageLLM(seed)))
    gone = {claim.seq for claim in found.claims}
    assert not gone & {claim.by for claim in found.claims}
