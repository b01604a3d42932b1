"""The operators on small banks worked out by hand, and what is refused of a model's plans."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from allmem_library import Library, banked

from infinimem.retrieval.vectors import Vectors
from infinimem.strategies.allmem.operators import Editor
from infinimem.strategies.allmem.plans import Declined, Invalid, Part, merge_plan, split_plan, update_plan
from infinimem.strategies.allmem.spec import AllmemSettings
from infinimem.strategies.graph.links import Link
from infinimem.strategies.graph.rewire import Rewired
from infinimem.strategies.records.descriptor import Descriptor, descriptor, undescribed, unverified
from infinimem.strategies.records.record import UNVERIFIED, Quote, Ref
from infinimem.strategies.records.record_store import RecordStore
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
    assert edits.archived == (A,)
    assert bank.visible == {B, C, D, one, two}
    assert bank.text(one) == "turn 0"
    assert bank.records[two].refs == (Ref(1, (7, 14)),)
    assert bank.records[one].time == "2024-01-01"
    assert bank.graph.out(one, "version") == bank.graph.out(two, "version") == (A,)
    assert bank.graph.out(one, "sibling") == (two,)
    assert bank.graph.out(two, "sibling") == (one,)
    # B at 10 degrees is nearest to the sibling at 5, C at 80 to the one at 85.
    assert edits.redirected == (Rewired(B, A, one), Rewired(C, A, two))
    assert semantic(bank, B) == {one: 0.996}
    assert semantic(bank, C) == {two: 0.996, D: 0.5}
    assert semantic(bank, A) == {D: 0.5}
    # A new unit is linked to its neighbours on the surface, best first up to the cap.
    assert semantic(bank, one) == {B: 0.996, C: 0.259, D: 0.766, two: 0.174}


def test_caps_hold_for_siblings_and_out_links() -> None:
    editor = plane(0, 10, 80, 45, sibling=1, semantic=2)
    editor.split(A, [part(0, 4, 0), part(5, 6, 50), part(7, 14, 90)])
    one, two, three = (f"u-000001-0{number}" for number in (1, 2, 3))
    graph = editor.bank.graph
    assert graph.out(one, "sibling") == (two,)
    assert graph.out(two, "sibling") == (three,)  # 40 degrees away, the first is 50
    assert graph.out(three, "sibling") == (two,)
    assert set(semantic(editor.bank, one)) == {B, D}


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
    assert edits.redirected == (Rewired(D, A, None), Rewired(D, B, rep), Rewired(E, B, rep))
    assert set(semantic(bank, rep)) == {D, E}


def test_out_links_come_from_sources_too_and_only_lead_to_the_surface() -> None:
    editor = plane(0, 4, 90, 88, links={A: (C,), B: (D,)})
    editor.settings = replace(editor.settings, online_anchors=0)
    editor.bank.archive(D)
    editor.space.sync(editor.bank)
    editor.merge((A, B), Descriptor("2", ()))
    assert set(semantic(editor.bank, "u-000002-01")) == {C}


def test_an_update_renews_archives_links_and_redirects() -> None:
    editor = plane(0, 10, 20, links={B: (A,), C: (A, B)})
    edits = editor.update(B, A, Descriptor("12", ()))
    bank = editor.bank
    assert bank.records[B].summary == "12"
    assert bank.visible == {B, C}
    assert bank.graph.out(B, "version") == (A,)
    assert edits.archived == (A,)
    assert edits.added == ((B, "version", A),)
    assert edits.redirected == (Rewired(B, A, None), Rewired(C, A, None))  # no link to itself, none twice
    assert semantic(bank, B) == {}
    assert semantic(bank, C) == {B: 0.5}
    assert editor.space.cos(B, C) == round(float(np.cos(np.radians(8))), 6)


def test_an_update_by_the_same_descriptor_or_of_the_archive_is_idempotent() -> None:
    editor = plane(0, 10)
    editor.update(B, A, Descriptor("10", ()))
    before = editor.bank.copy()
    again = editor.update(B, A, Descriptor("10", ()))
    assert (again.archived, again.added, again.redirected) == ((), (), ())
    assert editor.bank.graph == before.graph
    assert editor.bank.records == before.records


@pytest.mark.parametrize(("sessions", "named"), [(("s1", "s1"), "s1"), (("s1", "s2"), None)])
def test_a_merge_of_two_sessions_names_none(sessions: tuple[str, str], named: str | None) -> None:
    library = Library()
    for session in sessions:
        library.say("I drink tea", session=session)
    bank, space = banked(library, ("tea", "drinks tea"), ("tea", "tea drinker"))
    editor = Editor(bank, space, AllmemSettings())
    editor.merge((A, B), Descriptor("drinks tea", ("tea",)))
    assert bank.records["u-000002-01"].session == named


@pytest.mark.parametrize(("summary", "doubted"), [("tea since 2019 in Rome", True), ("tea and chess", False)])
def test_what_an_operator_makes_is_marked_where_the_evidence_does_not_hold_it(
    summary: str, doubted: bool
) -> None:
    library = Library()
    library.say("I drink tea. I play chess.", "I play chess")
    found = Descriptor(summary, ("tea",))

    def edited() -> Editor:
        bank, space = banked(library, ("tea", "tea"), ("chess", "chess"))
        return Editor(bank, space, AllmemSettings())

    editor = edited()
    editor.split(
        A, [Part((Ref(1, (0, 12)),), Descriptor("drinks tea", ())), Part((Ref(1, (13, 26)),), found)]
    )
    assert [editor.bank.records[f"{A}-0{n}"].aux == UNVERIFIED for n in (1, 2)] == [False, doubted]
    editor = edited()
    editor.merge((A, B), found)
    assert (editor.bank.records[f"{B}-01"].aux == UNVERIFIED) is doubted
    editor = edited()
    editor.update(B, A, found)
    assert (editor.bank.records[B].aux == UNVERIFIED) is doubted


def test_ties_between_representatives_go_to_the_smaller_id() -> None:
    editor = plane(0, 0, links={B: (A,)})
    editor.split(A, [part(0, 4, 7), part(5, 9, 7)])
    assert set(semantic(editor.bank, B)) == {"u-000001-01"}


def test_a_representative_of_representatives_quotes_the_first_sources() -> None:
    editor = plane(0, 1, 2)
    editor.merge((A, B), Descriptor("0", ()))
    editor.merge(("u-000002-01", C), Descriptor("1", ()))
    assert [said.ref.seq for said in editor.bank.quotes("u-000003-01")] == [1, 2, 3]


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
    assert split_plan(bank, A, data, 0.8) == Invalid(sub)


def test_no_split_is_declined(bank: RecordStore) -> None:
    assert isinstance(split_plan(bank, A, segments(TEXT, do=False), 0.8), Declined)


def test_segments_may_come_in_any_order_and_repeat(bank: RecordStore) -> None:
    found = split_plan(bank, A, segments("I live in Rome.", " I play chess.", "I live in Rome."), 0.8)
    assert isinstance(found, tuple)
    assert [one.refs[0].span for one in found] == [(0, 15), (15, 29), (30, 45)]
    turned = split_plan(bank, A, segments("I play chess. I live in Rome.", "I live in Rome."), 0.8)
    assert isinstance(turned, tuple)
    assert [one.refs[0].span for one in turned] == [(0, 15), (16, 45)]


def test_descriptors_are_cleaned_and_bounded() -> None:
    found = descriptor(" Ana\n- <seq=1> x\x00 ", ["Tea", "tea", " ", "a\tb\nc", "TEA "])
    assert found == Descriptor("Ana - <seq=1> x\\u0000", ("Tea", "a b c"))
    assert found.fault is None
    assert Descriptor("s", ()).fault == Descriptor("", ("k",)).fault == "EMPTY"
    cut = descriptor("x" * 900, ["y" * 99, *"abcdefghijklmno"]).cut()
    assert (len(cut.summary), len(cut.keywords), len(cut.keywords[0])) == (600, 12, 60)
    assert cut.fault is None
    assert undescribed("a " * 300).summary == ("a " * 100).rstrip()
    assert merge_plan({"summary": "", "keywords": ["k"]}) == Invalid("EMPTY")
    assert update_plan({"updated_summary": "s", "updated_keywords": [" "]}) == Invalid("EMPTY")
    long = {"updated_summary": "x" * 10_000_000, "updated_keywords": ["k"]}
    assert update_plan(long) == Invalid("TOO_LONG")


def test_what_the_evidence_does_not_hold_is_marked() -> None:
    quotes = (Quote(Ref(1), "Ana", "2024-01-05", "I moved to Oslo and paid 14 euros."),)
    assert not unverified(Descriptor("Ana moved to Oslo, for 14 euros", ("Oslo",)), quotes)
    assert unverified(Descriptor("Ana moved to Rome", ("Oslo",)), quotes)
    assert unverified(Descriptor("Ana moved to Oslo", ("15",)), quotes)
