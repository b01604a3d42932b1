"""replay: a consolidation done again from its audit, byte for byte."""

from __future__ import annotations

import re

import pytest
from cli_runner import Shell
from unit_updates import updates as updates

FACTS = (
    "The capital of Chad is Abeche.",
    "The author of Emma is Jane Austen.",
    "The capital of Chad is N'Djamena.",
    "The author of Emma is Jane Austen.",
)


@pytest.fixture
def units(shell: Shell, updates: None) -> Shell:
    assert shell("init", "--strategy", "allmem").code == 0
    for fact in FACTS:
        assert shell("add", fact, "--session", "s1").code == 0
    assert shell("consolidate").code == 0
    assert len(list(shell.library.glob("allmem/archive/*.md"))) == 2
    return shell


def test_a_consolidation_comes_out_as_it_was(units: Shell) -> None:
    before = units.tree()
    told = units("replay", "--json")
    assert told.code == 0 and told.json["other"] == []
    assert {"allmem/archive/u-000001", "allmem/units/u-000003", "allmem/buffer"} <= {*told.json["same"]}
    assert units.tree() == before


def test_also_when_more_came_after_it(units: Shell) -> None:
    receipt = units("replay", "--json").json["receipt"]
    assert units("add", "The capital of Chad is Moundou.", "--session", "s2").code == 0
    assert units("consolidate").code == 0
    number = int(re.findall(r"\d+", receipt)[0])
    for name in (receipt, str(number)):
        assert units("replay", name, "--json").json["other"] == []


def test_an_audit_that_was_changed_is_told(units: Shell) -> None:
    (audit,) = units.library.glob("allmem/audit/*.md")
    said = audit.read_text()
    audit.write_text(said.replace('"summary": "The capital', '"summary": "A capital'))
    assert audit.read_text() != said
    told = units("replay", "--json")
    assert told.code == 1
    assert {"allmem/audit/run-0001", "allmem/units/u-000003"} <= {*told.json["other"]}


def test_what_cannot_be_replayed_is_said(units: Shell) -> None:
    units("replay", "99").failed(2, "there is no receipt '99'")
    units("replay", "1").failed(2, "has no audit")
    (audit,) = units.library.glob("allmem/audit/*.md")
    audit.write_text(re.sub("embedder: .*", "embedder: another", audit.read_text()))
    units("replay").failed(2, "was made with the embedder 'another'")
    assert units("rebuild", "--strategy", "infini").code == 0
    units("replay", "--strategy", "infini").failed(2, "is by allmem; --strategy allmem replays it")
    assert units("consolidate", "--strategy", "infini").code == 0
    units("replay", "--strategy", "infini").failed(2, "infini keeps no audit")


def test_nothing_to_replay(shell: Shell) -> None:
    assert shell("init", "--strategy", "allmem").code == 0
    shell("replay").failed(2, "nothing was consolidated yet")
