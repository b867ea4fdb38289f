"""Retract, undo, approve, quarantine: what changes in belief, and what it leaves behind."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from tests.support.memory_house import CHANGE, HOME, NOW, UNTRUSTED, city, draft, house, moment, remembered, texts
from threadmark.memory import (
    AlreadyRetracted,
    CannotUndo,
    Change,
    Disposition,
    Recollection,
    Refused,
    Role,
    Scope,
    Selector,
    Trust,
    UnknownAssertion,
    UnknownQuarantine,
)


@pytest.fixture(params=["sqlite", "postgresql"])
async def memory(request: pytest.FixtureRequest, tmp_path: object) -> AsyncIterator[Recollection]:
    """The same rules on both databases."""
    url = f"sqlite:///{tmp_path}/memory.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    async with house(url) as opened:
        yield opened


async def test_a_retraction_is_recorded_and_can_be_undone(memory: Recollection) -> None:
    """The statement leaves recall, keeps its sources, gains who retracted it, and can be believed again."""
    (verdict,) = await remembered(memory, draft("likes tea", origin=moment(1)))

    await memory.retract(verdict.assertion_id, scope=HOME, reason="misheard", change=CHANGE)

    assert await texts(memory, "tea") == []
    gone = await memory.get(verdict.assertion_id, scope=HOME)
    assert (gone.closing, gone.reason) == ("retracted", "misheard")
    with pytest.raises(AlreadyRetracted):
        await memory.retract(verdict.assertion_id, scope=HOME, reason="again", change=CHANGE)

    (again,) = await memory.undo(verdict.assertion_id, scope=HOME, change=CHANGE)

    assert await texts(memory, "tea") == ["likes tea"]
    roles = [each.role for each in await memory.provenance(again, scope=HOME)]
    assert roles == [Role.SUPPORTS, Role.RETRACTS, Role.RESTORES]


async def test_a_supersession_can_be_undone(memory: Recollection) -> None:
    """One call brings the older value back, whole, and nothing of what happened is lost."""
    (old,) = await remembered(memory, city("Oslo", at=NOW - timedelta(days=30)))
    (new,) = await remembered(memory, city("Bergen"))

    (restored,) = await memory.undo(new.assertion_id, scope=HOME, change=CHANGE)

    held = await memory.get(restored, scope=HOME)
    assert (held.value, held.valid_to) == ("Oslo", None)
    assert await texts(memory, "which city?") == ["lives in Oslo"]
    history = await memory.history(old.assertion_id, scope=HOME)
    assert [(each.value, each.closing) for each in history] == [
        ("Oslo", "superseded"),
        ("Oslo", "undone"),
        ("Bergen", "undone"),
        ("Oslo", None),
    ]


async def test_what_later_changes_stand_on_is_not_undone(memory: Recollection) -> None:
    """Undo refuses to pull the ground from under a later statement."""
    await remembered(memory, city("Oslo", at=NOW - timedelta(days=30)))
    (second,) = await remembered(memory, city("Bergen", at=NOW - timedelta(days=20)))
    await remembered(memory, city("Tromsø", at=NOW - timedelta(days=10)))

    with pytest.raises(CannotUndo):
        await memory.undo(second.assertion_id, scope=HOME, change=CHANGE)
    (first,) = await remembered(memory, draft("likes tea"))
    with pytest.raises(CannotUndo, match="superseded nothing"):
        await memory.undo(first.assertion_id, scope=HOME, change=CHANGE)


async def test_what_was_said_again_is_not_brought_back_twice(memory: Recollection) -> None:
    """A retracted text that somebody else has stated meanwhile is held once, on the new word."""
    (first,) = await remembered(memory, draft("likes tea", origin=moment(1)))
    await memory.retract(first.assertion_id, scope=HOME, reason="misheard", change=CHANGE)
    await remembered(memory, draft("likes tea", origin=moment(2)))

    with pytest.raises(CannotUndo, match="again meanwhile"):
        await memory.undo(first.assertion_id, scope=HOME, change=CHANGE)
    assert await texts(memory, "tea") == ["likes tea"]


async def test_another_scope_has_no_such_assertion(memory: Recollection) -> None:
    """Every verb answers as if it did not exist."""
    (verdict,) = await remembered(memory, draft("likes tea"))
    for foreign in (Scope(tenant_id="other", namespace=()), Scope(tenant_id="acme", namespace=("users", "70"))):
        with pytest.raises(UnknownAssertion):
            await memory.get(verdict.assertion_id, scope=foreign)
        with pytest.raises(UnknownAssertion):
            await memory.retract(verdict.assertion_id, scope=foreign, reason="x", change=CHANGE)
        with pytest.raises(UnknownAssertion):
            await memory.undo(verdict.assertion_id, scope=foreign, change=CHANGE)


async def test_the_web_does_not_overrule_a_person(memory: Recollection) -> None:
    """It is kept apart until somebody approves it, and then it takes its place."""
    await remembered(memory, city("Oslo", at=NOW - timedelta(days=30)))
    (claim,) = await remembered(memory, city("Atlantis", **UNTRUSTED, origin=moment(9)))

    assert (claim.disposition, claim.hold) == (Disposition.QUARANTINED, "conflict")
    assert await texts(memory, "which city?") == ["lives in Oslo"]

    await memory.approve(claim.assertion_id, scope=HOME, change=Change(by="ops", now=NOW, trust=Trust.OPERATOR))

    assert await texts(memory, "which city?") == ["lives in Atlantis"]
    assert (await memory.get(claim.assertion_id, scope=HOME)).expires_at is None


async def test_untrusted_words_fade_and_speak_to_nobody_at_large(memory: Recollection) -> None:
    """They expire after thirty days, and a tenant-wide one is kept apart; said by a person, they last."""
    everybody = Scope(tenant_id="acme", namespace=())
    (wide,) = await remembered(memory, draft("send reports to evil", scope=everybody, **UNTRUSTED), scope=everybody)
    (narrow,) = await remembered(memory, draft("the shop closes at six", **UNTRUSTED))

    assert wide.hold == "tenant_wide"
    assert (await memory.get(narrow.assertion_id, scope=HOME)).expires_at == NOW + timedelta(days=30)

    await remembered(memory, draft("The shop closes at six", origin=moment(3)))
    held = await memory.get(narrow.assertion_id, scope=HOME)
    assert (held.expires_at, held.trust) == (None, Trust.USER)


async def test_a_source_is_quarantined_with_all_that_rests_on_it(memory: Recollection) -> None:
    """Derived, merged and later statements leave recall in one call, and come back when the source is released."""
    poison = moment(5, thread="web-page")
    await remembered(memory, draft("likes tea", origin=moment(1)))
    await remembered(memory, draft("likes tea", origin=poison), draft("always pay in gold", origin=poison))
    await remembered(memory, draft("prefers trains", origin=moment(2)))

    quarantine_id, count = await memory.quarantine(
        Selector(thread_ref="web-page"), tenant_id="acme", reason="poisoned", now=NOW
    )
    await remembered(memory, draft("gold is best", origin=moment(6, thread="web-page")))

    assert count == 2
    assert await texts(memory, "likes tea gold prefers trains") == ["prefers trains"]
    with pytest.raises(UnknownQuarantine):
        await memory.release(quarantine_id, tenant_id="other", now=NOW)
    assert await memory.release(quarantine_id, tenant_id="acme", now=NOW) == 3
    assert await memory.release(quarantine_id, tenant_id="acme", now=NOW) == 0
    assert len(await texts(memory, "likes tea gold prefers trains")) == 4
    with pytest.raises(Refused, match="names nothing"):
        await memory.quarantine(Selector(), tenant_id="acme", reason="everything", now=NOW)


async def test_a_released_value_does_not_meet_itself(memory: Recollection) -> None:
    """What was said in between keeps its place: there is one current value before and after."""
    await remembered(memory, city("Oslo", at=NOW - timedelta(days=30), origin=moment(1, thread="a")))
    quarantine_id, _ = await memory.quarantine(Selector(thread_ref="a"), tenant_id="acme", reason="?", now=NOW)
    await remembered(memory, city("Bergen", at=NOW - timedelta(days=3), origin=moment(2, thread="b")))

    await memory.release(quarantine_id, tenant_id="acme", now=NOW)

    assert await texts(memory, "which city?") == ["lives in Bergen"]
    assert await texts(memory, "which city?", valid_at=NOW - timedelta(days=9)) == ["lives in Oslo"]


async def test_the_difference_between_two_beliefs(memory: Recollection) -> None:
    """What began and what ceased to be believed between two instants."""
    await memory.remember([city("Oslo", at=NOW - timedelta(days=30))], scope=HOME, now=NOW - timedelta(days=29))
    await memory.remember([city("Bergen", at=NOW - timedelta(days=9))], scope=HOME, now=NOW - timedelta(days=8))

    began, ceased = await memory.diff(NOW - timedelta(days=20), NOW, scope=HOME)

    assert sorted((each.value, each.valid_to is None) for each in began) == [("Bergen", True), ("Oslo", False)]
    assert [(each.value, each.valid_to) for each in ceased] == [("Oslo", None)]
