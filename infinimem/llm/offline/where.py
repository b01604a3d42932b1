"""Where lines go: to a topic whose title they hold, else to others with the same noun, else to their month.

A line whose project or conversation has a name came with it (keep.py). All others of a buffer are looked at
together: a noun is a topic where three lines at least have it, and rare nouns come first, for one that many
lines share tells them least apart. What points at the line before follows it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from infinimem.grounding.sentences import sentences
from infinimem.llm.offline.tell import summary
from infinimem.llm.offline.words import CONTINUES, Word, content_terms, content_words, fact_text, short_names
from infinimem.terms import MONTHS, fold, query_terms
from infinimem.terms import tokens as terms_of

FEWEST = 3
"""Lines of a new topic, at least."""
NOUN = 0.25
"""Of a word's uses, how many must be those of a noun for it to be a title."""
UNDATED = "Undated"
_PICTURE = re.compile(r"\bphoto\w* of\b")

Facts = Sequence[Mapping[str, Any]]


def rewrite(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `rewrite`: by month, for `plan` sees all of the buffer and this only a part."""
    months: dict[str, list[str]] = {}
    for fact in variables["facts"]:
        months.setdefault(month(fact.get("time")), []).append(fact["id"])
    return {"topics": [{"title": title, "fact_ids": ids} for title, ids in months.items()]}


def plan(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `plan`: what has a title to the document of that title, else to a new one; the rest as
    `grouped` has it."""
    topics: dict[str, list[Mapping[str, Any]]] = {}
    loose: list[Mapping[str, Any]] = []
    for topic in variables["topics"]:
        (loose if is_month(topic["title"]) else topics.setdefault(topic["title"], [])).extend(topic["facts"])
    homes = {_words(title): (doc["id"], None) for doc in variables["docs"] for title in [_title(doc)]}
    known = [*topics, *map(_title, variables["docs"])]
    for title, facts in grouped(sorted(loose, key=lambda fact: int(fact["id"])), known).items():
        topics.setdefault(title, []).extend(facts)
    planned = {_words(title): (None, title) for title in reversed(variables["planned_titles"])}
    assign: dict[tuple[str | None, str | None], list[str]] = {}
    for title, facts in topics.items():
        words = _words(title)
        place = homes.get(words) or planned.setdefault(words, (None, title))
        assign.setdefault(place, []).extend(fact["id"] for fact in facts)
    return {"assign": [{"doc_id": d, "new_title": t, "fact_ids": ids} for (d, t), ids in assign.items()]}


def grouped(facts: Facts, titles: Iterable[str] = ()) -> dict[str, list[Mapping[str, Any]]]:
    """Facts by the title under which they go.

    Args:
        facts: in the order in which they were said.
        titles: of topics that there are.
    """
    people = short_names(frozenset(fact["speaker"] for fact in facts if fact.get("speaker")))
    words = [_by_term(fact["text"], people) for fact in facts]
    known = {title: terms for title in titles if not is_month(title) and (terms := {*content_terms(title)})}
    homes = [next((title for title, terms in known.items() if terms <= own.keys()), "") for own in words]
    nouns = _nouns(words)
    while left := {
        term: free
        for term, lines in nouns.items()
        if len(free := [at for at in lines if not homes[at]]) >= FEWEST
    }:
        term = min(left, key=lambda one: (len(left[one]), one))
        title = _written([words[at][term] for at in nouns[term] if words[at][term].noun])
        for at in left[term]:
            homes[at] = title
    days = [(fact.get("time") or "")[:10] for fact in facts]
    for at in range(1, len(facts)):
        if not homes[at] and homes[at - 1] and days[at - 1] == days[at]:
            after = homes[at + 1] if at + 1 < len(facts) and days[at + 1] == days[at] else ""
            own = any(word.noun for word in words[at].values())
            if (after == homes[at - 1] and not own) or _goes_on(
                homes[at - 1], facts[at - 1]["text"], facts[at]["text"]
            ):
                homes[at] = homes[at - 1]
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for fact, title in zip(facts, homes, strict=True):
        groups.setdefault(title or month(fact.get("time")), []).append(fact)
    return groups


def _by_term(text: str, people: Collection[str]) -> dict[str, Word]:
    """What a line says it is about; where it says nothing, what its picture shows."""
    words = content_words(fact_text(text))
    seen = () if words else (word._replace(noun=False) for word in content_words(_PICTURE.sub("", text)))
    return {word.term: word for word in (*words, *seen) if fold(word.surface) not in people}


def _nouns(words: Sequence[Mapping[str, Word]]) -> dict[str, list[int]]:
    """The lines of each noun that may be a title; a noun whose lines all have another one is that one."""
    lines: dict[str, list[int]] = {}
    for at, own in enumerate(words):
        for term in own:
            lines.setdefault(term, []).append(at)
    nouns = {
        term: {*those}
        for term, those in lines.items()
        if len(those) >= FEWEST and sum(words[at][term].noun for at in those) >= max(2, NOUN * len(those))
    }
    return {
        term: lines[term]
        for term, own in nouns.items()
        if not any(own < other or (own == other and term < name) for name, other in nouns.items())
    }


def _goes_on(title: str, before: str, text: str) -> bool:
    """Whether a line shares a noun with the one before, or points at it and that one ended with the topic."""
    *_, last = ("", *sentences(fact_text(before)))
    if CONTINUES.match(text) and not {*content_terms(title)}.isdisjoint(content_terms(last)):
        return True
    nouns, others = (
        {word.term for word in content_words(fact_text(one)) if word.noun} for one in (before, text)
    )
    return not nouns.isdisjoint(others)


def _written(uses: Sequence[Word]) -> str:
    """A title of a noun: with the word that most of its uses have before it ("guinea pigs")."""
    ((form, _),) = Counter(use.surface if use.named else use.surface.lower() for use in uses).most_common(1)
    ((before, count),) = Counter(use.before for use in uses).most_common(1)
    title = f"{before} {form}" if before and count > 0.6 * len(uses) else form
    return title[0].upper() + title[1:]


def month(time: str | None) -> str:
    """ "May 2024"; what has no time is undated."""
    year, _, rest = (time or "").partition("-")
    known = rest[:2].isdecimal() and 0 < int(rest[:2]) < 13
    return f"{MONTHS[int(rest[:2]) - 1]} {year}" if known else UNDATED


def is_month(title: str) -> bool:
    """Whether a title, or an id made of it, is that of what shares nothing."""
    name, _, year = title.rpartition("/")[2].replace("-", " ").partition(" ")
    return name.capitalize() == UNDATED or (name.capitalize() in MONTHS and year[:4].isdecimal())


# ── documents ───────────────────────────────────────────────────────────────────────────────────


def merge(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `merge`: documents whose titles say the same."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for doc in variables["docs"]:
        groups.setdefault(_words(_title(doc)), []).append(doc["id"])
    same = (ids for words, ids in groups.items() if words and len(ids) > 1)
    return {"groups": [{"doc_ids": ids, "reason": "the same title"} for ids in same]}


def select(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `select`: the documents whose id and summary hold most of the question."""
    wanted, docs = query_terms(variables["question"]), variables["docs"]
    held = [set(terms_of(f"{doc['id']} {doc['summary']}")) for doc in docs]
    spread = Counter(term for terms in held for term in terms)
    scores = [sum(1 / spread[term] for term in wanted if term in terms) for terms in held]
    best = sorted(
        (at for at, score in enumerate(scores) if score), key=lambda at: (-scores[at], docs[at]["id"])
    )
    return {"ids": [docs[at]["id"] for at in best[: int(variables["limit"])]]}


def layout(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `layout`: every fact stays under its heading.

    For the program alone: `incoming` goes under headings that say the same as its titles, or under these,
    what came by month under the document's own, and the document is summed up in `summary_length` tokens.
    """
    sections: dict[str, list[Mapping[str, Any]]] = {}
    for section in variables["doc"]["sections"]:
        sections.setdefault(section["heading"], []).extend(section["facts"])
    for topic in variables.get("incoming", ()):
        title = variables["doc"]["title"] if is_month(topic["title"]) else topic["title"]
        same = (heading for heading in sections if _words(heading) == _words(title))
        sections.setdefault(next(same, title), []).extend(topic["facts"])
    laid: dict[str, Any] = {
        "layout": [
            {"heading": heading, "fact_ids": [fact["id"] for fact in facts]}
            for heading, facts in sections.items()
            if facts
        ]
    }
    if "incoming" in variables:
        laid["summary"] = summary(
            [fact for facts in sections.values() for fact in facts], variables["summary_length"]
        )
    return laid


def _title(doc: Mapping[str, Any]) -> str:
    return doc.get("title") or doc["id"].rpartition("/")[2].replace("-", " ")


def _words(title: str) -> tuple[str, ...]:
    """Equal for titles of the same words."""
    return tuple(sorted(terms_of(title)))
