"""What is forgotten is nowhere: every byte of library and cache is searched, in every form of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fault_disk import Crash, When, die, hooked, nothing
from fault_library import problems, tree
from forget_library import held

from infinimem.errors import LibraryError, UsageError
from infinimem.model import Derived, Move, NewEntry, Plan, Reason, RejectedReply, Turn, Withheld
from infinimem.operations.as_of import as_of, moment
from infinimem.operations.forget.choice import Wanted
from infinimem.operations.forget.forget import Forgotten, forget, forgotten, preview_forget
from infinimem.operations.undo import undo
from infinimem.store import disk
from infinimem.store.create import init
from infinimem.store.disk import At
from infinimem.store.library import Library
from infinimem.store.outcome import Applied
from infinimem.store.state import rejected, withheld

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


def gone(library: Library, done: Forgotten, *texts: str) -> None:
    assert held(texts, library.root) == {}
    assert (done.left, done.rows) == ((), ())
    assert errors(library) == []
    assert not (library.root / ".infinimem/forgetting").exists()


# ── what goes ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("seq", [1, 3, 4])
def test_a_line_goes_with_its_evidence_and_all_that_was_drawn_from_that(library: Library, seq: int) -> None:
    kept = [place for place in library.view().entries("all") if place.seq in (2, 5)]
    shown = preview_forget(library, Wanted({seq}))
    assert [(row.seq, row.doc_id) for row in shown.rows] == [
        (1, "evidence/2025-03-03-s"),
        (4, "topics/skin-matters"),
        (3, "topics/skin-matters"),
    ] or {row.seq for row in shown.rows} == {1, 3, 4}
    done = forget(library, Wanted({seq}))
    assert done.seqs == (1, 3, 4)
    gone(library, done, SECRET, DRAWN, "Sees a doctor in Évora", "psoriasis", "Psoriasis", "psoriasis of Ana")
    assert {p.seq: p.entry.line for p in library.view().entries("all")} == {p.seq: p.entry.line for p in kept}


def test_the_receipt_has_numbers_and_places_and_no_word(library: Library) -> None:
    receipt = forget(library, Wanted({3})).receipt
    assert receipt is not None
    assert [(row.seq, row.was, row.now, row.why) for row in receipt.rows] == [
        (1, "evidence/2025-03-03-s", "-", "forgotten"),
        (3, "topics/skin-matters", "-", "forgotten"),
        (4, "topics/skin-matters", "-", "forgotten"),
    ]
    assert (receipt.quoted, receipt.notes) == ((), ())
    text = (library.root / f"{receipt.id}.md").read_text()
    assert [
        word for word in ("Vu", "vora", "octor", "soria", "treats", "Ana", "Second") if word in text
    ] == []
    assert forgotten(library.receipts()) == {1: 2, 3: 2, 4: 2}


def test_the_seq_is_never_given_again(library: Library) -> None:
    forget(library, Wanted({5}))
    for name in ("seq", "seq.given", "drawn", "seen"):
        (library.root / ".infinimem" / name).unlink(missing_ok=True)
    (told,) = Library(library.root).record([Turn("new")])
    assert told.seq > 5


def test_a_topic_that_keeps_lines_speaks_of_those_alone(library: Library) -> None:
    derived = Derived("topics/skin-matters", "Skin trouble, and a red bike", (3, 4, 5))
    move = Move(5, "topics/skin-matters", "Bike")
    sort(library, Plan("consolidate", moves=(move,), derived=(derived,)))
    edit(library, "topics/skin-matters", "# Bike", "# Psoriasis and bike")
    edit(library, "topics/skin-matters", "summary:", "title: Skin matters\nsummary:")
    done = forget(library, Wanted({1}))
    gone(library, done, SECRET, DRAWN, "psoriasis", "Psoriasis", "Skin trouble")
    text = (library.root / "topics/skin-matters.md").read_text()
    assert text.startswith(
        "---\nid: topics/skin-matters\ntitle: Skin matters\nsummary: Skin matters\ntoken_count: "
    )
    assert "\naux: {from: 5}\n" in text
    assert "\n# Skin matters\n- <seq=5," in text
    assert library.adopt_edits() is None


def test_a_header_that_cannot_be_read_is_taken_line_by_line(library: Library) -> None:
    sort(library, Plan("consolidate", moves=(Move(5, "topics/skin-matters", "Bike"),)))
    broken = "odd: [\nsummary:"
    edit(library, "topics/skin-matters", "summary:", broken)
    forget(library, Wanted({1}))
    assert held((SECRET, DRAWN, "psoriasis", "Psoriasis"), library.root) == {}
    text = (library.root / "topics/skin-matters.md").read_text()
    assert "\nodd: [\nsummary: (forgotten)\n" in text


def test_a_summary_that_was_made_of_a_line_goes_even_where_it_has_no_word_of_it(library: Library) -> None:
    derived = (Derived("topics/skin-matters", "medical matters", (3, 4, 5)),)
    move = Move(5, "topics/skin-matters", "Bike")
    sort(library, Plan("consolidate", moves=(move,), derived=derived))
    away = (Move(3, "topics/away", "Away"), Move(4, "topics/away", "Away"))
    sort(library, Plan("split", moves=away))
    assert "medical matters" in (library.root / "topics/skin-matters.md").read_text()
    done = forget(library, Wanted({3}))
    gone(library, done, SECRET, DRAWN, "medical matters")


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


def test_new_lines_and_copies_lead_back_to_the_same_turn(library: Library) -> None:
    sort(library, Plan("consolidate", adds=(NewEntry("Skin: Dr. Vu", (3,), to="topics/skin"),)))
    line = next(p.entry.line for p in library.view().document("topics/vehicle").entries)
    (library.root / "topics/copy.md").write_text(f"{line}\n")
    library.adopt_edits()
    assert 6 in forget(library, Wanted({4})).seqs
    done = forget(library, Wanted({2}))
    assert 7 in done.seqs
    gone(library, done, SECRET, DRAWN, "Skin: Dr. Vu", PLAIN)


@pytest.mark.parametrize("stamped", [True, False])
def test_a_copied_evidence_file_goes_with_the_first(library: Library, stamped: bool) -> None:
    said = library.root / "evidence/2025-03-03-s.md"
    said.with_name("2025-03-03-s (1).md").write_bytes(said.read_bytes())
    if stamped:
        library.adopt_edits()
    forget(library, Wanted({1}))
    assert held((SECRET, DRAWN), library.root) == {}
    library.adopt_edits()
    assert errors(library) == []


def test_what_a_person_typed_is_shown_without_a_number_and_goes(library: Library) -> None:
    (library.root / "topics/typed.md").write_text("- Ana hides the key under the mat\n- tea\n")
    wanted = Wanted(finds=finding("hides the key"))
    (row,) = preview_forget(library, wanted).rows
    assert (row.seq, row.doc_id, row.line) == (None, "topics/typed", 1)
    done = forget(library, wanted)
    gone(library, done, "Ana hides the key under the mat")
    assert (library.root / "topics/typed.md").read_text() == "<!-- forgotten: 6 -->\n- tea\n"
    assert done.seqs == (6,)
    assert library.adopt_edits() is not None
    assert [p.seq for p in library.view().document("topics/typed").entries] == [7]


def test_a_damaged_signature_hides_nothing(library: Library) -> None:
    edit(library, "topics/skin-matters", "<seq=3,source=user", "<seq=3,source=me")
    done = forget(library, Wanted({1}))
    gone(library, done, SECRET, DRAWN)


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
    rejected.keep(files, [reply], "now")
    held_back = Withheld(Move(4, "topics/skin-matters", "Psoriasis", "superseded", 3), Reason("PROTECTED"))
    withheld.keep(files, 1, [held_back], library.view().entry)
    (root / ".infinimem/plans").mkdir()
    (root / ".infinimem/plans/0001.json").write_text('{"heading": "what ails them"}')  # an earlier version's
    conflicts = root / ".infinimem/conflicts"
    conflicts.mkdir(exist_ok=True)
    (conflicts / "0001-ab-topics-skin-matters.md").write_text(
        f"---\nsummary: psoriasis\n---\n# Psoriasis\n- <seq=3> {DRAWN} later\n- <seq=5,source=user> {PLAIN}\n"
    )
    (conflicts / "torn-CURRENT.md").write_text('- <seq=3,source=user> Dr. "Vu" treats my psor')
    (conflicts / "0002-cd-evidence-2025-03-03-s.md").write_text(
        f"- <seq=1> {SECRET.replace(chr(10), chr(10) + '  ')}\n"
    )
    for place in ("", "topics/", "evidence/", "journal/", ".infinimem/"):
        (root / f"{place}.infinimem.new").write_text(f"half of {SECRET}")
    (root / ".infinimem/tx/0099").mkdir(parents=True)
    (root / ".infinimem/tx/0099/1.bin").write_text(SECRET)
    (root / ".infinimem/later.json").write_text(json.dumps({"any": [SECRET]}))
    (root / ".infinimem/append").write_text(f"-\n{SECRET[:35]}")
    (cache / "infinimem/index.json").write_text(json.dumps(SECRET))
    (cache / "infinimem.17.gone").mkdir()  # another forget was stopped here
    (cache / "infinimem.17.gone/index.json").write_text(json.dumps(SECRET))


def test_nothing_is_left_wherever_it_stood(library: Library, cache: Path) -> None:
    dirty(library, cache)
    texts = (SECRET, DRAWN, "Sees a doctor in Évora", "soriasis", "treats my psor")
    before = held(texts, library.root)
    assert set(before) == set(texts)
    assert len(before["soriasis"]) > 15, "the library is not as dirty as it was meant to be"
    done = forget(library, Wanted({4}))
    assert done.seqs == (1, 3, 4)
    gone(library, done, *texts)
    (conflict,) = (library.root / ".infinimem/conflicts").iterdir()
    assert f"- <seq=5,source=user> {PLAIN}\n" in conflict.read_text()
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
    assert (row.seq, row.doc_id, row.text) == (5, "journal/0002-stamp", PLAIN)
    gone(library, forget(library, Wanted({5})), PLAIN)


def test_a_persons_note_is_named_and_left_alone(library: Library) -> None:
    note = library.root / "notes.md"
    note.write_text(f"# Mine\n{PLAIN} Indeed.\n")
    before = note.read_bytes()
    assert [item.path for item in preview_forget(library, Wanted({5})).left] == ["notes.md"]
    done = forget(library, Wanted({5}))
    assert [(item.path, item.why) for item in done.left] == [("notes.md", "a person's note: edit it")]
    assert note.read_bytes() == before
    assert set(held([PLAIN], library.root)[PLAIN]) == {"notes.md"}


def test_lines_that_say_the_same_in_their_own_right_are_named_and_stay(library: Library) -> None:
    library.record([Turn(f"Listen. {PLAIN} Truly.", session="t")])
    done = forget(library, Wanted({5}))
    assert (done.repeated, done.left) == ((6,), ())
    assert library.view().entry(6) is not None


def test_short_texts_are_told_from_parts_of_words(library: Library) -> None:
    library.record([Turn("Yes."), Turn("Yesterday it rained.")])
    done = forget(library, Wanted({6}))
    assert (done.left, done.repeated) == ((), ())


# ── nothing but that ────────────────────────────────────────────────────────────────────────────────


def test_a_dry_run_writes_nothing(library: Library, cache: Path) -> None:
    dirty(library, cache)
    (library.root / "topics/typed.md").write_text("- Vu\n")
    before = everything(library.root), everything(cache)
    with hooked(nothing) as calls:
        assert preview_forget(library, Wanted({4})).rows
        assert preview_forget(library, Wanted(finds=finding("Vu"))).rows
    assert calls == []
    assert (everything(library.root), everything(cache)) == before


def test_where_nothing_is_concerned_nothing_changes(library: Library) -> None:
    before = everything(library.root)
    assert forget(library, Wanted(finds=finding("giraffe"))) == Forgotten()
    assert everything(library.root) == before


def test_a_number_that_no_line_has_is_refused(library: Library) -> None:
    before = tree(library.root)
    with pytest.raises(UsageError, match="no line has seq 77"):
        forget(library, Wanted({5, 77}))
    assert tree(library.root) == before
    forget(library, Wanted({5}))
    with pytest.raises(UsageError, match=r"forgotten already: 5 \(receipt 2\)"):
        forget(library, Wanted({5}))


def test_it_cannot_be_undone_itself(library: Library) -> None:
    forget(library, Wanted({5}))
    before = tree(library.root)
    with pytest.raises(LibraryError, match="cannot be undone: what was forgotten is gone"):
        undo(library, "2")
    assert tree(library.root) == before
    undo(library)
    assert {place.seq for place in library.view().document("CURRENT").entries} == {3, 4}
    assert "<!-- forgotten: 5 -->" in (library.root / "CURRENT.md").read_text()


def test_the_past_is_as_it_was_but_for_what_is_forgotten(library: Library) -> None:
    sort(library, Plan("split", moves=(Move(5, "topics/wheels", "Bike"),)))

    def at(name: str) -> dict[int, str]:
        view = library.view()
        found = as_of(view, moment(view, name))
        return {p.seq: p.doc_id for scope in ("default", "evidence") for p in found.entries(scope)}  # type: ignore[arg-type]

    then = {name: at(name) for name in ("2", "5", "journal/0001-consolidate")}
    forget(library, Wanted({3}))
    for name, stood in then.items():
        assert at(name) == {seq: doc_id for seq, doc_id in stood.items() if seq in (2, 5)}


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


# ── crashes ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("step", [23, pytest.param(1, marks=pytest.mark.soak)])
def test_after_a_crash_anywhere_it_is_finished(
    tmp_path: Path, cache: Path, library: Library, step: int
) -> None:
    """The next look at the library finishes it; where nothing had changed yet, asking again does."""
    dirty(library, cache)
    texts = (SECRET, DRAWN, "Sees a doctor in Évora", "soriasis")
    kept = tmp_path / "kept"
    shutil.copytree(library.root, kept / "memory")
    shutil.copytree(cache, kept / "cache")

    def again() -> Library:
        for name in ("memory", "cache"):
            shutil.rmtree(tmp_path / name, ignore_errors=True)
            shutil.copytree(kept / name, tmp_path / name)
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
