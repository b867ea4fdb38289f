"""Recollection: the verbs of memory. The one class that others use."""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import TypeVar

from sqlalchemy import Connection

from threadmark.memory.embedders.embedder import Embedder
from threadmark.memory.erase import erasure_jobs
from threadmark.memory.erase.erasure_runner import ErasureRunner
from threadmark.memory.erase.external_copies import ExternalCopies
from threadmark.memory.erase.forget import Erasure, Forget
from threadmark.memory.errors import Refused, Unavailable
from threadmark.memory.exports.archive import export_to
from threadmark.memory.exports.spooled_lines import SpooledLines
from threadmark.memory.imports.importer import Imported, Importer, Lines
from threadmark.memory.index.index import Index
from threadmark.memory.index.indexer import Indexer
from threadmark.memory.index.rebuild import Agreement, Rebuild
from threadmark.memory.model.admission import Selector
from threadmark.memory.model.assertion import Assertion, Draft, Verdict, Which
from threadmark.memory.model.filters import Filter
from threadmark.memory.model.instants import FAR_US, to_us
from threadmark.memory.model.provenance import Change, Evidence, by
from threadmark.memory.model.question import Answers, Question
from threadmark.memory.model.scope import Scope
from threadmark.memory.recall.recall_log import Access
from threadmark.memory.recall.recall_log_queue import RecallLogQueue
from threadmark.memory.recall.recipe import CURRENT, Recipe
from threadmark.memory.recall.retrieval import Answering, estimated_tokens
from threadmark.memory.store import assertion_queries
from threadmark.memory.store.database import Database
from threadmark.memory.store.receipts import Receipt, refuse_answered, write_once
from threadmark.memory.write import approval, revisions
from threadmark.memory.write.declarations import Declarations
from threadmark.memory.write.new_assertions import remember
from threadmark.memory.write.preparation import prepare_all
from threadmark.memory.write.quarantine import hold_source

__all__ = ["Recollection"]

DRAFT_COUNT_MAX = 1_000
PAGE_COUNT_MAX = 1_000
T = TypeVar("T")
Ids = tuple[str, ...]
Held = tuple[str, int]
_LOG = logging.getLogger("threadmark.memory")


