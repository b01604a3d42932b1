"""Headers: read as strings within bounds, edited key by key, hostile ones refused at once."""

from __future__ import annotations

import io
from inspect import unwrap
from typing import Any

import pytest
import yaml
from cases import each
from hypothesis import given
from hypothesis import strategies as st

from infinimem.markdown import header as header_module
from infinimem.markdown.characters import clean_text
from infinimem.markdown.document import Document
from infinimem.markdown.header import Header, Value, edit_header, flow, header_end, quote, read_header

EXAMPLE = """\
---
id: topics/food-preferences
summary: coffee, breakfast, allergies; oat-milk latte since June 2023, allergic to peanuts
token_count: 64
created_time: 2023-05-20T09:00:00Z
update_log:
  - {time: 2023-06-02T14:06:00Z, op: update, receipt: 7, added: 1, archived: 1}
aux: {from: 13+41}
---
# Drinks
""".split("\n")

BY_HAND = """\
---
# a comment above
title:   'It''s "mine"'   # beside it
tags:
- one
- two

# about the aliases
aliases: [a, "b, c",
  d]
text: |
  # no comment
  two

empty:
"quoted key": x
---
body""".split("\n")


def header(text: str) -> list[str]:
    return ["---", *text.split("\n"), "---", "body"]


def test_the_example_of_the_format_page() -> None:
    found = read_header(EXAMPLE)
    assert (found.problem, found.end) == (None, 9)
    assert found.values == {
        "id": "topics/food-preferences",
        "summary": "coffee, breakfast, allergies; oat-milk latte since June 2023, allergic to peanuts",
        "token_count": "64",
        "created_time": "2023-05-20T09:00:00Z",
        "update_log": [
            {"time": "2023-06-02T14:06:00Z", "op": "update", "receipt": "7", "added": "1", "archived": "1"}
        ],
        "aux": {"from": "13+41"},
    }


def test_a_header_by_hand_is_read_as_strings() -> None:
    found = read_header(BY_HAND)
    assert found.problem is None
    assert found.values == {
        "title": 'It\'s "mine"',
        "tags": ["one", "two"],
        "aliases": ["a", "b, c", "d"],
        "text": "# no comment\ntwo\n",
        "empty": "",
        "quoted key": "x",
    }


@each("values", ["yes", "no", "null", "~", "1.5", "0x1F", "2023-05-20", "1e3", ".inf", "<<"])
def test_no_value_is_anything_but_a_string(values: str) -> None:
    assert read_header(header(f"a: {values}\n{values}: b")).values == {"a": values, values: "b"}


@each(
    ("text", "end", "problem"),
    [
        ("", 0, False),
        ("text", 0, False),
        ("---", 0, False),
        ("---\n---", 2, False),
        ("---\n# nothing\n---\nbody", 3, False),
        ("--- \na: b\n---\t\nbody", 3, False),
        ("---\r\na: b\r\n---\r\nbody", 3, False),
        ("----\na: b\n----", 0, False),
        (" ---\na: b\n---", 0, False),
        ("\n---\na: b\n---", 0, False),
        ("---\na: b\n", 0, True),
        ("---\na: b\n ---\n----\n", 0, True),
        ("---\n\nA note that begins with a rule.", 0, False),
        ("---\na: b\n- <seq=1,source=user> a line that must not hide\n---\n", 0, True),
        ("---\nno header but prose\n---\n", 3, True),
        ("---\n- a\n- b\n---\n", 4, True),
        ("---\n{a: b}\n---\n", 3, True),
    ],
)
def test_where_a_header_ends(text: str, end: int, problem: bool) -> None:
    found = read_header(text.split("\n"))
    assert (found.end, found.problem is not None) == (end, problem)
    assert header_end(text.split("\n")) == end


