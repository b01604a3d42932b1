"""How fast is it, from 300 documents to 200,000, beside what people would use instead? One run, one table.

    python benchmarks/speed.py --data FOLDER --out FOLDER [--sizes 300,3000] [--engines infinimem,tantivy]
        [--page docs/PERFORMANCE.md]

Builds libraries (speed_libraries.py), starts every engine in processes of its own and writes
performance.json, performance.md and performance.png. Needs the `bench` extra; ripgrep is measured where
`rg` is found. Digits belong to a machine; what holds elsewhere are ratios within one run.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from speed_engines import ENGINES
from speed_grep import GREPS, LIMIT, there_is
from speed_libraries import Source, build, compose, read_sources, short
from speed_plot import plot
from speed_process import quantile, run
from speed_queries import draw, patterns
from speed_report import report

SIZES = (300, 3_000, 30_000, 200_000)
SLOW = ("rank_bm25", "rank_bm25+")
SLOW_ABOVE = 30_000
"""rank_bm25 is left out above so many documents unless --all: it takes minutes and gigabytes."""
BIG = 8_000_000
"""Bytes of the one large file; 8 MiB is the most that tools read of a note."""
STARTS = 7
CHANGES = 10
ROUNDS = 3
"""How often each pattern is looked for, where time allows."""

Figures = dict[str, Any]


class Bench:
    """One run.

    Args:
        options: of the command line.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.work: Path = options.work or options.out / "work"
        self.libraries: Path = options.libraries or self.work / "libraries"
        self.work.mkdir(parents=True, exist_ok=True)
        options.out.mkdir(parents=True, exist_ok=True)
        self.file: Path = options.out / "performance.json"
        kept = options.keep and self.file.exists()
        self.figures: Figures = json.loads(self.file.read_bytes()) if kept else {"sizes": {}, "grep": {}}
        self.figures["machine"] = machine()
        self.engines = options.engines.split(",") if options.engines else [*ENGINES, "ripgrep", "re"]
        self.sources: list[Source] = read_sources(options.data)
        self.queries = self.work / "queries.json"
        self.patterns = self.work / "patterns.json"
        self.queries.write_text(json.dumps(draw(self.sources, options.data, options.queries)))
        self.patterns.write_text(json.dumps(patterns(self.sources)))

    def run(self) -> None:
        """All sizes, the smallest first; what is known so far is written after each engine."""
        for documents in self.options.sizes:
            library = build(self.options.data, self.libraries / short(documents), documents)
            size = self.figures["sizes"].setdefault(str(documents), {})
            for engine in filter(self._wanted(documents), ENGINES):
                size.setdefault("search", {})[engine] = self.searching(engine, library)
                self._save(documents, engine)
            size["grep"] = {
                **size.get("grep", {}),
                **self.grepping(library, limit=LIMIT * max(documents / 30_000, 1)),
            }
            self._save(documents, "grep")
            if "infinimem" in self.engines:
                size["changes"] = self._task("changes", "infinimem", library, rounds=CHANGES)
                restore(library)
                self._save(documents, "changes")
        self.figures["grep"].update(self.grepping(self.big_file(), doc="notes/large.md", limit=LIMIT))
        self._save(1, "grep in one large file")

    def _wanted(self, documents: int) -> Any:
        def wanted(engine: str) -> bool:
            slow = engine in SLOW and documents > SLOW_ABOVE and not self.options.all
            return engine in self.engines and not slow

        return wanted

    def searching(self, engine: str, library: Path) -> Figures:
        """Building, asking and starting one engine."""
        folder = self.folder(engine, library)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        figures: Figures = {"build": self._task("build", engine, library)}
        figures["disk_mb"] = disk_mb(folder)
        query = json.loads(self.queries.read_bytes())["asked"][0]
        figures["first_ms"] = self.first(engine, library, query)
        figures["warm"] = self._task(
            "search", engine, library, queries=str(self.queries), count=self.options.queries
        )
        if hasattr(ENGINES[engine], "change"):
            figures["change"] = self._task("change", engine, library, rounds=CHANGES)
        return figures

    def grepping(self, library: Path, **more: Any) -> Figures:
        """All kinds of patterns, by each engine that is there."""
        chosen = [name for name in GREPS if name in self.engines and there_is(name)]
        arguments = {"patterns": str(self.patterns), "rounds": ROUNDS, **more}
        return {engine: self._task("grep", engine, library, **arguments) for engine in chosen}

    def first(self, engine: str, library: Path, query: str) -> float:
        """Milliseconds from the start of a process to its end, one answer in between; the median of some."""
        found = []
        for _ in range(STARTS):
            if engine != "infinimem":
                found.append(self._task("first", engine, library, query=query)["wall_s"])
            else:
                command = [sys.executable, "-m", "infinimem", "--library", str(library), "search", query]
                began = time.perf_counter()
                subprocess.run(command, stdout=subprocess.DEVNULL, env=self._environment(library), check=True)
                found.append(time.perf_counter() - began)
            if sum(found) > 60:
                break
        return 1e3 * quantile(found, 0.5)

    def big_file(self) -> Path:
        """A folder with one note as large as tools read, with lines that make a backtracking engine hang."""
        path = self.work / "large" / "notes" / "large.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        text, size, number = ["# One large note\n"], 0, 0
        while size < BIG - 200_000:
            text.append(compose(self.sources, number)[1])
            size += len(text[-1].encode())
            number += 1
        text += [f"{'a' * 40}b", f"{'x' * 4000}.", f"{'a' * 100_000}?"]
        path.write_text("\n".join(text) + "\n", encoding="utf-8")
        return path.parents[1]

    def folder(self, engine: str, library: Path) -> Path:
        return self.work / "indexes" / library.name / engine

    def _task(self, name: str, engine: str, library: Path, **more: Any) -> Figures:
        folder = self.folder(engine, library)
        folder.mkdir(parents=True, exist_ok=True)
        task = {"name": name, "engine": engine, "library": str(library), "folder": str(folder)}
        return run({**task, "seconds": self.options.seconds, **more}, self._environment(library))

    def _environment(self, library: Path) -> dict[str, str]:
        """Our index lies in the cache directory: for this run it is where the others have theirs."""
        return {**os.environ, "XDG_CACHE_HOME": str(self.folder("infinimem", library))}

    def _save(self, documents: int, done: str) -> None:
        self.file.write_text(json.dumps(self.figures, indent=1) + "\n")
        print(f"{short(documents)}: {done}", file=sys.stderr, flush=True)


