"""Load on a deployment of real processes: one API, one to four workers, PostgreSQL, Redis, all on this machine.

The reference turn is `lookup_order` with 200 ms of its own, and two calls of the offline model: six entries. The
generator is open: turns arrive by the clock, whether or not the earlier ones are done. It shares the machine's cores.

    python -m bench.load            every stage, shortened
    python -m bench.load L1 L7      these stages
"""

import asyncio
import itertools
import signal
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import httpx2

from bench.parts.load_streams import hear_many
from tests.support.cluster import Cluster
from tests.support.servers import PrivatePostgres, PrivateRedis

TOOL_MS = 200
SETTLE_S_MAX = 180.0
READY_S = 60.0
L1_RATE, L1_S, L1_THREADS = 20.0, 40.0, 400
L2_FIRST, L2_STEP, L2_S, L2_MAX = 20.0, 10.0, 10.0, 120.0
L3_MESSAGES, L3_CLIENTS = 1_000, 100
L7_RUNS = 300
KNEE_S = 5.0
POLL_S = 0.5
#: Requests that arrive closer together than this have no order that anybody could name.
SAME_S = 0.25


@dataclass
class StageResult:
    """The outcome of the requests of a stage."""

    post_s: list[float] = field(default_factory=list)
    runs: list[tuple[str, str]] = field(default_factory=list)  #: thread and run
    statuses: dict[str, int] = field(default_factory=dict)


