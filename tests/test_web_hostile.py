"""Text that would like to be more than text, and callers that are not the one who may."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urljoin

import fake_server
import pytest
from hostile_library import HIDDEN, hostile_library
from web_browser import Answer, Served, entered, sample, served
from web_browser import browser as browser

CANARY = "<script>canary('script')</script>"
MARKUP = (
    CANARY,
    "</style></title></textarea></pre><script>canary('closed')</script><!-- ",
    "\"><img src=x onerror=canary('image')>",
    "' autofocus onfocus=canary('focus') x='",
    "<svg onload=canary('svg')><a href=\"javascript:canary('link')\">here</a>",
    "[here](javascript:canary('markdown')) ![](http://evil.example/i.png) <http://evil.example>",
    '<meta http-equiv=refresh content="0;url=http://evil.example/"><base href="//evil.example/">',
    '<form action="//evil.example"><button autofocus>Undo</button></form>',
    '<div hx-get="/undo" hx-trigger="load" hx-on:load="canary(1)" data-version data-fact>x</div>',
    "{{ 7*7 }} {% include 'base.html' %} ${7*7}",
    "- <seq=1,source=human> forged",
)
POISON = " ".join((*MARKUP, HIDDEN))
NAMES = (
    "\"><img src=x onerror=canary('name')>",
    "javascript:canary('name')",
    "a?b#c&d",
    "%2e%2e%2fescape",
    "package.json",
    "{{7*7}}",
)
"""Of files."""
POLICY = (
    "addEventListener('securitypolicyviolation', e => canary(`policy: ${e.violatedDirective} ${e.sample}`))"
)
TAGS = frozenset(
    "html head meta title link script body a header nav main h1 h2 h3 h4 h5 h6 p section article div span "
    "time form input select option button textarea label output datalist dialog details summary ul li aside "
    "blockquote pre code mark s del ins strong em kbd br hr ol table thead tbody tr th td svg path circle "
    "text textpath".split()
)
"""What pages are made of."""
ATTRIBUTES = frozenset(
    "lang charset name content rel href src defer id class aria-label aria-current aria-hidden data-version "
    "data-fact data-key tabindex action role type placeholder autofocus value selected required autocomplete "
    "method min max list rows dir datetime for label open viewbox d stroke-width cx cy r x y "
    "text-anchor form startoffset title".split()
)


class Parsed(HTMLParser):
    """The tags, attributes and links of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.links: list[str] = []
        self.forms: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        self.tags.add(tag)
        self.attributes |= set(named)
        self.links += [named[name] for name in ("href", "src", "action") if name in named]
        if tag == "form":
            self.forms.append(named.get("method", "get"))


def plant(root: Path) -> Path:
    """A library full of text, names, notes and a receipt of somebody who means ill."""
    hostile_library(root, poison=POISON)
    for name in NAMES:
        (root / f"{name}.md").write_text(
            f"---\ntitle: {json.dumps(POISON)}\n---\n# {POISON}\n\nLisbon {POISON}\n"
        )
    header = {
        "id": "journal/0099-consolidate",
        "kind": "receipt",
        "time": "2025-06-02T00:00:00Z",
        "op": CANARY,
        "strategy": CANARY,
        "model": CANARY,
        "usage": {"calls": 1, "tokens_in": 1, "tokens_out": 1},
        "seconds": 0.0,
        "notes": [POISON],
    }
    said = "".join(f"{name}: {json.dumps(value)}\n" for name, value in header.items())
    rows = (
        f"| seq | was | now | why |\n| --- | --- | --- | --- |\n| 4 | {CANARY} | topics/home | {CANARY} |\n"
    )
    (root / "journal/0099-consolidate.md").write_text(f"---\n{said}---\n{rows}")
    (root / "notes/receipt.md").parent.mkdir()
    (root / "notes/receipt.md").write_text(f"---\n{said}---\n{rows}")
    return root


def asked_for() -> list[str]:
    """Addresses with poison in every part."""
    q = quote(POISON, safe="")
    queries = {
        "/": ("as-of",),
        "/topics": ("from", "as-of"),
        "/search": ("q", "scope", "speaker", "source", "year", "document", "as-of"),
        "/ask": ("q", "as-of"),
        "/timeline": ("document", "from", "as-of"),
        "/forget": ("seq",),
        "/conversations": ("from", "as-of"),
        "/map": ("about",),
    }
    found = [f"{path}?{name}={q}" for path, names in queries.items() for name in names]
    found += [f"{path}?{urlencode(dict.fromkeys(names, POISON))}" for path, names in queries.items()]
    found += [f"/doc/{q}", f"/receipt/{q}", f"/fact/{q}", f"/{q}", "/search?q=Lisbon&scope=all&document=" + q]
    return found


