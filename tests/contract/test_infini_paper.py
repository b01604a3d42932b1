"""Infini Memory as its paper has it: a setting for each stage of writing, a preset, texts beside lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from cases import each
from scripted import ids

from infinimem import Turn, open_memory
from infinimem.errors import SettingsError
from infinimem.evaluation.model import parse_all
from infinimem.memory import Memory
from infinimem.model import Move, Plan
from infinimem.settings import configuration
from infinimem.strategies.infini.documents import quote_facts
from infinimem.strategies.readers.pipeline import shown
from infinimem.testing import ScriptedLLM

FIRST = ("Nora lives in Rome.", "Nora has a cat called Rex.")
THEN = ("Nora lives in Oslo.",)
FREE = Path("topics.free/nora.md")


def filed(variables: Mapping[str, Any]) -> dict[str, Any]:
    """All to the document of Nora, which the first plan makes."""
    docs = [doc["id"] for doc in variables["docs"]]
    known = "topics/nora" in docs
    target = {"doc_id": "topics/nora" if known else None, "new_title": None if known else "Nora"}
    return {"assign": [{**target, "fact_ids": ids(variables["topics"])}]}


def told(variables: Mapping[str, Any]) -> dict[str, Any]:
    """A text in other words: what it was, and a sentence of each new fact."""
    fresh = [{"text": f"It is told that {f['text']}.", "from": [f["id"]]} for f in variables["facts"]]
    old = quote_facts({**variables, "facts": []})["sentences"]
    return {"sentences": [{**one, "heading": "Life"} for one in [*old, *fresh]]}


SCRIPT: dict[str, Any] = {
    "extract": lambda v: {"entries": [{"text": t["text"][:-1], "from": [t["id"]]} for t in v["turns"]]},
    "rewrite": lambda v: {"topics": [{"title": "Nora", "fact_ids": ids(v["facts"])}]},
    "plan": filed,
    "compare": lambda v: {"superseded": []},
    "layout": lambda v: {"layout": []},
    "merge": lambda v: {"groups": []},
    "summarize": lambda v: {"summaries": [{"id": d["id"], "summary": "Of Nora."} for d in v["docs"]]},
    "tell": told,
}


@pytest.fixture
def library(tmp_path: Path) -> Callable[..., tuple[Memory, ScriptedLLM]]:
    def opened(*settings: str, **scripts: Any) -> tuple[Memory, ScriptedLLM]:
        root = tmp_path / "m"
        root.mkdir(exist_ok=True)
        (root / "infinimem.toml").write_text("\n".join(settings) + "\n")
        llm = ScriptedLLM({**SCRIPT, **scripts})
        return open_memory(root, model=llm, create=True, trust=True), llm

    return opened


def say(memory: Memory, texts: Sequence[str], day: str = "2024-05-01") -> None:
    memory.observe([Turn(text, time=day, session=day) for text in texts])
    memory.consolidate()


def tasks(llm: ScriptedLLM) -> list[str]:
    return [call.task for call in llm.calls]


def file(memory: Memory, name: str | Path) -> str:
    path = memory.library.root / name
    return path.read_text() if path.exists() else ""


# ── the preset ──────────────────────────────────────────────────────────────────────────────────


def test_a_preset_sets_all_of_the_papers_values_and_what_is_set_beside_it_goes_before(tmp_path: Path) -> None:
    """`preset = "paper"` sets what the paper has; what the file gives goes before, and origins say so."""
    values = configuration(b'preset = "paper"\n[infini]\nshows = "lines"\n', tmp_path)
    assert values.values["allmem.describe_turns"] == 1, (
        "of another that `--strategy` or `compare` names, its own"
    )
    told = {name: values.origins[name] for name in ("infini.chunk_tokens", "infini.shows")}
    assert told == {"infini.chunk_tokens": "preset paper", "infini.shows": "infinimem.toml"}
    chosen = {name.removeprefix("infini."): value for name, value in values.values.items()}
    assert chosen["chunk_tokens"] == 4096 and chosen["rewrite"] == "free" and chosen["shows"] == "lines"


@each("text", ['preset = "papr"', 'strategy = "gam"\npreset = "tasks"'])
def test_a_preset_that_the_strategy_does_not_have_is_an_error_of_one_line(text: str, tmp_path: Path) -> None:
    """A preset that is not the strategy's is refused, and the line names those that are."""
    with pytest.raises(SettingsError) as error:
        configuration(text.encode(), tmp_path)
    assert "paper" in str(error.value) and "\n" not in str(error.value)


