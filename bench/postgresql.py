"""The journal on PostgreSQL beside raw asyncpg, DBOS and LangGraph's saver, on the same work in the same run.

The work: a turn of twelve steps with results of 1 KiB. Every system does it in its own idiom and with its own
guarantees; `synchronous_commit` and `fsync` are on. A private server is started from the installed binaries.

    python -m bench.postgresql
"""

import asyncio
import json
import os
import statistics
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypedDict

import asyncpg
import uvloop
from dbos import DBOS, DBOSConfig, SetWorkflowID
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.graph import END, START, StateGraph

from bench.journal import steps
from bench.parts.work import AGENT, PAYLOAD, RESULT, STEP_COUNT, Bench
from tests.support.servers import PrivatePostgres
from threadmark.workers.turn.turn import Turn

ROUND_COUNT = 25
CONCURRENT_COUNT = 32
SERVER = {"max_connections": "200", "shared_buffers": "256MB"}
TurnOf = Callable[[], Awaitable[None]]


class Raw:
    """One row a step, one commit a row, over asyncpg."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._numbers = iter(range(1, 10**9))

    @classmethod
    async def open(cls, url: str) -> "Raw":
        """Make the table and as many connections as there are turns at once."""
        pool = await asyncpg.create_pool(url, min_size=CONCURRENT_COUNT, max_size=CONCURRENT_COUNT)
        await pool.execute("CREATE TABLE raw_step (thread bigint, seq int, payload bytea, PRIMARY KEY (thread, seq))")
        return cls(pool)

    async def turn(self) -> None:
        """Twelve inserts, each its own transaction."""
        thread = next(self._numbers)
        async with self._pool.acquire() as connection:
            for seq in range(STEP_COUNT):
                await connection.execute("INSERT INTO raw_step VALUES ($1, $2, $3)", thread, seq, PAYLOAD)

    async def close(self) -> None:
        """Close the pool."""
        await self._pool.close()


@DBOS.step()
async def dbos_step(number: int) -> str:
    """A step of DBOS."""
    return json.dumps(RESULT)


@DBOS.workflow()
async def dbos_turn() -> int:
    """Twelve steps of DBOS."""
    for number in range(STEP_COUNT):
        await dbos_step(number)
    return STEP_COUNT


async def dbos_once() -> None:
    """One workflow, waited for."""
    with SetWorkflowID(str(uuid.uuid4())):
        handle = await DBOS.start_workflow_async(dbos_turn)
    await handle.get_result()


class GraphState(TypedDict):
    """A list that grows by one result a step."""

    results: list[dict[str, Any]]


def graph_with(saver: AsyncPostgresSaver) -> Any:
    """A graph whose one node runs twelve times, with a checkpoint after each."""
    graph = StateGraph(GraphState)

    def node(state: GraphState) -> GraphState:
        return {"results": [*state["results"], RESULT]}

    graph.add_node("step", node)
    graph.add_edge(START, "step")
    graph.add_conditional_edges("step", lambda state: END if len(state["results"]) >= STEP_COUNT else "step")
    return graph.compile(checkpointer=saver)


async def latency(turns: dict[str, TurnOf]) -> dict[str, float]:
    """Median seconds of a turn by itself, the systems in turn, so that all see the same disk."""
    took: dict[str, list[float]] = {name: [] for name in turns}
    for _ in range(ROUND_COUNT):
        for name, turn in turns.items():
            began = time.perf_counter()
            await turn()
            took[name].append(time.perf_counter() - began)
    return {name: statistics.median(figures) for name, figures in took.items()}


async def rate(turn: TurnOf, count: int) -> float:
    """Turns a second with CONCURRENT_COUNT at once."""
    left = iter(range(count))

    async def lane() -> None:
        for _ in left:
            await turn()

    began = time.perf_counter()
    await asyncio.gather(*(lane() for _ in range(CONCURRENT_COUNT)))
    return count / (time.perf_counter() - began)


async def wal_bytes(connection: asyncpg.Connection) -> int:
    """Bytes of write-ahead log so far."""
    return int(await connection.fetchval("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"))


async def commits(connection: asyncpg.Connection) -> int:
    """Transactions committed in all databases so far."""
    await connection.execute("SELECT pg_stat_force_next_flush()")
    return int(await connection.fetchval("SELECT sum(xact_commit) FROM pg_stat_database"))


def new_database(server: PrivatePostgres) -> str:
    """The URL of a fresh database, as every driver reads it."""
    return server.url(server.create_database()).replace("postgresql+psycopg://", "postgresql://")


async def measure(server: PrivatePostgres) -> None:
    """Everything, one after the other."""
    url = new_database(server)
    raw = await Raw.open(url)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(url, Path(folder))

        async def journal_turn() -> None:
            await steps(await bench.writer())

        async def engine_turn() -> None:
            await bench.submission()
            for claimed in await bench.claim(1):
                await Turn(bench.parts, claimed, AGENT).take()

        dbos_url = new_database(server)
        config: DBOSConfig = {
            "name": "bench",
            "system_database_url": dbos_url,
            "log_level": "ERROR",
        }
        DBOS(config=config)
        DBOS.launch()
        saver_url = new_database(server)
        async with AsyncPostgresSaver.from_conn_string(saver_url) as saver:
            await saver.setup()
            graph = graph_with(saver)

            async def graph_turn() -> None:
                thread = {"configurable": {"thread_id": str(uuid.uuid4())}, "recursion_limit": 100}
                await graph.ainvoke({"results": []}, thread, durability="sync")

            turns: dict[str, TurnOf] = {
                "raw asyncpg": raw.turn,
                "journal alone": journal_turn,
                "whole engine": engine_turn,
                "DBOS": dbos_once,
                "LangGraph sync": graph_turn,
            }
            await report(url, turns, bench)
        await bench.database.close()
        # Last: it takes the event loop's thread pool with it.
        DBOS.destroy()
    await raw.close()


async def report(url: str, turns: dict[str, TurnOf], bench: Bench) -> None:
    """Print latency, rate, commits and log bytes of each."""
    for turn in turns.values():
        await turn()
    alone = await latency(turns)
    base = alone["raw asyncpg"]
    print(f"raw asyncpg: {base / STEP_COUNT * 1e3:.2f} ms a commit (fast below 0.6, slow from 2.0)")
    connection = await asyncpg.connect(url)
    rates: dict[str, float] = {}
    for name, turn in turns.items():
        await asyncio.sleep(1.0)
        before = await commits(connection), await wal_bytes(connection)
        count = 256 if name.startswith(("raw", "journal", "whole")) else 96
        used_s = time.process_time()
        rates[name] = await rate(turn, count)
        used_s = time.process_time() - used_s
        await asyncio.sleep(1.0)
        done = await commits(connection) - before[0], await wal_bytes(connection) - before[1]
        print(
            f"{name:16} one turn {alone[name] * 1e3:7.1f} ms, {alone[name] / base:5.2f} x raw;"
            f" {CONCURRENT_COUNT} at once {rates[name]:7.1f} turns/s, {rates[name] / rates['raw asyncpg']:.3f} x raw,"
            f" {used_s / count * 1e3:.2f} ms of this process's CPU a turn;"
            f" {done[0] / count / STEP_COUNT:5.2f} commits and {done[1] / count / STEP_COUNT:6.0f} log bytes a step"
        )
    best = max(rates["DBOS"], rates["LangGraph sync"])
    print(f"connections of the journal: {bench.database.connection_count_max} at most")
    print(f"whole engine beside the best peer at {CONCURRENT_COUNT}: {rates['whole engine'] / best:.1f} x (goal 5)")
    await connection.close()


def main() -> None:
    """Start a private server with fsync, and measure."""
    os.environ.setdefault("LANGSMITH_TRACING", "false")
    with PrivatePostgres(fsync=True, settings=SERVER) as server:
        uvloop.run(measure(server))


if __name__ == "__main__":
    main()
