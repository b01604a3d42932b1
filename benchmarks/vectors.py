"""What vectors cost: how fast each embedder reads, and how long the nearest of many entries take.

    python benchmarks/vectors.py [--entries 100000] [--embedder static]

Texts are made of the sentences of sample_facts.tsv. Everything is written to a folder that is deleted.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from infinimem.embedders.base import Embedder
from infinimem.embedders.local import connect
from infinimem.errors import ModelNotConfigured
from infinimem.index.vectors import Matrix, Vectors, nearest
from infinimem.markdown.characters import text_key
from infinimem.settings import EmbedderSettings

LOCAL = {"lexical": 5000, "static": 5000, "minilm": 200}
"""Texts that each embedder reads to tell its rate."""
QUERIES, BEST = 50, 50
SIZES = (256, 384, 1536)
"""Dimensions of static, minilm and OpenAI's small model."""


def texts(count: int, seed: int = 1) -> list[str]:
    """Entries of one to three sentences, all different."""
    rows = (Path(__file__).parent / "sample_facts.tsv").read_text().splitlines()
    sentences = [row.split("\t")[-1] for row in rows if row and not row.startswith("#")]
    pick = random.Random(seed)
    return [f"{' '.join(pick.choices(sentences, k=pick.randint(1, 3)))} ({at})" for at in range(count)]


def seconds(work: Callable[[], object]) -> float:
    """How long it takes, once."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def shown(times: Sequence[float]) -> str:
    """Median, 95th percentile and least, in milliseconds; the least is disturbed least by others."""
    ordered = sorted(1000 * time for time in times)
    high = ordered[int(0.95 * len(ordered))]
    return f"{statistics.median(ordered):6.1f} ms, p95 {high:6.1f} ms, least {ordered[0]:6.1f} ms"


def rates() -> None:
    """Texts a second, and how long connecting takes."""
    for name, count in LOCAL.items():
        try:
            began = time.perf_counter()
            embedder = connect(name, EmbedderSettings())
            embedder.embed(["ready"])
            ready = time.perf_counter() - began
        except ModelNotConfigured as error:
            print(f"{name:8} {error}")
            continue
        took = seconds(lambda embedder=embedder, count=count: embedder.embed(texts(count)))
        print(f"{name:8} {count / took:8,.0f} texts/s, ready in {ready:.2f} s ({embedder.name})")


def timed(matrix: Matrix, queries: Matrix) -> str:
    """Time of the best entries of each query."""
    nearest(matrix, queries[:1], BEST)
    return shown([seconds(lambda query=query: nearest(matrix, query[None], BEST)) for query in queries])


def store(embedder: Embedder, entries: list[str]) -> None:
    """Keep them, open them again, look them up, ask."""
    took = seconds(lambda: Vectors("/benchmark", embedder).add(entries))
    print(f"{embedder.name}: {len(entries):,} entries computed and kept in {took:.1f} s")
    opened = Vectors("/benchmark", embedder)
    print(f"  opened and checked       {1000 * seconds(lambda: opened.rows):6.1f} ms")
    keys = [text_key(text) for text in entries]
    print(f"  all keys looked up       {1000 * seconds(lambda: opened.rows.places(keys)):6.1f} ms")
    print(f"  one entry more           {1000 * seconds(lambda: opened.add([*entries[:9], 'new'])):6.1f} ms")
    queries = embedder.embed(texts(QUERIES, 2), "query")
    print(f"  nearest {BEST}               {timed(opened.rows.matrix, queries)}")
    asked = [
        seconds(lambda text=text: nearest(opened.rows.matrix, embedder.embed([text], "query"), BEST))
        for text in texts(QUERIES, 3)
    ]
    print(f"  with the query's vector  {shown(asked)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--embedder", default="static", help="keeps the entries")
    options = parser.parse_args()
    rates()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        store(connect(options.embedder, EmbedderSettings()), texts(options.entries))
    drawn = np.random.default_rng(1)
    for size in SIZES:
        matrix = drawn.normal(size=(options.entries, size)).astype(np.float32)
        print(f"{options.entries:,} rows of {size:4}: nearest {BEST} {timed(matrix, matrix[:QUERIES])}")


if __name__ == "__main__":
    main()