def test_the_bench_has_the_paper_as_a_method_and_its_ablations_as_a_group() -> None:
    """`infini-ablations` varies the paper's own form; texts and lines are read from one library."""
    methods = {spec.text: spec for spec in parse_all(["infini-ablations"])}
    assert methods["infini-paper-h"].library == methods["infini-paper-h:shows=lines"].library
    assert methods["infini-paper"].library != methods["infini"].library
    assert {f"infini-paper-h:markdown_length={n}" for n in (1000, 3000, 7000, 9000)} < methods.keys()


# ── order, summaries, labels ────────────────────────────────────────────────────────────────────


def test_with_grouping_rewrite_topics_are_named_for_the_whole_buffer_and_planned_by_summaries(
    library: Callable[..., tuple[Memory, ScriptedLLM]],
) -> None:
    """`grouping = "rewrite"`: extraction names no topic, all is grouped, documents are told by summaries."""
    memory, llm = library("[infini]", 'grouping = "rewrite"', 'summary = "paper"')
    say(memory, FIRST)
    say(memory, THEN, "2024-06-01")
    calls = {call.task: call.variables for call in llm.calls}
    assert "topics" not in calls["extract"]
    assert [fact["text"] for fact in calls["rewrite"]["facts"]] == ["Nora lives in Oslo"]
    assert calls["plan"]["docs"][0]["told"][1] == "Of Nora."


def test_a_topic_that_the_plan_leaves_out_is_a_document_of_its_own_title(
    library: Callable[..., tuple[Memory, ScriptedLLM]],
) -> None:
    """As the prompt says, whoever named it: it is not asked for again as missing."""
    memory, llm = library(
        "[infini]",
        'grouping = "rewrite"',
        rewrite=lambda v: {"topics": [{"title": "Tea of Nora", "fact_ids": [f["id"] for f in v["facts"]]}]},
        plan=lambda v: {"assign": []},
    )
    say(memory, FIRST)
    assert tasks(llm).count("plan") == 1
    assert "topics/tea-of-nora" in memory.view


def test_summaries_are_the_models_of_what_changed_and_the_rules_where_it_gives_none(
    library: Callable[..., tuple[Memory, ScriptedLLM]],
) -> None:
    """A model's summary stands in the header; an empty reply leaves the rule's, and the receipt says so."""
    memory, llm = library("[infini]", 'summary = "paper"')
    say(memory, FIRST)
    assert memory.view.row("topics/nora").summary == "Of Nora."
    assert tasks(llm).count("summarize") == 1
    memory, llm = library("[infini]", 'summary = "paper"', summarize=lambda v: {"summaries": []})
    say(memory, THEN, "2024-06-01")
    assert memory.view.row("topics/nora").summary.startswith("Nora ")
    assert "summary of topics/nora: EMPTY; the rule's stands" in memory.receipts()[-1].notes
    memory, llm = library("[infini]", 'summary = "rule"')
    say(memory, ("Nora plays chess.",), "2024-07-01")
    assert "summarize" not in tasks(llm)


def test_a_summary_that_is_too_long_ends_after_a_clause(
    library: Callable[..., tuple[Memory, ScriptedLLM]],
) -> None:
    """Not in the middle of a word."""
    clauses = "; ".join(f"Nora was in town {n} on a sunny day" for n in range(99))
    told = {"id": "D1", "summary": clauses}
    memory, _ = library("[infini]", 'summary = "paper"', summarize=lambda v: {"summaries": [told]})
    say(memory, FIRST)
    summary = memory.view.row("topics/nora").summary
    assert clauses.startswith(f"{summary}; ") and summary
    told["summary"] = "诺拉住在奥斯陆。" * 99
    say(memory, THEN, "2024-06-01")
    assert memory.view.row("topics/nora").summary.endswith("住在奥斯陆。"), "nor is it empty without spaces"


