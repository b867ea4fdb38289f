"""Latency, throughput and size of memory, beside qdrant-client's local mode and SQLite FTS5 on the same data.

    python -m bench.memory [--counts 10000,100000] [--local-max 100000]

Assertions lie in 100 scopes of equal size, and every question is put to one of them. Recall is the whole of it but the
embedding of the question: index, database, ranking, provenance. Figures are milliseconds unless they say otherwise.
"""

import argparse
import asyncio
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from qdrant_client import AsyncQdrantClient, models

from threadmark.memory import (
    TURN,
    Database,
    Draft,
    EdgeIndex,
    Origin,
    Question,
    Recollection,
    Scope,
    WordLlamaEmbedder,
    migrate,
)

SCOPE_COUNT = 100
QUESTION_COUNT = 100
NOW = datetime(2026, 1, 1, tzinfo=UTC)
PACKAGES = ("qdrant-edge-py", "wordllama", "tokenizers", "pystemmer", "safetensors", "hf-xet", "huggingface-hub")
LOCAL_COUNT_MAX = 100_000  #: of these many rows qdrant-client's local mode is filled; it takes minutes


class Texts:
    """Sentences of a few hundred made-up words, some common and some rare."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        syllables = [one + two for one in "bdfgklmnprstv" for two in "aeiou"]
        self._words = ["".join(self._chance.choices(syllables, k=3)) for _ in range(5_000)]
        self._weights = [1 / (rank + 8) for rank in range(len(self._words))]

    def sentence(self, count: int = 14) -> str:
        """One sentence."""
        return " ".join(self._chance.choices(self._words, self._weights, k=count))


def shown(values: Sequence[float]) -> str:
    """The median and the 95th percentile."""
    ordered = sorted(values)
    return f"{statistics.median(ordered):.2f} / {ordered[int(len(ordered) * 0.95)]:.2f}"


def scope(number: int) -> Scope:
    """One of the scopes."""
    return Scope(tenant_id="bench", namespace=("users", str(number % SCOPE_COUNT)))


def draft(texts: Texts, number: int) -> Draft:
    """One turn of one of the scopes."""
    place = scope(number)
    origin = Origin(thread_ref=f"thread-{number % 1_000}", message_ref=f"m-{number}", actor="Ada", seq=number)
    at = NOW - timedelta(minutes=1_000_000 - number)
    return Draft(namespace=place.namespace, text=texts.sentence(), kind=TURN, observed_at=at, origin=origin)


class Row:
    """Prints a table line by line."""

    def __init__(self) -> None:
        print("| what | assertions | figure | goal |\n| --- | --- | --- | --- |")

    def __call__(self, what: str, count: int | str, figure: str, goal: str = "") -> None:
        """One line."""
        print(f"| {what} | {count} | {figure} | {goal} |", flush=True)


async def fill(memory: Recollection, texts: Texts, count: int) -> float:
    """Write `count` assertions in batches; seconds."""
    begin = time.perf_counter()
    everywhere = Scope(tenant_id="bench", namespace=())
    for at in range(0, count, 500):
        await memory.remember([draft(texts, at + each) for each in range(500)], scope=everywhere, now=NOW)
    return time.perf_counter() - begin


async def measure(count: int, row: Row) -> None:
    """Everything about one size."""
    texts, embedder = Texts(count), Quiet()
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/memory.db"
        migrate(url)
        memory = Recollection(Database.open(url), EdgeIndex(Path(folder) / "index"), embedder, clock=lambda: NOW)
        await memory.open(background=False)
        wrote_s = await fill(memory, texts, count)
        row("durable writes in batches of 500, per second", count, f"{count / wrote_s:,.0f}", "at least 1,500")
        begin = time.perf_counter()
        await memory.index_pending()
        row("indexing what was written, s", count, f"{time.perf_counter() - begin:.1f}")
        await recalls(memory, texts, embedder, count, row)
        await singles(memory, texts, count, row)
        begin = time.perf_counter()
        await memory.reindex(now=NOW)
        row("rebuild of the whole index, s", count, f"{time.perf_counter() - begin:.1f}", "at most 60 for 100,000")
        begin = time.perf_counter()
        agreement = await memory.verify()
        row("verify, s", count, f"{time.perf_counter() - begin:.1f}, agrees: {agreement.agrees}")
        await memory.close()


async def recalls(memory: Recollection, texts: Texts, embedder: "Quiet", count: int, row: Row) -> None:
    """Recall in single scopes."""
    questions = [
        Question(text=texts.sentence(5), scope=scope(at), asked_at=NOW, count_max=10) for at in range(QUESTION_COUNT)
    ]
    embedder.known = dict(
        zip([each.text for each in questions], await embedder.embed([each.text for each in questions]), strict=True)
    )
    for each in questions[:20]:
        await memory.recall(each)
    spent, answering = [], []
    for each in questions:
        begin = time.perf_counter()
        await memory._answering.answer(each)
        answering.append((time.perf_counter() - begin) * 1_000)
        begin = time.perf_counter()
        await memory.recall(each)
        spent.append((time.perf_counter() - begin) * 1_000)
    goal = "p50 at most 5" if count <= 10_000 else "p50 at most 10"
    row("recall, p50 / p95", count, shown(answering), goal)
    row("recall and its durable log entry, p50 / p95", count, shown(spent))


async def singles(memory: Recollection, texts: Texts, count: int, row: Row) -> None:
    """Durable single writes, and the time until recall tells of them."""
    spent, seen = [], []
    for at in range(60):
        number = count + at
        text = f"{texts.sentence()} marker{number}"
        single = Draft(
            namespace=scope(at).namespace, text=text, observed_at=NOW, origin=Origin(message_ref=f"m-{number}")
        )
        begin = time.perf_counter()
        await memory.remember([single], scope=scope(at), now=NOW)
        spent.append((time.perf_counter() - begin) * 1_000)
        begin = time.perf_counter()
        answers = await memory.recall(Question(text=f"marker{number}", scope=scope(at), asked_at=NOW))
        assert answers.answers[0].assertion.text == text
        seen.append((time.perf_counter() - begin) * 1_000)
    row("one durable write, p50 / p95", count, shown(spent), "at most 3 / 10")
    row("write to visible in recall, p50 / p95", count, shown(seen), "p95 at most 50")
    await memory.index_pending()


class Quiet(WordLlamaEmbedder):
    """The default embedder, with the questions embedded beforehand: their embedding is not what is measured."""

    known: dict[str, Any] = {}  # noqa: RUF012

    async def embed(self, texts: Sequence[str], *, is_question: bool = False) -> Any:
        """Known vectors at once."""
        if is_question and all(text in self.known for text in texts):
            return [self.known[text] for text in texts]
        return await super().embed(texts)


def fts5(count: int, row: Row) -> None:
    """SQLite's full text index on the same sentences, with the scope as a filter and as an indexed word."""
    texts = Texts(count)
    with tempfile.TemporaryDirectory() as folder:
        base = sqlite3.connect(f"{folder}/fts.db")
        base.execute("CREATE VIRTUAL TABLE t USING fts5(body, scope UNINDEXED)")
        base.execute("CREATE VIRTUAL TABLE u USING fts5(body, scope)")
        lines = [(texts.sentence(), f"s{at % SCOPE_COUNT}") for at in range(count)]
        begin = time.perf_counter()
        for table in ("INSERT INTO t VALUES (?, ?)", "INSERT INTO u VALUES (?, ?)"):
            base.executemany(table, lines)
        base.commit()
        row("FTS5: rows per second, two tables", count, f"{2 * count / (time.perf_counter() - begin):,.0f}")
        filtered, indexed = [], []
        for at in range(QUESTION_COUNT):
            words = " OR ".join(texts.sentence(5).split())
            begin = time.perf_counter()
            base.execute(
                "SELECT rowid FROM t WHERE t MATCH ? AND scope = ? ORDER BY rank LIMIT 10", (words, f"s{at}")
            ).fetchall()
            filtered.append((time.perf_counter() - begin) * 1_000)
            begin = time.perf_counter()
            base.execute(
                "SELECT rowid FROM u WHERE u MATCH ? ORDER BY rank LIMIT 10", (f"scope:s{at} AND body:({words})",)
            ).fetchall()
            indexed.append((time.perf_counter() - begin) * 1_000)
        row("FTS5 with the scope as a filter, p50 / p95", count, shown(filtered))
        row("FTS5 with the scope as an indexed word, p50 / p95", count, shown(indexed))
        base.close()


