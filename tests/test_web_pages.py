"""What the pages show and do: the same as the command line; and who may see them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from cli_runner import Shell
from history_library import HOME, LISBON, PORTO, TALK, apply, filled, rewrite, superseded
from hostile_library import hostile_library
from starlette.testclient import TestClient
from trusting import write_trusted

from infinimem.memory import Memory, open_memory
from infinimem.model import Turn
from infinimem.web.app import FORMS, MAX_FORM, PAGES, Session, make_app
from infinimem.web.site import Site

HOST = "127.0.0.1:8000"
NAMES = [HOST, "localhost:8000"]


@dataclass(frozen=True)
class Web:
    """A site, and a browser that has not opened its link yet, or has."""

    memory: Memory
    session: Session
    client: TestClient

    def enter(self) -> Web:
        assert self.client.get(f"/enter?token={self.session.token}").status_code == 200
        return self

    def page(self, path: str, status: int = 200) -> str:
        answer = self.client.get(path)
        assert answer.status_code == status, (path, answer.status_code, answer.text)
        return answer.text

    def send(self, path: str, **form: str) -> str:
        """The page after a form of ours was sent."""
        answer = self.client.post(path, data={"csrf": self.session.csrf, **form})
        assert answer.status_code == 200, (path, answer.status_code, answer.text)
        return answer.text


def web(root: Path, read_only: bool = False) -> Web:
    """A browser before the site of a library."""
    memory = open_memory(root, model="offline", read_only=read_only)
    session = Session(8000)
    app = make_app(Site(memory, "" if read_only else session.csrf), session, NAMES)
    return Web(memory, session, TestClient(app, base_url=f"http://{HOST}"))


def addresses(memory: Memory) -> list[str]:
    """One address at least of each kind of page that can be read."""
    view = memory.view
    seq = str(view.max_seq)
    parts: Mapping[str, list[str]] = {
        "{id:path}": [*{one.split("/")[0]: one for one in view.ids("all") if "journal/" not in one}.values()],
        "{seq}": [seq],
        "{name}": [str(one.number) for one in memory.receipts()][:1],
    }
    found: list[str] = []
    for path in PAGES:
        hole = re.search(r"\{.*?\}", path)
        found += [path.replace(hole[0], part) for part in parts[hole[0]]] if hole else [path]
    query = {
        "/search": "?q=Lisbon",
        "/forget": f"?seq={seq}",
        "/ask": "?q=Lisbon",
    }
    return [path + query.get(path, "") for path in found]


# ── what the pages show and do ───────────────────────────────────────────────────────────────────────


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
    assert sample.page("/?as-of=2025-04-01") == sample.page("/topics?as-of=2025-04-01")
    assert "As it stood" not in sample.page("/map?as-of=2025-04-01"), "it is drawn of today"


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
    assert ('name="receipt" value="2-' in first, "Undo it together with" in first) == (True, True)
    assert "<summary>" in first
    form = dict(re.findall(r'name="(\w+)" value="(.*?)"', last))
    assert "takes back receipt 5" in sample.send("/undo", **form)
    assert "The router is at 192.168.8.1" in (root / "topics/home-network.md").read_text()
    assert "It was taken back by" in sample.page("/fact/66")
    assert "/undo" not in web(root, read_only=True).enter().page("/fact/66")
    assert "/undo" not in sample.page("/fact/66?as-of=2025-04-01")


def test_undo_together_names_what_goes_and_comes_back_together(sample: Web) -> None:
    """It takes the list that was shown; without it, or once another receipt leans on it, nothing happens."""
    root = sample.memory.library.root
    sample.send("/edit", seq="253", text="heron is at 192.168.1.21")
    before, receipts = markdown(root), len(sample.memory.receipts())
    (form,) = re.findall(r'action="/undo".*?</form>', sample.page("/receipt/2"), re.S)
    told = re.search(r"([0-9]+) receipts would be taken back, of ([0-9]+) facts", form)
    goes = form.count("<li>")
    assert told and (int(told[1]), "1 fact edited" in form) == (goes, True)
    back = dict(re.findall(r'name="(receipt|together)" value="(.*?)"', form))
    for wrong in ({}, {"together": "yes"}, {"together": back["together"].partition(" ")[2]}):
        sent = {"csrf": sample.session.csrf, **back, "together": "", **wrong}
        assert sample.client.post("/undo", data=sent).status_code == 409
    assert (markdown(root), len(sample.memory.receipts())) == (before, receipts)
    done = sample.send("/undo", **back)
    assert len(sample.memory.receipts()) == receipts + goes
    assert f"Undo it together with {goes - 1} later receipts" in done
    back = dict(re.findall(r'name="(receipt|together)" value="(.*?)"', done))
    sample.send("/undo", **back)
    assert {path: text for path, text in markdown(root).items() if path in before} == before
    assert sample.memory.doctor() == []


def markdown(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*.md") if path.parent.name != "journal"}


def test_a_person_edits_pins_and_adds_and_takes_it_back_on_the_spot(sample: Web) -> None:
    """Each is a receipt of people's; the page that follows shows the line and offers Undo."""
    path = sample.memory.library.root / "topics/home-network.md"
    before = path.read_bytes()
    for form, line, words in (
        (
            ("/edit", {"seq": "252", "text": "The router is at\r\n10.0.0.1"}),
            "origin=240,speaker=Nora> The",
            "edited",
        ),
        (("/pin", {"seq": "252"}), ",pin=yes,", "pinned"),
        (
            ("/add", {"doc": "topics/home-network", "text": "The printer is Fax"}),
            "source=human> The printer",
            "added",
        ),
    ):
        page = sample.send(form[0], **form[1])
        assert line in path.read_text()
        assert f"1 fact {words}" in page
        assert sample.memory.receipts()[-1].strategy == "people"
        back = re.search(r'name="receipt" value="(.*?)"><input type="hidden" name="doc" value="(.*?)"', page)
        assert back
        assert "1 fact" in sample.send("/undo", receipt=back[1], doc=back[2])
        assert path.read_bytes() == before
    assert "Unpin" in sample.send("/pin", seq="252")
    sample.send("/pin", seq="252")
    assert path.read_bytes() == before
    assert sample.memory.doctor() == []


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/edit", {"seq": "252", "text": " "}),
        ("/edit", {"seq": "240", "text": "a turn"}),
        ("/edit", {"seq": "66", "text": "superseded"}),
        ("/edit", {"seq": "9999", "text": "none"}),
        ("/pin", {"seq": "240"}),
        ("/add", {"doc": "topics/home", "text": ""}),
        ("/add", {"doc": "evidence/2025-08-24-s13", "text": "forged"}),
        ("/add", {"doc": "../outside", "text": "forged"}),
    ],
)
def test_what_is_no_fact_is_neither_edited_nor_pinned(sample: Web, path: str, form: dict[str, str]) -> None:
    root = sample.memory.library.root
    before = {file: file.read_bytes() for file in root.rglob("*.md")}
    answer = sample.client.post(path, data={"csrf": sample.session.csrf, **form})
    assert (answer.status_code, "That did not work" in answer.text) == (400, True)
    assert {file: file.read_bytes() for file in root.rglob("*.md")} == before


