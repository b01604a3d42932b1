"""Where lines go: to a topic whose title they hold, else under their commonest noun, else to their month.

A line whose project or conversation has a name came with it (keep.py). Of the others those that share a noun
stand together, three at least; the commonest noun comes first, but one that many lines share is left for what
no other takes, for it tells them least apart. What only goes on with the line before follows that one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from infinimem.llm.offline.tell import summary
from infinimem.llm.offline.words import CONTINUES, content_terms, content_words, fact_text, short_names
from infinimem.terms import MONTHS, fold, query_terms
from infinimem.terms import tokens as terms_of

FEWEST, MANY = 3, 6
"""Lines of a new topic, at least; lines from which on a noun is left for the end."""
NOUN, OWN = 0.45, 0.3
"""How far a word must be used as a noun to be a title."""
PULL, NAMED = 2, 3
"""Lines of a topic with words of a line that draw it there; of how many lines its title is worth."""
UNDATED = "Undated"

Facts = Sequence[Mapping[str, Any]]


def rewrite(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `rewrite`."""
    return {
        "topics": [
            {"title": title, "fact_ids": [fact["id"] for fact in facts]}
            for title, facts in grouped(variables["facts"], variables["docs"]).items()
        ]
    }


def grouped(facts: Facts, docs: Sequence[Mapping[str, Any]] = ()) -> dict[str, list[Mapping[str, Any]]]:
    """Facts by the title under which they go.

    Args:
        facts: in the order in which they were said.
        docs: topics that there are, with their titles and lines.
    """
    terms = [set(content_terms(fact_text(fact["text"]))) for fact in facts]
    nouns = _nouns(facts)
    known = [(doc["title"], set(content_terms(text))) for doc in docs for text in doc.get("lines", ())]
    known += [(doc["title"], set(content_terms(doc["title"]))) for doc in docs for _ in range(NAMED)]
    homes = _drawn([""] * len(facts), terms, known)
    while True:
        open_ = [found for home, found in zip(homes, nouns, strict=True) if not home]
        counts = Counter(term for found in open_ for term in found)
        fit = [term for term, count in counts.items() if count >= FEWEST]
        if not fit:
            break
        best = max(fit, key=lambda term: (counts[term] if counts[term] <= MANY else -counts[term], term))
        title = _written([found[best] for found in open_ if best in found])
        homes = [home or (title if best in found else "") for home, found in zip(homes, nouns, strict=True)]
    homes = _drawn(homes, terms, [*known, *zip(homes, terms, strict=True)])
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for fact, title in zip(facts, _followed(facts, homes, nouns), strict=True):
        groups.setdefault(title or month(fact.get("time")), []).append(fact)
    return groups


def _drawn(
    homes: Sequence[str], terms: Sequence[Collection[str]], known: Sequence[tuple[str, Collection[str]]]
) -> list[str]:
    """The homes of lines, and of those without one the topic that has most of the lines with their words."""
    places: dict[str, Counter[str]] = {}
    for title, own in known:
        for term in own if title and not is_month(title) else ():
            places.setdefault(term, Counter())[title] += 1
    found = []
    for home, own in zip(homes, terms, strict=True):
        pulls = Counter[str]()
        for near in () if home else filter(None, map(places.get, own)):
            (title, count), *_ = sorted(near.items(), key=lambda item: (-item[1], item[0]))
            pulls[title] += count if 4 * count > 3 * near.total() else 0
        best = max(pulls, key=lambda title: (pulls[title], title), default="")
        found.append(home or (best if pulls[best] >= PULL else ""))
    return found


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


def _followed(facts: Facts, homes: Sequence[str], nouns: Sequence[Collection[str]]) -> list[str]:
    """The homes, and of a line that goes on with the one before, of the same day, that of that one."""
    days = [(fact.get("time") or "")[:10] for fact in facts]
    return [
        homes[at - 1]
        if at
        and not homes[at]
        and days[at] == days[at - 1]
        and (not nouns[at] or CONTINUES.match(fact["text"]))
        else homes[at]
        for at, fact in enumerate(facts)
    ]


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
    found = [{"title": title, "lines": [fact["text"] for fact in facts]} for title, facts in topics.items()]
    for title, facts in grouped(sorted(loose, key=lambda fact: int(fact["id"])), found).items():
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
