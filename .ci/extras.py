"""Fails where an extra of a wheel brings a framework of gigabytes: `python extras.py WHEEL`.

uv, which this Python must have, resolves all extras together and installs nothing.
"""

import re
import subprocess
import sys
from email import message_from_bytes
from pathlib import Path
from zipfile import ZipFile

REFUSED = re.compile(r"torch|triton|nvidia-.*")

wheel = Path(sys.argv[1]).resolve()
with ZipFile(wheel) as archive:
    (path,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    extras = message_from_bytes(archive.read(path)).get_all("Provides-Extra", [])
uv = [sys.executable, "-m", "uv", "pip", "compile", "-q", "--no-header", "--no-annotate", "-"]
wanted = f"infinimem[{','.join(extras)}] @ {wheel.as_uri()}"
done = subprocess.run(uv, input=wanted, stdout=subprocess.PIPE, check=True, text=True)
names = [re.split(r"[ =]", line)[0] for line in done.stdout.splitlines()]
refused = sorted(name for name in names if REFUSED.fullmatch(re.sub(r"[-_.]+", "-", name).lower()))
print(f"the extras {', '.join(extras)} bring {len(names)} packages")
sys.exit(f"of these none may come with an extra: {', '.join(refused)}" if refused else 0)
