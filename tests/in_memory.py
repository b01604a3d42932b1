"""A snapshot without files, for tests of what only reads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping
from typing import Any

from infinimem.markdown.document import Document
from infinimem.model import Plan
from infinimem.settings import Settings
from infinimem.store.view import Outcome, View


def view_of(files: Mapping[str, str | bytes], settings: Settings | None = None, **options: Any) -> View:
    """A view of documents given as id to text."""
    documents = {
        doc_id: Document.parse(doc_id, text.encode() if isinstance(text, str) else text)
        for doc_id, text in files.items()
    }
    return View(tuple(sorted(documents)), documents.__getitem__, settings or Settings(), **options)


class Driven(ABC):
    """A library in memory that carries out plans."""

    @abstractmethod
    def apply(self, plan: Plan) -> Outcome:
        """As the store does."""

    def drive(self, plans: Generator[Plan, Outcome, Any]) -> None:
        """Carry out a strategy's plans."""
        try:
            plan = next(plans)
            while True:
                plan = plans.send(self.apply(plan))
        except StopIteration:
            return


LISBON = {
    "evidence/2023-05-08-s01": """---
id: evidence/2023-05-08-s01
---
- <seq=1,time=2023-05-08T13:56:00,source=user,speaker=Mel,turn=D1:1> Hey Ana! What of the old easel?
- <seq=2,time=2023-05-08T13:57:00,source=user,speaker=Ana,turn=D1:2> I gave it away yesterday, to my sister.
- <seq=3,time=2023-05-08T13:58:00,source=user,speaker=Mel,turn=D1:3> Wow, lucky her!
- <seq=4,time=2023-05-08T13:59:00,source=user,speaker=Ana,turn=D1:4> I moved to Lisbon last month.
- <seq=5,time=2023-05-08T14:00:00,source=AI,speaker=Bot,turn=D1:5> Lisbon has trams.
""",
    "evidence/2023-07-01-s02": """---
id: evidence/2023-07-01-s02
---
- <seq=6,time=2023-07-01T10:00:00,source=user,speaker=Ana,turn=D2:1> I drink oat-milk latte now.
- <seq=7,time=2023-07-01T10:01:00,source=user,speaker=Mel,turn=D2:2> My dentist is Dr. Vu.
""",
    "topics/home": """---
id: topics/home
summary: where Ana lives
---
# Moves

- <seq=13,time=2023-05-08,source=user,origin=4,speaker=Ana> I moved to Lisbon last month.
- <seq=14,time=2023-05-08,source=AI,origin=5> Lisbon has trams.

# Things

- <seq=12,time=2023-05-08,source=user,origin=2,speaker=Ana> I gave it away yesterday, to my sister.
""",
    "archive/home": """---
id: archive/home
---
## Superseded by 13 (receipt 1)
- <seq=11,time=2022-01-01,source=user,origin=4> Ana lives in Porto
""",
    "CURRENT": """---
id: CURRENT
current_epoch: 1
---
# Drinks
- <seq=15,time=2023-07-01,source=user,origin=6,speaker=Ana> I drink oat-milk latte now.
""",
    "notes/todo": "# Todo\n\n- buy a violin\n- call the plumber\n",
}
"""A small library: two sessions, a topic, its archive, a buffer and a note; turn 7 is not cited yet."""
