"""What `forget` takes, what it leaves and says so, and what `undo`, `--as-of` and `rename` do about it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_runner import Shell
from forget_library import holding

from infinimem import open_memory
from infinimem.adapters.file_tree import FileTree

FRIENDS = (
    ("Imogen is a friend from school and collects sapphires.", "school"),
    ("My sister Rita has a new flat in Porto.", "family"),
    ("Our family friend Bruno repairs old radios.", "family"),
)


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = Shell(tmp_path, monkeypatch)
    made("init")
    return made


def topic(shell: Shell, name: str, title: str, *lines: str) -> Path:
    """A topic that a person named and filled by moving entries there; without lines that stand in CURRENT."""
    current = shell.library / "CURRENT.md"
    text = current.read_text()
    entries = [line for line in text.split("\n") if line.startswith("- <")]
    moved = [line for line in entries if any(words in line for words in lines)]
    left = "\n".join(line for line in text.split("\n") if line not in moved)
    path = shell.library / f"topics/{name}.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"---\nid: topics/{name}\ntitle: {title}\n---\n# {title}\n" + "\n".join(moved) + "\n")
    current.write_text(left)
    shell("consolidate")
    return path


def said(shell: Shell, *turns: tuple[str, str]) -> None:
    for text, session in turns:
        assert shell("-q", "add", text, "--session", session).code == 0


def test_names_titles_and_headings_of_other_lines_stay(shell: Shell) -> None:
    """A document keeps its file name, title and heading, though a forgotten line shares a word with them."""
    said(shell, *FRIENDS)
    path = topic(shell, "family-and-friends", "Family and friends", "Rita", "Bruno")
    assert shell("forget", "--match", "Imogen", "--yes").code == 0
    text = path.read_text()
    assert "title: Family and friends\n" in text and "# Family and friends\n" in text
    assert "summary: Other" not in text
    assert "Rita" in text and "Bruno" in text
    assert holding("Imogen", shell.library) == []


def test_a_line_becomes_a_tombstone_where_it_stood(shell: Shell) -> None:
    """In the evidence and in the topic a comment with the number stands in the line's place."""
    said(shell, *FRIENDS)
    path = topic(shell, "people", "People", "Imogen", "Rita")
    seqs = [row["seq"] for row in shell("--json", "forget", "--match", "Imogen", "--yes").json["rows"]]
    assert len(seqs) == 2
    assert f"<!-- forgotten: {seqs[1]} -->\n" in path.read_text()
    assert shell("doctor").code == 0
    assert "Imogen" not in shell("search", "Imogen sapphires").out


def test_a_tombstone_is_not_shown_and_not_found(shell: Shell) -> None:
    """The comment in a forgotten line's place is an empty line for whoever reads, and no search's hit."""
    said(shell, *FRIENDS)
    path = topic(shell, "people", "People", "Imogen", "Rita", "Bruno")
    path.write_text(path.read_text() + "\nProse of mine.\n")
    shell("forget", "--match", "Imogen", "--yes")
    assert "<!-- forgotten: " in path.read_text()
    for command in ("search Rita --full", "search forgotten --scope all", "grep forgotten", "read people"):
        assert "forgotten:" not in shell(*command.split()).out, command
    assert open_memory(shell.library, model="offline").retrieve("forgotten").items == ()
    assert "forgotten" in shell("blame", "people").out


def test_a_name_is_reported_and_rename_changes_it_in_receipts_too(shell: Shell) -> None:
    """A forgotten word in a title or file name is reported, not changed; `rename` takes it out everywhere."""
    said(shell, *FRIENDS)
    path = topic(shell, "imogen", "Imogen", "Imogen", "Rita")
    left = shell("--json", "forget", "--match", "Imogen", "--yes").json["left"]
    assert path.exists()
    assert [one["path"] for one in left if one["path"] != "CURRENT.md"] == ["topics/imogen.md"]
    assert "infinimem rename topics/imogen NEW" in left[-1]["why"]
    done = shell("--json", "rename", "topics/imogen", "School friends").json
    assert (done["was"], done["now"], done["left"]) == ("topics/imogen", "topics/school-friends", [])
    assert holding("Imogen", shell.library) == [] == holding("imogen", shell.library)
    assert "title: School friends\n" in (shell.library / "topics/school-friends.md").read_text()
    assert shell("doctor").code == 0
    assert "Rita" in shell("read", "school-friends").out


def test_the_name_of_a_session_is_changed_by_rename_though_its_file_is_gone(shell: Shell) -> None:
    """What only receipts still name can be renamed."""
    said(shell, ("I keep a fish.", "my_zebrafish"), FRIENDS[1])
    shell("consolidate")
    (left,) = shell("--json", "forget", "--session", "my_zebrafish", "--yes").json["left"]
    name = left["path"].removesuffix(".md")
    assert not (shell.library / left["path"]).exists()
    assert shell("--json", "rename", name, "pets").json["left"] == []
    assert holding("zebrafish", shell.library) == []


