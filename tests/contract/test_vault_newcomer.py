"""What somebody meets who tries it in a folder of notes, and tells it rules to work by, without a model."""

from __future__ import annotations

import pytest
from cli_runner import Shell


@pytest.mark.parametrize(
    ("note", "question", "quotation"),
    [
        ("The bill was 40. Paid by card.\n", "What was the bill?", "The bill was 40. Paid by card."),
        ("The parrot came in 2019. It eats seeds.\n", "When did the parrot come?", "came in 2019. It eats"),
        ("Frame number KX 40917. Tyres 700x38.\n", "What is the frame number?", "KX 40917. Tyres"),
        ("The parrot came in\n2019. It eats seeds.\n", "When did the parrot come?", "came in 2019. It eats"),
        ("The bill was\n40. Paid by card.\n", "Paid how?", "40. Paid"),
    ],
)
def test_a_quotation_keeps_the_number_that_ends_a_sentence(
    shell: Shell, note: str, question: str, quotation: str
) -> None:
    """What is quoted of a note is what stands there, numbers before a full stop too."""
    (shell.library / "Zed.md").write_text(note)
    (shell.library / ".obsidian").mkdir()
    assert quotation in shell("ask", question).out.splitlines()[1]  # the first line says that it quotes
    assert quotation in shell("retrieve", question).out


RULES = [
    "Always run ruff before you commit.",
    "You must run the tests before committing.",
    "Don't push to main.",
    "Always run black before you push.",
    "Run ruff before each commit.",
    "Run the linter before each commit, every time.",
    "You should always ask me before you delete files.",
    "Stop adding comments to every line.",
    "Please always run ruff before you commit.",
    "Always run ruff before you commit in this project, and never use f-strings in log calls.",
    "Always write a test before the code.",
    "Remember to always run ruff before committing.",
    "Never push to main without asking me.",
    "Whenever you change a file, run ruff.",
    "Before you commit, always run ruff.",
    "You must not edit generated files.",
]
ONCE = [
    "Run the tests now.",
    "Don't worry.",
    "Don't forget the milk today",
    "Can you always run ruff?",
    "Don't run the tests now.",
    "Don't touch that.",
    "Don't tell me you broke it.",
    "Stop the server.",
    "Run the tests before you leave today.",
    "You must try this place before you leave.",
    "Always happy to help!",
    "Never use em dashes?",
    "Never mind.",
]


@pytest.mark.parametrize("text", RULES)
def test_a_standing_instruction_is_kept_whole(shell: Shell, text: str) -> None:
    """What the user says always, never or each time to do is an instruction, word for word."""
    shell("init")
    assert f"\t{text}\n" in shell("add", f"Hi! {text} Thanks.").out
    assert text in shell("read", "topics/instructions-and-preferences").out


@pytest.mark.parametrize("text", ONCE)
def test_what_is_asked_for_once_is_no_instruction(shell: Shell, text: str) -> None:
    """A request for now, encouragement and a question leave no entry."""
    shell("init")
    assert shell("--json", "add", text).json["entries"] == []


def test_writing_in_a_folder_of_notes_says_where_it_goes(shell: Shell) -> None:
    """`add` in a vault says on stderr that the default library is written, and nothing elsewhere."""
    default = shell.home / ".local/share/infinimem/default"
    assert "writing to" not in shell("add", "I have a cat.").err
    (shell.library / ".obsidian").mkdir()
    (shell.library / "Tea.md").write_text("Steep it for three minutes.\n")
    before = shell.tree()
    told = f"writing to {default}, not to the notes in {shell.library}; to write here: infinimem init\n"
    assert shell("add", "I have a dog.").err.count(told) == 1
    assert told not in shell("--library", str(default), "add", "I have a fish.").err
    assert told not in shell("-q", "add", "I have a horse.").err
    assert shell.tree() == before
    shell("init")
    assert "writing to" not in shell("add", "I have a hen.").err


@pytest.mark.parametrize("command", ["doctor", "lint", "history 1", "log"])
def test_what_needs_a_library_names_the_notes(shell: Shell, command: str) -> None:
    """Where there is no library but notes, the error names them and what they need."""
    (shell.library / "Tea.md").write_text("Steep it for three minutes.\n")
    shell(*command.split()).failed(1, f"--library . reads the notes in {shell.library}, ")