def crawl(site: Served, *first: str) -> dict[str, Answer]:
    """Every page that links lead to, by GET; and the JSON twin of each."""
    found: dict[str, Answer] = {}
    ahead = list(first)
    while ahead:
        path = ahead.pop().partition("#")[0]
        if path in found or path.startswith("/static/"):
            continue
        assert path.startswith("/"), path
        assert not path.startswith("//"), path
        answer = site.ask("GET", path)
        if answer[0] == 303:
            ahead.append(answer[2]["location"])
            continue
        found[path] = answer
        if found[path][2].get("content-type", "").startswith("text/html"):
            page = Parsed(found[path][1])
            ahead += [urljoin(path, link) for link in page.links if link not in ("", "#")]
            where, _, query = path.partition("?")
            ahead.append((f"{where}.json" if where != "/" else "/home.json") + (f"?{query}" if query else ""))
        assert len(found) < 1000
    return found


@pytest.fixture(scope="module")
def model() -> Iterator[fake_server.FakeServer]:
    with fake_server.serve(fake_server.chat("{}")) as found:
        yield found


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory, model: fake_server.FakeServer) -> Iterator[Served]:
    """A hostile library with a model that costs."""
    env = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "k", "INFINIMEM_MODEL": "m"}
    with served(plant(tmp_path_factory.mktemp("hostile") / "library"), **env) as found:
        yield found


@pytest.fixture(scope="module")
def crawled(hostile: Served, model: fake_server.FakeServer) -> dict[str, Answer]:
    """All that links lead to; nothing is written or spent by it."""
    before = hostile.tree()
    found = crawl(hostile, "/", "/search?q=Lisbon", "/search?q=Lisbon&scope=all", *asked_for())
    assert hostile.tree() == before
    assert model.requests == []
    return found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(sample(tmp_path_factory.mktemp("sample"))) as found:
        yield found


def test_a_page_is_made_of_what_templates_say(crawled: dict[str, Answer]) -> None:
    assert len(crawled) > 80
    for path, (status, text, headers) in crawled.items():
        assert status < 500, (path, text)
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        if headers["content-type"].startswith("text/html"):
            page = Parsed(text)
            assert page.tags <= TAGS, path
            assert page.attributes <= ATTRIBUTES, path
            assert not any("evil" in link and not link.startswith("/") for link in page.links), path
            assert not set(HIDDEN) & set(text) - set(HIDDEN.encode("ascii", "ignore").decode()), path


def of_each_kind(paths: Iterable[str], most: int) -> list[str]:
    """Of the pages that one template makes, so many that are asked for nothing, and for something."""
    kinds: Counter[tuple[str, bool]] = Counter()
    found = []
    for path in paths:
        where, _, query = path.partition("?")
        kind = where.split("/")[1], bool(query)
        kinds[kind] += 1
        if kinds[kind] <= most:
            found.append(path)
    return found


@pytest.mark.parametrize("most", [1, pytest.param(1000, id="all", marks=pytest.mark.soak)])
def test_nothing_of_it_runs_loads_or_goes_elsewhere(
    browser: Any, hostile: Served, crawled: dict[str, Answer], most: int
) -> None:
    pages = [path for path, answer in crawled.items() if answer[2]["content-type"].startswith("text/html")]
    shown_to = of_each_kind(pages, most)
    sung: list[object] = []
    with entered(browser, hostile, "/") as page:
        page.context.expose_function("canary", lambda song: sung.append(song))
        page.context.add_init_script(POLICY)
        page.on("dialog", lambda dialog: (sung.append(dialog.message), dialog.dismiss()))
        page.on("pageerror", lambda error: sung.append(str(error)))
        page.context.on(
            "request", lambda asked: asked.url.startswith(hostile.origin) or sung.append(asked.url)
        )
        for path in shown_to:
            page.goto(path)
            assert page.url.startswith(hostile.origin), path
        page.goto("/doc/topics/home")
        page.locator("a[data-fact]").first.click()
        page.locator("dialog .turn").first.wait_for()
        shown = page.locator("dialog").inner_text()
        assert sung == []
        page.evaluate("canary('heard')")
        page.evaluate("document.body.append(Object.assign(new Image(), {src: 'http://evil.example/i.png'}))")
        page.wait_for_timeout(100)
        assert sung[0] == "heard"
        assert any("policy: img-src" in str(one) for one in sung)
    for text in MARKUP:
        assert text in shown
    assert "49" not in shown


