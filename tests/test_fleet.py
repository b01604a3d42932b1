"""Many libraries on real engines: append, consolidate, ask, forget, export; and what is refused."""

from __future__ import annotations

import io
import stat
import time
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cli_runner import Shell
from fleet_engines import Engines
from fleet_library import Thinking, another, drain, fact, faulty, made, problems, texts, turn, worker
from fleet_library import fleet as fleet
from fleet_library import psycopg as psycopg

from infinimem import Turn
from infinimem.errors import InfinimemError, LibraryError, UsageError
from infinimem.fleet import home
from infinimem.fleet.fleet import Fleet, open_fleet, to_lines
from infinimem.fleet.home import MAX_OBJECT, ulid, unpack

SAID = ("I moved to Lisbon in March.", "My sister is called Rita.")


def test_what_is_appended_is_consolidated_and_found(fleet: Fleet) -> None:
    for text in SAID:
        assert fleet.append("anna", [Turn(text)])
    fleet.append("bert", [Turn("I am allergic to peanuts.")])
    assert fleet.status()["due"] == 2
    drain(fleet)
    assert problems(fleet, {"anna": list(SAID), "bert": ["I am allergic to peanuts."]}) == []
    with fleet.open("anna") as memory:
        assert "Lisbon" in memory.ask("Where did I move to?").text
        with pytest.raises(LibraryError, match="read-only"):
            memory.observe([Turn("No.")])


def test_a_key_makes_an_append_count_once(fleet: Fleet) -> None:
    fleet.append("anna", [turn(1), turn(2)], key="request-7")
    drain(fleet)
    fleet.append("anna", [turn(1), turn(2)], key="request-7")
    fleet.append("anna", [turn(3)], key="request-8")
    fleet.append("anna", [turn(3)], key="request-8")
    drain(fleet)
    assert texts(fleet, "anna") == [fact(1), fact(2), fact(3)]


def test_an_unchanged_library_opens_with_one_conditional_get(fleet: Fleet) -> None:
    fleet.append("anna", [turn(1)])
    drain(fleet)
    texts(fleet, "anna")
    store = faulty(fleet)
    assert texts(fleet, "anna") == [fact(1)]
    assert store.calls == ["get"]


# ── the fence ───────────────────────────────────────────────────────────────────────────────────


class Meanwhile(Thinking):
    """Somebody else does something while the model thinks for the first time."""

    def __init__(self, act: Callable[[], object]) -> None:
        super().__init__(0)
        self._act = act

    def complete(self, *question: Any) -> Any:
        act, self._act = self._act, lambda: None
        act()
        return super().complete(*question)


def test_who_comes_second_makes_it_anew_and_asks_nothing_twice(fleet: Fleet, tmp_path: Path) -> None:
    """A person's edit is committed while a worker's model thinks: it stands, and no question is put again."""
    fleet.append("anna", [turn(1)])
    drain(fleet)
    fleet.export("anna", tmp_path / "out")
    (tmp_path / "out" / "notes.md").write_text("# A note of mine\n")
    fleet.append("anna", [turn(2)])
    alone = Thinking(0)
    llm = Meanwhile(lambda: fleet.import_("anna", tmp_path / "out"))
    with another(fleet, tmp_path / "other", llm) as other:
        other.serve("anna")
    fleet.append("bert", [turn(2)])
    with another(fleet, tmp_path / "alone", alone) as other:
        other.serve("bert")
    with fleet.open("anna") as memory:
        assert "notes" in memory.view
    drain(fleet)
    assert problems(fleet, {"anna": [fact(1), fact(2)]}) == []
    assert llm.calls == alone.calls > 0


