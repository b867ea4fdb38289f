"""Starts that go wrong, race or are broken off: a sentence at most, one of everything, and nothing open to others."""

import asyncio
import contextlib
import os
import signal
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import httpx
import psycopg
import pytest
from sqlalchemy import make_url

from tests.support.pgbouncer import PrivatePgBouncer
from tests.support.servers import PrivatePostgres, PrivateRedis
from tests.support.waiting import wait_until
from threadmark.app.access.first_key import FIRST_KEY_FILE
from threadmark.app.cli import main
from threadmark.app.schema import migrate_all
from threadmark.db import is_sqlite, normal_url
from threadmark.workers.settings.settings import Settings, SettingsRefused

START_S = 120.0
STARTS = 3


@asynccontextmanager
async def started(environment: dict[str, str]) -> AsyncIterator[asyncio.subprocess.Process]:
    """`threadmark serve`, as it comes up."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "threadmark.app.cli", "serve"),
        env={**os.environ, "PORT": "0", **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def url_of(process: asyncio.subprocess.Process) -> str:
    """Where it serves."""
    assert process.stdout is not None
    async with asyncio.timeout(START_S):
        line = (await process.stdout.readline()).decode().strip()
    return line.rpartition(" ")[2] or (await process.communicate())[1].decode()[-2_000:]


async def ended(process: asyncio.subprocess.Process, by: signal.Signals) -> tuple[int, str]:
    """Send the signal; the exit code and the log."""
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(by)
    async with asyncio.timeout(START_S):
        _, log = await process.communicate()
    assert process.returncode is not None
    return process.returncode, log.decode()


async def test_first_starts_at_once_make_one_of_everything(postgres_url: str, tmp_path: Path) -> None:
    """Several servers with directories of their own over one empty PostgreSQL: one key, all serve, nobody ends."""
    environment = {"THREADMARK_STATE_DATABASE_URL": postgres_url, "THREADMARK_MEMORY_DATABASE_URL": postgres_url}
    migrate_all(Settings.from_environment({**environment, "THREADMARK_DATA_DIR": str(tmp_path / "migrator")}))
    folders = [tmp_path / str(number) for number in range(STARTS)]
    async with AsyncExitStack() as stack:
        servers = [
            await stack.enter_async_context(started({**environment, "THREADMARK_DATA_DIR": str(folder)}))
            for folder in folders
        ]
        urls = [await url_of(each) for each in servers]
        files = [folder / FIRST_KEY_FILE for folder in folders if (folder / FIRST_KEY_FILE).exists()]
        assert len(files) == 1, "a file whose key opens nothing was left"
        headers = {"x-api-key": files[0].read_text().strip()}
        async with httpx.AsyncClient(timeout=START_S, headers=headers) as client:
            answers = [(await client.get(f"{url}/info")).status_code for url in urls]
        ends = [await ended(each, signal.SIGTERM) for each in servers]

    assert answers == [200] * STARTS
    assert [code for code, _ in ends] == [0] * STARTS
    assert [log for _, log in ends if "Traceback" in log] == []
    with psycopg.connect(normal_url(postgres_url).replace("+psycopg", "")) as connection:
        rows = connection.execute("SELECT (SELECT count(*) FROM api_key), (SELECT count(*) FROM memory_space)")
        assert rows.fetchone() == (1, 1)


async def test_first_starts_at_once_over_one_directory_serve(tmp_path: Path) -> None:
    """On SQLite each would migrate the files: they take turns."""
    async with AsyncExitStack() as stack:
        servers = [
            await stack.enter_async_context(started({"THREADMARK_DATA_DIR": str(tmp_path / "data")}))
            for _ in range(STARTS)
        ]
        urls = [await url_of(each) for each in servers]
        headers = {"x-api-key": (tmp_path / "data" / FIRST_KEY_FILE).read_text().strip()}
        async with httpx.AsyncClient(timeout=START_S, headers=headers) as client:
            answers = [(await client.get(f"{url}/info")).status_code for url in urls]
        ends = [await ended(each, signal.SIGTERM) for each in servers]

    assert answers == [200] * STARTS
    assert [(code, log) for code, log in ends if code or "Traceback" in log] == []


def modes_in(folder: Path) -> dict[str, int]:
    """Who may do what with the files of the databases, and those beside them."""
    return {each.name: stat.S_IMODE(each.stat().st_mode) for each in folder.glob("*.db*")}


async def test_files_of_the_databases_are_for_their_owner_alone(tmp_path: Path) -> None:
    """Whatever the folder was, and the files beside them too; what an older version left open is closed."""
    os.chmod(tmp_path, 0o755)
    (tmp_path / "memory.db").touch(0o644)
    async with started({"THREADMARK_DATA_DIR": str(tmp_path)}) as server:
        await url_of(server)
        modes = modes_in(tmp_path)
        await ended(server, signal.SIGTERM)

    assert {"state.db", "state.db-wal", "state.db-shm", "memory.db", "memory.db-wal"} <= modes.keys()
    assert {name: oct(mode) for name, mode in modes.items() if mode != 0o600} == {}


@pytest.mark.parametrize("command", ["serve", "worker", "migrate", "reindex"])
def test_a_data_directory_that_cannot_be_is_a_sentence(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file stands in its way; every command says so, and the doctor before them."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("THREADMARK_DATA_DIR", str(tmp_path / "file" / "data"))
    monkeypatch.setenv("PORT", "0")

    assert main([command]) == 2
    said = capsys.readouterr().err
    assert main(["doctor"]) == 1

    assert said.count("\n") == 1
    assert "THREADMARK_DATA_DIR is" in said
    assert "for example THREADMARK_DATA_DIR=" in said
    assert "nothing can be written" in capsys.readouterr().out


async def test_a_start_that_is_interrupted_says_so_and_no_more(tmp_path: Path) -> None:
    """Ctrl-C while it imports, while it waits for its database, and once it serves: no traceback ever."""
    away = {"THREADMARK_STATE_DATABASE_URL": "postgresql://nobody@127.0.0.1:9/none"}
    for environment, is_up in (({}, False), (away, False), ({}, True)):
        async with started({"THREADMARK_DATA_DIR": str(tmp_path / "data"), **environment}) as server:
            if is_up:
                await url_of(server)
            elif environment:
                assert server.stderr is not None
                async with asyncio.timeout(START_S):
                    assert b"waiting for the state database" in await server.stderr.readline()
            else:
                # From the first line of Python code on; before it there is nobody who could say anything.
                await wait_until(partial(_has_begun, server.pid), description="its imports", timeout_s=START_S)
            code, log = await ended(server, signal.SIGINT)

        assert "Traceback" not in log, log
        assert code in (0, 130)


def _has_begun(pid: int) -> bool:
    """Whether the interpreter is past its own start: it has loaded a library that is not its own."""
    return "sqlalchemy" in Path(f"/proc/{pid}/maps").read_text()


async def test_a_stop_with_open_streams_logs_no_error(tmp_path: Path) -> None:
    """Streams are cut on purpose, so that their readers join again; that is no error of the server's."""
    async with started({"THREADMARK_DATA_DIR": str(tmp_path)}) as server:
        url = await url_of(server)
        headers = {"x-api-key": (tmp_path / FIRST_KEY_FILE).read_text().strip()}
        async with httpx.AsyncClient(base_url=url, timeout=START_S, headers=headers) as client:
            thread = (await client.post("/threads", json={})).json()["thread_id"]
            body = {"assistant_id": "chat", "input": {"messages": [{"role": "user", "content": "hi"}]}}
            later = {**body, "after_seconds": 3_600}
            async with client.stream("POST", f"/threads/{thread}/runs/stream", json=later) as stream:
                assert stream.status_code == 200
                code, log = await ended(server, signal.SIGTERM)
                with contextlib.suppress(httpx.RemoteProtocolError, httpx.ReadError):
                    await stream.aread()

    assert code == 0
    assert [line for line in log.splitlines() if '"level":"error"' in line or "Traceback" in line] == []


