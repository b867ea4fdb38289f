"""`threadmark serve` as a process: what the first start leaves behind, what it prints, and how it ends."""

import asyncio
import json
import shutil
import signal
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import httpx
import psycopg
import pytest

from tests.support.api import Api
from tests.support.waiting import wait_until
from threadmark.app.access import Token, key_store
from threadmark.app.access.first_key import FIRST_KEY_FILE, make_first_key
from threadmark.app.access.key_store import every_key
from threadmark.app.schema import migrate_all
from threadmark.state import Database
from threadmark.workers.settings.settings import Settings

ENDED_S = 30.0


@dataclass
class Process:
    """A server that has printed its address."""

    process: asyncio.subprocess.Process
    url: str
    lines: list[str] = field(default_factory=list)

    async def end(self, by: signal.Signals = signal.SIGTERM) -> tuple[int, list[str]]:
        """Send the signal; the exit code and the lines of the log."""
        if self.process.returncode is None:
            self.process.send_signal(by)
        _, errors = await asyncio.wait_for(self.process.communicate(), ENDED_S)
        assert self.process.returncode is not None
        return self.process.returncode, errors.decode().splitlines()


@asynccontextmanager
async def serving(data_dir: Path, line_count: int = 1) -> AsyncIterator[Process]:
    """`threadmark serve` over the directory, on any free port, once it has printed this many lines."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "threadmark.app.cli", "serve", "--port", "0", "--data-dir", str(data_dir)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        lines: list[str] = []
        while len(lines) < line_count and (line := await asyncio.wait_for(process.stdout.readline(), 60)):
            lines.append(line.decode().rstrip("\n"))
        assert len(lines) == line_count, f"printed {lines}; log: {(await process.communicate())[1].decode()[-2000:]}"
        yield Process(process, lines[0].rpartition(" ")[2], lines)
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def status_of(url: str, key: str) -> int:
    """What /info answers to the key."""
    async with httpx.AsyncClient(base_url=url, timeout=30) as client:
        return (await client.get("/info", headers={"x-api-key": key})).status_code


async def test_the_first_start_leaves_a_key_and_a_command_that_works(tmp_path: Path) -> None:
    """The address, where the key is for its owner's eyes alone, and one line to paste: it is a first conversation."""
    data_dir = tmp_path / "a directory with spaces"
    async with serving(data_dir, line_count=3) as server:
        key_file = data_dir / FIRST_KEY_FILE
        assert str(key_file) in server.lines[1]
        assert (stat.S_IMODE(key_file.stat().st_mode), stat.S_IMODE(data_dir.stat().st_mode)) == (0o600, 0o700)
        assert await status_of(server.url, key_file.read_text().strip()) == 200

        if shutil.which("curl"):
            pasted = await asyncio.create_subprocess_exec(
                "sh", "-c", server.lines[2], stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
            )
            answer, _ = await asyncio.wait_for(pasted.communicate(), 30)
            assert json.loads(answer)["messages"][-1]["content"].startswith("You said: Hello")

        code, log = await server.end()

    assert code == 0
    assert [line for line in log if json.loads(line)["level"] not in ("info", "debug")] == []
    assert not [line for line in log if key_file.read_text().strip() in line]


async def test_a_later_start_keeps_the_key(tmp_path: Path) -> None:
    """It prints the address alone; the key is the one that was made."""
    async with serving(tmp_path, line_count=3) as first:
        before = (tmp_path / FIRST_KEY_FILE).read_text()
        await first.end(signal.SIGKILL)

    async with serving(tmp_path) as second:
        assert (tmp_path / FIRST_KEY_FILE).read_text() == before
        assert await status_of(second.url, before.strip()) == 200
        assert (await second.end(signal.SIGINT))[0] == 0


async def test_two_first_starts_at_once_agree_on_one_key(tmp_path: Path) -> None:
    """The second server takes the key of the first, and both accept requests with it."""
    async with serving(tmp_path) as one, serving(tmp_path) as other:
        key = (tmp_path / FIRST_KEY_FILE).read_text().strip()

        assert [await status_of(each.url, key) for each in (one, other)] == [200, 200]
        assert [(await each.end())[0] for each in (one, other)] == [0, 0]


