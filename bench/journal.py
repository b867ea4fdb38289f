"""The journal on SQLite beside raw INSERT+COMMIT (WAL, FULL), on the same work in the same run.

python -m bench.journal
"""

import asyncio
import itertools
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from sqlalchemy import Connection, Engine, event

from bench.parts.work import AGENT, PAYLOAD, STEP_COUNT, Bench, returned
from threadmark.state import JournalWriter, fold, get_thread
from threadmark.state.batches import append_batch
from threadmark.state.batches.append_batch import Append, Outcome
from threadmark.workers.agents.agent import ChatAgent, Limits
from threadmark.workers.turn.turn import Turn

ROUND_COUNT = 40
SLOWER_DISK_S = 0.002
THREADS = itertools.count(1)
CONCURRENT_COUNT = 32
BYTES_STEP_COUNT = 10_000


def raw(folder: Path) -> sqlite3.Connection:
    """The baseline's table: one row a step, one commit a row."""
    connection = sqlite3.connect(folder / "raw.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE step (thread INTEGER, seq INTEGER, payload BLOB, PRIMARY KEY (thread, seq))")
    return connection


def raw_turn(connection: sqlite3.Connection, thread: int, disk_s: float = 0.0) -> None:
    """Twelve rows, twelve commits; `disk_s` is added to each, as a slower disk would."""
    for seq in range(STEP_COUNT):
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO step VALUES (?, ?, ?)", (thread, seq, PAYLOAD))
        connection.execute("COMMIT")
        time.sleep(disk_s)


@contextmanager
def slower_disk(disk_s: float) -> Iterator[None]:
    """Every commit of the journal takes `disk_s` longer: what a disk that waits for its platter or its network adds."""
    commit = append_batch.commit_appends

    def slower(connection: Connection, appends: Sequence[Append]) -> list[Outcome]:
        outcomes = commit(connection, appends)
        time.sleep(disk_s)
        return outcomes

    def after(_connection: Connection) -> None:
        time.sleep(disk_s)

    setattr(append_batch, "commit_appends", slower)  # noqa: B010
    event.listen(Engine, "commit", after)
    try:
        yield
    finally:
        setattr(append_batch, "commit_appends", commit)  # noqa: B010
        event.remove(Engine, "commit", after)


async def steps(journal_writer: JournalWriter) -> None:
    """Twelve steps in the journal alone: note, and wait for the disk."""
    for number in range(1, STEP_COUNT + 1):
        journal_writer.append(returned(number))
        await journal_writer.flush()


async def sequential(bench: Bench, baseline: sqlite3.Connection, disk_s: float = 0.0) -> None:
    """One turn at a time, alternating with the baseline, so that both see the same disk."""
    theirs, journal, engine, commits, cpu = [], [], [], [], []
    for _ in range(ROUND_COUNT):
        began = time.perf_counter()
        raw_turn(baseline, next(THREADS), disk_s)
        theirs.append(time.perf_counter() - began)
        journal_writer = await bench.writer()
        began = time.perf_counter()
        await steps(journal_writer)
        journal.append(time.perf_counter() - began)
        await bench.submission()
        before, used = bench.database.commit_count, time.process_time()
        began = time.perf_counter()
        await bench.turn()
        engine.append(time.perf_counter() - began)
        cpu.append(time.process_time() - used)
        commits.append(bench.database.commit_count - before)
    reference = statistics.median(theirs)
    print(
        f"raw, {STEP_COUNT} rows and commits: {reference * 1e3:.1f} ms ({reference / STEP_COUNT * 1e3:.2f} ms a commit)"
    )
    for name, figures in (("journal alone", journal), ("whole engine, claim and settle included", engine)):
        median = statistics.median(figures)
        print(f"sequential turn, {name}: {median * 1e3:.1f} ms, {median / reference:.2f} x raw (goal 1.5)")
    print(f"  commits of {STEP_COUNT + 1} steps with claim, start and settle: {statistics.median(commits):.0f}")
    print(f"  CPU a step, whole engine: {statistics.median(cpu) / (STEP_COUNT + 1) * 1e3:.3f} ms")


