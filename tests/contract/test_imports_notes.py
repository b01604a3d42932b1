"""Notes keep their names, days and words, and one bad path stops no import."""

from __future__ import annotations

import gzip
import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_runner import Shell

WRITTEN = [
    ("2024-03-10", "2024-03-10"),
    ("20240310", "2024-03-10"),
    ("2024_03_10", "2024-03-10"),
    ("2024.03.10", "2024-03-10"),
    ("2024 03 10", "2024-03-10"),
    ("2024-3-9", "2024-03-09"),
    ("202403101530", "2024-03-10"),
    ("2024-03-10T1200", "2024-03-10"),
    ("25-03-2024", "2024-03-25"),
    ("03-25-2024", "2024-03-25"),
    ("10 March 2024", "2024-03-10"),
    ("March 10, 2024", "2024-03-10"),
    ("Mar 10th, 2024", "2024-03-10"),
    ("10-Mar-2024", "2024-03-10"),
    ("2024 Sept 3", "2024-09-03"),
    ("2024-03-10 Sunday", "2024-03-10"),
    ("Sunday, March 10, 2024", "2024-03-10"),
    ("Standup 2024-03-10 with Ann", "2024-03-10"),
    ("2024年3月10日", "2024-03-10"),
    ("10-03-2024", None),
    ("2024-W10", None),
    ("2024-03", None),
    ("March 2024", None),
    ("2024-13-40", None),
    ("v1.20.2", None),
    ("3 marching 2024", None),
]


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    made = Shell(tmp_path, monkeypatch)
    made("init", ".")
    return made


def notes(shell: Shell, files: dict[str, str]) -> Path:
    folder = shell.home / "notes"
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def recorded(shell: Shell) -> list[dict[str, Any]]:
    """Session, time and text of every turn."""
    found = []
    for path in sorted((shell.library / "evidence").glob("*.md")):
        _, header, body = path.read_text().split("---\n", 2)
        session = next(line for line in header.splitlines() if line.startswith("session: "))
        for line in body.removeprefix("- <").split("\n- <"):
            fields, _, text = line.strip().partition("> ")
            time = next((one[5:] for one in fields.split(",") if one.startswith("time=")), None)
            found.append(
                {"session": session[9:].strip('"'), "time": time, "text": text.replace("\n  ", "\n")}
            )
    return found


@pytest.mark.sample(4)
@pytest.mark.parametrize(("name", "day"), WRITTEN)
def test_a_day_is_read_however_it_is_written(shell: Shell, name: str, day: str | None) -> None:
    """In a file's name, a heading and any usual key of a header; an ambiguous one is none."""
    keys = ("date", "Date", "created_at", "date created", "created", "publishDate", "creation-date")
    headers = {f"k{at}.md": f"---\n{key}: {name!r}\n---\nwords\n" for at, key in enumerate(keys)}
    files = {f"{name}.md": "words\n", "heading.md": f"## {name}\n\nwords\n", **headers}
    shell("import", str(notes(shell, files)), "--record")
    times = [turn["time"] for turn in recorded(shell) if turn["text"].endswith("words")]
    assert times == [day] * len(files)


@pytest.mark.parametrize(
    "value", ["2024-10-05T09:00:00+02:00", "Saturday, October 5th 2024, 9:00 am", "1728110000"]
)
def test_a_day_with_a_time_in_a_header_is_the_day(shell: Shell, value: str) -> None:
    """ISO 8601 with a time of day, and seconds since 1970."""
    shell("import", str(notes(shell, {"a.md": f"---\ndate: {value}\n---\nwords\n"})), "--record")
    assert [turn["time"] for turn in recorded(shell)] == ["2024-10-05"]


def test_a_day_that_is_not_understood_stays_a_word(shell: Shell) -> None:
    """A key whose value is no day is told with the rest of the header."""
    shell("import", str(notes(shell, {"a.md": "---\ndate: some day in spring\n---\nwords\n"})), "--record")
    assert [turn["text"] for turn in recorded(shell)] == ["date: some day in spring", "words"]