def test_text_that_looks_signed_stays_one_fact(sample: Web) -> None:
    sample.send("/edit", seq="252", text="one\n- <seq=1,source=user> two")
    sample.send("/add", doc="topics/home", text="three\n- <seq=2,source=user> four")
    sample.memory.library.adopt_edits()
    assert sample.memory.doctor() == []
    assert "> one - &lt;seq=1,source=user&gt; two</h1>" in sample.page("/fact/252").replace(">one", "> one")
    assert "three - &lt;seq=2,source=user&gt; four" in sample.page("/doc/topics/home")


def test_home_shows_cards_and_what_changed_with_the_facts(sample: Web) -> None:
    page = sample.page("/")
    assert "9 facts wait to be sorted" in page
    assert "buffer" not in page and "token" not in page
    assert re.search(
        r">Home network</a></h3>\s*<p[^>]*>The NAS heron keeps .*?</p>\s*<p[^>]*>6 facts · <time", page
    )
    assert "What changed last" in page
    assert re.search(r"<del>The router is at 192.168.8.1</del>.*?<ins>The router is at 192.168.1.1 now", page)
    sample.send("/edit", seq="253", text="heron is at 192.168.1.21")
    page = sample.page("/")
    assert "What changed this week" in page
    assert re.search(r"<del>heron moved to 192.168.1.20</del>.*?<ins>heron is at 192.168.1.21</ins>", page)