def test_a_renamed_session_keeps_its_lines_and_its_turns(shell: Shell) -> None:
    """An evidence file gets another name and session; history finds the turn there."""
    said(shell, *FRIENDS)
    shell("consolidate")
    (old,) = shell.library.glob("evidence/*-school.md")
    now = shell("--json", "rename", old.stem, "College days").json["now"]
    text = (shell.library / f"{now}.md").read_text()
    assert "session: College days\n" in text and FRIENDS[0][0] in text
    assert now in shell("history", "1").out
    assert shell("doctor").code == 0


@pytest.mark.parametrize(
    "name, new, words",
    [
        ("mine", "Other", "note"),
        ("nowhere", "Other", "no document"),
        ("topics/a", "***", "no name"),
        ("topics/a", "B", "there is topics/b already"),
    ],
)
def test_a_name_that_cannot_be_given_changes_nothing(shell: Shell, name: str, new: str, words: str) -> None:
    """A wrong rename is one line of error and writes nothing."""
    said(shell, *FRIENDS)
    (shell.library / "mine.md").write_text("mine\n")
    topic(shell, "a", "A", "Imogen")
    topic(shell, "b", "B", "Rita")
    before = shell.tree()
    ran = shell("rename", name, new)
    assert ran.code in (1, 2) and words in ran.err and ran.err.count("\n") == 1, ran
    assert shell.tree() == before


def test_undo_after_a_forget_takes_back_all_but_the_forgotten_lines(shell: Shell) -> None:
    """`undo` passes over a forget, takes back the consolidation, and says what stays forgotten."""
    said(shell, *FRIENDS)
    shell("consolidate")
    shell("forget", "--match", "Imogen", "--yes")
    ran = shell("undo")
    assert ran.code == 0, ran
    assert "1 forgotten line stays forgotten" in ran.err
    current = (shell.library / "CURRENT.md").read_text()
    assert "Rita" in current and "Bruno" in current
    assert list(shell.library.glob("topics/*.md")) == []
    assert holding("Imogen", shell.library) == []
    assert shell("doctor").code == 0
    assert shell("consolidate").code == 0 and "Rita" in shell("search", "Rita").out


def test_a_forget_is_not_undone_and_stands_in_nobodys_way(shell: Shell) -> None:
    """A forget named outright is refused; every earlier receipt can be undone, newest first, and again."""
    said(shell, *FRIENDS)
    shell("consolidate")
    said(shell, ("Rita paints boats.", "boats"))
    shell("consolidate")
    shell("forget", "--match", "sapphires", "--yes")
    shell("undo", "3").failed(1, "gone for good")
    assert [shell("undo", number).code for number in ("2", "1")] == [0, 0]
    assert shell("undo").code == 0, "an undo is undone"
    assert holding("sapphires", shell.library) == []
    assert shell("doctor").code == 0


def test_the_past_shows_no_forgotten_text(shell: Shell) -> None:
    """At every moment the past shows what stays, and of the forgotten line nothing but a tombstone."""
    said(shell, *FRIENDS)
    shell("consolidate")
    path = next(shell.library.glob("topics/*.md"))
    path.write_text(path.read_text().replace("Rita", "Rita and Imogen"))
    shell("consolidate")
    shell("forget", "--match", "sapphires", "--yes")
    for moment in ("1", "3", "6", "journal/0001-consolidate", "2", "99"):
        for command in (["ls"], ["read", "CURRENT"], ["grep", "o"], ["search", "Imogen sapphires friend"]):
            assert "sapphires" not in shell(*command, "--as-of", moment).out
    assert "Rita" in shell("grep", "Rita", "--as-of", "journal/0001-consolidate").out


def test_old_derived_text_goes_out_of_receipts(shell: Shell) -> None:
    """A summary or heading that quoted the line is in no receipt, and undo makes it anew."""
    said(shell, *FRIENDS)
    path = topic(shell, "people", "People", "Imogen", "Rita")
    text = path.read_text()
    path.write_text(text.replace("---\n# People", 'summary: "sapphires, says Imogen"\n---\n# People', 1))
    said(shell, ("Rita and Bruno paint boats in Porto.", "boats"))
    shell("consolidate")
    shell("forget", "--match", "sapphires", "--yes")
    assert holding("sapphire", shell.library) == [] == holding("Imogen", shell.library)
    for _ in range(4):
        shell("undo")
        assert holding("sapphire", shell.library) == [] == holding("Imogen", shell.library)
        assert shell("doctor").code == 0


