"""What packages outside this one add by entry points: a strategy, an embedder, an importer, a tool.

Each test installs tests/toy_package as any package is, a folder beside its metadata on the path of another
process.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from infinimem.spec import strategies

HERE = Path(__file__).parent
POINTS = """
[console_scripts]
toy = toy_memory:none
[infinimem.strategies]
toy = toy_memory.spec:SPEC
digests = toy_memory.spec:DIGESTS
[infinimem.embedders]
letters = toy_memory.embedder:Letters
[infinimem.importers]
toy = toy_memory.importer
"""
TOOLS = """
[infinimem.tools]
longest = toy_memory.tool:longest
grep = toy_memory.tool:longest
broken = toy_memory.tool:none
"""

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of packages; `install` writes into it."""
    shutil.copytree(HERE / "toy_package", tmp_path / "site", ignore=shutil.ignore_patterns("__pycache__"))
    install(tmp_path / "site", POINTS)
    return tmp_path / "site"


def install(site: Path, points: str, name: str = "toy_memory-1.0.dist-info") -> None:
    (site / name).mkdir(parents=True, exist_ok=True)
    (site / name / "entry_points.txt").write_text(points)


@pytest.fixture
def run(tmp_path: Path, site: Path) -> Run:
    """Runs Python in a process that has the package; the library is the folder m."""

    def python(*args: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "TMPDIR")}
        env = {**kept, "HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join([str(site), str(HERE)])}
        env |= {"PYTEST_DEBUG_TEMPROOT": str(tmp_path), "COLUMNS": "200"}
        done = subprocess.run(
            [sys.executable, *args], env=env, cwd=HERE.parent, capture_output=True, text=True
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done

    return python


@pytest.fixture
def cli(tmp_path: Path, run: Run) -> Run:
    def infinimem(*args: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        return run("-m", "infinimem", "--library", str(tmp_path / "m"), *args, code=code)

    return infinimem


def test_a_strategy_of_another_package_keeps_the_contract(run: Run) -> None:
    contract = str(HERE / "test_strategies_contract.py")
    done = run("-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "toy or digests", contract)
    assert " passed" in done.stdout and "failed" not in done.stdout


def test_its_records_are_forgotten_blamed_and_kept_apart(tmp_path: Path, cli: Run) -> None:
    library = tmp_path / "m"
    cli("--strategy", "toy", "init", str(library))
    assert 'strategy = "toy"' in (library / "infinimem.toml").read_text()
    cli("add", "My sister Clara plays the cello.", "--session", "s1")
    cli("add", "I moved to Lisbon.", "--session", "s1")
    cli("consolidate")
    assert "{record: tc-000002}" in (library / "toy/days/td-000001.md").read_text()
    assert "tc-000001" in cli("blame", "toy/cards/tc-000001").stdout
    cli("forget", "--seq", "1", "--yes")
    assert sorted(path.stem for path in library.rglob("t[cd]-*.md")) == ["tc-000002"]
    assert "Clara" not in "".join(path.read_text() for path in library.rglob("*.md"))
    cli("--strategy", "infini", "rebuild")
    assert "toy/" not in cli("--strategy", "infini", "ls").stdout


def test_its_settings_are_checked_shown_and_trusted_like_ours(tmp_path: Path, cli: Run) -> None:
    library = tmp_path / "m"
    cli("--strategy", "toy", "init", str(library))
    assert "toy.longest\t80\tdefault" in cli("config", "--all").stdout
    (library / "infinimem.toml").write_text('strategy = "toy"\n[toy]\nlongest = "much"\n')
    assert cli("status", code=2).stderr == (
        f"error: {library}/infinimem.toml [toy]: longest = 'much'; a int is wanted\n"
    )
    (library / "infinimem.toml").write_text('strategy = "toy"\n[toy]\nlongest = 3\nserver = "http://x"\n')
    rows = json.loads(cli("config", "--json").stdout)["settings"]
    assert [row["value"] for row in rows if row["name"] == "toy.longest"] == [3]
    assert "toy.server does not count" in cli("status").stderr


def test_an_embedder_of_another_package_gives_vectors(cli: Run, tmp_path: Path) -> None:
    cli("init", str(tmp_path / "m"))
    cli("add", "I moved to Lisbon.")
    assert "Lisbon" in cli("--embedder", "letters", "search", "Lisbon").stdout
    assert (
        "choose one of lexical, static, minilm, openai, letters"
        in cli("--embedder", "x", "ls", code=2).stderr
    )


def test_an_embedder_that_a_library_chooses_counts_when_the_library_is_trusted(
    cli: Run, tmp_path: Path
) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m/infinimem.toml").write_text('[embedder]\nname = "letters"\n')
    assert "embedder.name does not count" in cli("ls").stderr
    cli("trust", str(tmp_path / "m"), "--yes")
    assert "trust" not in cli("ls").stderr


def test_an_importer_of_another_package_reads_its_files(cli: Run, tmp_path: Path) -> None:
    (tmp_path / "said.json").write_text('[{"toy": "I moved to Lisbon."}]')
    cli("init", str(tmp_path / "m"))
    assert "toy" in cli("import", str(tmp_path / "said.json")).stdout
    assert "Lisbon" in cli("search", "Lisbon").stdout


CALLS = """
import logging, sys
logging.basicConfig()
from infinimem import open_memory
from infinimem.testing import ScriptedLLM
calls = [{"name": "longest", "arguments": {"k": k}} for k in (2, -1, -2)]
asked = ScriptedLLM({"answer": [{"answer": answer, "cites": [], "calls": calls} for answer in ("", "two")]})
memory = open_memory(sys.argv[1], model=asked)
print(*(tool["name"] for tool in memory.tools.anthropic()), *memory.tools.grep("Lisbon"))
print(memory.ask("Which documents are long?").text, asked.calls[0].variables["tools"], end="")
print(*(call["told"] for call in asked.calls[1].variables["calls"]))
print(memory.tools.text("longest", {"k": 1}), len(memory.tools.text("longest", {"k": 0})) < 20_000)
"""


def test_a_tool_of_another_package_is_offered_and_called(
    run: Run, cli: Run, site: Path, tmp_path: Path
) -> None:
    install(site, TOOLS, "tools.dist-info")
    cli("init", str(tmp_path / "m"))
    cli("add", "I moved to Lisbon.")
    done = run("-c", CALLS, str(tmp_path / "m"))
    names, told, calls, *text = done.stdout.splitlines()
    assert names.startswith("grep grep_doc search list_docs read_lines longest matches"), "ours stay ours"
    assert told == "two longest(k): Name the longest documents."
    assert "longest {\"k\": 2}', 'CURRENT " in calls
    assert "RuntimeError: fewer than none" in calls and "SystemExit: fewer than none" in calls
    assert any(line.startswith("CURRENT ") for line in text)
    assert text[-1].endswith("True"), "rows without end are cut"
    assert "the tool broken is left out: toy_memory.tool:none cannot be used" in done.stderr


def test_a_broken_package_is_told_in_one_line_and_hinders_nothing_else(
    cli: Run, site: Path, tmp_path: Path
) -> None:
    taken = (
        "StrategySpec('taken', 'x:Y', ('topics/',), 'topics/old/', kinds=(Kind('a', 'ta', 'topics/new/'),))"
    )
    (site / "taken.py").write_text(f"from infinimem.spec import Kind, StrategySpec\nSPEC = {taken}\n")
    (site / "raises.py").write_text("raise SystemExit('no\\nlicence')\n")
    install(site, "[infinimem.strategies]\nbad = raises:SPEC\ntaken = taken:SPEC\n", "b.dist-info")
    install(site, "[infinimem.embedders]\nbad = none:E\n[infinimem.importers]\nbad = no:E\n", "c.dist-info")
    install(site, "\x00[[[\n= =\n[infinimem.strategies\n", "d.dist-info")
    cli("init", str(tmp_path / "m"))
    cli("add", "I moved to Lisbon.")
    said = tmp_path / "said.json"
    said.write_text('[{"role": "user", "content": "My sister plays the cello."}]')
    cli("import", str(said))
    assert "Lisbon" in cli("search", "Lisbon").stdout
    for code, why, args in (
        (2, "raises:SPEC cannot be used: SystemExit: no licence", ("--strategy", "bad", "ls")),
        (2, "taken:SPEC cannot be used: its folder 'topics/' is another's", ("--strategy", "taken", "ls")),
        (2, "none:E cannot be used: ModuleNotFoundError", ("--embedder", "bad", "search", "x")),
        (2, "no:E cannot be used: ModuleNotFoundError", ("import", str(said), "--format", "bad")),
    ):
        told = cli(*args, code=code).stderr
        assert told.startswith(f"error: {why}") and told.count("\n") == 1, told
    assert "taken:SPEC cannot be used" in cli("doctor").stdout


def test_a_library_whose_strategy_is_not_installed_says_so(cli: Run, site: Path, tmp_path: Path) -> None:
    cli("--strategy", "toy", "init", str(tmp_path / "m"))
    shutil.rmtree(site / "toy_memory-1.0.dist-info")
    assert cli("ls", code=2).stderr == (
        f"error: {tmp_path}/m/infinimem.toml: strategy = 'toy'; choose one of {', '.join(strategies())}\n"
    )


def test_the_current_folder_adds_nothing(site: Path, tmp_path: Path) -> None:
    """It may be a library, or a repository of somebody else's."""
    code = "from infinimem.spec import strategies; print(*strategies())"
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{HERE.parent}{os.pathsep}{site}"}
    done = subprocess.run([sys.executable, "-c", code], env=env, cwd=site, capture_output=True, text=True)
    assert done.stdout == f"{' '.join(strategies())}\n", done.stderr
