"""The default embedder: the mean of a text's word pieces, out of a table. No model runs; a text takes 0.1 ms.

The table and its tokenizer come out of the pinned wheel `wordllama` (MIT); its code is never imported, because its own
loader looks for them on the network.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from threadmark.memory.embedders.related import Related
from threadmark.memory.embedders.weights import installed_file, read_tensors, trusted
from threadmark.memory.pools import QUESTIONS, TEXTS

__all__ = ["WordLlamaEmbedder"]

PACKAGE = "wordllama"
WEIGHTS = "wordllama/weights/l2_supercat_256.safetensors"
WEIGHTS_SHA256 = "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5"
TOKENIZER = "wordllama/tokenizers/l2_supercat_tokenizer_config.json"
TOKENIZER_SHA256 = "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68"
DIMENSION = 256


class WordLlamaEmbedder:
    """Means of word pieces. Raises EmbedderFailed when the wheel is missing or is not the one that was checked."""

    name = "wordllama-1"
    dimension = DIMENSION

    def __init__(self) -> None:
        self._table = _table(installed_file(PACKAGE, WEIGHTS))
        self._tokenizer: Any = Tokenizer.from_str(
            trusted(installed_file(PACKAGE, TOKENIZER), TOKENIZER_SHA256).decode()
        )
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._related = Related(self._tokenizer.get_vocab(), self._table)

    async def embed(self, texts: Sequence[str], *, is_question: bool = False) -> NDArray[np.float32]:
        """One vector a text."""
        pool = QUESTIONS if is_question else TEXTS
        return await pool.run(partial(self._embed, list(texts)))

    async def related(self, question: str) -> Mapping[str, float]:
        """Terms near to those of the question, with their weights."""
        return await QUESTIONS.run(partial(self._related.to, question))

    def _embed(self, texts: list[str]) -> NDArray[np.float32]:
        vectors = np.zeros((len(texts), DIMENSION), np.float32)
        for at, encoded in enumerate(self._tokenizer.encode_batch(texts, add_special_tokens=False)):
            if encoded.ids:
                vectors[at] = self._table[encoded.ids].mean(axis=0)
        return vectors


def _table(path: Path) -> NDArray[np.float32]:
    (table,) = read_tensors(trusted(path, WEIGHTS_SHA256)).values()
    return np.ascontiguousarray(table[:, :DIMENSION])
