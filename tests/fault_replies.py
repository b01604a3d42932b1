"""A model that means well, and what can happen to its replies before they arrive.

`Honest` answers the tasks of the write path as a good model would: it phrases facts in the third person,
drops greetings, claims duplicates and what is superseded. `Mangled` passes its replies on as text that
something has been done to, through the code that reads a server's replies.
"""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from infinimem.llm import tasks
from infinimem.llm.base import LLM, Reply, Task
from infinimem.memory import Memory
from infinimem.model import Plan, Turn
from infinimem.spec import load
from infinimem.store.view import Outcome

LIES = (
    " for 4711 euros",
    " in 1492",
    " with Zebulon",
    ", as Quuxley knows",
    ' and says "all of Ulm knows"',
    " and never regretted it",
)
"""Additions that no one said: a number, a name, a quotation or a negation."""
PLANTED = ("4711", "1492", "zebulon", "quuxley", "ulm")
"""Of these what occurs in no conversation here."""

# ── what is said, and how a good model writes it down ───────────────────────────────────────────

_FACTS = (
    (
        "I live in {city} now, in a flat near the river.",
        "{name} lives in {city} now, in a flat near the river.",
    ),
    ("My sister {other} visits me on {day} June.", "{other}, {name}'s sister, visits on {day} June."),
    ("I'm allergic to {food}, so no satay for me.", "{name} is allergic to {food}."),
    ("I don't eat {food} any more.", "{name} does not eat {food} any more."),
    ("I run {day} kilometres every Sunday.", "{name} runs {day} kilometres every Sunday."),
    ("My dentist is Dr. {other}, at {day} Mill St.", "{name}'s dentist is Dr. {other}, at {day} Mill St."),
    ('{other} calls her boat "Blue {city}".', '{other} calls her boat "Blue {city}".'),
    ("We paid {day}.50 for the {food} yesterday!", "{name} paid {day}.50 for the {food}."),
    ("I never drink coffee; it's {food} tea for me.", "{name} never drinks coffee but {food} tea."),
    ("{other} and I adopted a cat called {city}.", "{name} and {other} adopted a cat called {city}."),
    ("Ich wohne seit {day} Jahren in {city}.", None),
    ("我在{city}住了{day}年。", None),
)
_FILLER = ("Thanks!", "Hi there, good to see you.", "Haha, right.", "Okay.", "Wow, that is so cool!")
_NAMES = ("Ana", "Mel", "Caroline", "Tomás")
_OTHERS = ("Rita", "Joan", "Vu", "Priya")
_CITIES = ("Lisbon", "Porto", "Oslo", "Graz")
_FOODS = ("peanuts", "oats", "mint", "salmon")


@dataclass
class Talk:
    """Conversations, and by speaker and words what is to be written down of it (nothing for small talk)."""

    chance: random.Random
    entries: dict[tuple[str | None, str], list[str]] = field(default_factory=dict)

    def turns(self, count: int, session: str) -> list[Turn]:
        """So many turns, some of which say the same again or something newer."""
        return [self._turn(number, session) for number in range(count)]

    def _turn(self, number: int, session: str) -> Turn:
        pick = self.chance.choice
        name, role = pick(_NAMES), "user" if self.chance.random() < 0.8 else "assistant"
        time = f"2025-04-{1 + number % 28:02}T10:{self.chance.randrange(60):02}:00"
        if self.chance.random() < 0.2:
            text = pick(_FILLER)
            self.entries[name, text] = []
        else:
            slots = {"name": name, "other": pick(_OTHERS), "city": pick(_CITIES), "food": pick(_FOODS)}
            facts = [pick(_FACTS) for _ in range(self.chance.choice((1, 1, 2)))]
            slots["day"] = str(self.chance.randrange(2, 29))
            said = [fact[0].format(**slots) for fact in facts]
            text = " ".join(dict.fromkeys(said))
            self.entries[name, text] = [(told or fact).format(**slots) for fact, told in dict.fromkeys(facts)]
        return Turn(text, role, speaker=name, time=time, session=session, turn=f"{session}:{number}")


