"""The facade end to end: a conversation goes in, topics come out, whatever the model does."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from infinimem import Turn, open_memory
from infinimem.errors import ModelUnavailable, NotALibrary, UsageError
from infinimem.llm import tasks
from infinimem.memory import Memory
from infinimem.model import Receipt
from infinimem.store.view import View
from infinimem.testing import ScriptedLLM

START = datetime(2025, 5, 1, 9, tzinfo=UTC)

TALK = (
    "I moved to Lisbon in March and rent a flat near the river.",
    "My sister Rita visits me on 14 June with her two children.",
    "I am allergic to peanuts, so no satay for me.",
    "The flat in Lisbon has a balcony where I grow tomatoes.",
    "I run ten kilometres every Sunday along the river.",
    "Rita's children are called Ana and Tomas.",
    "My running shoes are worn out after 900 kilometres.",
    "The tomatoes on the balcony caught blight last week.",
)


def ticking() -> Callable[[], datetime]:
    """A clock that moves one second a look, the same way in every run."""
    looks = iter(range(10**9))
    return lambda: START + timedelta(seconds=next(looks))


def turns(texts: Sequence[str], session: str = "s1") -> list[Turn]:
    return [
        Turn(text, time=f"2025-04-{1 + number % 28:02}", session=session, turn=f"{session}:{number}")
        for number, text in enumerate(texts)
    ]


def digest(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".infinimem" not in path.parts
    }


def standing(view: View) -> dict[int, str]:
    """Every signed line outside the evidence, live or archived; a doubled seq fails here."""
    lines: dict[int, str] = {}
    for scope in ("default", "archive"):
        for place in view.entries(scope):  # type: ignore[arg-type]
            assert place.entry.seq not in lines
            lines[place.entry.seq] = place.entry.line
    return lines


def errors(memory: Memory) -> list[str]:
    return [f"{finding.where} {finding.what}" for finding in memory.doctor() if finding.level == "error"]


def test_what_a_model_is_asked_hangs_on_the_day_of_the_question_and_on_no_clock(tmp_path: Path) -> None:
    """Two runs, in different years: documents, calls and prompts are the same to the byte."""

    def run(name: str, years: int) -> list[tasks.Prompt]:
        def clock() -> datetime:
            return START + timedelta(days=366 * years)

        made = open_memory(tmp_path / name, model="offline", create=True, clock=clock)
        made.observe(turns(TALK))
        made.consolidate()
        calls = [("list_docs", {}), ("grep", {"pattern": "2025|created", "scope": "all"})]
        calls += [("read_lines", {"doc_id": made.tools.list_docs()["docs"][0]["id"]})]
        more = {"answer": "", "cites": [], "calls": [{"name": n, "arguments": a} for n, a in calls]}
        llm = ScriptedLLM({"answer": [more, {"answer": "x", "cites": [], "calls": []}]})
        open_memory(tmp_path / name, model=llm, clock=clock).ask("Where do I live?", now="2025-06-01")
        return [tasks.render(tasks.SEARCHING, call.variables) for call in llm.calls]

    first = run("one", 0)
    assert first == run("two", 3) and len(first) == 2
    assert "NOW: 2025-06-01" in first[0].user


def test_offline_a_conversation_becomes_topics_and_answers(tmp_path: Path) -> None:
    memory = open_memory(tmp_path / "m", model="offline", create=True, clock=ticking())
    entries = memory.observe(turns(TALK))
    assert [place.entry.text for place in entries] == list(TALK)
    before = standing(memory.view)
    receipt = memory.consolidate()
    assert isinstance(receipt, Receipt)
    assert standing(memory.view) == before
    assert memory.view.buffer.entries == ()
    assert memory.consolidate() is None
    found = memory.retrieve("When does Rita visit?").items[0]
    assert "14 June" in found.text
    assert memory.view.entry(found.origin[0]).doc_id.startswith("evidence/")  # type: ignore[union-attr]
    answer = memory.ask("What is she allergic to?")
    assert "peanuts" in answer.text
    assert answer.citations[0].seqs
    assert errors(memory) == []


def test_an_endpoint_that_dies_while_consolidating_leaves_the_buffer(tmp_path: Path) -> None:
    memory = open_memory(tmp_path / "m", model="offline", create=True)
    memory.observe(turns(TALK))
    before = digest(tmp_path / "m")
    dead = ScriptedLLM({"rewrite": lambda variables: ModelUnavailable("no answer")})
    with pytest.raises(ModelUnavailable):
        open_memory(tmp_path / "m", model=dead).consolidate()
    assert digest(tmp_path / "m") == before


def test_a_superseded_fact_moves_to_the_archive_with_its_reason(tmp_path: Path) -> None:
    def rewrite(variables: dict[str, list[dict[str, str]]]) -> dict[str, object]:
        ids = [fact["id"] for fact in variables["facts"]]
        return {"topics": [{"title": "Drinks", "fact_ids": ids}]}

    def compare(variables: dict[str, list[dict[str, list[dict[str, str]]]]]) -> dict[str, object]:
        old, new = (fact["id"] for fact in variables["groups"][0]["facts"])
        return {"superseded": [{"old": old, "new": new}]}

    memory = open_memory(tmp_path / "m", model="offline", create=True)
    memory.observe(turns(["I drink black coffee.", "I drink oat-milk coffee: it is oat-milk latte now."]))
    memory = open_memory(
        tmp_path / "m",
        model=ScriptedLLM(
            {
                "rewrite": rewrite,  # type: ignore[dict-item]
                "compare": compare,  # type: ignore[dict-item]
                "plan": lambda v: {
                    "assign": [
                        {
                            "doc_id": None,
                            "new_title": "Drinks",
                            "fact_ids": [f["id"] for f in v["topics"][0]["facts"]],
                        }
                    ]
                },
            }
        ),
    )
    memory.consolidate()
    archive = memory.view.document("archive/drinks")
    assert archive.entries[0].entry.text == "I drink black coffee."
    assert archive.entries[0].headings[-1].startswith("Superseded by ")
    assert memory.view.document("topics/drinks").summary.endswith("it is oat-milk latte now.")


def test_evidence_is_collected_without_an_answer(tmp_path: Path) -> None:
    """Bug guarded: a benchmark that counts the tokens of the answer as those of the reader."""
    model = ScriptedLLM({"extract": lambda _: ModelUnavailable("gone"), "select": lambda _: {"ids": []}})
    memory = open_memory(tmp_path / "m", model="offline", create=True)
    memory.observe(turns(TALK))
    memory = open_memory(tmp_path / "m", model=model)
    found = memory.read("What is she allergic to?", "hybrid")
    assert "peanuts" in found.items[0].text and found.trace
    assert [call.task for call in model.calls] == ["select"]
    few = memory.read("What is she allergic to?", "bm25", budget=20)
    assert 0 < sum(map(len, (item.text for item in few.items))) < sum(len(i.text) for i in found.items)
    with pytest.raises(UsageError, match="question is empty"):
        memory.read(" ")


def test_bad_calls_are_told_in_one_line(tmp_path: Path) -> None:
    memory = open_memory(tmp_path / "m", model="offline", create=True)
    with pytest.raises(UsageError):
        memory.ask("  ")
    with pytest.raises(UsageError, match="reader"):
        memory.ask("what?", reader="psychic")
    with pytest.raises(UsageError, match="strategy"):
        open_memory(tmp_path / "new", strategy="none", create=True)
    assert not (tmp_path / "new").exists()
    (tmp_path / "plain").mkdir()
    with pytest.raises(NotALibrary, match="infinimem init"):
        open_memory(tmp_path / "plain", model="offline").observe(turns(TALK))


@pytest.mark.parametrize("paragraphs", [600, pytest.param(20_000, marks=pytest.mark.soak)])
def test_a_text_of_any_length_is_remembered(tmp_path: Path, paragraphs: int) -> None:
    memory = open_memory(tmp_path / "m", model="offline", create=True)
    text = "\n\n".join(f"Paragraph {n} is about the number {n * 7919}." for n in range(paragraphs))
    memory.observe([Turn(text, session="big")])
    number = str(paragraphs // 2 * 7919)
    assert number in memory.retrieve(f"paragraph about {number}").items[0].text
    memory.consolidate()
    assert errors(memory) == []


def test_a_line_that_a_person_deleted_does_not_come_back(tmp_path: Path) -> None:
    memory = open_memory(tmp_path / "m", model="offline", create=True)
    memory.observe(turns(TALK))
    buffer = tmp_path / "m" / "CURRENT.md"
    kept = [line for line in buffer.read_text().splitlines(True) if "peanuts" not in line]
    buffer.write_text("".join(kept))
    memory.observe(turns(["I like tea with milk in it."], "s2"))
    memory.consolidate()
    assert not any("peanuts" in line for line in standing(memory.view).values())
    assert any("peanuts" in place.text for place in memory.view.entries("evidence"))


def test_what_was_recorded_is_drawn_from_at_the_next_call(tmp_path: Path) -> None:
    memory = open_memory(tmp_path / "m", model="offline", create=True)
    assert len(memory.record(turns(TALK))) == len(TALK)
    assert memory.status()["pending"] == len(TALK) and not list(memory.view.entries())
    assert len(memory.observe([])) == len(TALK)
    assert memory.record([]) == ()
