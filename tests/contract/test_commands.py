"""The table of docs/CLI.md: what each command answers with --json, and how it ends."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from cases import each
from cli_runner import Shell
from fake_server import chat, serve
from scripted import OFFLINE, SAMPLE

PAGE = (Path(__file__).parents[2] / "docs" / "CLI.md").read_text()
QUESTION = "What does Pepper eat?"
RULES = " ".join(OFFLINE)
CONVERTED = f"--strategy allmem {RULES}"
ITEM = "doc_id start_line end_line seqs origin text score"
HIT = "doc_id title heading start_line end_line ranges seqs score snippet"
COMPARED = "strategy reader answer citations trace usage evidence evidence_tokens ms"
IMPORTED = "format sessions turns recorded entries skipped skipped_why left_out receipt"
AWAITING = "lines_awaiting_review"
DRY = ("consolidate", "--dry-run", *OFFLINE)
TYPED = ("consolidate", *OFFLINE)
WHERE = "Where is the router?"
READING = (
    f"ask {WHERE} {RULES}",
    f"retrieve {WHERE}",
    "search router",
    "grep router",
    "read topics/home-network",
)
ASKING = ("add x", "import ../home/chat.json", "consolidate", "rebuild", f"ask {QUESTION}")
CODES = {
    0: ("search router", "forget --match salmon", "doctor", "review", "consolidate --dry-run"),
    1: ("read topics/none", "history 99999", "graph"),
    2: ("search", "search --none x", "none", "undo 77", "ask x --reader none", "review --approve x"),
}


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """On a copy of the sample library."""
    shell = Shell(tmp_path, monkeypatch)
    shutil.copytree(SAMPLE, shell.library, dirs_exist_ok=True)
    return shell


ROWS = [
    [cell.strip() for cell in line.split("|")]
    for line in f"""
