"""`status` counts what a library holds; `doctor` asks whether it is sound: its errors break the format or the
law. `repair` does what the findings' `fix` says, and only what loses nothing, through the library, under its
lock. `lint` looks for secrets, names, lines that say the same, mixed times, topics without bounds.

Texts are never touched, and of signatures `when` alone, where an older version derived it: a damaged
signature, a conflict marker or a wrong link is for a person to settle. No finding of `lint` quotes a line;
the patterns of secrets are those of detect-secrets (the extra `lint`); nothing is verified over the network.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from math import inf
from typing import Any

from infinimem import tokens
from infinimem.grounding.sentences import find_duplicates
from infinimem.model import CURRENT, Finding, Located
from infinimem.operations import checks
from infinimem.operations.git import uncommitted
from infinimem.operations.provenance import at, recorded
from infinimem.operations.review import inbox
from infinimem.spec import folders
from infinimem.store.external_edits import rewrite, tracked
from infinimem.store.library import Library
from infinimem.store.plans import Rendered
from infinimem.store.spec import EVIDENCE, JOURNAL, TOPICS, unlawful
from infinimem.store.view import View, without

TIMES = 4
"""Looks at a library that others write to; what is found each time is true."""
MOST = 100
"""Notes of one check that are listed; errors all are."""
WINDOW, OVERLAP = 20_000, 500
"""Characters: patterns run over windows of a text, so that none takes time with a power of its length."""
FAR_OVER = 2
"""A document this many times longer than `markdown_length` was not split, though it should have been."""
HEADING_LINES = 100
"""Entries under one heading; a section of more says nothing by its title."""

_NEEDLES = {
    "Artifactory Credentials": ("artifactory", "jfrog"),
    "Cloudant Credentials": ("cloudant",),
    "IBM Cloud IAM Key": ("ibm", "iam"),
    "IBM COS HMAC Credentials": ("hmac", "cos_"),
    "Mailchimp Access Key": ("-us",),
    "PyPI Token": ("pypi-",),
    "Slack Token": ("xox", "hooks.slack.com"),
    "SoftLayer Credentials": ("softlayer", "sl_"),
    "Stripe Access Key": ("k_live_",),
}
"""Words of which one stands near a secret of kinds whose patterns are slow, or find much else in prose."""
_UNFIT = frozenset(
    ("Base64 High Entropy String", "Hex High Entropy String", "Public IP (ipv4)", "Secret Keyword")
)
"""Kinds of the scanner that are made for code: in prose, checksums and addresses they find no secrets."""
_PLACEHOLDER = re.compile(r"[<>{}$…]|(?i:example|x{6}|your[_-]|change[_-]?me|password|passwd)|(.)\1{7}")
"""What stands in place of a secret where one is explained."""
_ZONE = re.compile(r"(?:Z|[+-]\d{2}:?\d{2})\Z")

Check = Callable[[checks.Inspection], Iterator[Finding]]


def run(those: Iterable[Check], inspection: checks.Inspection, most: int = MOST) -> list[Finding]:
    """Return what checks find, errors first, then by place, of each check `most` notes."""
    findings: list[Finding] = []
    for check in those:
        if check in ANYWHERE or inspection.view.initialised:
            own = dict.fromkeys(check(inspection))
            notes = [finding for finding in own if finding.level == "note"]
            findings += [finding for finding in own if finding.level == "error"] + notes[:most]
            if more := notes[most:]:
                what = f"{len(more)} more like this one from here on ({check.__name__.replace('_', ' ')})"
                findings.append(replace(more[0], what=what))
    names = _secret_names(inspection.view) if findings else ()  # a file's name may be one, too
    for doc_id in names:
        shown = f"{doc_id.rpartition('/')[0]}/…".lstrip("/")
        findings = [
            replace(one, what=one.what.replace(doc_id, shown), where=one.where.replace(doc_id, shown))
            for one in findings
        ]
    return sorted(findings, key=lambda finding: (finding.level, _place(finding.where), finding.what))


def _place(where: str) -> tuple[str, int]:
    name, _, line = where.rpartition(":")
    return (name, int(line)) if name and line.isdecimal() else (where, 0)


def examine(library: Library, most: int = MOST) -> list[Finding]:
    """Return what `doctor` finds, as `run` does; look again where others wrote meanwhile."""
    findings: list[Finding] = []
    for look in range(TIMES):
        library.fresh.doubt()
        view, before = library.view(), findings
        findings = run(CHECKS, checks.Inspection.of(view, library), most)
        library.fresh.doubt()
        if not findings or (checks.BUSY not in findings and library.view() is view):
            return findings
        findings = [finding for finding in findings if not look or finding in before]
    return [checks.BUSY] if checks.BUSY in findings else [*findings, checks.BUSY]


def repair(library: Library) -> list[Finding]:
    """As `Memory.repair`; where the disk refuses, what was done until then stays."""
    findings = [finding for finding in examine(library, sys.maxsize) if finding.fix]
    if not findings:
        return []
    fixes = {finding.fix for finding in findings}
    if fixes & {checks.FINISHED, checks.RAISED, checks.REBUILT}:
        with library.locked() as view:  # which also finishes what a crash left
            library.allocate(0, view)
    if checks.MERGED in fixes:
        library.mend()
    if checks.RENAMED in fixes:
        with library.locked() as view:
            done = Rendered()
            for doc_id in view.ids("all"):
                if not view.is_note(doc_id) and (document := checks.mended(view.document(doc_id), view)):
                    done.documents[doc_id] = document
            library.commit(done, view, library.of_people("rename"), (), {})
    if fixes & {checks.MERGED, checks.SIGNED, checks.RENUMBERED, checks.ONCE, checks.UNDATED}:
        library.adopt_edits()
    if checks.UNDATED in fixes:
        with library.locked() as view:
            documents = map(view.document, tracked(view))
            places = (place for document in documents for place in document.entries)
            outdated = ((p, without(p.entry, "when")) for p in checks.outdated(places))
            library.sign(rewrite(view, outdated, "undated"), view, "undate")
    left = {_kind(finding) for finding in examine(library, sys.maxsize)}
    return [finding for finding in findings if _kind(finding) not in left]


def _kind(finding: Finding) -> tuple[str, str]:
    """What was wrong and where; a repair may move the lines of a document, so their numbers tell nothing."""
    return finding.fix, finding.where.rsplit(":", 1)[0]


def counts(library: Library) -> dict[str, Any]:
    """Count everything that is not one strategy's own, for people and scripts."""
    view = library.view()
    git = uncommitted(library.files, view) if library.settings.git and library.initialised else None
    waiting, approve = len(inbox(view)), library.settings.write.approve
    return {
        "library": str(library.root),
        **view.derived(_of_lines),
        "unanswered": dict(Counter(one.kind for one in view.unanswered().values())),
        "lines_awaiting_review": len(library.proposals()),
        **({"inbox": {"lines": waiting, "approve": approve}} if waiting or approve else {}),
        "git": {"waiting": len(git.receipts), "why": git.why} if git else None,
    }