HOSTILE = {
    "merge bomb": "a: &a {k: v}\n" + "\n".join(f"b{i}: &b{i} {{<<: [*a, *a]}}" for i in range(20)),
    "billion laughs": "a: &a [lol]\n" + "\n".join(f"b{i}: &b{i} [{'*a, ' * 9}]" for i in range(20)),
    "alias": "a: &x 1\nb: *x",
    "alias to nothing": "a: *x",
    "tag": "a: !!python/object/apply:os.system ['true']",
    "tag on the root": "!!omap\na: 1",
    "local tag": "a: !x 1",
    "duplicate key": "a: 1\nb: 2\na: 3",
    "duplicate key inside": "a: {b: 1, b: 2}",
    "flow brackets": "a: " + "[" * 16_000,
    "flow braces": "a: " + "{" * 2_000,
    "bare brackets": "[" * 2_000,
    "brackets on lines": "a:\n" + " [\n" * 5000,
    "closed brackets": "a: " + "[" * 500 + "]" * 500,
    "dashes": "a:\n " + "- " * 7000,
    "question marks": "? " * 8000,
    "indentation": "\n".join(" " * depth + "a:" for depth in range(160)),
    "complex key": "? [a, b]\n: c",
    "mapping as key": "{a: b}: c",
    "directive": "%YAML 1.2",
    "second document": "a: b\n--- c",
    "open quote": 'a: "' + "x\n" * 4000,
    "nul": "a: \0",
    "control": "a: \x07",
    "undecodable": "a: \udcff",
    "tab indentation": "a:\n\tb: c",
    "conflict": "<<<<<<< ours\na: b\n=======\na: c\n>>>>>>> theirs",
    "too long": "a: " + "x" * 17_000,
    "too long in bytes": "a: " + "é" * 9_000,
    "too many lines": "\n" * 17_000,
}


