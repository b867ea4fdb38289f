"""A memory to test with: a migrated database, an index, an embedder, and a clock that stands still."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from threadmark.memory import (
    Change,
    Database,
    Draft,
    Embedder,
    ExternalCopies,
    HashedEmbedder,
    Index,
    MemoryIndex,
    Origin,
    Question,
    Recollection,
    Scope,
    Trust,
    Verdict,
    migrate,
)

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
HOME = Scope(tenant_id="acme", namespace=("users", "7"))
CHANGE = Change(by="tester", now=NOW)


@asynccontextmanager
async def house(
    url: str,
    index: Index | None = None,
    embedder: Embedder | None = None,
    *,
    background: bool = False,
    copies: ExternalCopies | None = None,
) -> AsyncIterator[Recollection]:
    """A memory over the database at `url`, brought up to date first; closed at the end."""
    migrate(url)
    memory = Recollection(
        Database.open(url), index or MemoryIndex(), embedder or HashedEmbedder(), clock=lambda: NOW, copies=copies
    )
    await memory.open(background=background)
    try:
        yield memory
    finally:
        await memory.close()


def draft(text: str, *, scope: Scope = HOME, at: datetime = NOW - timedelta(days=1), **fields: Any) -> Draft:
    """A draft of the scope's own namespace, observed a day ago."""
    return Draft(namespace=scope.namespace, text=text, observed_at=at, **fields)


def city(value: str, *, at: datetime = NOW - timedelta(days=1), **fields: Any) -> Draft:
    """That the user lives in a city: a single-valued attribute."""
    return draft(f"lives in {value}", at=at, subject="user", attribute="city", value=value, **fields)


def moment(number: int, *, thread: str = "thread-1", actor: str | None = None) -> Origin:
    """A moment of a thread, by its number."""
    return Origin(
        thread_ref=thread, run_ref=f"run-{number}", seq=number, message_ref=f"message-{number}", actor=actor, at=NOW
    )


async def remembered(memory: Recollection, *drafts: Draft, scope: Scope = HOME, now: datetime = NOW) -> list[Verdict]:
    """Remember and index."""
    verdicts = await memory.remember(drafts, scope=scope, now=now)
    await memory.index_pending()
    return verdicts


def question(text: str, *, scope: Scope = HOME, now: datetime = NOW, **fields: Any) -> Question:
    """A question of the scope, asked now."""
    return Question(text=text, scope=scope, asked_at=now, **fields)


async def texts(memory: Recollection, text: str, **fields: Any) -> Sequence[str]:
    """The texts that answer a question, best first."""
    return [each.assertion.text for each in (await memory.recall(question(text, **fields))).answers]


UNTRUSTED: dict[str, Any] = {"trust": Trust.WEB, "asserted_by": "fetch"}