def test_an_answer_without_a_model_quotes_each_line_once_with_its_day(sample: Web) -> None:
    page = sample.send("/ask", q="Where does Nora live?")
    assert page.count("Lives in Ghent since the 16th") == 1
    assert "Nora, 24 August 2025, in" in page
    assert "2025-08-24T" not in page.replace('datetime="2025-08-24T', "")


def test_a_conversation_tells_where_its_facts_went(sample: Web) -> None:
    page = sample.page("/conversations")
    assert re.search(r"Goedemorgen from Ghent!</a>.*?8 facts kept, in.*?>Home network</a>", page, re.S)
    assert re.search(
        r"The router is at 192.168.1.1 now.*?>in Home network</a>",
        sample.page("/doc/evidence/2025-08-24-s13"),
    )


def test_a_fact_without_a_time_shows_the_day_it_was_recorded(tmp_path: Path) -> None:
    memory = open_memory(tmp_path, model="offline", create=True)
    memory.observe([Turn("I live in Lisbon, near the castle.")])
    today = memory.library.clock().date().isoformat()
    assert re.search(rf'<time datetime="{today}.*?I live in Lisbon', web(tmp_path).enter().page("/"), re.S)


def test_the_map_says_what_ties_and_a_topic_what_is_related(sample: Web) -> None:
    page = sample.page("/map")
    edge, words = re.findall(r'<a href="#(tie\d+)".*?<title>(.*?)</title>', page, re.S)[0]
    assert re.search(rf'<li id="{edge}">.*?<a href="/search\?q={words}">{words}</a></li>', page)
    assert re.search(r"<h2>Related</h2>.*?/doc/topics/travel", sample.page("/doc/topics/home-network"), re.S)


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
    assert 'href="/search?q=' in sample.page("/forget?seq=252"), "other lines may name the same"
    assert "Nothing was forgotten: type" in sample.send("/forget", **form, typed="yes")
    assert "192.168.1.1 " in (root / "topics/home-network.md").read_text()
    told = sample.send("/forget", **form, typed="forget 252")
    assert "Of these lines and their turns nothing is left in the library or its cache" in told
    assert not [path for path in root.rglob("*.md") if "provider's box" in path.read_text()]
    assert "<!-- forgotten: 252 -->" in (root / "topics/home-network.md").read_text()
    assert "forgotten: 252" not in sample.page("/doc/topics/home-network")


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
        assert "no episodes yet" in drawn or 'class="near"' in drawn


# ── who may see them ─────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def site(tmp_path: Path) -> Web:
    filled(tmp_path / "library")
    return web(tmp_path / "library")


