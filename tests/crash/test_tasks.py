"""Workers are killed or stopped in the middle of a background task: another one finishes it, once."""

import json
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.store import real_now_us
from tests.support.daemon import Daemon
from tests.support.waiting import wait_until
from threadmark.app.schema import migrate_all
from threadmark.state import Database, new_id
from threadmark.state.tasks.tasks import NewTask, Task, TaskStatus, add_task, get_task
from threadmark.workers.settings.settings import Settings

#: Neither the sweep nor the end of a lease comes while the test lasts: what is found is found by the death itself.
SLOW = {"THREADMARK_LEASE_TTL_S": "600", "THREADMARK_HEARTBEAT_S": "60", "THREADMARK_SWEEP_S": "600"}


@dataclass
class House:
    """A data directory, a database, and the workers over them."""

    folder: Path
    settings: Settings
    environment: dict[str, str]
    stack: ExitStack = field(default_factory=ExitStack)

    async def worker(self) -> Daemon:
        """One more worker process, once it is ready."""
        command = ["/usr/bin/env", *(f"{name}={value}" for name, value in self.environment.items())]
        command += [sys.executable, "-m", "tests.crash.task_worker"]
        daemon = Daemon(command, log=self.folder / f"log-{new_id(real_now_us())}", death_signal=signal.SIGKILL)
        self.stack.callback(daemon.end, signal.SIGKILL)
        await wait_until((self.folder / f"ready-{daemon.pid}").exists, description="a worker to be ready", timeout_s=60)
        return daemon

    def lines(self, what: str) -> list[dict[str, Any]]:
        """What the tasks have written."""
        path = self.folder / "effects.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [each for each in lines if each["what"] == what]

    async def add(self, key: str) -> Task:
        """A task without a notification."""
        new = NewTask(tenant_id="default", kind="append", key=key, payload={})
        database = Database.open(self.settings.state_database_url)
        task = await database.write(lambda connection: add_task(connection, new, real_now_us()))
        await database.close()
        return task

    async def done(self, task: Task) -> Task:
        """The task, once it is done."""
        database = Database.open(self.settings.state_database_url)

        async def is_done() -> Task | None:
            found = await database.read(partial(get_task, task_id=task.task_id))
            return found if found.status is TaskStatus.DONE else None

        found = await wait_until(is_done, description="the task to be done", timeout_s=30)
        await database.close()
        return found or task


@pytest.fixture(params=["sqlite", "postgresql"])
def house(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[House]:
    """A fresh one over each kind of database; its workers are gone afterwards."""
    url = f"sqlite:///{tmp_path / 'state.db'}"
    if request.param == "postgresql":
        url = str(request.getfixturevalue("postgres_url"))
    environment = {
        "THREADMARK_DATA_DIR": str(tmp_path),
        "THREADMARK_STATE_DATABASE_URL": url,
        "PYTHONPATH": str(Path(__file__).parents[2]),
        **SLOW,
    }
    settings = Settings.from_environment(environment)
    migrate_all(settings)
    house = House(tmp_path, settings, environment)
    with house.stack:
        yield house


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM], ids=["kill", "stop"])
async def test_a_task_outlives_its_worker_and_is_finished_once(house: House, by: signal.Signals) -> None:
    """The survivor begins it anew, with what had been reported, and writes the one result."""
    task = await house.add("one")
    first = await house.worker()
    await wait_until(lambda: house.lines("begun"), description="the task to begin", timeout_s=30)
    if by is signal.SIGKILL:
        second = await house.worker()
        first.end(by)
    else:
        # Nobody rings, and nobody dies: the next worker to look, at its start, finds what was given back.
        first.end(by)
        second = await house.worker()
    await wait_until(lambda: len(house.lines("begun")) == 2, description="the task to begin anew", timeout_s=30)
    (house.folder / "gate").touch()
    done = await house.done(task)

    assert [each["pid"] for each in house.lines("begun")] == [first.pid, second.pid]
    assert [(each["pid"], each["attempt"]) for each in house.lines("done")] == [(second.pid, 2)]
    assert (done.result, done.attempts, done.failures) == ({"attempt": 2}, 2, 0)
    assert done.progress == {"begun": 2}
    assert second.is_running()
