"""Watches `/ready` of every API of a fleet: records each answer, and names those that were untrue or never came."""

import asyncio
import contextlib
import statistics
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import httpx2

from tests.crash.fleet import Fleet
from tests.crash.unrest import Unrest
from tests.support.waiting import wait_until

__all__ = ["Answer", "Watch", "Watched", "watch_readiness"]

POLL_S = 0.1
#: An answer is at most a second old (docs/operations.md); the rest is for a loaded machine.
STALE_S_MAX = 2.0
#: A request ends within 20 s whatever the database does (docs/operations.md); longer is a hang.
ANSWER_S_MAX = 30.0
#: A process that was told to end may refuse, cut off and not be ready until it has ended.
ENDING_S_MAX = 20.0
READY_S_MAX = 60.0


class Watched(Protocol):
    """A process that may end, and may be started again under another id."""

    @property
    def pid(self) -> int:
        """Of the process that runs now."""

    def has_ended(self, pid: int) -> bool:
        """Whether the process of this id runs no more."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one question. `status`: of HTTP, or None where no answer came, and `words` then says what did."""

    url: str
    asked_s: float
    latency_s: float
    status: int | None
    words: str

    def __str__(self) -> str:
        return f"{self.url}, asked at {self.asked_s:.3f}, {self.latency_s:.3f} s: {self.status} {self.words}"


class Watch:
    """Every answer so far, and those that were untrue."""

    def __init__(self, unrest: Unrest, *, ending_s: float = ENDING_S_MAX, answer_s: float = ANSWER_S_MAX) -> None:
        self._unrest = unrest
        self._ending_s, self._answer_s = ending_s, answer_s
        self.answers: list[Answer] = []
        #: Ready while PostgreSQL had been away for long; not ready without a reason, or while all was well; no answer,
        #: from a process that went on.
        self.untrue: list[str] = []
        #: Verdicts that wait for the end of a process.
        self._open_count = 0

    def __str__(self) -> str:
        latencies_s = sorted(each.latency_s for each in self.answers if each.status is not None) or [0.0]
        away = sum(each.status is None for each in self.answers)
        refused = sum(each.status == httpx2.codes.SERVICE_UNAVAILABLE for each in self.answers)
        return (
            f"/ready was asked {len(self.answers)} times: {refused} not ready, {away} without an answer; "
            f"{statistics.median(latencies_s):.3f} s (median), {latencies_s[-1]:.3f} s (slowest)"
        )

    async def all_ready(self, urls: Sequence[str]) -> None:
        """Return once each was ready after now, and the verdict on everything that was asked before is known."""
        since_s = time.time()

        def ready() -> bool:
            return all(
                any(
                    each.url == url and each.status == httpx2.codes.OK and each.asked_s > since_s
                    for each in self.answers
                )
                for url in urls
            )

        await wait_until(ready, description=f"every API to be ready; {self}", timeout_s=READY_S_MAX, poll_s=POLL_S)
        await wait_until(lambda: not self._open_count, description="the last verdict", timeout_s=2 * self._ending_s)

    async def follow(self, url: str, process: Watched) -> None:
        """Ask without end."""
        answered: set[int] = set()
        async with (
            httpx2.AsyncClient(base_url=url, timeout=self._answer_s, verify=False) as http,
            asyncio.TaskGroup() as judging,
        ):
            while True:
                pid = process.pid
                answer = await self._ask(http, url)
                self.answers.append(answer)
                if answer.status is not None:
                    answered.add(pid)
                if (untruth := self._untruth(answer)) is not None:
                    self.untrue.append(untruth)
                elif (fault := self._fault(answer, has_answered=pid in answered)) is not None:
                    judging.create_task(self._judge(fault, process, pid))
                await asyncio.sleep(POLL_S)

    async def _ask(self, http: httpx2.AsyncClient, url: str) -> Answer:
        asked_s = time.time()
        status, words = None, ""
        try:
            response = await http.get("/ready")
            status, words = response.status_code, "" if response.is_success else response.text
        except httpx2.TransportError as error:
            words = type(error).__name__
        return Answer(url, asked_s, time.time() - asked_s, status, words)

    def _untruth(self, answer: Answer) -> str | None:
        """What is wrong with the answer whatever becomes of its process."""
        asked_s, answered_s = answer.asked_s, answer.asked_s + answer.latency_s
        if answer.status == httpx2.codes.OK:
            was_away = self._unrest.was_away_throughout(asked_s - STALE_S_MAX, answered_s)
            return f"ready, and PostgreSQL was away: {answer}" if was_away else None
        if answer.status == httpx2.codes.SERVICE_UNAVAILABLE:
            has_reason = '"reasons":["' in answer.words
            return None if has_reason else f"not ready, and no reason: {answer}"
        return None if answer.status is None else f"no answer of readiness: {answer}"

    def _fault(self, answer: Answer, *, has_answered: bool) -> str | None:
        """What is wrong with the answer, unless its process is about to end."""
        if answer.status is None:
            # A process that is starting refuses.
            return f"no answer: {answer}" if has_answered else None
        is_calm = self._unrest.was_calm(answer.asked_s, answer.asked_s + answer.latency_s)
        is_refused = answer.status == httpx2.codes.SERVICE_UNAVAILABLE
        return f"not ready, and all was well: {answer}" if is_refused and is_calm else None

    async def _judge(self, fault: str, process: Watched, pid: int) -> None:
        self._open_count += 1
        try:
            async with asyncio.timeout(self._ending_s):
                while not process.has_ended(pid):  # noqa: ASYNC110 - the end of a process sets no event of this loop
                    await asyncio.sleep(POLL_S)
        except TimeoutError:
            self.untrue.append(fault)
        finally:
            self._open_count -= 1


@contextlib.asynccontextmanager
async def watch_readiness(fleet: Fleet) -> AsyncIterator[Watch]:
    """Every API of the fleet, for as long as the block lasts."""
    watch = Watch(fleet.unrest)
    async with asyncio.TaskGroup() as group:
        following = [group.create_task(watch.follow(url, api)) for url, api in zip(fleet.urls, fleet.apis, strict=True)]
        try:
            yield watch
        finally:
            for each in following:
                each.cancel()
