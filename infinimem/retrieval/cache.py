"""Derived data on disk: where a library's lies, and how one writer changes it under many readers.

    <cache root>/<16 hex>/<part>/manifest.json    names the files that belong together: the commit point
                                 lock             held by the one that writes
                                 ...              the files, each written once under a new name

Readers take no lock. One that finds a named file missing reads the manifest again. All of it may be gone at
any moment: `forget` deletes the whole cache root, and what was read before then has no place to go.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import secrets
import threading
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from infinimem.store.caches import cache_root
from infinimem.store.view import View

MANIFEST, LOCK = "manifest.json", "lock"

SMALL_DOCUMENTS = 300
SMALL_BYTES = 4 << 20
"""A library up to this size is looked through in memory, and nothing is written to disk."""

_held: dict[tuple[int, Path], int] = {}
"""The opened folder that a thread holds under a path: after a `forget` the path may lead to another."""
