"""Replies dropped from, doubled, invented, cut, wrapped or altered: refused or mended, nothing lost.
And what an honest model writes down is taken: fewer than two in a hundred of its sentences are refused."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from fault_library import lines, problems
from fault_replies import PLANTED, Honest, Mangled, Talk, overheard

from infinimem import Turn, open_memory
from infinimem.memory import Memory
from infinimem.model import SOURCES, Entry, Plan, RejectedReply
from infinimem.store.view import View
from infinimem.strategies.infini import documents
from infinimem.strategies.infini.topics import unsupported, verbatim
from infinimem.strategies.records.asking import IN_VAIN

SETTINGS = {
    "feed": ['"turn"', '"chunk"'],
    "markdown_length": [200, 500, 5000],
    "plan_split_threshold": [200, 5000],
    "current_threshold": [300, 5000],
    "merge_max_tokens": [100, 300],
    "merge_frequency": [1, 2],
    "merge_trigger_min_count": [2, 50],
}
BATCHES = 3


@dataclass
class Run:
    """A library through which a conversation goes, and what is heard on the way."""

    memory: Memory
    llm: Mangled
    plans: list[Plan]
    told: dict[int, str] = field(default_factory=dict)

    @property
    def rejected(self) -> list[RejectedReply]:
        return [reply for plan in self.plans for reply in plan.rejected]

    def passed_over(self) -> set[int]:
        """Turns without an entry: in which the model, rightly or not, found nothing, or that stand for
        themselves."""
        return {seq for plan in self.plans for seq in (*plan.empty, *plan.refused)}


def start(root: Path, llm: Mangled, chance: random.Random) -> Run:
    shutil.rmtree(root, ignore_errors=True)
    open_memory(root, model="offline", create=True)
    values = "".join(f"{key} = {chance.choice(choices)}\n" for key, choices in SETTINGS.items())
    (root / "infinimem.toml").write_text(f"[infini]\n{values}")
    memory = open_memory(root, model=llm)
    return Run(memory, llm, overheard(memory))


def converse(run: Run, talk: Talk, root: Path) -> None:
    """A few sessions with consolidations; after each step everything must be in order."""
    for batch in range(BATCHES):
        turns = talk.turns(talk.chance.randint(2, 9), f"s{batch}")
        before = lines(run.memory.view)
        run.memory.observe(turns)
        check(run, root, before)
        before = lines(run.memory.view)
        run.memory.consolidate()
        check(run, root, before)
        assert run.memory.view.buffer.entries == ()


def check(run: Run, root: Path, before: list[tuple[int, str]]) -> None:
    """Nothing lost, nothing said twice, nothing that no one said."""
    view = run.memory.view
    assert not set(before) - set(lines(view)), "a line was lost or changed"
    uncited, unanswered = {place.seq for place in view.uncited()}, set(run.memory.unanswered())
    assert unanswered <= uncited, "a turn is asked for though something tells of it"
    waiting = uncited - unanswered
    if waiting:  # a model that failed so often in a row is asked no more until the next call
        assert all(plan.unanswered for plan in run.plans[-IN_VAIN:]), "a turn is told of nowhere"
        assert min(waiting) > max(unanswered) and waiting <= set(view.pending(run.llm.name))
    for scope in ("default", "archive", "evidence"):
        for place in view.entries(scope):  # type: ignore[arg-type]
            run.told.setdefault(place.seq, place.text)
    assert problems(root, run.told) == []
    for scope in ("default", "archive"):
        for place in view.entries(scope):  # type: ignore[arg-type]
            assert (wrong := invented(place.entry, view)) is None, f"{place.entry.line}: {wrong}"
    known = view.cited | run.passed_over() | unanswered | waiting
    assert {place.seq for place in view.entries("evidence")} <= known


def invented(entry: Entry, view: View) -> str | None:
    """What a line holds that its evidence does not. Its own few rules, not those of the law."""
    said = evidence_of(entry, view)
    if not said:
        return "it has no origin"
    if entry.source != min((item.source for item in said), key=SOURCES.index):
        return f"its source is {entry.source}"
    texts = [" ".join(item.text.split()) for item in said]
    if entry.fields.get("by") != "model":
        return None if any(entry.text in text for text in texts) else "it is not what was said"
    known = " ".join([*texts, *(item.fields.get("speaker", "") for item in said)]).casefold()
    for number in re.findall(r"\d+", entry.text):
        if number not in re.findall(r"\d+", known):
            return f"the number {number}"
    for word in PLANTED:
        if word in entry.text.casefold():
            return f"the word {word}"
    denied = re.compile(r"\b(?:not|no|never|nobody|nothing|none|without)\b|n't\b|n’t\b")
    if denied.search(entry.text.casefold()) and not denied.search(known):
        return "a negation"
    return None


def evidence_of(entry: Entry, view: View) -> list[Entry]:
    """The turns that a line goes back to; none if the way breaks off."""
    found: list[Entry] = []
    for seq in entry.origin:
        place = view.entry(seq)
        if place is None:
            return []
        if place.doc_id.startswith("evidence/"):
            found.append(place.entry)
        else:
            found += evidence_of(place.entry, view) or [entry]
    return found


@pytest.mark.parametrize("size", [80, pytest.param(10_000, marks=pytest.mark.soak)])
def test_mangled_replies_lose_and_invent_nothing(
    tmp_path: Path,
    size: int,
    record_property: Callable[[str, object], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(documents, "CROWDED", 3)  # of what is said here nothing gets crowded
    heard: Counter[tuple[str, str, str]] = Counter()
    seed = 0
    while sum(heard.values()) < size:
        chance = random.Random(seed)
        talk = Talk(chance)
        llm = Mangled(Honest(talk.entries), chance, share=chance.choice((0.5, 1.0)))
        run = start(tmp_path / "m", llm, chance)
        try:
            converse(run, talk, tmp_path / "m")
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        refused = {(reply.task, reply.text) for reply in run.rejected}
        for reply in llm.arrived:
            kept = (reply.task, reply.text) in refused
            same = reply.read.data == reply.meant
            assert kept or reply.read.data is not None, (seed, reply.task, reply.how, reply.text)
            if reply.how == "fence" and reply.read.failure != "EMPTY":
                assert same, (seed, reply.text)
            if reply.how != "none":
                heard[reply.task, reply.how, "refused" if kept else "as meant" if same else "other"] += 1
        seed += 1
    for key, count in sorted(heard.items()):
        record_property(" ".join(key), count)
    assert {how for _, how, _ in heard} == {"drop", "duplicate", "invent", "truncate", "fence", "alter"}
    assert {task for task, _, _ in heard} == {
        "extract", "rewrite", "plan", "compare", "layout", "merge", "summarize"
    }  # fmt: skip


@pytest.mark.parametrize("size", [40, pytest.param(10_000, marks=pytest.mark.soak)])
def test_honest_replies_are_taken(
    tmp_path: Path, size: int, record_property: Callable[[str, object], None]
) -> None:
    heard = refused = seed = 0
    while heard < size:
        chance = random.Random(f"honest {seed}")
        talk = Talk(chance)
        llm = Mangled(Honest(talk.entries), chance, share=0.0)
        run = start(tmp_path / "m", llm, chance)
        converse(run, talk, tmp_path / "m")
        heard += len(llm.arrived)
        refused += len(run.rejected)
        seed += 1
        assert refused < 0.02 * max(heard, 100), (seed, run.rejected)
    record_property("replies", heard)
    record_property("refused", refused)


PHRASED = (
    ("My name is Priya and I'm a nurse at St. Mary's in Leeds.", "Priya is a nurse at St. Mary's in Leeds."),
    ("don't ever use em dashes in emails you write for me", "The user wants no em dashes in emails."),
    ("I can't stand cilantro.", "The user dislikes cilantro."),
    ("We moved the launch from March 3 to March 10.", "The launch was moved from March 3 to March 10."),
    ("please call me Sam, not Samuel", "The user wants to be called Sam, not Samuel."),
    ("My mum's birthday is on the 4th of July.", "The user's mum has her birthday on the 4th of July."),
    ("I bought a 2nd-hand Canon EOS 80D for €450.", "The user bought a second-hand Canon EOS 80D for €450."),
    ("the api key rotates every 90 days, on mondays", "The API key rotates every 90 days, on Mondays."),
    ("our db is postgres 15.3 on aws rds", "The user's database is Postgres 15.3 on AWS RDS."),
    ("use tabs not spaces pls", "The user prefers tabs over spaces."),
    ("i hate flying, trains only", "The user hates flying and travels by train only."),
    ("wife's vegan, i'm not", "The user's wife is vegan; the user is not."),
    ("My landlord, Mr. O'Neill, wants £1,200.", "The user's landlord, Mr. O'Neill, wants £1,200."),
    ('I think "Dune" is the best book so far', 'The user considers "Dune" the best book so far.'),
    ("I'm reading Moby Dick by Herman Melville.", 'The user is reading "Moby Dick" by Herman Melville.'),
    (
        "Me and Dave started a podcast called Rust & Dust.",
        "The user and Dave started a podcast, Rust & Dust.",
    ),
    ("It takes me 4h 30min to drive to Graz", "Driving to Graz takes the user 4h 30min."),
    ("We're expecting twins in November!!", "The user is expecting twins in November."),
    ("My daughter Emma (7) plays the violin.", "The user's daughter Emma, 7, plays the violin."),
    ("I take 20mg of atorvastatin each night.", "The user takes 20 mg of atorvastatin each night."),
    ("I was born in '84 in Kraków.", "The user was born in '84 in Kraków."),
    ("Ich arbeite bei Siemens in München.", "The user works at Siemens in München."),
    ("我住在北京,在一家小公司工作。", "用户住在北京,在一家小公司工作。"),
    ("J'habite à Lyon depuis 3 ans.", "The user has lived in Lyon for 3 years."),
    ("The Marriott on 5th Avenue; it has a pool.", "The Marriott on 5th Avenue has a pool."),
    ('{"balance": 123.45, "currency": "EUR"}', "The balance is 123.45 EUR."),
    ("exit code 1: test_a.py::test_b FAILED", "test_a.py::test_b failed with exit code 1."),
    ("I'd rather not talk about my divorce.", "The user would rather not talk about their divorce."),
    ("I have no siblings.", "The user has no siblings."),
    ("I quit smoking three years ago.", "The user quit smoking three years ago."),
    ("Nothing beats a cold IPA after work.", "The user likes a cold IPA after work."),
    ("My flight is LH 1234 at 6:05am from BER.", "The user's flight is LH 1234 from BER at 6:05am."),
    ("Reminder: Dr. Patel is on 12/05 at 3pm", "The appointment with Dr. Patel is on 12/05 at 3pm."),
    ("My new number is +49 170 555-0199.", "The user's new phone number is +49 170 555-0199."),
    ("The wifi password is hunter2!", "The user's wifi password is hunter2!"),
    ("Without my glasses I can't see a thing.", "The user cannot see without glasses."),
    ("I'm not a morning person, so after 10 please.", "The user is not a morning person; after 10 suits."),
    ("He proposed in Paris, on the Pont Neuf!", "He proposed in Paris, on the Pont Neuf."),
    ("The kids' school starts at eight.", "School starts at eight for the user's kids."),
    ("Sold the Volvo; we cycle now.", "The user sold the Volvo and cycles now."),
)
"""Said, and written down by hand as a careful person would."""

_THIRD_PERSON = (
    (r"\bI['’]m\b|\bI am\b", "{name} is"),
    (r"\bI['’]ve\b|\bI have\b", "{name} has"),
    (r"\bI['’]d\b", "{name} would"),
    (r"\bI['’]ll\b", "{name} will"),
    (r"\bI don['’]t\b", "{name} does not"),
    (r"\bI\b|\b[Mm]e\b", "{name}"),
    (r"\b[Mm]y\b", "{name}'s"),
    (r"^(?:And|But|So|Also|Yeah|Well|Oh|Wow|Hey \w+|Thanks,? \w+)[,!]? ", ""),
)


def test_sentences_written_by_hand_are_taken() -> None:
    refused = [
        (phrased, missing)
        for said, phrased in PHRASED
        if not verbatim(phrased, said) and (missing := unsupported(phrased, [said]))
    ]
    assert refused == []


def third_person(sentence: str, name: str) -> str:
    """What someone says of themselves, said of them."""
    for pattern, wording in _THIRD_PERSON:
        sentence = re.sub(pattern, wording.format(name=name), sentence)
    return sentence[:1].upper() + sentence[1:]


def talk(folder: Path) -> Iterator[tuple[Turn, list[str]]]:
    """Turns of real conversations with what their speakers say of themselves, in the third person."""
    for number, sample in enumerate(json.loads((folder / "locomo_dev.json").read_text())):
        for session, turns in sample["conversation"].items():
            for turn in turns if isinstance(turns, list) else ():
                own = [
                    s for s in re.split(r"(?<=[.!?])\s+", turn["text"]) if re.search(r"\b(?:I|[Mm]y|me)\b", s)
                ]
                said = Turn(turn["text"], speaker=turn["speaker"], session=f"{number}-{session}")
                yield said, [third_person(sentence, turn["speaker"]) for sentence in own]


@pytest.mark.parametrize("size", [200, pytest.param(3000, marks=pytest.mark.soak)])
def test_sentences_of_real_talk_are_taken(
    tmp_path: Path, shared_data: Path, size: int, record_property: Callable[[str, object], None]
) -> None:
    turns = [(turn, told) for turn, told in talk(shared_data) if told]
    llm = Honest({(turn.speaker, turn.text): told for turn, told in turns})
    memory = open_memory(tmp_path / "m", model=llm, create=True)
    plans = overheard(memory)
    phrased = 0
    for start in range(0, len(turns), 100):
        part = turns[start : start + 100]
        if phrased < size:
            memory.observe([turn for turn, _ in part])
            phrased += sum(len(told) for _, told in part)
    refused = [reason for plan in plans for reply in plan.rejected for reason in reply.reasons]
    record_property("sentences", phrased)
    record_property("refused", len(refused))
    assert phrased >= size
    assert len(refused) < 0.02 * phrased, refused
