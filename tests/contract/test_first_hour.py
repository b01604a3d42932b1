"""What people met in their first hour: three inputs of each kind, tried from the command line."""

from __future__ import annotations

import http.server
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cli_runner import Shell

from infinimem import open_memory

MINE = "- <seq="


class Desk:
    """A person's machine: an empty home, and commands run in it."""

    def __init__(self, shell: Shell) -> None:
        self.shell, self.root = shell, shell.home.parent
        self.lib = self.root / "lib"

    def run(self, *args: str, lib: Path | None = None, code: int | None = 0, **env: str) -> str:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in env.items():
                patch.setenv(name, value)
            done = self.shell("--library", str(lib or self.lib), *args)
        self.err, self.code, self.out = done.err, done.code, done.out
        if code is not None:
            assert done.code == code, (args, done.code, done.out, done.err)
        return done.out

    def init(self, lib: Path | None = None) -> Path:
        assert self.shell("init", str(lib or self.lib)).code == 0
        return lib or self.lib

    def evidence(self) -> str:
        return "\n".join(p.read_text() for p in sorted((self.lib / "evidence").rglob("*.md")))

    def live(self) -> str:
        files = [self.lib / "CURRENT.md", *sorted((self.lib / "topics").glob("*.md"))]
        text = "\n".join(p.read_text() for p in files if p.exists())
        return "\n".join(line for line in text.splitlines() if line.startswith(MINE))


@pytest.fixture
def desk(shell: Shell) -> Desk:
    return Desk(shell)


def first_note(out: str) -> str:
    return out.split("\n", 1)[0]


# ── A ───────────────────────────────────────────────────────────────────────────────────────────


def usual(request: dict[str, Any]) -> str:
    said = request["messages"][-1]["content"]
    turns = re.findall(r"^\[(\d+)\][^:\n]*: (.*)$", said, re.M)
    return json.dumps({"entries": [{"topic": "Things", "from": [i], "text": t} for i, t in turns]})


