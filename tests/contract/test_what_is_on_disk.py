"""The promises of docs/FORMAT.md and docs/FIVE.md: what a person's bytes, names and records go through."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cli_runner import Shell
from scripted import OFFLINE, SAMPLE, filing

from infinimem import Memory, Turn, open_memory
from infinimem.model import Move, NewEntry, Plan
from infinimem.store.view import Applied
from infinimem.testing import ScriptedLLM

SIGNED = re.compile(r"^- <seq=(\d+)[,>].*$", re.M)
RECORDS = ("allmem", "gam", "recmem", "xmemory")


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """On a copy of the sample library whose buffer went to topics."""
    shell = Shell(tmp_path, monkeypatch)
    shutil.copytree(SAMPLE, shell.library, dirs_exist_ok=True)
    shell("consolidate", *OFFLINE)
    return shell


def file(shell: Shell, name: str) -> Path:
    return shell.library / f"{name}.md"


def file_away(shell: Shell, text: str) -> None:
    """Add a line and consolidate."""
    assert shell("add", text, *OFFLINE).code == 0
    assert shell("consolidate", *OFFLINE).code == 0


# ── headers ─────────────────────────────────────────────────────────────────────────────────────

BOMB = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9))
HEADERS = {
    "bomb": f"a0: &a0 [x]\n{BOMB}",
    "alias": "title: &a Heron\nsummary: *a\n",
    "duplicate keys": "title: Heron\ntitle: Egret\n",
    "one MB": f"title: {'x' * (1 << 20)}\n",
    "deep": f"title: {'[' * 5000}{']' * 5000}\n",
    "custom tag": "title: !!python/object/apply:os.system [exit 3]\n",
    "no YAML": "title: [Heron\n: : :\n",
}


@pytest.mark.sample(7)
@pytest.mark.parametrize("folder", ["topics", "notes"])
@pytest.mark.parametrize("name", HEADERS)
def test_a_hostile_header_makes_a_plain_note(shell: Shell, name: str, folder: str) -> None:
    """What cannot be read as a header is text: found, named by `doctor` in topics, and never overwritten."""
    path = file(shell, f"{folder}/heron")
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"---\n{HEADERS[name]}---\n# Heron\n\nThe heronry is behind the weir.\n")
    before = path.read_bytes()
    assert "behind the weir" in shell("search", "heronry weir").out
    assert "Heron" in shell("ls").out + shell("read", f"{folder}/heron").out
    file_away(shell, "The heronry behind the weir has nine nests.")
    assert path.read_bytes() == before
    assert "nine nests" in shell("search", "nests").out
    findings = shell("--json", "doctor").json["findings"]
    assert folder == "notes" or any("topics/heron" in one["where"] for one in findings)


MINE = ["mood: 'calm'   # on most days", 'tags: [cat, "grey tabby"]', "aliases: [Pep]", "x-score:   007"]
PROSE = "Her *own* basket  stands by the stove.\t\n\n> quoted\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_a_persons_bytes_survive_a_consolidation(shell: Shell, ends: str, bom: str) -> None:
    """Keys, comments, quotes, prose, BOM and CRLF of a person stay byte for byte when lines are added."""
    path = file(shell, "topics/pepper")
    text = path.read_text().replace(
        "title: Pepper\n", "title: Pepper\n" + "".join(f"{one}\n" for one in MINE)
    )
    text = bom + text.replace("# Pepper\n", f"# Pepper\n\n{PROSE}\n", 1)
    path.write_bytes(text.replace("\n", ends).encode())
    file_away(shell, "Pepper has a new vet on Elm street.")
    after = path.read_bytes().decode()
    assert "Elm street" in after
    assert after.startswith(f"{bom}---{ends}")
    for part in (*(f"{ends}{one}{ends}" for one in MINE), PROSE.replace("\n", ends)):
        assert part in after
    assert after.count("\n") == after.count(ends)
    assert SIGNED.findall(text) == SIGNED.findall(after)[: len(SIGNED.findall(text))]
    assert shell("read", "Pep").code == 0


def test_a_topic_tells_its_type_from_its_next_change_on(shell: Shell) -> None:
    """`type: topic` comes with a change alone, never by reading, and a person's own `type` stays."""
    ours, theirs, untouched = (file(shell, f"topics/{name}") for name in ("pepper", "dutch", "books"))
    for path, line in ((ours, ""), (theirs, "type: course\n"), (untouched, "")):
        path.write_text(path.read_text().replace("type: topic\n", line))
    before = untouched.read_bytes()
    shell("read", "topics/books")
    shell("search", "books")
    file_away(shell, "Pepper has a new vet on Elm street.")
    file_away(shell, "Dutch classes are hard.")
    assert "\ntype: topic\n" in ours.read_text()
    assert "\ntype: course\n" in theirs.read_text()
    assert "type: topic" not in theirs.read_text()
    assert untouched.read_bytes() == before