def test_what_is_in_the_head_is_not_taken_from_the_inbox_again(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All died between the commit and the deletion; the turn was forgotten meanwhile, and stays so."""
    fleet.append("anna", [turn(1), turn(2)])
    (name,) = fleet.home.look("anna").inbox
    with monkeypatch.context() as patch:
        patch.setattr(fleet.home, "drop", lambda *some: None)
        fleet.serve("anna")
        fleet.forget("anna", match="number 1 ")
    assert name in fleet.home.look("anna").inbox
    head = fleet.home.fetch("anna")
    assert head is not None and name in head.taken
    drain(fleet)
    assert fleet.home.look("anna").inbox == []
    assert texts(fleet, "anna") == [fact(2)]


# ── who is due ──────────────────────────────────────────────────────────────────────────────────


def test_the_database_holds_no_text(fleet: Fleet) -> None:
    fleet.append("anna", [Turn("The password of the safe is heliotrope.", session="secretive")])
    fleet.append("bert", [Turn("x", role="user")])
    with psycopg.connect(fleet.database) as connection:
        rows = connection.execute("SELECT * FROM procrastinate_jobs").fetchall()
        rows += connection.execute("SELECT * FROM procrastinate_events").fetchall()
    assert "anna" in str(rows)
    assert "heliotrope" not in str(rows) and "secretive" not in str(rows)


def test_a_lost_database_is_made_again_from_the_store(fleet: Fleet) -> None:
    for number in range(6):
        fleet.append(f"l{number % 3}", [turn(number)])
    with psycopg.connect(fleet.database, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    assert not fleet.append("l0", [turn(6)])
    fleet.init()
    assert fleet.requeue() == 3
    drain(fleet)
    said = {f"l{one}": [fact(number) for number in range(6) if number % 3 == one] for one in range(3)}
    said["l0"].append(fact(6))
    assert problems(fleet, said) == []


# ── people ──────────────────────────────────────────────────────────────────────────────────────


def test_what_was_edited_outside_comes_back_unless_the_library_changed_meanwhile(
    fleet: Fleet, tmp_path: Path
) -> None:
    fleet.append("anna", [turn(1)])
    drain(fleet)
    for name in ("a", "b"):
        fleet.export("anna", tmp_path / name)
        current = tmp_path / name / "CURRENT.md"
        current.write_text(current.read_text() + "- I typed this.\n")
        (tmp_path / name / "notes.md").write_text("# Mine\n")
    assert fleet.import_("anna", tmp_path / "a") == 2
    fleet.append("anna", [turn(2)])
    drain(fleet)
    before = fleet.home.fetch("anna")
    with pytest.raises(LibraryError, match=r"the library changed since .* export anew"):
        fleet.import_("anna", tmp_path / "b")
    assert fleet.home.fetch("anna") == before
    fleet.append("anna", [turn(3)])
    drain(fleet)
    with fleet.open("anna") as memory:
        assert "notes" in memory.view
    head = fleet.home.fetch("anna")
    assert head is not None and head.files["CURRENT.md"].count(b"I typed this.") == 1
    assert problems(fleet, {"anna": [fact(1), fact(2), fact(3)]}) == []


def test_a_folder_comes_in_as_a_new_library_and_over_no_other(fleet: Fleet, tmp_path: Path) -> None:
    from infinimem import open_memory

    with pytest.raises(LibraryError, match=r"has no infinimem\.toml"):
        (tmp_path / "empty").mkdir()
        fleet.import_("carl", tmp_path / "empty")
    open_memory(tmp_path / "carl", model="offline", create=True).observe([turn(1)])
    assert fleet.import_("carl", tmp_path / "carl") > 3
    assert texts(fleet, "carl") == [fact(1)]
    with pytest.raises(LibraryError, match="only what was exported from it"):
        open_memory(tmp_path / "dora", model="offline", create=True)
        fleet.import_("carl", tmp_path / "dora")
    with pytest.raises(LibraryError, match="is not empty"):
        fleet.export("carl", tmp_path / "carl")
    (tmp_path / "carl" / "out").symlink_to(tmp_path)
    with pytest.raises(LibraryError, match="out is a link"):
        fleet.import_("erik", tmp_path / "carl")


def held(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def test_forgetting_covers_head_inbox_and_every_cache(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "I hid the heliotrope key in the cellar."
    fleet.append("anna", [Turn(secret), turn(1)])
    with worker(fleet, tmp_path / "killed", seconds=0):
        while b"heliotrope" not in held(tmp_path / "killed") or fleet.home.look("anna").inbox:
            time.sleep(0.05)
    other = another(fleet, tmp_path / "other")
    texts(other, "anna")
    assert b"heliotrope" in held(tmp_path / "other") and b"heliotrope" in held(tmp_path / "killed")
    fleet.append("anna", [Turn("The heliotrope key is gone."), turn(2)])
    fleet.home.append("anna", ulid(), b'{"heliotrope"')
    with other.open("anna"):  # it is in use meanwhile
        done = fleet.forget("anna", match="heliotrope")
        assert done.receipt is not None and not done.left
    monkeypatch.setattr(home, "SWEEP", 0)
    monkeypatch.setattr(home, "KEPT", 0)  # ten minutes later
    for one in (fleet, other, another(fleet, tmp_path / "killed")):
        one.append("bert", [turn(3)])
        drain(one)
    kept = [
        bytes(fleet.home.store.get(meta["path"]).bytes()) for some in fleet.home.store.list() for meta in some
    ]
    assert kept
    for data in (*kept, held(tmp_path)):
        assert b"heliotrope" not in data
    drain(fleet)
    assert problems(fleet, {"anna": [fact(1), fact(2)]}) == []


def test_versions_that_the_store_keeps_are_named(engines: Engines, tmp_path: Path) -> None:
    engines.operate("s3.bucket.create -name kept\ns3.bucket.versioning -name kept -enable")
    with made(replace(engines, bucket="kept"), tmp_path / "cache") as fleet:
        fleet.append("anna", [turn(1), turn(2)])
        drain(fleet)
        head = fleet.home.fetch("anna")
        assert head is not None and head.version
        (left,) = fleet.forget("anna", match="number 1 ").left
    assert left.path == f"{fleet.home.url}/anna/head.zip"
    assert head.version in left.why


# ── what is hostile ─────────────────────────────────────────────────────────────────────────────


def zipped(*entries: tuple[str, bytes, int], kind: int = zipfile.ZIP_STORED, comment: str = "") -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", kind) as made:
        for name, data, mode in entries:
            info = zipfile.ZipInfo("x")
            info.filename, info.compress_type, info.external_attr = name, kind, mode << 16
            made.writestr(info, data)
        made.comment = (comment or "infinimem fleet 1\nX").encode()
    return out.getvalue()


PLAIN = stat.S_IFREG | 0o644
HOSTILE = {
    "no zip": (b"PK nothing", "no zip"),
    "cut short": (zipped(("a.md", b"x" * 99, PLAIN))[:80], "no zip"),
    "another's zip": (zipped(("a.md", b"x", PLAIN), comment="hello"), "not one of a fleet"),
    "upwards": (zipped(("../../a.md", b"x", PLAIN)), "'../../a.md' leads out"),
    "from the root": (zipped(("/etc/a.md", b"x", PLAIN)), "'/etc/a.md' leads out"),
    "backslashes": (zipped(("..\\a.md", b"x", PLAIN)), "leads out"),
    "link": (
        zipped(("a.md", b"/etc/passwd", stat.S_IFLNK | 0o777)),
        "'a.md' is a link, a folder or a device",
    ),
    "device": (zipped(("a.md", b"", stat.S_IFCHR | 0o666)), "'a.md' is a link, a folder or a device"),
    "folder that is a link": (zipped(("a/", b"", stat.S_IFLNK | 0o777)), "leads out"),
    "git's hooks": (zipped((".git/hooks/post-commit", b"x", PLAIN)), "is a matter of one machine"),
    "a transaction": (zipped((".infinimem/tx/1/x", b"x", PLAIN)), "is a matter of one machine"),
    "a lock": (zipped((".infinimem/lock", b"x", PLAIN)), "is a matter of one machine"),
    "bomb": (zipped(("a.md", b"x" * 10**6, PLAIN), kind=zipfile.ZIP_DEFLATED), "packed"),
    "below a file": (zipped(("a", b"x", PLAIN), ("a/b/c", b"x", PLAIN)), "below a file"),
}


@pytest.mark.sample(2)
@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("name", [*HOSTILE, "twice", "on each other"])
def test_a_hostile_head_is_refused_by_name(name: str) -> None:
    if name == "twice":
        data, why = zipped(("a.md", b"x", PLAIN), ("a.md", b"y", PLAIN)), "'a.md' is there twice"
    elif name == "on each other":
        one = zipped(("a.md", b"x" * 10_000, PLAIN))
        at = one.index(b"PK\x01\x02")
        end = one.index(b"PK\x05\x06")
        entry = one[at:end]
        entries = b"".join(entry.replace(b"a.md", b"%c.md" % letter) for letter in b"abcd")
        count = (4).to_bytes(2, "little")
        tail = one[end : end + 8] + count + count + len(entries).to_bytes(4, "little") + one[end + 16 :]
        data, why = one[:at] + entries + tail, "lie on each other"
    else:
        data, why = HOSTILE[name]
    with pytest.raises(LibraryError, match="head") as refused:
        unpack(data, "x")
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)


def test_who_is_hostile_hinders_no_other(fleet: Fleet) -> None:
    for number in range(3):
        fleet.append(f"l{number}", [turn(number)])
    fleet.home.store.put("l1/head.zip", zipped(("../../a.md", b"x", PLAIN)))
    fleet.home.store.put("l2/inbox/readme.txt", b"hello")
    for data in (b"\xff\xfe", b"[]\n", b'{"text": "x", "rank": "y"}\n', b'{"text": ""}\n', b"[" * 100_000):
        fleet.home.append("l2", ulid(), data)
    line = to_lines([turn(9)])
    fleet.home.append("l2", ulid(), line * (MAX_OBJECT // len(line) + 1))
    drain(fleet)
    assert fleet.status()["failed"] == 1
    assert problems(fleet, {"l0": [fact(0)], "l2": [fact(2)]}) == []
    assert len(fleet.home.look("l2").refused) == 6
    with pytest.raises(LibraryError, match=r"'\.\./\.\./a\.md' leads out"), fleet.open("l1"):
        pass


def test_a_library_decides_nothing_about_the_model(engines: Engines, tmp_path: Path, fleet: Fleet) -> None:
    """Its settings name a model and a server: neither is asked, by a worker or for a question."""
    fleet.append("anna", [turn(1)])
    drain(fleet)
    fleet.export("anna", tmp_path / "out")
    settings = tmp_path / "out" / "infinimem.toml"
    settings.write_text('format = 1\n[llm]\nmodel = "theirs"\nbase_url = "http://127.0.0.1:9/v1"\n')
    fleet.import_("anna", tmp_path / "out")
    fleet.append("anna", [turn(2)])
    drain(fleet)
    assert problems(fleet, {"anna": [fact(1), fact(2)]}) == []
    with fleet.open("anna") as memory:
        assert memory.llm.name == "offline"
        assert memory.library.configuration.suspended


# ── what is wrong with a call ───────────────────────────────────────────────────────────────────


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ["", "..", ".hidden", "a/b", "a b", "é", "x" * 129, "a\n", None])
def test_a_name_that_is_none_is_refused(name: Any, tmp_path: Path) -> None:
    found = open_fleet("s3://bucket/p", database="", cache=tmp_path, model="offline")
    with pytest.raises(UsageError, match="is no name for a library"):
        found.append(name, [turn(1)])


def test_bad_input_is_one_line(fleet: Fleet, engines: Engines, tmp_path: Path) -> None:
    def line(act: Callable[[], object]) -> str:
        with pytest.raises(InfinimemError) as refused:
            act()
        assert "\n" not in str(refused.value)
        return str(refused.value)

    def opened(url: str, database: str = fleet.database) -> Fleet:
        return open_fleet(url, database=database, cache=tmp_path, model="offline")

    url = fleet.home.url
    assert "no such bucket" in line(lambda: opened("s3://nobody/x").append("a", [turn(1)]))
    assert "no such bucket" in line(opened("s3://nobody/x").requeue)
    assert "write s3://" in line(lambda: opened("http://x"))
    assert f"belongs to {url}" in line(opened(f"{url}x").status)
    assert "infinimem fleet init" in line(opened(url, engines.database).status)
    assert "database cannot be used" in line(opened(url, "postgresql://127.0.0.1:9/x").status)
    assert "the text is empty" in line(lambda: fleet.append("a", [Turn(" ")]))
    assert "there is no library nobody" in line(lambda: fleet.forget("nobody", match="x"))
    assert fleet.home.look("nobody").inbox == []
    assert "there is no library nobody" in line(lambda: fleet.export("nobody", tmp_path / "x"))
    with pytest.raises(LibraryError, match="there is no library nobody"), fleet.open("nobody"):
        pass
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
        assert "the store refuses the key" in line(lambda: opened(url).append("a", [turn(1)]))
        patch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with psycopg.connect(fleet.database, autocommit=True) as connection:
        connection.execute("COMMENT ON TABLE procrastinate_jobs IS NULL")
    assert "another program's jobs" in line(fleet.init)


def test_the_commands(
    engines: Engines, tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell("fleet", "status").failed(2, "set INFINIMEM_FLEET;")
    with made(engines, tmp_path / "cache") as fleet:
        monkeypatch.setenv("INFINIMEM_FLEET", fleet.home.url)
        monkeypatch.setenv("INFINIMEM_FLEET_DATABASE", fleet.database)
        monkeypatch.setenv("INFINIMEM_FLEET_CACHE", str(tmp_path / "cache"))
        assert shell("fleet", "init").out == f"{fleet.home.url} is ready\n"
        assert "kept for anna" in shell("fleet", "append", "anna", SAID[0]).out
        assert shell("fleet", "append", "anna", "-", "--json", input=SAID[1]).json["due"] is True
        shell("fleet", "status", "--library", "x").failed(2, "leave --library out")
        shell("fleet", "append", "../anna", "x").failed(2, "is no name for a library")
        told = shell("fleet", "status", "--json").json
        assert (told["due"], told["running"], told["failed"]) == (1, 0, 0)
        assert shell("fleet", "requeue").out == "1 library is due\n"
        assert shell("fleet", "worker", "--drain").code == 0
        assert "Lisbon" in shell("fleet", "ask", "anna", "Where did I move to?").out
        assert shell("fleet", "export", "anna", str(tmp_path / "out")).code == 0
        (tmp_path / "out" / "notes.md").write_text("# Mine\n")
        assert shell("fleet", "import", "anna", str(tmp_path / "out")).out == "1 file of anna changed\n"
        assert "would go" in shell("fleet", "forget", "anna", "Rita").out
        assert shell("fleet", "forget", "anna", "Rita", "--yes", "--json").json["forgotten"] is True
        assert texts(fleet, "anna") == [SAID[0]]
