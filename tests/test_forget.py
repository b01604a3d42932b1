"""What is forgotten is nowhere: every byte of library and cache is searched, in every form of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fault_disk import Crash, When, die, hooked, nothing
from fault_library import problems, tree
from fault_work import copy
from forget_library import held

from infinimem.model import Derived, Move, NewEntry, Plan, Reason, RejectedReply, Turn, Withheld
from infinimem.operations.forget.forget import Forgotten, forget, preview_forget
from infinimem.operations.forget.redaction import Wanted
from infinimem.operations.git import GitUnusable
from infinimem.store import disk
from infinimem.store.disk import At
from infinimem.store.library import Library, init
from infinimem.store.view import Applied
from infinimem.store.withheld import keep_replies, keep_withheld

START = datetime(2025, 3, 3, 12, tzinfo=UTC)
SECRET = 'Dr. "Vu" treats my psoriasis | in Évora; she said: C:\\temp.\nSecond line, indented in the file.'
DRAWN = 'Dr. "Vu" treats my psoriasis | in Évora'
PLAIN = "My bike is red and has a bell."


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "cache" / "infinimem").mkdir(parents=True)
    return tmp_path / "cache"


@pytest.fixture
def library(tmp_path: Path) -> Library:
    """Turns 1 (secret) and 2; entries 3 and 4 of turn 1 and 5 of turn 2; a topic for 3 and 4, one for 5."""
    made = init(tmp_path / "memory")
    made.clock = lambda: START
    made.record([Turn(SECRET, session="s", speaker="Ana"), Turn(PLAIN, session="s", speaker="Ana")])
    adds = [
        NewEntry(DRAWN, (1,), by="model", refers="psoriasis of Ana"),
        NewEntry("Sees a doctor in Évora", (1,), by="model"),
        NewEntry(PLAIN, (2,)),
    ]
    made.apply(Plan(adds=tuple(adds)))
    moves = (
        Move(3, "topics/skin-matters", "Psoriasis"),
        Move(4, "topics/skin-matters", "Doctors"),
        Move(5, "topics/vehicle", "Bike"),
    )
    derived = (Derived("topics/skin-matters", "Ana's psoriasis, Dr. Vu", (3, 4)),)
    sort(made, Plan("consolidate", moves=moves, derived=derived))
    return made


def finding(word: str) -> Callable[[str], list[str]]:
    """Finds a word in a text."""
    return lambda text: [word] * text.count(word)


def sort(library: Library, plan: Plan) -> Applied:
    outcome = library.apply(plan)
    assert isinstance(outcome, Applied), outcome
    return outcome


def edit(library: Library, doc_id: str, old: str, new: str) -> None:
    path = library.root / f"{doc_id}.md"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def everything(root: Path) -> dict[str, bytes]:
    """All bytes, machine state too; but for the lock, which names its last holder."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.name != "lock"
    }


def errors(library: Library) -> list[str]:
    return problems(library.root, {})


def gone(library: Library, done: Forgotten, *texts: str, left: Sequence[str] = ()) -> None:
    assert held(texts, library.root) == {}
    assert [one.path for one in done.left] == [*left] and done.rows == ()
    assert errors(library) == []
    assert not (library.root / ".infinimem/forgetting").exists()


# ── what goes ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("seq", [1, 3, 4])
def test_a_line_goes_with_its_evidence_and_all_that_was_drawn_from_that(library: Library, seq: int) -> None:
    edit(library, "topics/skin-matters", "<seq=3,source=user", "<seq=3,source=me")  # damaged
    kept = {place.seq: place.entry.line for place in library.view().entries("all") if place.seq in (2, 5)}
    assert {row.seq for row in preview_forget(library, Wanted({seq})).rows} == {1, 3, 4}
    done = forget(library, Wanted({seq}))
    assert done.seqs == (1, 3, 4)
    gone(library, done, SECRET, DRAWN, "Sees a doctor in Évora", "psoriasis", "Psoriasis", "psoriasis of Ana")
    assert {place.seq: place.entry.line for place in library.view().entries("all")} == kept