def test_a_renamed_document_has_its_new_path_as_id(shell: Shell) -> None:
    """A person's new name counts at once; the next consolidation notes it, and the old one stays an alias."""
    path = file(shell, "topics/pepper").rename(file(shell, "topics/the-cat"))
    path.write_text(path.read_text().replace("title: Pepper\n", "title: Pepper\naliases: [Pep]\n"))
    ids = [one["id"] for one in shell("--json", "ls").json["docs"]]
    assert "topics/the-cat" in ids
    assert "topics/pepper" not in ids
    file_away(shell, "Pepper has a new vet on Elm street.")
    text = file(shell, "topics/the-cat").read_text()
    assert "\nid: topics/the-cat\n" in text
    assert "Elm street" in text
    assert not file(shell, "topics/pepper").exists()
    for name in ("pepper", "Pep"):
        assert shell("--json", "read", name).json["doc_id"] == "topics/the-cat"


def test_an_alias_leads_on_after_merges(shell: Shell) -> None:
    """Of topics that merge one slug survives, and the others lead to it; no line and no note changes."""
    settings = "[infini]\nmerge_frequency = 1\nmerge_trigger_min_count = 2\n"
    (shell.library / "infinimem.toml").write_text(settings)
    (shell.library / "diary.md").write_text("See [[topics/dutch]] and [[books]].\n")

    def lines() -> list[tuple[int, str]]:
        texts = (path.read_text() for path in shell.library.glob("topics/*.md"))
        return sorted((int(found[1]), found[0]) for text in texts for found in SIGNED.finditer(text))

    before = lines()
    for pair in (["topics/coffee", "topics/dutch"], ["topics/books", "topics/coffee"]):
        shell("add", f"Espresso is bitter, {pair[0]}.", *OFFLINE)
        groups = {"groups": [{"doc_ids": pair, "reason": "alike"}]}
        script = {**filing("topics/work"), "merge": [groups]}
        open_memory(shell.library, model=ScriptedLLM(script)).consolidate()
    found = {shell("--json", "read", name).json["doc_id"] for name in ("coffee", "dutch", "books")}
    assert len(found) == 1
    (survivor,) = found
    kept = survivor.split("/")[1]
    gone = {"coffee", "dutch", "books"} - {kept}
    assert not [name for name in gone if file(shell, f"topics/{name}").exists()]
    assert set(before) <= set(lines())
    assert (shell.library / "diary.md").read_text() == "See [[topics/dutch]] and [[books]].\n"
    assert shell("doctor").code == 0


@pytest.mark.parametrize("place", ["topics/pepper", "CURRENT"])
def test_a_task_stays_prose_and_a_typed_line_is_signed(shell: Shell, place: str) -> None:
    """`- [ ]` and `- [x]` get no signature and keep their place; any other item that is typed gets one."""
    path = file(shell, place)
    tasks = "- [ ] buy a basket\n- [x] call the vet\n"
    typed = "Her basket is *blue*"
    path.write_text(
        f"{path.read_text().rstrip()}\n\n{tasks}\n- {typed}\n" if path.exists() else f"{tasks}\n- {typed}\n"
    )
    file_away(shell, "Pepper has a new vet on Elm street.")
    texts = "".join(one.read_text() for one in (path, *shell.library.glob("topics/*.md")))
    assert tasks in path.read_text()
    assert re.search(rf"^- <seq=\d+,source=human[^>]*> {re.escape(typed)}$", texts, re.M)


def test_block_ids_are_no_part_of_the_text(shell: Shell) -> None:
    """With `block_ids = true` new entries end in ^seq, and nothing else changes."""
    before = {path: path.read_text() for path in shell.library.glob("topics/*.md")}
    (shell.library / "infinimem.toml").write_text("block_ids = true\n")
    (seq,) = shell("--json", "add", "Pepper has a new vet on Elm street.", *OFFLINE).json["entries"]
    assert f"Elm street. ^{seq}\n" in file(shell, "CURRENT").read_text()
    shell("consolidate", *OFFLINE)
    topic = next(one for one in shell.library.glob("topics/*.md") if "Elm street" in one.read_text())
    assert f"Elm street. ^{seq}\n" in topic.read_text()
    assert {found[0] for found in SIGNED.finditer(before.get(topic, ""))} <= set(
        topic.read_text().splitlines()
    )
    items = shell("--json", "retrieve", "new vet on Elm street").json["items"]
    assert [one["text"] for one in items if seq in one["seqs"]] == ["Pepper has a new vet on Elm street."]
    evidence = "".join(one.read_text() for one in shell.library.glob("evidence/*.md"))
    assert f"^{seq}" not in evidence