def restore(library: Path) -> None:
    """The small memory in a library as it was made."""
    pattern = library.with_name("memory")
    for path in pattern.iterdir():
        target = library / path.name
        if path.is_dir():
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(path, target)
        else:
            shutil.copyfile(path, target)


def disk_mb(folder: Path) -> float:
    """What the files under a folder take, in MB."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def machine() -> Mapping[str, Any]:
    """What matters of the machine: cores, memory, Python."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cores": os.cpu_count(),
        "memory_gib": round(memory),
        "python": ".".join(map(str, sys.version_info[:3])),
        "system": sys.platform,
    }


def show(page: Path, tables: str, picture: Path | None) -> None:
    """Put the tables between the two marks of a page, and the plot beside it."""
    before, begin, rest = page.read_text(encoding="utf-8").partition("<!-- figures -->\n")
    _, end, after = rest.partition("<!-- end of figures -->")
    if not begin or not end:
        raise SystemExit(f"{page}: has no <!-- figures --> and <!-- end of figures --> to write between")
    page.write_text(f"{before}{begin}{tables}\n{end}{after}", encoding="utf-8")
    if picture:
        shutil.copyfile(picture, page.with_name(picture.name))


def sizes(text: str) -> Sequence[int]:
    """ "300,3000" as numbers."""
    return [int(part) for part in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True, help="folder of notes and dialogues")
    parser.add_argument("--out", type=Path, required=True, help="folder for the table and the plot")
    parser.add_argument("--sizes", type=sizes, default=SIZES, help="numbers of documents: 300,3000")
    parser.add_argument("--engines", help=f"only these: {','.join([*ENGINES, 'ripgrep', 're'])}")
    parser.add_argument("--queries", type=int, default=200, help="queries of each kind")
    parser.add_argument("--seconds", type=float, default=15, help="at most, about, for each kind of query")
    parser.add_argument(
        "--libraries", type=Path, help="where they are built or lie already; by default in --work"
    )
    parser.add_argument("--work", type=Path, help="indexes and libraries; by default a folder in --out")
    parser.add_argument("--all", action="store_true", help="rank_bm25 above 30,000 documents too")
    parser.add_argument(
        "--keep", action="store_true", help="keep the figures in --out that are not measured anew"
    )
    parser.add_argument(
        "--report", action="store_true", help="only write table and plot from performance.json"
    )
    parser.add_argument("--page", type=Path, help="put the tables into this page and the plot beside it")
    options = parser.parse_args()
    if not options.report:
        Bench(options).run()
    figures = json.loads((options.out / "performance.json").read_bytes())
    (options.out / "performance.md").write_text(report(figures) + "\n", encoding="utf-8")
    drawn = plot(figures, options.out / "performance.png")
    if options.page:
        show(options.page, report(figures), options.out / "performance.png" if drawn else None)
    print(report(figures))
    if not drawn:
        print("no plot: matplotlib is not installed (pip install 'infinimem[bench]')", file=sys.stderr)


if __name__ == "__main__":
    main()
