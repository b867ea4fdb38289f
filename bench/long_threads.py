"""Latencies of compaction on disk: recall of drops, restores, jobs over many threads, and how much a cache could keep.

    python -m bench.long_threads

Everything goes through the service or the handler of the job, over SQLite as the server writes it. Beside each figure
stands what the same machine needs for the bare work in the same run: a query by key, reading the journal, analysing.
"""

import asyncio
import os
import random
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import msgspec

from bench.compaction import row
from bench.parts.shelf import MARK, TENANT, Shelf
from bench.parts.threads import thread
from threadmark.compaction import (
    Analyses,
    CompactionStatus,
    DropFilter,
    DropQuery,
    Plan,
    Policy,
    Segment,
    Situation,
    SourceEntry,
    first_view,
    plan_compaction,
    render,
)
from threadmark.compaction.run.next_view import next_view
from threadmark.compaction.summary import estimate_tokens, extractive_draft, text_of
from threadmark.workers.fleet.interpreter import settle_heap
from threadmark.workers.tasks.compaction_job import COMPACT_MANY, JobPayload, compact_many

THREAD_COUNT = int(os.environ.get("BENCH_THREADS", "10000"))
PROBE_COUNT, RESTORE_COUNT, EVENT_COUNT, JOB_COUNT, JOB_TOKENS = 60, 20, 10_000, 40, 50_000
POLICY = Policy(keep_last_turns=1, min_gain=0.0, summary_tokens=200)
WINDOW_TOKENS = 60_000


async def timed(work: Callable[[int], Awaitable[object]], count: int) -> tuple[float, float, float]:
    """Median and 95th percentile in ms of wall time, and the mean of CPU."""
    times = []
    cpu = time.process_time()
    for number in range(count):
        start = time.perf_counter()
        await work(number)
        times.append((time.perf_counter() - start) * 1000)
    cpu = (time.process_time() - cpu) * 1000 / count
    return statistics.median(times), statistics.quantiles(times, n=20)[-1], cpu


def cell(figures: tuple[float, float, float]) -> str:
    """The three figures in one cell."""
    return f"{figures[0]:.1f} ms, p95 {figures[1]:.1f} ms, CPU {figures[2]:.1f} ms"


def marked(entries: Sequence[SourceEntry]) -> list[SourceEntry]:
    """The entries, with a ticket and an amount of the thread's own in each result of a tool."""
    return [
        msgspec.structs.replace(
            entry,
            parts=tuple(
                msgspec.structs.replace(
                    part, text=f"Ticket OPS-{MARK}{entry.seq} costs ${MARK}.{entry.seq:02}. {part.text}"
                )
                for part in entry.parts
            ),
        )
        if entry.role == "tool"
        else entry
        for entry in entries
    ]


async def recall(folder: Path) -> None:
    """Recall of drops, in one thread and over a tenant, among the ledgers of many threads."""
    shelf = Shelf(folder)
    await shelf.keep(f"thread-{MARK}", marked(thread(3_000, 1)))
    done = await shelf.compact(f"thread-{MARK}", msgspec.structs.replace(POLICY, appendix_tokens=0))
    assert done.status is CompactionStatus.COMMITTED
    dropped = await shelf.service.drops.page(TENANT, done.compaction_id, DropFilter(units=("atom",)), count_max=500)
    probes = [each.row.text for each in dropped if MARK in each.row.text]
    start = time.process_time()
    rows = await shelf.copy(f"thread-{MARK}", done, THREAD_COUNT)
    size = f"{THREAD_COUNT:,} threads, {rows:,} rows of ledgers"
    print(f"filled with {size} in {time.process_time() - start:.0f} s of CPU", flush=True)
    chance = random.Random(2)
    asked = [(chance.randint(1, THREAD_COUNT), chance.choice(probes)) for _ in range(PROBE_COUNT)]

    async def in_thread(number: int) -> None:
        at, probe = asked[number]
        query = DropQuery(text=probe.replace(MARK, f"{at:07}"))
        found = await shelf.service.drops.search_thread(TENANT, f"thread-{at:07}", query)
        assert found[0].recalled.text == query.text

    async def in_tenant(number: int) -> None:
        at, probe = asked[number]
        query = DropQuery(text=probe.replace(MARK, f"{at:07}"))
        found = await shelf.service.drops.search_tenant(TENANT, query)
        assert (found[0].recalled.text, found[0].thread_id) == (query.text, f"thread-{at:07}")

    raw = sqlite3.connect(shelf.path)
    names = [one for (one,) in raw.execute("SELECT row_id FROM compaction_row ORDER BY number LIMIT 60")]

    async def by_key(number: int) -> None:
        query = "SELECT body FROM compaction_row WHERE tenant_id = ? AND row_id = ? LIMIT 200"
        raw.execute(query, (TENANT, names[number % len(names)])).fetchall()

    base = cell(await timed(by_key, PROBE_COUNT))
    row(f"exact recall in one thread of {size}", cell(await timed(in_thread, PROBE_COUNT)), "p95 below 50 ms", base)
    row(f"exact recall over the tenant, {size}", cell(await timed(in_tenant, 8)), "p95 below 50 ms", base)
    raw.close()
    await shelf.database.close()