@contextmanager
def model(answer: Any) -> Iterator[dict[str, str]]:
    """`answer(request) -> (status, message, finish)`."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, message, finish = answer(request)
            body = (
                message
                if status != 200
                else {
                    "id": "x",
                    "object": "chat.completion",
                    "created": 0,
                    "model": "m",
                    "choices": [
                        {"index": 0, "finish_reason": finish, "message": {"role": "assistant", **message}}
                    ],
                    "usage": {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10},
                }
            )
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield {
            "OPENAI_API_KEY": "k-for-tests",
            "INFINIMEM_MODEL": "m",
            "OPENAI_BASE_URL": f"http://127.0.0.1:{server.server_port}/v1",
        }
    finally:
        server.shutdown()
        server.server_close()


def good(request: dict[str, Any]) -> Any:
    return 200, {"content": usual(request)}, "stop"


FAILURES = {
    "filtered": (lambda r: (200, {"content": ""}, "content_filter"), ""),
    "reasoning_content": (
        lambda r: (200, {"content": "", "reasoning_content": usual(r)}, "stop"),
        "reasoning",
    ),
    "refusal part": (lambda r: (200, {"content": [{"type": "refusal", "refusal": "No."}]}, "stop"), "refus"),
    "cut": (lambda r: (200, {"content": usual(r)[:20]}, "length"), "cut"),
    "prose": (lambda r: (200, {"content": "Sure! Here is what I found."}, "stop"), ""),
    "too long": (
        lambda r: (
            400,
            {
                "error": {
                    "message": "Input is longer than the context window.",
                    "code": "context_length_exceeded",
                    "type": "x",
                }
            },
            "",
        ),
        "",
    ),
}


@pytest.mark.parametrize(
    ("kind", "strategy"),
    [
        *((kind, "infini") for kind in FAILURES),
        *(("cut", name) for name in ("recmem", "xmemory", "gam", "allmem")),
    ],
)
def test_a_failure_is_told_and_tried_again(desk: Desk, kind: str, strategy: str) -> None:
    """A failed extraction is not an empty one: it is told, found as it was said, and tried again."""
    answer, word = FAILURES[kind]
    desk.init()
    desk.run("add", "My bike is red.", "--model", "offline", "--strategy", strategy)
    desk.run("search", "bike")
    with model(answer) as env:
        desk.run("add", "The cellar key hangs behind the boiler.", "--strategy", strategy, code=None, **env)
    if strategy == "infini":
        assert desk.code == 3, (desk.code, desk.out, desk.err)
        assert word in (desk.out + desk.err).lower()
        assert "nothing in it to keep" not in desk.out + desk.err
    assert "cellar key" in desk.run("search", "cellar key")
    if strategy != "infini":
        return
    assert "cellar key" in desk.run("retrieve", "where does the cellar key hang")
    assert "1" in [
        line.split("\t")[-1] for line in desk.run("status").splitlines() if "not processed" in line
    ]
    with model(good) as env:
        desk.run("consolidate", code=None, **env)
    assert "cellar key" in desk.live()


def test_a_context_length_halves_the_portion(desk: Desk) -> None:
    """A portion that does not fit the model is asked about in halves."""

    def narrow(request: dict[str, Any]) -> Any:
        if (
            len(
                re.findall(r"^\[\d+\][^:\n]*: ", request["messages"][-1]["content"].split("TURNS:")[-1], re.M)
            )
            > 4
        ):
            return (
                400,
                {
                    "error": {
                        "message": "maximum context length is 512 tokens",
                        "code": "context_length_exceeded",
                    }
                },
                "",
            )
        return good(request)

    desk.init()
    chat = desk.root / "chat.jsonl"
    chat.write_text(
        "".join(
            json.dumps({"role": "user", "content": f"Box {n} holds the item {n * 7}."}) + "\n"
            for n in range(20)
        )
    )
    with model(narrow) as env:
        desk.run("import", str(chat), **env)
    assert all(f"holds the item {n * 7}." in desk.live() for n in range(20))


def test_text_parts_are_the_text(desk: Desk) -> None:
    """The text parts of a list are the answer; reasoning is passed over."""
    desk.init()
    with model(
        lambda r: (
            200,
            {
                "content": [
                    {"type": "reasoning", "text": "hmm"},
                    {"type": "text", "text": usual(r)[:10]},
                    {"type": "text", "text": usual(r)[10:]},
                ]
            },
            "stop",
        )
    ) as env:
        desk.run("add", "Our boiler is from 2009.", **env)
    assert "Our boiler is from 2009." in desk.live()


def test_an_error_behind_a_relay_is_told_in_its_words(desk: Desk) -> None:
    """A relay that reports an error with HTTP 200 is not taken for no model server at all."""
    desk.init()
    with model(lambda _: (201, {"error": {"message": "Provider returned error", "code": 502}}, "")) as env:
        home = desk.shell.home / ".config" / "infinimem"
        home.mkdir(parents=True)
        (home / "config.toml").write_text("[llm]\nretries = 0\n")
        desk.run("add", "The gate code is 4417.", code=1, **env)
    assert "Provider returned error" in desk.err
    assert "4417" in desk.run("search", "gate code")


# ── B ───────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_behind_character_500_is_shown(desk: Desk) -> None:
    """What stands late in a long line is shown by every reading command."""
    notes = desk.root / "n"
    notes.mkdir()
    words = " ".join(f"word{n}" for n in range(150))
    (notes / "long.md").write_text(f"# Long\n\n{words} the tide gauge reads 3.17 metres {words}\n")
    (notes / "list.md").write_text(f"# List\n\n- {words} and the permit is QX-551 at last\n")
    for command in (
        "search tide gauge reads",
        'grep "tide gauge"',
        "read long --raw",
        "--json grep tide.gauge",
    ):
        assert "3.17" in desk.run(*command.replace('"', "").split(), lib=notes), command
    assert "QX-551" in desk.run("search", "permit", lib=notes)
    assert "QX-551" in desk.run("--json", "search", "permit", lib=notes)


def test_a_very_long_line_is_found_at_its_end(desk: Desk) -> None:
    """A fact at the end of a line of 100 kB is found and quoted."""
    notes = desk.root / "n"
    notes.mkdir()
    (notes / "dump.md").write_text(
        "lorem ipsum dolor " * 4000 + "the harbour office opens at seven " + "sit amet " * 3000
    )
    for command in (
        ["retrieve", "when does the harbour office open"],
        ["search", "harbour office"],
        ["ask", "When does the harbour office open?"],
    ):
        assert "at seven" in desk.run(*command, lib=notes), command


def test_a_long_entry_is_shown_around_the_match(desk: Desk) -> None:
    """A long entry is shown around what was looked for."""
    desk.init()
    desk.run("add", "x " * 600 + "the meeting point is gate 31B " + "y " * 600, "--model", "offline")
    assert "31B" in desk.run("search", "meeting point")
    assert "31B" in desk.run("grep", "meeting point", "--scope", "evidence")


# ── C ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("name", "text", "query"),
    [
        ("x1", "---\ntitle: Winter tyres\n---\nChanged in the workshop.\n", "winter tyres"),
        ("x2", "---\naliases: [Bluebell, Grandma's house]\n---\nA place.\n", "bluebell"),
        ("x3", "---\ntags:\n  - gardening/roses\n---\nPrune them.\n", "gardening"),
        ("x4", "---\ndescription: How we insulated the attic\n---\nSome text.\n", "insulated attic"),
        ("x5", '+++\ntitle = "Copper pans"\ntags = ["kitchenware"]\n+++\nClean them.\n', "kitchenware"),
        ("x6", '{\n "title": "Night train",\n "tags": ["sleeper"]\n}\n\nBring a pillow.\n', "sleeper"),
        ("sourdough-starter", "Feed it.\n", "sourdough starter"),
        ("Project Falcon/Minutes of May", "Nothing.\n", "minutes of may"),
    ],
)
def test_names_and_headers_are_found(desk: Desk, name: str, text: str, query: str) -> None:
    """A note is found first by its name, and by the words of its header."""
    notes = desk.root / "n"
    for n in range(6):
        path = notes / f"other{n}.md"
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(f"# Other {n}\n\nThis is about something else, number {n}.\n")
    path = notes / f"{name}.md"
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(text)
    assert first_note(desk.run("search", query, lib=notes)).startswith(name)


def test_ls_shows_titles(desk: Desk) -> None:
    """`ls` shows the title of a header."""
    notes = desk.root / "n"
    notes.mkdir()
    (notes / "a.md").write_text("---\ntitle: Winter tyres\n---\nText.\n")
    assert "Winter tyres" in desk.run("ls", lib=notes)


def test_setext_headings_and_comments(desk: Desk) -> None:
    """Underlined headings are headings, comments are none."""
    notes = desk.root / "n"
    notes.mkdir()
    (notes / "a.md").write_text(
        "Opening\n=======\n\npear\n\nSecond part\n---\n\nplum\n\n"
        "<!--\n# hidden\n-->\n\ncherry\n\n- item\n---\n\nfig\n"
    )
    headings = {}
    for word in ("pear", "plum", "cherry"):
        headings[word] = json.loads(desk.run("--json", "search", word, "-k", "1", lib=notes))["hits"][0][
            "heading"
        ].split(" > ")[-1]
    assert headings == {"pear": "Opening", "plum": "Second part", "cherry": "Second part"}


# ── D ───────────────────────────────────────────────────────────────────────────────────────────


def claude(messages: list[dict[str, Any]], **more: Any) -> str:
    rows = [
        {
            "sender": "human",
            "attachments": [],
            "files": [],
            "created_at": f"2025-06-01T10:{n:02}:00Z",
            **m,
            "content": [{"type": "text", "text": m["text"]}] if m["text"] else [],
        }
        for n, m in enumerate(messages)
    ]
    return json.dumps(
        [
            {
                "uuid": "c",
                "name": "Chat",
                "created_at": "2025-06-01T10:00:00Z",
                "updated_at": "2025-06-01T11:00:00Z",
                "account": {"uuid": "a"},
                "chat_messages": rows,
                **more,
            }
        ]
    )


ROOT = "00000000-0000-4000-8000-000000000000"


@pytest.mark.parametrize(
    ("leaf", "kept", "gone"), [(None, "plums", "pears"), ("b2", "pears", "plums"), ("d2", "plums", "pears")]
)
def test_only_the_open_branch_comes_in(desk: Desk, leaf: str | None, kept: str, gone: str) -> None:
    """Of edited prompts only the open branch comes in, and the rest is counted."""
    desk.init()
    rows = [
        {"uuid": "a1", "parent_message_uuid": ROOT, "text": "I shop on Fridays."},
        {"uuid": "a2", "parent_message_uuid": "a1", "sender": "assistant", "text": "Good."},
        {"uuid": "b1", "parent_message_uuid": "a2", "text": "I buy pears."},
        {"uuid": "b2", "parent_message_uuid": "b1", "sender": "assistant", "text": "Nice pears."},
        {"uuid": "d1", "parent_message_uuid": "a2", "text": "I buy plums."},
        {"uuid": "d2", "parent_message_uuid": "d1", "sender": "assistant", "text": "Nice plums."},
    ]
    path = desk.root / "conversations.json"
    path.write_text(claude(rows, **({"current_leaf_message_uuid": leaf} if leaf else {})))
    desk.run("import", str(path), "--record")
    assert "skipped: 2 messages" in desk.out + desk.err
    assert "I shop on Fridays" in desk.evidence()
    assert kept in desk.evidence() and gone not in desk.evidence()


def test_pasted_text_comes_in(desk: Desk) -> None:
    """Pasted text comes in with its message, also alone."""
    desk.init()
    pasted = [
        {"file_name": "", "file_size": 9, "file_type": "txt", "extracted_content": "Router PIN is 7741."}
    ]
    path = desk.root / "c.json"
    path.write_text(claude([{"uuid": "a", "parent_message_uuid": ROOT, "text": "", "attachments": pasted}]))
    desk.run("import", str(path), "--record")
    assert "Router PIN is 7741." in desk.evidence()


def test_refusals_and_queued_prompts_of_claude_code(desk: Desk) -> None:
    """Words of a refusal and queued prompts come in once, as the user's."""
    desk.init()
    base = {"sessionId": "s", "cwd": "/p", "version": "2", "isSidechain": False}
    no = (
        "The user doesn't want to proceed with this tool use. The tool use was rejected. "
        "To tell you how to proceed, the user said:\nUse tabs, please.\nAlways."
    )
    rows = [
        {
            **base,
            "type": "user",
            "uuid": "1",
            "parentUuid": None,
            "timestamp": "2026-01-01T10:00:00Z",
            "message": {"role": "user", "content": "Start."},
        },
        {
            **base,
            "type": "assistant",
            "uuid": "2",
            "parentUuid": "1",
            "timestamp": "2026-01-01T10:01:00Z",
            "message": {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "t", "name": "Edit", "input": {}}],
            },
        },
        {
            **base,
            "type": "user",
            "uuid": "3",
            "parentUuid": "2",
            "timestamp": "2026-01-01T10:02:00Z",
            "message": {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "t",
                        "is_error": True,
                        "content": [{"type": "text", "text": no}],
                    }
                ],
            },
        },
        {
            "type": "queue-operation",
            "operation": "enqueue",
            "content": "Check the docs too.",
            "timestamp": "2026-01-01T10:03:00Z",
            "sessionId": "s",
        },
        {
            "type": "queue-operation",
            "operation": "dequeue",
            "timestamp": "2026-01-01T10:03:10Z",
            "sessionId": "s",
        },
        {
            **base,
            "type": "user",
            "uuid": "4",
            "parentUuid": "3",
            "timestamp": "2026-01-01T10:03:10Z",
            "message": {"role": "user", "content": "Check the docs too."},
        },
    ]
    path = desk.root / "s.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    desk.run("import", str(path), "--record")
    told = desk.evidence()
    assert "Use tabs, please." in told and "Always." in told and "doesn't want to proceed" not in told
    assert told.count("Check the docs too.") == 1


