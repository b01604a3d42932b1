"""Documents for topics, for each other and for questions, and sections for facts: by the terms they share."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from infinimem import tokens
from infinimem.llm.offline.lexicon import content_terms, content_words
from infinimem.llm.offline.salience import Corpus, similarity, summary, title
from infinimem.llm.offline.topics import continues, day_of, is_leftover
from infinimem.terms import fold, query_terms
from infinimem.terms import tokens as terms_of

NEAR = 0.22
"""Cosine of topic and document from which the document takes the topic in."""
MERGEABLE = 0.3
"""Cosine of two documents from which they are one topic."""
GROUP = 4
SIGNATURE_TOKENS = 25
"""About what the signature of a line takes."""

RARE = 0.1
"""A term in up to this share of the documents, or in one, tells where a line belongs."""
WEAK, PULL, STRONG = 1.0, 2.0, 3.0
"""Weight of such terms from which a line goes by itself: where they are a good part of it, out of a small
topic, out of a larger one."""
SMALL = 3
"""Lines of a small topic."""

Profile = dict[str, float]

_SPEAKER = re.compile(r"(?:(?<=/ )|\A\s*)[^\W\d_][\w .'-]{0,40}: ")


def plan(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `plan`: the nearest document where it is near enough, else a new one.

    A line goes by itself where a document deals with what only it tells of its topic. Documents of what
    fitted nowhere on some day take in nothing else.
    """
    docs = [doc for doc in variables["docs"] if not is_leftover(doc["id"])]
    limit = int(variables["markdown_length"])
    topics = [part for topic in variables["topics"] for part in _parts(topic, limit)]
    held = [*map(_document, docs)]
    profiles = _weighted([*held, *map(_topic, topics)])
    homes, incoming = profiles[: len(docs)], profiles[len(docs) :]
    assign: dict[tuple[str | None, str | None], list[str]] = {}
    planned: dict[tuple[str, ...], str] = {}  # titles by their words: the first that was planned
    for name in variables["planned_titles"]:
        planned.setdefault(_words(name), name)
    spread = Counter(term for profile in held for term in profile)
    rare = {term for term, count in spread.items() if count <= max(1, RARE * len(docs))}
    known = [{term: w for term, w in profile.items() if term in rare} for profile in held]
    for topic, profile in zip(topics, incoming, strict=True):
        bundle = is_leftover(topic["title"])
        near = max(range(len(docs)), key=lambda i: (similarity(profile, homes[i]), -i), default=None)
        if near is not None and (
            bundle or similarity(profile, homes[near]) < NEAR or not _is_about(topic, held[near])
        ):
            near = None
        places = _places(topic, known, near, bundle=bundle)
        if any(place is None for place in places):
            name = planned.setdefault(_words(topic["title"]), topic["title"])
        for fact, place in zip(topic["facts"], places, strict=True):
            key = (None, name) if place is None else (docs[place]["id"], None)
            assign.setdefault(key, []).append(fact["id"])
    return {"assign": [{"doc_id": d, "new_title": t, "fact_ids": ids} for (d, t), ids in assign.items()]}


def _is_about(topic: Mapping[str, Any], held: Profile) -> bool:
    """Whether a document holds a word of a topic's title, or of at least half of its lines."""
    if not held.keys().isdisjoint(content_terms(topic["title"])):
        return True
    lines = [content_terms(fact["text"]) for fact in topic["facts"]]
    return 2 * sum(not held.keys().isdisjoint(own) for own in lines) >= len(lines)


def _places(
    topic: Mapping[str, Any], known: Sequence[Profile], near: int | None, *, bundle: bool
) -> list[int | None]:
    """The document (its index) for each fact of a topic whose own is `near`; None: a new one.

    Args:
        known: of each document the terms that few others have.
        bundle: the topic is what fitted nowhere, nothing holds it together.
    """
    small = bundle or len(topic["facts"]) <= SMALL
    theme = set() if bundle or len(topic["facts"]) == 1 else set(content_terms(topic["title"]))
    places: list[int | None] = []
    before = ""
    for fact in topic["facts"]:
        own = dict.fromkeys(content_terms(fact["text"]))
        pulls = [sum(profile.get(term, 0.0) for term in own) for profile in known]
        best = max(range(len(known)), key=lambda i: (pulls[i], -i), default=None)
        place = near
        if best is not None and pulls[best] > (0.0 if near is None else pulls[near]):
            most = 4 * sum(term in known[best] for term in own) >= len(own)
            stray = theme.isdisjoint(own)
            needed = (WEAK if most and stray else PULL) if small else STRONG
            if pulls[best] >= needed and (small or stray):
                place = best
        day = day_of(fact.get("time"))
        if place == near and places and day == before and (not own or continues(fact["text"])):
            place = places[-1]
        places.append(place)
        before = day
    return places


