"""Analysis ahead of a compaction: messages are analysed when their run has ended, and the result is kept by content.

Batch by batch, each in a commit of its own: a process that is killed in between loses one batch, and the next process
goes on behind those that are kept. A thread whose words were erased meanwhile is left alone: an analysis holds words.
"""

from collections.abc import Sequence
from functools import partial

import msgspec
from sqlalchemy import Connection

from threadmark.compaction.input.analysis import Analyses, PartAnalysis, analyse_all
from threadmark.compaction.input.placement import entries_of
from threadmark.compaction.input.source import Position, Role, SourceEntry
from threadmark.compaction.pools import COMPACTING
from threadmark.compaction.store import ledger_rows, views
from threadmark.state import Database, Folded, Thread
from threadmark.state.threads.thread_numbers import lock_number

__all__ = ["Learnt", "known_analyses", "learn"]

KEPT_TOGETHER = 128  #: messages that are analysed and kept in one commit


class Learnt(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome: messages of the thread that can be read, those that were known, those analysed now."""

    total: int = 0
    known: int = 0
    analysed: int = 0
    is_stale: bool = False  #: words were erased meanwhile, or the thread is gone: what was left was not kept


async def learn(database: Database, thread: Thread, folded: Folded) -> Learnt:
    """Analyse the thread's messages that have no analysis yet, and keep what was found. `folded` is its journal.

    It can be repeated: no process analyses a message again whose analysis is stored.
    """
    known, erased = await database.read(lambda connection: _kept(connection, thread.number))
    entries = entries_of(folded.state, erased, lambda _: 0)
    by_key = {Analyses.key(entry): entry for entry in entries if not entry.erased and any(True for _ in entry.texts())}
    unknown = [(key, entry) for key, entry in by_key.items() if key not in known]
    learnt = Learnt(total=len(by_key), known=len(by_key) - len(unknown))
    for start in range(0, len(unknown), KEPT_TOGETHER):
        batch = unknown[start : start + KEPT_TOGETHER]
        # Beside the event loop: heartbeats must not wait for it.
        found = await COMPACTING.run(partial(_analysed, batch))
        kept = await database.write(
            lambda connection, found=found: _keep(connection, thread, erased, found),  # type: ignore[misc]
            repeatable=True,
        )
        if not kept:
            return msgspec.structs.replace(learnt, is_stale=True)
        learnt = msgspec.structs.replace(learnt, analysed=learnt.analysed + len(batch))
    return learnt


async def known_analyses(database: Database, thread: int) -> Analyses:
    """What was found in the thread's messages by now."""
    return Analyses((await database.read(lambda connection: ledger_rows.read_analyses(connection, thread))).items())


def _analysed(batch: Sequence[tuple[str, SourceEntry]]) -> dict[str, tuple[PartAnalysis, ...]]:
    found = analyse_all([entry for _, entry in batch])
    return {key: each for (key, _), each in zip(batch, found, strict=True)}


def _kept(connection: Connection, thread: int) -> tuple[set[str], dict[Position, Role]]:
    return ledger_rows.analysed_keys(connection, thread), views.erased_in(connection, thread)


def _keep(
    connection: Connection, thread: Thread, erased: dict[Position, Role], found: dict[str, tuple[PartAnalysis, ...]]
) -> bool:
    """Keep them, unless they may hold words that were erased since the thread was read; whether they were kept."""
    # Locked: an erasure that comes now waits, and then takes what is written here.
    now = lock_number(connection, thread.number)
    if now is None or now.erasures != thread.erasures or views.erased_in(connection, thread.number) != erased:
        return False
    ledger_rows.add_analyses(connection, thread.number, found)
    return True