async def concurrent(bench: Bench, baseline: sqlite3.Connection, disk_s: float = 0.0) -> None:
    """Thirty-two turns at once beside the ungrouped baseline."""
    began = time.perf_counter()
    for _ in range(CONCURRENT_COUNT):
        raw_turn(baseline, next(THREADS), disk_s)
    theirs = CONCURRENT_COUNT / (time.perf_counter() - began)
    print(f"raw ungrouped: {theirs:.0f} turns/s")
    journal, engine = [], []
    for _ in range(5):
        hands = [await bench.writer() for _ in range(CONCURRENT_COUNT)]
        before = bench.database.commit_count
        began = time.perf_counter()
        await asyncio.gather(*(steps(journal_writer) for journal_writer in hands))
        journal.append(CONCURRENT_COUNT / (time.perf_counter() - began))
        shared = bench.database.commit_count - before
        await asyncio.gather(*(bench.submission() for _ in range(CONCURRENT_COUNT)))
        began = time.perf_counter()
        claims = await bench.claim(CONCURRENT_COUNT)
        await asyncio.gather(*(Turn(bench.parts, each, AGENT).take() for each in claims))
        engine.append(CONCURRENT_COUNT / (time.perf_counter() - began))
    for name, figures in (("journal alone", journal), ("whole engine", engine)):
        ours = statistics.median(figures)
        print(f"{CONCURRENT_COUNT} concurrent turns, {name}: {ours:.0f} turns/s, {ours / theirs:.2f} x raw (goal 5)")
    print(f"  commits for {CONCURRENT_COUNT * STEP_COUNT} steps: {shared}")


async def size_and_cpu(bench: Bench) -> None:
    """CPU and bytes of a step in the journal alone, over a long thread."""
    journal_writer = await bench.writer()
    used, sizes = time.process_time(), {}
    for number in range(1, BYTES_STEP_COUNT + 1):
        journal_writer.append(returned(number))
        await journal_writer.flush()
        if number in (10, 1_000, BYTES_STEP_COUNT):
            sizes[number] = await _bytes(bench)
    cpu = (time.process_time() - used) / BYTES_STEP_COUNT
    print(f"CPU a step, journal alone: {cpu * 1e3:.3f} ms (goal 0.25)")
    for low, high in ((10, 1_000), (1_000, BYTES_STEP_COUNT)):
        print(f"bytes a step from {low} to {high}: {(sizes[high] - sizes[low]) / (high - low):.0f} (goal 1500)")


async def _bytes(bench: Bench) -> int:
    statement = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
    return await bench.database.read(lambda connection: int(connection.exec_driver_sql(statement).scalar_one()))


async def resume(bench: Bench) -> None:
    """Read and fold a journal of n steps: what a worker does before it can go on."""
    agent = ChatAgent(name="bench", tools=AGENT.tools, limits=Limits(step_count_max=10**6, token_count_max=10**9))
    for count in (100, 1_000, 5_000):
        bench.model.step_count = count
        await bench.submission()
        (claimed,) = await bench.claim(1)
        await Turn(bench.parts, claimed, agent).take()
        bench.model.step_count = STEP_COUNT
        thread = await bench.database.read(partial(get_thread, tenant_id="bench", thread_id=claimed.thread.thread_id))
        took = []
        for _ in range(5):
            reads = bench.database.read_count
            began = time.perf_counter()
            state = fold(await bench.parts.journal.read(thread.number))
            took.append(time.perf_counter() - began)
            reads = bench.database.read_count - reads
        print(
            f"resume after {count} steps: {min(took) * 1e3:.1f} ms (goal 250 for 5,000), {reads} query,"
            f" {len(state.messages)} messages"
        )


async def main() -> None:
    """Everything, one after the other."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bench, baseline = Bench(f"sqlite:///{folder / 'state.db'}", folder), raw(folder)
        await sequential(bench, baseline)
        await concurrent(bench, baseline)
        print(f"-- the same, with {SLOWER_DISK_S * 1e3:g} ms added to every commit on both sides (simulated disk)")
        with slower_disk(SLOWER_DISK_S):
            await sequential(bench, baseline, SLOWER_DISK_S)
            await concurrent(bench, baseline, SLOWER_DISK_S)
        print("--")
        await size_and_cpu(bench)
        await resume(bench)
        await bench.database.close()
        baseline.close()


if __name__ == "__main__":
    asyncio.run(main())