def test_a_preview_is_what_is_written_then(tmp_path: Path) -> None:
    """What a consolidation would write is what it then writes, by the checksums of its receipt."""
    shutil.copytree(SAMPLE, root := tmp_path / "library")
    memory = open_memory(root, model="offline", clock=lambda: datetime(2026, 1, 1, tzinfo=UTC))

    def sums(shown: Mapping[str, tuple[bytes, bytes]]) -> set[tuple[str, ...]]:
        return {(name, *map(sha, pair)) for name, pair in shown.items()}

    def sha(data: bytes) -> str:
        return hashlib.sha256(data).hexdigest() if data else "-"

    memory.observe([])  # what was said last is extracted first
    shown, receipt = memory.preview(), memory.consolidate()
    assert receipt
    assert sums(shown) == {*receipt.files}
    home = [place.seq for place in memory.view.document("topics/home").entries]
    for plan in (
        Plan("merge", moves=tuple(Move(seq, "topics/our-house", "House") for seq in home)),
        Plan("consolidate", adds=(NewEntry("The cellar is damp", (1,), to="topics/our-house"),)),
    ):
        assert isinstance(memory.library.apply(plan), Applied)
    assert memory.view.document("topics/our-house").summary == "our house"  # until something describes it


# ── records, and five systems over one folder ───────────────────────────────────────────────────


def talkative(root: Path) -> None:
    """Three sessions of the sample library, and a matter that recurs."""
    (root / "evidence").mkdir(parents=True)
    for session in sorted((SAMPLE / "evidence").glob("*.md"))[:3]:
        shutil.copy(session, root / "evidence")
    memory = open_memory(root, model="offline", create=True)
    words = "My bike needs new tyres again, that makes"
    memory.record(Turn(f"{words} {n}.", session=f"t{n}", time=f"2026-01-0{n}T10:00:00") for n in range(1, 9))
    memory.consolidate()


def records(root: Path, strategy: str) -> dict[str, bytes]:
    folder = root / strategy
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(folder.rglob("*.md"))}


@pytest.mark.parametrize("strategy", RECORDS)
def test_records_come_back_from_the_evidence(tmp_path: Path, strategy: str) -> None:
    """Any record can be deleted; `rebuild` makes it again from the evidence, byte for byte."""
    root = tmp_path / "library"
    talkative(root)
    memory: Memory = open_memory(root, model="offline", strategy=strategy)
    memory.rebuild()
    evidence, made = records(root, "evidence"), records(root, strategy)
    assert made
    for name in list(made)[::2]:
        (root / name).unlink()
    memory.rebuild()
    assert records(root, strategy) == made
    memory.close()
    for folder in (strategy, ".infinimem"):
        shutil.rmtree(root / folder)
    memory = open_memory(root, model="offline", strategy=strategy)
    memory.rebuild()
    assert records(root, strategy) == made
    assert records(root, "evidence") == evidence
    assert [one for one in memory.doctor() if one.level == "error"] == []


def test_five_systems_keep_one_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All five keep the same evidence, none touches what another wrote, and `compare` asks each."""
    shell = Shell(tmp_path, monkeypatch)
    talkative(shell.library)
    everything = ("evidence", "topics", "archive", *RECORDS)
    for strategy in RECORDS:
        before = {name: records(shell.library, name) for name in everything if name != strategy}
        assert shell("rebuild", "--strategy", strategy, *OFFLINE).code == 0
        assert {name: records(shell.library, name) for name in everything if name != strategy} == before
        assert records(shell.library, strategy)
    rows = shell("--json", "compare", "What does Pepper the cat eat?", *OFFLINE).json["strategies"]
    assert sorted(row["strategy"] for row in rows) == ["allmem", "gam", "infini", "recmem", "xmemory"]
    for row in rows:
        assert row["answer"]
        assert "salmon" in " ".join(item["text"] for item in row["evidence"]), row["strategy"]
    assert shell("doctor").code == 0
