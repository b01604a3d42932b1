"""The processes that hooks start: `serve LIBRARY [--alone]`, `remember LIBRARY [--create]`, event on stdin.

They have nobody to talk to, so whatever fails, fails in silence; what was recorded is on disk.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection
from pathlib import Path

from infinimem.hooks.event import given


def main(what: str, library: Path, options: Collection[str], data: bytes) -> None:
    event = given(data)
    if what == "serve":
        from infinimem.hooks.serve import serve

        serve(library, event, alone="--alone" in options)
    else:
        os.nice(10)  # the person goes on working
        from infinimem.hooks.remember import remember

        remember(library, Path(event.transcript), "--create" in options)


if __name__ == "__main__":
    try:
        main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:], sys.stdin.buffer.read())
    except Exception:
        sys.exit(1)
