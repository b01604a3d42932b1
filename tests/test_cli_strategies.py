"""--strategy and rebuild: which system keeps a library, and deriving anew what it derived."""

from __future__ import annotations

from pathlib import Path

from cli_runner import Shell

SAID = ("I moved to Lisbon in March.", "My sister Ana is allergic to peanuts.")


def told(shell: Shell) -> Shell:
    for text in SAID:
        assert shell("add", text, "--session", "s1").code == 0
    return shell


def derived(shell: Shell, folder: str) -> dict[str, bytes]:
    root = Path(shell.library)
    return {path.name: path.read_bytes() for path in sorted((root / folder).glob("*.md"))}


def test_a_library_remembers_who_keeps_it(shell: Shell) -> None:
    assert shell("--strategy", "allmem", "init").code == 0
    assert 'strategy = "allmem"' in (shell.library / "infinimem.toml").read_text().splitlines()
    assert not (shell.library / "topics").exists() and not (shell.library / "CURRENT.md").exists()
    told(shell)
    assert shell("status", "--json").json["strategy"] == "allmem"
    assert sorted(derived(shell, "allmem/units")) == ["u-000001.md", "u-000002.md"]


def test_what_is_kept_by_one_can_be_kept_by_another_too(shell: Shell) -> None:
    assert shell("init").code == 0
    told(shell)
    assert shell("consolidate").code == 0
    topics = derived(shell, "topics")
    done = shell("rebuild", "--strategy", "allmem", "--json").json
    assert done["strategy"] == "allmem" and done["evidence"] == 2 and done["receipts"]
    assert len(derived(shell, "allmem/units")) == 2
    assert derived(shell, "topics") == topics
    assert shell("status", "--json").json["strategy"] == "infini"
    found = shell("retrieve", "peanuts", "--strategy", "allmem", "--json").json["items"]
    assert found[0]["doc_id"].startswith("evidence/") and "peanuts" in found[0]["text"]
    assert shell("retrieve", "peanuts", "--json").json["items"][0]["doc_id"].startswith("topics/")


def test_rebuild_of_plain_notes_is_refused(shell: Shell) -> None:
    (shell.library / "mine.md").write_text("# Mine\n")
    refused = shell("rebuild", "--library", str(shell.library))
    assert refused.code == 1 and "infinimem init" in refused.err
