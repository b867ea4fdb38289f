"""What a crash left of a deleted thread: removed by housekeeping, by an erasure, and by a second request."""

from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import Connection, select

from tests.integration.test_memory_erasing import files_with
from tests.support.api import Api, open_api
from threadmark.app.access import Scope
from threadmark.app.access.key import DEFAULT_TENANT
from threadmark.state import delete_thread, tables, unfinished_deletions
from threadmark.state.threads.receipts import KEEP_S
from threadmark.workers.fleet.housekeeping import COUNT_MAX, tidy
from threadmark.workers.tasks.journal_erasure import JournalCopies

WORD = "word-xylophone"


async def cut_short(api: Api, key: str) -> str:
    """The id of a thread of which a process had deleted no more than the first commit does."""
    thread_id = str((await api.call("POST", "/threads", key, json={})).json()["thread_id"])
    body = {"values": {"messages": [{"type": "human", "content": WORD}]}}
    assert (await api.call("POST", f"/threads/{thread_id}/state", key, json=body)).status_code == 200
    await api.resources.database.write(partial(delete_thread, tenant_id=DEFAULT_TENANT, thread_id=thread_id))
    assert (await api.call("GET", f"/threads/{thread_id}/history", key)).status_code == 404
    return thread_id


async def entry_count(api: Api) -> int:
    """Entries of all threads."""

    def count(connection: Connection) -> int:
        return len(connection.execute(select(tables.entry.c.number)).all())

    return await api.resources.database.read(count)


@pytest.fixture
async def key(api: Api) -> str:
    """A key that reads and runs."""
    return await api.key(Scope.READ, Scope.RUN)


async def test_housekeeping_finishes_a_deletion(api: Api, key: str) -> None:
    """A process died between two batches; another one's housekeeping goes on."""
    await cut_short(api, key)
    wired = api.resources.wired
    assert await entry_count(api) > 0

    await tidy(wired.now_us(), database=wired.database, compaction=wired.compactor.service)

    assert await entry_count(api) == 0
    assert await wired.database.read(partial(unfinished_deletions, count_max=1)) == []


async def test_a_second_request_finishes_a_deletion(api: Api, key: str) -> None:
    """The first had no answer, so its sender asks again."""
    thread_id = await cut_short(api, key)

    assert (await api.call("DELETE", f"/threads/{thread_id}", key)).status_code == 204

    assert await entry_count(api) == 0
    assert (await api.call("DELETE", f"/threads/{thread_id}", key)).status_code == 404


async def test_an_erasure_finishes_deletions_first(tmp_path: Path) -> None:
    """It says that the words are in no file any more, and no search of threads finds those of a deleted one."""
    async with open_api(tmp_path) as api:
        await cut_short(api, await api.key(Scope.READ, Scope.RUN))
        database = api.resources.database
        assert files_with(tmp_path, WORD) != []
        erasure = JournalCopies(database, api.resources.wired.compactor.service).erasure(DEFAULT_TENANT)

        await erasure.finish([])

        assert files_with(tmp_path, WORD) == []


async def test_all_expired_threads_go_in_one_round(api: Api, key: str) -> None:
    """However many there are: else more come than go."""
    wired = api.resources.wired
    body = {"assistant_id": "chat", "input": {"messages": [{"type": "human", "content": WORD}]}}
    for _ in range(3):
        assert (await api.call("POST", "/runs", key, json=body)).status_code == 200

    def settle(connection: Connection) -> None:
        connection.execute(tables.run.update().values(status="success"))
        threads = connection.execute(select(tables.thread)).mappings().all()
        more = [
            {name: each for name, each in threads[0].items() if name != "number"} | {"thread_id": f"more-{number}"}
            for number in range(COUNT_MAX + 1)
        ]
        connection.execute(tables.thread.insert(), more)

    await wired.database.write(settle)

    await tidy(wired.now_us() + KEEP_S * 1_000_000, database=wired.database, compaction=wired.compactor.service)

    left = await wired.database.read(lambda connection: connection.execute(select(tables.thread)).all())
    assert left == []
