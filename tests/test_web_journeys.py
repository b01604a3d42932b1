"""What people come for, done in a real browser; what counts is in the library's files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from history_library import FLAT, HOME, LISBON, PORTO, apply, filled, rewrite, superseded
from web_browser import Served, entered, sample, served
from web_browser import browser as browser

from infinimem.memory import open_memory

ROUTER, BEFORE = "The router is at 192.168.1.1 now", "The router is at 192.168.8.1"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Served]:
    with served(sample(tmp_path)) as found:
        yield found


def text_of(site: Served, doc_id: str) -> str:
    return (site.root / f"{doc_id}.md").read_text()


def test_from_a_question_to_the_turn_in_three_clicks(browser: Any, site: Served) -> None:
    with entered(browser, site) as page:
        assert page.url == f"{site.origin}/"
        page.locator("main input[type=search]").fill("router")
        page.locator("main .search button").first.click()
        page.get_by_text(ROUTER).click()
        page.locator("dialog .chosen", has_text="New network: the wifi is still called").wait_for()
        page.locator("dialog").get_by_text("The whole conversation").click()
        page.wait_for_url("**/doc/evidence/**")
        line = int(page.url.partition("#L")[2])
        shown = page.locator(":target .words").inner_text()
        drawn = page.locator(":target .kept [data-fact]").inner_text()
    turn = text_of(site, "evidence/2025-08-24-s13").split("\n")[line - 1]
    assert turn.startswith("- <seq=240,")
    assert turn.endswith(shown)
    assert f"origin=240,speaker=Nora> {drawn}" in text_of(site, "topics/home-network")


def test_a_fact_is_edited_and_put_back_where_it_stands(browser: Any, site: Served) -> None:
    before = text_of(site, "topics/home-network")
    with entered(browser, site, "/doc/topics/home-network") as page:
        fact = page.locator(".fact", has_text=ROUTER)
        fact.hover()
        fact.get_by_role("link", name="Edit").click()
        page.locator("dialog textarea").fill("The router is at 10.0.0.1")
        page.locator("dialog").get_by_role("button", name="Save").click()
        page.locator(":target", has_text="The router is at 10.0.0.1").wait_for()
        assert "source=human,origin=240,speaker=Nora> The router is at 10.0.0.1" in text_of(
            site, "topics/home-network"
        )
        page.get_by_role("status").get_by_role("button", name="Undo").click()
        page.locator(".fact", has_text=ROUTER).wait_for()
        assert text_of(site, "topics/home-network") == before
        page.locator(".fact", has_text=ROUTER).get_by_role("button", name="Pin").focus()
        page.keyboard.press("Enter")
        page.get_by_text("1 fact pinned").wait_for()
        assert "pin=yes" in text_of(site, "topics/home-network")


def test_what_was_done_to_a_fact_far_below_is_in_sight(browser: Any, tmp_path: Path) -> None:
    root = sample(tmp_path)
    file = root / "topics/home-network.md"
    file.write_text(file.read_text() + "".join(f"\nParagraph {n} of prose.\n" for n in range(150)))
    with served(root) as site, entered(browser, site, "/doc/topics/home-network") as page:
        page.locator("[name=text]").fill("The printer is Fax")
        page.get_by_role("button", name="Add").click()
        page.locator(":target", has_text="The printer is Fax").wait_for()
        box, fact = (page.locator(one).bounding_box() for one in ("[role=status]", ":target"))
        assert page.evaluate("scrollY") > 1000
        assert 0 <= box["y"] <= box["y"] + box["height"] <= fact["y"]


def test_review_by_keyboard(browser: Any, tmp_path: Path) -> None:
    memory = filled(tmp_path / "library")
    memory.undo()
    for seq in (LISBON, FLAT):
        rewrite(memory, HOME, f"- <seq={seq},", f"- <seq={seq},pin=yes,")
    memory.library.adopt_edits()
    apply(memory, superseded(LISBON, PORTO), superseded(FLAT, PORTO))
    with served(memory.library.root) as site, entered(browser, site, "/review") as page:
        items = page.locator(".item")
        assert items.count() == 2
        for key in "jjk":
            page.keyboard.press(key)
        focused = page.locator(".item:focus").inner_text()
        with page.expect_navigation():
            page.keyboard.press("a")
        assert items.count() == 1
        assert items.inner_text() != focused
        with page.expect_navigation():
            page.keyboard.press("r")  # the next one has the focus already
        assert page.get_by_text("Nothing awaits your review").is_visible()
        live, archived = text_of(site, HOME), text_of(site, "archive/home")
    assert "I live in Lisbon." in focused
    assert "I live in Lisbon." in archived
    assert "I live in Lisbon." not in live
    assert "I rent a flat near Lisbon castle." in live


def test_an_edit_elsewhere_appears(browser: Any, site: Served) -> None:
    file = site.root / "topics/coffee.md"
    with entered(browser, site, "/") as page:
        page.goto("/doc/topics/coffee")
        page.evaluate("window.same = true")
        file.write_text(file.read_text() + "- Tea from now on.\n")
        page.get_by_text("Tea from now on.").wait_for()
        assert page.evaluate("window.same")


def test_home_appears_anew_until_somebody_types(browser: Any, site: Served) -> None:
    """Its search box has the focus from the beginning."""
    memory = open_memory(site.root, model="offline")
    with entered(browser, site) as page:
        box = page.locator("main input[type=search]")
        assert box.evaluate("one => one === document.activeElement")
        memory.write("CURRENT", "Tea from now on.")
        page.get_by_text("Tea from now on.").first.wait_for()
        box.fill("kettle")
        memory.write("CURRENT", "Water from now on.")
        page.wait_for_timeout(2500)
        assert (page.get_by_text("Water from now on.").count(), box.input_value()) == (0, "kettle")


def test_pages_that_nobody_sees_ask_for_nothing(browser: Any, site: Served) -> None:
    """What changed appears on a page once it is seen."""
    file = site.root / "topics/coffee.md"
    with entered(browser, site) as page:
        # no page is hidden to a browser without a screen
        page.context.add_init_script(
            "Object.defineProperty(document, 'visibilityState', {get: () => window.seen ?? 'hidden'})"
        )
        pages = [page.context.new_page() for _ in range(8)]
        for one in pages:
            one.goto("/doc/topics/coffee")
        file.write_text(file.read_text() + "- Tea from now on.\n")
        pages[0].evaluate("window.seen = 'visible'; document.dispatchEvent(new Event('visibilitychange'))")
        pages[0].get_by_text("Tea from now on.").wait_for()
        assert not pages[1].get_by_text("Tea from now on.").is_visible()
