"""Commands that look after a library: status, doctor, sync, lint, config, trust, watch, completion."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Any

import click
from click.shell_completion import get_completion_class

from infinimem import user_folders as book
from infinimem.cli.locate import configuration_of
from infinimem.cli.options import COMPLETION, TABLES, Options, command
from infinimem.cli.output import Output, ago, as_json
from infinimem.errors import FormatTooNew, LibraryError, SettingsError, UsageError, escape
from infinimem.model import KINDS, Finding
from infinimem.results import counted
from infinimem.settings import SETTINGS, Configuration, defaults, host_of, often, shown

_LABELS = TABLES["labels"] | {
    f"unanswered {kind.replace('_', ' ')}": f"turns without a usable answer: {why}"
    for kind, why in KINDS.items()
}


@command()
def status(options: Options) -> None:
    """How full the buffer is, what awaits review, and the model in use."""
    out, counts = options.out, options.status()
    out.result(counts, lambda: out.table(("what", "value"), _rows(counts, ago if out.for_people else str)))
    if not counts.get("inbox", {"approve": True})["approve"]:
        out.say("approve is off, and what awaits approval still does, until infinimem review approves it")


def _rows(
    counts: Mapping[str, Any], time: Callable[[str], str], prefix: str = ""
) -> Iterator[tuple[str, object]]:
    for name, value in counts.items():
        label = f"{prefix}{name}".replace("_", " ")
        if isinstance(value, Mapping):
            yield from _rows(value, time, f"{label} ")
        elif isinstance(value, bool):
            yield label, "yes" if value else "no"
        elif name == "time":
            yield label, time(value)
        else:
            yield _LABELS.get(label, label), "-" if value is None else value


@command()
@click.option("--fix", is_flag=True, help="Repair what can be repaired without losing text.")
def doctor(options: Options, fix: bool) -> None:
    """Exit code 1 if there are errors (notes are no errors).

    Nothing is written without --fix; each finding says what --fix would do about it.
    """
    out = options.out
    fixed: list[Finding] = []
    with out.progress("Checking"):
        try:
            memory = options.reading()
            if fix:
                fixed = memory.repair()
            findings = memory.doctor()
        except (SettingsError, FormatTooNew) as error:  # nothing can be checked under unknown settings
            findings = [Finding("error", str(error), "infinimem.toml")]
    data = {"findings": [asdict(finding) for finding in findings]}
    if fix:
        data["fixed"] = [asdict(finding) for finding in fixed]
    fixes = sum(bool(finding.fix) for finding in findings)
    note = f"infinimem doctor --fix repairs {fixes} of them, and loses nothing" if fixes else ""
    out.result(data, lambda: _show_findings(out, findings, fixed, advice="--fix: "))
    _end(out, findings, note)


@command()
@click.argument("remote", metavar="[REMOTE]", required=False)
@click.option("--dry-run", is_flag=True, help="Only show which lines would come and go.")
def sync(options: Options, remote: str | None, dry_run: bool) -> None:
    """Commits the library's files, fetches, merges and pushes the branch that is checked out. Nothing else
    pushes.

    In a folder that is shared by other means it merges what those left, such as conflict copies.
    """
    from infinimem.operations.sync import sync as synced

    out = options.out
    with out.progress("Syncing"):
        memory = options.reading()
        done = synced(memory.library, memory.faulty_records, remote or "", dry_run)
    rows = [("came", *line) for line in done.came.items()] + [("went", *line) for line in done.went.items()]
    data = {**done._asdict(), "came": {**done.came}, "went": {**done.went}}
    out.result(data, lambda: out.table((), rows))
    would = "would come" if dry_run else "came"
    told = f"{counted(len(done.came), 'line')} {would}, {len(done.went)} {'would go' if dry_run else 'went'}"
    if not done.unsettled:
        out.say(told if done.where else "in no git repository; what other programs left is merged")
    for receipt in done.receipts:
        out.say(f"mended; infinimem undo {receipt.removeprefix('journal/')} takes it back")
    if done.unsettled:
        files = ", ".join(done.unsettled)
        raise LibraryError(f"both sides changed {files}: settle it, git add it, and run infinimem sync again")


@command("git-setup")
@click.option("--yes", is_flag=True, help="Do not ask.")
def git_setup(options: Options, yes: bool) -> None:
    """Git then calls `infinimem merge-file` for the program's own files, in this clone, whoever merges.

    Shows what it would write into .gitattributes and .git/config, and asks; in a pipe it only shows.
    """
    from infinimem.operations.sync import set_up, set_up_rows

    out, rows = options.out, set_up_rows()
    if not out.as_json:
        out.table((), rows)
    agreed = yes or out.confirms("Write it?")
    if agreed:
        set_up(options.place().path)
        options.reading().library.adopt_edits()  # from here on an edit is one
    out.result({"rows": rows, "written": agreed})
    out.say("written; commit .gitattributes" if agreed else "not written; add --yes to write it")


@command("merge-file")
@click.argument("base", type=click.Path(path_type=Path))
@click.argument("ours", type=click.Path(path_type=Path))
@click.argument("theirs", type=click.Path(path_type=Path))
@click.argument("name", metavar="[PATH]", required=False)
def merge_file(options: Options, base: Path, ours: Path, theirs: Path, name: str | None) -> None:
    """The result is written to OURS. PATH is where the file lies in the library; it is taken from the header
    where it is not given."""
    from infinimem.operations.sync import merge_versions

    merge_versions(name, base, ours, theirs)


@command()
def lint(options: Options) -> None:
    """Also for doubtful times and overgrown topics.

    Nothing is written, and no line is quoted: a finding says where to look. Exit code 1 if there are errors
    (secrets); notes are no errors. What breaks the format, `doctor` finds.
    """
    from infinimem.operations.doctor import lint as lint_view
    from infinimem.operations.doctor import scanner

    out = options.out
    with out.progress("Looking"):
        findings = lint_view(options.reading().view)
    name = "detect-secrets" if scanner() else None
    data = {"findings": [asdict(finding) for finding in findings], "scanner": name}
    out.result(data, lambda: _show_findings(out, findings))
    missing = "secrets were not looked for; pip install 'infinimem[lint]' adds a scanner"
    _end(out, findings, "" if name else missing)


def _show_findings(
    out: Output, findings: Iterable[Finding], fixed: Sequence[Finding] = (), advice: str = ""
) -> None:
    for level, style in (("error", "bold red"), ("note", "bold yellow"), ("fixed", "bold green")):
        some = fixed if level == "fixed" else [finding for finding in findings if finding.level == level]
        if not out.for_people:
            out.table((), [(level, item.where, item.what, item.fix) for item in some])
        elif some:
            out.line(level if level == "fixed" else f"{level}s", style)
            fixes = [f" ({advice}{item.fix})" if item.fix and level != "fixed" else "" for item in some]
            rows = [(item.where, item.what + fix) for item, fix in zip(some, fixes, strict=True)]
            out.table(("where", "what"), rows)
            out.line()


def _end(out: Output, findings: Sequence[Finding], note: str) -> None:
    errors = sum(finding.level == "error" for finding in findings)
    out.say(f"{counted(errors, 'error')}, {counted(len(findings) - errors, 'note')}")
    if note:
        out.say(note)
    if errors:
        click.get_current_context().exit(1)


@command()
@click.option("--all", "everything", is_flag=True, help="Also those that few people change.")
def config(options: Options, everything: bool) -> None:
    """Settings that decide where text is sent come from options, the environment, this user's config.toml, or
    the library's infinimem.toml if it is trusted, in this order.
    """
    out, place = options.out, options.place()
    settings = configuration_of(place.path)
    given = {"llm.model": options.model, "embedder.name": options.embedder, "strategy": options.strategy}
    given = {name: value for name, value in given.items() if value}
    origins = {**settings.origins, **dict.fromkeys(given, "option")}
    rows = [
        {
            "name": name,
            "value": shown(name, value) if name.endswith("base_url") and value else value,
            "origin": origins.get(name, "default"),
            "suspended": shown(name, settings.suspended[name]) if name in settings.suspended else None,
        }
        for name, value in {**defaults(), **settings.values, **given}.items()
    ]
    usual, mine = often(), place.is_default or book.is_mine(place.path)
    if out.result({"library": str(place.path), "mine": mine, "settings": rows}):
        whose = "yours" if mine else "not yours: hooks and MCP clients do not write here"
        out.line(f"{place.path} ({whose})")
        cells = [
            (row["name"], "-" if row["value"] is None else escape(row["value"]), row["origin"])
            for row in rows
            if everything or row["name"] in usual or row["origin"] != "default"
        ]
        out.table(("setting", "value", "from"), cells)
        for name, value in settings.suspended.items():
            what = f"{name} = {shown(name, value)} does not count: the library is not trusted"
            out.line(what, "bold yellow")


@command()
@click.argument("directory", metavar="[DIR]", required=False)
@click.option("--list", "list_", is_flag=True, help="List the trusted libraries.")
@click.option("--remove", is_flag=True, help="Stop trusting it.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def trust(options: Options, directory: str | None, list_: bool, remove: bool, yes: bool) -> None:
    """Hooks and MCP clients may then write into it, and its settings decide where text is sent.

    Shows what that means and asks; in a pipe it only shows, unless --yes is given. If those settings change
    later, run it again.
    """
    out = options.out
    if list_:
        rows = []
        for row in book.trusted():
            state = "cannot be read"
            with suppress(LibraryError, UsageError):
                same = configuration_of(Path(row.path)).digest == row.digest
                state = "trusted" if same else "changed since"
            rows.append({"library": row.path, "state": state})
        out.result({"rows": rows}, lambda: out.table(("library", "settings"), [[*r.values()] for r in rows]))
        return
    path = Path.cwd() / Path(directory).expanduser() if directory else options.place().path
    if remove:
        done = book.revoke(path)
        out.result({"library": str(path), "trusted": False})
        out.say(f"{path} is {'trusted no more' if done else 'not trusted anyway'}")
        return
    if not path.is_dir():
        raise LibraryError(f"there is no folder {path}; name the library's folder")
    settings = configuration_of(path)
    if not out.as_json:
        _show_trust(out, path, settings)
    agreed = yes or out.confirms("Trust it?")
    if agreed and not book.approve(path, settings.digest):
        raise UsageError("HOME is not set, so nothing can be noted; name the library in INFINIMEM_TRUST")
    trusted = agreed or book.is_named(path) or book.approved(path) == settings.digest
    acting = [{"name": name, "value": shown(name, value)} for name, value in settings.proposed.items()]
    out.result({"library": str(path), "settings": acting, "trusted": trusted})
    out.say(f"{path} is {'trusted' if trusted else 'not trusted; add --yes to trust it'}")


def _show_trust(out: Output, path: Path, settings: Configuration) -> None:
    is_library = (path / SETTINGS).is_file()
    written = "write into it" if is_library else "read it: a folder of notes, it stays as it is"
    out.line(f"{escape(os.path.realpath(path), 4096)}: hooks and MCP clients may {written}")
    acting = {**settings.suspended, **settings.proposed}
    for name, value in acting.items():
        effect = TABLES["acts"].get(name, "is taken from here")
        if name.endswith("base_url"):
            what = "what is said" if name.startswith("llm") else "texts and queries"
            effect = f"{what}, and OPENAI_API_KEY, go to {host_of(str(value))}"
        elif name == "git" and value:
            effect = "commits here; of programs that git runs only those of your own configuration"
        out.line(f"  {name} = {shown(name, value)}: {effect}")
    if not acting:
        out.line("  its settings send nothing anywhere")


@command()
def watch(options: Options) -> None:
    """Runs until Ctrl-C.

    A second after the last change, lines in CURRENT and in topics that have no signature get one, and the
    index is updated. In a folder of plain notes nothing is written.
    """
    out, memory = options.out, options.reading()
    from infinimem.watch import watch as changes

    ended = False

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal ended
        ended = True
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    try:
        running = changes(memory)
        out.say(f"watching {memory.library.root}; Ctrl-C ends it")
        for change in running:
            why = f" (was {change.was})" if change.was else f" ({change.receipt})" if change.receipt else ""
            if out.as_json:
                click.echo(as_json({name: value for name, value in asdict(change).items() if value}))
            elif out.for_people:
                out.line(f"{change.event:<8} {change.doc_id}{why}")
            else:
                cells = (change.event, change.doc_id, change.was or change.receipt)
                out.table((), [[*filter(None, cells)]])
    except KeyboardInterrupt:
        return
    except Exception:
        if not ended:  # an import that is interrupted says that it failed
            raise


@command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(options: Options, shell: str) -> None:
    """It completes commands, options and document ids. To install it:

    \b
    bash  infinimem completion bash >> ~/.bashrc
    zsh   infinimem completion zsh >> ~/.zshrc
    fish  infinimem completion fish > ~/.config/fish/completions/infinimem.fish
    """
    chosen = get_completion_class(shell)
    assert chosen is not None
    script = chosen(click.get_current_context().find_root().command, {}, "infinimem", COMPLETION).source()
    options.out.result({"shell": shell, "script": script}, lambda: click.echo(script))