def test_ours_asks_for_no_summary_of_a_few_lines(library: Callable[..., tuple[Memory, ScriptedLLM]]) -> None:
    """`summary = "model"`: a document of four lines is summed up by its lines; of five by the model."""
    memory, llm = library()
    say(memory, FIRST)
    assert "summarize" not in tasks(llm)
    say(memory, ("Nora plays chess.", "Nora hates rum.", "Nora met Ines."), "2024-06-01")
    assert memory.view.row("topics/nora").summary == "Of Nora."


def test_a_label_is_a_field_of_the_entry_if_the_turn_says_it(
    library: Callable[..., tuple[Memory, ScriptedLLM]],
) -> None:
    """`label: 12` of a turn is a field of what is drawn from it, shown to who answers; none is made up."""

    def extract(variables: Mapping[str, Any]) -> dict[str, Any]:
        turns = variables["turns"]
        return {"entries": [{"text": "Card is late", "from": [turns[0]["id"]], "label": said}]}

    for said, label in (("12", "12"), ("77", None)):
        memory, _ = library(extract=extract)
        memory.observe([Turn("The card is late, card late.\nlabel: 12", session=said)])
        entry = list(memory.view.entries())[-1].entry
        assert entry.fields.get("label") == label
    answers: list[Any] = []
    memory, _ = library(answer=lambda v: answers.append(v) or {"answer": "12", "cites": [], "calls": []})
    memory.ask("Which label has a late card?")
    assert "12" in str([line.get("label") for doc in answers[0]["evidence"] for line in doc["lines"]])


# ── maintenance ─────────────────────────────────────────────────────────────────────────────────


def outdating(variables: Mapping[str, Any]) -> dict[str, Any]:
    facts = {f["text"]: f["id"] for group in variables["groups"] for f in group["facts"]}
    pair = (facts.get("Nora lives in Rome"), facts.get("Nora lives in Oslo"))
    return {"superseded": [{"old": pair[0], "new": pair[1]}] if all(pair) else []}


@pytest.mark.parametrize(("maintenance", "archived"), [("true", True), ("false", False)])
def test_without_maintenance_nothing_is_revised_across_documents(
    library: Callable[..., tuple[Memory, ScriptedLLM]], maintenance: str, archived: bool
) -> None:
    """Append-only: each flush is a document of its own, and an outdated line of an earlier one stays live."""
    memory, _ = library("[infini]", f"maintenance = {maintenance}", compare=outdating)
    say(memory, FIRST)
    say(memory, THEN, "2024-06-01")
    live = {place.text: place.doc_id for place in memory.view.entries()}
    assert ("Nora lives in Rome" not in live) is archived
    if not archived:
        assert (live["Nora lives in Rome"], live["Nora lives in Oslo"]) == (
            "topics/notes-1",
            "topics/notes-2",
        )


def test_what_is_merged_is_chosen_by_nearness_of_summaries(
    library: Callable[..., tuple[Memory, ScriptedLLM]],
) -> None:
    """Documents at both ends of the alphabet stand beside each other in a call if they are alike."""
    asked: list[list[str]] = []

    def merge(variables: Mapping[str, Any]) -> dict[str, Any]:
        asked.append([doc["id"] for doc in variables["docs"]])
        return {"groups": [{"doc_ids": asked[-1][:2], "reason": "alike"}]}

    def plan(variables: Mapping[str, Any]) -> dict[str, Any]:
        facts = [fact for topic in variables["topics"] for fact in topic["facts"]]
        items = [(fact["text"].split()[0], fact["id"]) for fact in facts]
        return {"assign": [{"doc_id": None, "new_title": word, "fact_ids": [seq]} for word, seq in items]}

    memory, _ = library("[infini]", "merge_frequency = 2", plan=plan, merge=merge)
    memory.observe(
        [
            Turn(text)
            for text in ("Apples grow in the orchard.", "Chess is played.", "Zucchini grow in the orchard.")
        ]
    )
    memory.consolidate()
    say(memory, ("Mice sleep.",))
    assert asked == [["topics/apples", "topics/zucchini", "topics/chess", "topics/mice"]]
    assert [row.id for row in memory.view.catalog(folder="topics/")] == [
        "topics/apples",
        "topics/chess",
        "topics/mice",
    ]


# ── free texts ──────────────────────────────────────────────────────────────────────────────────


PAPER = ('preset = "paper"',)


