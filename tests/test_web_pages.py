"""What the pages show and do: the same as the command line, and the files are as it would leave them."""

from __future__ import annotations

import re
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from cli_runner import Shell
from history_library import HOME, LISBON, PORTO, TALK, apply, filled, rewrite, superseded
from trusting import write_trusted
from web_site import Web, web

from infinimem import open_memory

SAMPLE = Path(__file__).parents[1] / "sample_library"


@pytest.fixture
def sample(shell: Shell) -> Web:
    root = copytree(SAMPLE, shell.home / "sample")
    write_trusted(root, (root / "infinimem.toml").read_text())
    return web(root).enter()


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("path", "command"),
    [
        ("/home.json", ("status",)),
        ("/topics.json", ("ls",)),
        ("/doc/topics/home.json", ("read", "topics/home")),
        ("/doc/home.json", ("read", "home")),
        ("/fact/250.json", ("history", "250")),
        ("/search.json?q=router", ("search", "router", "-k", "50")),
        ("/search.json?q=router&scope=archive", ("search", "router", "-k", "50", "--scope", "archive")),
        ("/search.json?q=lives&as-of=2025-06-01", ("search", "lives", "-k", "50", "--as-of", "2025-06-01")),
        ("/timeline.json", ("log",)),
        ("/review.json", ("review",)),
        ("/conversations.json", ("ls", "--scope", "evidence")),
        ("/forget.json?seq=250", ("forget", "--seq", "250", "--dry-run")),
        ("/recall.json?prompt=Where+is+the+router&cwd=/", ("recall", "Where is the router", "--cwd", "/")),
    ],
)
def test_a_twin_says_what_the_command_says(
    sample: Web, shell: Shell, path: str, command: tuple[str, ...]
) -> None:
    told = shell("--library", str(sample.memory.library.root), *command, "--json").json
    assert same(sample.client.get(path).json()) == same(told)


def same(found: Any) -> Any:
    """Without what differs from call to call."""
    return {key: value for key, value in found.items() if key not in ("library", "index", "notes")}


def test_ask_answers_by_form_alone(sample: Web) -> None:
    assert sample.client.get("/ask?q=Where+does+Nora+live").text.count("It rests on") == 0
    assert "Lives in Ghent since the 16th" in sample.send("/ask", q="Where does Nora live?", at="9")
    then = sample.send("/ask", q="Where does Nora live?", at="0")
    assert "As it stood on 19 January 2025" in then
    assert 'href="/fact/15?as-of=2025-01-19"' in then
    assert "Lives in Bristol" in then
    assert "Lives in Ghent since" not in then
    told = sample.client.post("/ask.json", data={"csrf": sample.session.csrf, "q": "Where does Nora live?"})
    assert set(told.json()) == {"answer", "citations", "trace", "usage"}


def test_a_fact_leads_to_its_turn_and_its_past(sample: Web) -> None:
    document = sample.page("/doc/topics/home")
    assert 'href="/fact/250"' in document
    fact = sample.page("/fact/250")
    assert "Goedemorgen! How are the first days?" in fact  # the turn after the one that was drawn from
    assert re.search(r'class="turn user chosen drawn"[^§]*?Goedemorgen from Ghent', fact)
    assert "Lives in Bristol" in fact
    assert 'href="/doc/evidence/2025-08-24-s13#L8"' in fact
    assert 'id="L8"' in sample.page("/doc/evidence/2025-08-24-s13")
    assert "No longer holds: superseded by <a" in sample.page("/fact/15")


def test_as_of_shows_documents_as_they_stood(sample: Web) -> None:
    then = sample.page("/doc/topics/home?as-of=2025-04-01")
    assert "As it stood on 1 April 2025" in then
    assert "Lives in Bristol" in then
    assert "Lives in Ghent since" not in then
    assert "not a moment" in sample.page("/topics?as-of=yesterday", 400)


def test_what_is_not_there_is_said_in_a_line(sample: Web) -> None:
    assert "no document is called" in sample.page("/doc/nothing", 404)
    assert "no line has seq 9999" in sample.page("/fact/9999", 404)
    assert "there is no receipt" in sample.page("/receipt/99", 400)
    assert "error" in sample.client.get("/doc/nothing.json").json()


