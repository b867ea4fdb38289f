"""Compactions of threads: ordered, previewed, performed and committed.

    order → plan → summarise → ledger → commit (one unit) → done, or nothing has changed

Everything may be repeated: an order by its key, a performance by its compaction. Of two that perform the same
compaction one holds it; a model's reply that was kept is not asked for again.
"""

from collections.abc import Callable
from datetime import datetime
from typing import TypeAlias

import msgspec
from sqlalchemy import Connection

from threadmark.compaction.loading.thread_loader import Loaded, MessageCounter, load_thread
from threadmark.compaction.model.money import Price
from threadmark.compaction.model.plan import Plan, Refusal, Situation
from threadmark.compaction.model.records import Compaction, CompactionStatus, Order, Trigger
from threadmark.compaction.policy.breaker import Attempt, breaker
from threadmark.compaction.policy.paid_replies import PaidReplies
from threadmark.compaction.run.ahead import clear_left
from threadmark.compaction.run.compaction_run import CompactionRun
from threadmark.compaction.run.draft import draft
from threadmark.compaction.run.planning import plan_compaction
from threadmark.compaction.run.proposal import Aborted, Proposal
from threadmark.compaction.store import holds, orders, outlooks
from threadmark.compaction.store.outlooks import Outlook
from threadmark.compaction.summary import Summariser, TokenCounter
from threadmark.state import Database, FoldCache, KeyReused, NotFound, get_thread, new_id, to_us

__all__ = ["Compactions", "Preview"]

#: Automatic compactions that the breaker looks at.
BREAKER_LOOKS_AT = 8
#: What else belongs to the commit that orders a compaction.
ExtraWrites: TypeAlias = Callable[[Connection, Compaction], object]
_AUTOMATIC = frozenset({Trigger.TOKENS, Trigger.TURNS, Trigger.IDLE})


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """What a compaction would do. `proposal` has its view, segment and ledger; nothing of it is kept.

    Without a plan, `refusal` says why; without a proposal, `aborted` says what was refused. `cost` is what its calls of
    the model cost, in picos; None: it was not asked, or has no price.
    """

    plan: Plan | None = None
    refusal: Refusal | None = None
    proposal: Proposal | None = None
    aborted: Aborted | None = None
    cost: int | None = None


