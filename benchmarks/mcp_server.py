"""What MCP costs: from the start of the server to its first answer, and a search beside the direct call.

    python benchmarks/mcp_server.py [--library DIR] [--starts N] [--calls N]

The official client drives the installed server over its standard streams. Direct calls and calls through the
server take turns, so that a busy moment falls on both; compare the medians, and the fastest of each. On a
busy machine the processor time of a start says more than the clock.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
import time
from pathlib import Path

import anyio
from mcp import Client, StdioServerParameters

from infinimem import open_memory

SAMPLE = Path(__file__).parents[1] / "sample_library"
QUESTIONS = ("Where does she live?", "what did they plan for the summer", "birthday present", "new job")


def server(library: Path) -> StdioServerParameters:
    """How the server is started: offline, so that nothing but this machine is measured."""
    line = ["-m", "infinimem", "--library", str(library), "--model", "offline", "-q", "mcp"]
    return StdioServerParameters(command=sys.executable, args=line)


def processor() -> float:
    """Seconds of processor time of the servers that have ended."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


async def start(library: Path) -> float:
    """Seconds from the start of the process to the first result of a search."""
    began = time.perf_counter()
    async with Client(server(library)) as client:
        done = await client.call_tool("search", {"query": QUESTIONS[0]})
        assert not done.is_error
        return time.perf_counter() - began


async def searches(library: Path, calls: int) -> tuple[list[float], list[float]]:
    """Milliseconds of each search: called directly, and through the server."""
    memory = open_memory(library, model="offline")
    direct, served = [], []
    async with Client(server(library)) as client:
        for query in QUESTIONS:
            memory.tools.search(query=query)
            await client.call_tool("search", {"query": query})
        for number in range(calls):
            arguments = {"query": QUESTIONS[number % len(QUESTIONS)]}
            began = time.perf_counter()
            memory.tools.search(**arguments)
            direct.append(1000 * (time.perf_counter() - began))
            began = time.perf_counter()
            await client.call_tool("search", arguments)
            served.append(1000 * (time.perf_counter() - began))
    return direct, served


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--library", type=Path, default=SAMPLE)
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--calls", type=int, default=200)
    args = parser.parse_args()
    starts = sorted(anyio.run(start, args.library) for _ in range(args.starts))
    print(f"start to first answer: median {statistics.median(starts):.2f} s, fastest {starts[0]:.2f} s")
    print(f"processor time of a start and its end: {processor() / args.starts:.2f} s")
    direct, served = anyio.run(searches, args.library, args.calls)
    for name, times in (("direct", direct), ("over MCP", served)):
        print(f"search, {name:8}: median {statistics.median(times):.2f} ms, fastest {min(times):.2f} ms")
    print(f"beyond the direct call: {statistics.median(served) - statistics.median(direct):.2f} ms")


if __name__ == "__main__":
    main()