def contents(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_the_link_works_once_and_its_token_stands_nowhere_after(site: Web) -> None:
    first = site.client.get(f"/enter?token={site.session.token}")
    assert (first.status_code, "url=/" in first.text) == (200, True)
    assert first.headers["referrer-policy"] == "no-referrer"
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(first.headers["set-cookie"].split("; "))
    assert site.session.token not in first.text + str(first.headers)
    assert site.session.token not in site.page("/")
    again = site.client.get(f"/enter?token={site.session.token}")  # who opens it twice is let in
    assert (again.status_code, "set-cookie" in again.headers) == (200, False)
    site.client.cookies.clear()
    again = site.client.get(f"/enter?token={site.session.token}")
    assert (again.status_code, "set-cookie" in again.headers) == (403, False)


@pytest.mark.parametrize("query", ["", "?token=", "?token=wrong", "?token=%ff", "?other=1"])
def test_a_wrong_link_opens_nothing(site: Web, query: str) -> None:
    assert site.client.get(f"/enter{query}").status_code == 403
    assert site.client.get("/").status_code == 401
    site.enter()


def test_without_the_cookie_nothing_is_shown(site: Web) -> None:
    site.enter().client.cookies.clear()  # a second browser
    for path in (*addresses(site.memory), "/topics.json", "/home.json", "/version", "/static/style.css"):
        answer = site.client.get(path)
        assert (answer.status_code, "Lisbon" in answer.text) == (401, False), path
    for cookie in (f"infinimem-8000={site.session.csrf}", "infinimem-8000=", "infinimem-1=x", "\x01;;=,"):
        assert site.client.get("/", headers={"Cookie": cookie}).status_code == 401, cookie


def test_a_foreign_host_or_origin_is_refused(site: Web) -> None:
    site.enter()
    for host in ("evil.example", "127.0.0.1", "127.0.0.1:1", f"{HOST}.evil.example"):
        assert site.client.get("/", headers={"Host": host}).status_code == 421, host
    for origin in ("http://evil.example", "null", "https://127.0.0.1:8000", "http://127.0.0.1:1"):
        sent = site.client.post("/undo", data={"csrf": site.session.csrf}, headers={"Origin": origin})
        assert sent.status_code == 403, origin
    assert site.client.get("/", headers={"Origin": f"http://{HOST}"}).status_code == 200
    assert site.memory.receipts()[-1].op != "undo"


@pytest.mark.parametrize("path", FORMS)
def test_a_form_without_its_token_does_nothing(site: Web, path: str) -> None:
    site.enter()
    before = contents(site.memory.library.root)
    for csrf in ({}, {"csrf": ""}, {"csrf": "wrong"}, {"csrf": site.session.token}):
        form = {"receipt": "", "item": "1", "word": "approve", "seq": "5", "q": "Lisbon", **csrf}
        assert site.client.post(path, data=form).status_code == 403, csrf
    assert site.client.post(path, data={"csrf": site.session.csrf, "q": "x" * MAX_FORM}).status_code == 413
    assert site.client.put(path, data={"csrf": site.session.csrf}).status_code == 405
    assert contents(site.memory.library.root) == before


def test_what_is_read_writes_nothing(site: Web) -> None:
    site.enter()
    before = contents(site.memory.library.root)
    for path in addresses(site.memory):
        site.page(path)
    for path in FORMS:
        site.client.get(path)
    assert contents(site.memory.library.root) == before
    assert site.memory.llm.usage.calls == 0


def test_read_only_has_no_form_and_takes_none(tmp_path: Path) -> None:
    filled(tmp_path / "library")
    site = web(tmp_path / "library", read_only=True).enter()
    for path in addresses(site.memory):
        assert 'method="post"' not in site.page(path), path
    for path in FORMS:
        assert site.client.post(path, data={"csrf": site.session.csrf}).status_code == 403


def test_a_browser_may_run_load_and_send_nothing_foreign(site: Web) -> None:
    site.enter()
    for path in (*addresses(site.memory), "/home.json", "/doc/none", "/no/such/page"):
        headers = site.client.get(path).headers
        policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
        assert policy["default-src"] == "'none'"
        assert {policy[name] for name in ("script-src", "style-src", "img-src", "form-action")} == {"'self'"}
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"


def test_a_note_is_set_as_markdown_and_no_word_of_it_is_left_out(tmp_path: Path) -> None:
    """Emphasis, lists, tables; as it was typed where Markdown would leave out a cell, or what is too deep."""
    lists, table = "- one\n  - two\n", "| a | b |\n|---|--:|\n| 1 | 2 |\n"
    told = f"# A\n\n*Warm* **kiln**,\nfired.\n\n{lists}\n{table}\n```sh it says\nls\n```\n"
    (tmp_path / "a.md").write_text(told)
    (tmp_path / "b.md").write_text("| a |\n|---|\n| 1 | a cell too many |\n")
    (tmp_path / "c.md").write_text(f"{'> ' * 40}far down\n")
    (tmp_path / "d.md").write_text(f"{'!' * 60_000}\n")
    site = web(tmp_path).enter()
    page = site.page("/doc/a")
    assert (
        '<p dir="auto" id="L3"><em>Warm</em> <strong>kiln</strong>,\n<span id="L4"></span>fired.</p>' in page
    )
    assert 'id="L7">\n<li dir="auto">two' in page and "<td>2</td>" in page and "style=" not in page
    assert "sh it says\nls\n</code>" in page
    assert "| 1 | a cell too many |" in site.page("/doc/b")
    assert "far down" in site.page("/doc/c") and "!" * 60_000 in site.page("/doc/d")


def test_links_of_notes_lead_to_notes_and_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "shop.md").write_text("# Shop\n\n[back](../Kiln%20log.md#cones) ![[Kiln log]]\n")
    (tmp_path / "Kiln log.md").write_text(
        "# Kiln log\n\n[[shop|the shop]] [[Shop#none]] [[Nowhere]] [a](sub/shop.md) [[kiln LOG#cones]] "
        '[out](https://e.example/shop "said") [up](../../etc/shop.md) [abs](/undo) [q](?as-of=1) '
        '[esc](%2e%2e/x) [host](//e.example) [js](javascript:alert(1)) [[a"><script>x</script>]]'
        "\n\n## Cones\n"
    )
    site = web(tmp_path).enter()
    page = site.page("/doc/Kiln%20log")
    assert page.count("<h1") == page.count(">Kiln log<") == 1
    main = page.partition("<main")[2].partition("<aside")[0]
    links = re.findall(r'<a href="(.*?)"[^>]*>(.*?)</a>', main)
    assert links == [
        ("/doc/sub/shop", "the shop"),
        ("/doc/sub/shop", "Shop › none"),
        ("/doc/sub/shop", "a"),
        ("/doc/Kiln%20log#L5", "kiln LOG › cones"),
    ]
    for text in (
        "[[Nowhere]]",
        '<a title="https://e.example/shop">out</a>',
        '<a title="../../etc/shop.md">up</a>',
        '<a title="/undo">abs</a>',
        '<a title="//e.example">host</a>',
        "[js](javascript:alert(1))",
    ):
        assert text in main
    assert "&lt;script&gt;x" in main
    assert 'href="/doc/Kiln%20log#L5"' in site.page("/doc/sub/shop")
    assert ">Notes</a>" in page and "<h1>Notes</h1>" in site.page("/topics")


def test_text_of_a_memory_is_text(tmp_path: Path) -> None:
    """Script, HTML, marks that turn text and signatures that are none: they show, and do nothing."""
    root = hostile_library(tmp_path / "library")
    evil = '<script>alert(1)</script><img src=x onerror=alert(1)><a href="javascript:alert(1)">x</a>'
    (root / "evil.md").write_text(
        f"# {evil}\n\n{evil} Lisbon\n- <seq=1,source=user> forged\n![i](http://e.example/i)\n"
    )
    site = web(root).enter()
    for path in addresses(site.memory):
        text = site.page(path)
        assert "<script>alert" not in text
        assert "<img" not in text
        assert "javascript:" not in text.replace("&quot;javascript:", "").replace("&#34;javascript:", "")
        assert not set(text) & set("\x1b\u202e\u2066\u200e\u200f\u2028\x07\x9b"), path
    assert "&lt;script&gt;alert(1)" in site.page("/doc/evil")
    assert r"\u202e" in site.page("/doc/topics/home")
