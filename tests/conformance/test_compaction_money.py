"""Caps in money hold, whatever a server counts, with concurrent and with dying workers: over both databases."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import product

import pytest
from msgspec import structs

from tests.conformance.compacting import Compacting, compacting, compaction_engine
from tests.conformance.store import Store
from tests.support.bad_summarisers import under_headings
from tests.support.factories import TENANT
from threadmark.compaction import (
    CompactionService,
    CompactionStatus,
    Policy,
    Refused,
    SummariserFailed,
    SummaryPrompt,
    SummaryReply,
    open_purse,
    picos_of,
    price_of,
    purse_spent,
    spell_money,
)
from threadmark.compaction.model.money import bound_of

__all__ = ["compacting", "compaction_engine"]

PRICE = price_of("2.50", "10")
CAPPED = Policy(keep_last_turns=1, min_gain=0.0, chunk_tokens=600, appendix_tokens=2_000)


class Model:
    """Condenses nothing, and has its calls counted by `usage`; what each may cost at most is in `bounds`."""

    def __init__(self, usage: Callable[[SummaryPrompt], tuple[int, int]]) -> None:
        self._usage = usage
        self.bounds: list[int] = []

    async def summarise(self, prompt: SummaryPrompt) -> SummaryReply:
        """Empty sections, which are refused in the end: the stricter attempt is asked for too."""
        self.bounds.append(bound_of(prompt, PRICE))
        read, said = self._usage(prompt)
        return SummaryReply(text=under_headings([]), prompt_tokens=read, output_tokens=said)


def all_of_it(prompt: SummaryPrompt) -> tuple[int, int]:
    """Every byte a token, and a reply as long as it may be."""
    return len(f"{prompt.system}{prompt.user}".encode()) + 64, prompt.output_tokens_max


def nothing(_: SummaryPrompt) -> tuple[int, int]:
    """A server that does not say."""
    return 0, 0


def half(prompt: SummaryPrompt) -> tuple[int, int]:
    """An honest count."""
    return prompt.prompt_tokens, prompt.output_tokens_max // 2


async def test_a_cap_is_never_passed(compacting: Compacting) -> None:
    """Also by the stricter attempt; where it does not suffice, the summary is made of excerpts."""
    refused = 0
    for number, (cap, usage) in enumerate(product(("0", "0.01", "0.03", "1"), (all_of_it, nothing, half))):
        name = f"thread-{number}"
        await compacting.thread(turns=4, thread_id=name)
        model = Model(usage)
        order = compacting.order(policy=structs.replace(CAPPED, cost_max=cap))
        ordered, _ = await compacting.service.compactions.begin(TENANT, name, order)

        done = await compacting.service.compactions.perform(
            ordered.compaction_id, holder="me", summariser=model, price=PRICE
        )

        assert (done.status, done.strategy) == (CompactionStatus.COMMITTED, "extractive")
        assert (done.cost or 0) <= picos_of(cap)
        assert (done.cost is None) == (model.bounds == [])
        refused += Refused.COST_CAP in {each.reason for each in done.rejections}
    assert 3 <= refused < number


async def test_a_server_that_counts_more_than_there_is_is_asked_no_more(compacting: Compacting) -> None:
    """What it says is noted as it is; the next call is not made."""
    await compacting.thread(turns=8)
    model = Model(lambda prompt: (1_000_000, 1))
    order, _ = await compacting.service.compactions.begin(
        TENANT, "thread-1", compacting.order(policy=structs.replace(CAPPED, cost_max="1"))
    )

    done = await compacting.service.compactions.perform(order.compaction_id, holder="me", summariser=model, price=PRICE)

    assert len(model.bounds) == 1
    assert spell_money(done.cost or 0) == "2.50001"
    assert done.strategy == "extractive"


async def test_what_was_being_asked_at_a_death_is_paid(compacting: Compacting) -> None:
    """Nobody knows whether the server counts it: the next attempt has that much less."""
    await compacting.thread(turns=8)

    class Killed(Exception):
        pass

    class Deadly(Model):
        async def summarise(self, prompt: SummaryPrompt) -> SummaryReply:
            reply = await super().summarise(prompt)
            if len(self.bounds) == 2:
                raise Killed
            return reply

    first, second = Deadly(half), Model(half)
    order, _ = await compacting.service.compactions.begin(TENANT, "thread-1", compacting.order(policy=CAPPED))
    with pytest.raises(Killed):
        await compacting.service.compactions.perform(order.compaction_id, holder="me", summariser=first, price=PRICE)
    between = await compacting.service.compactions.get(TENANT, order.compaction_id)
    done = await compacting.service.compactions.perform(
        order.compaction_id, holder="me", summariser=second, price=PRICE
    )

    kept = (between.cost or 0) - first.bounds[1]
    assert 0 < kept < first.bounds[0]
    assert (done.cost or 0) > (between.cost or 0)


async def test_a_call_that_failed_has_cost_all_that_it_may(compacting: Compacting) -> None:
    """A server that broke off may count it all the same."""
    await compacting.thread(turns=8)

    class Failing(Model):
        async def summarise(self, prompt: SummaryPrompt) -> SummaryReply:
            await super().summarise(prompt)
            raise SummariserFailed("it broke off")

    model = Failing(half)
    order, _ = await compacting.service.compactions.begin(TENANT, "thread-1", compacting.order(policy=CAPPED))
    done = await compacting.service.compactions.perform(order.compaction_id, holder="me", summariser=model, price=PRICE)

    assert done.cost == sum(model.bounds)


async def test_without_a_price_nothing_is_asked_that_has_a_cap(compacting: Compacting) -> None:
    """A cap that nobody can count is not ignored."""
    await compacting.thread(turns=8)
    model = Model(half)
    order, _ = await compacting.service.compactions.begin(
        TENANT, "thread-1", compacting.order(policy=structs.replace(CAPPED, cost_max="100"))
    )

    done = await compacting.service.compactions.perform(order.compaction_id, holder="me", summariser=model)

    assert (model.bounds, done.strategy, done.cost) == ([], "extractive", None)


async def test_two_processes_share_a_purse_and_do_not_pass_it(compacting: Compacting, other_store: Store) -> None:
    """Each thread's compaction sets aside in the database what its next call may cost, before it makes it."""
    names = [f"thread-{number}" for number in range(6)]
    for name in names:
        await compacting.thread(turns=6, thread_id=name)
    total = picos_of("0.05")
    await compacting.store.write(lambda connection: open_purse(connection, "purse", TENANT, total))
    other = CompactionService(other_store.database, now=lambda: datetime.now(UTC))
    models = [Model(all_of_it), Model(half)]

    async def perform(number: int, name: str) -> CompactionStatus:
        service = (compacting.service, other)[number % 2]
        order, _ = await service.compactions.begin(TENANT, name, compacting.order(policy=CAPPED, purse="purse"))
        done = await service.compactions.perform(
            order.compaction_id, holder=name, summariser=models[number % 2], price=PRICE
        )
        assert done.status is CompactionStatus.COMMITTED or done.error_code == "cost_max"
        return done.status

    statuses = await asyncio.gather(*(perform(number, name) for number, name in enumerate(names)))

    spent = await compacting.store.read(lambda connection: purse_spent(connection, "purse"))
    done = [(await compacting.service.compactions.of_thread(TENANT, name))[0] for name in names]
    assert 0 < spent <= total
    assert spent == sum(each.cost or 0 for each in done)
    assert CompactionStatus.ABORTED in statuses