def merge(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `merge`: the most similar pairs first, each joined by what is as near to all of it."""
    docs: Sequence[Mapping[str, Any]] = variables["docs"]
    profiles = _weighted([_document(doc) for doc in docs])
    alike = {
        (i, j): similarity(profiles[i], profiles[j])
        for i in range(len(docs))
        for j in range(i + 1, len(docs))
    }
    group_of: dict[int, list[int]] = {}
    for (i, j), value in sorted(alike.items(), key=lambda item: (-item[1], item[0])):
        if value < MERGEABLE:
            break
        one, two = group_of.get(i, [i]), group_of.get(j, [j])
        if one is two or len(one) + len(two) > GROUP:
            continue
        if all(alike[min(a, b), max(a, b)] >= MERGEABLE for a in one for b in two):
            group = sorted(one + two)
            group_of |= dict.fromkeys(group, group)
    groups = {tuple(group) for group in group_of.values()}
    return {
        "groups": [
            {"doc_ids": [docs[i]["id"] for i in group], "reason": _shared([profiles[i] for i in group])}
            for group in sorted(groups)
        ]
    }


def select(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `select`: the documents whose id and summary hold most of the question."""
    wanted = query_terms(variables["question"])
    docs = variables["docs"]
    held = [set(terms_of(f"{doc['id']} {doc['summary']}")) for doc in docs]
    spread = Counter(term for terms in held for term in terms)
    scores = [
        sum(math.log(1 + len(docs) / spread[term]) for term in wanted if term in terms) for terms in held
    ]
    best = sorted((i for i in range(len(docs)) if scores[i] > 0), key=lambda i: (-scores[i], docs[i]["id"]))
    return {"ids": [docs[i]["id"] for i in best[: int(variables["limit"])]]}


def _parts(topic: Mapping[str, Any], limit: int) -> Iterable[Mapping[str, Any]]:
    """A topic, cut where it would overfill a document."""
    facts = topic["facts"]
    sizes = [tokens.count(fact["text"]) + SIGNATURE_TOKENS for fact in facts]
    if sum(sizes) <= limit or len(facts) < 2:
        return [topic]
    corpus = Corpus([fact["text"] for fact in facts])
    parts = tokens.packed(range(len(facts)), limit, sizes.__getitem__)
    return [
        {"title": title(corpus.phrases(part, 2)) or topic["title"], "facts": [facts[i] for i in part]}
        for part in parts
    ]


def _words(title: str) -> tuple[str, ...]:
    """Equal for titles of the same words."""
    return tuple(sorted(terms_of(title)))


def _topic(topic: Mapping[str, Any]) -> Profile:
    spread = Counter(term for fact in topic["facts"] for term in dict.fromkeys(content_terms(fact["text"])))
    profile = {term: 1 + math.log(count) for term, count in spread.items()}
    for term in content_terms(topic["title"]):
        profile[term] = profile.get(term, 0.0) + 2.0
    return profile


def _document(doc: Mapping[str, Any]) -> Profile:
    """What a document is about: the words of its id, of the keywords and, names less, of what it states."""
    keywords, _, text = doc["summary"].partition(";")
    name = doc["id"].rpartition("/")[2].replace("-", " ")
    profile: Profile = {}
    for weight, part in ((3.0, name), (2.0, keywords), (1.0, _SPEAKER.sub("", text))):
        for word in {word.term: word for word in content_words(part)}.values():
            less = 0.5 if weight == 1.0 and word.named else 1.0
            profile[word.term] = profile.get(word.term, 0.0) + weight * less
    return profile


def _weighted(profiles: Sequence[Profile]) -> list[Profile]:
    """Terms weighed by how few profiles hold them; vectors of length one."""
    spread = Counter(term for profile in profiles for term in profile)
    weighted = []
    for profile in profiles:
        vector = {term: w * math.log(1 + len(profiles) / spread[term]) for term, w in profile.items()}
        length = math.sqrt(sum(w * w for w in vector.values())) or 1.0
        weighted.append({term: w / length for term, w in vector.items()})
    return weighted


def _shared(profiles: Sequence[Profile]) -> str:
    common = set.intersection(*map(set, profiles))
    best = sorted(common, key=lambda term: (-sum(profile[term] for profile in profiles), term))
    return f"shared terms: {', '.join(best[:5])}"


Sections = dict[str, list[Mapping[str, Any]]]


def layout(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `layout`: every fact stays under its heading.

    For the program alone: `incoming` goes under headings that say the same as its titles, or under these, and
    the document is summed up in `summary_length` tokens.
    """
    sections = _sections(variables["doc"], variables.get("incoming", ()))
    laid: dict[str, Any] = {
        "layout": [
            {"heading": heading, "fact_ids": [fact["id"] for fact in facts]}
            for heading, facts in sections.items()
            if facts
        ]
    }
    if "incoming" in variables:
        facts = [fact for those in sections.values() for fact in those]
        laid["summary"] = summary(facts, variables["summary_length"])
    return laid


def compare(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `compare`: no contradiction is claimed."""
    return {"superseded": []}


def _sections(doc: Mapping[str, Any], incoming: Sequence[Mapping[str, Any]]) -> Sections:
    """Headings in their order with old and new facts; a heading that occurs twice is one section."""
    sections: Sections = {}
    for section in doc["sections"]:
        sections.setdefault(section["heading"], []).extend(section["facts"])
    for topic in incoming:
        sections.setdefault(_fitting(sections, topic["title"]), []).extend(topic["facts"])
    return sections


def _fitting(headings: Iterable[str], title: str) -> str:
    """The first that says the same as a title, or holds all its telling words; else the title itself."""
    wanted = frozenset(content_terms(title))
    same = next((heading for heading in headings if fold(heading) == fold(title)), None)
    holds = (heading for heading in headings if wanted and wanted <= frozenset(content_terms(heading)))
    return same or next(holds, title)
