"""The journal on SQLite beside raw INSERT+COMMIT (WAL, FULL), on the same work in the same run.

The work: a turn of twelve steps with results of 1 KiB, through the whole turn engine (claim, fold, next action, flush,
settle). Only the model and the tool are instant, so what is measured is the engine and the disk.

    python -m bench.journal
"""

import asyncio
import json
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, cast

from state import (
    Claim,
    Database,
    Hand,
    Journal,
    Message,
    Offer,
    RunRequest,
    ToolCall,
    ToolReturned,
    Usage,
    accept,
    claim,
    enrol,
    fold,
    get_thread,
    migrate,
    open_engine,
)
from workers.agents import ChatAgent, Limits, Registry
from workers.desk import Desk
from workers.feed import Feed
from workers.models import ChatModel, ModelReply, ModelRequest
from workers.tools import Effect, tool
from workers.turn import Turn

STEP_COUNT = 12
ROUND_COUNT = 60
CONCURRENT_COUNT = 32
RESULT = {"text": "x" * 1000, "n": 1}
PAYLOAD = json.dumps(RESULT).encode()


@tool(effect=Effect.PURE)
async def fetch() -> dict[str, Any]:
    """Return 1 KiB."""
    return dict(RESULT)


class InstantModel:
    """Asks for `fetch` until the turn has its steps, then stops. Its replies are 1 KiB, too."""

    async def reply(self, request: ModelRequest, on_delta: Callable[[str], None]) -> ModelReply:
        calls = sum(1 for each in request.messages if each.type == "tool")
        more = calls < STEP_COUNT // 2
        return ModelReply(
            text="" if more else "done",
            tool_calls=(ToolCall(f"call-{calls}", "fetch", {}),) if more else (),
            usage=Usage(10, 10),
            finish_reason="tool_calls" if more else "stop",
            model="instant",
        )


AGENT = ChatAgent(name="bench", tools=(fetch,), limits=Limits(step_count_max=100_000))


class Bench:
    """A database in a folder of its own, and a worker's desk over it."""

    def __init__(self, folder: Path) -> None:
        url = f"sqlite:///{folder / 'state.db'}"
        self.path = folder / "state.db"
        engine = open_engine(url, write=True)
        migrate(engine)
        with engine.begin() as connection:
            enrol(connection, "bench", 3600, "{}")
        engine.dispose()
        self.database = Database.open(url)
        self.desk = Desk(
            database=self.database,
            journal=Journal(self.database),
            registry=Registry([AGENT]),
            model=cast(ChatModel, InstantModel()),
            feed=Feed(),
            data_dir=folder,
            now=lambda: datetime.now(UTC),
        )

    async def offer(self) -> None:
        """Accept one run on a thread of its own."""
        message = Message(id="m", type="human", content="go")
        offer = Offer(
            tenant_id="bench",
            thread_id=None,
            assistant="bench",
            assistant_id="bench",
            request=RunRequest(messages=(message,)),
            metadata={},
        )
        now_us = self.desk.now_us()
        await self.database.write(lambda connection: accept(connection, offer, now_us))

    async def claim(self, count: int) -> list[Claim]:
        """Claim runs as a worker does."""
        return await self.database.write(lambda connection: claim(connection, "bench", ["bench"], count))

    async def turn(self) -> None:
        """Claim one run and take its turn."""
        (claimed,) = await self.claim(1)
        await Turn(self.desk, claimed, AGENT).take()


def raw(folder: Path) -> sqlite3.Connection:
    """The baseline's table: one row a step, one commit a row."""
    connection = sqlite3.connect(folder / "raw.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE step (thread INTEGER, seq INTEGER, payload BLOB, PRIMARY KEY (thread, seq))")
    return connection


def raw_turn(connection: sqlite3.Connection, thread: int) -> None:
    """Twelve rows, twelve commits."""
    for seq in range(STEP_COUNT):
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO step VALUES (?, ?, ?)", (thread, seq, PAYLOAD))
        connection.execute("COMMIT")