async def restores(folder: Path) -> None:
    """Restore and its undo, on a thread of many entries."""
    shelf = Shelf(folder)
    entries = thread(EVENT_COUNT * 90, 3, dense=True)[:EVENT_COUNT]
    assert len(entries) == EVENT_COUNT
    await shelf.keep("long", entries)
    done = await shelf.compact("long", POLICY)
    views = [(await shelf.service.views.show(TENANT, "long")).kept.view.view_id]
    whole = await shelf.service.views.show(TENANT, "long", "whole")

    async def there_and_back(number: int) -> None:
        if number % 2:
            kept = await shelf.service.views.undo(TENANT, "long", views[-1])
        else:
            kept = await shelf.service.views.restore(TENANT, done.compaction_id)
        views.append(kept.view.view_id)

    raw = sqlite3.connect(shelf.path)

    async def read(_: int) -> None:
        raw.execute("SELECT payload FROM entry WHERE thread = ? ORDER BY seq", (done.thread,)).fetchall()

    base = cell(await timed(read, 20))
    figures = await timed(there_and_back, RESTORE_COUNT)
    shown = await shelf.service.views.show(TENANT, "long", views[-2])
    assert shown.rendered.render_hash == whole.rendered.render_hash
    row(f"restore, and its undo, {EVENT_COUNT:,} entries", cell(figures), "p95 below 100 ms", f"reading them: {base}")
    raw.close()
    await shelf.database.close()


async def job(folder: Path) -> None:
    """Threads a second of one worker, through the handler of the job."""
    shelf = Shelf(folder)
    start = time.process_time()
    threads = [thread(JOB_TOKENS, 50 + number) for number in range(JOB_COUNT)]
    for number, entries in enumerate(threads):
        await shelf.keep(f"thread-{number}", entries)
    filled = time.process_time() - start
    start = time.process_time()
    for entries in threads[:5]:
        Analyses().learn(entries)
    base = (time.process_time() - start) / 5
    task, context = await shelf.task(COMPACT_MANY, msgspec.to_builtins(JobPayload(policy=POLICY, concurrency=2)))
    wall, cpu = time.perf_counter(), time.process_time()
    progress = await compact_many(task, context, database=shelf.database, compactor=shelf.compactor)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    assert progress["outcomes"] == {"committed": JOB_COUNT}, progress
    row(
        f"job over {JOB_COUNT} threads of {JOB_TOKENS:,} tokens, excerpts, nothing cached",
        f"{JOB_COUNT / wall:.1f} threads/s, {JOB_COUNT / cpu:.1f} per CPU second",
        "at least 5 threads/s",
        f"{1 / base:.1f} threads/s to analyse alone; filled in {filled:.0f} s",
    )
    await shelf.database.close()


def prefixes() -> None:
    """Of what each request sends, the share that the request before it began with: what a cache of prefixes keeps."""
    entries = thread(4 * WINDOW_TOKENS, 7)
    asked = [at for at, entry in enumerate(entries) if entry.role == "ai"]  # each message of the model is a request
    policy = Policy(keep_last_turns=4, target_tokens=WINDOW_TOKENS * 3 // 4)
    view, segments = first_view("v0"), dict[str, Segment]()
    before = sliding_before = b""
    kept: list[float] = []
    at_compactions: list[float] = []
    sliding: list[float] = []
    for number, at in enumerate(asked[1:], start=1):
        known = entries[:at]
        situation = Situation(view=view, entries=known, segments=segments)
        compacted = sum(part.tokens for part in render(view, known, segments).parts) > WINDOW_TOKENS
        plan = plan_compaction(situation, policy) if compacted else None
        if isinstance(plan, Plan):
            segment = None
            if plan.needs_summary:
                covered = [entry for entry in known if entry.seq in set(plan.covered)]
                text = text_of(extractive_draft(covered, Analyses(), plan.summary_tokens).lines)
                segment = Segment(
                    segment_id=f"s{number}",
                    compaction_id=f"c{number}",
                    text=text,
                    covered=plan.covered,
                    rank=plan.rank,
                    tokens=estimate_tokens(text),
                )
                segments[segment.segment_id] = segment
            view = next_view(view, f"v{number}", f"c{number}", plan, segment, known)
        now = _sent(render(view, known, segments).parts)
        (at_compactions if isinstance(plan, Plan) else kept).append(_common(before, now))
        before = now
        window = _last(known, WINDOW_TOKENS)
        sliding_now = _sent(render(first_view("w"), window, {}).parts)
        sliding.append(_common(sliding_before, sliding_now))
        sliding_before = sliding_now
    late = [share for share, at in zip(sliding, asked[1:], strict=True) if _tokens(entries[:at]) > WINDOW_TOKENS]
    row(
        f"share of {len(kept)} requests that the one before began with, between {len(at_compactions)} compactions",
        f"{statistics.mean(kept[1:]):.1%}; at compactions {statistics.mean(at_compactions):.1%}",
        "at least 95 %",
        f"a window that slides every turn: {statistics.mean(late):.1%}",
    )


def _sent(parts: Sequence[object]) -> bytes:
    return b"\n".join(map(msgspec.json.encode, parts))


def _common(before: bytes, now: bytes) -> float:
    same = next((at for at, (old, new) in enumerate(zip(before, now, strict=False)) if old != new), None)
    return (min(len(before), len(now)) if same is None else same) / len(now)


def _tokens(entries: Sequence[SourceEntry]) -> int:
    return sum(entry.tokens for entry in entries)


def _last(entries: Sequence[SourceEntry], tokens: int) -> list[SourceEntry]:
    at = len(entries)
    while at and tokens > 0:
        at -= 1
        tokens -= entries[at].tokens
    return list(entries[at:])


async def main() -> None:
    """Measure and print."""
    settle_heap()
    print("| what is measured | figure | goal | baseline of the same run |\n| --- | --- | --- | --- |")
    prefixes()
    for measure in (restores, job, recall):
        with tempfile.TemporaryDirectory() as folder:
            await measure(Path(folder))


if __name__ == "__main__":
    asyncio.run(main())
