"""How long each page of `infinimem web` takes, on this machine.

    python benchmarks/web.py [--notes notes_til.tar.xz] [--topics 2000 --turns 50000] [--times N]

Measures the sample library, a library of that size made here, and a folder of notes if one is given: the
installed command in a process of its own, asked over HTTP for pages drawn at random. Prints the median and
the 95th percentile of each kind of page in milliseconds, and processor time, which counts on a busy machine.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote, urlsplit

from infinimem import open_memory
from infinimem.markdown.signature import format_entry
from infinimem.model import Receipt, ReceiptRow, Usage
from infinimem.store.receipts import format_receipt

SAMPLE = Path(__file__).parents[1] / "sample_library"
SESSION, BATCH = 100, 50
"""Turns of a conversation, lines of a receipt."""
WORDS = (
    "router cellar marathon opera telescope ferritin lighthouse salmon kestrel harbour piano bicycle".split()
)
PLACES = "Ghent Bristol Bath Rotterdam Bohinj Lisbon Porto Utrecht".split()


def build(root: Path, topics: int, turns: int) -> None:
    """A library in which two turns of five were drawn from, and one line of ten is superseded."""
    open_memory(root, model="offline", create=True)
    chance = random.Random(5)
    documents: list[list[str]] = [[] for _ in range(topics)]
    archived: list[list[str]] = [[] for _ in range(topics)]
    rows: list[ReceiptRow] = []
    seq, drawn = 0, turns
    for number in range(0, turns, SESSION):
        day = f"{2015 + number * 10 // turns}-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}"
        said = ["---", f"id: evidence/{day}-s{number}", "kind: evidence", f"session: s{number}", "---"]
        for at in range(SESSION):
            seq += 1
            text = " ".join(chance.choices(WORDS, k=9)) + f" in {chance.choice(PLACES)}, number {seq}"
            time_of = f"{day}T10:{at % 60:02}:00"
            said.append(entry(seq, text, time_of, ()))
            if at % 5 < 2:
                drawn += 1
                topic = chance.randrange(topics)
                line = entry(drawn, text, time_of, (seq,))
                gone = at % 50 == 0 and documents[topic]
                if gone:
                    heir = drawn
                    archived[topic] += ["", f"## Superseded by {heir} (receipt 1)", documents[topic].pop()]
                documents[topic].append(line)
                rows.append(ReceiptRow(drawn, "CURRENT", f"topics/t{topic}", "moved"))
        write(root / f"evidence/{day}-s{number}.md", said)
    for number, lines in enumerate(documents):
        head = [
            "---",
            f"id: topics/t{number}",
            f"title: Topic {number}",
            f"summary: {WORDS[number % 12]}",
            "---",
        ]
        write(root / f"topics/t{number}.md", [*head, f"# Topic {number}", *lines])
        if archived[number]:
            head = ["---", f"id: archive/t{number}", "kind: archive", "---"]
            write(root / f"archive/t{number}.md", [*head, *archived[number]])
    for number, at in enumerate(range(0, len(rows), BATCH), 1):
        some = tuple(rows[at : at + BATCH])
        way = [
            line
            for row in some
            for line in (f"--- {row.now} (after)", f"+++ {row.now} (before)", "@@ -1 +1,0 @@", f"-@{row.seq}")
        ]
        receipt = Receipt(
            number,
            "consolidate",
            "2025-01-01T00:00:00Z",
            "infini",
            "none",
            Usage(),
            0.1,
            some,
            (),
            high=drawn,
        )
        (root / f"{receipt.id}.md").write_bytes(format_receipt(receipt, way))


def entry(seq: int, text: str, time_of: str, origin: Sequence[int]) -> str:
    return format_entry(seq, text, time=time_of, source="user", origin=origin, fields={"speaker": "Nora"})


def write(path: Path, lines: Sequence[str]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines) + "\n", "utf-8")


def pages(root: Path) -> dict[str, list[str]]:
    """Addresses of each kind of page."""
    view = open_memory(root, model="offline").view
    ids = [quote(one) for one in view.ids()]
    said = [quote(one) for one in view.ids("evidence")]
    seqs = [place.seq for scope in ("kept", "evidence") for place in view.entries(scope)]
    found = {
        "home": ["/"],
        "topics": ["/topics", f"/topics?from={max(1, len(ids) - 30)}"],
        "document": [f"/doc/{one}" for one in ids],
        "search": [f"/search?q={'+'.join(two)}" for two in zip(WORDS, [*PLACES, *WORDS], strict=False)],
        "map": ["/map"],
    }
    if view.initialised:
        found |= {
            "fact": [f"/fact/{seq}" for seq in seqs],
            "conversation": [f"/doc/{one}" for one in said],
            "conversations": ["/conversations", "/conversations?from=61"],
            "timeline": ["/timeline"],
            "receipt": [f"/receipt/{one}" for one in range(1, len(view.ids("journal")) + 1)],
            "review": ["/review"],
            "forget": [f"/forget?seq={seq}" for seq in seqs],
        }
    return found


def measure(root: Path, times: int) -> Iterator[str]:
    """A line for each kind of page."""
    kinds = pages(root)
    command = [sys.executable, "-m", "infinimem", "--library", str(root), "--json", "web"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            at = urlsplit(json.loads(process.stdout.readline())["url"])
            asked = http.client.HTTPConnection(str(at.hostname), at.port)
            cookie = str(get(asked, f"{at.path}?{at.query}")[1].getheader("set-cookie")).split(";")[0]
            chance = random.Random(1)
            for kind, some in kinds.items():
                get(asked, some[0], cookie)  # what the first page of a kind makes once
                clocks, before = [], processor(process.pid)
                for _ in range(times):
                    took, answer = get(asked, chance.choice(some), cookie)
                    assert answer.status == 200, (kind, answer.status)
                    clocks.append(1000 * took)
                clocks.sort()
                spent = 1000 * (processor(process.pid) - before) / times
                middle, late = clocks[len(clocks) // 2], clocks[int(0.95 * len(clocks))]
                yield f"{kind:15}{middle:9.1f}{late:9.1f}{spent:9.1f}"
        finally:
            process.terminate()


def get(
    asked: http.client.HTTPConnection, path: str, cookie: str = ""
) -> tuple[float, http.client.HTTPResponse]:
    began = time.perf_counter()
    asked.request("GET", path, headers={"Cookie": cookie})
    answer = asked.getresponse()
    answer.read()
    return time.perf_counter() - began, answer


def processor(pid: int) -> float:
    """Seconds of processor time of a process so far (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def main() -> None:
    """Measure each library, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--notes", type=Path, help="an archive of a folder of notes")
    parser.add_argument("--topics", type=int, default=2000)
    parser.add_argument("--turns", type=int, default=50_000)
    parser.add_argument("--times", type=int, default=100)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="im-") as folder:
        libraries = {"sample_library": Path(folder, "sample")}
        shutil.copytree(SAMPLE, libraries["sample_library"])
        if asked.turns:
            name = f"{asked.topics} topics, {asked.turns} turns"
            libraries[name] = Path(folder, "large")
            build(libraries[name], asked.topics, asked.turns)
        if asked.notes:
            libraries[asked.notes.name] = Path(folder, "notes")
            with tarfile.open(asked.notes) as archive:
                archive.extractall(libraries[asked.notes.name], filter="data")
        for name, root in libraries.items():
            print(f"\n{name}\n{'page':15}{'median':>9}{'p95':>9}{'cpu':>9}")
            for line in measure(root, asked.times):
                print(line, flush=True)


if __name__ == "__main__":
    main()
