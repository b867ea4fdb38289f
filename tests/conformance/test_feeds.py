"""What every feed does: the one inside a process, and the one through Redis, whose turns and readers are strangers."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass

import pytest

from tests.support.servers import PrivateRedis
from tests.support.waiting import wait_until
from threadmark.workers.feeds.feed import FLASH_COUNT_MAX, Feed, Flash, Watch
from threadmark.workers.feeds.local_feed import LocalFeed
from threadmark.workers.redis.redis_resources import open_side

TENANT, RUN = "tenant-1", "01a22812-7193-7bcd-8304-da4549f015ef"
POLL_S = 0.05


@dataclass(frozen=True)
class Ends:
    """Where turns speak and where readers listen: one feed, or two of different processes."""

    turn: Feed
    reader: LocalFeed


@pytest.fixture(params=["in one process", "through Redis"])
async def ends(request: pytest.FixtureRequest) -> AsyncIterator[Ends]:
    """Both ends of each kind of feed."""
    if request.param == "in one process":
        feed = LocalFeed()
        yield Ends(feed, feed)
        return
    redis: PrivateRedis = request.getfixturevalue("private_redis")
    async with AsyncExitStack() as stack:
        turn = await stack.enter_async_context(open_side(redis.url))
        reader = await stack.enter_async_context(open_side(redis.url))
        turn.connect(None, _Silent(), with_readers=False)
        reader.connect(None, _Silent(), with_readers=True)
        yield Ends(turn.feed, reader.feed)


class _Silent:
    """No worker to wake."""

    def notify(self, run_id: str, attempt: int) -> None: ...

    def notify_task(self, task_id: str, attempt: int) -> None: ...

    def notice(self, run_ids: object) -> None: ...


def word(after_seq: int, ordinal: int) -> Flash:
    """A piece of a reply."""
    return Flash(after_seq=after_seq, ordinal=ordinal, kind="delta", data=f"word {ordinal} ", message_id="msg-1")


async def seen(watch: Watch, after_seq: int, ordinal: int, count: int) -> list[Flash]:
    """The next `count` flashes, as a reader takes them."""

    async def enough() -> bool:
        await watch.changed(POLL_S)
        return len(watch.flashes(after_seq, ordinal)) >= count

    await wait_until(enough, description=f"{count} flashes")
    return watch.flashes(after_seq, ordinal)


async def test_a_reader_sees_what_a_turn_flashes_in_order(ends: Ends) -> None:
    """Text, message id and custom data arrive unchanged."""
    event = Flash(after_seq=4, ordinal=3, kind="custom", data={"step": [1, None, "ü\x00"]})
    with ends.reader.watch(TENANT, RUN) as watch:
        for each in (word(4, 1), word(4, 2), event):
            ends.turn.flash(TENANT, RUN, each)

        assert await seen(watch, 4, 0, 3) == [word(4, 1), word(4, 2), event]
        assert watch.flashes(4, 2) == [event]
        assert watch.flashes(4, 3) == []


async def test_a_reader_that_comes_late_sees_the_gap_from_its_beginning(ends: Ends) -> None:
    """What was flashed since the last entry is there for a reader that joins before the next."""
    with ends.reader.watch(TENANT, RUN):
        ends.turn.flash(TENANT, RUN, word(4, 1))
        ends.turn.flash(TENANT, RUN, word(4, 2))
        with ends.reader.watch(TENANT, RUN) as late:
            assert await seen(late, 4, 0, 2) == [word(4, 1), word(4, 2)]


async def test_a_flash_behind_a_hole_is_held_back(ends: Ends) -> None:
    """Shown, it would make its reader take the missing one as seen; the entry that ends the gap has them all."""
    with ends.reader.watch(TENANT, RUN) as watch:
        for each in (word(4, 1), word(4, 3), word(4, 4)):
            ends.turn.flash(TENANT, RUN, each)
        ends.turn.flash(TENANT, RUN, word(5, 1))
        await seen(watch, 5, 0, 1)

        assert watch.flashes(4, 0) == [word(4, 1)]
        assert watch.flashes(4, 1) == []


async def test_a_repeated_flash_is_seen_once(ends: Ends) -> None:
    """Its place is taken: the first one stands."""
    with ends.reader.watch(TENANT, RUN) as watch:
        ends.turn.flash(TENANT, RUN, word(4, 1))
        ends.turn.flash(TENANT, RUN, Flash(after_seq=4, ordinal=1, kind="delta", data="another"))
        ends.turn.flash(TENANT, RUN, word(4, 2))

        assert await seen(watch, 4, 0, 2) == [word(4, 1), word(4, 2)]


async def test_an_entry_wakes_the_reader_and_ends_its_gap(ends: Ends) -> None:
    """From there the journal tells."""
    with ends.reader.watch(TENANT, RUN) as watch:
        ends.turn.flash(TENANT, RUN, word(4, 1))
        await seen(watch, 4, 0, 1)
        ends.turn.advanced(TENANT, RUN, 5)
        ends.turn.flash(TENANT, RUN, word(5, 1))

        assert await seen(watch, 5, 0, 1) == [word(5, 1)]
        assert watch.flashes(4, 0) == []


async def test_the_end_of_a_turn_leaves_nothing(ends: Ends) -> None:
    """A run that is over has no flashes, here or anywhere."""
    with ends.reader.watch(TENANT, RUN) as watch:
        ends.turn.flash(TENANT, RUN, word(4, 1))
        await seen(watch, 4, 0, 1)
        ends.turn.ended(TENANT, RUN)

        await wait_until(lambda: not watch.flashes(4, 0), description="the end of the turn")


async def test_another_tenant_receives_nothing(ends: Ends) -> None:
    """A run is watched by its tenant; the same id under another one is another run."""
    with ends.reader.watch("tenant-2", RUN) as stranger, ends.reader.watch(TENANT, RUN) as own:
        ends.turn.flash(TENANT, RUN, word(4, 1))
        await seen(own, 4, 0, 1)

        assert stranger.flashes(4, 0) == []


@pytest.mark.parametrize(("tenant_id", "run_id"), [("", RUN), (TENANT, "")])
async def test_nobody_watches_without_a_tenant(ends: Ends, tenant_id: str, run_id: str) -> None:
    """A missing tenant is refused and never means every tenant."""
    with pytest.raises(ValueError, match="tenant"):
        ends.reader.watch(tenant_id, run_id)


async def test_a_reader_that_leaves_leaves_nothing_behind(ends: Ends) -> None:
    """A reader's memory goes with the reader, while the turn goes on."""
    with ends.reader.watch(TENANT, RUN) as watch:
        ends.turn.flash(TENANT, RUN, word(4, 1))
        await seen(watch, 4, 0, 1)
        assert ends.reader.watch_count == 1
    ends.turn.ended(TENANT, RUN)

    assert ends.reader.watch_count == 0
    assert ends.reader.run_count == 0


async def test_flashes_are_bounded(ends: Ends) -> None:
    """A reply of endless words does not fill the memory; a reader that keeps up sees all of them."""
    count, block = FLASH_COUNT_MAX + 1_000, 500
    with ends.reader.watch(TENANT, RUN) as watch:
        taken = 0
        for first in range(1, count, block):
            for ordinal in range(first, first + block):
                ends.turn.flash(TENANT, RUN, word(4, ordinal))
            taken += len(await seen(watch, 4, taken, first + block - 1 - taken))

        assert taken >= count - 1
        known = ends.reader.known((TENANT, RUN))
        assert known is not None
        assert len(known) <= FLASH_COUNT_MAX