def test_a_topic_that_keeps_lines_speaks_of_those_alone(library: Library) -> None:
    derived = Derived("topics/skin-matters", "Skin trouble, and a red bike", (3, 4, 5))
    move = Move(5, "topics/skin-matters", "Bike")
    sort(library, Plan("consolidate", moves=(move,), derived=(derived,)))
    sort(library, Plan("split", moves=(Move(3, "topics/away", "Away"),)))  # its summary still tells of 3
    edit(library, "topics/skin-matters", "summary:", "title: Skin matters\nsummary:")
    done = forget(library, Wanted({1}))
    gone(library, done, SECRET, DRAWN, "psoriasis", "Psoriasis", "Skin trouble")
    text = (library.root / "topics/skin-matters.md").read_text()
    assert text.startswith(
        "---\nid: topics/skin-matters\ntype: topic\ntitle: Skin matters\nsummary: Bike\ntoken_count: "
    )
    assert "\naux: {from: 5}\n" in text
    assert "\n# Bike\n- <seq=5," in text
    assert library.adopt_edits() is None


def test_an_evidence_file_that_keeps_a_line_keeps_its_header(library: Library) -> None:
    forget(library, Wanted({1}))
    assert (library.root / "evidence/2025-03-03-s.md").read_text() == (
        "---\nid: evidence/2025-03-03-s\nkind: evidence\nsession: s\ndate: 2025-03-03T12:00:00Z\n"
        "participants: [Ana]\n---\n<!-- forgotten: 1 -->\n"
        f"- <seq=2,source=user,observed=2025-03-03T12:00:00Z,speaker=Ana> {PLAIN}\n"
    )
    forget(library, Wanted({2}))
    assert not (library.root / "evidence/2025-03-03-s.md").exists()


def test_what_shares_an_origin_goes_too_and_is_shown(library: Library) -> None:
    both = NewEntry("A red bike in Évora", (1, 2), to="topics/vehicle", by="model")
    sort(library, Plan("consolidate", adds=(both,)))
    library.record([Turn("Unrelated")])
    library.apply(Plan(adds=(NewEntry("Unrelated", (7,)),)))
    assert {row.seq for row in preview_forget(library, Wanted({5})).rows} == {1, 2, 3, 4, 5, 6}
    assert forget(library, Wanted({5})).seqs == (1, 2, 3, 4, 5, 6)
    assert [p.text for p in library.view().entries()] == ["Unrelated"]


def test_what_a_person_typed_is_shown_without_a_number_and_goes(library: Library) -> None:
    (library.root / "topics/typed.md").write_text("- Ana hides the key under the mat\n- tea\n")
    wanted = Wanted(finds=finding("hides the key"))
    (row,) = preview_forget(library, wanted).rows
    assert (row.seq, row.doc_id, row.line) == (None, "topics/typed", 1)
    done = forget(library, wanted)
    gone(library, done, "Ana hides the key under the mat")
    assert (library.root / "topics/typed.md").read_text() == "- tea\n"
    assert done.receipt and done.seqs == ()
    assert library.adopt_edits() is not None


@pytest.mark.parametrize(
    ("wanted", "seqs"),
    [
        (Wanted(finds=finding("red")), (2, 5)),
        (Wanted(source="AI"), (6,)),
        (Wanted(source="user", session="s"), (1, 2, 3, 4, 5)),
        (Wanted(source="user", session="other"), ()),
        (Wanted(finds=finding("source=user")), ()),
    ],
    ids=["match", "source", "session", "no session", "signature"],
)
def test_lines_are_chosen_by_their_words_their_source_or_session(
    library: Library, wanted: Wanted, seqs: tuple[int, ...]
) -> None:
    library.record([Turn("Bicycles are nice", role="assistant", session="t")])
    assert forget(library, wanted).seqs == seqs


# ── where it stood besides ──────────────────────────────────────────────────────────────────────────


