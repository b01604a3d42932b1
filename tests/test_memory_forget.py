"""Forgetting through the facade: what somebody saves at the last moment is forgotten with the rest."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from fault_library import problems
from forget_library import held

from infinimem.memory import Memory, open_memory
from infinimem.model import Move, NewEntry, Plan, Turn

SECRET = "My psoriasis is back this spring."
TYPED = "The psoriasis cream is in the blue box."
OTHER = "A line that has nothing to do with it."


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Memory:
    """A secret in topics/health, another line in topics/bike; entries 3 and 4."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = open_memory(tmp_path / "m", model="offline", create=True)
    told = made.library.record([Turn(SECRET, session="a"), Turn("My bike is red.", session="b")])
    made.library.apply(Plan(adds=tuple(NewEntry(place.text, (place.seq,)) for place in told)))
    moves = (Move(3, "topics/health", "Skin"), Move(4, "topics/bike", "Bike"))
    made.library.apply(Plan("consolidate", moves=moves))
    return made


def forgotten(memory: Memory, texts: Sequence[str] = (SECRET, TYPED)) -> None:
    """None of the texts stands anywhere; what has nothing to do with them does."""
    root = memory.library.root
    assert held(texts, root) == {}
    assert "My bike is red." in (root / "topics/bike.md").read_text()
    assert OTHER in (root / "topics/bike.md").read_text()
    assert problems(root, {}) == []


def test_what_is_saved_just_before_is_forgotten_too(memory: Memory) -> None:
    """Also of a library so large that not every call looks at each of its files."""
    root = memory.library.root
    (root / "notes").mkdir()
    for number in range(400):
        (root / "notes" / f"{number}.md").touch()
    memory.consolidate()
    assert len(memory.view.ids()) > 400
    with (root / "topics/bike.md").open("a") as file:
        file.write(f"- {TYPED}\n- {OTHER}\n")
    done = memory.forget(match="psoriasis")
    assert done.receipt is not None
    forgotten(memory)


@pytest.mark.parametrize("match", ["psoriasis", "blue box"], ids=["among others", "alone"])
def test_what_an_editor_saved_late_is_forgotten_too(memory: Memory, match: str) -> None:
    """It wrote into a file that it held open while a consolidation put another in its place."""
    root = memory.library.root
    with (root / "topics/bike.md").open("a") as editor:
        told = memory.library.record([Turn("The bike has a bell.", session="b")])
        memory.library.apply(Plan(adds=(NewEntry(told[0].text, (told[0].seq,)),)))
        memory.library.apply(Plan("consolidate", moves=(Move(6, "topics/bike", "Bike"),)))
        editor.write(f"- {TYPED}\n- {OTHER}\n")
    assert TYPED not in (root / "topics/bike.md").read_text()
    assert memory.forget(match=match).receipt is not None
    forgotten(memory, [TYPED] if match == "blue box" else [SECRET, TYPED])
