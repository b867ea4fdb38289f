"""Which worker tries a suspect: the one that holds least, and others where that one cannot."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conformance.store import ROUTES, Store
from threadmark.state import Claim, FileLocks, migrate, open_engine
from threadmark.state.runs.claim_statements import SUSPECT_DEATH_COUNT
from threadmark.workers.fleet.lease import Lease
from threadmark.workers.fleet.trial import PATIENCE_S, Trials

LOOK_S = 1.0


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    """A fresh database with a suspect in it."""
    url = f"sqlite:///{tmp_path / 'state.db'}"
    engine = open_engine(url, write=True)
    migrate(engine)
    engine.dispose()
    store = Store.open(url)
    await store.accept("suspect")
    for number in range(SUSPECT_DEATH_COUNT + 1):
        await store.claim(f"dead-{number}")
        await store.bury_all()
    yield store
    await store.database.close()


class Busy:
    """A worker that is at something until `is_idle` is set; its clock goes as `now_s` says."""

    def __init__(self, store: Store, tmp_path: Path, worker_id: str) -> None:
        self.is_idle = False
        self.now_s = 0.0
        engine = open_engine(store.url, write=True)
        lease = Lease(engine, FileLocks(tmp_path), worker_id, ttl_s=30.0, heartbeat_s=5.0)
        self.trials = Trials(
            store.database,
            lease,
            worker_id,
            lambda: self.is_idle,
            lambda: None,
            routes=ROUTES,
            kinds=(),
            look_s=LOOK_S,
            monotonic=lambda: self.now_s,
        )

    def claims(self) -> bool:
        """Whether it takes anything at all."""
        return self.trials.allow_claims

    async def look(self, after_s: float) -> Claim | None:
        """Look for a suspect so many seconds later."""
        self.now_s += after_s
        claimed = await self.trials.claim()
        assert claimed is None or isinstance(claimed, Claim)
        return claimed


async def test_a_busy_worker_becomes_free_where_the_freest_one_does_not_take_the_suspect(
    store: Store, tmp_path: Path
) -> None:
    """The worker that holds least may not know the suspect's agent; after a while the others stop claiming too."""
    busy = Busy(store, tmp_path, "worker-2")
    await store.register("worker-1")  # it holds nothing, has a smaller name, and never claims
    await store.register("worker-2")

    assert await busy.look(LOOK_S) is None
    assert busy.claims()
    assert await busy.look(PATIENCE_S / 2) is None
    assert busy.claims()
    assert await busy.look(PATIENCE_S) is None
    assert not busy.claims()

    busy.is_idle = True
    claimed = await busy.look(0.0)
    assert claimed is not None
    assert claimed.was_orphan


async def test_the_freest_worker_becomes_free_at_once(store: Store, tmp_path: Path) -> None:
    """A suspect waits for one turn to end, and not for a machine with nothing to do."""
    busy = Busy(store, tmp_path, "worker-1")
    await store.register("worker-1")
    await store.register("worker-2")

    assert await busy.look(LOOK_S) is None
    assert not busy.claims()


async def test_a_worker_claims_again_when_another_took_the_suspect(store: Store, tmp_path: Path) -> None:
    """It stopped claiming for nothing, and does not stay so."""
    busy, other = Busy(store, tmp_path, "worker-1"), Busy(store, tmp_path, "worker-2")
    await store.register("worker-1")
    await store.register("worker-2")
    assert await busy.look(LOOK_S) is None
    assert not busy.claims()

    other.is_idle = True
    assert await other.look(LOOK_S) is not None
    assert await busy.look(LOOK_S) is None

    assert busy.claims()
