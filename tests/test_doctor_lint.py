"""`lint`: what lines say that is worth a look; each check finds its case, and keeps silent beside it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cases import each
from cli_runner import Shell
from in_memory import LISBON, view_of

from infinimem.model import Finding
from infinimem.operations.doctor import lint as examine
from infinimem.settings import Settings

SAMPLE = Path(__file__).parents[1] / "sample_library"


def topic(*lines: str, name: str = "topics/home") -> dict[str, str]:
    """A topic; a line is its signature's fields and text, "time=… speaker=…|text"."""
    rows = []
    for seq, line in enumerate(lines, 41):
        fields, _, text = line.rpartition("|")
        signed = {"time": "", "source": "user", **dict(part.split("=") for part in fields.split())}
        given = ",".join(f"{key}={value}" for key, value in signed.items() if value)
        rows.append(f"- <seq={seq},{given}> {text}")
    return {name: "\n".join(["---", f"id: {name}", "---", "# Things", *rows, ""])}


def found(files: Mapping[str, str], words: str = "", settings: Settings | None = None) -> list[Finding]:
    return [one for one in examine(view_of(files, settings)) if words in f"{one.what} {one.fix}"]


# ── secrets ─────────────────────────────────────────────────────────────────────────────────────

# Put together here, so that no scanner of this repository stumbles over them.
KEYS = {
    "AWS Access Key": "AKIA" + "Z7Q2MD4KX9PLW3VT",
    "Private Key": "-----BEGIN OPENSSH " + "PRIVATE KEY-----",
}
SCANNED = {
    "GitHub Token": "ghp_" + "k3Jd8sLq0ZpX7vBn2MwRt5Yc9HfGa4Ue1Ti6",
    "Slack Token": "xoxb-" + "123456789012-1234567890123-k3jd8slq0zpx7vbn2mwrt5yc",
    "Stripe Access Key": "sk_live_" + "k3Jd8sLq0ZpX7vBn2MwRt5Yc",
    "Basic Auth Credentials": "https://nora:" + "k3Jd8sLq@example.org/",
}


@each(("kind", "secret"), [*KEYS.items(), *SCANNED.items()])
def test_a_secret_is_told_wherever_it_stands_and_printed_nowhere(kind: str, secret: str) -> None:
    plain = secret.split()[-1]
    entry = f"speaker=Ana|Please note: {secret} thanks"
    files = {
        **topic(entry, entry),
        "notes/plan": f"# Plan\n\ntext\n{secret}\n",
        "journal/0001-consolidate": f"---\nid: journal/0001-consolidate\n---\n## As it was\n\n    {secret}\n",
    }
    all_found = examine(view_of(files))
    told = {(one.where, one.level) for one in all_found if one.what == f"looks like a secret: {kind}"}
    places = {"topics/home:5", "topics/home:6", "notes/plan:4", "journal/0001-consolidate:6"}
    assert {(where, "error") for where in places} <= told
    assert not any(plain in f"{one.what} {one.where} {one.fix}" for one in all_found)
    assert any("forget --seq 41 " in one.fix for one in all_found)


def test_a_secret_in_a_files_name_is_not_shown_either() -> None:
    key = KEYS["AWS Access Key"]
    told = found({f"notes/{key}": f"the key {key}\n"})
    assert [(one.level, one.where) for one in told] == [("error", "notes"), ("error", "notes/…:1")]
    assert not any(key in f"{one.what} {one.where} {one.fix}" for one in told)


@each(
    "text",
    [
        "The password is wrong again, and my PIN is safe with me.",
        "Store it as sk-ant-… in the environment; password: <yours>; https://user:password@example.org/",
        "AKIA" + "IOSFODNN7EXAMPLE is the key of the documentation",
        "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 of the file, 192.168.1.17",
        "We met at 10:30, room B2, order 4711-0815, ISBN 978-3-16-148410-0.",
    ],
)
def test_what_is_no_secret_is_none(text: str) -> None:
    assert found({"notes/plan": text}) == []


# ── times, growth, duplicates, names ────────────────────────────────────────────────────────────


def test_a_library_in_order_has_no_findings() -> None:
    assert found(LISBON) == []


# ── the command ─────────────────────────────────────────────────────────────────────────────────


def test_the_command_fails_on_errors_only_and_writes_nothing(shell: Shell) -> None:
    assert shell("--library", str(SAMPLE), "lint").code == 0
    (shell.library / "note.md").write_text(f"key {KEYS['AWS Access Key']}\n")
    (shell.library / "C#.md").write_text("text\n")
    before = shell.tree()
    ran = shell("--library", ".", "lint")
    assert ran.code == 1
    assert ran.out.splitlines()[0].startswith("error\tnote:1\tlooks like a secret: AWS Access Key\t")
    assert ran.out.splitlines()[1].startswith("note\tC#\t")
    assert "1 error, 1 note" in ran.err
    told = shell("--library", ".", "--json", "lint").json
    assert set(told) == {"findings", "scanner"}
    assert {key for row in told["findings"] for key in row} == {"level", "what", "where", "fix"}
    assert KEYS["AWS Access Key"] not in ran.out + ran.err + str(told)
    assert shell.tree() == before