init | init other | library
demo | demo | library receipt answer answers
add | add I like tea. {RULES} | evidence entries receipt
import | import ../home/chat.json {RULES} | {IMPORTED}
consolidate | consolidate {RULES} | receipt
consolidate | consolidate --dry-run {RULES} | receipt diff
consolidate | consolidate --estimate | receipt estimate
rebuild | rebuild {CONVERTED} | strategy documents evidence receipts
ask | ask {QUESTION} {RULES} | answer citations trace usage | citations doc_id seqs | trace stage
compare | compare {QUESTION} {RULES} | strategies | strategies {COMPARED} | strategies.evidence {ITEM}
retrieve | retrieve {QUESTION} | items trace | items {ITEM} | trace stage
search | search router --full | hits | hits {HIT}
search | grep router | matches | matches doc_id line text
search | ls --scope all | docs total | docs id title summary tokens archived
search | read topics/pepper | lines total_lines header_lines | lines line text
graph | graph --strategy allmem | root nodes links | nodes id label visible hop | links from to type weight
history | history 66 | rows | rows event seq time where text source speaker session turn
blame | blame topics/pepper | rows | rows line text kind
blame | blame topics/pepper:15 | rows | rows line text kind seq receipt time source turns
log | log -n 2 | rows | rows id time op strategy model lines reasons files notes
undo | undo | receipt receipts
review | review | rows
forget | forget --seq 60 | rows files receipt left history records | rows seq doc_id line text
forget | forget --seq 60 --yes | rows receipt repeated left history records | rows seq
status | status | unanswered {AWAITING} based_on_superseded git
doctor | doctor | findings
doctor | doctor --fix | findings fixed
config | config | library mine settings | settings name value origin suspended
trust | trust | library settings trusted
trust | trust --list | rows | rows library state
lint | lint | findings scanner
completion | completion zsh | shell script
recall | recall {QUESTION} --cwd . | text lines | lines where text score words why
""".strip().splitlines()
]


@pytest.mark.sample(17)
@pytest.mark.parametrize("row", ROWS, ids=[row[1][:30] for row in ROWS])
def test_json_has_the_keys_that_the_table_names(shell: Shell, row: list[str]) -> None:
    """With --json a command ends with 0 and prints one object that has the keys of its row."""
    name, command, top, *nested = row
    cells = next(line for line in PAGE.splitlines() if line.startswith(f"| `{name}"))
    (shell.home / "chat.json").write_text(json.dumps([{"role": "user", "content": "I play the oboe."}]))
    shell("trust", "--yes")
    if "--strategy allmem" in command:
        shell("rebuild", *CONVERTED.split())
    ran = shell("--json", *command.split())
    assert (ran.code, ran.err) == (0, "")
    assert set(top.split()) <= ran.json.keys()
    assert not [key for key in top.split() if not re.search(rf"\b{key}\b", cells)], "not in the table"
    for path, *keys in map(str.split, nested):
        found: Any = ran.json
        for part in path.split("."):
            found = found[part][0]
        assert set(keys) <= found.keys(), path


@each(
    ("code", "command", "as_json"),
    [
        (code, command, as_json)
        for code, some in CODES.items()
        for command in some
        for as_json in (False, True)
    ],
)
def test_exit_codes(shell: Shell, command: str, code: int, as_json: bool) -> None:
    """0 done, 1 failed, 2 usage; with --json a failure is one line {"error": …} on stdout alone."""
    before = shell.tree()
    ran = shell(*(["--json"] if as_json else []), *command.split())
    assert ran.code == code
    if code and as_json:
        assert list(ran.json) == ["error"]
        assert ran.err == ""
        assert "\n" not in ran.json["error"].strip()
    elif code:
        ran.failed(code, "")
    assert shell.tree() == before


def test_findings_end_with_1(shell: Shell) -> None:
    """`doctor` ends with 1 where something is wrong, and `--fix` says what it did."""
    (shell.library / "topics" / "pepper.md").write_text("---\nid: [\n---\n- <seq=53> x\n- <seq=53> y\n")
    ran = shell("--json", "doctor")
    assert ran.code == 1
    assert {"level", "what", "where", "fix"} <= ran.json["findings"][0].keys()
    assert any(one["level"] == "error" for one in ran.json["findings"])


def test_no_usable_answer_ends_with_3(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the model gives no usable answer the code is 3, the turn is named, recorded and found."""
    monkeypatch.setenv("INFINIMEM_MODEL", "m")
    with serve(chat("I'd rather not.")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        ran = shell("--json", "add", "My oboe is from 1911.")
    assert ran.code == 3
    pending = [row for row in ran.json["unanswered"] if row["seq"] in ran.json["evidence"]]
    assert [row["kind"] for row in pending] == ["JSON_PARSE_FAIL"]
    assert {"seq", "kind", "model", "tries"} <= pending[0].keys()
    assert "oboe is from 1911" in shell("search", "oboe").out
    assert shell("--json", "status").json["unanswered"]["JSON_PARSE_FAIL"] >= 1


@pytest.mark.parametrize("command", ASKING)
def test_an_estimate_does_nothing_else(shell: Shell, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--estimate` prints a number of tokens, asks no model and writes nothing."""
    (shell.home / "chat.json").write_text(json.dumps([{"role": "user", "content": "I play the oboe."}]))
    monkeypatch.setenv("INFINIMEM_MODEL", "m")
    before = shell.tree()
    with serve(chat("{}")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        ran = shell("--json", *command.split(), "--estimate")
        assert server.requests == []
    assert (ran.code, type(ran.json["estimate"])) == (0, int)
    assert ran.json["estimate"] > 0 or command == "consolidate"
    assert shell.tree() == before


@pytest.mark.parametrize("command", ["add", "consolidate", "ask"])
def test_a_cap_ends_calls_and_loses_nothing(
    shell: Shell, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once `--max-tokens` are spent no call is made; the code is 1 and what was said is recorded."""
    monkeypatch.setenv("INFINIMEM_MODEL", "m")
    with serve(chat("{}")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        words = "My oboe is from 1911." if command == "add" else QUESTION
        ran = shell(command, *([] if command == "consolidate" else [words]), "--max-tokens", "0")
        ran.failed(1, "token cap")
        assert server.requests == []
    assert command != "add" or "oboe is from 1911" in shell("search", "oboe").out
    assert shell("doctor").code == 0


@pytest.mark.parametrize("command", READING)
def test_every_read_command_takes_as_of(shell: Shell, command: str) -> None:
    """`--as-of` shows the library as it stood, without what later receipts brought, and writes nothing."""
    before = shell.tree()
    words = command.split()
    now, then = (shell("--json", *words, *more) for more in ((), ("--as-of", "journal/0004-consolidate")))
    assert (now.code, then.code) == (0, 0)
    assert ("192.168.1.1" in now.out, "192.168.1.1" in then.out) == (True, False)
    shell(*words, "--as-of", "never").failed(2, "never")
    assert shell.tree() == before


@pytest.mark.parametrize("way", ["approve", "reject"])
def test_what_the_law_withholds_waits_for_a_person(shell: Shell, way: str) -> None:
    """A pinned line stays live until `review --approve` archives it, byte for byte; rejected, it stays."""
    topic = shell.library / "topics" / "pepper.md"
    topic.write_text(re.sub(r"(?m)^(- <seq=55,[^>]*),speaker", r"\1,pin=yes,speaker", topic.read_text()))
    shell(*TYPED)
    line = next(line for line in topic.read_text().splitlines() if line.startswith("- <seq=55,"))
    assert "pin=yes" in line
    again = ("--speaker", "Nora", "--time", "2025-02-02T12:00:00")
    shell("add", "She only eats the salmon food", *again, *OFFLINE)
    shell(*TYPED)
    assert line in topic.read_text()
    (row,) = shell("--json", "review").json["rows"]
    assert (row["seq"], row["code"], row["void"]) == (55, "PROTECTED", "")
    assert shell("review", f"--{way}", f"{row['item']}:55").code == 0
    archive = "".join(path.read_text() for path in (shell.library / "archive").glob("*.md"))
    assert (line in topic.read_text(), line in archive) == (way == "reject", way == "approve")
    assert shell("--json", "review").json == {"rows": []}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("consolidate --dry-run --keep", "--keep is gone; `consolidate` makes what `--dry-run` showed"),
        ("bench locomo --replay kept", "--replay is gone; a run's replies lie in its folder"),
    ],
)
def test_an_option_that_is_gone_says_what_to_do_instead(shell: Shell, words: str, told: str) -> None:
    """An option of an earlier version fails with one line that says what stands in its place."""
    shell(*words.split()).failed(2, told)
