"""What an import of memory costs those beside it: recall, one write and one turn with memory, asked over HTTP.

    python -m bench.imports [--count 20000]

One `threadmark serve` over SQLite is a process of its own. A baseline is taken first, with nothing else to do; then the
same questions are put, one after the other of each kind, from the first byte of the import to its answer. The export
that is imported comes from another memory.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx

from bench.memory import Texts
from tests.support.service import Service
from threadmark.memory import Database, Draft, HashedEmbedder, MemoryIndex, Origin, Recollection, Scope, migrate

NOW = datetime(2026, 1, 1, tzinfo=UTC)
IMPORT_COUNT, HELD_COUNT, BATCH_COUNT = 20_000, 1_000, 500
BASELINE_S, PAUSE_S, TIMEOUT_S = 20.0, 0.05, 600.0
TENANT = Scope(tenant_id="bench", namespace=())
Probe = Callable[[], Awaitable[httpx.Response]]
Times = dict[str, list[float]]


async def exported(count: int) -> bytes:
    """The lines of another memory, of so many assertions with a source each."""
    texts = Texts(7)
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'memory.db'}"
        migrate(url)
        memory = Recollection(Database.open(url), MemoryIndex(), HashedEmbedder(), clock=lambda: NOW)
        await memory.open(background=False)
        for begin in range(0, count, BATCH_COUNT):
            numbers = range(begin, min(begin + BATCH_COUNT, count))
            drafts = [_draft(texts.sentence(), number) for number in numbers]
            await memory.remember(drafts, scope=TENANT, now=NOW)
        lines = await memory.export(scope=TENANT)
        await memory.close()
    return "\n".join(lines).encode()


def _draft(words: str, number: int) -> Draft:
    """Every fourth is a value of a single-valued attribute."""
    is_value = number % 4 == 0
    return Draft(
        namespace=("imported", str(number % 100)),
        text=words,
        observed_at=NOW - timedelta(minutes=number),
        origin=Origin(thread_ref=f"thread-{number // 20}", message_ref=f"message-{number}", at=NOW),
        subject=f"person {number}" if is_value else None,
        attribute="city" if is_value else None,
        value=words if is_value else None,
    )


class Others:
    """Those who use the server meanwhile."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http, self._texts = http, Texts(11)
        self.probes: dict[str, Probe] = {"recall": self.recall, "one write": self.write, "one turn": self.turn}

    async def recall(self) -> httpx.Response:
        """A question to what was held before."""
        return await self._http.post("/memories/recall", json={"query": self._texts.sentence(5), "namespace": ["held"]})

    async def write(self) -> httpx.Response:
        """One statement."""
        item = {"namespace": ["held"], "text": self._texts.sentence()}
        return await self._http.post("/memories", json={"items": [item]})

    async def turn(self) -> httpx.Response:
        """A run of one turn that recalls before it answers, and remembers what was said."""
        body = {"assistant_id": "memo", "input": {"messages": [{"role": "user", "content": self._texts.sentence()}]}}
        return await self._http.post("/runs/wait", json=body)

    async def fill(self, count: int) -> None:
        """What is held before."""
        for _ in range(0, count, 100):
            items = [{"namespace": ["held"], "text": self._texts.sentence()} for _ in range(100)]
            (await self._http.post("/memories", json={"items": items})).raise_for_status()

    async def beside(self, work: Awaitable[object]) -> tuple[Times, float]:
        """How long each kind took while `work` went on, and how long that took (seconds)."""
        times: Times = {name: [] for name in self.probes}
        began = time.perf_counter()
        done = asyncio.ensure_future(work)

        async def ask(name: str, probe: Probe) -> None:
            while not done.done():
                asked = time.perf_counter()
                (await probe()).raise_for_status()
                times[name].append(time.perf_counter() - asked)
                await asyncio.sleep(PAUSE_S)

        await asyncio.gather(*(ask(name, probe) for name, probe in self.probes.items()), done)
        return times, time.perf_counter() - began


async def imported(http: httpx.AsyncClient, lines: bytes) -> None:
    """The import, whole."""
    done = await http.post("/memories/import", params={"namespace": "[]"}, content=lines)
    print(f"  {done.raise_for_status().json()['added']}", flush=True)


def report(when: str, times: Times, seconds: float) -> None:
    """A line for each kind."""
    print(f"{when} ({seconds:.1f} s)")
    for name, each in times.items():
        cuts = [cut * 1000 for cut in statistics.quantiles(each, n=100)]
        slowest = f"slowest {max(each) * 1000:7.1f} ms  of {len(each)}"
        print(f"  {name:<10} p50 {cuts[49]:7.1f} ms  p95 {cuts[94]:7.1f} ms  p99 {cuts[98]:7.1f} ms  {slowest}")


async def main() -> None:
    """Baseline, import, afterwards."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=IMPORT_COUNT)
    count = parser.parse_args().count
    lines = await exported(count)
    with Service() as service:
        async with service.http() as http:
            http.timeout = httpx.Timeout(TIMEOUT_S)
            others = Others(http)
            await others.fill(HELD_COUNT)
            await others.beside(asyncio.sleep(2))  # warm
            report("nothing else", *await others.beside(asyncio.sleep(BASELINE_S)))
            report(f"import of {count:,}", *await others.beside(imported(http, lines)))
            report("indexing it", *await others.beside(asyncio.sleep(BASELINE_S)))


if __name__ == "__main__":
    asyncio.run(main())