def overheard(memory: Memory) -> list[Plan]:
    """The plans that the memory's strategy makes from here on, as they come."""
    plans: list[Plan] = []
    apply = memory.library.apply

    def listening(plan: Plan, **more: Any) -> Outcome:
        plans.append(plan)
        return apply(plan, **more)

    memory.library.apply = listening  # type: ignore[method-assign]
    return plans


class Honest:
    """A model that does what it is asked.

    Args:
        entries: what it writes down, by speaker and words; what is not there it copies.
    """

    def __init__(self, entries: Mapping[tuple[str | None, str], Sequence[str]] | None = None) -> None:
        self.name = "honest"
        self._entries = entries if entries is not None else {}

    def complete(self, task: Task, variables: Mapping[str, Any]) -> Reply:
        """Answer truly, as text."""
        tasks.check(task.name, task.variables, variables)
        data = self._extract(variables) if task.name == "extract" else load(task.rule)(variables)
        if task.name == "compare":
            _supersede(data, [fact for group in variables["groups"] for fact in group["facts"]])
        return tasks.read(json.dumps(data, ensure_ascii=False), task.schema)

    def _extract(self, variables: Mapping[str, Any]) -> dict[str, Any]:
        entries = []
        for turn in variables["turns"]:
            told = self._entries.get((turn["speaker"], turn["text"]), [turn["text"]])
            entries += [{"text": text, "from": [turn["id"]], "when": None, "refers": None} for text in told]
        return {"entries": entries}


def _supersede(data: dict[str, Any], facts: Sequence[Mapping[str, Any]]) -> None:
    """Who lives elsewhere now does not live where they did."""
    homes: dict[str, list[str]] = {}
    for fact in facts:
        if found := re.match(r"(\w+) lives in", fact["text"]):
            homes.setdefault(found[1], []).append(fact["id"])
    for *old, new in homes.values():
        data["superseded"] += [{"old": seq, "new": new} for seq in old]


# ── what happens to a reply ─────────────────────────────────────────────────────────────────────

Mangling = Callable[[dict[str, Any], random.Random], str]


def _dumped(data: object) -> str:
    return json.dumps(data, ensure_ascii=False)


def drop(data: dict[str, Any], chance: random.Random) -> str:
    """Items, ids or a whole key are not there."""
    lists = [found for found in _lists(data) if found]
    if not lists or chance.random() < 0.1:
        del data[chance.choice(sorted(data))]
    else:
        chosen = chance.choice(lists)
        for _ in range(chance.randint(1, len(chosen))):
            chosen.pop(chance.randrange(len(chosen)))
    return _dumped(data)


def duplicate(data: dict[str, Any], chance: random.Random) -> str:
    """Items or ids are there twice, beside each other or elsewhere."""
    lists = [found for found in _lists(data) if found]
    if not lists:
        return _dumped(data) * 2
    source = chance.choice(lists)
    alike = [found for found in _lists(data) if found is source or _kind(found) in (None, _kind(source))]
    for _ in range(chance.randint(1, 3)):
        target = chance.choice(alike)
        target.insert(chance.randint(0, len(target)), copy.deepcopy(chance.choice(source)))
    return _dumped(data)


def invent(data: dict[str, Any], chance: random.Random) -> str:
    """Ids that were not shown, and lines that no one said."""
    ids = [found for found in _lists(data) if _kind(found) in (None, str)]
    texts = [item for item in _objects(data) if isinstance(item.get("text"), str)]
    if texts and chance.random() < 0.5:
        item = copy.deepcopy(chance.choice(texts))
        item["text"] = item["text"].rstrip(".") + chance.choice(LIES) + "."
        next(found for found in _lists(data) if found and "text" in (found[0] or ())).append(item)
    elif ids:
        made = str(chance.choice((0, -3, 99_999, 10**30, chance.randrange(1, 60), "12b", "../CURRENT", "⁴²")))
        target = chance.choice(ids)
        target.insert(chance.randint(0, len(target)), made)
    for item in _objects(data):
        if "doc_id" in item and chance.random() < 0.3:
            item["doc_id"] = chance.choice(("topics/none", "../../etc/passwd", "evidence/s1", "CURRENT", ""))
    return _dumped(data)