class Load:
    """A client of the deployment that keeps the figures."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        limits = httpx2.Limits(max_connections=200, max_keepalive_connections=200)
        self.http = httpx2.AsyncClient(
            base_url=cluster.services[0].url,
            headers={"x-api-key": cluster.key},
            timeout=60.0,
            limits=limits,
            verify=False,
        )
        self._orders = itertools.count()

    async def threads(self, count: int) -> list[str]:
        """Fresh threads."""
        made = await asyncio.gather(*(self.http.post("/threads", json={}) for _ in range(count)))
        return [each.raise_for_status().json()["thread_id"] for each in made]

    async def turn(self, thread_id: str, result: StageResult, delay_ms: int = TOOL_MS) -> None:
        """Ask for one turn."""
        script = f'call lookup_order {{"order_id": "o-{next(self._orders)}", "delay_ms": {delay_ms}}}'
        body = {
            "assistant_id": "refund",
            "input": {"messages": [{"role": "user", "content": script}]},
            "multitask_strategy": "enqueue",
        }
        began = time.perf_counter()
        answer = await self.http.post(f"/threads/{thread_id}/runs", json=body)
        result.post_s.append(time.perf_counter() - began)
        result.statuses[str(answer.status_code)] = result.statuses.get(str(answer.status_code), 0) + 1
        if answer.is_success:
            result.runs.append((thread_id, answer.json()["run_id"]))

    async def arrive(self, threads: list[str], rate_per_s: float, seconds: float) -> StageResult:
        """Turns by the clock, on the threads in turn."""
        result, began = StageResult(), time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for number in range(round(rate_per_s * seconds)):
                await asyncio.sleep(max(0.0, began + number / rate_per_s - time.perf_counter()))
                group.create_task(self.turn(threads[number % len(threads)], result))
        return result

    async def settled(self, result: StageResult) -> list[dict[str, Any]]:
        """The runs, when all of them are over."""
        deadline, left, done = time.perf_counter() + SETTLE_S_MAX, list(result.runs), []
        while left and time.perf_counter() < deadline:
            # Rarely: constant polling is a load of its own.
            await asyncio.sleep(POLL_S)
            answers = await asyncio.gather(*(self.http.get(f"/threads/{one}/runs/{run}") for one, run in left[:100]))
            runs = [each.raise_for_status().json() for each in answers]
            done += [each for each in runs if each["status"] not in ("pending", "running")]
            over = {each["run_id"] for each in runs if each["status"] not in ("pending", "running")}
            left = [each for each in left if each[1] not in over]
        return done

    async def waits_s(self, result: StageResult, runs: list[dict[str, Any]]) -> list[float]:
        """Seconds from the acceptance of each run to the beginning of its first turn."""
        created = {each["run_id"]: _epoch_s(each["created_at"]) for each in runs}
        waits: list[float] = []
        for thread_id in dict.fromkeys(thread for thread, _ in result.runs):
            entries = await self.journal(thread_id)
            current = ""
            for entry in entries:
                if entry["kind"] == "run_started":
                    current = entry["payload"]["run_id"]
                elif entry["kind"] == "turn_started" and entry["payload"]["attempt"] == 1 and current in created:
                    waits.append(_epoch_s(entry["at"]) - created[current])
        return waits

    async def journal(self, thread_id: str) -> list[dict[str, Any]]:
        """Every entry of a thread."""
        entries: list[dict[str, Any]] = []
        after: int | None = 0
        while after is not None:
            page = (await self.http.get(f"/threads/{thread_id}/journal", params={"after": after, "limit": 100})).json()
            entries += page["items"]
            after = page["next"]
        return entries


def _epoch_s(instant: str) -> float:
    return datetime.fromisoformat(instant).timestamp()


def _quantile(values: list[float], q: float) -> float:
    return sorted(values)[int(q * (len(values) - 1))] if values else 0.0


def _ms(values: list[float], q: float) -> str:
    return f"{_quantile(values, q) * 1000:.0f} ms"


async def _summary(load: Load, name: str, result: StageResult) -> float:
    runs = await load.settled(result)
    waits = await load.waits_s(result, runs)
    successes = sum(each["status"] == "success" for each in runs)
    print(
        f"{name}: {len(result.post_s)} asked, answers {result.statuses}, {successes} succeeded; "
        f"POST p50 {_ms(result.post_s, 0.5)}, p99 {_ms(result.post_s, 0.99)}; "
        f"queue wait p50 {_ms(waits, 0.5)}, p99 {_ms(waits, 0.99)}",
        flush=True,
    )
    return _quantile(waits, 0.99)


async def smoke(load: Load) -> None:
    """L0: 50 threads, 2 turns a second; every journal verifies."""
    threads = await load.threads(50)
    result = await load.arrive(threads, 2.0, 15.0)
    await _summary(load, "L0", result)
    verdicts = await asyncio.gather(*(load.http.get(f"/threads/{each}/journal/verify") for each in threads[:30]))
    print(f"L0: journals that do not verify: {sum(not each.json()['holds'] for each in verdicts)}", flush=True)


async def steady(load: Load) -> None:
    """L1: 20 turns a second over 400 threads."""
    await _summary(load, "L1", await load.arrive(await load.threads(L1_THREADS), L1_RATE, L1_S))


def _done_per_s(runs: list[dict[str, Any]]) -> float:
    """By the server's own clock: a client that polls a thousand runs sees their ends seconds later."""
    began_s = min(_epoch_s(each["created_at"]) for each in runs)
    return len(runs) / (max(_epoch_s(each["updated_at"]) for each in runs) - began_s)


async def ramp(load: Load) -> None:
    """L2: more turns a second until they wait, with one, two and four worker processes."""
    first = L2_FIRST
    for count in (1, 2, 4):
        while len(load.cluster.workers) < count:
            load.cluster.work(1)
        load.cluster.await_all()
        threads, rate, best = await load.threads(L1_THREADS), first, 0.0
        while rate <= L2_MAX:
            result = await load.arrive(threads, rate, L2_S)
            best = max(best, _done_per_s(await load.settled(result)))
            if await _summary(load, f"L2 {count} workers at {rate:g} turns/s", result) > KNEE_S:
                break
            # More workers do not begin where fewer had no trouble.
            first, rate = rate, rate + L2_STEP
        print(f"L2: {count} workers did at most {best:.1f} turns/s, first acceptance to last end", flush=True)


