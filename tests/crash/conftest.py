"""What the crash tests share: one process that has the product in memory and forks all their servers."""

from collections.abc import Iterator

import pytest

from tests.crash.launching import Launcher


@pytest.fixture(scope="session")
def launcher() -> Iterator[Launcher]:
    """Started when the first test asks for it."""
    with Launcher() as launcher:
        yield launcher
