"""Secrets that were said or noted: keys and tokens, told by kind and place, never themselves.

The patterns are those of detect-secrets (the extra `lint`), used as patterns alone: nothing is verified over
the network. Beside them stand a few kinds that it does not know or that must be found without it; how such a
key looks is what its issuer publishes.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from infinimem.markdown.document import Document
from infinimem.model import Finding
from infinimem.operations.doctor.inspection import Shelf

LONGEST = 20_000
"""Characters of a piece that patterns are run over; of a longer text every piece is."""
OVERLAP = 500


class Detector(NamedTuple):
    """What finds the secrets of a kind in a text that holds one of these needles, whatever their case."""

    kind: str
    needles: tuple[str, ...]
    find: Callable[[str], Iterable[str]]


_ISSUED = {
    "Private Key": ("private key", r"-----BEGIN (?:[A-Z0-9]{2,10} ){0,2}PRIVATE KEY"),
    "AWS Access Key": ("akia", r"\bAKIA[0-9A-Z]{16}\b"),
    "Anthropic API Key": ("sk-ant-", r"\bsk-ant-[a-z0-9]{2,10}-[A-Za-z0-9_-]{30,200}"),
    "OpenAI Token": ("t3blbkfj", r"\bsk-[A-Za-z0-9_-]{20,200}T3BlbkFJ[A-Za-z0-9_-]{20,200}"),
    "GitHub Token": ("github_pat_", r"\bgithub_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}\b"),
    "Google API Key": ("aiza", r"\bAIza[0-9A-Za-z_-]{35}"),
    "Hugging Face Token": ("hf_", r"\bhf_[A-Za-z]{34}\b"),
}
"""A needle and the pattern, by kind."""
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
_TOLD = re.compile(
    r"\b(?:password|passcode|passphrase|pass ?code|pin(?: code)?)\b(?: (?:for|of|to|on) [\w' -]{1,40}?)?"
    r"(?: is(?: now)?|:| =|=) {0,3}[\"'`*]{0,3}((?=[^\s\"'`]*\d)[^\s\"'`,;*]{4,64})",
    re.IGNORECASE,
)
"""How people tell one: "the wifi password is …". A word without a digit is more often "wrong", "changed"."""
_UNFIT = frozenset(
    ("Base64 High Entropy String", "Hex High Entropy String", "Public IP (ipv4)", "Secret Keyword")
)
"""Kinds of the scanner that are made for code: in prose, checksums and addresses they find no secrets."""
_PLACEHOLDER = re.compile(r"[<>{}$…]|(?i:example|x{6}|your[_-]|change[_-]?me|password|passwd)|(.)\1{7}")
"""What stands in place of a secret where one is explained."""


def secrets(shelf: Shelf) -> Iterator[Finding]:
    """An error for each line of any document, receipts and people's notes too, that holds a secret."""
    for document in shelf.documents.values():
        if found := _in("\n".join(document.lines), detectors()):
            yield from _in_lines(document, found)


def has_scanner() -> bool:
    """Whether the patterns of the extra are there."""
    return bool(scanner())


def named(ids: Iterable[str]) -> frozenset[str]:
    """The ids that hold a secret themselves."""
    return frozenset(doc_id for doc_id in ids if _in(doc_id, detectors()))


def _in_lines(document: Document, found: Iterable[Detector]) -> Iterator[Finding]:
    seqs = {
        number: place.seq
        for place in document.entries
        for number in range(place.start_line, place.end_line + 1)
    }
    for number, line in enumerate(document.lines, 1):
        for kind in sorted({detector.kind for detector in _in(line, found)}):
            advice = "make it void where it is used; "
            if number in seqs:
                advice += f"infinimem forget --seq {seqs[number]} takes it out with all that came from it"
            else:
                advice += "take it out of the file"
            yield Finding("error", f"looks like a secret: {kind}", f"{document.id}:{number}", advice)


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
        for start in range(0, len(text), LONGEST - OVERLAP)
        for secret in detector.find(text[start : start + LONGEST])
    )


@cache
def detectors() -> tuple[Detector, ...]:
    """What is found always, then the scanner's; what both find has one name. Made once."""
    own = (Detector(kind, (needle,), re.compile(like).findall) for kind, (needle, like) in _ISSUED.items())
    told = Detector("Password", ("passw", "passc", "passp", "pass c", "pin"), _TOLD.findall)
    return (*own, told, *scanner())


@cache
def scanner() -> tuple[Detector, ...]:
    """Those of the extra `lint`, looked for once; none where it is not installed."""
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
