"""What the pages show and do: the same as the command line, and the files are as it would leave them."""

from __future__ import annotations

import html
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


def test_the_twin_of_a_receipt_is_the_receipt(sample: Web) -> None:
    found = sample.client.get("/receipt/5.json").json()
    assert (found["id"], len(found["rows"])) == ("journal/0005-consolidate", 40)


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


def test_facets_leave_the_lines_that_they_name(sample: Web) -> None:
    every, some = (
        sample.page("/search?q=coffee+run"),
        sample.page("/search?q=coffee+run&document=topics/coffee"),
    )
    assert 'href="/doc/topics/running' in every
    assert 'href="/doc/topics/coffee' in some
    assert 'href="/doc/topics/running' not in some


def test_a_search_says_what_its_scores_are_made_of(sample: Web) -> None:
    assert "for its words" not in sample.page("/search?q=where+does+she+live")
    told = html.unescape(sample.page("/search?q=where+does+she+live&why=1"))
    found = re.findall(r"([\d.]+): ([\d.]+) for its words,.*?([\d.]+) for the whole document", told)
    assert len(found) == 2
    for score, *parts in found:
        assert float(score) >= sum(map(float, parts))
    assert "<mark>Lives</mark>" in told


def test_as_of_shows_documents_as_they_stood(sample: Web) -> None:
    then = sample.page("/doc/topics/home?as-of=2025-04-01")
    assert "As it stood on 1 April 2025" in then
    assert "Lives in Bristol" in then
    assert "Lives in Ghent since" not in then
    assert "not a moment" in sample.page("/topics?as-of=yesterday", 400)


def test_links_of_a_page_of_the_past_stay_there(sample: Web) -> None:
    then, moment = "2025-04-01", "as-of=2025-04-01"
    held = re.compile(r"/(topics|doc|fact|search|timeline|conversations)\b")
    for path in ("/topics", "/doc/topics/home", "/fact/66", "/search", "/timeline", "/conversations"):
        page = sample.page(f"{path}?q=router&{moment}").partition('id="main"')
        links = [html.unescape(one) for one in re.findall(r'<a.*?href="(/.*?)"', "".join(page))]
        leading = [one for one in links if held.match(one)]
        assert len(leading) > 3
        free = [one for one in leading if moment not in one]
        assert len(free) == 1  # "Show it as it is"
        assert [one for one in links if not held.match(one) and "as-of" in one] == []
        for form in re.findall(r'<form.*?action="/search".*?</form>', "".join(page), re.S):
            assert f'name="as-of" value="{then}"' in form
    assert "as-of" not in sample.page("/doc/topics/home")


def test_what_is_not_there_is_said_in_a_line(sample: Web) -> None:
    assert "no document is called" in sample.page("/doc/nothing", 404)
    assert "no line has seq 9999" in sample.page("/fact/9999", 404)
    assert "there is no receipt" in sample.page("/receipt/99", 400)
    assert "error" in sample.client.get("/doc/nothing.json").json()


def test_errors_name_pages(sample: Web) -> None:
    assert "; Topics shows what there is" in sample.page("/doc/nothing", 404)
    assert "Search shows lines with their numbers" in sample.page("/forget?seq=9999", 400)
    form = {"csrf": sample.session.csrf, "item": "99", "word": "approve"}
    assert "; Review lists what does" in sample.client.post("/review", data=form).text


def test_the_timeline_is_narrowed_to_a_topic(sample: Web) -> None:
    page = sample.page("/timeline?as-of=2025-09-01")
    form = re.search(r'<form action="/timeline.*?</form>', page, re.S)
    assert form
    assert '<option value="topics/home">Home</option>' in form[0]
    assert 'name="as-of" value="2025-09-01"' in form[0]
    assert "archive/" not in form[0]
    some = sample.page("/timeline?document=topics/dutch")
    assert re.findall(r'href="/receipt/(\d+)"', some) == ["5", "4"]
    assert '"topics/dutch" selected' in some


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


def test_undo_together_is_offered_where_later_receipts_lean_on_it(sample: Web) -> None:
    assert "Undo it together with" in sample.page("/receipt/3")
    refused = sample.client.post("/undo", data={"csrf": sample.session.csrf, "receipt": "3"})
    assert refused.status_code == 409
    assert sample.client.post("/undo", data={"csrf": sample.session.csrf}).status_code == 400
    sample.send("/undo", receipt="3", together="yes")
    assert [one.op for one in sample.memory.receipts()[-2:]] == ["undo", "undo"]


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