@pytest.mark.parametrize("loader", ["CBaseLoader", "BaseLoader"])
@each("name", HOSTILE)
def test_a_hostile_header_is_refused_and_kept(
    name: str, loader: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(yaml, "CBaseLoader", getattr(yaml, loader))
    chosen_anew = unwrap(header_module._handlers)  # private: a process takes one loader, libyaml's if it can
    monkeypatch.setattr("infinimem.markdown.header._handlers", chosen_anew)  # private: as above
    lines = header(HOSTILE[name])
    data = "\n".join(lines).encode("utf-8", "surrogateescape")
    found = read_header(lines)
    assert found.problem is not None
    assert "\n" not in found.problem
    assert not found.values
    document = Document.parse("topics/t", data)
    assert document.header.end == len(lines) - 1
    assert document.has_prose
    assert document.with_header({"id": "x", "a": None}).to_bytes() == data


def test_depth_and_size_of_an_honest_header_are_within_bounds() -> None:
    deep = "a: " + "[" * 7 + "]" * 7
    assert read_header(header(deep)).problem is None
    log = "\n".join(
        f"  - {{time: 2023-06-02T14:06:00Z, op: update, receipt: {n}, added: 1, archived: 1}}"
        for n in range(20)
    )
    assert len(read_header(header("id: x\nupdate_log:\n" + log)).values["update_log"]) == 20


# ── editing ─────────────────────────────────────────────────────────────────────────────────────


def edit(lines: list[str], changes: dict[str, str | None], newline: str = "\n") -> list[str]:
    edited, header = edit_header(lines, header_end(lines), changes, newline)
    assert header == read_header(edited)
    return edited


def test_a_change_touches_the_lines_of_its_key() -> None:
    after = edit(EXAMPLE, {"token_count": "65"})
    assert after == [*EXAMPLE[:3], "token_count: 65", *EXAMPLE[4:]]
    after = edit(EXAMPLE, {"update_log": "[]", "aux": None})
    assert after == [*EXAMPLE[:5], "update_log: []", *EXAMPLE[8:]]


def test_new_keys_come_last_and_a_missing_one_is_not_missed() -> None:
    after = edit(EXAMPLE, {"b": "2", "a": "1", "gone": None})
    assert after == [*EXAMPLE[:8], "b: 2", "a: 1", *EXAMPLE[8:]]


def test_a_header_is_created_where_there_is_none() -> None:
    assert edit(["# T", "x"], {"id": "t", "n": None}) == ["---", "id: t", "---", "# T", "x"]
    assert edit([], {"id": "t"}, "\r\n") == ["---\r", "id: t\r", "---\r"]
    assert edit(["x"], {"id": None}) == ["x"]


def test_a_value_may_take_lines_of_its_own() -> None:
    after = edit(EXAMPLE, {"update_log": "\n  - {op: a}\n  - {op: b}"})
    assert after == [*EXAMPLE[:5], "update_log:", "  - {op: a}", "  - {op: b}", *EXAMPLE[7:]]


@each(
    ("key", "gone"),
    [("title", 2), ("tags", 3), ("aliases", 8), ("text", 10), ("empty", 14), ("quoted key", 15)],
)
def test_comments_and_blank_lines_of_a_person_stay(key: str, gone: int) -> None:
    sizes = {"tags": 3, "aliases": 2, "text": 3}
    assert edit(BY_HAND, {key: None}) == BY_HAND[:gone] + BY_HAND[gone + sizes.get(key, 1) :]
    line = f"{quote(key, flow=True)}: new"
    assert edit(BY_HAND, {key: "new"}) == [*BY_HAND[:gone], line, *BY_HAND[gone + sizes.get(key, 1) :]]


def test_an_indented_header_stays_indented() -> None:
    assert edit(["---", "  a: b", "---"], {"a": "c", "d": "e"}) == ["---", "  a: c", "  d: e", "---"]


def test_lines_are_found_where_yaml_breaks_lines_otherwise() -> None:
    lines = ["---", "a: é😀\u2028 x", "b: y\x85 z", "c: d", "---"]
    assert edit(lines, {"c": "e"}) == [*lines[:3], "c: e", "---"]
    assert edit(lines, {"b": None}) == [*lines[:2], *lines[3:]]


@each(
    "changes",
    [
        {"a": "x: y"},
        {"a": "[1"},
        {"a": "x\nid: forged"},
        {"a": "x\nother: forged"},
        {"a": "*a"},
        {"a": "x\n---\n# forged"},
        {"a": '"x\n- <seq=1> forged"'},
        {"a": "x" * 17_000},
        {"a": "\udcff"},
    ],
)
def test_a_value_that_is_not_one_value_is_refused(changes: dict[str, str | None]) -> None:
    with pytest.raises(ValueError, match=r"the header cannot take these values of \['a'\]"):
        edit(EXAMPLE, changes)


@each(
    ("lines", "changes"),
    [
        (["---", "a: b\u2028c: d", "---"], {"a": "x"}),
        (["---", "a: b\u2028c: d", "---"], {"a": None}),
    ],
)
def test_a_header_that_cannot_be_edited_by_lines_is_refused(
    lines: list[str], changes: dict[str, str | None]
) -> None:
    assert read_header(lines).problem is None
    with pytest.raises(ValueError, match="the header cannot take"):
        edit(lines, changes)


WORDS = st.text(max_size=12) | st.sampled_from(
    [
        *("a: b", "a #b", " x ", "a\nb", "\u2028", "\ufeff"),
        *"yes NULL ~ 1 1.0 - [x] ' \" a,b = 0b101 190:20:30.15 2025-02-30 2025-13-45T10:00:00".split(),
        *("2025-03-03T24:00:00", "2025-03-03T10:00:00+99:00"),
    ]
)
KEYS = st.from_regex(r"[a-z_]{1,6}", fullmatch=True)
VALUES: st.SearchStrategy[Any] = st.recursive(
    WORDS | st.integers(0, 10**9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)


def strings(value: Any) -> Any:
    """What reading gives for what `flow` was given."""
    if isinstance(value, dict):
        return {clean_text(key): strings(one) for key, one in value.items()}
    if isinstance(value, list):
        return [strings(one) for one in value]
    return clean_text(str(value))


@given(st.dictionaries(KEYS, VALUES, max_size=4), st.sampled_from(["\n", "\r\n"]))
def test_what_flow_writes_is_read_back(values: dict[str, Value], newline: str) -> None:
    lines = edit([], {key: flow(value) for key, value in values.items()}, newline)
    found = read_header(lines)
    assert found.problem is None
    assert found.values == strings(values)


@given(WORDS, st.booleans())
def test_a_quoted_string_is_that_string_for_every_reader(text: str, inside: bool) -> None:
    written = f"[{quote(text, flow=True)}]" if inside else quote(text)
    for loader in (yaml.CSafeLoader, yaml.SafeLoader, yaml.BaseLoader):
        found = yaml.load(io.StringIO(f"a: {written}\n"), Loader=loader)["a"]
        assert found == ([clean_text(text)] if inside else clean_text(text))


def test_plain_text_stays_plain() -> None:
    for text in ("coffee, breakfast; oat-milk (2023)", "topics/food", "2023-05-08T13:56:00", "Müller's café"):
        assert quote(text) == text
    assert flow(["Caroline", "Melanie"]) == "[Caroline, Melanie]"
    assert flow({"from": "13+41", "n": 3}) == "{from: 13+41, n: 3}"
    assert quote("2023-05-20") == "2023-05-20"  # a date may stay a date


@given(
    st.dictionaries(KEYS, WORDS, max_size=4),
    st.dictionaries(KEYS, st.none() | WORDS, max_size=4),
    st.booleans(),
)
def test_an_edit_leaves_every_other_line(
    before: dict[str, str], changes: dict[str, str | None], crlf: bool
) -> None:
    eol = "\r" if crlf else ""
    made = {key: f"{key}: {quote(value)}{eol}" for key, value in before.items()}
    lines = [
        "---" + eol,
        *(f"{line}\n# above {key}{eol}" for key, line in made.items()),
        "---" + eol,
        "body",
        "---",
    ]
    lines = "\n".join(lines).split("\n")
    after = edit(lines, {k: None if v is None else quote(v) for k, v in changes.items()}, eol + "\n")
    untouched = [line for line in lines if line not in [made.get(key) for key in changes]]
    rest = iter(after)
    assert all(line in rest for line in untouched)
    kept = {key: value for key, value in {**before, **changes}.items() if value is not None}
    assert read_header(after).values == {key: clean_text(value) for key, value in kept.items()}


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("text", "values", "end"),
    [
        ('+++\ntitle = "Press"\nday = 2024-10-05\ntags = ["a", 1]\n+++\nbody', {"title": "Press"}, 5),
        ('{\r\n  "title": "Press",\r\n  "draft": true\r\n}\r\nbody', {"title": "Press", "draft": "true"}, 4),
    ],
)
def test_headers_of_other_programs_are_read_as_strings(text: str, values: dict[str, str], end: int) -> None:
    header = read_header(text.split("\n"))
    assert (header.problem, header.end, header.editable) == (None, end, False)
    assert header.values.items() >= values.items()
    if "day" in header.values:
        assert header.values["day"] == "2024-10-05" and header.values["tags"] == ["a", "1"]


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "text", ["{{< toc >}}\n}\nbody", '{"a": 1} and more\n', "{}\nbody", "{\n- <seq=1> a\n}\n"]
)
def test_a_brace_alone_begins_no_header(text: str) -> None:
    assert read_header(text.split("\n")) == Header()


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "text", ["+++\na =\n+++\n", "+++\na = " + "[" * 9000 + "\n+++\n", "+++\n" + "a." * 900]
)
def test_a_header_of_another_program_that_is_not_read_is_a_problem_at_most(text: str) -> None:
    header = read_header(text.split("\n"))
    assert not header.values and (header.end == 0 or header.problem)


def test_a_header_of_another_program_is_never_edited() -> None:
    document = Document.parse("topics/press", b'+++\ntitle = "Press"\n+++\n- one\n')
    assert document.with_header({"summary": "new"}) == document and document.has_prose
