"""What every test gets: an environment of its own, and private servers for those who ask."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import hypothesis
import pytest

from tests.support.servers import PrivatePostgres, PrivateRedis
from tests.support.service import Service

# The developer's own settings would reach into tests: a real key would be spent, a real database written.
FOREIGN_SETTINGS = ("THREADMARK_", "OPENAI_", "PG")

# No verdict by the clock: an example may take as long as a busy machine makes it.
hypothesis.settings.register_profile(
    "threadmark",
    deadline=None,
    derandomize=os.environ.get("CI") == "true",
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("threadmark")


def pytest_configure() -> None:
    """Remove the settings of the user's environment before any module reads them."""
    for name in [name for name in os.environ if name.startswith(FOREIGN_SETTINGS)]:
        del os.environ[name]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the soak tests all the time they need; every other test has the limit of pyproject.toml."""
    for item in items:
        if item.get_closest_marker("soak") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(0))


@pytest.fixture(scope="session")
def private_postgres() -> Iterator[PrivatePostgres]:
    """A PostgreSQL server shared by the whole run; a test may stop it, the next one finds it started."""
    with PrivatePostgres() as server:
        yield server


@pytest.fixture
def postgres_url(private_postgres: PrivatePostgres) -> Iterator[str]:
    """SQLAlchemy's address of an empty PostgreSQL database that is this test's own."""
    with private_postgres.fresh_database() as url:
        yield url


@pytest.fixture
def start_postgres() -> Iterator[Callable[..., PrivatePostgres]]:
    """Start a PostgreSQL server for this test alone, with PrivatePostgres's arguments."""
    with ExitStack() as servers:
        yield lambda **options: servers.enter_context(PrivatePostgres(**options))


@pytest.fixture(scope="session")
def redis_of_the_run() -> Iterator[PrivateRedis]:
    """The Redis server behind `private_redis`."""
    with PrivateRedis() as server:
        yield server


@pytest.fixture
def private_redis(redis_of_the_run: PrivateRedis) -> PrivateRedis:
    """A Redis server, running and empty; a test may kill it, the next one finds it so again."""
    redis_of_the_run.start()
    redis_of_the_run.flush()
    return redis_of_the_run


@pytest.fixture
def redis_url(private_redis: PrivateRedis) -> str:
    """The address of an empty Redis database."""
    return private_redis.url


@pytest.fixture(scope="session")
def service() -> Iterator[Service]:
    """A running Threadmark that tests share: each with threads, keys and tenants of its own. Nobody stops it."""
    with Service() as running:
        yield running


@pytest.fixture
def start_service() -> Iterator[Callable[..., Service]]:
    """Start a Threadmark for this test alone, with Service's arguments; it may be killed and started again."""
    with ExitStack() as running:
        yield lambda **options: running.enter_context(Service(**options))
