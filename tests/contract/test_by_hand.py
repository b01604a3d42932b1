"""What a person did to lines is taken in, told, and can be taken back (docs/FORMAT.md, Entry)."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from scripted import filing

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
        memory.observe([Turn(f"The {topic[7:]} is {word}.", session=word) for word in ("new", "blue")])
        model = ScriptedLLM(filing(topic) | {"merge": lambda _: {"groups": []}})
        assert open_memory(tmp_path / "m", model=model).consolidate()
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
    "deleted": (lambda a, b: (without(a, "new"), b), ["deleted"]),
    "moved": (lambda a, b: (without(a, "new"), b + line(a, "new")), ["moved by hand"]),
    "all at once": (
        lambda a, b: (f"{without(a, 'new')}- It hums.\n", without(b, "blue") + line(a, "new")),
        ["deleted", "moved by hand", "stamped"],
    ),
}


@pytest.mark.parametrize("hand", HANDS)
def test_what_was_done_by_hand_is_taken_in_and_can_be_taken_back(memory: Memory, hand: str) -> None:
    """The next receipt names each line and quotes what it was; no word changes; undo restores every byte."""
    paths = [memory.library.root / f"{topic}.md" for topic in (A, B)]
    untouched = [path.read_text() for path in paths]
    act, reasons = HANDS[hand]
    mine = list(act(*untouched))
    for path, text in zip(paths, mine, strict=True):
        path.write_text(text)
    memory.consolidate()
    receipt = memory.receipts()[-1]
    assert receipt.op == "stamp"
    assert sorted(re.sub(r"\d+", "N", row.why) for row in receipt.rows) == reasons
    signed = [path.read_text() for path in paths]
    for text, was in zip(signed, mine, strict=True):
        bare = [re.sub(r"^- <.*?> ", "- ", text.split("---\n")[-1], flags=re.M) for text in (text, was)]
        assert bare[0] == bare[1]
    seqs = [int(seq) for text in signed for seq in re.findall(r"^- <seq=(\d+)", text, re.M)]
    assert len(seqs) == len({*seqs}) == sum(text.count("\n- ") for text in mine)
    lost = {line(was, "new") for was in untouched[:1] if hand in ("edited", "deleted")}
    journal = (memory.library.root / f"{receipt.id}.md").read_text()
    assert all(one.strip() in journal for one in lost)
    for expected in (mine, signed)[: 1 if hand.startswith("pasted") else 2]:
        memory.undo(memory.receipts()[-1].id)
        assert [path.read_text() for path in paths] == expected
    memory.consolidate()
    assert [finding for finding in memory.doctor() if finding.level == "error"] == []
