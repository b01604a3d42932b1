"""The pages of a library as a browser would ask for them, without a browser or a port."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from starlette.testclient import TestClient

from infinimem.memory import Memory, open_memory
from infinimem.web.app import PAGES, Live, make_app
from infinimem.web.guard import Session
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
    app = make_app(Site(memory, "" if read_only else session.csrf), session, NAMES, Live(memory))
    return Web(memory, session, TestClient(app, base_url=f"http://{HOST}"))


def addresses(memory: Memory) -> list[str]:
    """One address at least of each kind of page that can be read."""
    view = memory.view
    seq = str(view.max_seq)
    parts: Mapping[str, list[str]] = {
        "{id:path}": [one for one in view.ids("all") if not one.startswith("journal/")],
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
        "/recall": "?prompt=Lisbon",
        "/ask": "?q=Lisbon",
    }
    return [path + query.get(path, "") for path in found]