# ── E ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("2025-02-03", "x"),
        ("20250203", "x"),
        ("2025_02_03", "x"),
        ("2025.02.03", "x"),
        ("3 February 2025", "x"),
        ("February 3, 2025", "x"),
        ("2025-02-03 Monday", "x"),
        ("Feb 3rd, 2025", "x"),
        ("2025-02-03T1200", "x"),
        ("n", "---\nDate: 2025-02-03\n---\nx"),
        ("n", "---\ncreated_at: 2025-02-03T10:00:00Z\n---\nx"),
        ("n", "---\ndate created: Monday, February 3rd 2025, 9:00 am\n---\nx"),
        ("n", "---\ncreated: 2025-02-03 10:00\n---\nx"),
        ("n", "---\npublishDate: 2025/02/03\n---\nx"),
        ("n", "+++\ndate = 2025-02-03\n+++\nx"),
    ],
)
def test_a_day_is_read(desk: Desk, name: str, text: str) -> None:
    """The common ways to write a day in a name or a header are known."""
    desk.init()
    notes = desk.root / "notes"
    notes.mkdir()
    (notes / f"{name}.md").write_text(text.replace("x", "The kiln was fired again."))
    desk.run("import", str(notes), "--record")
    line = next(line for line in desk.evidence().splitlines() if "kiln" in line)
    assert "time=2025-02-03" in line, line


