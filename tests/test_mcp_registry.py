"""server.json says what the package is, and the README proves to the registry that both belong together."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
from cli_runner import Shell

ROOT = Path(__file__).parents[1]

if not (ROOT / "server.json").exists():
    pytest.skip("server.json is in the checkout alone", allow_module_level=True)

SERVER = json.loads((ROOT / "server.json").read_text())
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
(PACKAGE,) = SERVER["packages"]


def test_it_names_this_package_in_this_version() -> None:
    assert (PACKAGE["registryType"], PACKAGE["identifier"]) == ("pypi", PROJECT["name"])
    assert SERVER["version"] == PACKAGE["version"] == PROJECT["version"]
    assert PACKAGE["transport"] == {"type": "stdio"}


def test_the_readme_carries_its_name() -> None:
    """A token of its own, in a comment: so the registry knows the package by its page."""
    assert re.search(rf"<!-- mcp-name: {re.escape(SERVER['name'])} -->", (ROOT / "README.md").read_text())


def test_what_it_runs_is_a_command(shell: Shell) -> None:
    (extra,) = PACKAGE["runtimeArguments"]
    assert extra["value"] == "infinimem[mcp]"
    assert "mcp" in PROJECT["optional-dependencies"]
    (command,) = (argument["value"] for argument in PACKAGE["packageArguments"])
    assert shell(command, "--help").code == 0
