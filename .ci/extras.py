"""Fails where an extra of a wheel brings a framework of gigabytes: `python extras.py WHEEL`.

pip resolves all extras together and installs nothing.
"""

import json
import re
import subprocess
import sys
from email import message_from_bytes
from zipfile import ZipFile

REFUSED = re.compile(r"torch|triton|nvidia-.*")

wheel = sys.argv[1]
with ZipFile(wheel) as archive:
    (path,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    extras = message_from_bytes(archive.read(path)).get_all("Provides-Extra", [])
pip = [sys.executable, "-m", "pip", "install", "-qq", "--dry-run", "--ignore-installed", "--report", "-"]
done = subprocess.run([*pip, f"{wheel}[{','.join(extras)}]"], stdout=subprocess.PIPE, check=True)
names = [item["metadata"]["name"] for item in json.loads(done.stdout)["install"]]
refused = sorted(name for name in names if REFUSED.fullmatch(re.sub(r"[-_.]+", "-", name).lower()))
print(f"the extras {', '.join(extras)} bring {len(names)} packages")
sys.exit(f"of these none may come with an extra: {', '.join(refused)}" if refused else 0)
