"""What stands in a line, however long, is found, shown and read on."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from cli_runner import Shell

from infinimem import open_memory

FACT = "The spare key of the boathouse hangs behind the blue oar, code 60417."
WORDS = (
    "we then walked along the river and talked of boats and keys and of the weather until it was late".split()
)


def prose(size: int, seed: int = 3) -> str:
    """So many characters about nothing, with the fact near their end."""
    source = random.Random(seed)
    text = ""
    while len(text) < size - 300:
        text += " ".join(source.choices(WORDS, k=12)).capitalize() + ". "
    return f"{text}{FACT} {text[:200]}"


@pytest.fixture
def notes(shell: Shell) -> Path:
    """A folder of notes: a paragraph of two screens, a transcript on one line, and others."""
    (shell.library / "trip.md").write_text(f"# Trip\n\n{prose(1400)}\n")
    (shell.library / "call.md").write_text(f"# Call\n\n{prose(50_000).replace('60417', '71528')}\n\nEnd.\n")
    for name in ("keys", "boats", "weather", "oar"):
        (shell.library / f"{name}.md").write_text(
            f"# {name}\n\nNothing on the {name} yet, a code is missing.\n"
        )
    return shell.library


@pytest.mark.parametrize("number", ["60417", "71528"])
def test_search_and_grep_show_the_place_that_matches(shell: Shell, notes: Path, number: str) -> None:
    """What search and grep show of a long line is around the match, and says where it is cut."""
    for args in (("search", f"boathouse key oar code {number}", "-k", "1"), ("grep", f"oar, code {number}")):
        found = shell("--json", *args).json
        shown = found["hits"][0]["snippet"] if "hits" in found else found["matches"][0]["text"]
        assert f"code {number}" in shown and len(shown) < 700
        assert re.search(r"^\[\d+…\] |\[…read on at offset \d+ of \d+\]$", shown, re.M)
    assert f"code {number}" in shell("grep", "--doc", "trip" if number == "60417" else "call", number).out


def test_a_long_line_is_read_to_its_end_page_by_page(notes: Path) -> None:
    """read_lines pages inside a line: the pages together are the line, and each names the next."""
    with open_memory(str(notes), model="offline") as memory:
        line = (notes / "call.md").read_text().split("\n")[2]
        pages, offset = "", 0
        while len(pages) < len(line):
            found = memory.tools.read_lines("call", start=3, end=3, offset=offset)
            (row,) = found["lines"]
            page = row["text"].removeprefix(f"[{offset}…] ")
            if "[…read on at offset " in page:
                page, _, mark = page.rpartition(" […read on at offset ")
                offset = int(mark.split()[0])
                assert found["notes"] == [f"line 3 is cut; go on at its offset {offset}"]
            assert len(page) <= 16_000
            pages += page
        assert pages == line
        assert (
            "no offset" in memory.tools.read_lines("call", start=3, end=3, offset=len(line) + 5)["notes"][0]
        )


def test_the_command_line_reads_inside_a_line_and_shows_it_whole(shell: Shell, notes: Path) -> None:
    """`read --offset` reads on in a line, and `--raw` shows what stands in the file, whole."""
    text = (notes / "call.md").read_text()
    at = text.split("\n")[2].index("71528") - 20
    assert "71528" not in shell("read", "call").out
    assert "71528" in shell("read", "call", "3", "--offset", str(at)).out
    raw = shell("read", "call", "--raw").out
    assert raw == "".join(f"{number} {line}\n" for number, line in enumerate(text.split("\n")[:-1], 1))
    assert [
        row["text"] for row in shell("--json", "read", "call", "--raw").json["lines"]
    ] == text.splitlines()
    assert text.split("\n")[2] in shell("grep", "71528", "--raw").out
    assert text.split("\n")[2] in shell("search", "boathouse oar 71528", "--raw").out


def test_a_note_longer_than_a_page_is_whole_with_raw(shell: Shell) -> None:
    """`read --raw` shows all lines of a file, however many."""
    (shell.library / "list.md").write_text("".join(f"line {number}\n" for number in range(1, 301)))
    assert shell("read", "list", "--raw").out.endswith("\n300 line 300\n")
    assert shell("read", "list", "120:130", "--raw").out.startswith("120 line 120\n")
    assert shell("read", "list", "120:130", "--raw").out.endswith("\n130 line 130\n")


def test_what_is_retrieved_of_a_long_line_is_the_piece(shell: Shell, notes: Path) -> None:
    """A fact at the end of a line of 50 kB is retrieved, and answers a question without a model."""
    found = shell(
        "--json", "--library", ".", "retrieve", "what is the boathouse oar code 71528", "--budget", "600"
    ).json["items"]
    best = found[0]
    assert "71528" in best["text"] and len(best["text"]) < 1200
    assert (best["doc_id"], best["start_line"], best["end_line"]) == ("call", 3, 3)
    assert best["text"].strip("…") in (notes / "call.md").read_text()
    assert "71528" in shell("ask", "Where does the spare key of the boathouse hang, with code 71528?").out


@pytest.mark.parametrize("form", ["one line", "many lines"])
def test_a_long_turn_is_found_in_pieces(tmp_path: Path, form: str) -> None:
    """A fact at the end of a long signed turn is retrieved, searched and read like any other."""
    said = prose(40_000)
    if form == "many lines":
        said = said.replace(". ", ".\n")
    with open_memory(str(tmp_path / "lib"), model="offline", create=True) as memory:
        memory.record([{"role": "user", "content": said, "time": "2025-05-01", "speaker": "Ida"}])
        memory.record([{"role": "user", "content": "The key of the car is lost.", "time": "2025-05-02"}])
        best = memory.retrieve("where does the spare key of the boathouse hang", 600).items[0]
        assert "60417" in best.text and len(best.text) < 1200 and best.speaker == "Ida"
        hit = memory.tools.search("spare key boathouse blue oar", k=1)["hits"][0]
        assert "60417" in hit["snippet"]
        text = memory.tools.text("search", {"query": "spare key boathouse blue oar", "k": 1})
        assert "60417" in text and "Ida" in (text if form == "one line" else "Ida")
        assert "60417" in memory.tools.text("grep", {"pattern": "60417", "scope": "evidence"})
        assert "60417" in memory.ask("Where does the spare key of the boathouse hang?").text


def test_no_result_grows_by_it(notes: Path) -> None:
    """One call returns 16,000 characters of stored text at most, whatever the lines hold."""
    (notes / "odd.md").write_text("\x1b\u202e" * 30_000 + "\n" + "word " * 20_000 + "\n")
    with open_memory(str(notes), model="offline") as memory:
        for offset in (0, 100):
            read = memory.tools.read_lines("odd", offset=offset)
            assert 1000 < sum(len(row["text"]) for row in read["lines"]) < 16_200
        found = memory.tools.grep("word", context_lines=5)
        assert sum(len(text) for row in found["matches"] for text in (row["text"], *row["after"])) < 20_000
