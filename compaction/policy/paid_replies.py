"""The calls of one compaction: none is made twice, and none that its bounds in money do not allow.

What a call may cost at most is noted as spent before it is made, in the database, and corrected by what it has cost
when its reply is kept. A death in between leaves the larger sum: no cap is ever passed by an uncounted call.
"""

from collections.abc import Sequence

import msgspec
from sqlalchemy import Connection

from threadmark.compaction.errors import BudgetSpent
from threadmark.compaction.model.money import Price, bound_of, cost_of, spell_money
from threadmark.compaction.model.records import Compaction, Order
from threadmark.compaction.store import budgets, replies
from threadmark.compaction.summary import DraftRefused, Refused, Summariser, SummaryPrompt, SummaryReply
from threadmark.state import Database

__all__ = ["PaidReplies"]


class PaidReplies:
    """A summariser. Without `held`, for a dry run, nothing is kept but what is spent from a purse.

    Beside what a summariser raises: DraftRefused when the compaction's cap does not allow the call, BudgetSpent when
    the purse has too little.
    """

    def __init__(
        self, database: Database, order: Order, held: Compaction | None, summariser: Summariser, price: Price | None
    ) -> None:
        self._database, self._summariser, self._price = database, summariser, price
        self._cap, self._purse_id, self._held = order.policy.cost_picos_max, order.purse, held
        self._spent = 0 if held is None else held.cost or 0
        self._known: dict[str, SummaryReply] | None = None

    @property
    def cost(self) -> int | None:
        """Picos that were spent, or may have been; None before the first call that has a price."""
        return self._spent or None

    async def admit(self, prompts: Sequence[SummaryPrompt]) -> None:
        """Let a draft begin whose calls can all be paid. Raises DraftRefused, BudgetSpent."""
        if self._price is None:
            if self._cap is not None or self._purse_id is not msgspec.UNSET:
                raise DraftRefused(Refused.COST_CAP, "the model has no price")
            return
        known = await self._replies()
        bound = sum(bound_of(prompt, self._price) for prompt in prompts if prompt.key not in known)
        self._check(bound)
        purse_id = self._purse_id
        if purse_id is not msgspec.UNSET:
            left = await self._database.read(lambda connection: budgets.purse_left(connection, purse_id))
            if left is not None and bound > left:
                raise BudgetSpent(purse_id)

    async def summarise(self, prompt: SummaryPrompt) -> SummaryReply:
        """The reply to this very prompt, kept before anything is made of it. Raises SummariserFailed too."""
        known = await self._replies()
        reply = known.get(prompt.key)
        if reply is None:
            bound = 0 if self._price is None else bound_of(prompt, self._price)
            await self._set_aside(bound)
            reply = await self._summariser.summarise(prompt)
            cost = 0 if self._price is None else cost_of(prompt, reply, self._price)
            await self._keep(prompt.key, reply, cost - bound)
            known[prompt.key] = reply
        return reply

    async def _replies(self) -> dict[str, SummaryReply]:
        if self._known is None:
            held = self._held
            self._known = (
                {}
                if held is None
                else await self._database.read(lambda connection: replies.read_replies(connection, held.compaction_id))
            )
        return self._known

    def _check(self, picos: int) -> None:
        if self._cap is not None and self._spent + picos > self._cap:
            detail = f"{spell_money(self._spent + picos)} of {spell_money(self._cap)}"
            raise DraftRefused(Refused.COST_CAP, detail)

    async def _set_aside(self, picos: int) -> None:
        if self._price is None:
            return
        self._check(picos)
        await self._database.write(lambda connection: self._charge(connection, picos, is_ahead=True), repeatable=True)
        self._spent += picos

    async def _keep(self, key: str, reply: SummaryReply, picos: int) -> None:
        held = self._held

        def unit(connection: Connection) -> bool:
            # Released with the reply, and only with it: a second release would make room for a call that was not paid.
            is_new = held is None or replies.add_reply(connection, held, key, reply)
            if is_new and self._price is not None:
                self._charge(connection, picos, is_ahead=False)
            return is_new

        if await self._database.write(unit, repeatable=held is not None):
            self._spent += picos

    def _charge(self, connection: Connection, picos: int, *, is_ahead: bool) -> None:
        compaction_id = None if self._held is None else self._held.compaction_id
        purse_id = None if self._purse_id is msgspec.UNSET else self._purse_id
        budgets.charge(connection, compaction_id, purse_id, picos, is_ahead=is_ahead)