def test_an_empty_review_says_what_it_is_for(sample: Web) -> None:
    assert "until you approve or reject it" in sample.page("/review")


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


@pytest.mark.parametrize("name", ["what? #1 & 100%", "ünï/çode", "e.json"])
def test_a_note_of_any_name_is_reached_by_its_link(tmp_path: Path, name: str) -> None:
    note = tmp_path / "notes" / f"{name}.md"
    note.parent.mkdir(parents=True)
    note.write_text("# A title\n\nSome words.\n")
    site = web(tmp_path / "notes").enter()
    (link,) = re.findall(r'<h2><a href="(/doc/.*?)">', site.page("/topics"))
    assert "Some words." in site.page(html.unescape(link))


def test_headings_say_what_a_reader_knows(sample: Web) -> None:
    assert 'href="/doc/CURRENT">Not sorted into topics yet</a>' in sample.page("/topics")
    assert ">Not sorted into topics yet</h1>" in sample.page("/doc/CURRENT")
    assert "<title>The NAS heron sits at 192.168.8.20 · sample</title>" in sample.page("/fact/68")
    assert "Mondays" not in sample.page("/map")


def test_what_stands_for_a_line_is_a_link(sample: Web) -> None:
    link = 'uperseded by <a href="/fact/252" data-fact>252</a>'
    assert sample.page("/fact/66").count(link) == 2  # that it is so, and the receipt that made it so
    assert sample.page("/receipt/5").count(link) == 1
    assert sample.page("/doc/archive/home-network").count(link) == 1
    note = sample.memory.library.root / "mine.md"
    note.write_text("# Mine\n\n## Superseded by 9999\n")
    assert ">Superseded by 9999</h3>" in sample.page("/doc/mine")  # no such line


def test_what_changed_a_thousand_times_reads_as_one_list(tmp_path: Path) -> None:
    root, last = tmp_path / "library", 1002
    open_memory(root, model="offline", create=True)
    said = {seq: f"- <seq={seq},time=2025-01-01,source=user> weight {seq}." for seq in range(2, last + 1)}
    archived = "".join(f"## Superseded by {seq + 1} (receipt 1)\n{said[seq]}\n" for seq in range(2, last))
    for doc_id, text in (("topics/weight", f"# Weight\n{said[last]}\n"), ("archive/weight", archived)):
        (root / f"{doc_id}.md").parent.mkdir(exist_ok=True)
        (root / f"{doc_id}.md").write_text(f"---\nid: {doc_id}\n---\n{text}")
    site = web(root).enter()
    for path in ("/doc/topics/weight", f"/fact/{last}"):
        found = re.findall(r"<s>weight (\d+)\.</s>", site.page(path))
        assert found == [str(seq) for seq in range(last - 1, 1, -1)]
    assert site.page("/doc/archive/weight").count("weight 150.") == 1


def test_a_document_of_any_length_is_in_parts(tmp_path: Path) -> None:
    (tmp_path / "long.md").write_text("".join(f"line {n}\n\n" for n in range(1, 1001)))
    site = web(tmp_path).enter()
    first, later = site.page("/doc/long"), site.page("/doc/long?from=401")
    assert ("line 200<" in first, "line 201<" in first) == (True, False)
    assert "line 201<" in later
    assert 'href="/doc/long?from=401"' in first


def test_a_note_reads_as_prose_and_every_line_is_there(tmp_path: Path) -> None:
    lines = [
        "# A title",
        "",
        "One that is",
        "wrapped.",
        "- an item",
        "  goes on",
        "  - below",
        "",
        "```",
        "# code",
        "```",
    ]
    (tmp_path / "note.md").write_text("\n".join(lines) + "\n")
    text = web(tmp_path).enter().page("/doc/note")
    assert re.findall(r"<h\d.*?>(.*?)<", text) == ["A title"]
    assert [f'id="L{n}"' in text for n, line in enumerate(lines, 1) if line] == [True] * 9
    kinds = re.findall(r'class="typed (.*?)"|(<pre)', text)
    assert kinds == [("text", ""), ("item depth0", ""), ("item depth1", ""), ("", "<pre")]


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