def test_names_with_dots_stay_apart(desk: Desk) -> None:
    """Only a real extension is cut from a name."""
    desk.init()
    notes = desk.root / "notes"
    notes.mkdir()
    for name in ("v2.1 release.md", "v2.2 release.md", "St. Gallen.md", "a.b.c.md"):
        (notes / name).write_text("Some words of it.\n")
    desk.run("import", str(notes), "--record")
    sessions = set(re.findall(r"^session: (.*)$", desk.evidence(), re.M))
    assert {s.strip("\"'") for s in sessions} == {"v2.1 release", "v2.2 release", "St. Gallen", "a.b.c"}


@pytest.mark.parametrize(
    "text", ["[ ] call the plumber\n", "[1] a footnote first\n", "[x] done: rang Ann.\n", "{ not json\n"]
)
def test_a_note_that_looks_like_json_is_text(desk: Desk, text: str) -> None:
    """A note that begins like JSON is text."""
    desk.init()
    path = desk.root / "n.md"
    path.write_text(text)
    desk.run("import", str(path), "--record")
    assert text.strip()[2:] in desk.evidence()


# ── F ───────────────────────────────────────────────────────────────────────────────────────────


def test_other_spellings_and_emoji(desk: Desk) -> None:
    """Other endings are named, emoji are words."""
    notes = desk.root / "n"
    notes.mkdir()
    (notes / "A.MD").write_text("# A\n\nmarzipan\n")
    (notes / "b.markdown").write_text("# B\n\nnougat\n")
    (notes / "c.md").write_text("# C\n\nrated 👍🏽 today\n")
    (notes / "d.md").write_text("# D\n\nseen 🦊\n")
    desk.run("search", "marzipan", lib=notes)
    assert "A.MD" in desk.err and "b.markdown" in desk.err
    for query, name in (("🦊", "d"), ("👍", "c")):
        assert first_note(desk.run("search", query, lib=notes)).startswith(name)