def test_the_day_of_a_note_may_be_its_folders(shell: Shell) -> None:
    """Folders of year and month date the notes in them; a name of its own goes before."""
    shell(
        "import", str(notes(shell, {"2024/03/10.md": "a", "2024-01-01 trip/2024-01-05.md": "b"})), "--record"
    )
    assert [turn["time"] for turn in recorded(shell)] == ["2024-01-05", "2024-03-10"]


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (
            '+++\nTitle = "Cellar"\ndate = 2024-10-05\ntags = ["cider", "wine"]\n+++\n',
            "Cellar: tags: cider, wine",
        ),
        (
            '{\n"title": "Cellar",\n"date": "2024-10-05",\n"tags": ["cider", "wine"]\n}\n',
            "Cellar: tags: cider, wine",
        ),
        ("---\ntitle: Cellar\ndate: 2024-10-05\ntags: [cider, wine]\n---\n", "Cellar: tags: cider, wine"),
    ],
    ids=["toml", "json", "yaml"],
)
def test_headers_of_all_kinds_are_read(shell: Shell, header: str, said: str) -> None:
    """Title, day and tags of a TOML or JSON header count as those of a YAML one."""
    shell("import", str(notes(shell, {"x.md": f"{header}\nTwelve bottles.\n"})), "--record")
    assert [(turn["text"], turn["time"]) for turn in recorded(shell)] == [
        (said, "2024-10-05"),
        ("Cellar: Twelve bottles.", "2024-10-05"),
    ]


def test_only_a_real_ending_is_cut_from_a_name(shell: Shell) -> None:
    """Dots in the names of notes are part of them, and notes are not taken together."""
    names = ("Mrs. Lind.md", "draft.v1.md", "draft.v2.txt", "3.5 litres.markdown", "Fig. 2.MD", "St. Ives.md")
    shell("import", str(notes(shell, {name: f"words of {name}" for name in names})), "--record")
    expected = {"Mrs. Lind", "draft.v1", "draft.v2", "3.5 litres", "Fig. 2", "St. Ives"}
    assert {turn["session"] for turn in recorded(shell)} == expected


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    "text",
    [
        "[](https://a.example)\n\nwords",
        "[ ] buy milk\n[x] buy oats",
        "[{{daily}}] and so on",
        '{"a"} is a set',
        "[1] a footnote first",
        "{ not json",
    ],
)
@pytest.mark.parametrize("name", ["a.md", "a.txt", "a.markdown"])
def test_a_note_that_begins_like_json_is_a_note(shell: Shell, text: str, name: str) -> None:
    """Text that is no JSON is text; an export under such a name is still one."""
    folder = notes(shell, {name: text})
    (folder / "chat.txt").write_text(json.dumps([{"role": "user", "content": "from a chat", "session": "c"}]))
    done = shell("import", str(folder), "--record")
    assert done.code == 0, done.err
    texts = [turn["text"] for turn in recorded(shell)]
    assert "from a chat" in texts
    assert len(texts) > 1


def test_a_damaged_export_is_told_whatever_its_name(shell: Shell) -> None:
    """An export that is cut off does not become a note of JSON."""
    path = notes(shell, {"chat.txt": '[{"role": "user", "content": "a"}, {"role": "us'}) / "chat.txt"
    shell("import", str(path)).failed(1, "damaged JSON")


def test_what_logseq_notes_of_a_block_is_no_word(shell: Shell) -> None:
    """Ids and states of blocks go; the person's own properties and code stay."""
    text = (
        "- Fed the goats\n  id:: 66508b3e-0f6a-4b0e-9a55-0b1c8f6d2a11\n  collapsed:: true\n"
        "- id:: 66508b3e-0f6a-4b0e-9a55-0b1c8f6d2a12\n"
        "- TODO Mow\n  :LOGBOOK:\n  CLOCK: [2024-03-10 Sun 10:00:00]\n  :END:\n"
        "- Read a book\n  author:: Ann\n- Code\n  ```\n  collapsed:: true\n  ```\n"
    )
    done = shell("import", str(notes(shell, {"2024_03_10.md": text})), "--record")
    assert [turn["text"] for turn in recorded(shell)] == [
        "Fed the goats",
        "TODO Mow",
        "Read a book\n  author:: Ann",
        "Code\n  ```\n  collapsed:: true\n  ```",
    ]
    assert "skipped: 6 properties of blocks" in done.err


