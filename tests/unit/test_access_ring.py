"""The keys that a process knows: whom it lets in, how seldom it asks, and what it notes of their use."""

import asyncio
import gc
import logging
import weakref
from datetime import timedelta
from typing import Any

import pytest

from tests.support.fake_key_store import NOW, KeyShelf
from threadmark.app.access import Caller, Scope, Token
from threadmark.app.access.key_store import TOUCH_S
from threadmark.app.access.ring import KNOWN_COUNT_MAX, RECHECK_S


async def test_a_right_key_is_its_caller_and_nothing_else_is() -> None:
    """A wrong secret, an unknown id, a revoked key and an expired one get the same answer."""
    shelf = KeyShelf()
    good = shelf.add(Scope.READ, Scope.RUN)
    lasting = shelf.add(Scope.READ, expires_at=NOW + timedelta(seconds=1))
    bad = [
        Token(good.key_id, "0" * 64),
        Token.fresh(),
        shelf.add(Scope.READ, revoked_at=NOW),
        shelf.add(Scope.READ, expires_at=NOW),
    ]

    assert await shelf.ring.caller_of(good) == Caller("acme", good.key_id, frozenset({Scope.READ, Scope.RUN}))
    assert await shelf.ring.caller_of(lasting) is not None
    assert [await shelf.ring.caller_of(each) for each in bad] == [None] * 4


async def test_a_key_lives_until_it_is_revoked_or_expires() -> None:
    """What a long stream asks: of a key that is gone from the database too."""
    shelf = KeyShelf()
    tokens = [
        shelf.add(Scope.READ),
        shelf.add(Scope.READ, expires_at=NOW),
        shelf.add(Scope.READ, revoked_at=NOW),
        Token.fresh(),
    ]

    callers = [Caller("acme", token.key_id, frozenset()) for token in tokens]
    assert [await shelf.ring.is_live(caller) for caller in callers] == [True, False, False, False]


async def test_a_key_is_looked_up_once_in_its_time() -> None:
    """Until RECHECK_S have passed since the question was put: what changed while it was answered counts as later."""
    shelf = KeyShelf()
    token = shelf.add(Scope.READ)

    def take_half_the_time() -> None:
        shelf.now_s += RECHECK_S / 2

    shelf.in_read = take_half_the_time
    await shelf.ring.caller_of(token)
    shelf.in_read = lambda: None
    shelf.now_s += RECHECK_S / 2 - 0.25
    await shelf.ring.caller_of(token)
    assert shelf.asked == [token.key_id]
    shelf.now_s += 0.25
    await shelf.ring.caller_of(token)
    assert shelf.asked == [token.key_id] * 2


async def test_a_key_that_was_looked_up_is_known_until_it_is_forgotten_or_gone() -> None:
    """An unknown one is never known, however often somebody tries it."""
    shelf = KeyShelf()
    token, stranger = shelf.add(Scope.READ), Token.fresh()

    assert not shelf.ring.knows(token.key_id)
    for each in (token, stranger):
        await shelf.ring.caller_of(each)
    assert (shelf.ring.knows(token.key_id), shelf.ring.knows(stranger.key_id)) == (True, False)
    shelf.ring.forget(token.key_id)
    shelf.ring.forget(stranger.key_id)
    assert not shelf.ring.knows(token.key_id)

    await shelf.ring.caller_of(token)
    del shelf.keys[token.key_id]
    shelf.now_s += RECHECK_S
    assert await shelf.ring.caller_of(token) is None
    assert not shelf.ring.knows(token.key_id)


async def test_the_key_that_was_used_longest_ago_is_forgotten_first() -> None:
    """So many are known and no more; looking one up again, or using it, moves it to the end."""
    shelf = KeyShelf()
    used, looked_up, idle, *others = [shelf.add(Scope.READ) for _ in range(KNOWN_COUNT_MAX + 1)]
    callers = [Caller("acme", token.key_id, frozenset()) for token in (looked_up, used, idle, *others)]
    for caller in callers[:-1]:
        await shelf.ring.is_live(caller)
        if caller.key_id == used.key_id:
            shelf.now_s += RECHECK_S
    assert all(shelf.ring.knows(caller.key_id) for caller in callers[:-1])
    await shelf.ring.is_live(callers[0])  # looked up anew: its time had passed
    shelf.now_s -= RECHECK_S
    await shelf.ring.is_live(callers[1])  # known still
    shelf.now_s += RECHECK_S

    await shelf.ring.is_live(callers[-1])

    assert [caller.key_id for caller in callers if not shelf.ring.knows(caller.key_id)] == [idle.key_id]


async def test_a_use_is_noted_once_in_its_time() -> None:
    """By each key for itself; a wrong secret is no use of it, and a key dropped from the cache is noted anew."""
    shelf = KeyShelf()
    one, other = shelf.add(Scope.READ), shelf.add(Scope.READ)
    for token in (one, one, other, Token(one.key_id, "0" * 64)):
        await shelf.ring.caller_of(token)
    await shelf.ring.close()
    assert shelf.noted == [one.key_id, other.key_id]

    shelf.now_s += TOUCH_S - 0.5
    await shelf.ring.caller_of(one)
    await shelf.ring.close()
    assert len(shelf.noted) == 2
    shelf.now_s += 0.5
    await shelf.ring.caller_of(one)
    await shelf.ring.close()
    assert shelf.noted[2:] == [one.key_id]

    for _ in range(KNOWN_COUNT_MAX):
        await shelf.ring.is_live(Caller("acme", shelf.add(Scope.READ).key_id, frozenset()))
    await shelf.ring.caller_of(one)
    await shelf.ring.close()
    assert shelf.noted[2:] == [one.key_id] * 2


async def test_nobody_waits_for_the_note_but_the_end_of_the_process() -> None:
    """The caller gets its answer at once; closing waits until the note is written, and then it is let go."""
    shelf = KeyShelf()
    begun, may_write = asyncio.Event(), asyncio.Event()
    notes: list[weakref.ref[Any]] = []

    async def wait() -> None:
        notes.append(weakref.ref(asyncio.current_task()))
        begun.set()
        await may_write.wait()

    shelf.in_note = wait
    assert await shelf.ring.caller_of(shelf.add(Scope.READ)) is not None
    closing = asyncio.create_task(shelf.ring.close())
    await begun.wait()
    await asyncio.sleep(0)
    assert (closing.done(), shelf.noted) == (False, [])
    may_write.set()
    await closing
    assert len(shelf.noted) == 1
    del closing
    await asyncio.sleep(0)
    gc.collect()
    assert notes[0]() is None


async def test_a_note_that_fails_is_logged_and_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """Not the caller and not the end of the process; one that was cancelled, and one that succeeds, say nothing."""
    shelf = KeyShelf()
    broken: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: broken.append(context))

    async def fail() -> None:
        raise OSError("the disk is full")

    async def be_cancelled() -> None:
        raise asyncio.CancelledError

    with caplog.at_level(logging.WARNING, logger="threadmark.access"):
        for shelf.in_note in (fail, be_cancelled, None):
            assert await shelf.ring.caller_of(shelf.add(Scope.READ)) is not None
            await shelf.ring.close()
            await asyncio.sleep(0)

    assert [record.getMessage() for record in caplog.records] == ["the last use of a key was not noted"]
    assert [str(record.exc_info and record.exc_info[1]) for record in caplog.records] == ["the disk is full"]
    assert broken == []
