"""PgBouncer in front of the state database: in session mode all works, in any other nothing is begun."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.factories import TENANT, a_submission
from tests.support.pgbouncer import Mode, PrivatePgBouncer
from tests.support.waiting import wait_until
from threadmark.app.cli import main
from threadmark.app.schema import migrate_all
from threadmark.state import (
    AdvisoryLocks,
    RunStatus,
    SessionsNotKept,
    accept,
    find_run,
    open_engine,
    refuse_transaction_pooling,
)
from threadmark.workers.settings.settings import Settings
from threadmark.workers.wiring import open_resources

SENTENCE = "does not keep sessions"
#: Those that keep none.
MODES: tuple[Mode, ...] = ("transaction", "statement")


@pytest.fixture
def in_session_mode(postgres_url: str) -> Iterator[PrivatePgBouncer]:
    """A pooler that keeps sessions."""
    with PrivatePgBouncer(postgres_url, "session") as pooler:
        yield pooler


def environment(folder: Path, url: str) -> dict[str, str]:
    """One process over the database at `url`."""
    return {
        "THREADMARK_DATA_DIR": str(folder),
        "THREADMARK_STATE_DATABASE_URL": url,
        "PORT": "0",
        "PATH": "/usr/bin:/bin",
    }


@pytest.mark.parametrize("mode", MODES)
async def test_a_pooler_that_keeps_no_sessions_is_refused(postgres_url: str, tmp_path: Path, mode: Mode) -> None:
    """By every process that opens the database, with a worker or without: nothing is begun."""
    migrate_all(Settings.from_environment(environment(tmp_path, postgres_url)))
    with PrivatePgBouncer(postgres_url, mode) as pooler:
        settings = Settings.from_environment(environment(tmp_path, pooler.url))
        for with_worker in (True, False):
            with pytest.raises(SessionsNotKept, match=SENTENCE):
                async with open_resources(settings, with_worker=with_worker):
                    pass


@pytest.mark.parametrize("mode", MODES)
def test_it_is_refused_in_a_sentence(
    postgres_url: str,
    tmp_path: Path,
    mode: Mode,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By `threadmark doctor`, and by a worker that ends instead of waiting."""
    migrate_all(Settings.from_environment(environment(tmp_path, postgres_url)))
    with PrivatePgBouncer(postgres_url, mode) as pooler:
        for name, value in environment(tmp_path, pooler.url).items():
            monkeypatch.setenv(name, value)

        assert main(["doctor"]) == 1
        assert SENTENCE in capsys.readouterr().out
        assert main(["worker"]) == 2
        assert SENTENCE in capsys.readouterr().err


async def test_runs_are_moved_through_a_pooler_that_keeps_sessions(
    in_session_mode: PrivatePgBouncer, postgres_url: str, tmp_path: Path
) -> None:
    """Locks, leases and appends are as without it."""
    settings = Settings.from_environment(environment(tmp_path, in_session_mode.url))
    migrate_all(settings)
    async with open_resources(settings, with_worker=True) as resources:
        submission = a_submission("hello", tenant_id=TENANT)
        made = await resources.database.write(lambda connection: accept(connection, submission, resources.now_us()))
        assert made.run is not None
        run_id = made.run.run_id
        resources.notifier.notify(run_id, 1)

        async def has_ended() -> bool:
            found = await resources.database.read(lambda connection: find_run(connection, TENANT, run_id))
            return found is not None and found.status is RunStatus.SUCCESS

        await wait_until(has_ended, description="the run to succeed", timeout_s=30)
        engine = open_engine(postgres_url, write=True)
        assert AdvisoryLocks(engine).dead() == []
        engine.dispose()


def test_a_server_without_a_pooler_is_taken_as_it_is(postgres_url: str) -> None:
    """The usual way costs one question."""
    engine = open_engine(postgres_url, write=True)

    refuse_transaction_pooling(engine)

    engine.dispose()
