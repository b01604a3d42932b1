"""Search and retrieval find the right line first: questions whose first hit is known, over sample_library."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pytest
from cases import each
from cli_runner import Shell
from mcp_client import drive, texts

from infinimem import Turn, open_memory
from infinimem.spec import strategies
from infinimem.testing import ScriptedLLM

SAMPLE = Path(__file__).parents[2] / "sample_library"

FIRST = {
    "Where does Tomas's sister live?": 38,
    "Who has a key to our flat?": 136,
    "What does Pepper eat?": 55,
    "When is the booster due?": 54,
    "What is the new vet called?": 256,
    "At which address is the router?": 252,
    "Where do the backups of heron go?": 70,
    "How much is the rent of the flat in Ghent?": 194,
    "What was the car sold for?": 230,
    "When do the movers come?": 229,
    "How many sensors does the pilot have?": 19,
    "How many bursts did the pilot find?": 108,
    "How long does the nightly job take?": 155,
    "When is the half marathon?": 37,
    "When do we come back from Slovenia?": 158,
    "What are the days when I work from home?": 254,
    "Who reports to Nora?": 154,
    "Which nuts is Nora allergic to?": 21,
    "What is the ferritin value?": 192,
    "What coffee does Nora drink?": 130,
    "When does the book club meet?": 39,
    "What telescope did mum get?": 251,
    "When is mum's party?": 232,
    "What did the doctor say about caffeine?": 129,
}
"""A question, and the number of the line that `retrieve` ranks first."""

SECTIONS = {
    "router address": "topics/home-network",
    "half marathon Ghent": "topics/running",
    "salmon food": "topics/pepper",
    "adrenaline pen": "topics/health",
    "false alarms valve test": "topics/kestrel",
    "skiing in winter": "topics/travel",
}
"""Words, and the document that `search` shows first."""


@each("question", FIRST)
def test_the_line_that_answers_comes_first(question: str) -> None:
    """`retrieve` ranks the line that answers first, without a model."""
    assert open_memory(SAMPLE, model="offline").retrieve(question).items[0].seqs == (FIRST[question],)


@each("words", SECTIONS)
def test_the_document_that_is_about_it_comes_first(words: str) -> None:
    """`search` shows the section that is about the words first."""
    assert (
        open_memory(SAMPLE, model="offline").tools.search(words, k=1)["hits"][0]["doc_id"] == SECTIONS[words]
    )


# ── before anything was remembered ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("strategy", sorted(strategies()))
def test_what_is_remembered_after_an_empty_search_is_found(tmp_path: Path, strategy: str) -> None:
    """Search, remember, search again in one process finds what was remembered, with every strategy."""
    with open_memory(tmp_path / "m", model="offline", strategy=strategy, create=True) as memory:
        assert memory.tools.search(query="What does Ilse keep in the cellar?")["hits"] == []
        assert memory.retrieve("cellar").items == ()
        memory.observe([{"role": "user", "content": "Ilse keeps quince jelly in the cellar."}])
        hits = memory.tools.search(query="What does Ilse keep in the cellar?")["hits"]
        assert any("quince jelly" in hit["snippet"] for hit in hits)
        assert any("quince jelly" in item.text for item in memory.retrieve("quince jelly").items)


@pytest.mark.parametrize("initialised", [True, False])
def test_notes_added_to_an_empty_folder_are_found(tmp_path: Path, initialised: bool) -> None:
    """Notes that come into an empty folder after a search are found by the next one, the best first."""
    folder = tmp_path / "notes"
    folder.mkdir()
    with open_memory(folder, create=initialised) as memory:
        assert memory.tools.search(query="lathe")["hits"] == []
        (folder / "shop.md").write_text("# Shop\n\nThe lathe stands by the window, the lathe hums.\n")
        (folder / "long.md").write_text("# Long\n\n" + "Nothing of note. " * 60 + "Once a lathe.\n")
        hits = memory.tools.search(query="lathe")["hits"]
        assert [hit["doc_id"] for hit in hits] == ["shop", "long"]
        assert memory.retrieve("lathe").items


def test_search_remember_search_over_mcp(tmp_path: Path) -> None:
    """The natural first session over MCP works: search, remember, search."""
    pytest.importorskip("mcp", reason="the MCP SDK is not installed (pip install 'infinimem[mcp]')")
    from infinimem.mcp.server import make_server

    async def work(client: Any) -> None:
        await client.call_tool("search", {"query": "cellar"})
        await client.call_tool("remember", {"text": "Ilse keeps quince jelly in the cellar."})
        found = await client.call_tool("search", {"query": "cellar"})
        assert not found.is_error and "quince jelly" in texts(found)

    memory = open_memory(tmp_path / "m", model="offline", create=True)
    drive(make_server(memory), work)


def test_what_only_stands_beside_the_words_is_no_hit(shell: Shell) -> None:
    """Lines that have nothing of a question but its words beside them are not shown; evidence is named."""
    shell("init")
    for line in ("I keep bees.", "Could you run ruff on the commit?", "My sofa is green."):
        assert shell("add", line, "--model", "offline").code == 0
    for command in ("search", "retrieve", "grep"):
        shown = shell(command, "ruff")
        assert "bees" not in shown.out and "sofa" not in shown.out, (command, shown.out)
        assert "only the evidence has it" in shown.err and "--scope evidence" in shown.err
        assert "--scope evidence" not in shell(command, "giraffe").err
    assert "run ruff" in shell("search", "ruff", "--scope", "evidence").out
    assert "sofa" in shell("search", "green").out and "sofa" in shell("retrieve", "ruff sofa").out
    assert "--scope evidence" in shell("grep", "ruff.*commit").err


@pytest.mark.parametrize("pointing", ["Gave it away", "She'd left", "Said 'those'"])
def test_headings_and_the_words_of_its_own_turn_find_a_line(tmp_path: Path, pointing: str) -> None:
    """A fact is found by its heading, by what was said where a model worded it, and where it says "it"."""
    facts = {
        "Bought a boat.": "Owns a vessel.",
        "A blue thing.": "Likes blue.",
        f"{pointing}.": pointing,
    }

    def extract(v: Any) -> Any:
        return {
            "entries": [
                {"topic": "Harbour", "text": facts[turn["text"]], "from": [turn["id"]]} for turn in v["turns"]
            ]
        }

    memory = open_memory(tmp_path / "m", model=ScriptedLLM({"extract": extract}), create=True)
    memory.observe([Turn(text, session="s") for text in facts])
    for query, unseen in {"harbour": "", "boat": "Likes blue."}.items():
        found = {item.text for item in memory.retrieve(query).items}
        assert found == {*facts.values()} - {unseen}, query


# ── patterns ─────────────────────────────────────────────────────────────────────────────────────────


NOTE = """# Gate

