"""Keeping documents to a readable size: large ones are split by topic, small ones of one topic are merged.

A document that holds a person's prose, or whose header cannot be read, is left alone.

Source: Infini Memory, section 3.3 and the merge-related prompts of appendix A.1.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from dataclasses import replace

from infinimem import tokens
from infinimem.markdown.document import Document
from infinimem.model import Plan, Reason
from infinimem.store.render import HEADER_KEYS
from infinimem.store.spec import STANDING, TOPICS
from infinimem.store.view import CatalogRow, View
from infinimem.strategies.base import Outcome, Rejected
from infinimem.strategies.infini.layout import Target, apply, target
from infinimem.strategies.infini.plan import Planner, Route
from infinimem.strategies.infini.spec import InfiniSettings
from infinimem.strategies.infini.tasks import MERGE
from infinimem.strategies.infini.topics import (
    INBOX,
    PORTION,
    Slugs,
    Topic,
    cut_at,
    entries_of,
    fitting,
    halves,
    joined,
    listed,
    movable,
    packed,
    sections,
    size,
    slugify,
    title_of,
)
from infinimem.strategies.records.asking import Asker

SECTIONS = 50
"""Sections of a document that one split takes on: each may become a document of its own."""

TOGETHER = 10
"""Groups that one plan merges: so many layouts are lost if the model fails before the last."""

Maintenance = Generator[Plan, Outcome, View]
"""Plans as a strategy yields them; returns the library as it is afterwards."""


def split(view: View, asker: Asker) -> Maintenance:
    """A plan for each document that is too long; one that is refused is left for the next time."""
    limit = view.settings.of(InfiniSettings).markdown_length
    for row in view.catalog(folder=TOPICS):
        if row.tokens > limit and row.id in view and may_change(row.id, view):
            plan = split_plan(row.id, view, asker)
            if plan is not None:
                outcome = yield plan
                view = outcome.view
    return view


def split_plan(doc_id: str, view: View, asker: Asker) -> Plan | None:
    """The document in parts, None if it is but one line; its name stays with the part of that title, else the
    largest.

    Of one that is far too long the first lines leave, and the others stay where they are until the next
    time.
    """
    document = view.document(doc_id)
    if len(document.entries) < 2:
        return None
    title = title_of(doc_id, view)
    limit = view.settings.of(InfiniSettings).markdown_length
    topics: Sequence[Topic] = sections(document.entries, title)
    most = sum(len(topic.entries) for topic in topics[:SECTIONS])
    topics, rest = cut_at(topics, min(most, fitting(entries_of(topics), PORTION * limit)))
    planner = Planner(view, asker, offer=False)
    parts = _parts(planner.route(topics), limit)
    notes = list(planner.notes)
    targets = []
    if rest:
        notes.append(f"{len(entries_of(rest))} lines stay in {doc_id}: too many for one go")
    else:
        if len(parts) < 2:
            parts = [Route("", half[0].title, tuple(half)) for half in halves(topics)]
        namesakes = [part for part in parts if slugify(part.title) == slugify(title)]
        stays = max(namesakes or parts, key=lambda part: size(entries_of(part.topics)))  # the first of equals
        parts.remove(stays)
        kept = {entry.seq for entry in entries_of(stays.topics)}
        places = tuple(place for place in document.entries if place.entry.seq in kept)
        targets.append(replace(target(view, Route(doc_id, title, ())), places=places))
    slugs = Slugs(view)
    targets += [target(view, replace(part, doc_id=slugs.new(part.title))) for part in parts]
    return apply("split", targets, (), view, asker, notes)


def _parts(routes: Sequence[Route], limit: int) -> list[Route]:
    """The routes, each cut until no part is longer than `limit` tokens or has but one line."""
    parts: list[Route] = []
    for route in routes:
        for number, chunk in enumerate(_fitting(route.topics, limit)):
            parts.append(Route("", chunk[0].title if number else route.title, tuple(chunk)))
    return parts


def _fitting(topics: Sequence[Topic], limit: int) -> list[list[Topic]]:
    chunks = packed(topics, limit)
    if len(chunks) > 1:
        return [part for chunk in chunks for part in _fitting(chunk, limit)]
    lines = entries_of(topics)
    if size(lines) <= limit or len(lines) < 2:
        return chunks
    return [part for half in halves(topics) for part in _fitting(half, limit)]


# ── merging ─────────────────────────────────────────────────────────────────────────────────────


def merge(view: View, asker: Asker) -> Maintenance:
    """Plans for groups of small documents that belong together, several a plan, for a plan costs more than a
    group.

    Those of a plan that is refused are tried one by one.
    """
    settings = view.settings.of(InfiniSettings)
    small = [
        row
        for row in view.catalog(folder=TOPICS)
        if row.tokens < settings.merge_max_tokens and row.id != INBOX and may_change(row.id, view)
    ]
    every = settings.merge_frequency
    turn = every > 0 and view.epoch > 0 and view.epoch % every == 0
    if len(small) < 2 or not (turn or len(small) > settings.merge_trigger_min_count):
        return view
    groups = merge_groups(small, view, asker)
    for at in range(0, len(groups), TOGETHER):
        merged = [
            merge_target(group, view)
            for group in groups[at : at + TOGETHER]
            if all(doc_id in view and may_change(doc_id, view) for doc_id in group)
        ]
        if not merged:
            continue
        outcome = yield apply("merge", merged, (), view, asker)
        view = outcome.view
        for one in merged if isinstance(outcome, Rejected) and len(merged) > 1 else ():
            view = (yield apply("merge", [one], (), view, asker)).view
    return view


def merge_groups(small: Sequence[CatalogRow], view: View, asker: Asker) -> list[tuple[str, ...]]:
    """Groups as the model proposes them, as far as they hold: known ids, each once, a body that fits."""
    settings = view.settings.of(InfiniSettings)
    groups: list[tuple[str, ...]] = []
    used: set[str] = set()
    calls = tokens.packed(
        small,
        settings.plan_split_threshold,
        lambda row: tokens.count(row.id) + tokens.count(row.summary) + 16,
    )
    for batch in (rows for rows in calls if len(rows) > 1):
        rows = {row.id: row for row in batch}
        docs = [listed(row, view) for row in batch]
        reply = asker.complete(MERGE, {"docs": docs})
        items = reply.data["groups"] if reply.data is not None else ()
        unknown = [doc_id[:60] for item in items for doc_id in item["doc_ids"] if doc_id not in rows]
        asker.reject(MERGE, reply, [Reason("UNKNOWN", (), ", ".join(unknown[:10]))] if unknown else ())
        for item in items:
            free = [doc_id for doc_id in dict.fromkeys(item["doc_ids"]) if doc_id in rows.keys() - used]
            group = tuple(free[: settings.merge_group_max])
            if len(group) > 1 and sum(rows[doc_id].tokens for doc_id in group) <= settings.markdown_length:
                groups.append(group)
                used.update(group)
    return groups


def merge_target(group: Sequence[str], view: View) -> Target:
    """The oldest document of a group, with all lines of the others."""
    survivor, *others = sorted(group, key=lambda doc_id: (_created(doc_id, view), doc_id))
    topics = [
        topic
        for doc_id in others
        for topic in sections(view.document(doc_id).entries, title_of(doc_id, view))
    ]
    return target(view, Route(survivor, title_of(survivor, view), joined(topics)))


def _created(doc_id: str, view: View) -> str:
    """When the document was made; one that does not say is taken for the youngest."""
    created = view.document(doc_id).header.values.get("created_time")
    return created if isinstance(created, str) and created else "~"


def may_change(doc_id: str, view: View) -> bool:
    """Whether all of the document is the program's: lines that may move, under a header of its own keys."""
    if not doc_id.startswith(TOPICS) or doc_id == STANDING or doc_id in view.derived(_mixed):
        return False
    document = view.document(doc_id) if view.lines.doubled else None
    return document is None or len(movable(document, view)) == len(document.entries)


def _mixed(view: View, known: frozenset[str] | None, changed: Collection[str] | None) -> frozenset[str]:
    """Topics in which there is something that is not the program's."""
    if known is None or changed is None:
        known, changed = frozenset(), view.below(TOPICS)
    due = {doc_id for doc_id in changed if doc_id.startswith(TOPICS)}
    return known - due | {doc_id for doc_id in due if doc_id in view and _is_mixed(view.document(doc_id))}


def _is_mixed(document: Document) -> bool:
    """Whether it holds a person's text, or a header that is not the program's or cannot be read."""
    header = document.header
    foreign = document.has_prose or document.unsigned or document.malformed
    return bool(foreign or header.problem is not None or header.values.keys() - HEADER_KEYS)
