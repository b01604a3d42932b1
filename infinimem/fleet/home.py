"""Where the libraries are: an object store, which decides races. One conditional PUT is the commit point.

    PREFIX/LIBRARY/head.zip             the library (head.py), replaced with If-Match, made with If-None-Match: *
    PREFIX/LIBRARY/inbox/ULID.jsonl     turns that were appended and are not drawn from yet, create-only
    PREFIX/LIBRARY/refused/ULID.jsonl   what was in the inbox and is none, moved out of the others' way
    PREFIX/.forgotten/ULID.LIBRARY      says that caches which hold it are to go; names, no text

Knows names and bytes, nothing of what they mean. Every error is one line that says what to do.
"""

from __future__ import annotations

import json
import re
import secrets
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    NotModifiedError,
    PreconditionError,
)

from infinimem.errors import FleetError, UsageError
from infinimem.fleet.head import Head, unpack
from infinimem.model import Turn
from infinimem.store.evidence import check_turn

MAX_OBJECT = 16 << 20
"""Bytes of an inbox object."""
RETRIES: dict[str, Any] = {"max_retries": 3, "retry_timeout": timedelta(seconds=20)}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,127}\Z", re.ASCII)
_ULID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}\Z")
_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_FORGOTTEN = ".forgotten"


class Moved(Exception):
    """The head is another by now: what was made from the one before is not to be committed."""


class _Ulids:
    """Names that sort by the time of their making, also those that one process makes in a millisecond.

    Source: github.com/ulid/spec.
    """

    def __init__(self) -> None:
        self._lock, self._last = threading.Lock(), 0

    def new(self) -> str:
        with self._lock:
            fresh = time.time_ns() // 1_000_000 << 80 | secrets.randbits(79)
            self._last = fresh if fresh >> 80 > self._last >> 80 else self._last + 1
            return "".join(_DIGITS[self._last >> shift & 31] for shift in range(125, -5, -5))


ulid = _Ulids().new


def checked(library: str) -> str:
    """A library's name.

    Raises:
        UsageError: it is none.
    """
    if not isinstance(library, str) or not _NAME.match(library):
        raise UsageError(
            f"{str(library)[:60]!r} is no name for a library; use up to 128 letters, digits and . _ @ -, "
            "a letter or digit first"
        )
    return library


def to_lines(turns: Iterable[Turn]) -> bytes:
    """Turns as the bytes of an inbox object: a line of JSON each, without what says nothing."""
    rows = ({name: value for name, value in asdict(turn).items() if value is not None} for turn in turns)
    return b"".join(json.dumps(row, ensure_ascii=True).encode() + b"\n" for row in rows)


def from_lines(data: bytes) -> list[Turn]:
    """The turns of an inbox object that anybody may have written.

    Raises:
        ValueError: it is none; says why.
    """
    turns = []
    try:
        for line in data.decode("ascii").splitlines():
            row = json.loads(line)
            if not isinstance(row, dict) or not all(isinstance(value, str) for value in row.values()):
                raise ValueError("a line that is no turn")
            turns.append(Turn(**row))
            check_turn(turns[-1])
    except (TypeError, RecursionError, UsageError) as error:
        raise ValueError(str(error)) from error
    return turns


