"""`infinimem web` in a process of its own, and a real browser to look at it."""

from __future__ import annotations

import hashlib
import http.client
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from mcp_client import environment

SAMPLE = Path(__file__).parents[1] / "sample_library"
PATIENCE = 30_000.0
"""Milliseconds to wait for what takes few on a machine with nothing else to do."""
Answer = tuple[int, str, Mapping[str, str]]
"""Status, body and headers, these in small letters."""


@dataclass
class Served:
    """A server that runs.

    Args:
        url: the link that it printed, which nobody has opened yet.
        root: the library.
        log: what it wrote to standard error.
    """

    url: str
    root: Path
    log: Path

    @property
    def origin(self) -> str:
        return self.url.partition("/enter")[0]

    @property
    def token(self) -> str:
        return self.url.partition("token=")[2]

    @cached_property
    def cookie(self) -> str:
        """NAME=VALUE, for which the link is used up."""
        return self.ask("GET", self.url.removeprefix(self.origin), cookie="")[2]["set-cookie"].split(";")[0]

    @cached_property
    def csrf(self) -> str:
        return self.ask("GET", "/ask")[1].partition('name="csrf" value="')[2].partition('"')[0]

    def ask(
        self,
        method: str,
        path: str,
        form: Mapping[str, str] | None = None,
        cookie: str | None = None,
        **headers: str,
    ) -> Answer:
        """A request by hand; with this server's cookie if no other is given."""
        at = urlsplit(self.origin)
        connection = http.client.HTTPConnection(str(at.hostname), at.port, timeout=60)
        usual = {"Cookie": self.cookie if cookie is None else cookie}
        if form is not None:
            usual["Content-Type"] = "application/x-www-form-urlencoded"
        body = None if form is None else urlencode(form)
        connection.request(method, path, body, {**usual, **headers})
        answer = connection.getresponse()
        names = {name.lower(): value for name, value in answer.getheaders()}
        found = answer.status, answer.read().decode(), names
        connection.close()
        return found

    def tree(self) -> dict[str, str]:
        """Hash of every file of the library but the lock, which names its last holder."""
        files = (path for path in self.root.rglob("*") if path.is_file() and path.name != "lock")
        return {
            str(path.relative_to(self.root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files
        }


@contextmanager
def served(root: Path, *options: str, **env: str) -> Iterator[Served]:
    """Run `infinimem web` on a library; what else it writes goes beside that.

    Args:
        options: of the command.
        env: more of its environment; without any it has no model.
    """
    log = root.parent / "log"
    command = [sys.executable, "-m", "infinimem", "--library", str(root), "--json", "web", *options]
    with (
        log.open("w") as errors,
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment(root.parent) | env,
            cwd=root.parent,
            text=True,
        ) as process,
    ):
        try:
            assert process.stdout
            yield Served(json.loads(process.stdout.readline())["url"], root, log)
        finally:
            process.terminate()
            process.wait(30)


def sample(folder: Path) -> Path:
    """A copy of the sample library."""
    return Path(shutil.copytree(SAMPLE, folder / "library"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium of the system, else that of Playwright; tests skip where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="no playwright; pip install playwright")
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with playwright.sync_playwright() as made:
        if not program and not Path(made.chromium.executable_path).exists():
            pytest.skip("no browser; apt-get install chromium, or playwright install chromium")
        try:
            launched = made.chromium.launch(executable_path=program, args=["--no-sandbox"])
        except Exception as error:
            pytest.skip(f"Chromium does not start here: {str(error).splitlines()[0]}")
        yield launched
        launched.close()


@contextmanager
def entered(browser: Any, site: Served, path: str = "", **options: Any) -> Iterator[Any]:
    """A page in a window of its own, with the cookie.

    Args:
        path: what it shows; without one it comes by the link, which works once.
        options: of the browser's context.
    """
    context = browser.new_context(base_url=site.origin, **options)
    context.set_default_timeout(PATIENCE)
    if path:
        name, _, value = site.cookie.partition("=")
        context.add_cookies([{"name": name, "value": value, "url": site.origin}])
    page = context.new_page()
    page.goto(path or site.url)
    page.wait_for_url(f"{site.origin}{path or '/'}")
    yield page
    context.close()
