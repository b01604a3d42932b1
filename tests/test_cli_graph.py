"""infinimem graph: which unit is meant, what is listed, and what is said where there is none."""

from __future__ import annotations

import pytest
from cli_runner import Shell

TURNS = (
    "I moved to Lisbon and rent a flat near the river.",
    "My sister Ana is allergic to peanuts.",
    "The pottery class is on Mondays.",
)


@pytest.fixture
def library(shell: Shell) -> Shell:
    """Three units; the later lead to the earlier by temporal links."""
    assert shell("--strategy", "allmem", "init").code == 0
    for text in TURNS:
        assert shell("-q", "add", text, "--session", "s1", "--time", "2025-03-03").code == 0
    return shell


def root(library: Shell, *args: str) -> str:
    return str(library("graph", *args, "--json").json["root"])


def test_a_unit_is_named_by_id_document_turn_or_words(library: Shell) -> None:
    for name in ("u-000002", "U-000002", "allmem/units/u-000002", "allmem/units/u-000002.md", "2", "peanuts"):
        assert root(library, name) == "u-000002"
    assert (root(library), root(library, "U-000001")) == ("u-000003", "u-000001")


def test_hops_bound_it(library: Shell) -> None:
    for hops, count in (("0", 1), ("1", 2), ("2", 3)):
        assert len(library("graph", "3", "--hops", hops, "--json").json["nodes"]) == count
    assert len(library("graph", "3", "--json").json["nodes"]) == 3


def test_units_and_links_are_listed(library: Shell) -> None:
    ran = library("graph", "1")
    units, links = ran.out.splitlines()[:3], ran.out.splitlines()[3:]
    assert [line.split("\t")[:2] for line in units] == [
        ["u-000001", "0"],
        ["u-000002", "1"],
        ["u-000003", "2"],
    ]
    assert "u-000002\ttemporal\tu-000001\t" in links
    assert ran.err == "3 units, 2 links around u-000001\n"
    assert library("-q", "graph", "1").err == ""


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("u-000009", "no unit 'u-000009'"),
        ("allmem/units/nothing", "no unit 'allmem/units/nothing'"),
        ("allmem/../../etc/passwd", "no unit"),
        ("41", "no unit holds turn 41"),
        ("0", "no unit holds turn 0"),
        ("", "no unit is about ''"),
        ("\x1b[31m ###", "no unit is about"),
    ],
)
def test_what_is_no_unit_is_told_in_one_line(library: Shell, name: str, words: str) -> None:
    library("graph", name).failed(1, words)


def test_status_counts_units_and_links(library: Shell) -> None:
    found = library("status", "--json").json
    assert (found["units"], found["visible"], found["visible_ratio"]) == (3, 3, 1.0)
    assert found["links"]["temporal"] == 2


def test_where_nothing_made_a_record_neither_import_nor_a_buffer_is_named(shell: Shell) -> None:
    assert shell("--strategy", "recmem", "init").code == 0
    assert shell("-q", "add", TURNS[0]).code == 0
    assert shell("graph").err == "error: there are no episodes yet: nothing that was said made one\n"
    assert shell("consolidate").err == "nothing waits, there was nothing to do\n"
