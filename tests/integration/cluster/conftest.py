"""A deployment that the tests of this folder share, and the hands to reach it."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.cluster import Cluster
from tests.crash.client import Client
from tests.servers import PrivatePostgres, PrivateRedis


@pytest.fixture(scope="session")
def postgres_of_the_fleet() -> Iterator[PrivatePostgres]:
    """A server that nobody stops."""
    with PrivatePostgres() as server:
        yield server


@pytest.fixture(scope="session")
def fleet(postgres_of_the_fleet: PrivatePostgres, redis_of_the_run: PrivateRedis) -> Iterator[Cluster]:
    """One API process and two worker processes, which `client` starts again when a test has ended one."""
    with (
        postgres_of_the_fleet.fresh_database() as url,
        Cluster(url, redis_of_the_run.url, THREADMARK_SWEEP_S="0.5") as cluster,
    ):
        cluster.work(2)
        cluster.serve()
        yield cluster


@pytest.fixture
async def client(fleet: Cluster, private_redis: PrivateRedis) -> AsyncIterator[Client]:
    """A client of the fleet's API; everybody is there, and Redis is empty as after any loss."""
    fleet.await_all()
    async with Client(fleet.services[0].url, fleet.key) as client:
        yield client
