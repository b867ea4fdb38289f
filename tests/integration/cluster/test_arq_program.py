"""`arq threadmark.workers.main.WorkerSettings`: the worker inside arq's own program, for those who run that already."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.cluster.hands import Deployment
from tests.support.daemon import Daemon
from tests.support.servers import PrivateRedis
from tests.support.waiting import wait_until
from threadmark.state import RunStatus, list_workers

ROOT = Path(__file__).parents[3]
PROGRAM = [sys.executable, "-m", "arq", "threadmark.workers.main.WorkerSettings"]
START_S_MAX = 60.0


def environment_of(deployment: Deployment) -> dict[str, str]:
    """The environment variables of the program."""
    settings = deployment.settings
    return {
        "THREADMARK_STATE_DATABASE_URL": settings.state_database_url,
        "THREADMARK_REDIS_URL": settings.redis_url or "",
        "THREADMARK_DATA_DIR": str(settings.data_dir),
        "THREADMARK_AGENTS": settings.agents,
        "PYTHONPATH": str(ROOT),
    }


def logged(log: Path, text: str) -> Callable[[], bool]:
    """Whether the program has written it."""
    return lambda: text in log.read_text(errors="replace")


@pytest.mark.parametrize("loses_redis", [False, True], ids=["with Redis", "while Redis is away"])
async def test_arqs_program_moves_runs_and_ends_in_order(
    tmp_path: Path, postgres_url: str, private_redis: PrivateRedis, *, loses_redis: bool
) -> None:
    """It takes jobs; on a stop it releases its lease at once, with or without Redis."""
    log = tmp_path / "arq.log"
    async with Deployment.over(tmp_path / "data", postgres_url, private_redis.url) as deployment:
        environment = [f"{name}={value}" for name, value in environment_of(deployment).items()]
        program = Daemon(["/usr/bin/env", *environment, *PROGRAM], log=log)
        try:
            await wait_until(logged(log, "Starting worker"), description="arq to start", timeout_s=START_S_MAX)
            await deployment.becomes(await deployment.say('call note {"label": "a"}'), RunStatus.SUCCESS)
            if loses_redis:
                private_redis.kill()
                await deployment.becomes(await deployment.say('call note {"label": "b"}'), RunStatus.SUCCESS)
            before = await workers_of(deployment)
            os.kill(program.pid, signal.SIGTERM)

            async def is_gone() -> bool:
                return await workers_of(deployment) == 0

            await wait_until(is_gone, description="the lease to be given back")
        finally:
            program.end(signal.SIGKILL if loses_redis else signal.SIGTERM)
    assert before == 1


async def workers_of(deployment: Deployment) -> int:
    """How many workers hold a lease."""
    return len(await deployment.api.database.read(list_workers))


def test_without_redis_it_says_what_to_do(tmp_path: Path) -> None:
    """arq needs Redis; the sentence names the way without."""
    environment = {"PYTHONPATH": str(ROOT), "THREADMARK_DATA_DIR": str(tmp_path)}
    ended = subprocess.run(PROGRAM, env=environment, capture_output=True, text=True, timeout=START_S_MAX, check=False)

    assert ended.returncode != 0
    assert "THREADMARK_REDIS_URL is not set" in ended.stderr
    assert "threadmark worker" in ended.stderr
