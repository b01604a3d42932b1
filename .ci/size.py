"""Prints how much an installation takes: `python size.py [LIMIT]`, with the Python of a virtual environment.

Megabytes (10^6 bytes) of site-packages without pip, setuptools and bytecode; fails above the limit.
"""

import sys
import sysconfig
from pathlib import Path

site = Path(sysconfig.get_path("purelib"))
sizes: dict[str, int] = {}
for path in site.rglob("*"):
    name = path.relative_to(site).parts[0].partition("-")[0]
    if path.is_file() and path.suffix != ".pyc" and name not in ("pip", "setuptools", "_distutils_hack"):
        sizes[name] = sizes.get(name, 0) + path.stat().st_size
total = sum(sizes.values()) / 1e6
largest = sorted(sizes.items(), key=lambda row: -row[1])[:8]
print(f"{total:.1f} MB: {', '.join(f'{name} {size / 1e6:.1f}' for name, size in largest)}")
sys.exit(len(sys.argv) > 1 and total > float(sys.argv[1]))
