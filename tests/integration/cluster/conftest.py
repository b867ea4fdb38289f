"""A deployment that the tests of this folder share, and the hands to reach it."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.crash.client import Client
from tests.support.cluster import Cluster
from tests.support.servers import PrivatePostgres, PrivateRedis


@pytest.fixture(scope="session")
def postgres_of_the_fleet() -> Iterator[PrivatePostgres]:
    """A server that nobody stops."""
    with PrivatePostgres() as server:
        yield server


@pytest.fixture(scope="session")
def redis_of_the_fleet() -> Iterator[PrivateRedis]:
    """The server behind `fleet_redis`: the fleet's own, since its workers take every job that they find."""
    with PrivateRedis() as server:
        yield server


@pytest.fixture
def fleet_redis(redis_of_the_fleet: PrivateRedis) -> PrivateRedis:
    """The fleet's Redis, running and empty, as after any loss; a test may do to it what it likes."""
    redis_of_the_fleet.start()
    redis_of_the_fleet.flush()
    return redis_of_the_fleet


@pytest.fixture(scope="session")
def fleet(postgres_of_the_fleet: PrivatePostgres, redis_of_the_fleet: PrivateRedis) -> Iterator[Cluster]:
    """One API process and two worker processes, which `client` starts again when a test has ended one."""
    with (
        postgres_of_the_fleet.fresh_database() as url,
        Cluster(url, redis_of_the_fleet.url, THREADMARK_SWEEP_S="0.5") as cluster,
    ):
        cluster.work(2)
        cluster.serve()
        yield cluster


@pytest.fixture
async def client(fleet: Cluster, fleet_redis: PrivateRedis) -> AsyncIterator[Client]:
    """A client of the fleet's API; everybody is there, and Redis too."""
    fleet.await_all()
    async with Client(fleet.services[0].url, fleet.key) as client:
        yield client
