"""One performance of a compaction: held, planned, drafted, committed; tried again where the view moved meanwhile."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import msgspec
from sqlalchemy import Connection

from threadmark.compaction.atoms import EXTRACTOR_VERSION
from threadmark.compaction.errors import BudgetSpent, HoldLost, PlanOutdated, RunInProgress, ViewMoved
from threadmark.compaction.loading.prior_analysis import known_analyses
from threadmark.compaction.loading.thread_loader import Loaded, load_by_number
from threadmark.compaction.model.money import Price
from threadmark.compaction.model.plan import Plan, Refusal, RefusalReason
from threadmark.compaction.model.records import Compaction, CompactionStatus, Order
from threadmark.compaction.policy.paid_replies import PaidReplies
from threadmark.compaction.run.ahead import clear_thread, write_ahead
from threadmark.compaction.run.commit import Commit, commit_compaction
from threadmark.compaction.run.draft import Tools, draft
from threadmark.compaction.run.planning import plan_compaction
from threadmark.compaction.run.proposal import Aborted
from threadmark.compaction.store import holds, orders, replies, views
from threadmark.compaction.summary import PROMPT_VERSION, Summariser
from threadmark.state import LeaseLost, NotFound, ThreadGone, to_us

__all__ = ["HOLD_S", "CompactionRun"]

_LOG = logging.getLogger("threadmark.compaction")
#: How long a process that says nothing keeps a compaction (seconds); a worker keeps it no longer than its lease.
HOLD_S = 30.0
#: Plans tried where the view moves again and again.
PLANS_MAX = 3


class CompactionRun:
    """One attempt of one process."""

    def __init__(
        self,
        tools: Tools,
        compaction_id: str,
        holder: str,
        worker_id: str | None,
        summariser: Summariser | None,
        price: Price | None,
        fence: int | None,
    ) -> None:
        self._tools, self._summariser, self._price, self._fence = tools, summariser, price, fence
        self._compaction_id, self._holder, self._worker_id = compaction_id, holder, worker_id

    async def perform(self) -> Compaction:
        """The compaction after it; see `Compactions.perform`."""
        try:
            held = await self._hold()
            return await (self._stored() if held is None else self._perform(held))
        except asyncio.CancelledError:
            # Cancelled: the next process need not wait until the hold ends.
            await self._end(CompactionStatus.PLANNED, "interrupted", "the process that performed it was stopped")
            raise

    async def _perform(self, held: Compaction) -> Compaction:
        async with self._holding():
            try:
                return await self._plan_and_commit(held)
            except RunInProgress as error:
                return await self._end(CompactionStatus.PLANNED, RefusalReason.RUN_IN_PROGRESS, str(error))
            except (ViewMoved, PlanOutdated) as error:
                return await self._end(CompactionStatus.ABORTED, "view_moved", str(error))
            except (LeaseLost, ThreadGone):
                return await self._end(CompactionStatus.ABORTED, "lease_lost", "the run lost its lease of the thread")
            except BudgetSpent as error:
                return await self._end(CompactionStatus.ABORTED, "cost_max", str(error))
            except HoldLost:
                return await self._stored()

    async def _plan_and_commit(self, held: Compaction) -> Compaction:
        for number in range(PLANS_MAX):
            loaded = await self._load(held)
            plan = self._kept_plan(held, loaded) or self._new_plan(held, loaded)
            if isinstance(plan, Refusal):
                return await self._refuse(plan)
            leaving = plan.covered or plan.masked
            signature = views.signature_of(leaving, loaded.versions)
            if number and signature != held.signature:
                raise ViewMoved(loaded.thread.thread_id, loaded.current_view.view_id)
            held = await self._keep_plan(plan, leaving, signature, loaded)
            try:
                return await self._draft_and_commit(held, plan, loaded)
            except ViewMoved:
                if number == PLANS_MAX - 1:
                    raise
        raise AssertionError("the last plan is committed or raises")

    async def _draft_and_commit(self, held: Compaction, plan: Plan, loaded: Loaded) -> Compaction:
        analyses = await known_analyses(self._tools.database, held.thread)
        order = _order_of(held)
        made = await draft(
            self._tools, loaded, plan, order, held.compaction_id, self._paid(order, held), analyses=analyses
        )
        if isinstance(made, Aborted):
            return await self._abort(made)
        done = Commit(
            compaction=held,
            holder=self._holder,
            loaded=loaded,
            proposal=made,
            covered=plan.covered or plan.masked,
            absorbed=plan.absorbed,
            added=analyses.added,
            fence=self._fence,
            now=self._tools.now(),
        )
        await self._clear(held.thread)
        await write_ahead(self._tools.database, done)
        return await self._tools.database.write(
            lambda connection: commit_compaction(connection, done), thread=held.thread, repeatable=True
        )

    def _new_plan(self, held: Compaction, loaded: Loaded) -> Plan | Refusal:
        in_progress = self._fence is None and loaded.thread.owner is not None
        return plan_compaction(loaded.situation(held.base_tokens, run_in_progress=in_progress), held.policy)

    def _kept_plan(self, held: Compaction, loaded: Loaded) -> Plan | None:
        """The plan of an earlier attempt, while its view stands and its entries are what they were.

        What was appended meanwhile does not change it: the chunks, and with them the replies that are kept, stay.
        """
        if held.plan is None or held.plan.view_id != loaded.view.view.view_id:
            return None
        if self._fence is None and loaded.thread.owner is not None:
            raise RunInProgress(loaded.thread.thread_id)
        leaving = held.plan.covered or held.plan.masked
        return held.plan if views.signature_of(leaving, loaded.versions) == held.signature else None

    def _paid(self, order: Order, held: Compaction) -> PaidReplies | None:
        if self._summariser is None:
            return None
        return PaidReplies(self._tools.database, order, held, self._summariser, self._price)

    async def _load(self, held: Compaction) -> Loaded:
        return await self._tools.database.read(
            lambda connection: load_by_number(
                connection, held.thread, self._tools.count_message, self._tools.fold_cache
            )
        )

    async def _hold(self) -> Compaction | None:
        now_us = to_us(self._tools.now())
        until_us = now_us + round(HOLD_S * 1_000_000)
        return await self._tools.database.write(
            lambda connection: holds.hold(
                connection,
                self._compaction_id,
                self._holder,
                self._worker_id,
                now_us,
                until_us,
                self._tools.beating,
            ),
            repeatable=True,
        )

    @asynccontextmanager
    async def _holding(self) -> AsyncIterator[None]:
        """Hold on while the work goes on."""
        beating = asyncio.create_task(self._beat())
        try:
            yield
        finally:
            beating.cancel()
            await asyncio.wait([beating])

    async def _beat(self) -> None:
        held = True
        while held:
            await asyncio.sleep(HOLD_S / 3)
            renew = partial(self._hold_on, until_us=to_us(self._tools.now()) + round(HOLD_S * 1_000_000))
            try:
                held = await self._tools.database.write(renew, repeatable=True)
            except Exception:
                # The hold may outlast an outage; if it does not, the commit finds that it was lost.
                _LOG.warning("the hold on compaction %s could not be renewed", self._compaction_id, exc_info=True)

    def _hold_on(self, connection: Connection, until_us: int) -> bool:
        return orders.change(connection, self._compaction_id, self._holder, {"held_until": until_us})

    async def _stored(self) -> Compaction:
        found = await self._tools.database.read(
            lambda connection: orders.find_compaction(connection, self._compaction_id)
        )
        if found is None:
            raise NotFound("Compaction", self._compaction_id)
        return found

    async def _keep_plan(self, plan: Plan, leaving: tuple[int, ...], signature: str, loaded: Loaded) -> Compaction:
        return await self._write(
            {
                "plan": msgspec.json.encode(plan),
                "signature": signature,
                "from_seq": leaving[0],
                "to_seq": leaving[-1],
                "branch": loaded.thread.branch,
                "head_seq": loaded.thread.head_seq,
                "tokens_before": plan.tokens_before,
                "tokens_after": plan.tokens_before,
                "floor_tokens": plan.floor_tokens,
                "extractor_version": EXTRACTOR_VERSION,
                "prompt_version": PROMPT_VERSION,
            }
        )

    async def _refuse(self, refusal: Refusal) -> Compaction:
        tokens = {
            "tokens_before": refusal.tokens_before,
            "tokens_after": refusal.tokens_before,
            "floor_tokens": refusal.floor_tokens,
        }
        if refusal.reason is RefusalReason.RUN_IN_PROGRESS:
            return await self._end(CompactionStatus.PLANNED, refusal.reason, refusal.sentence, tokens)
        return await self._end(CompactionStatus.REFUSED, refusal.reason, refusal.sentence, tokens)

    async def _abort(self, made: Aborted) -> Compaction:
        values = {"rejections": msgspec.json.encode(made.rejections)}
        return await self._end(CompactionStatus.ABORTED, made.error_code, made.sentence, values)

    async def _end(
        self, status: CompactionStatus, code: str, sentence: str, values: Mapping[str, Any] | None = None
    ) -> Compaction:
        """Release the hold and record the outcome."""
        now_us = to_us(self._tools.now())
        ended = {"status": status, "error_code": code, "error": sentence, "held_until": 0, "updated_at": now_us}

        def unit(connection: Connection) -> Compaction | None:
            written = orders.changed(connection, self._compaction_id, self._holder, {**(values or {}), **ended})
            if written is not None and status is not CompactionStatus.PLANNED:
                replies.forget_replies(connection, [self._compaction_id])
            return written

        # Where the hold is lost, its new holder records the outcome.
        ended_now = await self._tools.database.write(unit, repeatable=True) or await self._stored()
        if not ended_now.is_open:
            await self._clear(ended_now.thread)
        return ended_now

    async def _clear(self, thread: int) -> None:
        """Remove rows that wait for no commit: of earlier attempts, and of other compactions of the thread."""
        now_us = to_us(self._tools.now())
        await clear_thread(self._tools.database, thread, self._compaction_id, self._holder, now_us, self._tools.beating)

    async def _write(self, values: Mapping[str, Any]) -> Compaction:
        written = await self._tools.database.write(
            lambda connection: orders.changed(connection, self._compaction_id, self._holder, values), repeatable=True
        )
        if written is None:
            raise HoldLost(self._compaction_id, self._holder)
        return written


def _order_of(held: Compaction) -> Order:
    return Order(
        key=held.key,
        policy=held.policy,
        trigger=held.trigger,
        summariser=held.summariser,
        requested_by=held.requested_by,
        base_tokens=held.base_tokens,
        purse=held.purse,
    )
