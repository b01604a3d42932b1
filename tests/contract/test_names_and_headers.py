"""A document is found by what it is called and by what its header says; every form of heading is one."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_runner import Shell

from infinimem import Memory, open_memory

YAML = (
    "---\ntitle: Winter orchard plan\naliases: [Okzaat]\ntags: [grafting/apples]\nx: about rootstock\n---\n"
)
TOML = '+++\ntitle = "Winter orchard plan"\naliases = ["Okzaat"]\ntags = ["grafting"]\nx = "rootstock"\n+++\n'
JSON = '{\n"title": "Winter orchard plan",\n"aliases": "Okzaat",\n"tags": ["grafting"], "x": "rootstock"\n}\n'


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    return Shell(tmp_path, monkeypatch)


def folder_of(path: Path, notes: dict[str, str]) -> Memory:
    path.mkdir(exist_ok=True)
    for name, text in notes.items():
        (path / f"{name}.md").parent.mkdir(parents=True, exist_ok=True)
        (path / f"{name}.md").write_text(text)
    return open_memory(path)


def found(memory: Memory, query: str) -> list[str]:
    return [hit["doc_id"] for hit in memory.tools.search(query=query)["hits"]]


@pytest.mark.sample(5)
@pytest.mark.parametrize("header", [YAML, TOML, JSON], ids=["yaml", "toml", "json"])
@pytest.mark.parametrize(
    "body", ["# Lamp\n\nIt takes an E14 bulb.\n", "", "# Lamp\n" + "Light. " * 900 + "\n"]
)
@pytest.mark.parametrize("query", ["winter orchard plan", "okzaat", "grafting", "rootstock"])
def test_what_a_header_says_finds_its_note(tmp_path: Path, header: str, body: str, query: str) -> None:
    """Title, aliases, tags and other words of a header find the note, in search and in retrieve."""
    notes = {f"n{n}": f"# Note {n}\n\nNothing but a plan for lunch.\n" for n in range(5)}
    memory = folder_of(tmp_path / "n", {"a": header + body, **notes})
    hit = memory.tools.search(query=query)["hits"][0]
    assert (hit["doc_id"], hit["title"]) == ("a", "Winter orchard plan")
    assert memory.retrieve(query).items[0].doc_id == "a"
    if body:
        assert "title" not in hit["snippet"] and hit["start_line"] > header.count("\n")


@pytest.mark.parametrize(
    "header",
    [
        "---\nbook:\n  author: Quillfeather\n  read: [{by: Odile}]\n---\n",
        '+++\n[book]\nauthor = "Quillfeather"\n[[book.read]]\nby = "Odile"\n+++\n',
        '{\n"book": {"author": "Quillfeather", "read": [{"by": "Odile"}]}\n}\n',
    ],
    ids=["yaml", "toml", "json"],
)
def test_what_stands_deeper_in_a_header_finds_its_note(tmp_path: Path, header: str) -> None:
    """Groups of keys, as the [params] of Hugo, are searched as the keys above them are."""
    memory = folder_of(tmp_path / "n", {"a": header + "It takes an E14 bulb.\n", "b": "Nothing.\n"})
    assert found(memory, "quillfeather") == found(memory, "odile") == ["a"]


def test_a_note_comes_first_for_its_own_name(tmp_path: Path) -> None:
    """A file's name, however its words are joined, finds it before notes that say these words more often."""
    names = ["garden shed", "2024-03-10", "What is it", "eip-2", "v1.2 notes", "river_trip", "Über uns", "🥑"]
    talk = " ".join(f"{name} {name}." for name in names)
    notes = dict.fromkeys(names, "Something else.\n")
    notes |= {f"talk/t{n}": f"# Talk about garden and shed {n}\n\n{talk * 3}\n" for n in range(20)}
    memory = folder_of(tmp_path / "n", notes)
    for name in names:
        assert found(memory, name)[0] == name
        assert found(memory, name.replace("-", " ").replace("_", " ").upper())[0] == name
        assert memory.retrieve(name).items[0].doc_id == name