def test_a_free_text_stands_beside_the_lines_and_is_shown_while_it_is_current(
    library: Callable[..., tuple[Memory, ScriptedLLM]],
) -> None:
    """The model's words go to topics.free/, with the lines of each sentence; no topic holds one of them."""
    memory, llm = library(*PAPER)
    say(memory, FIRST)
    text = file(memory, FREE)
    assert "# Life\n- It is told that Nora lives in Rome. {3}\n" in text
    assert "It is told" not in file(memory, "topics/nora.md") + file(memory, "CURRENT.md")
    assert "Nora lives in Rome" in file(memory, "topics/nora.md")
    piece = shown(memory.view, "topics/nora")
    assert (piece.doc_id, piece.origin) == ("topics.free/nora", (1, 2))
    assert "It is told that Nora lives in Rome.\n" in piece.text
    say(memory, THEN, "2024-06-01")
    again = [call.variables for call in llm.calls if call.task == "tell"][-1]
    assert again["text"] == text.split("---\n")[2].strip()
    assert "told that Nora lives in Rome. {3}" in file(memory, FREE)
    assert [fact["text"] for fact in again["facts"]] == ["Nora lives in Oslo"]
    memory, _ = library(*PAPER, "[infini]", 'shows = "lines"')
    assert shown(memory.view, "topics/nora").doc_id == "topics/nora"
    assert not [one for one in memory.retrieve("It is told").items if one.doc_id.startswith("topics.free/")]


def test_a_sentence_of_a_text_cites_the_lines_that_it_tells(
    library: Callable[..., tuple[Memory, ScriptedLLM]],
) -> None:
    """Each sentence cites its own lines, not those of the document; a heading is none, and cites nothing."""
    shows: list[Any] = []
    answer = {"answer": "Rex", "cites": ["topics.free/nora:7", "topics.free/nora:9"]}
    memory, _ = library(
        *PAPER,
        answer=lambda v: shows.append(v["evidence"][0]["lines"]) or answer,
        select=lambda v: {"ids": ["topics/nora"]},
    )
    say(memory, FIRST)
    path = memory.library.root / FREE
    path.write_text(path.read_text() + f"- Beyond all numbers. {{{'9' * 5000}}}\n")
    (citation,) = memory.ask("What is the cat called?", "summary").citations
    assert (citation.seqs, citation.text) == ((4,), "- It is told that Nora has a cat called Rex.")
    assert (
        shows[0][0] == {"heading": "Life"} and shows[0][1]["text"] == "- It is told that Nora lives in Rome."
    )


def test_a_text_that_is_not_current_is_not_shown(library: Callable[..., tuple[Memory, ScriptedLLM]]) -> None:
    """After a hand edit, an undo, or a reply of no use lines are shown; the next consolidation tells anew."""
    memory, _ = library(*PAPER)
    say(memory, FIRST)
    page = memory.library.root / "topics/nora.md"
    page.write_text(page.read_text().replace("a cat called Rex", "a dog called Rex"))
    memory, _ = library(*PAPER)
    assert "a dog called Rex" in shown(memory.view, "topics/nora").text
    memory.consolidate()
    assert "It is told that Nora has a dog called Rex." in shown(memory.view, "topics/nora").text
    page.write_text(page.read_text().replace("a dog called Rex", "a hen called Rex"))
    memory, _ = library(*PAPER)
    say(memory, ("Nora plays chess.",), "2024-05-02")
    assert "a hen" in file(memory, FREE) and "a dog" not in file(memory, FREE), "not told as only grown"
    memory, _ = library(*PAPER, tell=lambda v: {"sentences": []})
    say(memory, THEN, "2024-06-01")
    assert shown(memory.view, "topics/nora").doc_id == "topics/nora"
    assert "text of topics/nora: EMPTY; its lines are shown" in memory.receipts()[-1].notes
    consolidation = [one for one in memory.receipts() if one.op == "consolidate"][-1]
    memory.undo(consolidation.id)
    assert shown(memory.view, "topics/nora").doc_id == "topics.free/nora"
    assert "Oslo" not in shown(memory.view, "topics/nora").text


