"""Whoever comes can read it: by axe's rules of level A and AA, and without JavaScript."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from web_browser import Served, entered, sample, served
from web_browser import browser as browser

from infinimem import open_memory
from infinimem.model import Move, Reason, Withheld
from infinimem.store.withheld import keep_withheld

RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"], "resultTypes": ["violations"]}
LOOKS = ((1280, "light"), (400, "dark"))
Looks = tuple[tuple[int, str], ...]
BOTH = ("/", "/map")
"""Pages that are looked at both ways in the ordinary run; the others in turn one way or the other."""
PAGES = """
/ /topics /doc/topics/home-network /doc/notes/garden /fact/252 /search?q=router /ask /timeline /receipt/5
/review /forget?seq=66 /conversations /map /doc/nowhere
""".split()
"""One of each kind."""
MORE = """
/doc/CURRENT /doc/archive/home-network /doc/evidence/2025-08-24-s13 /fact/66
/search?q=router&scope=all&speaker=Nora /search?q=zebra /timeline?document=topics/home&as-of=2025-05-04
""".split()
NOTE = """# Garden

Tomatoes need sun.

- one
  - within

> said

| a | b |
| --- | --- |
| 1 | 2 |

```sh
rm weeds
```

#### Deep
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The sample library with a note, and with a line that awaits review."""
    root = sample(tmp_path_factory.mktemp("axe"))
    (root / "notes").mkdir()
    (root / "notes/garden.md").write_text(NOTE)
    memory = open_memory(root, model="offline")
    held = Withheld(Move(53, "topics/pepper", "", "superseded", 54), Reason("PROTECTED"))
    keep_withheld(memory.library.files, 5, [held], memory.view.entry)
    with served(root) as found:
        yield found


@pytest.fixture(scope="module")
def script() -> str:
    """axe itself."""
    axe = pytest.importorskip("axe_playwright_python.base", reason="no axe; pip install -e '.[dev]'")
    return str(axe.AXE_SCRIPT)


def violations(page: Any, script: str, looks: Looks = LOOKS) -> list[str]:
    """What axe finds on a page as it is: wide and light, narrow and dark. No colour depends on the width."""
    found = []
    page.evaluate(script)
    for width, scheme in looks:
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        for rule in page.evaluate("rules => axe.run(rules)", RULES)["violations"]:
            where = "; ".join(" ".join(map(str, node["target"])) for node in rule["nodes"][:3])
            found.append(f"{page.url} {width} {scheme}: {rule['id']}: {rule['help']} ({where})")
        if page.evaluate("document.documentElement.scrollWidth") > width:
            found.append(f"{page.url} is wider than {width}")
    return found


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_axe_finds_nothing(browser: Any, site: Served, script: str, every: bool) -> None:
    found = []
    with entered(browser, site, "/") as page:
        for path, one in zip([*PAGES, *MORE * every], cycle(LOOKS)):
            page.goto(path)
            found += violations(page, script, LOOKS if every or path in BOTH else (one,))
    assert found == []


def test_axe_finds_nothing_in_what_answers_a_form_or_a_click(browser: Any, site: Served, script: str) -> None:
    with entered(browser, site, "/ask") as page:
        page.locator("main input[name=q]").fill("Where is the router?")
        with page.expect_navigation():
            page.get_by_role("button", name="Ask").click()
        found = violations(page, script)
        page.goto("/forget?seq=66")
        page.locator("input[name=typed]").fill("no")
        with page.expect_navigation():
            page.get_by_role("button", name="Forget").click()
        found += violations(page, script)
        page.goto("/doc/topics/home-network")
        page.locator("a[data-fact]").first.click()
        page.locator("dialog .chosen").wait_for()
        found += violations(page, script)
    assert found == []


def test_axe_would_find_something(browser: Any, site: Served, script: str) -> None:
    with entered(browser, site, "/") as page:
        page.evaluate("document.querySelector('h1').style.color = 'rgb(180, 180, 180)'")
        assert any("color-contrast" in one for one in violations(page, script))


@pytest.mark.parametrize(
    "pages", [PAGES[1::3], pytest.param([*PAGES, *MORE], marks=pytest.mark.soak)], ids=["third", "all"]
)
def test_everything_reads_without_javascript(browser: Any, site: Served, pages: Sequence[str]) -> None:
    with (
        entered(browser, site, "/") as page,
        entered(browser, site, "/", java_script_enabled=False) as plain,
    ):
        for path in pages:
            page.goto(path)
            plain.goto(path)
            read = plain.locator("main").inner_text()
            assert read == page.locator("main").inner_text()
            assert len(read) > 20, path


def test_ask_search_and_undo_without_javascript(browser: Any, tmp_path: Path) -> None:
    with (
        served(sample(tmp_path)) as site,
        entered(browser, site, java_script_enabled=False) as page,
    ):
        page.locator("main input[type=search]").fill("router")
        page.locator("main .search button").first.click()
        page.get_by_text("The router is at 192.168.1.1 now").click()
        page.wait_for_url("**/fact/252")
        assert page.locator(".chosen").is_visible()
        page.get_by_role("link", name="Ask").click()
        page.locator("main input[name=q]").fill("Where is the router?")
        page.locator("input[type=range]").fill("3")
        page.get_by_role("button", name="Ask").click()
        assert "192.168.8.1" in page.locator(".answer").inner_text()
        page.goto("/receipt/5")
        page.get_by_text("Undo this receipt").click()
        page.wait_for_url("**/receipt/6-*")
        assert "192.168.8.1" in (site.root / "topics/home-network.md").read_text()
