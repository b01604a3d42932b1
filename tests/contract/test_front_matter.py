"""Headers are everybody's: python-frontmatter reads what we write, and we read what it writes."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import frontmatter
import pytest
import yaml
from frontmatter.default_handlers import YAMLHandler
from hypothesis import given
from hypothesis import strategies as st

from infinimem import Turn, open_memory

SAID = (
    "My sister Rita moved to Porto in 2019: a flat, with a view.",
    "I am allergic to nuts #1, 'really', says Dr. Vu.",
    "yes",
    "We bought a red kayak on 2025-02-30.",
    "The choir sings on Mondays [in the old kiln].",
    "I am not allergic to nuts any more.",
)


class Strings(YAMLHandler):
    def load(self, fm: str, **kwargs: object) -> Any:
        return super().load(fm, Loader=yaml.BaseLoader)


@pytest.mark.parametrize("strategy", ["infini", "allmem", "gam", "recmem", "xmemory"])
def test_python_frontmatter_reads_all_that_is_written(tmp_path: Path, strategy: str) -> None:
    """It reads the header of every document of each system, with the values that we read."""
    (tmp_path / "infinimem.toml").write_text("[recmem]\ntheta_sim = 0.1\ntheta_count = 2\n")
    clock = datetime(2025, 3, 3, 12, tzinfo=UTC)
    memory = open_memory(
        tmp_path,
        model="offline",
        strategy=strategy,
        embedder="lexical",
        create=True,
        clock=lambda: clock,
    )
    for session, speaker in (("yes", "Ann: 1"), ("#2", "null"), ("3", "Bo")):
        memory.observe([Turn(text, session=session, speaker=speaker) for text in SAID])
        memory.consolidate()
    (secret,) = memory.record([Turn("The spare key lies under the stone.", session="2025-03-03")])
    memory.forget([secret.seq])
    kinds = set()
    for path in tmp_path.rglob("*.md"):
        text, doc_id = path.read_text(), path.relative_to(tmp_path).with_suffix("").as_posix()
        kinds.add(doc_id.split("/")[0])
        header = memory.view.document(doc_id).header
        assert header.end and header.problem is None
        assert frontmatter.loads(text, handler=Strings()).metadata == header.values
        assert frontmatter.loads(text).metadata.keys() == header.values.keys()
    assert {"journal", "evidence", "topics" if strategy == "infini" else strategy} <= kinds


VALUES = st.recursive(
    st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.text(), VALUES, max_size=4))
def test_what_python_frontmatter_writes_is_read(
    tmp_path_factory: pytest.TempPathFactory, values: dict[str, Any]
) -> None:
    """A note with a header of its making says the same to us."""
    post = frontmatter.Post("A heron.")
    post.metadata = values
    root = tmp_path_factory.mktemp("notes")
    (root / "a.md").write_text(frontmatter.dumps(post))
    assert open_memory(root).view.document("a").header.values == values