def test_a_topic_that_holds_nothing_else_goes_and_a_persons_prose_stays(shell: Shell) -> None:
    """A document goes with its last line, unless a person wrote into it."""
    said(shell, *FRIENDS)
    alone = topic(shell, "alone", "Alone", "Imogen")
    both = topic(shell, "both", "Both", "Bruno")
    both.write_text(both.read_text() + "\nI must call him. The umbrella (forgotten)\n")
    shell("forget", "--match", "Imogen|Bruno", "--yes")
    assert not alone.exists()
    assert "I must call him. The umbrella (forgotten)\n" in both.read_text()


def test_a_rename_is_passed_over_by_undo_and_the_past_has_the_new_name(shell: Shell) -> None:
    """After a rename every receipt can still be undone, and the past is shown under the new name."""
    said(shell, *FRIENDS)
    topic(shell, "imogen", "Imogen", "Imogen", "Rita")
    shell("-q", "add", "Rita is fond of anchovies.", "--session", "later")
    shell("consolidate")
    shell("rename", "imogen", "School friends")
    assert "Rita" in shell("read", "topics/school-friends", "--as-of", "journal/0001-stamp").out
    assert shell("log").code == 0
    shell("undo", "journal/9999-rename").failed(2, "there is no receipt")
    while (ran := shell("undo")).code == 0 and "undo" not in shell("log", "-n", "2").out.split("\n")[1]:
        assert shell("doctor").code == 0, ran
    assert shell("doctor").code == 0
    assert "topics/imogen" not in "".join(path.read_text() for path in shell.library.glob("journal/*.md"))


def test_every_line_of_a_models_own_file_is_taken(shell: Shell) -> None:
    """A forgotten word stands in no line of a file of the memory tool, the first one included."""
    shell("add", "The zebra fund is for Lena.")
    file = shell.library / "memories/plans.md"
    file.parent.mkdir(exist_ok=True)
    file.write_text("zebra fund: do not mention\n\nbuy bread\n\nthe zebra again\n")
    shell("forget", "--match", "zebra", "--yes")
    assert "zebra" not in file.read_text() and "buy bread" in file.read_text()


def test_a_file_of_the_memory_tool_is_renamed_whole(tmp_path: Path) -> None:
    """A model's own file gets another name and keeps every byte."""
    memory = open_memory(tmp_path / "m", model="offline", create=True)
    text = "# Imogen\nlikes tea\n"
    FileTree(memory).run({"command": "create", "path": "/memories/imogen.txt", "file_text": text})
    done = memory.rename("memories/imogen.txt", "A friend")
    assert done.now == "memories/a-friend.txt"
    assert (tmp_path / "m/memories/a-friend.txt.md").read_text() == text
    assert [one.path for one in done.left] == ["memories/a-friend.txt.md"], "its text is the model's"


def imported(shell: Shell, *titles: str) -> None:
    """Import a ChatGPT export with a conversation of each title, about its number."""
    talks = []
    for number, title in enumerate(titles):
        said = {"content_type": "text", "parts": [f"My therapist number {number} is named Wilma{number}."]}
        message = {"id": "a", "author": {"role": "user"}, "create_time": 1.7e9 + number, "content": said}
        node = {"id": "a", "parent": None, "children": [], "message": message}
        talk = {"id": f"c0ffee{number}", "title": title, "create_time": 1.7e9, "mapping": {"a": node}}
        talks.append({**talk, "current_node": "a"})
    path = shell.library.parent / "conversations.json"
    path.write_text(json.dumps(talks))
    assert shell("-q", "import", str(path)).code == 0


def test_an_import_brings_lines_back_and_forget_says_so(shell: Shell) -> None:
    """Of lines that came by an import `forget` says, before and after, that the next one brings them back."""
    imported(shell, "Therapy")
    said(shell, *FRIENDS)
    told = "the next import of the same file brings them back"
    assert told not in shell("forget", "--match", "Imogen", "--yes").out
    assert told in shell("forget", "--match", "Wilma0").err
    assert told in shell("forget", "--match", "Wilma0", "--yes").out
    imported(shell, "Therapy")
    assert holding("Wilma0", shell.library)


def test_a_session_is_forgotten_by_its_title_where_one_session_has_it(shell: Shell) -> None:
    """A title that no other session has names its session; else those that begin so are named."""
    imported(shell, "Therapy question", "Therapy question about sleep", "Bike", "Bike")
    ran = shell("forget", "--session", "Bike", "--yes")
    ran.failed(2, "no session is called 'Bike'; these begin so: Bike c0ffee2, Bike c0ffee3")
    shell("forget", "--session", "Therapy", "--yes").failed(2, "Therapy question about sleep c0ffee1")
    assert shell("forget", "--session", "Therapy question", "--yes").code == 0
    assert holding("Wilma0", shell.library) == []
    assert all(holding(f"Wilma{number}", shell.library) for number in (1, 2, 3))
