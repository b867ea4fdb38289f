"""Embedders: offline, checked before they are used, and exchanged without downtime."""

import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from openai import AsyncOpenAI

from tests.support.memory_house import NOW, draft, house, question, remembered, texts
from threadmark.memory import (
    EdgeIndex,
    EmbedderFailed,
    HashedEmbedder,
    Index,
    MemoryIndex,
    OpenAiEmbedder,
    WordLlamaEmbedder,
)
from threadmark.memory.embedders import wordllama
from threadmark.memory.embedders.embedder import checked, space_name
from threadmark.memory.embedders.weights import installed_file, trusted


async def test_the_default_works_without_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first use opens no connection, and what is alike lies near."""

    def refuse(*_: object, **__: object) -> Any:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    embedder = WordLlamaEmbedder()

    cat, kitten, law = checked(await embedder.embed(["a cat", "a kitten", "tax law"]), 3, embedder.dimension)

    assert cat is not None
    assert kitten is not None
    assert law is not None
    assert float(cat @ kitten) > 0.5 > float(cat @ law)


def test_other_weights_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is not the one that was checked is not read, nor is one that is missing."""
    with pytest.raises(EmbedderFailed, match="sha256"):
        trusted(installed_file("wordllama", "wordllama/__init__.py"), wordllama.WEIGHTS_SHA256)
    with pytest.raises(EmbedderFailed, match="cannot be read"):
        trusted(tmp_path / "nothing", wordllama.WEIGHTS_SHA256)
    with pytest.raises(EmbedderFailed, match="not installed"):
        installed_file("no-such-package-of-weights", "x")
    monkeypatch.setattr(wordllama, "WEIGHTS_SHA256", "0" * 64)
    with pytest.raises(EmbedderFailed, match="not the file that was checked"):
        WordLlamaEmbedder()


@pytest.mark.parametrize(
    "bad", [[0.0, 0.0], [float("nan"), 1.0], [float("inf"), 1.0], [1.0], [1.0, 2.0, 3.0], ["a", "b"], None]
)
def test_a_broken_vector_is_none(bad: Any) -> None:
    """Zero, not finite, of the wrong length or no numbers at all: it reaches no index."""
    first, second = checked([bad, [3.0, 4.0]], 2, 2)

    assert first is None
    assert second is not None
    assert second.tolist() == pytest.approx([0.6, 0.8])
    with pytest.raises(EmbedderFailed):
        checked([[1.0, 0.0]], 2, 2)


async def test_an_endpoint_that_cannot_be_reached_is_a_failure() -> None:
    """And the space is named after the model."""
    client = AsyncOpenAI(base_url="http://127.0.0.1:9/v1", api_key="x", max_retries=0, timeout=2)
    embedder = OpenAiEmbedder(client, model="Text/Embed 3 (Small)", dimension=8)

    assert space_name(embedder).startswith("openai-text-embed-3-small-8-")
    with pytest.raises(EmbedderFailed):
        await embedder.embed(["x"])
    await client.close()


class Slow(HashedEmbedder):
    """Another embedder, which looks in on recall while it is at work."""

    name = "other-1"

    def __init__(self, dimension: int) -> None:
        super().__init__(dimension)
        self.seen: list[Sequence[str]] = []
        self.look: Any = None

    async def embed(self, texts: Sequence[str], *, is_question: bool = False) -> np.ndarray[Any, Any]:
        """Embed, after a look."""
        if self.look is not None and not is_question:
            look, self.look = self.look, None
            self.seen.append(await look())
        return await super().embed(texts)


async def test_a_new_embedder_is_swapped_in_without_downtime(tmp_path: Path) -> None:
    """Opened with another embedder, memory goes on answering from the old space, fills a new one and drops the old."""
    url, folder = f"sqlite:///{tmp_path}/memory.db", tmp_path / "index"
    async with house(url, EdgeIndex(folder), HashedEmbedder(32)) as memory:
        await remembered(memory, *(draft(f"kayak number {at}") for at in range(20)))
        old = (await memory.verify()).space

    other = Slow(64)
    async with house(url, EdgeIndex(folder), other) as memory:
        assert len(await texts(memory, "kayak")) == 10
        await remembered(memory, draft("kayak of the meantime"))
        other.look = lambda: texts(memory, "kayak meantime")

        new = await memory.reindex(now=NOW)

        assert other.seen[0][0] == "kayak of the meantime"
        assert (new != old, (await memory.verify()).agrees) == (True, True)
        answers = await memory.recall(question("kayak"))
        assert "dense" in answers.answers[0].because
        assert [each.name for each in folder.iterdir()] == [new]


@pytest.mark.parametrize("make", [lambda _: MemoryIndex(), EdgeIndex], ids=["memory", "edge"])
async def test_a_lost_index_is_built_again(tmp_path: Path, make: Any) -> None:
    """An index that comes up empty is filled from the database when memory is opened; strays are found and removed."""
    url = f"sqlite:///{tmp_path}/memory.db"
    first: Index = make(tmp_path / "one")
    async with house(url, first) as memory:
        await remembered(memory, *(draft(f"kayak number {at}") for at in range(20)))
    second: Index = make(tmp_path / "two")
    async with house(url, second) as memory:
        assert (await memory.verify()).agrees
        space = (await memory.verify()).space
        await second.remove(space, [1, 2])

        found = await memory.verify(repair=True)

        assert found.missing == (1, 2)
        assert (await memory.verify()).agrees
        assert len(await texts(memory, "kayak")) == 10