async def local_mode(count: int, row: Row) -> None:
    """qdrant-client's local mode on the same sentences: one dense question with the scope as a filter, nothing else."""
    texts, embedder = Texts(count), WordLlamaEmbedder()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        client = AsyncQdrantClient(location=":memory:")
        size = models.VectorParams(size=embedder.dimension, distance=models.Distance.DOT)
        await client.create_collection("t", vectors_config=size)
        spent_s = 0.0
        for at in range(0, count, 500):
            numbers = range(at, min(count, at + 500))
            vectors = await embedder.embed([texts.sentence() for _ in numbers])
            begin = time.perf_counter()
            points = [
                models.PointStruct(id=number, vector=list(map(float, vector)), payload={"scope": number % SCOPE_COUNT})
                for number, vector in zip(numbers, vectors, strict=True)
            ]
            await client.upsert("t", points)
            spent_s += time.perf_counter() - begin
        row("qdrant-client local: points per second", count, f"{count / spent_s:,.0f}")
        spent = []
        for at, vector in enumerate(await embedder.embed([texts.sentence(5) for _ in range(20)])):
            only = models.Filter(must=[models.FieldCondition(key="scope", match=models.MatchValue(value=at))])
            begin = time.perf_counter()
            await client.query_points("t", query=list(map(float, vector)), query_filter=only, limit=10)
            spent.append((time.perf_counter() - begin) * 1_000)
        row("qdrant-client local: dense question in a scope, p50 / p95", count, shown(spent))
        await client.close()


def install_size(row: Row) -> None:
    """What memory adds to an environment, on disk."""
    total = 0
    for package in PACKAGES:
        files = distribution(package).files or []
        total += sum(Path(str(each.locate())).stat().st_size for each in files if Path(str(each.locate())).is_file())
    row("installed size of what memory adds, MB", "", f"{total / 1e6:.0f}", "at most 120")
    code = "import asyncio, threadmark.memory; e = threadmark.memory.WordLlamaEmbedder(); asyncio.run(e.embed(['x']))"
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[1])
    row("a new process until its first embedding, s", "", f"{time.perf_counter() - begin:.1f}")


async def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="latency, throughput and size of memory")
    parser.add_argument("--counts", default="10000,100000")
    parser.add_argument("--local-max", type=int, default=LOCAL_COUNT_MAX, help="rows of qdrant-client's local mode")
    given = parser.parse_args()
    row = Row()
    install_size(row)
    for count in map(int, given.counts.split(",")):
        await measure(count, row)
        fts5(count, row)
        await local_mode(min(count, given.local_max), row)


if __name__ == "__main__":
    asyncio.run(main())
