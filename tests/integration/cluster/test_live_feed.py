"""The feed through Redis while Redis misbehaves: hints get lost, never doubled, never a stranger's, never for ever."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass

import pytest

from tests.support.servers import PrivateRedis
from tests.support.waiting import wait_until
from threadmark.workers.feeds.feed import FLASH_COUNT_MAX, Flash
from threadmark.workers.fleet.notifier import LocalNotifier
from threadmark.workers.redis.redis_events import RunNotice, encode_notices
from threadmark.workers.redis.redis_feed import RedisFeed
from threadmark.workers.redis.redis_link import RUN_NOTICES, Outage, flashes_key
from threadmark.workers.redis.redis_publisher import FLASH_BYTES_MAX, STREAM_TTL_S
from threadmark.workers.redis.redis_resources import RedisSide, open_side

TENANT, RUN = "tenant-1", "01a22812-7193-7bcd-8304-da4549f015ef"
KEY = flashes_key(TENANT, RUN)


@dataclass(frozen=True)
class Sides:
    """A process with turns, a process with readers, and the Redis between them."""

    turn: RedisSide
    reader: RedisSide
    redis: PrivateRedis

    async def seen(self, feed: RedisFeed, after_seq: int, count: int) -> None:
        """Return when the feed has so many flashes of the gap."""
        await wait_until(lambda: len(known(feed, after_seq)) == count, description=f"{count} flashes")


@pytest.fixture
async def sides(private_redis: PrivateRedis) -> AsyncIterator[Sides]:
    """Both, connected."""
    async with AsyncExitStack() as stack:
        turn = await stack.enter_async_context(open_side(private_redis.url))
        reader = await stack.enter_async_context(open_side(private_redis.url))
        turn.connect(None, LocalNotifier(None), with_readers=False)
        reader.connect(None, LocalNotifier(None), with_readers=True)
        yield Sides(turn, reader, private_redis)


def word(after_seq: int, ordinal: int, data: object = "word ") -> Flash:
    """A piece of a reply."""
    return Flash(after_seq=after_seq, ordinal=ordinal, kind="delta", data=data, message_id="msg-1")


def known(feed: RedisFeed, after_seq: int) -> list[Flash]:
    """What the process of the readers has of a gap."""
    flashes = feed.known((TENANT, RUN))
    return [] if flashes is None else flashes.after(after_seq, 0)


def feed_outage(side: RedisSide) -> Outage:
    """The log lines about the feed."""
    return next(each for each in side.outages if each.part == "feed")


async def test_a_stream_is_bounded_and_expires(sides: Sides) -> None:
    """A turn that never ends, and one whose worker dies, leave a little, and for a while."""
    for ordinal in range(1, FLASH_COUNT_MAX + 2_000):
        sides.turn.feed.flash(TENANT, RUN, word(4, ordinal))
    last_id = f"4-{FLASH_COUNT_MAX + 1_999}"
    with sides.redis.client() as client:
        await wait_until(lambda: client.xrange(KEY, min=last_id), description="the last flash")

        assert client.xlen(KEY) <= FLASH_COUNT_MAX + 200
        assert 0 < client.ttl(KEY) <= STREAM_TTL_S


async def test_the_end_of_a_turn_removes_its_stream(sides: Sides) -> None:
    """Nothing is left of a run that is over."""
    sides.turn.feed.flash(TENANT, RUN, word(4, 1))
    with sides.redis.client() as client:
        await wait_until(lambda: client.exists(KEY), description="the stream")
        sides.turn.feed.ended(TENANT, RUN)
        await wait_until(lambda: not client.exists(KEY), description="the end of the stream")


async def test_a_huge_flash_is_left_to_the_journal(sides: Sides) -> None:
    """It makes a hole, and what follows waits for the entry that ends the gap."""
    with sides.reader.feed.watch(TENANT, RUN):
        for flash in (word(4, 1), word(4, 2, "x" * FLASH_BYTES_MAX), word(4, 3), word(5, 1)):
            sides.turn.feed.flash(TENANT, RUN, flash)
        await sides.seen(sides.reader.feed, 5, 1)

        assert known(sides.reader.feed, 4) == [word(4, 1)]


async def test_one_that_was_overtaken_is_refused_by_redis(sides: Sides) -> None:
    """A worker that was declared dead and woke up speaks into a gap that has ended."""
    with sides.reader.feed.watch(TENANT, RUN):
        sides.turn.feed.flash(TENANT, RUN, word(7, 1))
        await sides.seen(sides.reader.feed, 7, 1)
        sides.turn.feed.flash(TENANT, RUN, word(4, 1, "from the grave"))
        sides.turn.feed.flash(TENANT, RUN, word(7, 2))
        await sides.seen(sides.reader.feed, 7, 2)

        assert known(sides.reader.feed, 4) == []
    assert feed_outage(sides.turn).failure_count == 0


async def test_what_others_write_is_passed_over(sides: Sides) -> None:
    """Forged wake-ups, unknown runs and malformed entries are ignored: readers receive the real events."""
    with sides.redis.client() as client, sides.reader.feed.watch(TENANT, RUN):
        await wait_until(lambda: client.pubsub_numsub(RUN_NOTICES)[0][1] == 1, description="the ear")
        for message in (b"", b"[[[[", b'{"run_id": 1}', encode_notices([RunNotice("", RUN, flashed=True)])):
            client.publish(RUN_NOTICES, message)
        client.xadd(KEY, {"flash": "no flash"}, id="4-1")
        client.xadd(KEY, {"other": "field"}, id="4-2")
        client.xadd(KEY, {"flash": '{"kind": "delta", "data": "true"}'}, id="5-1")
        client.publish(RUN_NOTICES, encode_notices([RunNotice(TENANT, RUN, flashed=True)]))
        await sides.seen(sides.reader.feed, 5, 1)

        assert known(sides.reader.feed, 4) == []


async def test_a_key_of_another_kind_costs_its_own_readers_alone(sides: Sides) -> None:
    """Somebody puts a text where a stream should be: the other runs are read on."""
    other = "01a22812-7193-7bcd-8304-da4549f015f0"
    with sides.redis.client() as client:
        client.set(flashes_key(TENANT, other), "no stream")
    with sides.reader.feed.watch(TENANT, other), sides.reader.feed.watch(TENANT, RUN):
        sides.turn.feed.flash(TENANT, RUN, word(4, 1))
        await sides.seen(sides.reader.feed, 4, 1)
    await wait_until(lambda: feed_outage(sides.reader).failure_count > 0, description="the failure to be counted")


async def test_a_reader_goes_on_after_an_outage(sides: Sides) -> None:
    """Redis comes back empty: the gap that it broke stays broken, and the next one is live again."""
    with sides.reader.feed.watch(TENANT, RUN):
        sides.turn.feed.flash(TENANT, RUN, word(4, 1))
        await sides.seen(sides.reader.feed, 4, 1)
        sides.redis.kill()
        sides.turn.feed.flash(TENANT, RUN, word(4, 2))
        await wait_until(lambda: feed_outage(sides.turn).is_on, description="the outage")
        sides.redis.start()
        sides.turn.feed.flash(TENANT, RUN, word(4, 3))
        sides.turn.feed.advanced(TENANT, RUN, 5)
        sides.turn.feed.flash(TENANT, RUN, word(5, 1))
        await sides.seen(sides.reader.feed, 5, 1)

        assert len(known(sides.reader.feed, 4)) <= 1


async def test_turns_do_not_wait_for_a_redis_that_is_away(private_redis: PrivateRedis) -> None:
    """What waits to be published is bounded, and given up whole when it is too much."""
    private_redis.kill()
    async with open_side(private_redis.url) as side:
        side.connect(None, LocalNotifier(None), with_readers=False)
        for ordinal in range(1, 50_000):
            side.feed.flash(TENANT, RUN, word(4, ordinal))

        assert feed_outage(side).failure_count >= 1
        with side.feed.watch(TENANT, RUN) as watch:
            side.feed.flash(TENANT, RUN, word(5, 1))
            assert watch.flashes(5, 0) == [word(5, 1)], "readers in the same process need no Redis"
