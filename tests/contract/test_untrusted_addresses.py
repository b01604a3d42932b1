"""Addresses that are not what they look like, in one line of error each."""

from __future__ import annotations

import pytest
from cli_runner import Shell


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "host", ["0.0.0.0", "[::]", "[::ffff:0.0.0.0]", "[::ffff:0:0]", "[0:0:0:0:0:FFFF:0:0]"]
)
@pytest.mark.parametrize("remote", [(), ("--remote",)])
def test_no_wildcard_is_served_however_it_is_written(
    shell: Shell, host: str, remote: tuple[str, ...]
) -> None:
    """`mcp --http` names one address: what stands for all of them is refused in every form."""
    pytest.importorskip("mcp", reason="infinimem[mcp] is not installed")
    assert shell("init").code == 0
    shell("mcp", "--http", f"{host}:0", *remote).failed(2, "stands for every address")


def test_a_mapped_address_of_another_machine_needs_remote(shell: Shell) -> None:
    """An IPv4 address in IPv6's clothes is held against the same rule."""
    pytest.importorskip("mcp", reason="infinimem[mcp] is not installed")
    assert shell("init").code == 0
    shell("mcp", "--http", "[::ffff:192.0.2.1]:0").failed(2, "open to other machines")


@pytest.mark.parametrize(
    "url", ["s3://bucket/../x", "s3://bucket/./x", "s3://bucket/x/..", "s3://bucket/x/../", "s3://b/../x"]
)
def test_a_place_of_a_fleet_with_dots_is_one_line(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    """An address of an object store that leads out of its prefix is refused as what it is."""
    pytest.importorskip("obstore", reason="infinimem[fleet] is not installed")
    monkeypatch.setenv("INFINIMEM_FLEET", url)
    monkeypatch.setenv("INFINIMEM_FLEET_DATABASE", "postgresql://127.0.0.1:9/none")
    ran = shell("fleet", "status")
    ran.failed(2, "is no address of a fleet")
    assert "unexpected" not in ran.err
