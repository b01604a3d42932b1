"""What a line was, where it came from and how to take a change back, from the command line alone."""

from __future__ import annotations

import json
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cases import each
from cli_runner import Shell

from infinimem import open_memory
from infinimem.errors import InfinimemError

SAMPLE = Path(__file__).parents[2] / "sample_library"


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    shell = Shell(tmp_path, monkeypatch)
    shutil.copytree(SAMPLE, shell.library, dirs_exist_ok=True)
    return shell


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    shell = Shell(tmp_path, monkeypatch)
    shell("init")
    return shell


def test_history_leads_from_what_was_said_to_where_a_line_is_now(shell: Shell) -> None:
    """`history` names the turn, every receipt that moved the line, and what replaced it."""
    events = shell("--json", "history", "66").json["rows"]
    assert [(row["event"], row["seq"]) for row in events if row["event"] == "said"] == [("said", 60)]
    assert any(row["event"] == "receipt" and row["now"] == "archive/home-network" for row in events)
    assert any(row["event"] == "heir" and row["seq"] == 252 for row in events)


def test_blame_leads_from_any_line_to_what_was_said(shell: Shell) -> None:
    """`blame` gives every entry of a document the receipt that brought it and turns that exist."""
    evidence = "".join(path.read_text() for path in (shell.library / "evidence").glob("*.md"))
    for topic in (shell.library / "topics").glob("*.md"):
        rows = shell("--json", "blame", f"topics/{topic.stem}").json["rows"]
        entries = [row for row in rows if row["kind"] == "entry"]
        assert entries
        assert all(row["receipt"] for row in entries)
        for row in entries:
            assert row["turns"]
            assert all(f"<seq={turn['seq']}," in evidence for turn in row["turns"])


@pytest.mark.parametrize("moment", ["journal/0004-consolidate", "239", "2025-08-01"])
def test_the_past_can_be_asked(shell: Shell, moment: str) -> None:
    """`--as-of` a receipt, a number or a day answers from the library as it stood then."""
    now, then = (shell("search", "router", *more).out for more in ((), ("--as-of", moment)))
    assert "192.168.1.1 now" in now
    if moment == "2025-08-01":  # the sample was written in one go: nothing stood before
        assert "192.168.1.1 now" not in then
    else:
        assert "192.168.8.1" in then
        assert "192.168.1.1 now" not in then


def test_the_past_of_an_import_has_nothing_that_was_said_later(empty: Shell) -> None:
    """Turns with times count from when they were said, in the order in which they came; a line says so."""
    days = ("2023-01-05", "2024-01-05", "2023-06-05")
    log = empty.library.parent / "log.json"
    turns = [
        {"role": "user", "content": f"My boat number {n} is red.", "time": day} for n, day in enumerate(days)
    ]
    log.write_text(json.dumps(turns))
    empty("import", str(log))
    empty("consolidate")
    for day, there in (("2022-12-31", ""), ("2023-12-31", "0"), ("2024-12-31", "012")):
        ran = empty("search", "boat red", "--scope", "evidence", "--as-of", day)
        assert [f"boat number {n} " in ran.out for n in range(3)] == [str(n) in there for n in range(3)], day
        assert f"as of {day}: all before the first receipt was recorded by 20" in ran.err
        assert ("boat" in empty("search", "boat red", "--as-of", day).out) == (there == "012")


def test_an_undo_says_what_it_takes_back_and_which_turns_stay(shell: Shell) -> None:
    """Recording has no receipt: `undo` names what it took back, and how to take out what was said since."""
    assert re.search(r"taken back: the consolidate of 20\d\d-\S+ \(.*file.*\)", shell("undo").err)
    assert "recorded after it" not in shell("undo").err
    assert shell("-q", "add", "My PIN is kept in the blue tin, oops.").code == 0
    seq = shell("--json", "search", "blue tin", "--scope", "evidence").json["hits"][0]["seqs"][0]
    ran = shell("undo")
    assert "1 turn recorded after it stays, for recording has no receipt" in ran.err
    assert f"; to take out: infinimem forget --seq {seq}\n" in ran.err
    assert "blue tin" in shell("search", "blue tin", "--scope", "evidence").out


def test_an_undo_is_a_change_like_any_other(shell: Shell) -> None:
    """Undo puts lines back byte for byte, leaves a receipt, and can be undone."""
    topic = shell.library / "topics" / "home-network.md"
    before = topic.read_text()
    line = next(line for line in before.splitlines() if "seq=252," in line)
    undone = shell("--json", "undo").json["receipt"]["id"]
    assert line in (shell.library / "CURRENT.md").read_text()
    assert line not in topic.read_text()
    assert (shell.library / f"{undone}.md").exists()
    shell("undo", undone)
    assert line in topic.read_text()


def test_a_hand_edit_wins(shell: Shell) -> None:
    """What a person changes in a file stands and is theirs from then on; a receipt has the old words."""
    shell("consolidate", "--model", "offline")  # the program sees the lines as they are
    topic = shell.library / "topics" / "pepper.md"
    topic.write_text(topic.read_text().replace("only eats the salmon food", "only eats the trout food"))
    shell("consolidate", "--model", "offline")
    line = next(line for line in topic.read_text().splitlines() if line.endswith("eats the trout food"))
    assert re.match(r"- <seq=55,", line)
    assert "source=human" in line
    newest = max((shell.library / "journal").glob("*.md"))
    assert "She only eats the salmon food" in newest.read_text()
    assert "trout" in shell("ask", "What does Pepper eat?", "--model", "offline").out