def unprivileged(*command: str) -> subprocess.CompletedProcess[str]:
    """Run the program where permissions hold, for root too."""
    drop = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"]
    drop += ["--inh-caps", "-dac_override,-dac_read_search"]
    start = drop if os.geteuid() == 0 else []
    program = [*start, sys.executable, "-m", "infinimem", *command]
    return subprocess.run(program, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("mode", [0o000, 0o400, 0o600])
def test_a_folder_that_cannot_be_read_is_told_and_the_rest_comes_in(shell: Shell, mode: int) -> None:
    """One bad path never stops a folder, and everything that is passed over is named."""
    folder = notes(
        shell, {"a.md": "good words", "z/b.md": "more words", "locked/in/c.md": "x", "pic.png": "x"}
    )
    (folder / "bad.md").write_bytes(b"caf\xe9")
    notes(shell, {"old/infinimem.toml": ""})
    (folder / "locked").chmod(mode)
    done = unprivileged("--library", str(shell.library), "import", str(folder), "--record")
    (folder / "locked").chmod(0o755)
    assert done.returncode == 0, done.stderr
    assert [turn["text"] for turn in recorded(shell)] == ["good words", "more words"]
    for name in (
        "skipped locked",
        "skipped bad.md",
        "skipped old: a library",
        "1 files of other kinds (.png)",
    ):
        assert name in done.stderr


def test_an_export_of_slack_with_a_locked_channel_comes_in(shell: Shell) -> None:
    """A channel and a day that cannot be read are named, and the others come in."""
    users = [{"id": "U1", "name": "ann", "team_id": "T", "profile": {}}]
    day = [{"type": "message", "user": "U1", "text": "Lunch at one", "ts": "1710061200.1"}]
    channels = [{"id": "C1", "name": "food", "members": []}, {"id": "C2", "name": "shed", "members": []}]
    files = {
        "users.json": users,
        "channels.json": channels,
        "food/2024-03-10.json": day,
        "food/2024-03-11.json": day,
    }
    folder = notes(
        shell, {name: json.dumps(rows) for name, rows in {**files, "shed/2024-03-10.json": day}.items()}
    )
    (folder / "shed").chmod(0)
    (folder / "food" / "2024-03-11.json").chmod(0)
    done = unprivileged("--library", str(shell.library), "import", str(folder), "--record")
    (folder / "shed").chmod(0o755)
    assert [turn["text"] for turn in recorded(shell)] == ["Lunch at one"]
    assert "folder that cannot be read: shed" in done.stderr
    assert "food/2024-03-11.json" in done.stderr


MAIL = b"From: a@b.example\nTo: c@d.example\nSubject: x\nContent-Type: %s\n\n"


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("name", "begin", "unit", "times", "end"),
    [
        ("a.json.gz", b'[{"role":"user","content":"x","y":[', b"[],", 40_000_000, b"[]]}]"),
        ("b.jsonl.gz", b'{"role":"user","content":"x","y":[', b'{"":0},', 10_000_000, b"0]}"),
        ("c.json.gz", b'[{"role":"user","content":"x","y":[', b"1.5,", 30_000_000, b"0]}]"),
        ("d.md.gz", b"", b"- a\n", 15_000_000, b""),
        ("e.eml.gz", MAIL % b"multipart/mixed; boundary=b", b"--b\n\n", 10_000_000, b"--b--\n"),
        ("f.eml.gz", MAIL % b"text/html", b"<a>", 5_000_000, b""),
    ],
    ids=["lists", "objects", "numbers", "items", "parts", "tags"],
)
def test_a_small_file_does_not_fill_the_memory(
    shell: Shell, name: str, begin: bytes, unit: bytes, times: int, end: bytes
) -> None:
    """What unpacks to millions of values, lines, parts or tags is refused in a line, in bounded memory."""
    path = shell.home / name
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(begin)
        for _ in range(100):
            file.write(unit * (times // 100))
        file.write(end)
    most = 900 * 2**20

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (most, most))

    program = [
        sys.executable,
        "-m",
        "infinimem",
        "--library",
        str(shell.library),
        "import",
        str(path),
        "--record",
    ]
    done = subprocess.run(program, capture_output=True, text=True, check=False, preexec_fn=limit)
    assert done.returncode == 1
    assert "split it" in done.stderr or "save its text" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_long_text_of_brackets_is_no_structure(shell: Shell) -> None:
    """What stands in strings counts as text."""
    path = shell.home / "a.json"
    path.write_text(json.dumps([{"role": "user", "content": '\\"[{,' * 2_000_000}]))
    assert "1 turn" in shell("import", str(path), "--record").out
