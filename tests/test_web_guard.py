"""Who may see the pages, and what a browser may do with them."""

from __future__ import annotations

from pathlib import Path

import pytest
from history_library import filled
from hostile_library import hostile_library
from web_site import HOST, Web, addresses, web

from infinimem.web.app import FORMS
from infinimem.web.guard import MAX_FORM


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
    for path in (*addresses(site.memory), "/topics.json", "/home.json", "/events", "/static/style.css"):
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
        assert "javascript:" not in text.replace("&#34;javascript:", "")
        assert not set(text) & set("\x1b\u202e\u2066\u200e\u200f\u2028\x07\x9b"), path
    assert "&lt;script&gt;alert(1)" in site.page("/doc/evil")
    assert r"\u202e" in site.page("/doc/topics/home")
