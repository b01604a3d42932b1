"""Rejected replies on disk: readable, bounded, and never the reason why something else fails."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from infinimem import Turn, open_memory
from infinimem.model import RejectedReply
from infinimem.store import disk
from infinimem.store.files import Files
from infinimem.store.library import init
from infinimem.store.state.withheld import KEPT, REJECTED, keep_replies
from infinimem.testing import ScriptedLLM

WHEN = "2025-05-01T09:00:00Z"


@pytest.fixture
def files(tmp_path: Path) -> Files:
    init(tmp_path / "m")
    return Files(tmp_path / "m")


def said(text: str, *reasons: str, task: str = "extract") -> RejectedReply:
    return RejectedReply(task, text, reasons or ("EMPTY",))


def kept(files: Files) -> list[Path]:
    return sorted((files.root / REJECTED).glob("*"))


def test_the_newest_hundred_stay(files: Files) -> None:
    for start in (0, 60, 120):
        keep_replies(files, [said(str(number)) for number in range(start, start + 60)], WHEN)
    names = [path.name for path in kept(files)]
    assert len(names) == KEPT
    assert (names[0], names[-1]) == ("000081-extract.txt", "000180-extract.txt")
    keep_replies(files, [said(str(number)) for number in range(KEPT + 7)], WHEN)
    assert kept(files)[0].read_text().endswith("\n7\n")


@pytest.mark.sample(2)
@pytest.mark.parametrize("call", ["make_folder", "open_new", "write", "unlink", "sync_folder"])
def test_a_disk_that_refuses_stops_nothing(files: Files, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    def fails(*arguments: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(disk, call, fails)
    keep_replies(files, [said(str(number)) for number in range(KEPT + 2)], WHEN)


def test_what_a_model_said_wrongly_is_there_to_read_and_no_tool_shows_it(tmp_path: Path) -> None:
    llm = ScriptedLLM({"extract": ["Sorry, quuxley.", '{"entries": []}']})
    memory = open_memory(tmp_path / "m", model=llm, create=True)
    memory.observe([Turn("Thanks!")])
    (path,) = sorted((tmp_path / "m" / REJECTED).iterdir())
    assert "reason: JSON_PARSE_FAIL" in path.read_text()
    assert path.read_text().endswith("Sorry, quuxley.\n")
    assert memory.doctor() == []
    assert memory.tools.call("grep", {"pattern": "Thanks", "scope": "evidence"})["matches"]
    for scope in ("evidence", "journal", "all"):
        assert memory.tools.call("grep", {"pattern": "quuxley", "scope": scope})["matches"] == []
    assert memory.retrieve("quuxley").items == ()
    name = path.relative_to(tmp_path / "m").as_posix()
    assert "no document" in memory.tools.call("read_lines", {"doc_id": name})["error"]
