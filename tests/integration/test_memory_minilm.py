"""MiniLM on ONNX Runtime: an extra that is named where it is missing, offline, and near to the model's own vectors."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.architecture.sources import ROOT
from tests.support.memory_house import draft, house, remembered, texts
from threadmark.memory import EmbedderFailed, EmbedderMissing, MemoryIndex, MiniLmEmbedder, choose_embedder
from threadmark.memory.embedders import minilm
from threadmark.memory.embedders.embedder import checked
from threadmark.user_error import UserError

#: Vectors of the model's own weights, made in float32: text and unit vector.
GOLDEN = json.loads((ROOT / "tests" / "data" / "memory" / "minilm_vectors.json").read_text())


@pytest.fixture
def embedder() -> MiniLmEmbedder:
    """The embedder; skipped without its extra, but never where all checks are made."""
    try:
        return MiniLmEmbedder()
    except EmbedderMissing as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))


async def test_its_vectors_are_near_those_of_the_model(embedder: MiniLmEmbedder) -> None:
    """Languages, a question, two words, a text that is cut: int8 costs little of the direction."""
    found = checked(await embedder.embed([each["text"] for each in GOLDEN]), len(GOLDEN), embedder.dimension)

    likeness = [
        float(np.dot(vector, each["vector"])) for vector, each in zip(found, GOLDEN, strict=True) if vector is not None
    ]
    assert len(likeness) == len(GOLDEN)
    assert min(likeness) > 0.98


async def test_a_text_has_one_vector_whatever_is_beside_it(embedder: MiniLmEmbedder) -> None:
    """What was indexed in a batch equals what is embedded again alone: a repair finds no difference."""
    together = await embedder.embed([each["text"] for each in GOLDEN])
    alone = [(await embedder.embed([each["text"]], is_question=True))[0] for each in GOLDEN]

    assert np.array_equal(together, np.array(alone))


async def test_recall_by_it_needs_no_network(
    embedder: MiniLmEmbedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its use opens no connection, and a question finds what says the same in other words."""

    def refuse(*_: object, **__: object) -> Any:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    async with house(f"sqlite:///{tmp_path}/memory.db", MemoryIndex(), embedder) as memory:
        await remembered(memory, draft("Ada owns a kitten."), draft("Bob pays his taxes in May."))

        assert (await texts(memory, "Which pet does she have?"))[0] == "Ada owns a kitten."


@pytest.mark.parametrize("missing", ["RUNTIME", "PACKAGE"])
def test_a_missing_extra_is_named_at_the_start(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked for by a setting, it ends the start with a sentence; nothing goes on without it unnoticed."""
    monkeypatch.setattr(minilm, missing, "no_such_package")

    with pytest.raises(EmbedderMissing, match=r"install threadmark\[minilm\]") as refused:
        choose_embedder("minilm", api_key=None, base_url=None)

    assert isinstance(refused.value, UserError)
    with pytest.raises(EmbedderFailed):
        MiniLmEmbedder()


@pytest.mark.parametrize("which", ["MODEL_SHA256", "TOKENIZER_SHA256"])
def test_other_files_are_refused(embedder: MiniLmEmbedder, which: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights or a tokenizer that are not those that were checked are not used."""
    assert embedder.dimension == minilm.DIMENSION
    monkeypatch.setattr(minilm, which, "0" * 64)

    with pytest.raises(EmbedderFailed, match="not the file that was checked"):
        MiniLmEmbedder()


def test_a_process_that_does_not_use_it_does_not_load_it() -> None:
    """The runtime costs memory and a part of a second; asking for the embedder loads nothing either."""
    code = (
        "import sys\n"
        "from threadmark.memory import EmbedderMissing, choose_embedder\n"
        "for kind in ('wordllama', 'minilm'):\n"
        "    try:\n"
        "        choose_embedder(kind, api_key=None, base_url=None)\n"
        "    except EmbedderMissing:\n"
        "        print('not installed')\n"
        "sys.exit('onnxruntime' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
