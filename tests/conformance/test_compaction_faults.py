"""Errors at every statement and commit of a compaction: the view is the old one or the new one, never none."""

from collections import Counter
from typing import Any

from sqlalchemy import Engine, event

from compaction import CompactionStatus, Order
from tests.bad_summarisers import Recorder
from tests.conformance.compacting import POLICY, Compacting, compacting, compaction_engine
from tests.factories import TENANT

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
