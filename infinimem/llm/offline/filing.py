"""Documents for topics, for each other and for a question, by the terms that they share."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from infinimem import tokens
from infinimem.llm.offline.lexicon import content_terms
from infinimem.llm.offline.salience import Corpus, similarity, title
from infinimem.retrieval.tokenizer import query_terms
from infinimem.retrieval.tokenizer import tokens as terms_of

NEAR = 0.22
"""Cosine of topic and document from which the document takes the topic in."""
MERGEABLE = 0.3
"""Cosine of two documents from which they are one topic."""
GROUP = 4
SIGNATURE_TOKENS = 25
"""About what the signature of a line takes."""

Profile = dict[str, float]


def plan(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `plan`: the nearest document where it is near enough, else a new one."""
    docs: Sequence[Mapping[str, Any]] = variables["docs"]
    limit = int(variables["markdown_length"])
    topics = [part for topic in variables["topics"] for part in _parts(topic, limit)]
    profiles = _weighted([*map(_document, docs), *map(_topic, topics)])
    homes, incoming = profiles[: len(docs)], profiles[len(docs) :]
    assign: dict[tuple[str | None, str | None], list[str]] = {}
    titles = list(variables["planned_titles"])
    for topic, profile in zip(topics, incoming, strict=True):
        near = max(range(len(docs)), key=lambda i: (similarity(profile, homes[i]), -i), default=None)
        if near is not None and similarity(profile, homes[near]) >= NEAR:
            key: tuple[str | None, str | None] = (docs[near]["id"], None)
        else:
            name = _planned(topic["title"], titles)
            titles.append(name)
            key = (None, name)
        assign.setdefault(key, []).extend(fact["id"] for fact in topic["facts"])
    return {"assign": [{"doc_id": d, "new_title": t, "fact_ids": ids} for (d, t), ids in assign.items()]}


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
    parts: list[list[int]] = [[]]
    room = limit
    for i, size in enumerate(sizes):
        if parts[-1] and size > room:
            parts.append([])
            room = limit
        parts[-1].append(i)
        room -= size
    return [
        {"title": title(corpus.phrases(part, 2)) or topic["title"], "facts": [facts[i] for i in part]}
        for part in parts
    ]


def _planned(name: str, titles: Iterable[str]) -> str:
    """The title as it was planned before, if it was."""
    wanted = sorted(terms_of(name))
    return next((other for other in titles if sorted(terms_of(other)) == wanted), name)


def _topic(topic: Mapping[str, Any]) -> Profile:
    spread = Counter(term for fact in topic["facts"] for term in dict.fromkeys(content_terms(fact["text"])))
    profile = {term: 1 + math.log(count) for term, count in spread.items()}
    for term in content_terms(topic["title"]):
        profile[term] = profile.get(term, 0.0) + 2.0
    return profile


def _document(doc: Mapping[str, Any]) -> Profile:
    keywords, _, text = doc["summary"].partition(";")
    name = doc["id"].rpartition("/")[2].replace("-", " ")
    profile: Profile = {}
    for weight, part in ((3.0, name), (2.0, keywords), (1.0, text)):
        for term in dict.fromkeys(content_terms(part)):
            profile[term] = profile.get(term, 0.0) + weight
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
