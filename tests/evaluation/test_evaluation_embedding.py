"""The embedders of a run: what they take is estimated, booked and capped; a model may be named."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from evaluation_data import Small, request, results

from infinimem.embedders.lexical import Lexical
from infinimem.embedders.openai import OpenAIEmbedder
from infinimem.errors import ModelUnavailable, UsageError
from infinimem.evaluation.methods import embedding
from infinimem.evaluation.methods.embedding import Embedders, Embedding
from infinimem.evaluation.runner import Run
from infinimem.evaluation.tally import read
from infinimem.model import Usage


class Paid(Lexical):
    """Takes ten tokens a text."""

    name = "paid"
    semantic = True

    def __init__(self) -> None:
        self.usage: dict[str, Usage] = {}

    def embed(self, texts: Sequence[str]) -> Any:
        self.usage["embed"] = self.usage.get("embed", Usage()) + Usage(1, 10 * len(texts), 0)
        return super().embed(texts)


@pytest.fixture
def paid(monkeypatch: pytest.MonkeyPatch) -> Paid:
    found = Paid()
    monkeypatch.setattr(embedding, "connect", lambda *_: found)
    return found


def ready(folder: Path, *methods: str, **more: Any) -> Run:
    return Run(request(folder, *methods, retrieval_only=True, embedder="openai", **more), Small())


@pytest.mark.parametrize("jobs", [1, 3])
def test_vectors_that_are_paid_for_are_booked(tmp_path: Path, paid: Paid, jobs: int) -> None:
    """Bug guarded: an embedder behind a server spent outside estimate, cap and report."""
    methods = ("dense", "bm25", "infini-turns")
    run = ready(tmp_path, *methods, jobs=jobs)
    size = run.estimate()
    assert {(row.method, row.phase) for row in size.rows} == {
        ("dense", "embedding"),
        ("infini-turns", "embedding"),
    }
    assert size.total.calls == 20, "two histories and eight questions for each of two methods"
    assert size.total.tokens_in > 200 and "embedding" in str(size)
    assert not paid.usage, "an estimate sends nothing"
    run.start(lambda *_: None, 0)
    dense, bm25, turns = read(tmp_path / "out").methods
    assert not bm25.construction and not bm25.querying
    assert dense.construction["embedding"].tokens_in == 60, "the histories have the same turns"
    spent = [each["embedding"] for each in (dense.construction, dense.querying, turns.querying)]
    assert sum(spent, Usage()) == paid.usage["embed"]


def test_the_cap_holds_for_vectors(tmp_path: Path, paid: Paid) -> None:
    with pytest.raises(ModelUnavailable, match="cap of 60 tokens is spent; 0 questions"):
        ready(tmp_path, "dense", max_tokens=60).start(lambda *_: None, 0)
    assert paid.usage["embed"] == Usage(1, 60, 0)
    assert ready(tmp_path, "dense").start(lambda *_: None, 0).done == 8 == len(results(tmp_path / "out"))


def test_vectors_made_here_are_free(tmp_path: Path) -> None:
    wanted = request(tmp_path, "dense", retrieval_only=True, embedder="lexical")
    assert not Run(wanted, Small()).estimate().total.calls


def test_a_model_of_a_server_may_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    embedders = Embedders("openai/org/nomic:v1")
    found = embedders.memory(None)
    assert found is not None and found.name == "openai org/nomic:v1 at 127.0.0.1:9"
    assert embedders.dense("openai").embedder.name.startswith("openai text-embedding-3-small")
    for name, told in (("lexical/x", "one model only"), ("gpt/x", "no embedder is called 'gpt'")):
        with pytest.raises(UsageError, match=told):
            embedders.memory(name)


def test_an_embedder_that_is_counted_is_told_without_asking_it() -> None:
    """Bug guarded: looking for `usage` must not ask a server for the size of its vectors."""
    found = OpenAIEmbedder("unknown", "http://127.0.0.1:9/v1", retries=0)
    assert isinstance(found, embedding.Counts)


def test_vectors_that_are_kept_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bug guarded: a run over many histories kept the vectors of every turn it ever saw."""
    monkeypatch.setattr(embedding, "KEPT", 8 * Lexical.size)
    kept = Embedding(Lexical())
    for number in range(5):
        texts = [f"word{number} {at}" for at in range(6)]
        rows = kept.embed(texts)
        assert (rows == Lexical().embed(texts)).all()
        assert len(kept) <= 8
    assert kept.embed(["a"] * 20).shape == (20, Lexical.size), "more than are kept"