def dirty(library: Library, cache: Path) -> None:
    """Let the text stand wherever the program may have put it."""
    root, files = library.root, library.files
    edit(library, "topics/skin-matters", "| in Évora", "| in Évora and Porto")
    library.adopt_edits()
    edit(library, "topics/skin-matters", "Sees a doctor in Évora\n", "Sees a doctor in Évora twice\n")
    sort(library, Plan("consolidate", moves=(Move(5, "topics/skin-matters", "Bike"),)))
    line = next(p.entry.line for p in library.view().document("topics/skin-matters").entries)
    edit(library, "topics/skin-matters", f"{line}\n", "")
    library.adopt_edits()
    reply = RejectedReply("extract", f"they have psoriasis: {DRAWN}", (f"number 7: {SECRET}",))
    keep_replies(files, [reply], "now")
    held_back = Withheld(Move(4, "topics/skin-matters", "Psoriasis", "superseded", 3), Reason("PROTECTED"))
    keep_withheld(files, 1, [held_back], library.view().entry)
    (root / ".infinimem/plans").mkdir()
    (root / ".infinimem/plans/0001.json").write_text('{"heading": "what ails them"}')  # an earlier version's
    conflicts = root / ".infinimem/conflicts"
    conflicts.mkdir(exist_ok=True)
    (conflicts / "0001-0123456789ab-topics-skin-matters.md").write_text(
        f"- <seq=3> {DRAWN} later\n- <seq=5,source=user> {PLAIN}\n"
    )
    (conflicts / "torn-CURRENT.md").write_text('- <seq=3,source=user> Dr. "Vu" treats my psor')
    (conflicts / "0002-cd-evidence-2025-03-03-s.md").write_text(
        f"- <seq=1> {SECRET.replace(chr(10), chr(10) + '  ')}\n"
    )
    for place in ("", "topics/", "evidence/", "journal/", ".infinimem/"):
        (root / f"{place}.infinimem.new").write_text(f"half of {SECRET}")
    (root / ".infinimem/tx/0099").mkdir(parents=True)
    (root / ".infinimem/tx/0099/1.bin").write_text(SECRET)
    (root / ".infinimem/append").write_text(f"-\n{SECRET[:35]}")
    (cache / "infinimem/index.json").write_text(json.dumps(SECRET))
    (cache / "infinimem.17.gone").mkdir()  # another forget was stopped here
    (cache / "infinimem.17.gone/index.json").write_text(json.dumps(SECRET))


def test_nothing_is_left_wherever_it_stood(library: Library, cache: Path) -> None:
    dirty(library, cache)
    texts = (SECRET, DRAWN, "Sees a doctor in Évora", "treats my psor")
    before = held(texts, library.root)
    assert set(before) == set(texts)
    assert len(before["treats my psor"]) > 12, "the library is not as dirty as it was meant to be"
    done = forget(library, Wanted({4}))
    assert done.seqs == (1, 3, 4)
    gone(library, done, *texts, left=["topics/skin-matters.md"])  # its heading has a word of it
    assert done.left[0].why == "its name, summary or a heading shares a word with it"
    conflict = library.root / ".infinimem/conflicts/0001-topics-skin-matters.md"
    assert conflict.read_text() == f"<!-- forgotten: 3 -->\n- <seq=5,source=user> {PLAIN}\n"
    assert library.view().entry(5) is not None


def test_a_line_that_a_person_deleted_goes_out_of_the_receipt_that_quotes_it(library: Library) -> None:
    line = next(p.entry.line for p in library.view().document("topics/vehicle").entries)
    edit(library, "topics/vehicle", f"{line}\n", "")
    library.adopt_edits()
    edit(
        library,
        "evidence/2025-03-03-s",
        f"{library.view().document('evidence/2025-03-03-s').lines[-1]}\n",
        "",
    )
    assert library.view().entry(5) is None
    (row,) = preview_forget(library, Wanted({5})).rows
    assert (row.seq, row.doc_id, row.text) == (5, library.receipts()[1].id, PLAIN)
    gone(library, forget(library, Wanted({5})), PLAIN, left=["topics/vehicle.md"])  # of "Bike"


def test_what_is_left_is_listed_by_path(library: Library) -> None:
    note, model, state = (library.root / name for name in ("notes.md", "memories/a.md", ".infinimem/later"))
    for path in (note, model, state):
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"# Mine\n{PLAIN} Indeed.\n")
    before = note.read_bytes()
    assert [item.path for item in preview_forget(library, Wanted({5})).left] == ["memories/a.md", "notes.md"]
    done = forget(library, Wanted({5}))
    assert {(item.path, item.why) for item in done.left} == {
        ("notes.md", "a person's note: edit it"),
        ("memories/a.md", "a model's own file: edit it"),
        (".infinimem/later", "not taken out: edit or delete it"),
    }
    assert note.read_bytes() == before
    assert set(held([PLAIN], library.root)[PLAIN]) == {"notes.md", "memories/a.md", ".infinimem/later"}


def test_lines_that_say_the_same_in_their_own_right_are_named_and_stay(library: Library) -> None:
    library.record([Turn(f"Listen. {PLAIN} Truly.", session="t")])
    done = forget(library, Wanted({5}))
    assert (done.repeated, done.left) == ((6,), ())
    assert library.view().entry(6) is not None


# ── nothing but that ────────────────────────────────────────────────────────────────────────────────


