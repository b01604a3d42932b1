"""Pictures of `infinimem web` for the README: home, a topic and a fact of the sample library.

    python benchmarks/screenshots.py [--browser /usr/bin/chromium] [--out docs]

Writes web_home.png, web_topic.png and web_fact.png.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urljoin

from playwright.sync_api import sync_playwright

SAMPLE = Path(__file__).parents[1] / "sample_library"
SIZE = {"width": 1200, "height": 760}
PAGES = {"home": "/", "topic": "/doc/topics/home", "fact": "/fact/250"}


def main() -> None:
    """Serve a copy of the sample library, and take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--browser", help="a Chromium that is installed; else Playwright's own")
    parser.add_argument("--out", type=Path, default=SAMPLE.parent / "docs")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="im-") as folder:
        library = shutil.copytree(SAMPLE, Path(folder, "nora"))
        command = [
            sys.executable,
            "-m",
            "infinimem",
            "--library",
            str(library),
            "--json",
            "web",
        ]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout
                url = json.loads(process.stdout.readline())["url"]
                with sync_playwright() as playwright:
                    browser = playwright.chromium.launch(
                        executable_path=asked.browser, args=["--no-sandbox"] if asked.browser else []
                    )
                    page = browser.new_page(viewport=SIZE, color_scheme="light")
                    page.goto(url)
                    for name, path in PAGES.items():
                        page.goto(urljoin(url, path))
                        page.screenshot(path=asked.out / f"web_{name}.png")
                        print(asked.out / f"web_{name}.png")
                    browser.close()
            finally:
                process.terminate()


if __name__ == "__main__":
    main()
