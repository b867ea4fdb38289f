"""What stories get: a server that runs agents, and a model that says its words when the test lets it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.agent_server import Running, run_server
from tests.support.paced_model import PacedModel, serve_paced_model


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Running]:
    """A server with the example agents and the offline model."""
    async with run_server(tmp_path) as running:
        yield running


@pytest.fixture
async def model() -> AsyncIterator[PacedModel]:
    """A model that says its words when the test lets it."""
    async with serve_paced_model() as model:
        yield model


@pytest.fixture
async def paced(model: PacedModel, tmp_path: Path) -> AsyncIterator[Running]:
    """A server that asks the paced model."""
    async with run_server(tmp_path, model.environment) as running:
        yield running