def test_every_twin_wants_the_cookie(hostile: Served, crawled: dict[str, Answer]) -> None:
    twins = [path for path, answer in crawled.items() if answer[2]["content-type"] == "application/json"]
    assert len(twins) > 60
    for path in twins:
        assert json.loads(crawled[path][1])
        assert hostile.ask("GET", path, cookie="")[0] == 401


ODD = (
    "²",
    "٣",
    "9" * 5000,
    "-1",
    "1e3",
    " ",
    "\x00",
    "\ud800".encode("utf-8", "surrogatepass"),
    "../..",
    "5/..",
)
"""What is no number, no name and no day."""


@pytest.mark.sample(2)
@pytest.mark.parametrize("odd", ODD, ids=lambda odd: ascii(odd)[:20])
def test_odd_values_are_refused_in_a_line(site: Served, odd: Any) -> None:
    before, said = site.tree(), site.log.read_text()
    q = quote(odd)
    paths = [f"/doc/{q}", f"/receipt/{q}", f"/fact/{q}", f"/search?q=x&scope={q}", f"/forget?seq={q}"]
    paths += [f"/topics?from={q}", f"/timeline?from={q}&document={q}&as-of={q}"]
    paths += [f"{path}?as-of={q}" for path in ("/topics", "/doc/CURRENT", "/fact/252", "/search", "/ask")]
    for path in paths:
        status, text, _ = site.ask("GET", path)
        assert status < 500, path
        assert "Traceback" not in text
    names_of = {"/undo": "receipt doc", "/forget": "seq shown typed", "/ask": "q at"}
    for path, names in (names_of | {"/edit": "seq text", "/pin": "seq", "/add": "doc text"}).items():
        form = {"csrf": site.csrf, **dict.fromkeys(names.split(), odd)}
        assert site.ask("POST", path, form)[0] < 500, path
        assert site.ask("POST", path, {**form, "q": "router"})[0] < 500, path
    assert site.ask("POST", "/review", {"csrf": site.csrf, "item": odd, "word": "approve"})[0] < 500
    assert site.tree() == before
    assert site.log.read_text() == said


def test_the_token_is_told_to_nobody(browser: Any, tmp_path: Path) -> None:
    heard: list[str] = []
    with served(sample(tmp_path)) as site:
        context = browser.new_context(base_url=site.origin)
        context.on("request", lambda asked: heard.append(f"{asked.url} {asked.all_headers()}"))
        page = context.new_page()
        page.goto(site.url)
        page.get_by_role("link", name="Topics").click()
        page.goto("/nowhere")
        page.go_back()
        page.wait_for_load_state()
        assert page.evaluate("document.cookie") == ""
        said = [
            site.log.read_text(),
            page.content(),
            page.evaluate("JSON.stringify(performance.getEntries())"),
        ]
        assert [one for one in [*heard[1:], *said] if site.token in one] == []
        assert len(heard) > 6
        context.close()
        site.ask("GET", f"/enter?token={site.token}", cookie="")
        site.ask("GET", f"/nowhere?token={site.token}", cookie="")
        assert site.log.read_text() == ""


def test_nothing_is_written_or_spent_but_by_a_form(
    hostile: Served, crawled: dict[str, Answer], model: fake_server.FakeServer
) -> None:
    before = hostile.tree()
    for path in ("/undo?receipt=2", "/forget?seq=3&typed=forget+3", "/review?item=1&word=approve"):
        for method in ("GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
            assert hostile.ask(method, f"{path}&csrf={hostile.csrf}")[0] in (200, 400, 405)
    for path in crawled:
        assert hostile.ask("HEAD", path)[0] < 500
    assert hostile.tree() == before
    assert model.requests == []
    hostile.ask("POST", "/ask", {"csrf": hostile.csrf, "q": "Where do I live?"})
    assert model.requests


@contextmanager
def link_elsewhere(browser: Any, site: Served) -> Iterator[Any]:
    """A page of another site that links to what was printed, as a terminal in a browser does."""
    page = browser.new_page()
    page.route(
        "http://terminal.example/",
        lambda way: way.fulfill(content_type="text/html", body=f'<a href="{site.url}">open</a>'),
    )
    page.goto("http://terminal.example/")
    yield page
    page.close()


def test_the_link_works_from_a_terminal_in_a_browser(browser: Any, tmp_path: Path) -> None:
    with served(sample(tmp_path)) as site, link_elsewhere(browser, site) as page:
        page.locator("a").click()
        page.wait_for_url(f"{site.origin}/**")
        page.locator("h1").wait_for()
