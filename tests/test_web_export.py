"""The pages as files."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

from cli_runner import Shell
from hostile_library import hostile_library

SAMPLE = Path(__file__).parents[1] / "sample_library"


def links(page: Path) -> list[str]:
    return [unescape(link) for link in re.findall(r'(?:href|src)="(.*?)"', page.read_text())]


def test_every_link_leads_to_a_file_of_the_export(shell: Shell) -> None:
    hostile_library(shell.library)
    (shell.library / "long.md").write_text("words\n\n" * 500)
    for library, out in ((SAMPLE, shell.home / "a"), (shell.library, shell.home / "b")):
        told = shell("--library", str(library), "web", "--export", str(out), "--json").json
        pages = list(out.rglob("*.html"))
        assert len(pages) == told["pages"] > 10
        for page in pages:
            for link in links(page):
                at = urlsplit(link)
                target = (page.parent / unquote(at.path)).resolve() if at.path else page
                assert not (at.scheme or at.netloc), (page, link)
                assert target.is_file() and target.is_relative_to(out), (page, link)
                if at.fragment and at.fragment != "main":
                    assert f'id="{unquote(at.fragment)}"' in target.read_text(), (page, link)


def test_it_has_neither_script_nor_form(shell: Shell) -> None:
    out = shell.home / "out"
    shell("--library", str(SAMPLE), "web", "--export", str(out))
    for page in out.rglob("*.html"):
        assert not re.search(r"<(script|form|input|dialog)", page.read_text()), page
    assert "Lives in Ghent since the 16th" in (out / "doc/topics/home.html").read_text()


def test_what_is_there_is_not_overwritten(shell: Shell) -> None:
    (shell.home / "out").mkdir()
    (shell.home / "out" / "mine").write_text("mine")
    ran = shell("-q", "--library", str(SAMPLE), "web", "--export", str(shell.home / "out"))
    ran.failed(2, "is not empty")
    assert [path.name for path in (shell.home / "out").iterdir()] == ["mine"]
