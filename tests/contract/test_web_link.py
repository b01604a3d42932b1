"""The one-time link of `infinimem web`: whoever reads the list of processes does not get it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest


def wait_for(file: Path) -> str:
    until = time.monotonic() + 60
    while not (file.exists() and file.read_text().endswith("\n")):
        assert time.monotonic() < until, f"{file.name} did not come"
        time.sleep(0.02)
    return file.read_text().strip()


def test_open_hands_the_link_over_in_a_private_file(tmp_path: Path) -> None:
    """`web --open` calls the browser with a file that only this user can read, gone after use."""
    pytest.importorskip("uvicorn", reason="infinimem[web] is not installed")
    called, library = tmp_path / "called", tmp_path / "library"
    library.mkdir()
    (library / "note.md").write_text("# Note\n\n- The blue pot.\n")
    for name in ("xdg-open", "open"):
        browser = tmp_path / "bin" / name
        browser.parent.mkdir(exist_ok=True)
        browser.write_text(f'#!/bin/sh\necho "$@" > {called}.new\nmv {called}.new {called}\n')
        browser.chmod(0o755)
    env = {**os.environ, "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    env["PATH"] = f"{browser.parent}{os.pathsep}{env['PATH']}"
    command = [sys.executable, "-m", "infinimem", "--library", str(library), "web", "--open"]
    with subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as web:
        try:
            assert web.stdout
            url = web.stdout.readline().strip()
            token = url.partition("token=")[2]
            page = Path(wait_for(called))
            assert len(token) > 20 and token not in str(page)
            assert page.stat().st_mode & 0o777 == 0o600
            (found,) = re.findall(r"url=([^\"]+)", page.read_text())
            assert found == url
            with urllib.request.urlopen(found, timeout=30) as answer:
                assert answer.status == 200
            until = time.monotonic() + 30
            while page.exists():
                assert time.monotonic() < until, "the file is still there"
                time.sleep(0.02)
        finally:
            web.terminate()
    assert list(tmp_path.glob("*.html")) == []
