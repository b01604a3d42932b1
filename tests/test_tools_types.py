"""What a type checker sees of the facade: calls that are wrong, and what is awaited."""

from __future__ import annotations

import shutil
from pathlib import Path

import infinimem.tools
import pytest

api = pytest.importorskip("mypy.api", reason="needs mypy")

CALLS = """
from infinimem import AsyncMemory, Memory

def plain(memory: Memory) -> None:
    memory.tools.search("Lisbon", k=3, scope="all")
    memory.tools.search(qury="Lisbon")  # wrong
    memory.tools.search("Lisbon", scope="everything")  # wrong
    memory.tools.read_lines("topics/home", "1")  # wrong
    memory.ask(question=1)  # wrong
    memory.observe([{"role": "user", "content": "I moved to Lisbon."}])

async def awaited(memory: AsyncMemory) -> str:
    await memory.tools.search("Lisbon", k=3)
    await memory.tools.search(qury="Lisbon")  # wrong
    await memory.retrieve("Lisbon", budgt=10)  # wrong
    await (await memory.at("2025-03-03")).ask("Where?")
    (await memory.receipts())[0].undo  # wrong
    return (await memory.ask("Where?")).text
"""


@pytest.mark.soak
def test_wrong_calls_are_seen(tmp_path: Path) -> None:
    package = tmp_path / "infinimem"
    shutil.copytree(Path(infinimem.tools.__file__).parent, package / "tools")  # elsewhere in a checkout
    for name in ("__init__", "async_memory", "memory", "messages", "model", "reader"):
        shutil.copy(Path(infinimem.__file__).with_name(f"{name}.py"), package)
    calls = tmp_path / "calls.py"
    calls.write_text(CALLS)
    options = ["--strict", "--follow-imports=silent", "--ignore-missing-imports", "--hide-error-context"]
    out, err, _ = api.run([*options, f"--cache-dir={tmp_path / 'cache'}", "--no-pretty", str(calls)])
    seen = {int(line.split(":")[1]) for line in out.splitlines() if "calls.py" in line and ": error:" in line}
    wrong = {number for number, line in enumerate(CALLS.splitlines(), 1) if line.endswith("# wrong")}
    assert seen == wrong, out + err
