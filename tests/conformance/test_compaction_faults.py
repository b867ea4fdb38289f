"""Errors at every statement and commit of a compaction: the view is the old one or the new one, never none."""

from collections import Counter
from typing import Any

import msgspec
import pytest
from sqlalchemy import Connection, Engine, event, select

from tests.conformance.compacting import POLICY, Compacting, compacting, compaction_engine
from tests.support.bad_summarisers import Recorder
from tests.support.factories import TENANT
from threadmark.compaction import CompactionStatus, Order, SummaryPrompt, SummaryReply
from threadmark.compaction.tables import METADATA

__all__ = ["compacting", "compaction_engine"]

POINT_COUNT_MAX, POINT_COUNT_MIN = 400, 10
KEEPING_POINT_COUNT = len(("look", "insert", "commit"))


class DiskGoneError(Exception):
    """What a statement or a commit fails with."""


class Trap:
    """Fails at its n-th point."""

    def __init__(self) -> None:
        self.left = 0
        self.is_sprung = False

    def set(self, at: int) -> None:
        """Fail at the point of this number, from here on."""
        self.left, self.is_sprung = at, False

    def point(self, *_: Any, **__: Any) -> None:
        """One more point."""
        self.left -= 1
        if self.left == 0:
            self.is_sprung = True
            raise DiskGoneError


async def test_an_error_anywhere_leaves_the_old_view_or_the_new_one(compacting: Compacting) -> None:
    """Ordered once and performed again after each error, one point further each time: one commit in the end (C64)."""
    await compacting.thread()
    before = await compacting.render_hash()
    order, _ = await compacting.service.compactions.begin(TENANT, "thread-1", Order(key="k", policy=POLICY))
    trap, model = Trap(), Recorder()
    event.listen(Engine, "before_cursor_execute", trap.point)
    event.listen(Engine, "commit", trap.point)
    point, hashes = 0, []
    try:
        for point in range(1, POINT_COUNT_MAX):
            trap.set(point)
            try:
                done = await compacting.service.compactions.perform(order.compaction_id, holder="me", summariser=model)
            except DiskGoneError:
                trap.set(0)
                hashes.append(await compacting.render_hash())
                continue
            if not trap.is_sprung:
                break
    finally:
        event.remove(Engine, "before_cursor_execute", trap.point)
        event.remove(Engine, "commit", trap.point)

    assert point > POINT_COUNT_MIN
    assert done.status is CompactionStatus.COMMITTED
    after = await compacting.render_hash()
    assert after != before
    assert set(hashes) <= {before, after}
    assert len(await compacting.service.views.of_thread(TENANT, "thread-1")) == 1
    assert [each.damage for each in await compacting.service.verify_thread(TENANT, "thread-1")] == [None]
    # A reply is asked for again only after an error in the transaction that keeps it: each point of it came once.
    assert max(Counter(prompt.key for prompt in model.prompts).values()) <= 1 + KEEPING_POINT_COUNT
    await compacting.say()
    await compacting.service.views.restore(TENANT, done.compaction_id)
    assert "<compacted" not in await compacting.text()


async def test_no_table_of_compaction_has_what_was_erased(compacting: Compacting) -> None:
    """Of a committed compaction, and of one that broke off after a reply was kept: no row of any table (S36, S38)."""
    await compacting.thread(turns=3)
    seq = await compacting.say(text="Never write to CANARY-77120 at canary@secret.example, or pay it $77,120.") - 2
    for _ in range(3):
        await compacting.say()
    await compacting.compact(summariser=Recorder())
    for _ in range(3):
        await compacting.say()
    broken, _ = await compacting.service.compactions.begin(
        TENANT, "thread-1", compacting.order(policy=msgspec.structs.replace(POLICY, chunk_tokens=300))
    )

    class Failing(Recorder):
        async def summarise(self, prompt: SummaryPrompt) -> SummaryReply:
            if self.prompts:
                raise DiskGoneError
            return await super().summarise(prompt)

    with pytest.raises(DiskGoneError):
        await compacting.service.compactions.perform(broken.compaction_id, holder="me", summariser=Failing())
    stored = await rows_of_compaction(compacting)
    assert "canary" in stored["compaction_row"].casefold()

    await compacting.service.erase(TENANT, "thread-1", [seq])

    left = {name: rows for name, rows in (await rows_of_compaction(compacting)).items() if "canary" in rows.casefold()}
    assert left == {}
    done = await compacting.service.compactions.perform(broken.compaction_id, holder="me", summariser=Recorder())
    assert done.status is CompactionStatus.COMMITTED
    assert "canary" not in (await compacting.text()).casefold()
    assert {check.damage for check in await compacting.service.verify_thread(TENANT, "thread-1")} == {None}


async def rows_of_compaction(compacting: Compacting) -> dict[str, str]:
    """All that each table of compaction holds, as text."""
    tables = [table for name, table in METADATA.tables.items() if "compaction" in name]

    def read(connection: Connection) -> dict[str, str]:
        return {table.name: repr(connection.execute(select(table)).all()) for table in tables}

    return await compacting.store.read(read)
