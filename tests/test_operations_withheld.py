"""Archivings that the law withholds: both lines stay live, the proposal waits for a person."""

from __future__ import annotations

from pathlib import Path

from infinimem.model import Move, NewEntry, Plan, Reason, Turn, Withheld
from infinimem.store.create import init
from infinimem.store.library import Library
from infinimem.store.outcome import Applied


def filled(root: Path) -> tuple[Library, list[int]]:
    """An archiving of a person's own line is proposed beside a wrong one."""
    library = init(root)
    (library.root / "CURRENT.md").write_text("- I live in Lisbon\n")
    library.adopt_edits()
    told = library.record([Turn("I moved to Porto"), Turn("I like tea")])
    outcome = library.apply(Plan(adds=tuple(NewEntry(place.text, (place.seq,)) for place in told)))
    assert isinstance(outcome, Applied)
    return library, [place.seq for place in outcome.view.buffer.entries]


def test_what_a_strategy_did_not_even_propose_to_move_is_kept_too(tmp_path: Path) -> None:
    library, (lisbon, porto, _) = filled(tmp_path / "memory")
    meant = Move(lisbon, "topics/home", "", "superseded", porto)
    plan = Plan(
        "consolidate",
        moves=(Move(porto, "topics/home", "Home"),),
        withheld=(Withheld(meant, Reason("PROTECTED", (lisbon, porto))),),
    )
    library.apply(plan)
    assert [proposal.move for proposal in library.proposals()] == [meant]


def test_a_damaged_proposal_is_passed_over(tmp_path: Path) -> None:
    library, _ = filled(tmp_path / "memory")
    folder = library.root / ".infinimem/withheld"
    folder.mkdir()
    (folder / "0009.json").write_text("{")
    (folder / "x.json").write_text('[{"move": {}, "code": "PROTECTED"}]')
    assert library.proposals() == ()
