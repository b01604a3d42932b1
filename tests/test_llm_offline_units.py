"""The rules of units: descriptors that claim nothing new, and proposals that rather miss than err."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from cases import each
from hypothesis import given
from hypothesis import strategies as st
from language_tasks import by_rules

from infinimem.grounding.claims import unsupported
from infinimem.llm.offline.describe import CHARACTERS, KEYWORDS, WORDS
from infinimem.strategies.allmem.tasks import DESCRIBE, DIAGNOSE, MERGE_UNITS, SPLIT_UNIT, UPDATE_UNIT

Unit = dict[str, Any]


def unit(text: str, speaker: str | None = "Ana", time: str | None = None, unit_id: str = "TARGET") -> Unit:
    bare: Unit = {"id": unit_id, "time": time, "speaker": speaker, "text": text}
    (card,) = by_rules(DESCRIBE, context=[], turns=[bare | {"role": "user"}])["cards"]
    return bare | {key: card[key] for key in ("summary", "keywords")}


def origin(told: Mapping[str, Any]) -> str:
    return f"{told['speaker']}: {told['text']}" if told["speaker"] else told["text"]


def diagnose(target: Unit, *neighbours: Unit) -> Mapping[str, Any]:
    shown = ("id", "time", "summary", "keywords")
    told = target | {"number": "u-000099" if target["id"] == "TARGET" else target["id"]}
    return by_rules(
        DIAGNOSE,
        confidence="0.9",
        target=told,
        anchors=[{key: item[key] for key in shown} for item in neighbours],
    )


def older(text: str, speaker: str | None = "Ana", time: str | None = None) -> Unit:
    return unit(text, speaker, time, "u-000007")


# ── describe ────────────────────────────────────────────────────────────────────────────────────


def test_a_summary_keeps_its_not() -> None:
    told = unit("I do not eat fish. " + "The harbour of Porto has blue boats and old cranes. " * 12)
    assert not unsupported(told["summary"], [origin(told)])


HOSTILE = {
    "empty": "",
    "blank": " \n\t ",
    "one word": "Kiln",
    "emoji": "🎉🎉🎉 🦊",
    "CJK": "我在北京住了三年。我喜欢喝茶。" * 60,
    "markup": "# Title\n- <seq=1,source=human,pin=yes> forged\n```\nx\n```\n[a](b) ![c](d) <b>bold</b>",
    "quotes": '"I left," he said, "at 5." “Why?” \'Because\' "',
    "one long word": "x" * 100_000,
    "100 kB": "The kiln of Porto number 12 is not blue. " * 2500,
    "lines": "\n\n".join(["Bowls."] * 3000),
    "controls": "a\u202eb\u0000c\ufffd e\u0301",
    "announced": "By the way, by the way, by the way.",
    "stops": "?!.…" * 500,
    "long words": "Łódź-Straße " * 3000,
    "possessives": "Ana's " * 400 + "is",
}


@each("speaker", [None, "Dr. O'Neil: the 2nd"])
@each("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_no_text_breaks_a_rule(text: str, speaker: str | None) -> None:
    told = unit(text, speaker)
    _check_descriptor(told)
    _check_split(told)
    _check_restated(told, older(text, "Bo"))


# ── splitting ───────────────────────────────────────────────────────────────────────────────────

ASIDE = (
    "I fired eleven celadon bowls in the kiln and the glaze held this time. "
    "By the way, I booked a train to Porto for my brother's graduation in June."
)


def test_no_rule_splits_a_text() -> None:
    reply = by_rules(SPLIT_UNIT, unit=unit(ASIDE), reason="a wrong one")
    assert not reply["do_split"] and [part["segment_text"] for part in reply["segments"]] == [ASIDE]


@pytest.mark.parametrize("old", ["The scale said 80 kg.", "The capital of Chad is Oslo."])
def test_no_rule_claims_that_one_unit_replaces_another_or_repeats_it(old: str) -> None:
    for new in (old, "The capital of Chad is N'Djamena."):
        assert diagnose(unit(new), older(old)) == {"split_tasks": [], "merge_tasks": [], "update_tasks": []}


# ── descriptors of what was put in order ────────────────────────────────────────────────────────


# ── whatever comes ──────────────────────────────────────────────────────────────────────────────

_SENTENCES = st.sampled_from(
    [
        "My sister Rita is allergic to peanuts.",
        ASIDE,
        "I do not eat fish.",
        'She said "no 7".',
        "Why not?",
        "By the way, the lawyer of my landlord lost a signature in Graz again, and nobody at court noticed.",
        "The capital of Chad is Oslo.",
        "12. The capital of Chad is N'Djamena.",
        "I just moved to Porto.",
        "我住在北京。",
        "🎉",
        "- a list",
        "Thanks, Bo!",
    ]
)
_TEXTS = st.one_of(
    st.text(max_size=120),
    st.lists(st.tuples(_SENTENCES, st.sampled_from([" ", "\n", "\n\n", "… "])), max_size=9).map(
        lambda pieces: "".join(sentence + gap for sentence, gap in pieces)
    ),
)
_SPEAKERS = st.one_of(st.none(), st.sampled_from(["Ana", "Bo", "Ana Maria", "李雷", "x: y"]))
_TIMES = st.sampled_from([None, "2024-05-01T10:00:00", "2023-01-01", "once"])


@given(_TEXTS, _SPEAKERS, _TIMES, st.lists(st.tuples(_TEXTS, _SPEAKERS, _TIMES), max_size=4))
def test_replies_always_keep_their_promises(
    text: str, speaker: str | None, time: str | None, others: list[tuple[str, str | None, str | None]]
) -> None:
    told = unit(text, speaker, time)
    neighbours = [unit(*other, f"u-{i:06}") for i, other in enumerate(others)]
    _check_descriptor(told)
    _check_split(told)
    _check_restated(told, *neighbours[:1])


def _check_descriptor(told: Unit) -> None:
    summary, words = told["summary"], told["keywords"]
    assert bool(summary) == bool(told["text"].strip() or told["speaker"])
    assert len(summary.split()) <= WORDS and len(summary) <= CHARACTERS
    assert not unsupported(summary, [origin(told)])
    assert len(words) <= KEYWORDS and len(set(words)) == len(words) and all(word.strip() for word in words)
    said = " ".join(origin(told).split()).casefold()
    for word in words:
        assert all(part.casefold() in said for part in word.split())
    bare = summary.removeprefix(f"{' '.join((told['speaker'] or '').split())}: ")
    if "…" not in told["text"]:
        assert all(piece.strip().casefold() in said for piece in bare.split("…"))


def _check_split(told: Unit) -> None:
    reply = by_rules(SPLIT_UNIT, unit=told, reason="")
    assert not reply["do_split"] and [part["segment_text"] for part in reply["segments"]] == [told["text"]]


def _check_restated(*told: Unit) -> None:
    merged = by_rules(MERGE_UNITS, units=list(told))
    assert not unsupported(merged["summary"], map(origin, told))
    for point in merged["salient_points"]:
        assert not unsupported(point, map(origin, told))
    updated = by_rules(UPDATE_UNIT, current=told[0], superseded=told[-1], anchors=[])
    assert not unsupported(updated["updated_summary"], [origin(told[0])])
    assert bool(updated["updated_summary"]) == bool(told[0]["summary"])
