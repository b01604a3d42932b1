"""What somebody finds who imports three years of ChatGPT and asks ten questions, without a model."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cli_runner import Shell
from exports import chatgpt_node

CONVERSATIONS = json.loads((Path(__file__).parents[1] / "labels/chatgpt.json").read_text())
ASKED = [
    ("What is my sourdough starter called?", "Clint"),
    ("Which hotel did we book in Porto?", "Hotel Flores"),
    ("Where do I work now?", "I got the job"),
    ("Who is my physio?", "Albers"),
    ("When is my dad's birthday?", "December 19"),
    ("How much is my rent going up?", "1120"),
    ("What is the name of our cat?", "Mochi"),
    ("Where did we find a flat in Leipzig?", "Schleußig, 3 rooms"),
    ("What am I allergic to?", "peanut allergy"),
    ("How much do I still owe on the car?", "4,200"),
]


def exported(title: str, day: str, messages: list[str]) -> dict[str, Any]:
    """A conversation, a message a minute, the first by the user."""
    time = datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()
    names = [f"{title}-{number}" for number in range(len(messages))]
    mapping = {
        name: chatgpt_node(name, before, ("user", "assistant")[at % 2], text, time + 60 * at)
        for at, (name, before, text) in enumerate(zip(names, [None, *names], messages, strict=False))
    }
    about = {"title": title, "conversation_id": title, "create_time": time, "current_node": names[-1]}
    return {**about, "mapping": mapping}


@pytest.mark.parametrize(("command", "least"), [("ask", 8), ("retrieve", 7), ("search", 8)])
def test_the_first_line_is_mostly_the_right_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, least: int
) -> None:
    """Of ten questions to an import of ChatGPT, the first line that is shown answers most."""
    shell = Shell(tmp_path, monkeypatch)
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([exported(**one) for one in CONVERSATIONS]))
    shell("init")
    assert shell("import", str(path)).code == 0
    assert shell("consolidate").code == 0
    right = []
    for question, words in ASKED:
        lines = shell(command, question).out.splitlines()
        first = lines[0 if command == "retrieve" else 1]  # ask says that it quotes, search names the topic
        right.append(bool(re.search(words, first)))
    assert sum(right) >= least, [asked for asked, found in zip(ASKED, right, strict=True) if not found]
