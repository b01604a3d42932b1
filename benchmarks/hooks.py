"""What a hook of Claude Code costs the person who waits for it, on this machine.

    python benchmarks/hooks.py [--library DIR] [--times N]

Each hook is the installed command, started anew, with a warm process for the library as in a session; beside
it a bare Python. On a busy machine the processor time says more than the clock.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SAMPLE = Path(__file__).parents[1] / "sample_library"
PROMPT = "How many false alarms were there in the kestrel pilot?"


def spent() -> float:
    """Seconds of processor time of the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def timed(command: list[str], given: bytes) -> tuple[float, float, bytes]:
    """Milliseconds on the clock and on the processor, and what was printed."""
    before, began = spent(), time.perf_counter()
    ran = subprocess.run(command, input=given, capture_output=True, check=True)
    return (time.perf_counter() - began) * 1000, (spent() - before) * 1000, ran.stdout


def row(label: str, runs: list[tuple[float, float, bytes]]) -> str:
    clock, processor = [run[0] for run in runs], [run[1] for run in runs]
    answered = sum(bool(run[2]) for run in runs)
    return (
        f"{label:34} {statistics.median(clock):7.0f} {min(clock):7.0f} "
        f"{statistics.median(processor):9.0f} {min(processor):9.0f} {answered:9}"
    )


def main() -> None:
    """Measure each hook in a copy of the library."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--library", type=Path, default=SAMPLE)
    parser.add_argument("--times", type=int, default=15)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="im-") as folder:
        library = Path(folder, "library")
        shutil.copytree(asked.library, library)
        log = Path(folder, "log.jsonl")
        line = {
            "type": "user",
            "sessionId": "s",
            "uuid": "u",
            "message": {"role": "user", "content": "Hello."},
        }
        log.write_text(json.dumps(line) + "\n")
        os.environ.update(
            INFINIMEM_LIBRARY=str(library),
            INFINIMEM_TRUST=str(library),
            INFINIMEM_MODEL="offline",
            XDG_RUNTIME_DIR=folder,
            XDG_CACHE_HOME=folder,
        )
        program = shutil.which("infinimem", path=str(Path(sys.executable).parent)) or "infinimem"

        def runs(
            event: str, transcript: Path, prompt: str = PROMPT, pause: float = 0.0
        ) -> list[tuple[float, float, bytes]]:
            def given(session: int) -> bytes:  # each its own session: none was shown anything before
                told = {"session_id": f"{event}{session}", "cwd": "/home/kestrel", "prompt": prompt}
                return json.dumps({**told, "transcript_path": str(transcript)}).encode()

            found = []
            for number in range(asked.times):
                found.append(timed([program, "hook", event], given(number)))
                time.sleep(pause)  # sessions end one by one: what the last one started is done
            return found

        print(f"{'ms':34} {'median':>7} {'least':>7} {'cpu':>9} {'least cpu':>9} {'answered':>9}")
        print(row("python alone", [timed([sys.executable, "-c", ""], b"") for _ in range(asked.times)]))
        print(
            row(
                "SessionStart, nobody warm",
                [timed([program, "hook", "SessionStart"], b'{"cwd": "/kestrel"}')],
            )
        )
        asking = {"session_id": "warm", "cwd": "/home/kestrel", "prompt": PROMPT}
        first = json.dumps(asking).encode()
        while not timed([program, "hook", "UserPromptSubmit"], first)[2]:
            time.sleep(0.1)
        print(row("SessionStart", runs("SessionStart", log)))
        print(row("UserPromptSubmit, the first", runs("UserPromptSubmit", log)))
        later = [timed([program, "hook", "UserPromptSubmit"], first) for _ in range(asked.times)]
        print(row("UserPromptSubmit, a later one", later))
        print(row("SessionEnd, nothing was said", runs("SessionEnd", Path(folder, "none"))))
        print(row("SessionEnd", runs("SessionEnd", log, pause=3.0)))
        library.rename(Path(folder, "away"))  # and the warm process ends with the next question
        for path in Path(folder).rglob("*.sock"):
            with socket.socket(socket.AF_UNIX) as line:
                line.connect(str(path))


if __name__ == "__main__":
    main()
