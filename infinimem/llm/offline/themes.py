"""Names for groups of facts, and which episodes a question needs, by the words that they share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from infinimem.grounding.sentences import split_speaker
from infinimem.llm.offline.salience import Corpus
from infinimem.terms import query_terms
from infinimem.terms import tokens as terms_of

WORDS = 3
"""Phrases of a name."""


def theme(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `theme`: who speaks, and the phrases that most facts share."""
    said = [split_speaker(fact["text"]) for fact in variables["facts"]]
    names = sorted({speaker for speaker, _ in said if speaker})
    corpus = Corpus([text for _, text in said], names)
    phrases = corpus.phrases(range(len(said)), WORDS)
    return {"summary": ": ".join(filter(None, (" and ".join(names), ", ".join(phrases))))}


def gate(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `gate`: each episode whose title has a word of the question that nothing before has."""
    known = (terms_of(fact["text"]) for fact in variables["facts"])
    left = set(query_terms(variables["question"])).difference(*known)
    chosen: list[str] = []
    for episode in variables["episodes"]:
        if new := left.intersection(terms_of(episode["title"])):
            left -= new
            chosen.append(episode["id"])
    return {"sufficient": not left, "episodes": chosen, "messages": chosen if left else []}


def guess(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the task `guess`: rules know no probabilities, and guess nothing."""
    return {"answer": ""}