def test_names_count_in_an_initialised_library_and_for_new_notes(tmp_path: Path) -> None:
    """Notes beside a library, and notes saved after it was indexed, are found by their names too."""
    path = tmp_path / "n"
    with open_memory(path, model="offline", create=True) as memory:
        memory.observe([{"role": "user", "content": "The garden shed of Ann is green, the shed is old."}])
        assert found(memory, "garden shed")
        folder_of(path, {"mine/garden shed": "Paint it.\n", "mine/b": YAML + "Text.\n"})
        assert found(memory, "garden shed")[0] == "mine/garden shed"
        assert memory.retrieve("garden shed").items[0].doc_id == "mine/garden shed"
        assert found(memory, "okzaat") == ["mine/b"]
        (path / "mine/b.md").write_text("Text.\n")
        assert found(memory, "okzaat") == []


def test_ls_and_search_show_the_title(shell: Shell) -> None:
    """Where a document has a title of its own, ls and search show it."""
    (shell.library / "a.md").write_text(YAML + "# Lamp\n\nE14.\n")
    assert "Winter orchard plan" in shell("ls").out
    assert shell("search", "okzaat").out.startswith("a Winter orchard plan > Lamp\n")


def test_underlined_headings_are_headings(tmp_path: Path) -> None:
    """A line underlined with = or - is a heading; a rule, a list, a table or a quotation above one is not."""
    text = (
        "Trip\n====\n\nPlain fig.\n\nHotel  \n---\n\nSleeps quince.\n\n- a list\n---\n\nmedlar\n\n"
        "> quoted\n---\n\nTwo lines of text\nthat end here\n---\n\ndamson\n"
    )
    memory = folder_of(tmp_path / "n", {"a": text})
    headings = {q: memory.tools.search(query=q)["hits"][0]["heading"] for q in ("fig", "quince", "damson")}
    assert headings == {"fig": "Trip", "quince": "Trip > Hotel", "damson": "Trip > Hotel"}


def test_what_stands_in_a_comment_is_no_heading(tmp_path: Path) -> None:
    """A # or a fence inside an HTML comment begins nothing; a comment that nothing closes hides nothing."""
    text = "# Fruit\n\n<!-- note\n# Hidden\n```\n-->\n\ndamson\n\n```\n<!--\n```\n\n# Nuts\n\nalmond\n"
    memory = folder_of(tmp_path / "n", {"a": text})
    headings = {q: memory.tools.search(query=q)["hits"][0]["heading"] for q in ("damson", "almond")}
    assert headings == {"damson": "Fruit", "almond": "Nuts"}


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Brunch 🥑 toast", "🥑"),
        ("good👍🏽", "👍"),
        ("Flight to 🇯🇵 soon", "🇯🇵"),
        ("I ❤️ it", "❤"),
        ("👩‍🌾 visit", "👩‍🌾"),
    ],
)
def test_emoji_are_words(tmp_path: Path, text: str, query: str) -> None:
    """An emoji is found, in whatever colour, beside a word or alone."""
    memory = folder_of(tmp_path / "n", {"a": f"{text}\n", "b": "Brunch 🙁 toast 🇩🇪\n"})
    assert found(memory, query) == ["a"]


def test_links_by_names_as_logseq_writes_them_lead_somewhere(shell: Shell) -> None:
    """Links to a/b and to "Is it?" mean the files that Logseq writes for them, a___b.md and Is it%3F.md."""
    (shell.library / "a___b.md").write_text("One.\n")
    (shell.library / "Is it%3F.md").write_text("Two.\n")
    links = "[[a/b]] [[b]] [[Is it?]] [[a___b]] [x](a___b.md) [y](Is%20it%3F.md) [[c/d]]\n"
    (shell.library / "z.md").write_text(f"{links}\n```\n[[code]]\n```\n")
    found = shell("--library", ".", "doctor").out
    assert "c/d" in found and found.count("does not exist") == 1