class Recollection:
    """Assertions of every thread: remembered, recalled, revised, erased.

    The database is the truth; the index is derived from it and may be lost. Time is an argument of every verb that
    writes; `clock` serves the background, and listings, which leave out what has expired.

    A change that is given a `receipt` is committed together with its answer; asked for again it raises AnsweredBefore
    with that answer, or ReceiptReused, or ReceiptInProgress, and changes nothing.
    """

    def __init__(
        self,
        database: Database,
        index: Index,
        embedder: Embedder,
        *,
        clock: Callable[[], datetime],
        count_tokens: Callable[[str], int] = estimated_tokens,
        recipe: Recipe = CURRENT,
        copies: ExternalCopies | None = None,
    ) -> None:
        self._database, self._index, self._clock = database, index, clock
        self._indexer = Indexer(database, index, embedder, clock)
        self._rebuild = Rebuild(database, index, embedder, self._indexer)
        self._answering = Answering(database, index, embedder, self._indexer, count_tokens, recipe)
        self._recall_log = RecallLogQueue(database)
        self._erasures = ErasureRunner(database, self._indexer, self._recall_log, copies)
        self._declarations = Declarations(database)
        self._importer = Importer(database, clock, self._indexer.wake)

    async def open(self, *, background: bool = True) -> None:
        """Have a space that serves, take up erasures that were interrupted, and begin indexing in the background.

        An index that cannot answer stops nothing: recall works from the database until it can.
        """
        now = self._clock()
        try:
            await self.take_up_index(now=now)
        except Unavailable:
            _LOG.warning("memory opens without its index", exc_info=True)
        await self.resume_erasures(now=now)
        await self._importer.resume()
        if background:
            self._indexer.start()

    async def check(self) -> None:
        """Raises Unavailable when the database cannot be read."""
        await self._database.read(erasure_jobs.unfinished)

    async def take_up_index(self, *, now: datetime, repair: bool = False) -> None:
        """Have a space that serves, filled; with `repair`, one that agrees with the database. Raises Unavailable."""
        await self._rebuild.ensure(to_us(now))
        await self._rebuild.drop_retired()
        if repair:
            await self.verify(repair=True)

    async def keep_indexing(self, completed: Callable[[], None]) -> None:
        """Bring the index up to date until cancelled; `completed` is called after each round. Can be run again."""
        await self._indexer.run(completed)

    async def keep_recall_log(self, completed: Callable[[], None]) -> None:
        """Write the log of recalls until cancelled; `completed` is called after each round. Can be run again."""
        await self._recall_log.run(completed)

    async def resume_erasures(self, *, now: datetime) -> None:
        """Go on with every erasure that was interrupted."""
        for tenant_id, erasure_id in await self._database.read(erasure_jobs.unfinished):
            await self.resume_erasure(erasure_id, tenant_id=tenant_id, now=now)

    async def erasure(self, erasure_id: str, *, tenant_id: str) -> Erasure:
        """How far an erasure is. Raises UnknownJob."""
        return await self._database.read(partial(erasure_jobs.job, tenant_id=tenant_id, erasure_id=erasure_id))

    async def close(self) -> None:
        """End the background, then close index and database."""
        await self._indexer.stop()
        await self._index.close()
        await self._recall_log.close()
        await self._database.close()

    async def remember(
        self, drafts: Sequence[Draft], *, scope: Scope, now: datetime, receipt: Receipt[list[Verdict]] | None = None
    ) -> list[Verdict]:
        """Remember all of `drafts` or none, in their order; what became of each.

        Raises Refused (with the field) and then keeps nothing. Repeating it changes nothing: a moment counts once, and
        a statement that is held gains a source.
        """
        # First: a time that was valid then may be refused now.
        await refuse_answered(self._database, scope.tenant_id, receipt, to_us(now))
        if not 0 < len(drafts) <= DRAFT_COUNT_MAX:
            raise Refused("items", f"has {len(drafts)} items; from 1 to {DRAFT_COUNT_MAX} are taken")
        cardinalities = [await self._declarations.of(draft, scope.tenant_id) for draft in drafts]
        prepared = await prepare_all(drafts, scope, now, cardinalities)
        unit = partial(remember, items=prepared)
        return await self._changed(unit, scope.tenant_id, receipt, now)

    async def recall(self, question: Question) -> Answers:
        """Answer a question, and log it in the background. Raises Unavailable only when the database cannot be read."""
        answers = await self._answering.answer(question)
        self._recall_log.add(answers)
        return answers

    @property
    def dropped_recall_count(self) -> int:
        """Recalls that this process answered and could not log."""
        return self._recall_log.dropped_count

    async def recalls(self, run_ref: str, *, tenant_id: str) -> list[Access]:
        """What a run asked and was shown, in order."""
        return await self._recall_log.of_run(run_ref, tenant_id=tenant_id)

    async def get(self, assertion_id: str, *, scope: Scope) -> Assertion:
        """One assertion with its sources. Raises UnknownAssertion, also for one outside the scope."""
        return await self._database.read(partial(assertion_queries.one, scope=scope, assertion_id=assertion_id))

    async def list(
        self,
        *,
        scope: Scope,
        given: Filter | None = None,
        after: int = 0,
        count_max: int = 100,
        which: Which = Which.CURRENT,
    ) -> Sequence[tuple[int, Assertion]]:
        """A page in the order of arrival: each assertion with the cursor that comes after it."""
        bound, now = min(max(count_max, 1), PAGE_COUNT_MAX), to_us(self._clock())
        return await self._database.read(
            lambda c: assertion_queries.listed(
                c, scope, given or Filter(), after=after, count_max=bound, which=which, now=now
            )
        )

    async def history(self, assertion_id: str, *, scope: Scope) -> Sequence[Assertion]:
        """Every version of the statement, or of its attribute, in the order in which they were believed."""
        return await self._database.read(partial(assertion_queries.history, scope=scope, assertion_id=assertion_id))

    async def provenance(self, assertion_id: str, *, scope: Scope) -> tuple[Evidence, ...]:
        """The moments that an assertion rests on, oldest first."""
        return (await self.get(assertion_id, scope=scope)).provenance

    async def timeline(self, subject: str, attribute: str, *, scope: Scope) -> Sequence[Assertion]:
        """Every version of an attribute of a subject, by belief and then by validity."""
        return await self._database.read(
            partial(assertion_queries.timeline, scope=scope, subject=subject, attribute=attribute)
        )

    async def held_at(
        self, subject: str, attribute: str, *, scope: Scope, valid_at: datetime, known_at: datetime | None = None
    ) -> Sequence[Assertion]:
        """What was believed at `known_at` (by default, what is believed) to be true of an attribute at `valid_at`."""
        known = FAR_US - 1 if known_at is None else to_us(known_at)
        return await self._database.read(
            lambda c: assertion_queries.held_at(c, scope, subject, attribute, to_us(valid_at), known)
        )

    async def item_versions(self, key: str, *, scope: Scope) -> Sequence[Assertion]:
        """The newest versions of a keyed document of exactly the scope's namespace, newest first."""
        return await self._database.read(partial(assertion_queries.item_versions, scope=scope, key=key))

    async def diff(
        self, known_from: datetime, known_to: datetime, *, scope: Scope
    ) -> tuple[Sequence[Assertion], Sequence[Assertion]]:
        """What began and what ceased to be believed between two instants."""
        return await self._database.read(
            partial(assertion_queries.changes, scope=scope, from_us=to_us(known_from), to_us_=to_us(known_to))
        )

    async def retract(
        self, assertion_id: str, *, scope: Scope, reason: str, change: Change, receipt: Receipt[Ids] | None = None
    ) -> Ids:
        """End the belief in a statement; the ids of its versions. Raises UnknownAssertion, AlreadyRetracted."""
        unit = partial(revisions.retract, scope=scope, assertion_id=assertion_id, reason=reason, **by(change))
        return await self._changed(unit, scope.tenant_id, receipt, change.now)

    async def undo(
        self, assertion_id: str, *, scope: Scope, change: Change, receipt: Receipt[Ids] | None = None
    ) -> Ids:
        """Take back a supersession or a retraction; the ids believed again. Raises UnknownAssertion, CannotUndo."""
        unit = partial(revisions.undo, scope=scope, assertion_id=assertion_id, **by(change))
        return await self._changed(unit, scope.tenant_id, receipt, change.now)

    async def approve(
        self, assertion_id: str, *, scope: Scope, change: Change, receipt: Receipt[Assertion] | None = None
    ) -> Assertion:
        """Believe a quarantined or untrusted assertion from now on; returns it as it is then."""

        def unit(connection: Connection) -> Assertion:
            approval.approve(connection, scope, assertion_id, **by(change))
            return assertion_queries.one(connection, scope, assertion_id)

        return await self._changed(unit, scope.tenant_id, receipt, change.now, words_of=assertion_id)

    async def quarantine(
        self, source: Selector, *, tenant_id: str, reason: str, now: datetime, receipt: Receipt[Held] | None = None
    ) -> Held:
        """Keep everything that rests on a source apart, at once: the quarantine's id, and how much left recall."""
        unit = partial(hold_source, tenant_id=tenant_id, selector=source, reason=reason, now=to_us(now))
        return await self._changed(unit, tenant_id, receipt, now)

    async def release(
        self, quarantine_id: str, *, tenant_id: str, now: datetime, receipt: Receipt[int] | None = None
    ) -> int:
        """End a quarantine; how much came back. Raises UnknownQuarantine."""
        unit = partial(approval.release_source, tenant_id=tenant_id, quarantine_id=quarantine_id, now=to_us(now))
        return await self._changed(unit, tenant_id, receipt, now)

    async def _changed(
        self,
        unit: Callable[[Connection], T],
        tenant_id: str,
        receipt: Receipt[T] | None,
        now: datetime,
        words_of: str | None = None,
    ) -> T:
        """Make a change together with its receipt, and have it indexed."""
        made = await write_once(
            self._database, unit, tenant_id=tenant_id, receipt=receipt, now=to_us(now), words_of=words_of
        )
        self._indexer.wake()
        return made

    async def erase(self, what: Forget, *, tenant_id: str, now: datetime, dry_run: bool = False) -> Erasure:
        """Erase what a selector names, and count it. A dry run only counts, and has no id."""
        if dry_run:
            counts = await self._database.read(partial(erasure_jobs.counted, tenant_id=tenant_id, what=what))
            return Erasure(erasure_id="", is_done=False, created_at=now, done_at=None, counts=counts)
        begun = await self.begin_erasure(what, tenant_id=tenant_id, now=now)
        return await self.resume_erasure(begun.erasure_id, tenant_id=tenant_id, now=now)

    async def begin_erasure(
        self,
        what: Forget,
        *,
        tenant_id: str,
        now: datetime,
        receipt: Receipt[Erasure] | None = None,
        open_max: int | None = None,
    ) -> Erasure:
        """Note an erasure, which `resume_erasure` then performs. Raises BoundReached where `open_max` are not done."""
        unit = partial(erasure_jobs.begin, tenant_id=tenant_id, what=what, now=to_us(now), open_max=open_max)
        return await write_once(self._database, unit, tenant_id=tenant_id, receipt=receipt, now=to_us(now))

    async def resume_erasure(self, erasure_id: str, *, tenant_id: str, now: datetime) -> Erasure:
        """Go on with an erasure from wherever it was interrupted. Without the index, the job stays open."""
        return await self._erasures.perform(erasure_id, tenant_id=tenant_id, now=to_us(now))

    async def sweep(self, *, now: datetime, recalls_before: datetime) -> int:
        """Erase what has expired, recalls from before an instant, imports that were given up; how many assertions."""
        await self._importer.resume()
        return await self._erasures.sweep(now=now, recalls_before=recalls_before)

    async def export(self, *, scope: Scope) -> Sequence[str]:
        """Everything that the scope covers, as JSON lines."""
        with SpooledLines() as spool:
            await self.export_to(spool, scope=scope)
            return [*spool]

    async def export_to(self, spool: SpooledLines, *, scope: Scope) -> None:
        """Write everything that the scope covers, of one snapshot, on a thread that no question needs."""
        await self._recall_log.flush()
        await export_to(self._database.url, spool, scope, self._database.limits)

    async def import_(self, lines: Lines, *, scope: Scope, receipt: Receipt[Imported] | None = None) -> Imported:
        """Keep the rows of an export. Raises Refused with the line and ImportUnderWay, and then keeps nothing."""
        return await self._importer.import_(lines, scope, receipt)

    async def index_pending(self) -> int:
        """Bring the index up to date now; how many entries. Raises IndexUnavailable."""
        return await self._indexer.drain()

    async def reindex(self, *, now: datetime) -> str:
        """Rebuild the index beside the serving one and swap; returns the new space's name."""
        return await self._rebuild.reindex(to_us(now))

    async def verify(self, *, repair: bool = False) -> Agreement:
        """Compare database and index by id and digest; with `repair`, make them agree."""
        found = await self._rebuild.verify(repair=repair)
        if repair:
            await self._indexer.drain()
        return found