def test_blame_names_the_edit_of_a_line_that_moved_since(shell: Shell) -> None:
    """A line that a person edited is theirs, and `blame` names the receipt of the edit, not a later move."""
    shell("consolidate", "--model", "offline")
    topic = shell.library / "topics" / "pepper.md"
    topic.write_text(topic.read_text().replace("only eats the salmon food", "only eats the trout food"))
    shell("add", "Pepper has a new basket in the kitchen.", "--model", "offline")
    shell("consolidate", "--model", "offline")
    number = next(
        n for n, line in enumerate(topic.read_text().splitlines(), 1) if line.endswith("trout food")
    )
    (row,) = shell("--json", "blame", f"topics/pepper:{number}").json["rows"]
    assert "edited by a person" in row["why"]
    receipt = (shell.library / f"{row['receipt']}.md").read_text()
    assert "| 55 | topics/pepper | topics/pepper | edited |" in receipt


def test_diff_tells_what_facts_were_and_are(shell: Shell) -> None:
    """`diff` of a receipt, or of two days, gives each fact that changed, with its words before and after."""
    rows = shell("--json", "diff", "5").json["changes"]
    assert rows == shell("--json", "diff").json["changes"]
    between = shell("--json", "diff", "4..5").json  # also what was drawn meanwhile
    assert {66, 252} & {row["seq"] for row in between["changes"]} == {66}
    assert [name.rpartition("-")[0] for name in between["receipts"]] == ["journal/0005-consolidate"]
    (router,) = (row for row in rows if row["seq"] == 66)
    assert router == {
        "kind": "replaced",
        "seq": 66,
        "was": "The router is at 192.168.8.1",
        "now": "The router is at 192.168.1.1 now, the provider's box insists on it",
        "where": "topics/home-network",
        "time": "2025-08-24T10:30:08",
        "by": 252,
    }
    assert "192.168.8.1" in shell("diff", "2025-08-23..2025-08-24").out
    assert shell("diff", "2025-08-24..2025-08-24").err == "no fact changed\n"
    shell("diff", "99").failed(2, "no receipt '99'")
    shell("diff", "then..now").failed(2, "'then' is not a moment")


def test_log_since_a_time_tells_the_facts_themselves(shell: Shell) -> None:
    """`log --since` lists the receipts since then, and the facts that came, went or changed."""
    assert shell("log", "--since", "7d").err == "no receipts since 7d\n"
    shell("add", "The bakery closes on Mondays.", "--model", "offline")
    told = shell("--json", "log", "--since", "7d").json
    new = [row["now"] for row in told["changes"] if row["kind"] == "new"]  # the buffer may have been sorted
    assert new == ["The bakery closes on Mondays."]
    told = shell("--json", "log", "--since", "2025-08-24").json
    assert told["rows"][-1]["id"].startswith("journal/0005-consolidate-")
    assert {"new", "replaced"} <= {row["kind"] for row in told["changes"]}


def test_what_has_no_time_shows_the_day_it_was_recorded(shell: Shell) -> None:
    """A fact without a time shows the day of its recording: in search, grep, read, history and blame."""
    today = datetime.now(UTC).date().isoformat()
    fact = shell("--json", "add", "The bakery closes on Mondays.", "--model", "offline").json["entries"][0]
    for command in (["search", "bakery"], ["grep", "bakery"], ["read", "CURRENT"], ["history", str(fact)]):
        assert today in shell(*command).out, command
    assert f" {today}T" in shell("blame", "CURRENT").out


def test_a_message_whose_time_is_none_is_refused(tmp_path: Path) -> None:
    """`observe` refuses a time that is none, of a message as of a turn, and records nothing of the call."""
    with open_memory(tmp_path / "m", model="offline", create=True) as memory:
        for time in ("yesterday", "2025-99-99"):
            message = {"role": "user", "content": "I like tea.", "time": time}
            with pytest.raises(InfinimemError, match=time):
                memory.observe([{"role": "user", "content": "I like cake."}, message])
        assert not memory.view.ids("evidence")
        memory.observe([{"role": "user", "content": "I like tea.", "time": None}])
        assert len(str(memory.consolidate())) < 80


@each(
    ("command", "words"),
    [
        (["read", "topics/nothing"], "nothing"),
        (["history", "99999"], "99999"),
        (["blame", "topics/pepper:9999"], "9999"),
        (["undo", "77"], "77"),
        (["search", "x", "--as-of", "not-a-time"], "not-a-time"),
        (["import", "no-such-file.json"], "no-such-file.json"),
        (["search", "x", "--scope", "nowhere"], "nowhere"),
        (["forget", "--seq", "99999"], "99999"),
        (["review", "--approve", "99"], "99"),
        (["ask", "x", "--reader", "nobody"], "nobody"),
        (["add", "x", "--time", "yesterday"], "yesterday"),
        (["consolidate", "--strategy", "nobody"], "nobody"),
        (["nonsense"], "nonsense"),
    ],
)
def test_an_error_is_one_line_and_changes_nothing(shell: Shell, command: list[str], words: str) -> None:
    """A mistake is answered in one line that names it; the exit code is not 0, and nothing is written."""
    tree = shell.tree()
    done = shell(*command)
    assert done.code in (1, 2)
    assert words in done.err
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1
    assert shell.tree() == tree


def test_a_folder_of_notes_is_read_and_never_written(shell: Shell, tmp_path: Path) -> None:
    """A plain folder of notes is searched as it is; nothing is written into it, and writing is refused."""
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "a.md").write_text("# Boat\n\nThe berth is number 14.\n")
    before = {path: path.read_bytes() for path in notes.rglob("*")}
    for command in (["search", "berth"], ["grep", "berth"], ["ls"], ["read", "a"], ["ask", "which berth"]):
        assert shell("--library", str(notes), *command).code == 0
    shell("--library", str(notes), "add", "x", "--model", "offline").failed(1, "infinimem init")
    assert {path: path.read_bytes() for path in notes.rglob("*")} == before
