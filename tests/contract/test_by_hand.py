"""What a person did to lines is taken in, told, and can be taken back (docs/FORMAT.md, Entry)."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_runner import Shell
from scripted import keeping

from infinimem import Memory, Turn, open_memory
from infinimem.testing import ScriptedLLM

A, B = "topics/boiler", "topics/garden"


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    """Two topics of two lines each; nobody has touched them yet."""
    memory = open_memory(tmp_path / "m", model="offline", create=True)
    (tmp_path / "m/topics").mkdir(exist_ok=True)
    for topic in (A, B):
        (tmp_path / f"m/{topic}.md").write_text(f"# {topic[7:].capitalize()}\n")
        model = open_memory(tmp_path / "m", model=ScriptedLLM(keeping(topic)))
        model.observe([Turn(f"The {topic[7:]} is {word}.", session=word) for word in ("new", "blue")])
        assert model.consolidate()
    return memory


def line(text: str, words: str) -> str:
    return next(one for one in text.splitlines(True) if one.startswith("- <") and words in one)


def without(text: str, words: str) -> str:
    return text.replace(line(text, words), "")


def paste(a: str, b: str) -> tuple[str, str]:
    return a, b + line(a, "new")


def paste_and_edit(a: str, b: str) -> tuple[str, str]:
    return line(a, "new").replace("new", "old").join([a[: a.index("- <")], a[a.index("- <") :]]), b


HANDS: dict[str, tuple[Callable[[str, str], tuple[str, str]], list[str]]] = {
    "typed": (lambda a, b: (f"{a}- It hums.\n", b), ["stamped"]),
    "edited": (lambda a, b: (a.replace("> The boiler is new", "> The boiler is old"), b), ["edited"]),
    "pasted": (paste, ["renumbered from N"]),
    "pasted and edited": (paste_and_edit, ["renumbered from N"]),
    "broken": (lambda a, b: (a.replace("source=user", "source=me", 1), b), []),
    "deleted": (lambda a, b: (without(a, "new"), b), ["deleted"]),
    "moved": (lambda a, b: (without(a, "new"), b + line(a, "new")), ["moved by hand"]),
    "all at once": (
        lambda a, b: (f"{without(a, 'new')}- It hums.\n", without(b, "blue") + line(a, "new")),
        ["deleted", "moved by hand", "stamped"],
    ),
}


TORN = (b"\x00" * 50, b"0000\t3\ttopics/boiler\tnothing\n", b"\xff\xfe\n\n\t\t\t")


@pytest.mark.parametrize(
    ("hand", "torn"), [*((hand, b"") for hand in HANDS), *(("edited", one) for one in TORN)]
)
def test_what_was_done_by_hand_is_taken_in_and_can_be_taken_back(
    memory: Memory, hand: str, torn: bytes
) -> None:
    """The next receipt names each line and quotes what it was; no word changes; undo restores every byte."""
    root = memory.library.root
    with (root / ".infinimem/state.db").open("ab") as seen:
        seen.write(torn)
    paths = [root / f"{topic}.md" for topic in (A, B)]
    untouched, receipts = [path.read_text() for path in paths], memory.receipts()
    act, reasons = HANDS[hand]
    mine = list(act(*untouched))
    for path, text in zip(paths, mine, strict=True):
        path.write_text(text)
    memory.consolidate()
    new = memory.receipts()[len(receipts) :]
    assert [receipt.op for receipt in new] == ["stamp"] * bool(reasons)
    assert sorted(re.sub(r"\d+", "N", row.why) for receipt in new for row in receipt.rows) == reasons
    signed = [path.read_text() for path in paths]
    for text, was in zip(signed, mine, strict=True):
        assert re.sub(r"^- <.*?> ", "- ", text, flags=re.M) == re.sub(r"^- <.*?> ", "- ", was, flags=re.M)
    seqs = [int(seq) for text in signed for seq in re.findall(r"^- <seq=(\d+)", text, re.M)]
    assert len(seqs) == len({*seqs}) == sum(text.count("\n- ") for text in mine)
    if hand in ("edited", "deleted"):
        journal = (root / f"{new[0].id}.md").read_text()
        assert f"## As it was\n```markdown\n{line(untouched[0], 'new')}```\n" in journal
    if hand == "edited":
        was = line(untouched[0], "new").replace("source=user,by=model", "source=human")
        assert line(signed[0], "old") == was.replace("new", "old")
    if hand.startswith("pasted"):
        (seq, origin) = (
            re.findall(rf"{key}=(\d+)", line(untouched[0], "new"))[0] for key in ("seq", "origin")
        )
        assert sum(f"origin={origin}+{seq}>" in text for text in signed) == (hand != "pasted")
    assert memory.view.uncited() == ()
    back = untouched if hand == "edited" else mine  # never does a signature stand before other words
    for expected in (back, signed)[: 1 if hand.startswith("pasted") else 2] if new else ():
        memory.undo(memory.receipts()[-1].id)
        assert [path.read_text() for path in paths] == expected
    memory.consolidate()
    assert hand == "broken" or [one for one in memory.doctor() if one.level == "error"] == []


TEA = r"(?m)^- <seq=2,source=(\w+),.*> (.*)$"


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """A library with the fact 2, sorted, whose word a person changed in the file since."""
    shell = Shell(tmp_path, monkeypatch)
    for words in (["init"], ["add", "My favourite tea is sencha."], ["consolidate"]):
        assert shell(*words).code == 0
    correct(shell, "sencha", "oolong")
    return shell


def correct(shell: Shell, old: str, new: str) -> None:
    (path,) = (shell.library / "topics").glob("*.md")
    path.write_text(path.read_text().replace(f"tea is {old}", f"tea is {new}"))


def tea(shell: Shell) -> tuple[str, str]:
    """Whose words line 2 is, and how it reads, wherever it stands."""
    paths = [*(shell.library / "topics").glob("*.md"), shell.library / "CURRENT.md"]
    (found,) = (match for path in paths for match in re.findall(TEA, path.read_text()))
    return found


def test_an_edit_is_told_and_undone_word_for_word(shell: Shell) -> None:
    """`consolidate` says that it noted an edit, `undo` brings the words of before back, `diff` tells it."""
    said = shell("consolidate").err
    assert said.startswith("1 line changed by hand, as noted in journal/0002-stamp-")
    assert said.count("\n") == 1
    assert tea(shell) == ("human", "My favourite tea is oolong.")
    assert shell("undo").code == 0
    assert tea(shell) == ("user", "My favourite tea is sencha.")
    told = shell("diff").out
    assert "oolong" in told
    assert "sencha" in told
    assert shell("consolidate").err == "nothing waits, there was nothing to do\n"
    assert shell("undo").code == 0
    assert tea(shell) == ("human", "My favourite tea is oolong.")
    correct(shell, "oolong", "rooibos")
    assert shell("consolidate").code == 0
    assert shell("undo").code == 0
    assert tea(shell) == ("human", "My favourite tea is oolong."), "an edit of an edit, likewise"


def test_an_edit_that_undo_finds_is_noted_first(shell: Shell) -> None:
    """A line goes back as it reads by now, and is a person's own, though nobody had noted the edit."""
    assert shell("undo", "1").code == 0
    assert tea(shell) == ("human", "My favourite tea is oolong.")


