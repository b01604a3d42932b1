"""Which topics share names: the links of `see_also` in their headers, derived like a summary.

A link is written with the document that it stands in, never by itself, so nothing changes for a link alone.
What a snapshot knows of the names it takes over from the one before (`View.derived`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from immutables import Map

from infinimem.markdown.document import Document
from infinimem.markdown.header import flow
from infinimem.store.spec import TOPICS
from infinimem.store.view import View
from infinimem.terms import DAYS, MONTHS

SEE_ALSO = "see_also"
MOST = 3
"""Links of a document."""
COMMON, SHARE = 8, 3
"""A name in more topics than this, or than one of so many, tells nothing of one of them."""
_NAME = re.compile(r"(?<=[\w,;:] )[A-ZÀ-ÖØ-Þ][\w-]{2,}")
"""What is written with a capital inside a sentence."""
_NO_NAMES = frozenset((*MONTHS, *(f"{day}{end}" for day in DAYS for end in ("", "s"))))
_LINK = re.compile(r"\[\[([^\[\]|#]+)")


Sets = Map[str, frozenset[str]]


@dataclass(frozen=True)
class Known:
    """The names in each topic, and the topics of each name; the links of each, and what links to it."""

    names: Sets = field(default_factory=Map)
    topics: Sets = field(default_factory=Map)
    links: Sets = field(default_factory=Map)
    linking: Sets = field(default_factory=Map)

    def after(self, changed: Mapping[str, Document | None]) -> Known:
        """Return it once these topics read so; None for one that is gone."""
        names = {doc_id: _names_in(one) if one else None for doc_id, one in changed.items()}
        links = {doc_id: frozenset(links_of(one)) if one else None for doc_id, one in changed.items()}
        return Known(*_after(self.names, self.topics, names), *_after(self.links, self.linking, links))


def _after(of: Sets, by: Sets, changed: Mapping[str, frozenset[str] | None]) -> tuple[Sets, Sets]:
    """Return what each topic has, and the topics that have it, once these have this; None for one gone."""
    now, who = of.mutate(), by.mutate()
    for doc_id, have in changed.items():
        for one in now.pop(doc_id, frozenset[str]()) ^ (have or frozenset()):
            who[one] = who.get(one, frozenset()) ^ {doc_id}
        if have is not None:
            now[doc_id] = have
    return now.finish(), who.finish()


def _names_in(document: Document) -> frozenset[str]:
    return frozenset(name for one in document.entries for name in _NAME.findall(one.entry.text)) - _NO_NAMES


def known(view: View, before: Known | None, changed: Collection[str] | None) -> Known:
    """Make the names in the topics of a snapshot; for `View.derived`."""
    if before is None or changed is None:
        before, changed = Known(), view.below(TOPICS)
    topics = (doc_id for doc_id in changed if doc_id.startswith(TOPICS))
    return before.after({doc_id: view.document(doc_id) if doc_id in view else None for doc_id in topics})


def related(doc_id: str, names: Known) -> list[str]:
    """Return the topics that share most with one: the fewer topics have a name, the more it counts."""
    shared = Counter[str]()
    few = min(COMMON, max(2, len(names.names) // SHARE))
    for name in sorted(names.names.get(doc_id, ())):
        others = names.topics[name] - {doc_id}
        if 0 < len(others) < few:
            shared.update({other: 1 / len(others) for other in others})
    return sorted(shared, key=lambda other: (-shared[other], other))[:MOST]


def links_of(document: Document) -> list[str]:
    """Return the ids of the topics that a header links to."""
    listed = document.header.values.get(SEE_ALSO)
    matches = (_LINK.match(str(link)) for link in (listed if isinstance(listed, list) else ()))
    return [match[1] for match in matches if match]


def dangling(view: View, documents: Mapping[str, Document | None]) -> dict[str, Document]:
    """Return topics whose links lead to what is gone once these documents read so, without those links."""
    changed = {doc_id: new for doc_id, new in documents.items() if doc_id.startswith(TOPICS)}
    topics = view.derived(known).after(changed)
    mended: dict[str, Document] = {}
    for doc_id in {one for to, those in topics.linking.items() if to not in topics.links for one in those}:
        document = changed.get(doc_id) or view.document(doc_id)
        kept = [link for link in links_of(document) if link in topics.links]
        with suppress(ValueError):  # a header that has no room, or cannot be read, is a person's
            mended[doc_id] = document.with_header({SEE_ALSO: formatted(kept)})
    return mended


def formatted(links: Collection[str]) -> str | None:
    """Return the value of the header's key; None for no links."""
    return flow([f"[[{link}]]" for link in links]) if links else None
