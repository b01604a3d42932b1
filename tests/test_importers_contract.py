"""What holds for every format: told by its content, it comes in whole and in order, once, or not at all."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from cli_runner import Shell
from exports import EXPORTS, Export, altered

from infinimem.errors import ImportFormatError, UsageError
from infinimem.importers import survey
from infinimem.importers.read import formats
from infinimem.store.evidence import check_turn

READS_ALL = ("openai", "markdown")
"""Formats that take what is of no other: any messages, any text."""


def _is_json(export: Export) -> bool:
    return not any(isinstance(content, str) for content in export.files.values())


@pytest.fixture(params=EXPORTS)
def export(request: pytest.FixtureRequest) -> Export:
    return EXPORTS[request.param]


class TestEveryFormat:
    @pytest.mark.sample(8)
    def test_it_is_recognised_and_read_in_order(self, export: Export, tmp_path: Path) -> None:
        found = survey(export.save(tmp_path / "export"))
        turns = [turn for batch in found.batches() for turn in batch]
        assert found.formats == (export.format,)
        assert [(turn.role, turn.text, turn.speaker, turn.time) for turn in turns] == export.turns
        assert list(dict.fromkeys(turn.session for turn in turns)) == export.sessions

    @pytest.mark.sample(3)
    def test_its_name_and_what_is_around_it_do_not_matter(self, export: Export, tmp_path: Path) -> None:
        """A single file under another name is what it was; in a folder with others all come in."""
        path = export.save(tmp_path / "all" / "export")
        if path.is_file():
            shutil.copy(path, tmp_path / "renamed")
            assert survey(tmp_path / "renamed").formats == (export.format,)
        (tmp_path / "all" / "other.md").write_text("- a walnut\n")
        both = survey(tmp_path / "all")
        assert both.turns == len(export.turns) + 1
        assert not {name: why for name, why in both.left_out.items() if "integration_logs" not in name}

    @pytest.mark.sample(5)
    @pytest.mark.parametrize("other", sorted({export.format for export in EXPORTS.values()} - set(READS_ALL)))
    def test_no_other_format_takes_it(self, export: Export, other: str, tmp_path: Path) -> None:
        if other == export.format or len(export.files) > 1:
            return
        path = export.save(tmp_path)
        with pytest.raises((ImportFormatError, UsageError)):
            list(survey(path, format=other).batches())

    @pytest.mark.sample(3)
    def test_the_second_time_nothing_is_added(self, export: Export, shell: Shell, tmp_path: Path) -> None:
        path = str(export.save(tmp_path / "export"))
        shell("init", ".")
        first = shell("import", path, "--json").json
        assert (first["recorded"], first["turns"]) == (len(export.turns), len(export.turns))
        before = shell.tree()
        assert shell("import", path, "--json").json["recorded"] == 0
        assert shell.tree() == before

    @pytest.mark.sample(3)
    def test_what_came_in_is_found_and_blame_leads_back(
        self, export: Export, shell: Shell, tmp_path: Path
    ) -> None:
        path = str(export.save(tmp_path / "export"))
        shell("init", ".")
        assert shell("import", path).code == 0
        (hit, *_) = shell("search", export.asked, "--json").json["hits"]
        rows = shell("blame", hit["doc_id"], "--json").json["rows"]
        row = next(row for row in rows if all(word in row["text"] for word in export.asked.split()))
        (turn,) = row["turns"]
        assert turn["where"].startswith("evidence/")
        assert (turn["text"], turn["session"]) == (export.turns[0][1], export.sessions[0])

    @pytest.mark.sample(3)
    def test_damaged_it_is_refused_and_nothing_is_written(
        self, export: Export, shell: Shell, tmp_path: Path
    ) -> None:
        """JSON that is cut off, or bytes that are no text."""
        if len(export.files) > 1:
            pytest.skip("a folder: what is damaged in it is left out and told")
        path = export.save(tmp_path / "export")
        data = path.read_bytes()
        path.write_bytes(data[:-9] if path.suffix in (".json", ".jsonl") else data[:40] + b"\0" + data[40:])
        shell("init", ".")
        before = shell.tree()
        shell("import", str(path)).failed(1, path.name)
        assert shell.tree() == before


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", [name for name, one in EXPORTS.items() if _is_json(one)])
def test_an_odd_value_anywhere_is_an_import_error_at_worst(name: str, tmp_path: Path) -> None:
    for file, content in EXPORTS[name].files.items():
        for changed in altered(content):
            path = replace(EXPORTS[name], files={**EXPORTS[name].files, file: changed}).save(tmp_path)
            try:
                for batch in survey(path).batches():
                    for turn in batch:
                        check_turn(turn)
            except ImportFormatError as error:
                assert "\n" not in str(error)


LOGS = {"Claude Code", "Codex"}
"""Tried in tests/test_importers_logs.py."""


def test_every_row_of_the_page_is_tried_and_every_format_has_one() -> None:
    page = (Path(__file__).parents[1] / "docs" / "IMPORTS.md").read_text()
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.endswith("` |")]
    tried = {name.partition(",")[0]: export.format for name, export in EXPORTS.items()}
    assert {row[0]: row[-1].strip("`") for row in rows if row[0] not in LOGS} == tried
    data_sets = {"locomo", "longmemeval", "memoryagentbench"}
    assert {row[-1].strip("`") for row in rows} == set(formats()) - data_sets
