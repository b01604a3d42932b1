"""The operators on small banks worked out by hand, and what is refused of a model's plans."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from allmem_library import Library, banked

from infinimem.retrieval.vectors import Vectors
from infinimem.strategies.allmem.operators import Editor, Part, split_plan
from infinimem.strategies.allmem.spec import AllmemSettings
from infinimem.strategies.graph.links import Link
from infinimem.strategies.records.record import Ref
from infinimem.strategies.records.record_store import RecordStore
from infinimem.strategies.records.telling import Descriptor
from infinimem.strategies.vector_index import VectorIndex

A, B, C, D, E = (f"u-00000{number}" for number in range(1, 6))


class Plane:
    """Vectors in a plane: a unit's summary is its angle in degrees."""

    name, size, semantic = "plane", 2, True

    def embed(self, texts: Any) -> np.ndarray:
        angles = np.radians([float(text.split("\n")[1]) for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def plane(*angles: float, links: dict[str, tuple[str, ...]] | None = None, **caps: Any) -> Editor:
    """Units at these angles, by number, with semantic links."""
    library = Library()
    library.say(*(f"turn {at} and more words" for at in range(len(angles))), time="2024-01-01")
    bank, _ = banked(library, *[("k", str(angle)) for angle in angles])
    for name, targets in (links or {}).items():
        bank.graph.put(name, "semantic", [Link("semantic", to, 0.5) for to in targets])
    space = VectorIndex(Vectors(None, Plane()))
    space.sync(bank)
    return Editor(bank, space, AllmemSettings(**{f"degree_{kind}": cap for kind, cap in caps.items()}))


def part(start: int, end: int, angle: float, seq: int = 1) -> Part:
    return Part((Ref(seq, (start, end)),), Descriptor(str(angle), ()))


def semantic(bank: RecordStore, name: str) -> dict[str, float | None]:
    return {link.to: link.weight for link in bank.graph.links(name, "semantic")}


def test_a_split_archives_links_redirects_and_joins_its_siblings() -> None:
    editor = plane(0, 10, 80, 45, links={B: (A,), C: (A, D), A: (D,)})
    edits = editor.split(A, [part(0, 6, 5), part(7, 14, 85)])
    one, two = "u-000001-01", "u-000001-02"
    bank = editor.bank
    assert edits.created == (one, two)
    assert bank.visible == {B, C, D, one, two}
    assert bank.text(one) == "turn 0"
    assert bank.records[two].refs == (Ref(1, (7, 14)),)
    assert bank.records[one].time == "2024-01-01"
    assert bank.graph.out(one, "version") == bank.graph.out(two, "version") == (A,)
    assert bank.graph.out(one, "sibling") == (two,)
    assert bank.graph.out(two, "sibling") == (one,)
    # B at 10 degrees is nearest to the sibling at 5, C at 80 to the one at 85.
    assert edits.redirected == {B, C}
    assert semantic(bank, B) == {one: 0.996}
    assert semantic(bank, C) == {two: 0.996, D: 0.5}
    assert semantic(bank, A) == {D: 0.5}
    # A new unit is linked to its neighbours on the surface, best first up to the cap.
    assert semantic(bank, one) == {B: 0.996, C: 0.259, D: 0.766, two: 0.174}


def test_a_merge_stands_for_its_sources() -> None:
    editor = plane(0, 4, 90, 60, 30, links={A: (C,), B: (A, D), D: (A, B, C), E: (B,)}, semantic=2)
    edits = editor.merge((A, B), Descriptor("2", ()))
    rep = "u-000002-01"
    bank = editor.bank
    unit = bank.records[rep]
    assert (unit.sources, unit.refs, unit.time, unit.session) == ((A, B), (), "2024-01-01", "s1")
    assert bank.text(rep) == "turn 0 and more words\nturn 1 and more words"
    assert bank.visible == {C, D, E, rep}
    assert bank.graph.out(rep, "version") == (A, B)
    # D led to both and to C: one link to the representative is left beside C, within the cap.
    assert semantic(bank, D) == {rep: 0.53, C: 0.5}
    assert semantic(bank, E) == {rep: 0.883}
    assert semantic(bank, B) == {A: 0.5, D: 0.5}  # what is archived keeps its links
    assert edits.redirected == {D, E}
    assert set(semantic(bank, rep)) == {D, E}


def test_an_update_renews_archives_links_and_redirects() -> None:
    editor = plane(0, 10, 20, links={B: (A,), C: (A, B)})
    edits = editor.update(B, A, Descriptor("12", ()))
    bank = editor.bank
    assert bank.records[B].summary == "12"
    assert bank.visible == {B, C}
    assert bank.graph.out(B, "version") == (A,)
    assert edits.redirected == {B, C}  # no link to itself, none twice
    assert semantic(bank, B) == {}
    assert semantic(bank, C) == {B: 0.5}
    assert editor.space.cos(B, C) == round(float(np.cos(np.radians(8))), 6)


# ── plans ───────────────────────────────────────────────────────────────────────────────────────


def segments(*texts: str, do: bool = True, summary: str = "s", keywords: tuple[str, ...] = ("k",)) -> Any:
    rows = [
        {
            "segment_text": text,
            "segment_summary": summary,
            "segment_keywords": list(keywords),
            "topic_label": "t",
        }
        for text in texts
    ]
    return {"do_split": do, "segments": rows, "split_rationale": ""}


TEXT = "I live in Rome. I play chess. I live in Rome."


@pytest.fixture
def bank() -> RecordStore:
    library = Library()
    library.say(TEXT)
    return banked(library, ("k", "s"))[0]


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("data", "sub"),
    [
        (segments("I live", do=False), "NOT_WHOLE"),
        (segments(TEXT, TEXT, do=False), "NOT_WHOLE"),
        (segments(do=False), "NOT_WHOLE"),
        (segments(TEXT), "TOO_FEW"),
        (segments(), "TOO_FEW"),
        (segments(*"I live in Rome.".split(), *TEXT.split()[4:9]), "TOO_MANY"),
        (segments("I live in Rome.", "I play checkers."), "NOT_SUBSTRING"),
        (segments("I live in Rome.", "i play chess."), "NOT_SUBSTRING"),
        (segments("I live in Rome.", ""), "EMPTY"),
        (segments("I live in Rome.", " "), "EMPTY"),
        (segments("I live in Rome. I play", "I play chess. I live in Rome."), "OVERLAP"),
        (segments(*["I live in Rome."] * 3), "OVERLAP"),
        (segments("I live in Rome.", "I play"), "COVERAGE"),
        (segments("I live in Rome.", TEXT[16:], summary=" \n"), "EMPTY"),
        (segments("I live in Rome.", TEXT[16:], keywords=("", "  ")), "EMPTY"),
        (segments("I live in Rome.", TEXT[16:], summary="x" * 601), "TOO_LONG"),
        (segments("I live in Rome.", TEXT[16:], keywords=("x" * 61,)), "TOO_LONG"),
        (segments("I live in Rome.", TEXT[16:], keywords=tuple("abcdefghijklm")), "TOO_LONG"),
    ],
)
def test_a_split_that_is_not_of_the_text_is_refused(bank: RecordStore, data: Any, sub: str) -> None:
    assert split_plan(bank, A, data, 0.8) == sub
