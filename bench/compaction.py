"""Throughput of the extractor, the ledger, rendering and excerpts, each beside a baseline of the same run.

    python -m bench.compaction

The baseline is one pass of `re` over the same text with a single pattern for words (`\\w+`): what Python costs before
anything is understood. It makes a slow or busy machine visible: look at it first.
"""

import asyncio
import re
import statistics
import time
from collections.abc import Callable
from functools import partial

from bench.parts.threads import PROSE, entry, thread
from threadmark.compaction.atoms import extract_atoms
from threadmark.compaction.clauses import extract_clauses
from threadmark.compaction.input.analysis import Analyses, analyse
from threadmark.compaction.input.source import Role, SourceEntry
from threadmark.compaction.ledger import GENESIS, Account, Shown, close, judge
from threadmark.compaction.model.plan import Plan, Situation
from threadmark.compaction.model.policy import Policy
from threadmark.compaction.run.compact import compact
from threadmark.compaction.run.planning import plan_compaction
from threadmark.compaction.run.proposal import CompactionRequest, Proposal
from threadmark.compaction.summary import extractive_draft, passage_of, text_of
from threadmark.compaction.view import first_view, render
from threadmark.workers.fleet.interpreter import settle_heap

TOKENS_LONG, TOKENS_BULK, ENTRIES_MANY = 200_000, 50_000, 50_000
BULK_THREADS = 6
REPEATS = 5


def median_s(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """Median seconds of CPU of some runs."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return statistics.median(times)


def row(what: str, figure: str, goal: str, baseline: str) -> None:
    """One line of the table."""
    print(f"| {what} | {figure} | {goal} | {baseline} |", flush=True)


def extraction(*, dense: bool) -> None:
    """Megabytes a second, cold: atoms, clauses, and both with the ledger; then the ledger alone, cached."""
    kind = "dense" if dense else "ordinary"
    entries = thread(TOKENS_LONG, 1, dense=dense)
    texts = [text for entry in entries for _, text in entry.texts()]
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    word = re.compile(r"\w+")
    base_s = median_s(lambda: [word.findall(text) for text in texts])
    base = megabytes / base_s
    for what, work in (("atoms", extract_atoms), ("clauses", extract_clauses)):
        rate = megabytes / median_s(partial(_each, work, texts), 3)
        row(f"{what}, cold, {kind} text", f"{rate:.2f} MB/s", "", f"{base:.0f} MB/s, 1:{base / rate:.0f}")
    summary = text_of(extractive_draft(entries, Analyses(), 2_000).lines)
    both = megabytes / median_s(lambda: account(entries, Analyses(), summary), 3)
    row(
        f"extractor and ledger, cold, {kind} text",
        f"{both:.2f} MB/s",
        "at least 1",
        f"{base:.0f} MB/s, 1:{base / both:.0f}",
    )

    analyses = Analyses()
    rows = account(entries, analyses, summary)
    cached = median_s(lambda: account(entries, analyses, summary), 3)
    row(
        f"ledger of {TOKENS_LONG:,} tokens, cached, {kind} text",
        f"{cached * 1000:.0f} ms for {rows:,} rows",
        "at most 250 ms",
        f"{base_s * 1000:.0f} ms, 1:{cached / base_s:.0f}",
    )


def _each(work: Callable[[str], object], texts: list[str]) -> None:
    for text in texts:
        work(text)


def account(entries: list[SourceEntry], analyses: Analyses, text: str) -> int:
    """The whole account of the thread against a summary: its number of rows."""
    range_of = Account(
        compaction_id="c",
        covered=entries,
        others=(),
        passages=[passage_of("s", text)],
        new_segments={"s"},
        shown={entry.position: Shown.FULL for entry in entries},
    )
    return len(close(range_of, judge(range_of, analyses), b"s" * 32, GENESIS).rows)


def rendering() -> None:
    """Milliseconds to render a thread of many entries."""
    entries = [
        entry(seq, Role.HUMAN if seq % 2 else Role.AI, PROSE[seq % len(PROSE)] * 2)
        for seq in range(1, ENTRIES_MANY + 1)
    ]
    view = first_view("v")
    base = median_s(lambda: [entry.parts[0].text.encode() for entry in entries])
    spent = median_s(lambda: render(view, entries, {}))
    row(
        f"rendering {ENTRIES_MANY:,} entries",
        f"{spent * 1000:.0f} ms",
        "at most 300 ms",
        f"{base * 1000:.0f} ms to encode",
    )


async def bulk() -> None:
    """Threads a second, cold, from plan to proposal, by excerpts; and once more with what ingest had found."""
    threads = [thread(TOKENS_BULK, 10 + number) for number in range(BULK_THREADS)]
    for name, warm in (("cold", False), ("cached", True)):
        caches = [Analyses() for _ in threads]
        if warm:
            for entries, analyses in zip(threads, caches, strict=True):
                for entry in entries:
                    analyses.of(entry)
        start = time.process_time()
        for entries, analyses in zip(threads, caches, strict=True):
            assert await one(entries, analyses) > 0
        spent = time.process_time() - start
        row(f"excerpts of {TOKENS_BULK:,} tokens, {name}", f"{BULK_THREADS / spent:.1f} threads/s", "at least 5", "")


async def one(entries: list[SourceEntry], analyses: Analyses) -> int:
    """One compaction: the tokens it saved."""
    situation = Situation(view=first_view("v"), entries=entries, segments={})
    policy = Policy()
    plan = plan_compaction(situation, policy)
    assert isinstance(plan, Plan)
    request = CompactionRequest(
        compaction_id="c",
        thread_ref="t",
        segment_id="s",
        view_id="v2",
        situation=situation,
        plan=plan,
        policy=policy,
        secret=b"s" * 32,
        previous_root=GENESIS,
    )
    proposal = await compact(request, analyses)
    assert isinstance(proposal, Proposal)
    return proposal.tokens_before - proposal.tokens_after


def linearity() -> None:
    """Time for twice the text, as a ratio: a hostile megabyte costs twice what half of it costs."""
    worst = 0.0
    for piece in ("a@", "1.", "/a", "A-1 ", "“", "a_", "0a", ": ", "e.", "(a"):
        texts = [piece * (size // len(piece)) for size in (250_000, 500_000)]
        half, whole = (median_s(partial(extract_atoms, text), 3) for text in texts)
        worst = max(worst, whole / half)
    row("atoms of twice the hostile text, time ratio", f"{worst:.2f}", "about 2", "")


async def main() -> None:
    """Measure and print."""
    settle_heap()  # as every server and worker does
    sample = thread(2_000)
    print(f"{sum(len(analyse(entry)) for entry in sample)} texts in the sample; CPU seconds, one core\n")
    print("| what is measured | figure | goal | baseline of the same run |\n| --- | --- | --- | --- |")
    extraction(dense=False)
    extraction(dense=True)
    rendering()
    await bulk()
    linearity()


if __name__ == "__main__":
    asyncio.run(main())