def test_copies_and_foreign_folders_are_left_out_and_told(desk: Desk) -> None:
    """Copies, node_modules and what .gitignore names are left out, and that is told."""
    notes = desk.root / "n"
    for name in (
        "Plan.md",
        "Plan.sync-conflict-20260101-101010-ABCDEFG.md",
        "Plan (Bo's conflicted copy 2026-01-01).md",
        "node_modules/x/README.md",
        "out/built.md",
        ".git/x.md",
    ):
        path = notes / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("The quartz watch.\n")
    (notes / ".gitignore").write_text("out/\n")
    out = json.loads(desk.run("--json", "search", "quartz", lib=notes))
    assert [hit["doc_id"] for hit in out["hits"]] == ["Plan"]
    desk.run("doctor", lib=notes, code=None)
    assert "node_modules" in desk.out + desk.err or "left out" in desk.out + desk.err


# ── G ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "text", ["Paid the gas bill.", "I ran 5 km.", "Watered the plants.", "Blood pressure was 128 over 83."]
)
def test_the_same_sentence_on_another_day_is_another_event(desk: Desk, text: str) -> None:
    """An event that recurs is no duplicate."""
    desk.init()
    for day in ("2026-01-10", "2026-02-10", "2026-03-10"):
        desk.run("add", text, "--time", f"{day}T09:00:00", "--session", day, "--model", "offline")
    desk.run("consolidate", "--model", "offline")
    assert desk.live().count(text) == 3