async def test_a_key_is_made_only_where_there_is_none(api: Api, admin: str) -> None:
    """A directory without its file is no reason to open another door."""
    assert await make_first_key(api.resources.database, api.resources.settings.data_dir, api.hands.now()) is None
    assert not (api.resources.settings.data_dir / FIRST_KEY_FILE).exists()


async def test_a_start_that_was_killed_between_file_and_row_is_finished(api: Api) -> None:
    """The file came first; the next start gives its key a row, and a key that may have been read already works."""
    path = api.resources.settings.data_dir / FIRST_KEY_FILE
    token = Token.fresh()
    path.write_text(token.text)

    assert await make_first_key(api.resources.database, path.parent, api.hands.now()) == path
    assert (await api.call("GET", "/info", token.text)).status_code == 200


@pytest.mark.parametrize("left", [b"", b"tm_half", b"\xff\xfe"])
async def test_a_file_that_holds_no_key_is_replaced(api: Api, left: bytes) -> None:
    """Half a file, from an old crash or another program, is no key."""
    path = api.resources.settings.data_dir / FIRST_KEY_FILE
    path.write_bytes(left)

    await make_first_key(api.resources.database, path.parent, api.hands.now())

    assert (await api.call("GET", "/info", path.read_text().strip())).status_code == 200
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in path.parent.glob(f".{FIRST_KEY_FILE}*")] == []


async def test_many_starts_at_once_make_one_key(api: Api) -> None:
    """Of twenty that find no key, one makes it."""
    database, data_dir = api.resources.database, api.resources.settings.data_dir

    made = await asyncio.gather(*(make_first_key(database, data_dir, api.hands.now()) for _ in range(20)))

    assert sum(each is not None for each in made) == 1
    keys = await database.read(lambda connection: every_key(connection, None))
    assert [key.key_id for key in keys] == [(data_dir / FIRST_KEY_FILE).read_text().split("_")[1]]


async def test_a_busy_server_ends_within_its_grace(tmp_path: Path) -> None:
    """SIGTERM while clients are connected: their idle connections do not hold the end up."""
    async with serving(tmp_path, line_count=3) as server:
        key = (tmp_path / FIRST_KEY_FILE).read_text().strip()
        async with httpx.AsyncClient(base_url=server.url, headers={"x-api-key": key}, timeout=30) as client:
            await asyncio.gather(*(client.get("/info") for _ in range(20)))
            server.process.send_signal(signal.SIGTERM)

            await wait_until(lambda: server.process.returncode is not None, description="the end", timeout_s=ENDED_S)

    assert server.process.returncode == 0


async def test_first_keys_at_once_are_one_key(postgres_url: str, tmp_path: Path) -> None:
    """Two servers with directories of their own have both seen an empty table; the second one makes no key."""
    migrate_all(
        Settings.from_environment({"THREADMARK_STATE_DATABASE_URL": postgres_url, "THREADMARK_DATA_DIR": str(tmp_path)})
    )
    folders = [tmp_path / name for name in ("one", "other")]
    databases = [Database.open(postgres_url) for _ in folders]
    for folder in folders:
        folder.mkdir()
    with psycopg.connect(postgres_url.replace("+psycopg", ""), autocommit=True) as holder:
        holder.execute("SELECT pg_advisory_lock(%s)", (key_store._FIRST_KEY,))
        making = [
            asyncio.create_task(make_first_key(database, folder, datetime.now(UTC)))
            for database, folder in zip(databases, folders, strict=True)
        ]

        async def both_wait() -> bool:
            row = holder.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted").fetchone()
            return row is not None and row[0] == len(folders)

        await wait_until(both_wait, description="both to wait for their turn", timeout_s=30)
        holder.execute("SELECT pg_advisory_unlock(%s)", (key_store._FIRST_KEY,))
        made = await asyncio.gather(*making)
    keys = await databases[0].read(lambda connection: every_key(connection, None))

    assert len(keys) == sum(each is not None for each in made) == 1
    assert [(folder / FIRST_KEY_FILE).exists() for folder in folders] == [each is not None for each in made]
    for database in databases:
        await database.close()
