"""People's words in files that the program empties, links, and who is credited."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_runner import Shell
from forget_library import holding

from infinimem import open_memory
from infinimem.model import Move, Plan


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = Shell(tmp_path, monkeypatch)
    made("init")
    return made


def entry(shell: Shell, text: str, session: str = "s") -> str:
    """A new entry's line, taken out of CURRENT."""
    shell("-q", "add", text, "--session", session)
    path = shell.library / "CURRENT.md"
    lines = path.read_text().split("\n")
    (line,) = (line for line in lines if line.startswith("- <") and line.endswith(text))
    path.write_text("\n".join(one for one in lines if one != line))
    return line


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    "body",
    [
        "# Mine\rmy own words about it\r{}\r",
        "# Mine\u2028my own words about it\n{}\n",
        "# Mine\x0bmy own words about it\n{}\n",
    ],
    ids=["bare CR", "line separator", "vertical tab"],
)
@pytest.mark.parametrize("way", ["move", "forget", "undo"])
def test_a_file_with_a_persons_words_is_not_removed_with_its_last_entry(
    shell: Shell, body: str, way: str
) -> None:
    """Line ends that make words look like a heading do not lose them when the last entry leaves."""
    line = entry(shell, "The kiln in Lucerne was sold.")
    path = shell.library / "topics/kiln.md"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes((body.format("") + "\n" + line + "\n").encode())
    shell("consolidate")
    assert "my own words about it" in path.read_text()
    if way == "forget":
        shell("forget", "--match", "Lucerne", "--yes")
    elif way == "undo":
        shell("undo")
    else:
        memory = open_memory(shell.library, model="offline")
        (place,) = memory.view.document("topics/kiln").entries
        memory.library.apply(Plan("consolidate", moves=(Move(place.seq, "topics/other", "Other"),)))
        assert "Lucerne" in (shell.library / "topics/other.md").read_text()
    assert holding("my own words about it", shell.library / "topics") == ["kiln.md"]


def test_a_comment_in_the_header_is_a_persons_word(shell: Shell) -> None:
    """A topic whose header has a comment outlives its last line."""
    line = entry(shell, "The kiln in Lucerne was sold.")
    path = shell.library / "topics/kiln.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"---\n# ask Urs before this is changed\ntitle: Kiln\n---\n{line}\n")
    shell("consolidate")
    shell("forget", "--match", "Lucerne", "--yes")
    assert "ask Urs" in path.read_text()


@pytest.mark.parametrize("way", ["undo", "forget", "by hand"])
def test_no_topic_links_to_one_that_is_gone(shell: Shell, way: str) -> None:
    """Whatever takes a topic away takes the links to it along, with the next receipt at the latest."""
    first, second = (
        entry(shell, "We met Quirin at Lake Garda.", "a"),
        entry(shell, "Old Quirin sings at home.", "b"),
    )
    (shell.library / "topics").mkdir(exist_ok=True)
    for name, line, other in (("one", first, "two"), ("two", second, "one")):
        header = f'---\nid: topics/{name}\nsee_also: ["[[topics/{other}]]"]\n---\n'
        (shell.library / f"topics/{name}.md").write_text(f"{header}# {name}\n{line}\n")
    shell("consolidate")
    if way == "forget":
        shell("forget", "--match", "Garda", "--yes")
    else:
        (shell.library / "topics/one.md").unlink()
        shell("consolidate")
    assert not (shell.library / "topics/one.md").exists()
    if way == "undo":
        shell("undo")
    for path in shell.library.glob("topics/*.md"):
        if "[[topics/one]]" in path.read_text():
            assert (shell.library / "topics/one.md").exists()


def test_blame_credits_the_person_who_edited_a_line(shell: Shell) -> None:
    """A line that a person changed is theirs; who said it before is told as what it was."""
    shell("-q", "add", "The rent is 900 francs.", "--speaker", "Nora", "--session", "s")
    shell("consolidate")
    (path,) = shell.library.glob("topics/*.md")
    text = path.read_text()
    number = 1 + next(n for n, line in enumerate(text.split("\n")) if line.startswith("- <"))
    path.write_text(text.replace("900 francs", "950 francs"))
    name = f"topics/{path.stem}:{number}"
    for _ in range(2):  # before and after the edit is taken in
        (row,) = shell("--json", "blame", name).json["rows"]
        assert (row["kind"], row["source"]) == ("entry", "human")
        assert "edited" in row["why"] and "Nora" in row["why"]
        out = shell("blame", name).out
        assert "edited by a person" in out
        shell("consolidate")


def test_undo_names_the_receipt_that_is_in_its_way(shell: Shell) -> None:
    """Where a program wrote since, undo says which receipt, and not that a person did."""
    (shell.library / "infinimem.toml").write_text('format = 1\nstrategy = "allmem"\n')
    for text in ("I live in Lisbon.", "I moved from Lisbon to Porto.", "My dog Rex barks."):
        shell("-q", "add", text, "--session", "s")
    shell("consolidate")
    numbers = [row["id"] for row in shell("--json", "log").json["rows"]]
    for name in numbers[::-1]:
        ran = shell("undo", name)
        assert "by hand" not in ran.err, ran