def test_the_doctor_asks_every_server(
    postgres_url: str,
    private_redis: PrivateRedis,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those that answer, those that do not, and a pooler in the wrong mode in front of either database."""
    variables = {
        "THREADMARK_DATA_DIR": str(tmp_path / "data"),
        "THREADMARK_STATE_DATABASE_URL": postgres_url,
        "THREADMARK_MEMORY_DATABASE_URL": postgres_url,
        "THREADMARK_REDIS_URL": private_redis.url,
        "PORT": "0",
    }
    migrate_all(Settings.from_environment(variables))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    main(["doctor"])
    well = capsys.readouterr().out
    for name, value in {
        "THREADMARK_REDIS_URL": "redis://127.0.0.1:9/0",
        "THREADMARK_QDRANT_URL": "http://127.0.0.1:9",
        "THREADMARK_MODEL": "large-1",
        "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
    }.items():
        monkeypatch.setenv(name, value)
    with PrivatePgBouncer(postgres_url, "transaction") as pooler:
        monkeypatch.setenv("THREADMARK_MEMORY_DATABASE_URL", pooler.url)
        assert main(["doctor"]) == 1
    ill = capsys.readouterr().out

    for said in ("the memory database is at the revision", "Redis answers", "MiB are free"):
        assert f"ok  {said}" in well or f"{said}" in well
    wrong = [line for line in ill.splitlines() if line.startswith("!!  ")]
    for said in (
        "the memory database answers through a pooler",
        "THREADMARK_REDIS_URL: Redis does not answer",
        "THREADMARK_QDRANT_URL: Qdrant does not answer",
        "OPENAI_BASE_URL: the model's server does not answer",
    ):
        assert any(said in line for line in wrong), (said, ill)


async def test_a_unix_socket_is_an_address_that_works(private_postgres: PrivatePostgres, tmp_path: Path) -> None:
    """In both spellings, for every part of a server: the host of the query, and libpq's own with escapes."""
    with private_postgres.fresh_database() as url:
        place = make_url(url)
        folder, port, name = private_postgres.folder, place.port, place.database
        spellings = [
            f"postgresql://{place.username}@/{name}?host={folder}&port={port}",
            f"postgresql://{place.username}@{str(folder).replace('/', '%2F')}:{port}/{name}",
        ]
        for number, spelling in enumerate(spellings):
            environment = {
                "THREADMARK_DATA_DIR": str(tmp_path / str(number)),
                "THREADMARK_STATE_DATABASE_URL": spelling,
                "THREADMARK_MEMORY_DATABASE_URL": spelling,
            }
            settings = Settings.from_environment(environment)
            assert not is_sqlite(settings.state_database_url)
            migrate_all(settings)
            async with started(environment) as server:
                serving = await url_of(server)
                async with httpx.AsyncClient(timeout=START_S) as client:
                    ready = await client.get(f"{serving}/ready")
                assert (await ended(server, signal.SIGTERM))[0] == 0
            assert ready.status_code == 200


@pytest.mark.parametrize("url", ["postgresql:///name", "postgresql://user@/name?host=relative", "postgresql://h"])
def test_an_address_without_a_server_is_refused(url: str) -> None:
    """What libpq would guess differs from machine to machine."""
    with pytest.raises(SettingsRefused, match="THREADMARK_STATE_DATABASE_URL"):
        Settings.from_environment({"THREADMARK_STATE_DATABASE_URL": url})
