"""What All-Mem's consolidations leave to look at: a line of the receipt, and audits of earlier versions."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_runner import Shell

from infinimem import Turn, open_memory

FACTS = (
    "The capital of Chad is Abeche.",
    "The author of Emma is Jane Austen.",
    "The capital of Chad is N'Djamena.",
    "The author of Emma is Jane Austen.",
)
AUDIT = """---
id: allmem/audit/run-0001
kind: audit
embedder: lexical 512
---
# Consolidation 1

```json
{"row": "diagnosis", "unit": "u-000001", "near": ["u-000003"]}
{"row": "proposal", "op": "update", "ids": ["u-000003", "u-000001"], "reason": "The capital is not Abeche."}
```
"""


@pytest.fixture
def units(shell: Shell) -> Shell:
    assert shell("init", "--strategy", "allmem").code == 0
    for fact in FACTS:
        assert shell("add", fact, "--session", "s1").code == 0
    return shell


def test_the_receipt_says_what_was_proposed_and_applied(units: Shell) -> None:
    """A consolidation's receipt says in one note how much was looked at, proposed and applied."""
    assert units("consolidate").code == 0
    newest = units("log", "--json").json["rows"][0]
    assert newest["op"] == "consolidate"
    assert newest["notes"] == ["diagnosed 2; applied split 0 of 0, merge 0 of 0, update 0 of 0"]
    assert not (units.library / "allmem/audit").exists()


def test_replay_says_what_to_do_instead(units: Shell) -> None:
    """`infinimem replay` fails with one line that names `log` and `history`, whatever follows it."""
    for words in (("replay",), ("replay", "7", "--strategy", "allmem"), ("replay", "--help")):
        units(*words).failed(2, "replay is gone; `infinimem log` and `infinimem history` say what")
    assert "replay" not in units("--help").out


def test_audits_of_earlier_versions_are_lived_with(shell: Shell, tmp_path: Path) -> None:
    """A library with `allmem/audit/` opens, searches and is sound, and forgets words there, too."""
    root = tmp_path / "m"
    open_memory(root, model="offline", strategy="allmem", create=True).observe([Turn(one) for one in FACTS])
    page = root / "allmem/audit/run-0001.md"
    page.parent.mkdir()
    page.write_text(AUDIT)
    memory = open_memory(root, model="offline", strategy="allmem")
    found = [hit["doc_id"] for hit in memory.tools.search("capital of Chad")["hits"]]
    assert found and not any("audit" in doc_id for doc_id in found)
    assert memory.consolidate() is not None
    assert page.read_text() == AUDIT
    assert [one for one in memory.doctor() if one.level == "error"] == []
    memory.forget(match="Abeche")
    assert not page.exists()
    assert not [path for path in root.rglob("*") if path.is_file() and b"Abeche" in path.read_bytes()]
    assert [one for one in memory.doctor() if one.level == "error"] == []