def test_a_topic_that_is_deleted_while_others_are_told_is_passed_over(
    library: Callable[..., tuple[Memory, ScriptedLLM]],
) -> None:
    """Texts are told ten a plan; of a topic that went meanwhile there is nothing to tell."""
    root: list[Path] = []

    def apart(variables: Mapping[str, Any]) -> dict[str, Any]:
        rows = [{"doc_id": None, "new_title": f"Of {n}", "fact_ids": [n]} for n in ids(variables["topics"])]
        return {"assign": rows}

    def deleting(variables: Mapping[str, Any]) -> dict[str, Any]:
        sorted((root[0] / "topics").glob("*.md"))[-1].unlink(missing_ok=True)
        return told(variables)

    memory, _ = library("[infini]", 'rewrite = "free"', plan=apart, tell=deleting)
    root.append(memory.library.root)
    say(memory, [f"Nora has {count} cats." for count in range(11, 31)])
    assert len([*(root[0] / "topics.free").iterdir()]) == 10


def test_forget_takes_the_free_texts_of_the_documents_that_it_touches(
    library: Callable[..., tuple[Memory, ScriptedLLM]],
) -> None:
    """A line that is forgotten takes along the text of its document, and every version of it in receipts."""
    memory, _ = library(*PAPER)
    say(memory, FIRST)
    say(memory, THEN, "2024-06-01")
    (seq,) = (place.seq for place in memory.view.entries() if "Rome" in place.text)
    memory.forget([seq])
    assert not (memory.library.root / FREE).exists()
    files = (path for path in memory.library.root.rglob("*") if path.is_file())
    assert not [path for path in files if b"Rome" in path.read_bytes()]
    memory.consolidate()
    assert "Oslo" in file(memory, FREE)
    assert not [one for one in memory.doctor() if one.level == "error"]


def test_texts_of_documents_that_are_gone_are_deleted_and_nothing_else(
    library: Callable[..., tuple[Memory, ScriptedLLM]],
) -> None:
    """A text goes with its document, or the last line of that; what a person put beside it stays."""
    memory, _ = library(*PAPER)
    say(memory, FIRST)
    page = memory.library.root / "topics/nora.md"
    page.write_text(
        "".join(line for line in page.read_text().splitlines(True) if not line.startswith("- <seq="))
    )
    memory, llm = library(*PAPER)
    memory.consolidate()
    assert (file(memory, FREE), tasks(llm)) == ("", [])
    say(memory, THEN)
    assert file(memory, FREE)
    (memory.library.root / "topics.free/mine.md").write_text("My own page.\n")
    (memory.library.root / "topics/nora.md").unlink()
    memory, _ = library(*PAPER)
    memory.consolidate()
    assert (file(memory, FREE), file(memory, "topics.free/mine.md")) == ("", "My own page.\n")


def test_a_page_of_a_person_where_a_text_would_stand_is_left_alone(
    library: Callable[..., tuple[Memory, ScriptedLLM]],
) -> None:
    """A page in topics.free/ that is no text of the program's is neither written anew nor shown for one."""
    memory, _ = library()
    say(memory, FIRST)
    page = memory.library.root / FREE
    page.parent.mkdir()
    page.write_text("My own page.\n")
    memory, _ = library(*PAPER)
    memory.consolidate()
    assert page.read_text() == "My own page.\n"
    assert shown(memory.view, "topics/nora").doc_id == "topics/nora"


def test_a_renamed_document_keeps_its_text(library: Callable[..., tuple[Memory, ScriptedLLM]]) -> None:
    """`rename` moves the free text with its topic, and it stays current."""
    memory, _ = library(*PAPER)
    say(memory, FIRST)
    memory.rename("topics/nora", "Ann")
    assert not file(memory, FREE)
    assert shown(memory.view, "topics/ann").doc_id == "topics.free/ann"


def test_no_plan_of_the_strategy_writes_a_whole_file_among_the_topics(
    library: Callable[..., tuple[Memory, ScriptedLLM]],
) -> None:
    """The law refuses a text in topics/, and a line in topics.free/."""
    from infinimem.model import Put

    memory, _ = library(*PAPER)
    say(memory, FIRST)
    before = file(memory, "topics/nora.md")
    for plan in (
        Plan("retell", records=(Put("topics/nora", "Other words."),)),
        Plan("consolidate", moves=(Move(3, "topics.free/nora"),)),
    ):
        assert getattr(memory.library.apply(plan, base=memory.view), "reasons", None)
    assert file(memory, "topics/nora.md") == before
