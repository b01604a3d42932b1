"""What is packaged and how it is released: metadata, container, workflow."""

from __future__ import annotations

import json
import re
import shlex
import socket
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from cli_runner import Shell

from infinimem.serving.http import names

ROOT = Path(__file__).parents[1]

if not (ROOT / "Dockerfile").exists():
    pytest.skip("what is packaged is in the checkout alone", allow_module_level=True)

TABLE = tomllib.loads((ROOT / "pyproject.toml").read_text())
DOCKERFILE = (ROOT / "Dockerfile").read_text()


def test_the_page_of_the_package_leads_to_the_project() -> None:
    links = TABLE["project"]["urls"]
    assert links.keys() >= {"Homepage", "Documentation", "Changelog", "Issues"}
    assert all(link.startswith("https://github.com/infinimem/infinimem") for link in links.values())


def test_the_release_is_tested_with_every_python_that_it_names() -> None:
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(TABLE["project"]["classifiers"]))
    jobs = release()["jobs"]
    assert jobs["test"]["strategy"]["matrix"]["python"] == named
    on_pull_requests = workflow("ci")["jobs"]["test"]
    assert on_pull_requests["strategy"]["matrix"]["python"] == named
    assert [step["run"] for step in on_pull_requests["steps"] if "run" in step] == [".ci/run"]
    assert set(jobs["publish"]["needs"]) == {"build", "test"}


def test_only_the_job_that_publishes_may_and_it_runs_nothing_else() -> None:
    jobs = release()["jobs"]
    may = [name for name, job in jobs.items() if "id-token" in job.get("permissions", {})]
    assert may == ["publish"]
    assert release()["permissions"] == {}
    assert not [step for step in jobs["publish"]["steps"] if "run" in step]


def release() -> dict[str, Any]:
    return workflow("release")


def workflow(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / f".github/workflows/{name}.yml").read_text())
    return found


def test_an_image_is_built_of_all_that_the_package_is_made_of() -> None:
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    tools = TABLE["tool"]["setuptools"]
    folders = {name.split(".")[0] for name in tools["packages"]} | set(tools["package-dir"].values())
    project = TABLE["project"]
    assert let_in == {*folders, "pyproject.toml", project["readme"], *project["license-files"]}


def test_what_the_image_is_told_to_run_are_commands(shell: Shell) -> None:
    told = re.sub(r" \\\n#", "", DOCKERFILE)
    calls = [
        shlex.split(line)[1:] for line in re.findall(r"^# +docker run .* (infinimem mcp.*)$", told, re.M)
    ]
    assert calls == [["mcp", "--http", "memory:8321", "--remote"], ["mcp"]]
    for call in calls:
        assert shell(*call, "--help").code == 0
    assert 'ENTRYPOINT ["infinimem"]' in DOCKERFILE


def test_a_port_that_is_passed_on_is_called_by_the_names_of_loopback() -> None:
    class Listening(socket.socket):
        def getsockname(self) -> tuple[str, int]:
            return "172.17.0.2", 8321

    with Listening() as listening:
        assert names("memory:8321", listening) == [
            "memory:8321",
            "172.17.0.2:8321",
            "localhost:8321",
            "127.0.0.1:8321",
            "[::1]:8321",
        ]


# ── the registry of MCP servers ──────────────────────────────────────────────────────────────────────


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
