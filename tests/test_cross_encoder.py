"""A cross-encoder from a folder: a real network, as small as one can be, whose logit counts ids."""

from __future__ import annotations

from math import exp
from pathlib import Path

import pytest
from gam_library import model
from recmem_library import Angles
from trusting import write_trusted

from infinimem import Turn, open_memory
from infinimem.embedders.local import cross_encoder
from infinimem.errors import ModelNotConfigured

FLOAT, INT64 = 1, 7
WORDS = ("[UNK]", "zither", "oboe", "who", "plays", "the")


def varint(number: int) -> bytes:
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + varint(number >> 7)


def field(number: int, value: int | str | bytes) -> bytes:
    """A field of a protocol buffer: a number, or a length and bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def tensor(name: str, kind: int, *shape: int | str) -> bytes:
    dims = b"".join(field(1, field(2 if isinstance(size, str) else 1, size)) for size in shape)
    return field(1, name) + field(2, field(1, field(1, kind) + field(2, dims)))


def node(kind: str, given: str, gives: str, name: str, value: bytes, of: int) -> bytes:
    attribute = field(1, name) + value + field(20, of)
    return field(1, given) + field(2, gives) + field(4, kind) + field(5, attribute)


def network() -> bytes:
    """ONNX: the mean of the ids of all tokens."""
    cast = node("Cast", "input_ids", "numbers", "to", field(3, FLOAT), 2)
    mean = node("ReduceMean", "numbers", "logits", "axes", field(8, 1), 7)
    graph = (
        field(1, cast)
        + field(1, mean)
        + field(2, "tiny")
        + field(11, tensor("input_ids", INT64, 1, "length"))
        + field(12, tensor("logits", FLOAT, 1, 1))
    )
    return field(1, 7) + field(7, graph) + field(8, field(2, 11))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pytest.importorskip("onnxruntime")
    tokenizers = pytest.importorskip("tokenizers")
    words = tokenizers.models.WordLevel({word: at for at, word in enumerate(WORDS)}, "[UNK]")
    tokenizer = tokenizers.Tokenizer(words)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    (tmp_path / "model").mkdir()
    tokenizer.save(str(tmp_path / "model" / "tokenizer.json"))
    (tmp_path / "model" / "model.onnx").write_bytes(network())
    return tmp_path / "model"


def test_a_probability_is_the_sigmoid_of_what_the_network_says_of_the_pair(folder: Path) -> None:
    found = cross_encoder(folder)("who plays", ["zither", "the oboe", ""])
    means = (8 / 3, 14 / 4, 7 / 2)
    assert found == pytest.approx([1 / (1 + exp(-mean)) for mean in means], abs=1e-6)


def test_a_folder_without_a_model_says_so(tmp_path: Path) -> None:
    with pytest.raises(ModelNotConfigured, match="cross-encoder"):
        cross_encoder(tmp_path)


def first(root: Path) -> str:
    """What a library that knows no vectors finds first."""
    memory = open_memory(root, model=model(), strategy="gam", create=True, embedder=Angles())
    memory.observe([Turn(text, speaker="Ann", session="s1") for text in ("zither", "the oboe")])
    return memory.retrieve("who plays").items[0].text


def test_a_library_that_is_trusted_ranks_turns_by_it(tmp_path: Path, folder: Path) -> None:
    settings = '[gam]\nrerank = "cosine"\n'
    for name, more in (("without", ""), ("untrusted", f'cross_encoder = "{folder}"\n')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "infinimem.toml").write_text(settings + more)
        assert first(tmp_path / name) == "zither"
    write_trusted(tmp_path / "trusted", f'{settings}cross_encoder = "{folder}"\n')
    assert first(tmp_path / "trusted") == "the oboe"