def test_a_dry_run_writes_nothing(library: Library, cache: Path) -> None:
    dirty(library, cache)
    before = everything(library.root), everything(cache)
    with hooked(nothing) as calls:
        assert preview_forget(library, Wanted({4})).rows
    assert calls == []
    assert (everything(library.root), everything(cache)) == before


def test_what_an_editor_saved_late_is_forgotten_too(library: Library) -> None:
    """It wrote into a file that it held open while a consolidation put another in its place."""
    with (library.root / "topics/vehicle.md").open("a") as editor:
        (turn,) = library.record([Turn("The bike has a bell.", session="b")])
        library.apply(Plan(adds=(NewEntry(turn.text, (turn.seq,)),)))
        sort(library, Plan("consolidate", moves=(Move(7, "topics/vehicle", "Bike"),)))
        editor.write("- The psoriasis cream is in the blue box.\n- A line of my own.\n")
    assert forget(library, Wanted(finds=finding("blue box"))).receipt
    assert held(["blue box"], library.root) == {}
    assert "A line of my own." in (library.root / "topics/vehicle.md").read_text()
    assert errors(library) == []


def test_what_a_person_saves_meanwhile_is_taken_out_of_their_version_too(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = library.root / "topics/skin-matters.md"
    sort(library, Plan("consolidate", moves=(Move(5, "topics/skin-matters", "Bike"),)))
    real: Callable[[At, At], None] = disk.exchange
    saved = []

    def exchange(one: At, other: At) -> None:
        if not saved:
            saved.append(topic)
            text = topic.read_text().replace("Sees a doctor", "Often sees a doctor") + "\nprose of mine\n"
            topic.write_text(text)
        real(one, other)

    monkeypatch.setattr(disk, "exchange", exchange)
    done = forget(library, Wanted({3}))
    gone(library, done, SECRET, DRAWN, "Often sees a doctor in Évora")
    assert saved
    assert any("prose of mine" in text.decode() for text in tree(library.root).values())


def test_a_git_repository_is_named_with_the_command_for_its_history(library: Library, tmp_path: Path) -> None:
    assert forget(library, Wanted({5})).history == ""
    (tmp_path / ".git").mkdir()
    for found in (preview_forget(library, Wanted({3})), forget(library, Wanted({3}))):
        assert "git keeps what earlier commits held" in found.history
        assert "git filter-repo --force --invert-paths" in found.history
        assert "--path memory/topics/skin-matters.md" in found.history
        assert "--path memory/evidence/2025-03-03-s.md" in found.history


def test_nobody_waits_for_git_to_answer(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".git").mkdir()

    def ask(_: Path) -> None:
        with library.files.exclusive(0.0):
            raise GitUnusable("asked")

    monkeypatch.setattr("infinimem.operations.forget.forget.Repository", ask)
    assert "(git did not say" in forget(library, Wanted({3})).history


# ── crashes ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("step", [23, pytest.param(1, marks=pytest.mark.soak)])
def test_after_a_crash_anywhere_it_is_finished(
    tmp_path: Path, cache: Path, library: Library, step: int
) -> None:
    """The next look at the library finishes it; where nothing had changed yet, asking again does."""
    dirty(library, cache)
    texts = (SECRET, DRAWN, "Sees a doctor in Évora", "treats my psor")
    kept = tmp_path / "kept"
    shutil.copytree(library.root, kept / "memory")
    shutil.copytree(cache, kept / "cache")

    def again() -> Library:
        for name in ("memory", "cache"):
            shutil.rmtree(tmp_path / name, ignore_errors=True)
            copy(kept / name, tmp_path / name)
        return Library(tmp_path / "memory", lambda: START)

    opened = again()
    with hooked(nothing) as calls:
        forget(opened, Wanted({4}))
    whens: tuple[When, ...] = ("before", "half", "after")
    finished = 0
    for point in range(0, len(calls) * len(whens), step):
        number, when = 1 + point // len(whens), whens[point % len(whens)]
        opened = again()
        with hooked(die(number, when)), pytest.raises(Crash):
            forget(opened, Wanted({4}))
        with hooked(nothing):
            after = Library(library.root, lambda: START)
            if after.view().entry(4) is not None:
                forget(after, Wanted({4}))
            else:
                finished += 1
            where = f"{when} call {number}, {calls[number - 1]}"
            assert held(texts, library.root) == {}, where
            assert errors(after) == [], where
            assert {place.seq for place in after.view().entries("all")} == {2, 5}, where
    assert finished > len(calls) / step / 2, "few crashes came after the commit"