def test_undo_restores_the_files(sample: Web) -> None:
    root = sample.memory.library.root
    before = (root / "topics/home.md").read_bytes()
    assert "Undo this receipt" in sample.page("/receipt/5")
    done = sample.send("/undo", receipt="5")
    assert "takes back receipt 5" in done
    assert "Lives in Bristol" in (root / "topics/home.md").read_text()
    assert "It was taken back by" in sample.page("/receipt/5")
    sample.send("/undo", receipt="6")
    assert (root / "topics/home.md").read_bytes() == before


def test_a_fact_offers_to_undo_each_receipt_that_moved_it(sample: Web) -> None:
    root = sample.memory.library.root
    first, last = re.findall(r'action="/undo".*?</form>', sample.page("/fact/66"), re.S)
    assert ('name="receipt" value="2"' in first, "Undo it together with" in first) == (True, True)
    form = dict(re.findall(r'name="(\w+)" value="(.*?)"', last))
    assert "takes back receipt 5" in sample.send("/undo", **form)
    assert "The router is at 192.168.8.1" in (root / "topics/home-network.md").read_text()
    assert "It was taken back by" in sample.page("/fact/66")
    assert "/undo" not in web(root, read_only=True).enter().page("/fact/66")
    assert "/undo" not in sample.page("/fact/66?as-of=2025-04-01")


@pytest.mark.parametrize(("word", "file"), [("approve", "archive/home"), ("reject", HOME)])
def test_review_does_what_was_said(tmp_path: Path, word: str, file: str) -> None:
    memory = filled(tmp_path / "library")
    memory.undo()
    rewrite(memory, HOME, f"- <seq={LISBON},", f"- <seq={LISBON},pin=yes,")
    memory.library.adopt_edits()
    apply(memory, superseded(LISBON, PORTO))
    site = web(tmp_path / "library").enter()
    assert 'value="5:5"' in site.page("/review")
    assert "Nothing awaits your review" in site.send("/review", item="5:5", word=word)
    assert "I live in Lisbon" in (tmp_path / "library" / f"{file}.md").read_text()
    site.client.post("/review", data={"csrf": site.session.csrf, "item": "5", "word": "maybe"})


def forgetting(site: Web, seq: int) -> dict[str, str]:
    text = site.page(f"/forget?seq={seq}")
    return dict(re.findall(r'name="(seq|shown)" value="(.*?)"', text))


def test_forget_takes_what_was_shown_and_typed(sample: Web) -> None:
    root = sample.memory.library.root
    form = forgetting(sample, 252)
    assert "Nothing was forgotten: type" in sample.send("/forget", **form, typed="yes")
    assert "192.168.1.1 " in (root / "topics/home-network.md").read_text()
    told = sample.send("/forget", **form, typed="forget 252")
    assert "Nothing of it is left in the library or its cache" in told
    assert not [path for path in root.rglob("*.md") if "provider's box" in path.read_text()]


def test_forget_takes_nothing_that_was_not_shown(sample: Web) -> None:
    form = forgetting(sample, 252)
    path = sample.memory.library.root / "topics/home-network.md"
    path.write_text(path.read_text().replace("insists on it", "insists on it, it says"))
    assert "Something changed meanwhile" in sample.send("/forget", **form, typed="forget 252")
    assert "insists on it, it says" in path.read_text()


def test_every_strategy_has_its_pages(tmp_path: Path) -> None:
    for strategy in ("allmem", "recmem", "xmemory", "gam"):
        memory = open_memory(tmp_path / strategy, model="offline", create=True, strategy=strategy)
        memory.observe(TALK)
        memory.consolidate()
        site = web(tmp_path / strategy).enter()
        for path in ("/", "/topics", "/conversations", "/timeline", "/review"):
            site.page(path)
        assert "Lisbon" in site.page("/search?q=Lisbon")
        drawn = site.page("/map", 404 if strategy == "recmem" else 200)
        assert "no episodes yet" in drawn or "As a list" in drawn