async def sequential(bench: Bench, baseline: sqlite3.Connection) -> None:
    """One turn at a time, in turn with the baseline, so that both see the same disk."""
    ours, theirs, commits, cpu = [], [], [], []
    for number in range(ROUND_COUNT):
        began = time.perf_counter()
        raw_turn(baseline, number)
        theirs.append(time.perf_counter() - began)
        await bench.offer()
        before, used = bench.database.commit_count, time.process_time()
        began = time.perf_counter()
        await bench.turn()
        ours.append(time.perf_counter() - began)
        cpu.append(time.process_time() - used)
        commits.append(bench.database.commit_count - before)
    ratio = statistics.median(ours) / statistics.median(theirs)
    print(f"sequential turn, {STEP_COUNT + 1} steps: {statistics.median(ours) * 1e3:.1f} ms")
    print(f"  raw, {STEP_COUNT} rows: {statistics.median(theirs) * 1e3:.1f} ms; ratio {ratio:.2f} (goal 1.5)")
    print(f"  commits a turn, claim and settle included: {statistics.median(commits):.0f}")
    print(f"  CPU a step, whole engine: {statistics.median(cpu) / (STEP_COUNT + 1) * 1e3:.3f} ms")


async def concurrent(bench: Bench, baseline: sqlite3.Connection) -> None:
    """Thirty-two turns at once beside the ungrouped baseline."""
    began = time.perf_counter()
    for number in range(CONCURRENT_COUNT):
        raw_turn(baseline, 100_000 + number)
    theirs = CONCURRENT_COUNT / (time.perf_counter() - began)
    rates = []
    for _ in range(5):
        await asyncio.gather(*(bench.offer() for _ in range(CONCURRENT_COUNT)))
        before = bench.database.commit_count
        began = time.perf_counter()
        claims = await bench.claim(CONCURRENT_COUNT)
        await asyncio.gather(*(Turn(bench.desk, each, AGENT).take() for each in claims))
        rates.append(CONCURRENT_COUNT / (time.perf_counter() - began))
        commits = bench.database.commit_count - before
    ours = statistics.median(rates)
    print(f"{CONCURRENT_COUNT} concurrent turns: {ours:.0f} turns/s, {commits} commits for all")
    print(f"  raw ungrouped: {theirs:.0f} turns/s; ratio {ours / theirs:.1f} (goal 5)")


async def journal_only(bench: Bench) -> None:
    """CPU and bytes of a step in the journal alone, and how long a long journal takes to come back."""
    await bench.offer()
    (claimed,) = await bench.claim(1)
    hand = Hand(bench.database, claimed.thread, run=claimed.run.number, now_us=bench.desk.now_us)
    used, sizes = time.process_time(), {}
    for number in range(1, 10_001):
        hand.note(
            ToolReturned(
                step_key=cast(Any, f"tool-{number}-0"),
                call_id=f"call-{number}",
                tool="fetch",
                outcome="ok",
                message_id=f"msg-{number}",
                value=RESULT,
            )
        )
        await hand.flush()
        if number in (1, 10, 1_000, 10_000):
            sizes[number] = await _bytes(bench)
    cpu = (time.process_time() - used) / 10_000
    print(f"CPU a step, journal alone: {cpu * 1e3:.3f} ms (goal 0.25)")
    for low, high in ((10, 1_000), (1_000, 10_000)):
        print(f"bytes a step from {low} to {high}: {(sizes[high] - sizes[low]) / (high - low):.0f} (goal 1500)")


async def _bytes(bench: Bench) -> int:
    def checkpoint(connection: Any) -> int:
        return int(
            connection.exec_driver_sql(
                "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
            ).scalar_one()
        )

    return await bench.database.read(checkpoint)


async def resume(bench: Bench) -> None:
    """Read and fold a journal of n steps: what a worker does before it can go on."""
    limits = Limits(step_count_max=1_000_000, token_count_max=10**9)
    for count in (100, 1_000, 5_000):
        global STEP_COUNT  # noqa: PLW0603 - the model asks for this many
        kept, STEP_COUNT = STEP_COUNT, count
        agent = ChatAgent(name="bench", tools=(fetch,), limits=limits)
        await bench.offer()
        (claimed,) = await bench.claim(1)
        await Turn(bench.desk, claimed, agent).take()
        STEP_COUNT = kept
        thread = await bench.database.read(partial(get_thread, tenant_id="bench", thread_id=claimed.thread.thread_id))
        took = []
        for _ in range(5):
            reads = bench.database.read_count
            began = time.perf_counter()
            state = fold(await bench.desk.journal.read(thread.number))
            took.append(time.perf_counter() - began)
            reads = bench.database.read_count - reads
        print(f"resume after {count} steps: {min(took) * 1e3:.1f} ms, {reads} query, {len(state.messages)} messages")


async def main() -> None:
    """Everything, one after the other."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bench, baseline = Bench(folder), raw(folder)
        await sequential(bench, baseline)
        await concurrent(bench, baseline)
        await journal_only(bench)
        await resume(bench)
        await bench.database.close()
        baseline.close()


if __name__ == "__main__":
    asyncio.run(main())
