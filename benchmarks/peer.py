"""A peer's row beside ours: memsearch (github zilliztech/memsearch, MIT), asked the questions about notes.

    python -m venv peer && peer/bin/pip install memsearch
    python benchmarks/peer.py FOLDER --peer peer/bin/python [--split dev|held]

FOLDER is what `infinimem bench notes --data` takes. memsearch runs in its own interpreter, as it is (hybrid
search in Milvus Lite); its vectors are those of `--embedder static`, which this program serves to it on
localhost by OpenAI's embeddings call. A hit has the sections that its lines touch, and is scored as ours are.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import fmean
from typing import Any

SHOWN = ("R@5", "N@5", "MRR", "doc R@5", "doc N@5", "doc MRR")


def peer(folder: str, url: str) -> None:
    """In the peer's interpreter: index a folder, answer the questions of standard input with hits."""
    from memsearch import MemSearch  # type: ignore[import-not-found]

    memory = MemSearch(
        [folder],
        embedding_model="static",
        embedding_base_url=url,
        embedding_api_key="none",
        milvus_uri=str(Path(folder).with_name("milvus.db")),
    )
    asyncio.run(memory.index())
    hits = [asyncio.run(memory.search(question, top_k=50)) for question in json.load(sys.stdin)]
    print(
        json.dumps([[[hit["source"], hit["start_line"], hit["end_line"]] for hit in some] for some in hits])
    )


def serve() -> str:
    """Serve static vectors, and return the address."""
    from infinimem.embedders.local import connect
    from infinimem.settings import EmbedderSettings

    model = connect("static", EmbedderSettings())

    class Server(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
            rows = model.embed([texts] if isinstance(texts, str) else texts).tolist()
            data = [{"object": "embedding", "index": at, "embedding": row} for at, row in enumerate(rows)]
            body = json.dumps({"object": "list", "model": "static", "data": data, "usage": {}}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/v1"


def main() -> None:
    from infinimem.evaluation.datasets import benchmark
    from infinimem.evaluation.model import Found

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--peer", required=True, help="the interpreter that has memsearch")
    parser.add_argument("--split", default="dev")
    given = parser.parse_args()
    data, url = benchmark("notes", split=given.split), serve()
    for case in data.cases(given.folder):
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made).resolve() / "notes"
            for name, text in case.notes.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(text)
            began = time.monotonic()
            command = [given.peer, __file__, "--index", str(folder), url]
            asked = json.dumps([question.text for question in case.questions])
            told = subprocess.run(command, input=asked, capture_output=True, text=True, check=True).stdout
            scores = []
            for question, hits in zip(case.questions, json.loads(told.splitlines()[-1]), strict=True):
                places = (f"{Path(doc).relative_to(folder)}:{first}-{last}" for doc, first, last in hits)
                found = [Found("", (place,), 0) for place in places]
                scores.append(data.retrieval(case, question, found))
        figures = (f"{name} {100 * fmean(one[name] for one in scores):.1f}" for name in SHOWN)
        print(
            f"{case.name}, {len(scores)} questions: {', '.join(figures)}; {time.monotonic() - began:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--index"]:
        peer(*sys.argv[2:])
    else:
        main()
