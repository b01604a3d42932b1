"""A note that is imported again stands as it is now; what it no longer holds is archived until an undo."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_runner import Shell

FLAT = ("The landlord is Mr. Ode.", "The rent is 500 euros.", "The cellar is dry.")


@pytest.fixture
def note(shell: Shell) -> Path:
    """A note that was imported, and what was drawn from it sorted into topics."""
    shell("init", ".")
    folder = shell.home / "notes"
    folder.mkdir()
    path = folder / "flat.md"
    _write(path, *FLAT)
    assert shell("import", str(path)).code == 0
    assert shell("consolidate").code == 0
    return path


def _write(path: Path, *paragraphs: str) -> None:
    path.write_text("\n\n".join(paragraphs) + "\n")


def _lines(shell: Shell, *places: str) -> list[str]:
    paths = [path for place in places for path in sorted(shell.library.glob(place))]
    rows = [row for path in paths for row in path.read_text().split("\n")]
    return sorted(row.split("> ", 1)[1] for row in rows if row.startswith("- <"))


def _live(shell: Shell) -> list[str]:
    return _lines(shell, "CURRENT.md", "topics/*.md")


def test_an_edited_note_takes_the_place_of_what_it_was(shell: Shell, note: Path) -> None:
    """Lines drawn from what an edited note no longer says are archived as reimported; undo puts them back."""
    said = _lines(shell, "evidence/*.md")
    _write(note, FLAT[0], "The rent is 600 euros.", FLAT[2])
    assert shell("import", str(note)).code == 0
    assert _live(shell) == sorted([FLAT[0], "The rent is 600 euros.", FLAT[2]])
    assert _lines(shell, "archive/*.md") == [FLAT[1]]
    assert "## Reimported" in next((shell.library / "archive").glob("*.md")).read_text()
    assert _lines(shell, "evidence/*.md") == sorted([*said, "The rent is 600 euros."])
    assert "600" in shell("search", "rent").out
    assert "500" not in shell("search", "rent").out
    assert shell("doctor", "--json").json["findings"] == []

    assert shell("undo").code == 0
    assert FLAT[1] in _live(shell)
    assert _lines(shell, "archive/*.md") == []


def test_an_unchanged_note_brings_nothing(shell: Shell, note: Path) -> None:
    """Importing a note again that did not change writes nothing, alone or with its folder."""
    before = shell.tree()
    for path in (note, note.parent):
        assert shell("import", str(path), "--json").json["recorded"] == 0
        assert shell.tree() == before


@pytest.mark.parametrize("name", ["home.md", "2024-03-10.md", "deeper/flat.md"])
def test_a_note_under_a_new_name_is_the_same_note(shell: Shell, note: Path, name: str) -> None:
    """The same content under another name or in another folder doubles nothing, and edits of it count."""
    renamed = note.parent / name
    renamed.parent.mkdir(exist_ok=True)
    note.rename(renamed)
    before = shell.tree()
    assert shell("import", str(renamed), "--json").json["recorded"] == 0
    assert shell.tree() == before
    for rent in ("The rent is 600 euros.", "The rent is 700 euros."):
        _write(renamed, FLAT[0], FLAT[2], rent)
        assert shell("import", str(renamed)).code == 0
        assert _live(shell) == sorted([FLAT[0], FLAT[2], rent])
    before = shell.tree()
    shell("import", str(renamed))
    assert shell.tree() == before


def test_a_renamed_note_of_a_vault_is_the_same_note(shell: Shell, note: Path) -> None:
    """In a vault, where a note is about its name, a new name doubles nothing."""
    (note.parent / ".obsidian").mkdir()
    garden = note.parent / "Garden.md"
    _write(garden, "Two figs stand there.", "The well is deep.")
    shell("import", str(note.parent))
    garden.rename(note.parent / "Yard.md")
    before = _live(shell)
    assert shell("import", str(note.parent), "--json").json["recorded"] == 0
    assert _live(shell) == before


def test_a_persons_edit_and_a_pin_win(shell: Shell, note: Path) -> None:
    """A line that a person edited or pinned stays live, whatever the note says now."""
    (topic,) = [path for path in (shell.library / "topics").glob("*.md") if FLAT[1] in path.read_text()]
    text = topic.read_text().replace("The rent is 500 euros.", "The rent is 500 euros, warm.")
    topic.write_text(text.replace(",origin=3>", ",origin=3,pin=yes>"))
    _write(note, FLAT[0])
    assert shell("import", str(note)).code == 0
    assert "The rent is 500 euros, warm." in _live(shell)
    assert FLAT[2] in _live(shell)


def test_what_comes_back_into_a_note_stands_again(shell: Shell, note: Path) -> None:
    """A passage that was taken out and put back is live again."""
    for rent in ("The rent is 600 euros.", FLAT[1]):
        _write(note, FLAT[0], rent, FLAT[2])
        assert shell("import", str(note)).code == 0
        assert _live(shell) == sorted([FLAT[0], rent, FLAT[2]])
    before = shell.tree()
    shell("import", str(note))
    assert shell.tree() == before


def test_another_note_and_a_conversation_of_the_same_name_stay(shell: Shell, note: Path) -> None:
    """Only the note that is imported loses lines: not one of the same name elsewhere, not what was said."""
    other = note.parent / "other" / "flat.md"
    other.parent.mkdir()
    _write(other, "The keys are at Zoe's.", "The bell is broken.", FLAT[1])
    shell("import", str(other))
    shell("add", "The door is green.", "--session", "flat")
    _write(note, FLAT[0])
    assert shell("import", str(note)).code == 0
    assert _live(shell) == sorted(
        [FLAT[0], "The keys are at Zoe's.", "The bell is broken.", FLAT[1], "The door is green."]
    )


def test_what_was_only_recorded_goes_too(shell: Shell, note: Path) -> None:
    """Of what is recorded and not drawn from yet, nothing is drawn once the note no longer holds it."""
    _write(note, *FLAT, "The roof leaks.")
    shell("import", str(note), "--record")
    _write(note, *FLAT)
    shell("import", str(note), "--record")
    shell("consolidate")
    assert _live(shell) == sorted(FLAT)
