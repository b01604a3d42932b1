"""Names of receipts: two machines give one name only to the same change."""

from __future__ import annotations

import re
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cli_runner import Shell

from infinimem import Memory, Turn, open_memory

NOON = datetime(2025, 3, 3, 12, tzinfo=UTC)
NAME = re.compile(r"journal/(\d{4})-consolidate(-[0-9a-f]{6})")


def opened(root: Path) -> Memory:
    return open_memory(root, model="offline", create=True, clock=lambda: NOON)


def consolidated(root: Path, *texts: str) -> str:
    """The receipt's id, once these were said and sorted at a moment that is the same everywhere."""
    memory = opened(root)
    memory.observe([Turn(text, session="s1", time="2025-03-01") for text in texts])
    receipt = memory.consolidate()
    assert receipt is not None
    return receipt.id


@pytest.fixture
def merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Shell, str, str]:
    """A library with a receipt 2 of each of two clones, merged by copying what the other has not."""
    shell = Shell(tmp_path, monkeypatch)
    consolidated(shell.library, "I live in Rome.")
    other = shutil.copytree(shell.library, tmp_path / "other")
    ours = consolidated(shell.library, "I adopted a cat named Miso.")
    theirs = consolidated(other, "I adopted a cat named Momo.")
    shutil.copy(other / f"{theirs}.md", shell.library / "journal")
    return shell, ours, theirs


def test_the_same_change_has_one_name_and_any_other_another(tmp_path: Path) -> None:
    """The name holds a number, the op and a checksum of the change: equal for equal changes alone."""
    texts = ("I live in Rome.", "I adopted a cat named Miso.")
    first, same = (consolidated(tmp_path / name, *texts) for name in ("a", "b"))
    assert NAME.fullmatch(first)
    assert first == same
    assert [path.read_bytes() for path in sorted((tmp_path / "a").rglob("*.md"))] == [
        path.read_bytes() for path in sorted((tmp_path / "b").rglob("*.md"))
    ]
    others = {
        consolidated(tmp_path / "c", *texts, "I bought a kayak."),  # another line
        consolidated(tmp_path / "d", "I live in Bonn.", texts[1]),  # another text of it
        consolidated(tmp_path / "a", "I bought a kayak."),  # another number
    }
    assert len({first, *others}) == 4


def test_documents_call_a_receipt_by_number_and_checksum(tmp_path: Path) -> None:
    """An update log says which receipt changed the document, whatever else has that number."""
    number, suffix = NAME.fullmatch(consolidated(tmp_path / "m", "I live in Rome.")).groups()  # type: ignore[union-attr]
    (topic,) = (tmp_path / "m/topics").iterdir()
    assert f"receipt: {int(number)}{suffix}," in topic.read_text()


def test_two_receipts_of_one_number_are_both_listed_and_read(merged: tuple[Shell, str, str]) -> None:
    """After a merge of clones `log` has both, and each can be read by its name."""
    shell, *both = merged
    assert both[0][:12] == both[1][:12] == "journal/0002"
    assert {row["id"] for row in shell("--json", "log").json["rows"]} > set(both)
    for name in both:
        assert "## Files" in shell("read", name).out


def test_a_number_that_two_have_is_refused_with_both_names(merged: tuple[Shell, str, str]) -> None:
    """Whoever says 2 is told both names; each full or short name takes back that one alone."""
    shell, ours, theirs = merged
    for command in (["undo", "2"], ["undo", "0002-consolidate"], ["ls", "--as-of", "0002-consolidate"]):
        told = shell(*command)
        assert (told.code, "names several receipts" in told.err) == (2, True)
        assert ours in told.err
        assert theirs in told.err
    assert shell("ls", "--as-of", theirs).code == 0
    undone = shell("--json", "undo", f"2{ours[-7:]}").json["receipt"]
    assert undone["notes"] == [f"takes back receipt 2{ours[-7:]}"]
    shell("undo", ours).failed(1, f"undone by {undone['id']} already")
    shell("undo", theirs).failed(1, "cannot be undone: lines")  # of which only the receipt was copied


def test_names_of_earlier_versions_stay_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A receipt without a checksum is read, shown, taken back and forgotten in; the next has one."""
    shell = Shell(tmp_path, monkeypatch)
    name = consolidated(shell.library, "I live in Rome.", "My sister Imogen collects sapphires.")
    label = f"1{name[-7:]}"
    for path in [*shell.library.glob("topics/*.md"), shell.library / f"{name}.md"]:
        path.write_text(path.read_text().replace(name, name[:-7]).replace(label, "1"))
    (shell.library / f"{name}.md").rename(shell.library / f"{name[:-7]}.md")
    memory = opened(shell.library)
    (receipt,) = memory.receipts()
    assert (receipt.id, receipt.number, receipt.op) == ("journal/0001-consolidate", 1, "consolidate")
    seq = receipt.rows[0].seq
    assert receipt.id in shell("history", str(seq)).out
    assert shell("ls", "--as-of", receipt.id).code == 0
    undone = shell("--json", "undo", "1").json["receipt"]
    assert re.fullmatch(r"journal/0002-undo-[0-9a-f]{6}", undone["id"])
    assert undone["notes"][0] == "takes back receipt 1"
    shell("undo", "1").failed(1, f"undone by {undone['id']} already")
    assert shell("undo", undone["id"]).code == 0
    forgotten = shell("--json", "forget", "--match", "sapphires", "--yes").json["receipt"]
    assert "sapphires" not in "".join(path.read_text() for path in shell.library.rglob("*.md"))
    shell("undo", forgotten).failed(1, "gone for good")
    assert shell("doctor").code == 0