The fix is commit 3fa9c1e7b2d04455aa on branch feat/gate; see https://example.org/docs/gate?id=42#top.
Run `tar --exclude='*.tmp' -xzf out.tgz` in $HOME/x, cost (net) 3.50.
"""


@pytest.mark.parametrize(
    "pattern",
    ["https://example.org/docs/gate?id=42#top", "$HOME/x", "--exclude='*.tmp'", "cost (net)", "gate?id"],
)
def test_what_stands_there_is_found_as_it_stands(shell: Shell, pattern: str) -> None:
    """A pattern that matches nothing is searched for literally, and that is said; in one document too."""
    (shell.library / "gate.md").write_text(NOTE)
    for doc in ((), ("--doc", "gate")):
        found = shell("--json", "grep", *doc, "--", pattern).json
        assert found["total_matches"] == 1 and pattern in found["matches"][0]["text"]
        assert found["notes"] == ["nothing matches it as a pattern; it was searched for literally"]
    assert "literally" in shell("grep", "--", pattern).err


def test_a_pattern_that_matches_stays_a_pattern(shell: Shell) -> None:
    """What matches as a pattern is no literal, and says nothing."""
    (shell.library / "gate.md").write_text(NOTE)
    found = shell("--json", "grep", "gate.id=4\\d").json
    assert found["total_matches"] == 1 and not found.get("notes")
    assert shell("--json", "grep", "nothing at all").json["total_matches"] == 0


def test_a_short_hash_finds_the_long_one(shell: Shell) -> None:
    """The first seven or more characters of a commit's hash find it in search."""
    (shell.library / "gate.md").write_text(NOTE)
    (shell.library / "other.md").write_text("# Other\n\nA commit 3fa9c1ffffff on a branch, deadbee too.\n")
    for short in ("3fa9c1e", "3fa9c1e7b2", "3FA9C1E7"):
        assert shell("--json", "search", short).json["hits"][0]["doc_id"] == "gate"


COSTLY = ["((.?){0,30}a){0,30}b?#", "(x?[ab ]{0,20}){20}#", "((\\pL{0,20}){0,30}a)|b"]


@pytest.mark.parametrize("pattern", COSTLY)
def test_no_pattern_takes_long(tmp_path: Path, pattern: str) -> None:
    """A pattern of repeats within repeats is answered in seconds, or refused with the limit it passed."""
    source = random.Random(5)
    text = "\n".join("".join(source.choices("ab ", k=100)) for _ in range(2000))
    (tmp_path / "a.md").write_text(f"{text}\n{text.replace(chr(10), ' ')}\n")
    with open_memory(str(tmp_path), model="offline") as memory:
        for call in (memory.tools.grep, lambda given: memory.tools.grep_doc("a", given)):
            began = time.process_time()
            found = call(pattern)
            assert time.process_time() - began < 6
            if "error" in found:
                assert "too large" in found["error"] or "more than 2 s" in found["error"]
                assert "\n" not in found["error"]


def test_the_limit_of_time_is_named(tmp_path: Path) -> None:
    """A pattern that is small enough and takes more than two seconds is refused, and nothing is guessed."""
    source = random.Random(5)
    (tmp_path / "a.md").write_text("\n".join("".join(source.choices("ab ", k=20_000)) for _ in range(120)))
    with open_memory(str(tmp_path), model="offline") as memory:
        assert "more than 2 s" in memory.tools.grep("a[ab ]{300}a[ab ]{300}#")["error"]


def test_the_limit_of_size_is_named(shell: Shell) -> None:
    """A pattern that is too large is refused by its size, before any text is searched."""
    (shell.library / "gate.md").write_text(NOTE)
    ran = shell("grep", "(\\pL{1,30}){1,30}")
    assert ran.code and "error: the pattern is too large (over 10000 instructions)" in ran.err
