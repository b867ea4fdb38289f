"""A server killed between the commit of a change in memory and the note of its key in the state database."""

import hashlib
import sqlite3
from contextlib import closing
from typing import Any

import httpx2
import pytest

from tests.crash.doomed import DoomedServer
from tests.crash.launching import Launcher
from tests.crash.plan import AroundPoint, When
from tests.support.waiting import wait_until

OPEN_INDEX = {"THREADMARK_MEMORY_INDEX": "memory"}
ITEM = {"namespace": ["users", "7"], "text": "likes tea", "source": {"thread_ref": "t-1"}}
UNTRUSTED = {"namespace": ["shared"], "text": "drinks mate", "trust": "web"}
ANSWER_S_MAX = 30.0


class KilledChanges:
    """Asks for changes of a server that dies in the middle of each, and asks again when it is back."""

    def __init__(self, server: DoomedServer, when: When) -> None:
        self._server = server
        self._when: When = when
        self.kill_count = 0

    async def post(self, path: str, body: Any, key: str) -> httpx2.Response:
        """The response to one request, which may get none."""
        headers = {"x-api-key": self._server.key, "idempotency-key": key}
        async with httpx2.AsyncClient(base_url=self._server.url, timeout=ANSWER_S_MAX, verify=False) as http:
            return await http.post(f"/memories{path}", json=body, headers=headers)

    async def killed(self, path: str, body: Any = None) -> Any:
        """What the second server answers to a change that the first was killed at, after both were asked."""
        key = f"key{path}"
        # What the last change left to the index would be counted as the next one's write.
        await wait_until(self._is_quiet, description="the index to be up to date")
        self._server.plan(AroundPoint(self._when, "memory write", 1))
        with pytest.raises(httpx2.TransportError):
            await self.post(path, body, key)
        await self._server.gone()
        is_kept = self._when == "after"
        assert (self._answers_kept(key), self._answers_noted(key)) == (int(is_kept), 0)
        self.kill_count += 1
        assert await self._server.start(), self._server.log
        first, second = [await self.post(path, body, key) for _ in range(2)]
        assert (first.status_code, second.status_code) == (200, 200), first.text
        assert first.content == second.content
        if path != "/erase":  # whose answer is how far it has come by now
            assert ("idempotent-replayed" in first.headers) == is_kept
        assert "idempotent-replayed" in second.headers
        return first.json()

    async def _is_quiet(self) -> bool:
        return self._count("memory", "SELECT count(*) FROM memory_outbox") == 0

    def _answers_kept(self, key: str) -> int:
        digest = hashlib.sha256(key.encode()).hexdigest()
        return self._count("memory", "SELECT count(*) FROM memory_receipt WHERE key_digest = ?", digest)

    def _answers_noted(self, key: str) -> int:
        return self._count("state", "SELECT count(*) FROM receipt WHERE key = ? AND reply IS NOT NULL", key)

    def _count(self, database: str, query: str, *values: str) -> int:
        with closing(sqlite3.connect(self._server.data_dir / f"{database}.db")) as connection:
            return int(connection.execute(query, values).fetchone()[0])

    def rows(self, table: str) -> int:
        """How many rows a table of memory has."""
        return self._count("memory", f"SELECT count(*) FROM {table}")


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_change_that_was_killed_is_made_once_and_answered(when: When, launcher: Launcher) -> None:
    """Remember, retract, undo, approve, quarantine, release, erase: a retry returns the first outcome, made once."""
    async with DoomedServer(launcher, OPEN_INDEX) as server:
        assert await server.start(), server.log
        changes = KilledChanges(server, when)
        (kept,) = (await changes.killed("", {"items": [ITEM]}))["items"]
        retracted = await changes.killed(f"/{kept['memory_id']}/retract", {"reason": "no"})
        restored = await changes.killed(f"/{kept['memory_id']}/undo")
        apart = (await changes.post("", {"items": [UNTRUSTED]}, "apart")).json()["items"][0]
        approved = await changes.killed(f"/{apart['memory_id']}/approve")
        held = await changes.killed("/quarantine", {"source": {"thread_ref": "t-1"}, "reason": "odd"})
        released = await changes.killed(f"/quarantine/{held['quarantine_id']}/release")
        quarantines = changes.rows("memory_quarantine")
        erased = await changes.killed("/erase", {"source": {"thread_ref": "t-1"}})
        erasures = changes.rows("memory_erasure")

    assert (retracted["retracted"], len(restored["restored"])) == ([kept["memory_id"]], 1)
    assert (approved["text"], approved["status"]) == ("drinks mate", "current")
    assert (held["held_count"], quarantines, released["released_count"]) == (1, 1, 1)
    assert (erased["counts"]["assertions"], erasures) == (2, 1)
    assert changes.kill_count == len(server.deaths) - 1 == 7