def test_january_is_found(desk: Desk) -> None:
    """A measure of January is found although March says the same."""
    desk.init()
    for day, kilos in (("2026-01-10", 80), ("2026-02-10", 79), ("2026-03-10", 80)):
        desk.run(
            "add",
            f"The scale said {kilos} kg",
            "--time",
            f"{day}T09:00:00",
            "--session",
            day,
            "--model",
            "offline",
        )
    desk.run("consolidate", "--model", "offline")
    first = desk.run("search", "What did the scale say in January?", "--raw")
    assert "time=2026-01-10" in first
    line = desk.run("retrieve", "What did the scale say in January?").splitlines()[0].split("\t")[1]
    name, _, number = line.partition(":")
    assert "time=2026-01-10" in (desk.lib / f"{name}.md").read_text().splitlines()[int(number) - 1]


def test_an_edited_note_imported_again_replaces_its_lines(desk: Desk) -> None:
    """An edited note imported again replaces what was drawn from it; the evidence stays."""
    desk.init()
    note = desk.root / "boat.md"
    note.write_text("# Boat\n\nThe berth is number 12.\n\nThe hull is oak.\n")
    desk.run("import", str(note), "--model", "offline")
    desk.run("consolidate", "--model", "offline")
    note.write_text("# Boat\n\nThe berth is number 14.\n\nThe hull is oak.\n")
    desk.run("import", str(note), "--model", "offline")
    desk.run("consolidate", "--model", "offline", code=None)
    assert "number 14" in desk.live() and "number 12" not in desk.live()
    assert desk.live().count("The hull is oak.") == 1
    archive = "\n".join(p.read_text() for p in (desk.lib / "archive").glob("*.md"))
    assert "number 12" in archive and "number 12" in desk.evidence()


# ── H ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("We are flying to Crete in August because Tom won a prize", "when=2024-08"),
        ("The course begins in October and I bought the books", "when=2024-10"),
        ("She will start in May, as her visa came", "when=2024-05"),
        ("I had 4 exams in a week", "when="),
        ("Grandpa, who died in March, loved that the garden opens in June", "when=2024-06"),
    ],
)
def test_a_year_is_not_guessed(desk: Desk, text: str, wrong: str) -> None:
    """No year is added that the governing verb does not tell."""
    desk.init()
    desk.run("add", text, "--time", "2025-04-12T10:00:00", "--model", "offline")
    assert wrong not in desk.live(), desk.live()


# ── I ───────────────────────────────────────────────────────────────────────────────────────────


def test_forget_changes_no_name_and_undo_goes_past_it(desk: Desk) -> None:
    """Forget changes no name and leaves no byte of the text; undo goes past it."""
    desk.init()
    for text in (
        "My neighbour Ilka keeps bees.",
        "My neighbour lends me his ladder.",
        "The neighbour's dog is called Rolf.",
    ):
        desk.run("add", text, "--model", "offline")
    desk.run("consolidate", "--model", "offline")
    names = sorted(p.name for p in (desk.lib / "topics").glob("*.md"))
    desk.run("forget", "--match", "Ilka", "--yes", code=None)
    assert sorted(p.name for p in (desk.lib / "topics").glob("*.md")) == names
    everything = b"".join(p.read_bytes() for p in desk.lib.rglob("*") if p.is_file())
    assert b"Ilka" not in everything
    desk.run("undo")
    assert "ladder" in (desk.lib / "CURRENT.md").read_text()
    assert "Ilka" not in desk.live()
    desk.run("undo")
    desk.run("doctor", code=None)
    assert desk.code == 0, desk.out


# ── J ───────────────────────────────────────────────────────────────────────────────────────────


def test_loopback_goes_around_a_proxy(desk: Desk) -> None:
    """A model on this machine is reached around a proxy."""
    desk.init()
    with model(good) as env:
        desk.run(
            "add",
            "My canoe is green.",
            **env,
            http_proxy="http://127.0.0.1:9",
            HTTP_PROXY="http://127.0.0.1:9",
        )
    assert "canoe" in desk.live()


