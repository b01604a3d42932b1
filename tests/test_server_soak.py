"""A longer conversation with a real, tiny model, and consolidations in between: nonsense costs no line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from fault_library import lines, problems
from fault_replies import overheard
from server import HastyClient

from infinimem import Turn, open_memory

pytestmark = [pytest.mark.server, pytest.mark.soak]

SESSIONS = (
    (
        ("user", "I moved to Lisbon in March and I am allergic to peanuts."),
        ("assistant", "Good to know: no peanuts for you in Lisbon."),
        ("user", "My sister Rita visits on 14 June with her two children."),
    ),
    (
        ("user", "Rita came a week later, on 21 June, and stayed for 9 days."),
        ("user", "I run ten kilometres every Sunday along the river."),
        ("assistant", "Your shoes will not last long then."),
        ("user", "They did not, I bought new ones for 120 euros."),
    ),
    (
        ("user", "I moved again: it is Porto now, near the bridge."),
        ("tool", '{"weather": "rain", "city": "Porto", "celsius": 14}'),
        ("user", "Thanks!"),
    ),
)


def test_a_model_that_talks_nonsense_costs_no_line(
    tmp_path: Path, model_url: str, record_property: Callable[[str, object], None]
) -> None:
    root = tmp_path / "m"
    open_memory(root, model="offline", create=True)
    (root / "infinimem.toml").write_text(
        "[infini]\nplan_retries = 1\nmarkdown_length = 300\nmerge_frequency = 2\n"
        "[reader]\nmax_iterations = 2\n"
    )
    client = HastyClient("smollm2", model_url, api_key="none", timeout=120, retries=0)
    memory = open_memory(root, model=client)
    plans = overheard(memory)
    told: dict[int, str] = {}
    for number, session in enumerate(SESSIONS):
        before = lines(memory.view)
        memory.observe(
            [
                Turn(text, role, session=f"s{number}", turn=f"{number}:{turn}", time=f"2025-0{number + 5}-01")
                for turn, (role, text) in enumerate(session)
            ]
        )
        view = memory.view
        assert view.uncited() == ()
        assert set(before) <= set(lines(view))
        before = lines(view)
        told |= {seq: place.text for seq, _ in before if (place := view.entry(seq))}
        assert problems(root, told) == []

        memory.consolidate()
        view = memory.view
        assert view.buffer.entries == ()
        assert before == lines(view)
        assert problems(root, told) == []
    said = [text for session in SESSIONS for _, text in session]
    assert sorted(place.text for place in view.entries("evidence")) == sorted(said)
    silent = {place.seq for place in view.entries("evidence")} - view.cited
    assert silent == {seq for plan in plans for seq in (*plan.empty, *plan.refused)} - view.cited
    assert set(view.unfiled()) == {seq for plan in plans for seq in plan.refused} - view.cited
    answer = memory.ask("Who visited in June?")
    assert answer.text
    assert "answer" in client.asked
    rejected = [reply for plan in plans for reply in plan.rejected]
    record_property("calls", len(client.asked))
    record_property("tasks", " ".join(sorted(set(client.asked))))
    record_property("rejected", len(rejected))
    record_property("lines", len(lines(view)))