def _of_lines(view: View, _: object, __: object) -> dict[str, Any]:
    last = next(iter(recorded(view).latest(1)), None)
    return {
        "initialised": view.initialised,
        "documents": sum(doc_id != CURRENT for doc_id in view.ids()),
        "entries": _count(view, view.ids()),
        "archived": _count(view, view.ids("archive")),
        "evidence": _count(view, view.owned(EVIDENCE)),
        "pending": len(view.uncited()),
        "last_receipt": {"id": last.id, "time": last.time, "op": last.op} if last else None,
        "receipts": len(view.below(JOURNAL)) if view.initialised else 0,
        "based_on_superseded": len(recorded(view).stale()),
    }


def _count(view: View, documents: Iterable[str]) -> int:
    known = dict(view.lines.all("select name, entries from document where rank is not null"))
    ids = (one for one in documents if view.is_note(one) or not one.startswith(folders().ledgers))
    return sum(known[one] if one in known else len(view.document(one).entries) for one in ids)


def lint(view: View) -> list[Finding]:
    return run(LINT, checks.Inspection.of(view))


@cache
def scanner() -> Mapping[str, Callable[[str], Iterable[str]]]:
    """Return what finds secrets, by their kind, made once; nothing if the extra `lint` is not installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of requests, about packages beside it; no request is made
            from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
    except ImportError:
        return {}
    plugins: Mapping[str, Any] = get_mapping_from_secret_type_to_class()
    return {kind: plugins[kind]().analyze_string for kind in sorted(plugins.keys() - _UNFIT)}


def secrets(inspection: checks.Inspection) -> Iterator[Finding]:
    for document in inspection.documents.values():
        if not (kinds := _detected("\n".join(document.lines), scanner())):
            continue
        seqs = {n: one.seq for one in document.entries for n in range(one.start_line, one.end_line + 1)}
        for number, line in enumerate(document.lines, 1):
            for kind in _detected(line, kinds):
                advice = "revoke it where it is used; " + (
                    f"infinimem forget --seq {seqs[number]} removes it and all that came from it"
                    if number in seqs
                    else "remove it from the file"
                )
                yield Finding("error", f"looks like a secret: {kind}", f"{document.id}:{number}", advice)
    for doc_id in _secret_names(inspection.view):
        where = doc_id.rpartition("/")[0] or "."
        yield Finding("error", "a file's name looks like a secret", where, "rename the file")


def _secret_names(view: View) -> list[str]:
    return [doc_id for doc_id in view.ids("all") if _detected(doc_id, scanner())]


def _detected(text: str, kinds: Iterable[str]) -> list[str]:
    small = text.lower()
    likely = (kind for kind in kinds if any(needle in small for needle in _NEEDLES.get(kind, ("",))))
    windows = [text[start : start + WINDOW] for start in range(0, len(text), WINDOW - OVERLAP)]
    return [
        kind
        for kind in likely
        if any(not _PLACEHOLDER.search(one) for window in windows for one in scanner()[kind](window))
    ]


def unlawful_names(inspection: checks.Inspection) -> Iterator[Finding]:
    for doc_id in inspection.view.ids("all"):
        if inspection.view.is_note(doc_id) and (why := unlawful(doc_id)):
            yield Finding("note", why, doc_id, "rename the file")


def unbounded(inspection: checks.Inspection) -> Iterator[Finding]:
    view = inspection.view
    limit = getattr(view.settings.of(view.spec.settings or object), "markdown_length", inf)
    for document in inspection.own(TOPICS):
        size = tokens.estimate(document.body)
        if size > FAR_OVER * limit:
            what = f"about {size} tokens; a topic should have {limit} at most (markdown_length)"
            advice = "infinimem consolidate splits it; split a topic that has prose of yours by hand"
            yield Finding("note", what, document.id, advice)
        sections: dict[str, list[Located]] = defaultdict(list)
        for place in document.entries:
            sections[place.headings[-1] if place.headings else ""].append(place)
        for _, places in sorted(sections.items()):
            if len(places) > HEADING_LINES:
                what = f"{len(places)} entries under one heading"
                advice = "add headings and move lines under them; moving lines by hand is safe"
                yield Finding("note", what, at(places[0]), advice)


def repeated(inspection: checks.Inspection) -> Iterator[Finding]:
    if not inspection.view.spec.has_entries:
        return
    lines: dict[int, Located] = {}
    for place in inspection.entries(CURRENT, TOPICS):
        lines.setdefault(place.seq, place)
    for seq, by in find_duplicates(place.entry for place in lines.values() if place.doc_id != CURRENT):
        place, kept = lines[seq], lines[by]
        what = f"line {place.seq} says what {kept.seq} ({at(kept)}) says"
        yield Finding("note", what, at(place), "move one of them to archive/, or delete it")


def mixed_zones(inspection: checks.Inspection) -> Iterator[Finding]:
    together: dict[str, list[Located]] = defaultdict(list)
    for document in inspection.own(CURRENT, TOPICS, EVIDENCE):
        session = document.header.values.get("session")
        name = f"session {session}" if session else document.id
        together[name] += (place for place in document.entries if "T" in (place.entry.time or ""))
    for _, places in sorted(together.items()):
        has_zone = Counter(bool(_ZONE.search(place.entry.time or "")) for place in places)
        if has_zone[True] and has_zone[False]:
            first = next(place for place in places if not _ZONE.search(place.entry.time or ""))
            what = f"{has_zone[False]} times without a zone beside {has_zone[True]} with one"
            advice = "record turns with zoned times; which of these lines is older is a guess"
            yield Finding("note", what, at(first), advice)


CHECKS = (
    checks.passed_over,
    checks.documents,
    checks.links,
    checks.machine_state,
    checks.waiting,
    checks.lines,
    checks.misdated,
    checks.receipts,
    checks.stale,
)
LINT = (secrets, unlawful_names, repeated, mixed_zones, unbounded)
ANYWHERE = (checks.passed_over, checks.documents, checks.links, secrets, unlawful_names)
"""Checks that run also in a folder of notes, which has no infinimem.toml."""
