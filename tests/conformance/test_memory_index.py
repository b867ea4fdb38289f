"""Every index keeps the one specification."""

import warnings
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from qdrant_client import AsyncQdrantClient

from tests.conformance.memory_index_spec import DIMENSION, MINE, SPACE, IndexSpec, entry, inside, probe
from threadmark.memory import EdgeIndex, Index, IndexUnavailable, MemoryIndex
from threadmark.memory.index.server_index import ServerIndex


class TestMemoryIndex(IndexSpec):
    """The fallback in this process's memory."""

    @pytest.fixture
    async def index(self) -> AsyncIterator[Index]:
        """An empty one."""
        made = MemoryIndex()
        await made.open(SPACE, DIMENSION)
        yield made
        await made.close()


class TestEdgeIndex(IndexSpec):
    """Qdrant's embedded engine."""

    @pytest.fixture
    async def index(self, tmp_path: Path) -> AsyncIterator[Index]:
        """An empty one."""
        made = EdgeIndex(tmp_path / "index")
        await made.open(SPACE, DIMENSION)
        yield made
        await made.close()


class TestServerIndex(IndexSpec):
    """The adapter of a Qdrant server, over the client's own in-memory mode."""

    @pytest.fixture
    async def index(self) -> AsyncIterator[Index]:
        """An empty one."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the local mode says that it has no payload indexes
            made = ServerIndex(AsyncQdrantClient(location=":memory:"))
            await made.open(SPACE, DIMENSION)
            yield made
            await made.close()


async def test_the_embedded_index_survives_its_process(tmp_path: Path) -> None:
    """What was put is there after it was closed and opened again."""
    first = EdgeIndex(tmp_path)
    await first.open(SPACE, DIMENSION)
    await first.put(SPACE, [entry(1, "kayak")])
    await first.close()

    second = EdgeIndex(tmp_path)
    await second.open(SPACE, DIMENSION)

    assert (await second.near(SPACE, probe("kayak", "x"), inside(MINE), 10))["text"].keys() == {1}
    await second.close()


async def test_a_space_is_no_path(tmp_path: Path) -> None:
    """A name that would leave the folder is refused, and nothing is made outside it."""
    index = EdgeIndex(tmp_path / "index")

    for name in ("../escape", "/tmp/escape", "a/b", ".", "", "a\0b"):
        with pytest.raises(IndexUnavailable):
            await index.open(name, DIMENSION)

    await index.close()
    assert not any(tmp_path.iterdir())  # noqa: ASYNC240
