"""What is forgotten while another process asks its model does not come back with the model's answer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from forget_library import holding

from infinimem import Turn, open_memory
from infinimem.llm.base import Reply, Task, Wrapper
from infinimem.llm.connect import connect
from infinimem.settings import ModelSettings
from infinimem.user_folders import user_folder

SECRET = "Imogen Zweig pawned the sapphire ring in Tallinn."
TURNS = (
    Turn("The harbour crane in Tallinn was painted yellow.", session="s", speaker="Ana"),
    Turn(SECRET, session="s", speaker="Ana"),
    Turn("The ring road in Tallinn is closed until May.", session="s", speaker="Ana"),
    Turn("My bicycle has a flat tyre again.", session="t", speaker="Ana"),
)


class Interrupted(Wrapper):
    """Answers by the rules, quoting what it was shown; during the call of that number lines are forgotten."""

    name, base_url = "small", "http://localhost/v1"  # so that replies are kept

    def __init__(self, root: Path, at: int) -> None:
        self.rules = connect("offline", ModelSettings())
        super().__init__(self.rules)
        self.root, self.left = root, at

    def complete(self, task: Task, variables: Mapping[str, Any]) -> Reply:
        """Answer, and let another process forget before the answer arrives."""
        reply = self.rules.complete(task, variables)
        self.left -= 1
        if self.left == 0:
            open_memory(self.root, model="offline").forget(match="sapphire")
        return reply


def kept_replies() -> list[Path]:
    """All files of the cache."""
    return [one for one in (user_folder("cache") or Path()).rglob("*") if one.is_file()]


@pytest.mark.sample(5)
@pytest.mark.parametrize("at", [1, 2, 3, 5])
@pytest.mark.parametrize("strategy", ["infini", "allmem", "gam", "recmem", "xmemory"])
def test_nothing_derived_before_a_forget_is_written_after_it(tmp_path: Path, strategy: str, at: int) -> None:
    """Whatever was derived from a snapshot older than a forget is discarded, under every strategy."""
    root = tmp_path / "m"
    model = Interrupted(tmp_path / "m", 0)
    memory = open_memory(root, model=model, strategy=strategy, create=True)
    memory.record(TURNS)
    model.left = at
    memory.observe([])
    memory.consolidate()
    if model.left > 0:
        pytest.skip("the strategy asks no such call")
    assert holding(SECRET, root) == []
    assert holding("sapphire", root) == []
    assert [one for one in kept_replies() if b"sapphire" in one.read_bytes()] == []
    kept = {place.text for place in memory.view.entries("evidence")}
    assert kept == {turn.text for turn in TURNS} - {SECRET}
    assert not memory.view.uncited()
    assert [finding for finding in memory.doctor() if finding.level == "error"] == []


def test_a_dry_run_shows_and_leaves_nothing_that_was_forgotten_while_it_ran(tmp_path: Path) -> None:
    """A dry run during which lines are forgotten ends in an error, and leaves no word of them."""
    root = tmp_path / "m"
    model = Interrupted(root, 0)
    memory = open_memory(root, model=model, create=True)
    memory.observe(TURNS)
    model.left = 1
    with pytest.raises(Exception, match="forgotten"):
        memory.preview()
    assert holding("sapphire", root) == []
    assert [one for one in kept_replies() if b"sapphire" in one.read_bytes()] == []
