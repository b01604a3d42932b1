"""Secrets in a library: keys, tokens and passwords, reported by kind and place, never quoted.

The patterns are those of detect-secrets (the extra `lint`); nothing is verified over the network.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

from infinimem.model import Finding
from infinimem.operations.doctor.inspection import Inspection

WINDOW, OVERLAP = 20_000, 500
"""Characters: patterns run over windows of a text, so that none takes time with a power of its length."""


class Detector(NamedTuple):
    """What finds the secrets of a kind in a text that holds one of these needles, whatever their case."""

    kind: str
    needles: tuple[str, ...]
    find: Callable[[str], Iterable[str]]


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
"""Of kinds of the scanner whose patterns are slow, or find much else in prose."""
_UNFIT = frozenset(
    ("Base64 High Entropy String", "Hex High Entropy String", "Public IP (ipv4)", "Secret Keyword")
)
"""Kinds of the scanner that are made for code: in prose, checksums and addresses they find no secrets."""
_PLACEHOLDER = re.compile(r"[<>{}$…]|(?i:example|x{6}|your[_-]|change[_-]?me|password|passwd)|(.)\1{7}")
"""What stands in place of a secret where one is explained."""


def secrets(inspection: Inspection) -> Iterator[Finding]:
    """An error for each line and each file name with a secret, in receipts and people's notes too."""
    for document in inspection.documents.values():
        if not (found := _in("\n".join(document.lines), scanner())):
            continue
        places = [(range(place.start_line, place.end_line + 1), place.seq) for place in document.entries]
        seqs = {number: seq for numbers, seq in places for number in numbers}
        for number, line in enumerate(document.lines, 1):
            for kind in sorted({detector.kind for detector in _in(line, found)}):
                advice = "revoke it where it is used; " + (
                    f"infinimem forget --seq {seqs[number]} removes it and all that came from it"
                    if number in seqs
                    else "remove it from the file"
                )
                yield Finding("error", f"looks like a secret: {kind}", f"{document.id}:{number}", advice)
    for doc_id in _named(inspection.view.ids("all")):
        where = doc_id.rpartition("/")[0] or "."
        yield Finding("error", "a file's name looks like a secret", where, "rename the file")


def without_names(found: Sequence[Finding], ids: Iterable[str]) -> Sequence[Finding]:
    """Findings in which no file's name that looks like a secret can be read."""
    for doc_id in _named(ids):
        shown = f"{doc_id.rpartition('/')[0]}/…".lstrip("/")
        found = [
            replace(one, what=one.what.replace(doc_id, shown), where=one.where.replace(doc_id, shown))
            for one in found
        ]
    return found


def _named(ids: Iterable[str]) -> list[str]:
    return [doc_id for doc_id in ids if _in(doc_id, scanner())]


def _in(text: str, detectors: Iterable[Detector]) -> list[Detector]:
    """Those that find something in a text."""
    small = text.lower()
    return [
        one
        for one in detectors
        if (not one.needles or any(needle in small for needle in one.needles)) and _holds(one, text)
    ]


def _holds(detector: Detector, text: str) -> bool:
    return any(
        not _PLACEHOLDER.search(secret)
        for start in range(0, len(text), WINDOW - OVERLAP)
        for secret in detector.find(text[start : start + WINDOW])
    )


@cache
def scanner() -> tuple[Detector, ...]:
    """The detectors of the extra `lint`, made once; none if it is not installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of requests, about packages beside it; no request is made
            from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
    except ImportError:
        return ()
    plugins: Mapping[str, Any] = get_mapping_from_secret_type_to_class()
    return tuple(
        Detector(kind, _NEEDLES.get(kind, ()), plugins[kind]().analyze_string)
        for kind in sorted(plugins)
        if kind not in _UNFIT
    )