@pytest.mark.sample(3)
@pytest.mark.parametrize("pattern", ["http://a.example/x?y=1", "$PATH", "C:\\new", "f(x)", "[todo]", "*.log"])
def test_a_pattern_that_stands_there_literally_is_found(desk: Desk, pattern: str) -> None:
    """A pattern that matches nothing is looked for literally."""
    notes = desk.root / "n"
    notes.mkdir()
    (notes / "a.md").write_text(f"# A\n\nuse {pattern} here\n")
    out = desk.run("grep", "--", pattern, lib=notes)
    assert "here" in out or "pattern" in out + desk.err


# ── K ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_settings_value_cannot_forge_the_question(desk: Desk) -> None:
    """A value of a setting is one line wherever it is printed."""
    desk.init()
    toml = desk.lib / "infinimem.toml"
    fake = "good\\n" * 60 + "base_url = http://trusted.example"
    toml.write_text(toml.read_text() + f'\n[llm]\nmodel = "{fake}"\nbase_url = "http://evil.example/v1"\n')
    other = desk.root / "home2"
    other.mkdir()
    for command in (["trust"], ["config"]):
        desk.run(*command, code=None, HOME=str(other))
        assert "\nbase_url = http://trusted.example" not in desk.out + desk.err
        assert not re.search(r"^good$", desk.out + desk.err, re.M)


@pytest.mark.parametrize("strategy", ["infini", "recmem", "xmemory", "gam", "allmem"])
def test_search_remember_search_in_one_process(desk: Desk, strategy: str) -> None:
    """Searching an empty library first does not spoil the searches after it."""
    memory = open_memory(desk.init(), model="offline", strategy=strategy)
    assert memory.tools.search("bike")["hits"] == []
    memory.observe([{"role": "user", "content": "My bike is red."}])
    assert memory.tools.search("bike")["hits"]
    assert memory.retrieve("What colour is my bike?").items


def test_a_hostile_pattern_ends_soon(desk: Desk) -> None:
    """A pattern that costs too much ends in one line."""
    notes = desk.root / "n"
    notes.mkdir()
    (notes / "a.md").write_text(("a" * 400 + "\n") * 220)
    desk.run("grep", "((((a{1,9}){1,9}){1,9})x)", lib=notes, code=None)
    assert desk.code in (0, 1, 2)
    assert desk.err.count("\n") <= 2


# ── what a fault in the guarding modules would do ───────────────────────────────────────────────


def test_forget_takes_every_line_of_a_models_own_file(desk: Desk) -> None:
    """A forgotten word stands in no line of a file of the memory tool, the first one included."""
    desk.init()
    desk.run("add", "The zebra fund is for Lena.", "--model", "offline")
    file = desk.lib / "memories" / "plans.md"
    file.parent.mkdir(exist_ok=True)
    file.write_text("zebra fund: do not mention\n\nbuy bread\n\nthe zebra again\n")
    desk.run("forget", "--match", "zebra", "--yes", code=None)
    assert "zebra" not in file.read_text()
    assert "buy bread" in file.read_text()


@pytest.mark.parametrize(
    ("roles", "source"),
    [(("assistant", "tool"), "tool"), (("user", "assistant"), "AI"), (("user", "tool"), "tool")],
)
def test_an_entry_has_the_least_trusted_of_its_sources(
    desk: Desk, roles: tuple[str, str], source: str
) -> None:
    """What is drawn from several turns is trusted no more than the least of them: tool, AI, user."""
    desk.init()
    chat = desk.root / "chat.jsonl"
    rows = [{"role": role, "content": "The depot opens at nine on Fridays."} for role in roles]
    chat.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def joined(request: dict[str, Any]) -> Any:
        numbers = re.findall(r"^\[(\d+)\][^:\n]*: ", request["messages"][-1]["content"], re.M)
        entry = {"topic": "Depot", "from": numbers, "text": "The depot opens at nine on Fridays."}
        return 200, {"content": json.dumps({"entries": [entry]})}, "stop"

    with model(joined) as env:
        desk.run("import", str(chat), code=None, **env)
    assert f"source={source}," in desk.live()
