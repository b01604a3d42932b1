"""Search and retrieval find the right line first: questions whose first hit is known, over sample_library."""

from __future__ import annotations

from pathlib import Path

from cases import each

from infinimem import open_memory

SAMPLE = Path(__file__).parents[2] / "sample_library"

FIRST = {
    "Where does Tomas's sister live?": 38,
    "Who has a key to our flat?": 136,
    "What does Pepper eat?": 55,
    "When is the booster due?": 54,
    "What is the new vet called?": 256,
    "At which address is the router?": 252,
    "Where do the backups of heron go?": 70,
    "How much is the rent of the flat in Ghent?": 194,
    "What was the car sold for?": 230,
    "When do the movers come?": 229,
    "How many sensors does the pilot have?": 19,
    "How many bursts did the pilot find?": 108,
    "How long does the nightly job take?": 155,
    "When is the half marathon?": 37,
    "When do we come back from Slovenia?": 158,
    "What are the days when I work from home?": 254,
    "Who reports to Nora?": 154,
    "Which nuts is Nora allergic to?": 21,
    "What is the ferritin value?": 192,
    "What coffee does Nora drink?": 130,
    "When does the book club meet?": 39,
    "What telescope did mum get?": 251,
    "When is mum's party?": 232,
    "What did the doctor say about caffeine?": 129,
}
"""A question, and the number of the line that `retrieve` ranks first."""

SECTIONS = {
    "router address": "topics/home-network",
    "half marathon Ghent": "topics/running",
    "salmon food": "topics/pepper",
    "adrenaline pen": "topics/health",
    "false alarms valve test": "topics/kestrel",
    "skiing in winter": "topics/travel",
}
"""Words, and the document that `search` shows first."""


@each("question", FIRST)
def test_the_line_that_answers_comes_first(question: str) -> None:
    """`retrieve` ranks the line that answers first, without a model."""
    assert open_memory(SAMPLE, model="offline").retrieve(question).items[0].seqs == (FIRST[question],)


@each("words", SECTIONS)
def test_the_document_that_is_about_it_comes_first(words: str) -> None:
    """`search` shows the section that is about the words first."""
    assert (
        open_memory(SAMPLE, model="offline").tools.search(words, k=1)["hits"][0]["doc_id"] == SECTIONS[words]
    )
