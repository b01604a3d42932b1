"""Clones of one library that were merged: an entry whose turn is in doubt cites every turn that it may be."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from infinimem import Memory, Turn, open_memory

ENTRY = re.compile(r"^- <seq=(\d+),.*?origin=([\d+-]+).*?> (.*)$", re.M)
TURN = re.compile(r"^- <seq=(\d+).*?> (.*)$", re.M)
DOUBT = "which had one number before a merge; take out of `origin` what is wrong"


def clone(origin: Path, name: str, *texts: str, observed: bool = True) -> Path:
    root = origin.with_name(name)
    shutil.copytree(origin, root, ignore=shutil.ignore_patterns(".infinimem"))
    memory = open_memory(root, model="offline")
    turns = [Turn(text, session=name, time="2025-03-01") for text in texts]
    memory.observe(turns) if observed else memory.record(turns)
    return root


def merged(
    tmp_path: Path, left: tuple[str, ...], right: tuple[str, ...], observed: bool = True
) -> tuple[Path, Memory]:
    """Both clones' files in the left one, as git merges them with `merge=union`."""
    origin = tmp_path / "origin"
    memory = open_memory(origin, model="offline", create=True)
    memory.observe([Turn("I live in Rome.", session="s0", time="2025-02-01")])
    ours, theirs = clone(origin, "left", *left), clone(origin, "right", *right, observed=observed)
    for path in (theirs / "evidence").glob("*-right.md"):
        shutil.copy(path, ours / "evidence")
    own = (ours / "CURRENT.md").read_text()
    new = [line for line in (theirs / "CURRENT.md").read_text().splitlines(True) if line not in own]
    (ours / "CURRENT.md").write_text(own + "".join(line for line in new if line.startswith("- <")))
    return ours, open_memory(ours, model="offline")


def said(root: Path) -> list[tuple[int, str]]:
    texts = "".join(path.read_text() for path in (root / "evidence").glob("*.md"))
    return [(int(seq), text) for seq, text in TURN.findall(texts)]


def drawn(root: Path) -> dict[str, list[int]]:
    """The turns that each entry cites, by its text; the number that an entry itself had is none."""
    found = {}
    for line in ENTRY.finditer((root / "CURRENT.md").read_text()):
        was = re.search(r"was=(\d+)", line[0])
        found[line[3]] = [int(seq) for seq in line[2].split("+") if was is None or seq != was[1]]
    return found


def doubts(memory: Memory) -> list[str]:
    return [one.what for one in memory.doctor() if DOUBT in one.what]


def test_an_entry_cites_every_turn_that_had_its_number(tmp_path: Path) -> None:
    """After a merge an entry cites all turns that it may come from, whatever they say; doctor names it."""
    root, memory = merged(tmp_path, ("I adopted a cat named Miso.",), ("I bought a kayak in June.",))
    texts = {text for _, text in said(root)}
    entries = set(drawn(root))
    assert len(entries) == 3
    memory.repair()
    turns = dict(said(root))
    assert set(turns.values()) == texts, "no text changes, and every turn has a number of its own"
    assert set(drawn(root)) == entries
    for text, cited in drawn(root).items():
        expected = {"I live in Rome."} if "Rome" in text else texts - {"I live in Rome."}
        assert {turns[seq] for seq in cited} == expected, text
    assert len(doubts(memory)) == 2
    memory.repair()
    assert len(doubts(memory)) == 2, "that is a person's to settle"


def test_a_person_settles_what_an_entry_comes_from(tmp_path: Path) -> None:
    """Whoever takes the wrong number out of `origin` is not asked again, and nothing puts it back."""
    root, memory = merged(tmp_path, ("I adopted a cat named Miso.",), ("I bought a kayak in June.",))
    memory.repair()
    current = root / "CURRENT.md"
    for cited in drawn(root).values():
        if len(cited) > 1:  # of two turns the first one is right, say
            wrong = "+".join(map(str, cited))
            current.write_text(current.read_text().replace(f"origin={wrong}", f"origin={cited[0]}"))
    settled = drawn(root)
    assert all(len(cited) == 1 for cited in settled.values())
    memory = open_memory(root, model="offline")
    assert doubts(memory) == []
    memory.repair()
    assert drawn(root) == settled


def test_what_numbers_tell_apart_is_not_in_doubt(tmp_path: Path) -> None:
    """An entry of one clone that has the number of the other's turn is no turn: nothing cites it."""
    root, memory = merged(
        tmp_path, ("I adopted a cat named Miso.",), ("I bought a kayak in June.", "My sister lives in Oslo.")
    )
    memory.repair()
    turns = dict(said(root))
    assert all(seq in turns for cited in drawn(root).values() for seq in cited)
    assert len({*turns}) == 4


def test_a_turn_that_waited_waits_again_once_a_person_says_so(tmp_path: Path) -> None:
    """A turn that waited under a cited number counts as drawn from until its number leaves that `origin`."""
    root, memory = merged(
        tmp_path, ("I adopted a cat named Miso.",), ("I bought a kayak in June.",), observed=False
    )
    memory.repair()
    assert memory.status()["pending"] == 0
    assert len(doubts(memory)) == 1
    cited = drawn(root)["I adopted a cat named Miso."]
    (kayak,) = (seq for seq, text in said(root) if "kayak" in text)
    assert kayak in cited
    current = root / "CURRENT.md"
    both = "+".join(map(str, cited))
    left = "+".join(str(seq) for seq in cited if seq != kayak)
    current.write_text(current.read_text().replace(f"origin={both}", f"origin={left}"))
    memory = open_memory(root, model="offline")
    assert (doubts(memory), memory.status()["pending"]) == ([], 1)
    memory.consolidate()
    assert any("kayak" in hit["snippet"] for hit in memory.tools.search("kayak")["hits"])


def test_a_later_merge_brings_an_entry_with_an_old_number(tmp_path: Path) -> None:
    """An entry that comes later and cites a number that two turns had cites both; doctor says so first."""
    root, memory = merged(tmp_path, ("I adopted a cat named Miso.",), ("I bought a kayak in June.",))
    memory.repair()
    (cited,) = {tuple(sorted(one)) for one in drawn(root).values() if len(one) == 2}
    with (root / "CURRENT.md").open("a") as file:
        file.write(f"- <seq=900,source=user,origin={cited[0]}> Paddles on Sundays\n")
    memory = open_memory(root, model="offline")
    (told,) = (one.what for one in memory.doctor() if "which another line had before a merge" in one.what)
    assert told == f"cites {cited[0]}, which another line had before a merge; it may come from {cited[1]}"
    memory.repair()
    assert sorted(drawn(root)["Paddles on Sundays"]) == list(cited)
