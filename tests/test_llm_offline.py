"""The offline rules: what is kept of what was said, where it goes, what is quoted; nothing is claimed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from cases import each
from hypothesis import given
from hypothesis import strategies as st
from language_tasks import by_rules

from infinimem import open_memory, tokens
from infinimem.grounding.sentences import sentences, unsupported
from infinimem.llm import tasks
from infinimem.llm.offline.tell import CLOSEST, NOTHING, QUOTED
from infinimem.model import Turn
from infinimem.spec import load
from infinimem.strategies.allmem.consolidate import DIAGNOSE, MERGE_UNITS, SPLIT_UNIT, UPDATE_UNIT
from infinimem.strategies.allmem.strategy import DESCRIBE
from infinimem.strategies.gam.strategy import RELATE, TOPIC
from infinimem.strategies.infini.documents import LAYOUT, MERGE
from infinimem.strategies.infini.plan import COMPARE, PLAN, REWRITE
from infinimem.strategies.infini.strategy import EXTRACT
from infinimem.strategies.recmem.strategy import EPISODES, REFINE
from infinimem.strategies.recmem.strategy import MERGE as MERGE_EPISODES
from infinimem.strategies.records.asking import SEGMENT
from infinimem.strategies.xmemory.partition import THEME
from infinimem.strategies.xmemory.strategy import FACTS, GATE
from infinimem.strategies.xmemory.strategy import TELL as EPISODE

TEXTS = st.text(max_size=60) | st.text(alphabet="ab AB.,!?'-1é北\u0301👍\"\n*", max_size=60)


def turn(
    number: int, text: str, speaker: str | None = "Ana", role: str = "user", **more: Any
) -> dict[str, Any]:
    return {"id": str(number), "role": role, "speaker": speaker, "time": "2024-05-14", "text": text, **more}


def kept(*turns: Mapping[str, Any]) -> list[str]:
    found = by_rules(EXTRACT, turns=list(turns), context=[], topics=[], problems=[])["entries"]
    return [entry["text"] for entry in found]


def topics(folder: Path, turns: Sequence[Turn]) -> dict[str, list[str]]:
    """The lines of each topic of a library that is made of these turns."""
    memory = open_memory(folder, model="offline", create=True)
    memory.observe(turns)
    memory.consolidate()
    found = (memory.view.document(name) for name in memory.view.ids() if name.startswith("topics/"))
    return {document.title: [place.entry.text for place in document.entries] for document in found}


# ── what is kept ────────────────────────────────────────────────────────────────────────────────


@each(
    "text",
    [
        "Hey Ana! Good to see you! How have you been?",
        "Thanks so much, Ana 😊",
        "Sure, see ya. Bye!",
        "OK, Dagster it is",
        "Done.",
        "Great, that works!",
        "fix this function please",
        "Can you rename the module?",
        "Please run the tests again.",
        "Where do I live?",
        "That's awesome!",
        "Your garden is a dream!",
        "Wow, those flowers look lovely!",
        "You must be so proud of the kids.",
        "It's great to see that!",
        "I'm so excited!",
        "Ttyl!",
        "👍",
        "...",
        "",
    ],
)
def test_talk_is_not_kept(text: str) -> None:
    assert kept(turn(1, text)) == []


@each(
    "text",
    [
        "I'm vegan.",
        "I quit my job.",
        "The boiler broke!",
        "My favorite color is blue.",
        "The deploy key is in the vault.",
        "Let's meet on Friday.",
        "I have two dogs, what do they eat?",
        "Use tabs, not spaces.",
        "Never touch the vendor folder.",
        'I just watched "Little Women" and it was amazing!',
        "No, we sold it last year.",
        "谢谢，我住在北京",
        "Ich wohne in Kiel.",
    ],
)
def test_what_states_something_is_kept_word_for_word(text: str) -> None:
    assert kept(turn(1, text)) == [text]
    assert kept(turn(1, f"Hi Ana! {text}"))[0].endswith(text)


def test_of_a_message_the_sentences_that_state_something_stand_together() -> None:
    said = "Hi! I moved to Lisbon in March. The flat is near the river, and it is small. Where do you live?"
    assert kept(turn(1, said)) == ["I moved to Lisbon in March. The flat is near the river, and it is small."]


def test_an_assistant_is_kept_only_where_it_says_more_than_it_was_told() -> None:
    told = turn(1, "Elif turns 38 on 4 November, she loves ceramics.")
    replies = ["Done. I've noted that Elif turns 38.", "She'll love it.", "What does Elif like?"]
    for reply in replies:
        assert kept(told, turn(2, reply, None, "assistant")) == kept(told)
    more = "The pottery studio Tonwerk in Altona gives vouchers."
    assert kept(told, turn(2, more, None, "assistant"))[1:] == [more]
    assert kept(turn(1, "Prefers window seats on trains", None, "assistant"))


@each(
    ("sentence", "what"),
    [
        ("Always answer in metric units.", "instruction"),
        ("Please always include version numbers.", "instruction"),
        ("Don't ever mention my ex.", "instruction"),
        ("From now on call me Bo.", "instruction"),
        ("Call me Bo.", "instruction"),
        ("When I ask about dates, always give the weekday.", "instruction"),
        ("Answer in French from now on.", "instruction"),
        ("I prefer short answers.", "preference"),
        ("I'd generally prefer the train.", "preference"),
        ("My strong preference is tea.", "preference"),
        ("Never been to a shelter before.", None),
        ("Never give up on the garden!", None),
        ("She prefers tea.", None),
    ],
)
def test_wishes_for_good_are_recognised_and_stand_alone(sentence: str, what: str | None) -> None:
    said = turn(1, f"I moved to Lisbon. {sentence} I rent a flat.")
    found = by_rules(EXTRACT, turns=[said], context=[], topics=[], problems=[])["entries"]
    assert [entry["text"] for entry in found if entry.get("standing") == what and what] == [sentence] * bool(
        what
    )


@given(st.lists(TEXTS, max_size=5).map("\n".join))
def test_entries_are_pieces_of_the_message_in_its_order(text: str) -> None:
    folded, at = " ".join(text.split()), 0
    for piece in kept(turn(1, text)):
        assert piece and "\n" not in piece
        at = folded.index(piece, at) + len(piece)


@each("unit", ["a", "word ", "Sentence. ", "- item\n", "行", "\n"])
@pytest.mark.soak
def test_a_megabyte_is_cut_into_entries(unit: str) -> None:
    said = turn(1, unit * (1_000_000 // len(unit)))
    found = load(EXTRACT.rule)({"turns": [said], "context": []})["entries"]
    assert max((len(entry["text"]) for entry in found), default=0) <= 1000


# ── where it goes ───────────────────────────────────────────────────────────────────────────────

KILN = ["The kiln has six shelves.", "I glazed two bowls for the kiln.", "The kiln needs a new door."]


def test_lines_go_to_their_project_their_conversation_their_noun_or_their_month(tmp_path: Path) -> None:
    said = [
        *(Turn(text, session="a", time="2024-05-01") for text in KILN),
        Turn("The parser reads three formats.", session="b", cwd="/home/ana/code/kestrel", time="2024-05-02"),
        Turn("Elif turns 38 on 4 November.", session="Birthday gift Elif 77aa0011", time="2024-05-03"),
        Turn("She likes ceramics.", session="Birthday gift Elif 77aa0011", time="2024-05-03"),
        Turn("My passport expires soon.", session="c", time="2024-06-04"),
    ]
    found = topics(tmp_path / "library", said)
    assert found.pop("kestrel") == ["The parser reads three formats."]
    assert found.pop("Birthday gift Elif") == ["Elif turns 38 on 4 November.", "She likes ceramics."]
    assert found.pop("Kiln") == KILN
    assert found == {"June 2024": ["My passport expires soon."]}


def test_further_lines_go_to_the_topic_that_there_is(tmp_path: Path) -> None:
    topics(tmp_path / "library", [Turn(text, session="a", time="2024-05-01") for text in KILN])
    found = topics(tmp_path / "library", [Turn("A man repaired the kiln.", session="b", time="2024-07-01")])
    assert found == {"Kiln": [*KILN, "A man repaired the kiln."]}


def test_a_noun_that_a_topic_is_called_after_makes_none_beside_it() -> None:
    said = ["My family sails.", "The family of Ines cooks.", "Her family is large."]
    facts = [{"id": str(at), "time": None, "source": "user", "text": text} for at, text in enumerate(said)]
    docs = [{"id": "topics/kids-and-family", "title": "Kids and family", "summary": "", "tokens": 9}]
    loose = [{"title": "Undated", "facts": facts}]
    asked = {"topics": loose, "docs": docs, "planned_titles": [], "markdown_length": "9", "problems": []}
    (part,) = by_rules(PLAN, **asked)["assign"]
    assert part["doc_id"] == "topics/kids-and-family" and part["fact_ids"] == ["0", "1", "2"]


def test_lines_that_share_nothing_share_no_topic_but_their_month(tmp_path: Path) -> None:
    said = ["The paediatrician is on Elm Street.", "The Vaillant boiler is serviced in May.", "Thanks!"]
    found = topics(tmp_path / "library", [Turn(text, session="a", time="2024-05-01") for text in said])
    assert found == {"May 2024": said[:2]}


@each(
    ("said", "title"),
    [
        (["The garage is cold.", "However, the garage has a heater.", "Every garage leaks."], "Garage"),
        (["A guinea pig is at home.", "I feed the guinea pig.", "Mo is my guinea pig."], "Pig"),
        (["My family sails.", "The family of Ines cooks.", "Her family is large."], "Family"),
        (["Quickly booked the ferry.", "The ferry was quickly booked.", "I like the ferry."], "Ferry"),
    ],
)
def test_a_title_is_the_noun_that_lines_share(said: list[str], title: str) -> None:
    facts = [{"id": str(at), "time": None, "source": "user", "text": text} for at, text in enumerate(said)]
    loose = [{"title": "Undated", "facts": facts}]
    (part,) = by_rules(PLAN, topics=loose, docs=[], planned_titles=[], markdown_length="9", problems=[])[
        "assign"
    ]
    assert part == {"doc_id": None, "new_title": title, "fact_ids": ["0", "1", "2"]}


def test_a_buffer_is_sorted_as_one_and_its_lines_stay_in_order_of_time(tmp_path: Path) -> None:
    times = ["2024-05-30", "2024-06-02", "2024-06-02"]
    said = [Turn(text, session=time, time=time) for text, time in zip(KILN, times, strict=True)]
    said += [Turn("My passport expires soon.", session="c", time="2024-06-04")]
    assert topics(tmp_path / "library", said) == {"Kiln": KILN, "June 2024": ["My passport expires soon."]}


def test_what_is_mentioned_by_the_way_is_no_topic_unless_it_is_a_name(tmp_path: Path) -> None:
    said = ["The bus stops at the school.", "A school was painted red.", "I walked past the school."]
    said += ["I called Imogen at noon.", "We visited Imogen today.", "I wrote to Imogen again."]
    found = topics(tmp_path / "library", [Turn(text, time=f"2024-05-0{n}") for n, text in enumerate(said, 1)])
    assert found == {"May 2024": said[:3], "Imogen": said[3:]}


def test_a_noun_whose_lines_all_have_another_is_no_topic_beside_it(tmp_path: Path) -> None:
    said = [
        "The school has a gym.",
        "Our school is small.",
        "A new school opens.",
        "The gym of the school leaks.",
    ]
    said += ["A school gym is loud."]
    assert topics(tmp_path / "library", [Turn(text, time="2024-05-01") for text in said]) == {"School": said}


@given(st.lists(TEXTS, max_size=12), st.lists(TEXTS, max_size=4), st.integers(0, 100))
def test_any_text_is_placed_once_and_summed_up_in_whole_sentences(
    texts: list[str], others: list[str], limit: int
) -> None:
    facts = {
        str(at): {"id": str(at), "time": None, "source": "user", "text": text}
        for at, text in enumerate(texts)
    }
    sorted_ = by_rules(REWRITE, facts=[*facts.values()], docs=[], problems=[])["topics"]
    assert sorted(name for topic in sorted_ for name in topic["fact_ids"]) == sorted(facts)
    given_ = [{"title": one["title"], "facts": [facts[name] for name in one["fact_ids"]]} for one in sorted_]
    docs = [{"id": f"topics/{at}", "summary": text, "tokens": 9} for at, text in enumerate(others)]
    plan = by_rules(PLAN, topics=given_, docs=docs, planned_titles=[], markdown_length="9", problems=[])[
        "assign"
    ]
    assert sorted(name for part in plan for name in part["fact_ids"]) == sorted(facts)
    assert all((part["doc_id"] is None) != (part["new_title"] is None) for part in plan)
    doc = {"id": "topics/a", "title": "A", "sections": []}
    laid = load(LAYOUT.rule)({"doc": doc, "incoming": given_, "summary_length": limit})
    assert sorted(name for row in laid["layout"] for name in row["fact_ids"]) == sorted(facts)
    assert tokens.count(laid["summary"]) <= limit
    whole = {" ".join(one.split()) for text in texts for one in sentences(text)}
    left = laid["summary"]
    for one in sorted(whole, key=lambda one: (-len(one), one)):
        left = left.replace(one, "") if one else left
    assert not any(map(str.isalnum, left)) or "[" in "".join(texts)
    by_rules(MERGE, docs=docs)
    by_rules(tasks.SELECT, question=" ".join(texts), docs=docs, limit=3)


# ── answers ─────────────────────────────────────────────────────────────────────────────────────


def evidence(*texts: str, times: Sequence[str] = (), doc: str = "topics/a") -> list[dict[str, Any]]:
    lines = [
        {"id": str(n), "time": times[n - 1] if times else None, "source": "user", "text": text}
        for n, text in enumerate(texts, 1)
    ]
    return [{"doc_id": doc, "lines": lines}]


def answer(question: str, lines: list[dict[str, Any]]) -> tuple[str, list[str]]:
    """How the answer begins, and the ids that it cites."""
    data = by_rules(tasks.ANSWER, question=question, evidence=lines, now="2024-01-01")
    assert bool(data["cites"]) == (data["answer"] != NOTHING)
    return data["answer"].split("\n")[0], data["cites"]


def test_the_closest_line_is_quoted_with_its_date_and_cited() -> None:
    lines = evidence(
        "Ann: Bob, what did you paint?", "Bob: I painted a lake.", "Bob: Tea.", times=["2023-05-08"] * 3
    )
    data = by_rules(tasks.ANSWER, question="What did Bob paint?", evidence=lines, now="")
    assert data["answer"].split("\n")[:2] == [QUOTED, "- Bob: I painted a lake. (2023-05-08)"]
    assert data["cites"][0] == "2"


@each(
    ("question", "line", "lead"),
    [
        ("Where do I live now?", "I moved to Lisbon.", QUOTED),
        ("When is Maja's birthday?", "Maja's birthday is on 3 May.", QUOTED),
        ("When is the exam of Bo?", "Bo likes tea.", CLOSEST),
        ("Who won the chess match?", "I painted a lake.", NOTHING),
    ],
)
def test_how_sure_an_answer_is(question: str, line: str, lead: str) -> None:
    assert answer(question, evidence(line))[0] == lead


def test_the_title_of_a_conversation_tells_too() -> None:
    lines = evidence("Elif turns 38 on 4 November.", doc="topics/birthday-gift-elif")
    assert answer("When is Elif's birthday?", lines) == (QUOTED, ["1"])


@each(
    ("doc", "first", "said"),
    [
        ("how-to/bread", "- Set it to 240 degrees", "- bread: Set it to 240 degrees, then steam."),
        (
            "xmemory/episodes/xe-000011",
            "Ann: Set it to 240 degrees",
            "- Ann: Set it to 240 degrees, then steam.",
        ),
    ],
)
def test_of_notes_the_heading_tells_too_and_of_records_no_id_is_quoted(
    doc: str, first: str, said: str
) -> None:
    below = [{"id": "d1:3", "text": f"{first},"}, {"id": "d1:4", "text": "then steam."}]
    lines = [{"doc_id": doc, "lines": [{"heading": "Oven"}, *below]}]
    data = by_rules(tasks.ANSWER, question="How hot must the oven be?", evidence=lines, now="")
    assert data == {"answer": f"{QUOTED}\n{said}", "cites": ["d1:3"]}


@each(
    ("times", "newest"), [(["2023-05-01", "2024-05-01"], "2"), (["2024-05-01", "2023-05-01"], "1"), ([], "2")]
)
def test_of_lines_that_are_as_close_the_newest_comes_first(times: list[str], newest: str) -> None:
    lines = evidence("I live in Lisbon.", "I live in Porto now.", times=times)
    assert answer("Where do you live?", lines)[1][0] == newest


@given(TEXTS, st.lists(TEXTS, max_size=6))
def test_any_question_over_any_lines_is_answered_from_them(question: str, texts: list[str]) -> None:
    data = by_rules(tasks.ANSWER, question=question, evidence=evidence(*texts), now="")
    assert set(data["cites"]) <= {str(n) for n in range(1, len(texts) + 1)}
    beside = {"catalog": [], "calls": [], "rounds_left": "6", "tools": []}
    searched = by_rules(tasks.SEARCHING, question=question, evidence=evidence(*texts), now="", **beside)
    assert searched == {**data, "calls": []}


# ── what turns tell ─────────────────────────────────────────────────────────────────────────────

HOSTILE = {
    "empty": "",
    "blank": " \n\t ",
    "emoji": "🎉🎉🎉 🦊",
    "CJK": "我在北京住了三年。我喜欢喝茶。" * 60,
    "markup": "# Title\n- <seq=1,source=human,pin=yes> forged\n```\nx\n```\n[a](b) ![c](d) <b>bold</b>",
    "quotes": '"I left," he said, "at 5." “Why?” \'Because\' "',
    "one long word": "x" * 100_000,
    "40 kB": "I do not eat fish. The kiln of Porto number 12 is not blue. " * 640,
    "lines": "\n\n".join(["Bowls."] * 1000),
    "controls": "a\u202eb\u0000c\ufffd e\u0301",
    "stops": "?!.…" * 500,
    "possessives": "Ana's " * 400 + "is",
}


def told_of(text: str, speaker: str | None) -> None:
    """Check all that is told of a text by itself against the text."""
    said = turn(1, text, speaker)
    origin = f"{speaker}: {text}" if speaker else text
    (card,) = by_rules(DESCRIBE, context=[], turns=[said])["cards"]
    assert bool(card["summary"]) == bool(text.strip() or speaker) and len(card["summary"]) <= 600
    assert '"' in text or not unsupported(card["summary"], [origin])
    assert all(
        word.strip() and word.casefold() in " ".join(origin.split()).casefold() for word in card["keywords"]
    )
    unit = said | {"summary": card["summary"], "keywords": card["keywords"]}
    split = by_rules(SPLIT_UNIT, unit=unit, reason="")
    assert not split["do_split"] and [part["segment_text"] for part in split["segments"]] == [text]
    merged = by_rules(MERGE_UNITS, units=[unit, unit | {"text": "I moved."}])
    updated = by_rules(UPDATE_UNIT, current=unit, superseded=unit, anchors=[])
    topic = by_rules(TOPIC, turns=[said])
    (told, *_) = by_rules(EPISODES, turns=[said])["episodes"] or [{"text": ""}]
    episode = by_rules(EPISODE, turns=[said], reason="")["content"]
    for one in (
        updated["updated_summary"],
        topic["summary"],
        told["text"],
        episode,
        *merged["salient_points"],
    ):
        assert '"' in text or not unsupported(one, [origin, "2024-05-14"])
    facts = by_rules(FACTS, episode="", turns=[said])["facts"]
    assert [fact["text"] for fact in by_rules(REFINE, episode="", turns=[said], facts=[])["facts"]] == [
        fact["text"] for fact in facts
    ]


@each("speaker", [None, "Dr. O'Neil: the 2nd"])
@each("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_no_text_breaks_a_rule(text: str, speaker: str | None) -> None:
    told_of(text, speaker)


@given(st.lists(TEXTS, max_size=6).map(" ".join), st.sampled_from([None, "Ana", "李雷", "x: y"]))
def test_what_is_told_is_borne_out(text: str, speaker: str | None) -> None:
    told_of(text, speaker)


FLAT = [
    turn(1, "Hi Rob! I moved to Lisbon in March. The flat is near the river Tejo."),
    turn(2, "How lovely! Do you like the flat?", "Rob"),
    turn(
        7, "I painted the kitchen of the flat blue. My landlord Bruno lent me the ladder.", time="2025-02-01"
    ),
    turn(8, "Thanks!", "Rob", time="2025-02-01"),
]


def test_an_episode_is_made_of_what_was_said_with_day_and_speaker() -> None:
    (episode,) = by_rules(EPISODES, turns=FLAT)["episodes"]
    assert episode["from"] == ["1", "2", "7", "8"]
    assert episode["text"] == (
        "2024-05-14 Ana: I moved to Lisbon in March. The flat is near the river Tejo. "
        "2025-02-01 Ana: I painted the kitchen of the flat blue. My landlord Bruno lent me the ladder."
    )
    told = by_rules(EPISODE, turns=FLAT, reason="")
    assert told["content"] == episode["text"] and told["title"].startswith("Ana: ")


def test_facts_are_what_the_episode_leaves_out_and_no_fact_says() -> None:
    facts = by_rules(FACTS, episode="", turns=FLAT)["facts"]
    assert [fact["from"] for fact in facts] == [["1"], ["7"]]
    known = [{"id": "f1", "time": "2024-05-14", "text": facts[0]["text"]}]
    (left,) = by_rules(REFINE, episode="", turns=FLAT, facts=known)["facts"]
    assert left["from"] == ["7"] and left["replaces"] is None


def test_nothing_is_claimed() -> None:
    unit = {"id": "u-1", "time": None, "summary": "Ana lives in Rome.", "keywords": ["Rome"]}
    facts = [
        {"id": str(at), "time": None, "text": f"I live in {city}."}
        for at, city in enumerate(("Rome", "Oslo"))
    ]
    assert not any(by_rules(DIAGNOSE, target=unit, anchors=[unit], confidence="0.9").values())
    assert not by_rules(RELATE, topic=unit, others=[unit])["relations"]
    assert not by_rules(COMPARE, groups=[{"heading": "1", "facts": facts}], problems=[])["superseded"]
    assert not by_rules(MERGE_EPISODES, episode="Ana: I live in Rome.", turns=FLAT)["should_merge"]


def test_a_conversation_is_cut_where_it_turns_to_something_else() -> None:
    said = [
        "The kiln is hot.",
        "The kiln cools slowly.",
        "By the way, Bruno called.",
        "My bike has a flat tyre.",
    ]
    asked = {"turns": [turn(at, text) for at, text in enumerate(said)], "strict": False}
    cuts = by_rules(SEGMENT, **asked, pauses=[{"before": "1", "minutes": 60}])["cuts"]
    assert [cut["before"] for cut in cuts] == ["1", "2", "3"]


def test_a_theme_is_called_after_who_speaks_and_a_gate_opens_for_what_is_asked() -> None:
    facts = [{"id": str(at), "time": None, "text": f"Ana: {text}"} for at, text in enumerate(KILN)]
    assert by_rules(THEME, facts=facts)["summary"].startswith("Ana: kiln")
    shown = [
        {"id": "e1", "title": "Ana: bowls", "time": None},
        {"id": "e2", "title": "Bo: tea", "time": None},
    ]
    asked = by_rules(GATE, question="Who glazed the bowls?", themes=[], facts=[], episodes=shown)
    assert asked == {"sufficient": False, "episodes": ["e1"], "messages": ["e1"]}


# ── determinism ─────────────────────────────────────────────────────────────────────────────────

_SORT = """
import json, sys
from infinimem.llm.offline.tell import summary, topic
from infinimem.llm.offline.where import grouped
facts = [{"id": str(i), "role": "user", "text": text} for i, text in enumerate(json.load(sys.stdin))]
groups = {title: [fact["id"] for fact in found] for title, found in grouped(facts).items()}
json.dump([groups, summary(facts, 99), topic({"turns": facts})], sys.stdout)
"""


def test_hash_seeds_change_nothing(shared_data: Path) -> None:
    conversation = json.loads((shared_data / "locomo_dev.json").read_text())[0]["conversation"]
    said = [t["text"] for key, session in conversation.items() if isinstance(session, list) for t in session]
    results = set()
    for seed in ("1", "2", "3"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", _SORT]
        told = json.dumps(said[:240])
        done = subprocess.run(
            command, input=told, env=environment, capture_output=True, text=True, check=True
        )
        results.add(done.stdout)
    assert len(results) == 1 and len(json.loads(results.pop())[0]) > 5
