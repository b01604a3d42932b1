"""Where lines go: to a topic whose title they hold, else to others with the same noun, else to their month.

A line whose project or conversation has a name came with it (keep.py). Of the others those that share a noun
stand together; rare nouns come first, for a noun that many lines share tells them least apart. What goes on
with the line before, or has no noun, follows that one. A new topic has three lines at least.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from infinimem.llm.offline.tell import summary
from infinimem.llm.offline.words import CONTINUES, content_terms, content_words, fact_text, short_names
from infinimem.terms import MONTHS, fold, query_terms
from infinimem.terms import tokens as terms_of

FEWEST, MANY = 3, 3
"""Lines of a new topic, at least; lines beyond which a noun is left for the end."""
NOUN, OWN = 0.45, 0.3
"""How far a word must be used as a noun to be a title."""
FOLLOWING = 2
"""Lines without a noun of their own that may follow one with a home."""
UNDATED = "Undated"

Facts = Sequence[Mapping[str, Any]]


def rewrite(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `rewrite`."""
    return {
        "topics": [
            {"title": title, "fact_ids": [fact["id"] for fact in facts]}
            for title, facts in grouped(
                variables["facts"], (doc["title"] for doc in variables["docs"])
            ).items()
        ]
    }


def grouped(facts: Facts, titles: Iterable[str] = ()) -> dict[str, list[Mapping[str, Any]]]:
    """Facts by the title under which they go.

    Args:
        facts: in the order in which they were said.
        titles: of topics that there are.
    """
    terms = [frozenset(content_terms(fact_text(fact["text"]))) for fact in facts]
    nouns = _nouns(facts)
    known = {title: words for title in titles if not is_month(title) and (words := {*content_terms(title)})}
    homes = [next((title for title, words in known.items() if words <= own), "") for own in terms]
    while True:
        open_ = [own for home, own in zip(homes, nouns, strict=True) if not home]
        counts = Counter(term for own in open_ for term in own)
        fit = [term for term, count in counts.items() if count > 1]
        if not fit:
            break
        best = max(fit, key=lambda term: (counts[term] if counts[term] <= MANY else -counts[term], term))
        title = _written([own[best] for own in open_ if best in own])
        homes = [home or (title if best in own else "") for home, own in zip(homes, nouns, strict=True)]
    for _ in range(FOLLOWING):
        homes = [
            home or (homes[at - 1] if at and _goes_on(facts[at - 1 : at + 1], nouns[at - 1 : at + 1]) else "")
            for at, home in enumerate(homes)
        ]
    counts = Counter(homes)
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for fact, title in zip(facts, homes, strict=True):
        stands = title and (counts[title] >= FEWEST or title in known)
        groups.setdefault(title if stands else month(fact.get("time")), []).append(fact)
    return groups


def _goes_on(pair: Facts, nouns: Sequence[Collection[str]]) -> bool:
    """Whether a line was said right after another, the same day, and points at it or has no other nouns."""
    ids, days = [int(fact["id"]) for fact in pair], {(fact.get("time") or "")[:10] for fact in pair}
    if ids[1] - ids[0] != 1 or len(days) > 1:
        return False
    before, own = map(set, nouns)
    return not own or not own.isdisjoint(before) or CONTINUES.match(pair[1]["text"]) is not None


def _nouns(facts: Facts) -> list[dict[str, tuple[str, str, str]]]:
    """The nouns of each fact by their terms, as they are written, each with the words beside it."""
    people = short_names(fact["speaker"] for fact in facts if fact.get("speaker"))
    words = [content_words(fact_text(fact["text"])) for fact in facts]
    uses: dict[str, list[float]] = {}
    for word in (word for those in words for word in those):
        uses.setdefault(word.term, []).append(word.noun)
    nouns = {term for term, those in uses.items() if sum(those) >= NOUN * len(those)}
    return [
        {
            word.term: (word.surface if word.named else word.surface.lower(), word.before, word.after)
            for word in those
            if word.term in nouns and word.noun >= OWN and fold(word.surface) not in people
        }
        for those in words
    ]


def _written(uses: Sequence[tuple[str, str, str]]) -> str:
    """A title of a noun: with the word that most of its uses have beside it ("guinea pigs")."""
    (form, _), *_ = Counter(use[0] for use in uses).most_common(1)
    for at, joined in ((1, "{1} {0}"), (2, "{0} {1}")):
        (word, count), *_ = Counter(use[at] for use in uses).most_common(1)
        if word and count > 0.6 * len(uses):
            form = joined.format(form, word)
    return form[0].upper() + form[1:]


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


def plan(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `plan`: the document of the same title, else a new one. What no noun was found for is
    looked at once more: then all is together that was sorted in parts."""
    topics: dict[str, list[Mapping[str, Any]]] = {}
    loose: list[Mapping[str, Any]] = []
    for topic in variables["topics"]:
        (loose if is_month(topic["title"]) else topics.setdefault(topic["title"], [])).extend(topic["facts"])
    for title, facts in grouped(sorted(loose, key=lambda fact: int(fact["id"])), list(topics)).items():
        topics.setdefault(title, []).extend(facts)
    homes = {_words(doc.get("title") or _name(doc["id"])): (doc["id"], None) for doc in variables["docs"]}
    planned = {_words(title): (None, title) for title in reversed(variables["planned_titles"])}
    assign: dict[tuple[str | None, str | None], list[str]] = {}
    for title, facts in topics.items():
        words = _words(title)
        place = homes.get(words) or planned.setdefault(words, (None, title))
        assign.setdefault(place, []).extend(fact["id"] for fact in facts)
    return {"assign": [{"doc_id": d, "new_title": t, "fact_ids": ids} for (d, t), ids in assign.items()]}


def merge(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `merge`: documents whose titles say the same."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for doc in variables["docs"]:
        groups.setdefault(_words(doc.get("title") or _name(doc["id"])), []).append(doc["id"])
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


def seek(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `seek`: nothing is named, so that the best partitions are read."""
    return {"done": True, "calls": [], "relevant_snippets": [], "relevant_docs": []}


def layout(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `layout`: every fact stays under its heading.

    For the program alone: `incoming` goes under headings that say the same as its titles, or under these, and
    the document is summed up in `summary_length` tokens.
    """
    sections: dict[str, list[Mapping[str, Any]]] = {}
    for section in variables["doc"]["sections"]:
        sections.setdefault(section["heading"], []).extend(section["facts"])
    for topic in variables.get("incoming", ()):
        same = (heading for heading in sections if _words(heading) == _words(topic["title"]))
        sections.setdefault(next(same, topic["title"]), []).extend(topic["facts"])
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


def _name(doc_id: str) -> str:
    return doc_id.rpartition("/")[2].replace("-", " ")


def _words(title: str) -> tuple[str, ...]:
    """Equal for titles of the same words."""
    return tuple(sorted(terms_of(title)))