class Compactions:
    """The verbs over compactions. `count` counts tokens, the same counter for everything; `now` is the clock.

    `beating` says which workers live although their leases have ended.
    """

    def __init__(
        self,
        database: Database,
        count: TokenCounter,
        now: Callable[[], datetime],
        fold_cache: FoldCache | None = None,
        beating: holds.Beating = holds.none_beating,
    ) -> None:
        self.database, self.count, self.now, self.fold_cache = database, count, now, fold_cache
        self.beating = beating
        self.count_message = MessageCounter(count)

    async def preview(
        self,
        tenant_id: str,
        thread_id: str,
        order: Order,
        summariser: Summariser | None = None,
        price: Price | None = None,
    ) -> Preview:
        """A dry run: the whole work, a model's calls among it where there is a summariser, and nothing is written.

        What the calls cost is taken from the order's purse all the same. Raises NotFound, BudgetSpent.
        """
        loaded = await self.load(tenant_id, thread_id)
        plan = plan_compaction(_situation(loaded, order.base_tokens), order.policy)
        if isinstance(plan, Refusal):
            return Preview(refusal=plan)
        paid = None if summariser is None else PaidReplies(self.database, order, None, summariser, price)
        made = await draft(self, loaded, plan, order, new_id(to_us(self.now())), paid)
        cost = None if paid is None else paid.cost
        if isinstance(made, Aborted):
            return Preview(plan=plan, aborted=made, cost=cost)
        return Preview(plan=plan, proposal=made, cost=cost)

    async def begin(
        self, tenant_id: str, thread_id: str, order: Order, *, extra_writes: ExtraWrites | None = None
    ) -> tuple[Compaction, bool]:
        """Order a compaction; with whether it is new. The same key and order are the same compaction.

        It is `planned` then, and `perform` does it; `alongside` is part of the commit of a new one, so that its
        performer is certain to learn of it. Raises NotFound for the thread, KeyReused for a key of another order.
        """
        digest = order.fingerprint(thread_id)
        now_us = to_us(self.now())

        def unit(connection: Connection) -> tuple[Compaction, bool]:
            thread = get_thread(connection, tenant_id, thread_id)
            made = orders.order_once(
                connection,
                compaction_id=new_id(now_us),
                tenant_id=tenant_id,
                thread=thread.number,
                order=order,
                digest=digest,
                now_us=now_us,
            )
            if made is not None:
                if extra_writes is not None:
                    extra_writes(connection, made)
                return made, True
            found = orders.find_by_key(connection, tenant_id, order.key)
            if found is None or found[1] != digest:
                raise KeyReused(order.key)
            return found[0], False

        return await self.database.write(unit, repeatable=True)

    async def give_up(self, tenant_id: str, thread_id: str, order: Order, code: str, why: str) -> None:
        """Keep an order that cannot be performed, as `aborted` from the beginning, where people look for the reason.

        Raises NotFound for the thread, KeyReused.
        """
        now_us = to_us(self.now())

        def at_once(connection: Connection, made: Compaction) -> None:
            orders.abort_planned(connection, made.compaction_id, code, why, now_us)

        await self.begin(tenant_id, thread_id, order, extra_writes=at_once)

    async def perform(
        self,
        compaction_id: str,
        *,
        holder: str,
        worker_id: str | None = None,
        summariser: Summariser | None = None,
        price: Price | None = None,
        fence: int | None = None,
    ) -> Compaction:
        """Do what was ordered; the compaction as it is then.

        `committed`, `refused` or `aborted` are the end. It is still open when another process holds it, or when a run
        holds the thread (`error_code` is `run_in_progress`): perform it again later. `holder` names who performs, one
        name for each attempt that may run at the same time; `worker_id` is the worker of its process, with whose lease
        the hold ends. Inside of a run, `fence` is that of the run's lease. Without a summariser the summary is made
        of excerpts; without a `price` of its model, nothing that has a cap in money is made by it. Raises NotFound when
        there is no such compaction.
        """
        return await CompactionRun(self, compaction_id, holder, worker_id, summariser, price, fence).perform()

    async def plan(self, loaded: Loaded, order: Order, *, run_in_progress: bool = False) -> Plan | Refusal:
        """What an automatic compaction would do, unless the last ones over the same floor did not help."""
        plan = plan_compaction(_situation(loaded, order.base_tokens, run_in_progress=run_in_progress), order.policy)
        before = await self.of_thread(loaded.thread.tenant_id, loaded.thread.thread_id, count_max=BREAKER_LOOKS_AT)
        return breaker(plan, [_attempt(each) for each in reversed(before) if each.trigger in _AUTOMATIC])

    async def get(self, tenant_id: str, compaction_id: str) -> Compaction:
        """The tenant's compaction. Raises NotFound."""
        found = await self.database.read(
            lambda connection: orders.find_compaction(connection, compaction_id, tenant_id)
        )
        if found is None:
            raise NotFound("Compaction", compaction_id)
        return found

    async def of_thread(
        self, tenant_id: str, thread_id: str, *, count_max: int = 20, before_id: str | None = None
    ) -> list[Compaction]:
        """The thread's compactions, newest first; `before_id` is the last id of the page before. Raises NotFound."""

        def query(connection: Connection) -> list[Compaction]:
            thread = get_thread(connection, tenant_id, thread_id)
            return orders.list_compactions(connection, thread.number, count_max=count_max, before_id=before_id)

        return await self.database.read(query)

    async def keyed(self, tenant_id: str, prefix: str, *, after_key: str = "", count_max: int = 50) -> list[Compaction]:
        """The tenant's compactions whose keys begin with `prefix`, in the order of their keys: those of one job."""
        return await self.database.read(
            lambda connection: orders.list_keyed(
                connection, tenant_id, prefix, after_key=after_key, count_max=count_max
            )
        )

    async def keep_outlook(self, job_id: str, thread: int, outlook: Outlook) -> None:
        """Keep what a dry run of a job found of a thread."""
        await self.database.write(
            lambda connection: outlooks.put_outlook(connection, job_id, thread, outlook), repeatable=True
        )

    async def outlooks(self, job_id: str, *, after_id: str = "", count_max: int = 50) -> list[Outlook]:
        """What a dry run of a job found, in the order of the threads' ids."""
        return await self.database.read(
            lambda connection: outlooks.list_outlooks(connection, job_id, after_id=after_id, count_max=count_max)
        )

    async def unfinished(self, count_max: int = 100) -> list[Compaction]:
        """Compactions of all tenants that wait to be performed, or whose process died: what a sweep looks for."""
        now_us = to_us(self.now())
        return await self.database.read(
            lambda connection: holds.open_compactions(connection, now_us, count_max, self.beating)
        )

    async def clear_left(self) -> int:
        """Remove rows that were written ahead of commits that will not come; of how many compactions."""
        return await clear_left(self.database, to_us(self.now()), self.beating)

    async def load(self, tenant_id: str, thread_id: str) -> Loaded:
        """The thread with its messages and its view, read at once. Raises NotFound."""
        return await self.database.read(
            lambda connection: load_thread(connection, tenant_id, thread_id, self.count_message, self.fold_cache)
        )


def _situation(loaded: Loaded, base_tokens: int, *, run_in_progress: bool | None = None) -> Situation:
    held = loaded.thread.owner is not None if run_in_progress is None else run_in_progress
    return loaded.situation(base_tokens, run_in_progress=held)


def _attempt(done: Compaction) -> Attempt:
    target = done.policy.target_tokens
    reached = target is None or done.tokens_after <= target
    return Attempt(
        floor_tokens=done.floor_tokens, was_effective=done.status is not CompactionStatus.ABORTED and reached
    )
