"""What the tests of the API get: an application over a database of its own, and keys for it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.api import Api, open_api
from threadmark.app.access import Scope


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    """The API over a fresh database; its clock stands still until the test moves it."""
    async with open_api(tmp_path) as api:
        yield api


@pytest.fixture
async def admin(api: Api) -> str:
    """A key of the default tenant that may do everything there."""
    return await api.key(Scope.ADMIN)


@pytest.fixture
async def operator(api: Api) -> str:
    """A key that manages the keys of every tenant, as the first start makes one."""
    return await api.key(Scope.OPERATOR)