class Home:
    """The store of a fleet.

    Args:
        store: of obstore, or what has its methods; all paths are below its prefix.
        url: of the prefix, for messages.
    """

    def __init__(self, store: Any, url: str) -> None:
        self.store, self.url = store, url

    # ── heads ───────────────────────────────────────────────────────────────────────────────────

    def fetch(self, library: str, known: str = "") -> Head | None:
        """The head, in one request.

        Args:
            library: its name.
            known: ETag of a head that is at hand.

        Returns:
            None where that one is still the head; one with the ETag "" where there is none.

        Raises:
            LibraryError: it is none, or hostile.
        """
        try:
            with self._told(f"{library}/head.zip"):
                found = self.store.get(f"{library}/head.zip", options={"if_none_match": known} if known else {})
                data, meta = bytes(found.bytes()), found.meta
        except FileNotFoundError:
            return Head("", {}, frozenset())
        except NotModifiedError:
            return None
        return unpack(data, str(meta["e_tag"]), meta["version"])

    def commit(self, library: str, data: bytes, etag: str) -> str:
        """Put a head in the place of the one with this ETag ("": of none), and give its own ETag.

        Raises:
            Moved: another one is there.
        """
        try:
            with self._told(f"{library}/head.zip"):
                mode = {"e_tag": etag} if etag else "create"
                return str(self.store.put(f"{library}/head.zip", data, mode=mode)["e_tag"])
        except (AlreadyExistsError, PreconditionError):
            return self._ours(library, data)
        except FileNotFoundError:  # how some stores answer If-Match on what was deleted
            raise Moved from None

    def _ours(self, library: str, data: bytes) -> str:
        """The ETag of a head that was committed though the store said otherwise: the answer to the first try
        was lost, and the second met its own work. No two commits have the same bytes.

        Raises:
            Moved: it is another one.
        """
        try:
            with self._told(f"{library}/head.zip"):
                found = self.store.get(f"{library}/head.zip")
                if bytes(found.bytes()) == data:
                    return str(found.meta["e_tag"])
        except FileNotFoundError:
            pass
        raise Moved from None

    # ── inboxes ─────────────────────────────────────────────────────────────────────────────────

    def append(self, library: str, name: str, data: bytes) -> None:
        """Create an inbox object; that it is there already is the store's second try."""
        try:
            with self._told(f"{library}/inbox"):
                self.store.put(f"{library}/inbox/{name}.jsonl", data, mode="create")
        except (AlreadyExistsError, PreconditionError):
            pass

    def inbox(self, library: str) -> list[str]:
        """Names of its inbox objects, in the order of their making; what has another name is not ours."""
        found = (name.removesuffix(".jsonl") for name in self._below(f"{library}/inbox") if ".jsonl" in name)
        return sorted(name for name in found if _ULID.match(name))

    def take(self, library: str, name: str) -> bytes | None:
        """The bytes of an inbox object; None where it is gone by now, b"[" for one that is too large."""
        try:
            with self._told(f"{library}/inbox/{name}"):
                found = self.store.get(f"{library}/inbox/{name}.jsonl")
                return bytes(found.bytes()) if found.meta["size"] <= MAX_OBJECT else b"["
        except FileNotFoundError:
            return None

    def drop(self, library: str, names: Sequence[str], folder: str = "inbox") -> None:
        """Delete objects; those that are gone count as deleted."""
        if names:
            with self._told(f"{library}/{folder}"):
                self.store.delete([f"{library}/{folder}/{name}.jsonl" for name in names])

    def refuse(self, library: str, name: str) -> None:
        """Move an inbox object out of the way of the others."""
        with self._told(f"{library}/inbox/{name}"):
            self.store.rename(f"{library}/inbox/{name}.jsonl", f"{library}/refused/{name}.jsonl")

    def refused(self, library: str) -> list[str]:
        """Names of what was moved out of the way."""
        return [name.removesuffix(".jsonl") for name in self._below(f"{library}/refused")]

    # ── all of them ─────────────────────────────────────────────────────────────────────────────

    def waiting(self) -> list[str]:
        """Libraries with something in their inbox."""
        found = (path.split("/") for path in self._paths(""))
        return sorted({path[0] for path in found if path[1:2] == ["inbox"] and _NAME.match(path[0])})

    def tell_forgotten(self, library: str) -> None:
        """Have every cache drop a library; those of other machines do at their next look."""
        with self._told(_FORGOTTEN):
            self.store.put(f"{_FORGOTTEN}/{ulid()}.{library}", b"")

    def forgotten(self, since: str) -> list[tuple[str, str]]:
        """What was told so after a name: names and libraries, oldest first."""
        with self._told(_FORGOTTEN):
            batches = list(
                self.store.list(f"{_FORGOTTEN}/", offset=f"{_FORGOTTEN}/{since}" if since else None)
            )
        names = sorted(str(meta["path"]).rpartition("/")[2] for batch in batches for meta in batch)
        return [(name, name.partition(".")[2]) for name in names]

    def check(self) -> None:
        """Whether the bucket can be reached and listed.

        Raises:
            FleetError: it cannot.
        """
        self._below(_FORGOTTEN)

    def _below(self, folder: str) -> list[str]:
        return [path.rpartition("/")[2] for path in self._paths(f"{folder}/")]

    def _paths(self, folder: str) -> Iterator[str]:
        with self._told(folder or self.url):
            return (str(meta["path"]) for batch in list(self.store.list(folder or None)) for meta in batch)

    @contextmanager
    def _told(self, what: str) -> Iterator[None]:
        """Turn the store's errors into one line; those that are answers stay what they are."""
        try:
            yield
        except (AlreadyExistsError, PreconditionError, NotModifiedError):
            raise
        except (BaseError, FileNotFoundError, PermissionError) as error:
            said = str(error)
            code = re.search(r"<Code>(\w+)</Code>", said)
            if "NoSuchBucket" in said:
                why = "there is no such bucket; make it, or correct the URL"
            elif isinstance(error, FileNotFoundError):
                raise
            elif re.search(r"40[13] (Forbidden|Unauthorized)", said):
                why = f"the store refuses the key ({code[1] if code else 'forbidden'}); set AWS_ACCESS_KEY_ID"
                why += " and AWS_SECRET_ACCESS_KEY"
            else:
                why = (
                    f"{code[1] if code else said.splitlines()[0][:160]}; it is tried again when called again"
                )
            raise FleetError(f"{self.url}, {what}: {why}") from error


def connect(url: str) -> Home:
    """The store at a URL; keys, region and endpoint come from the environment (AWS_…).

    Raises:
        UsageError: it is no URL of an S3 bucket.
    """
    from obstore.store import S3Store

    if not re.fullmatch(r"s3://[a-z0-9][a-z0-9.-]{1,62}(/[\w.@/-]*)?", url, re.ASCII):
        raise UsageError(f"{url[:80]!r} is no address of a fleet; write s3://BUCKET/PREFIX")
    bucket, _, prefix = url.removeprefix("s3://").partition("/")
    return Home(S3Store(bucket, prefix=prefix.strip("/") or None, retry_config=RETRIES), url.rstrip("/"))
