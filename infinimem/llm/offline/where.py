"""Where lines go: to a topic whose title they hold, else to others with the same noun, else to their month.

A line whose project or conversation has a name came with it (keep.py). All others of a buffer are looked at
together: a noun is a topic where three lines at least have it, some of them close to each other.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, pairwise
from typing import Any

from infinimem.llm.offline.keep import Word, content_terms, content_words, fact_text, short_names
from infinimem.llm.offline.tell import summary
from infinimem.terms import MONTHS, fold, query_terms
from infinimem.terms import tokens as terms_of

FEWEST = 3
"""Lines of a new topic, at least."""
NEAR, TOGETHER = 8, 0.4
"""Lines within which a noun that no name is comes again the same day, and how many of its lines do so."""
NOUN = 0.25
"""Of a word's uses, how many must be those of a noun for it to be a title."""
UNDATED = "Undated"

Facts = Sequence[Mapping[str, Any]]


def rewrite(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `rewrite`: by month, for `plan` sees all of the buffer and this only a part."""
    months: dict[str, list[str]] = {}
    for fact in variables["facts"]:
        months.setdefault(month(fact.get("time")), []).append(fact["id"])
    return {"topics": [{"title": title, "fact_ids": ids} for title, ids in months.items()]}


def plan(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `plan`: topics to the document of their title, else to a new one."""
    topics: dict[str, list[Mapping[str, Any]]] = {}
    loose: list[Mapping[str, Any]] = []
    for topic in variables["topics"]:
        (loose if is_month(topic["title"]) else topics.setdefault(topic["title"], [])).extend(topic["facts"])
    known = [*topics, *map(_title, variables["docs"])]
    for title, facts in grouped(sorted(loose, key=lambda fact: int(fact["id"])), known).items():
        topics.setdefault(title, []).extend(facts)
    homes: dict[Any, tuple[str | None, str | None]] = {
        **{_alike(title): (None, title) for title in reversed(variables["planned_titles"])},
        **{_alike(_title(doc)): (doc["id"], None) for doc in variables["docs"]},
    }
    assign: dict[tuple[str | None, str | None], list[str]] = {}
    for title, facts in topics.items():
        place = homes.setdefault(_alike(title) or title, (None, title))
        assign.setdefault(place, []).extend(fact["id"] for fact in facts)
    return {"assign": [{"doc_id": d, "new_title": t, "fact_ids": ids} for (d, t), ids in assign.items()]}


def grouped(facts: Facts, titles: Iterable[str] = ()) -> dict[str, list[Mapping[str, Any]]]:
    """Group facts, in the order in which they were said, under titles that there are, or new ones."""
    people = short_names(facts)
    telling = (content_words(fact_text(fact["text"])) for fact in facts)
    words = [{word.term: word for word in own if fold(word.surface) not in people} for own in telling]
    parts = {title: map(content_terms, re.split(r" and | & |, ", title)) for title in titles}
    known = [(t, {terms[-1] for terms in parts[t] if terms}) for t in parts if not is_month(t)]
    homes = [next((title for title, heads in known if not heads.isdisjoint(own)), "") for own in words]
    days = [(fact.get("time") or "")[:10] for fact in facts]
    nouns = _nouns(words, days)
    for term in sorted(nouns, key=lambda term: (-len(nouns[term]), term)):
        free = [at for at in nouns[term] if not homes[at]]
        if len(free) >= FEWEST:
            uses = [words[at][term] for at in nouns[term] if words[at][term].noun]
            forms = Counter(use.surface if use.named else use.surface.lower() for use in uses)
            ((form, _),) = forms.most_common(1)
            for at in free:
                homes[at] = form[0].upper() + form[1:]
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for fact, title in zip(facts, homes, strict=True):
        groups.setdefault(title or month(fact.get("time")), []).append(fact)
    return groups


def _nouns(words: Sequence[Mapping[str, Word]], days: Sequence[str]) -> dict[str, list[int]]:
    lines: dict[str, list[int]] = {}
    for at, own in enumerate(words):
        for term in own:
            lines.setdefault(term, []).append(at)
    nouns: dict[str, list[int]] = {}
    for term, those in lines.items():
        uses = [words[at][term] for at in those]
        pairs = ((a, b) for a, b in pairwise(those) if b - a <= NEAR and days[a] == days[b])
        stays = len({*chain(*pairs)}) >= TOGETHER * len(uses) or 2 * sum(use.named for use in uses) >= len(
            uses
        )
        if stays and len(uses) >= FEWEST and sum(use.noun for use in uses) >= max(2, NOUN * len(uses)):
            nouns[term] = those
    return nouns


def month(time: str | None) -> str:
    """ "May 2024"; what has no time is undated."""
    year, _, rest = (time or "").partition("-")
    known = rest[:2].isdecimal() and 0 < int(rest[:2]) < 13
    return f"{MONTHS[int(rest[:2]) - 1]} {year}" if known else UNDATED


def is_month(title: str) -> bool:
    """Whether a title, or an id made of it, is that of what shares nothing."""
    name, _, year = title.rpartition("/")[2].replace("-", " ").partition(" ")
    return name.capitalize() == UNDATED or (name.capitalize() in MONTHS and year[:4].isdecimal())


def merge(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `merge`: documents whose titles say the same."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for doc in variables["docs"]:
        groups.setdefault(_alike(_title(doc)), []).append(doc["id"])
    same = (ids for words, ids in groups.items() if words and len(ids) > 1)
    return {"groups": [{"doc_ids": ids, "reason": "the same title"} for ids in same]}


def select(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `select`: the documents whose id and summary hold most of the question."""
    held = {doc["id"]: set(terms_of(f"{doc['id']} {doc['summary']}")) for doc in variables["docs"]}
    spread = Counter(term for terms in held.values() for term in terms)
    wanted = query_terms(variables["question"])
    scores = {name: sum(1 / spread[t] for t in wanted if t in terms) for name, terms in held.items()}
    best = sorted((name for name in held if scores[name]), key=lambda name: (-scores[name], name))
    return {"ids": best[: int(variables["limit"])]}


def layout(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `layout`: every fact stays under its heading.

    For the program alone: `incoming` goes under headings that say the same as its titles, or under these,
    what came by month under the document's own, and the document is summed up in `summary_length` tokens.
    """
    doc, limit = variables["doc"], variables.get("summary_length")
    sections: dict[str, list[Mapping[str, Any]]] = {}
    for section in doc["sections"]:
        sections.setdefault(section["heading"], []).extend(section["facts"])
    for topic in variables.get("incoming", ()):
        title = doc["title"] if is_month(topic["title"]) else topic["title"]
        same = (heading for heading in sections if _alike(heading) == _alike(title))
        sections.setdefault(next(same, title), []).extend(topic["facts"])
    laid = {heading: [fact["id"] for fact in facts] for heading, facts in sections.items() if facts}
    rows = [{"heading": heading, "fact_ids": ids} for heading, ids in laid.items()]
    if limit is None:
        return {"layout": rows}
    return {"layout": rows, "summary": summary([*chain.from_iterable(sections.values())], limit)}


def _title(doc: Mapping[str, Any]) -> str:
    return str(doc.get("title") or doc["id"].rpartition("/")[2].replace("-", " "))


def _alike(title: str) -> tuple[str, ...]:
    return tuple(sorted(terms_of(title)))