async def hot_thread(load: Load) -> None:
    """L3: many clients on one thread, and what that does to the others."""
    others = await load.threads(20)
    alone = await load.arrive(others, 5.0, 5.0)
    await load.settled(alone)
    (hot,), result, room = await load.threads(1), StageResult(), asyncio.Semaphore(L3_CLIENTS)

    async def say() -> None:
        async with room:
            await load.turn(hot, result, delay_ms=0)

    began = time.perf_counter()
    saying = asyncio.gather(*(say() for _ in range(L3_MESSAGES)))
    beside = await load.arrive(others, 5.0, 5.0)
    await saying
    runs = await load.settled(result)
    took_s = time.perf_counter() - began
    started = [each["payload"]["run_id"] for each in await load.journal(hot) if each["kind"] == "run_started"]
    at_s = {each["run_id"]: _epoch_s(each["created_at"]) for each in runs}
    began_at_s = [at_s[each] for each in started if each in at_s]
    in_order = all(later > earlier - SAME_S for earlier, later in itertools.pairwise(began_at_s))
    print(
        f"L3: {len(runs)} of {L3_MESSAGES} done in {took_s:.1f} s ({len(runs) / took_s:.1f} turns/s on one thread); "
        f"in the order of acceptance: {in_order}, doubled: {len(started) - len(set(started))}; "
        f"POST of others p99 {_ms(alone.post_s, 0.99)} alone, {_ms(beside.post_s, 0.99)} beside",
        flush=True,
    )


async def streams(load: Load) -> None:
    """L6: hundreds of readers, some of which reset and some of which read slowly."""
    (thread,) = await load.threads(1)
    await hear_many(load.http, load.cluster.services[0], thread)


async def recovery(load: Load) -> None:
    """L7: every worker is killed with hundreds of runs in flight."""
    threads, result = await load.threads(L7_RUNS), StageResult()
    await asyncio.gather(*(load.turn(each, result, delay_ms=20_000) for each in threads))
    await asyncio.sleep(3.0)
    for each in load.cluster.workers:
        each.end(signal.SIGKILL)
    killed_at = time.time()
    load.cluster.await_all()
    ready_s = time.time() - killed_at
    runs = await load.settled(result)
    again = [
        _epoch_s(entry["at"]) - killed_at
        for thread in threads
        for entry in await load.journal(thread)
        if entry["kind"] == "turn_started" and _epoch_s(entry["at"]) > killed_at
    ]
    print(
        f"L7: {len(runs)} of {L7_RUNS} done ({sum(each['status'] == 'success' for each in runs)} succeeded); "
        f"workers ready {ready_s:.1f} s after the kill; "
        f"first resumed after {min(again):.1f} s, last after {max(again):.1f} s, "
        f"median {statistics.median(again):.1f} s",
        flush=True,
    )


STAGES: dict[str, Callable[[Load], Awaitable[None]]] = {
    "L0": smoke,
    "L1": steady,
    "L3": hot_thread,
    "L6": streams,
    "L7": recovery,
    "L2": ramp,
}


async def main(names: list[str]) -> None:
    """Run the stages over one deployment."""
    with ExitStack() as stack:
        postgres = stack.enter_context(PrivatePostgres(fsync=True, settings={"max_connections": "200"}))
        redis = stack.enter_context(PrivateRedis())
        url = stack.enter_context(postgres.fresh_database())
        free = {"THREADMARK_RATE_PER_S": "100000", "THREADMARK_RATE_BURST": "100000"}
        cluster = stack.enter_context(Cluster(url, redis.url, **free))
        cluster.work(1)
        cluster.serve()
        cluster.await_all()
        load = Load(cluster)
        for name in names:
            await STAGES[name](load)
        await load.http.aclose()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:] or list(STAGES)))