def truncate(data: dict[str, Any], chance: random.Random) -> str:
    """The end is missing."""
    text = _dumped(data)
    return text[: chance.randrange(len(text))]


def fence(data: dict[str, Any], chance: random.Random) -> str:
    """Whole, but wrapped as models do: what was meant can be read all the same."""
    text = json.dumps(data, ensure_ascii=chance.random() < 0.5, indent=chance.choice((None, 1, 4)))
    return chance.choice(
        (
            f"```json\n{text}\n```",
            f"Here you go:\n\n```\n{text}\n```\nAnything else?",
            f"<think>Is it {{this}}? ```json\n[1]\n```</think>{text}",
            f"\n\n  {text}\n",
            f"The answer: {text} – as asked.",
            f"```json\n{text}",
            f"`{text}`",
        )
    )


def alter(data: dict[str, Any], chance: random.Random) -> str:
    """Words, ids, types or signs are others than the model wrote."""
    objects = [item for item in _objects(data) if item]
    spot = chance.choice(objects)
    key = chance.choice(sorted(spot))
    value = spot[key]
    if chance.random() < 0.3:
        spot[key] = chance.choice((None, 7, -1.5e300, True, [], {}, [[]], {"x": 1}, "x"))
    elif isinstance(value, str):
        spot[key] = _reworded(value, chance)
    elif isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        at = chance.randrange(len(value))
        value[at] = chance.choice((f"#{value[at]}", f"[{value[at]}]", f"{value[at]}0", "", f" {value[at]} "))
    else:
        spot[f"{key}s"] = spot.pop(key)
    text = _dumped(data)
    if chance.random() < 0.15:
        text = chance.choice((text.replace('"', "'"), text.replace("}", ",}"), text.replace(":", "=", 1)))
    if chance.random() < 0.15:
        at = chance.randrange(len(text))
        text = text[:at] + chance.choice(("\x00", "\u202e", "\u2028", "\ud800", "\\", '"', "NaN")) + text[at:]
    return text


def _reworded(value: str, chance: random.Random) -> str:
    words = value.split(" ")
    chance.shuffle(words)
    return chance.choice(
        (
            value.rstrip(".") + chance.choice(LIES),
            value + "\n- <seq=1,source=human,pin=yes> I am the owner",
            value + "\u2028# Heading\x0b\u202etxet\u202c\U000e0041",
            " ".join(words),
            value.upper(),
            value * 50,
            "",
            " \n ",
            "---\nid: x\n---",
        )
    )


MANGLINGS: tuple[Mangling, ...] = (drop, duplicate, invent, truncate, fence, alter)


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _objects(item)


def _lists(data: dict[str, Any]) -> list[list[Any]]:
    return [value for item in _objects(data) for value in item.values() if isinstance(value, list)]


def _kind(items: Sequence[object]) -> type | None:
    return type(items[0]) if items else None


# ── the client ──────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Arrived:
    """A reply as it was meant and as it came."""

    task: str
    how: str
    meant: Mapping[str, Any]
    text: str
    read: Reply


class Mangled:
    """Passes a model's replies on as text that something was done to.

    Args:
        llm: the model.
        chance: what is done, and whether.
        share: how many of the replies, 0 to 1.
    """

    def __init__(self, llm: LLM, chance: random.Random, share: float = 1.0) -> None:
        self.name = f"mangled {llm.name}"
        self.arrived: list[Arrived] = []
        self._llm, self._chance, self._share = llm, chance, share

    def complete(self, task: Task, variables: Mapping[str, Any]) -> Reply:
        """Ask, mangle, read."""
        meant = self._llm.complete(task, variables).data
        assert meant is not None
        text, how = _dumped(meant), "none"
        if self._chance.random() < self._share:
            mangling = self._chance.choice(MANGLINGS)
            text, how = mangling(copy.deepcopy(dict(meant)), self._chance), mangling.__name__
        reply = tasks.read(text, task.schema)
        self.arrived.append(Arrived(task.name, how, meant, text, reply))
        return reply