@pytest.mark.parametrize("pasted", [True, False])
def test_an_edit_is_not_undone_where_its_line_would_stand_nowhere_or_twice(
    shell: Shell, pasted: bool
) -> None:
    """Undo of an edit whose line was pasted as well, or taken away since, is refused and writes nothing."""
    (path,) = (shell.library / "topics").glob("*.md")
    edited = path.read_text()
    if pasted:
        path.write_text(edited + line(edited, "oolong").replace("oolong", "rooibos"))
    assert shell("consolidate").code == 0
    if not pasted:
        path.write_text(re.sub(TEA, "Tea.", path.read_text()))
    left = path.read_text()
    shell("undo", "2").failed(1, "line 2 would stand nowhere, or twice" if pasted else "cannot be undone")
    assert path.read_text() == left


def test_undo_of_a_pin_keeps_what_was_typed_since(shell: Shell) -> None:
    assert shell("add", "My bike is red.").code == 0
    memory = open_memory(shell.library, model="offline")
    (seq,) = (place.seq for place in memory.view.buffer.entries)
    memory.pin(seq)
    path = shell.library / "CURRENT.md"
    path.write_text(path.read_text().replace("is red", "is gold"))
    assert "changed the same later" in shell("undo").err
    assert "My bike is gold." in path.read_text()


def test_a_time_before_all_times_is_the_beginning(shell: Shell) -> None:
    assert shell("log", "--since", "9999y").out == shell("log", "--since", "2020-01-01").out != ""
