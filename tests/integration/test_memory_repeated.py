"""A statement said again: it lasts as long as its longest word, and keeps its sources."""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support.memory_house import CHANGE, HOME, NOW, UNTRUSTED, city, draft, house, moment, remembered, texts
from threadmark.memory import (
    CannotUndo,
    Cardinality,
    Change,
    Disposition,
    Draft,
    Forget,
    Recollection,
    Role,
    Selector,
    UnknownQuarantine,
)

SECOND = timedelta(seconds=1)
LATER = NOW + timedelta(minutes=1)


@pytest.fixture(params=["sqlite", "postgresql"])
async def memory(request: pytest.FixtureRequest, tmp_path: object) -> AsyncIterator[Recollection]:
    """The same rules on both databases."""
    url = f"sqlite:///{tmp_path}/memory.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    async with house(url) as opened:
        yield opened


def tea(*, number: int, expires_at: datetime | None = None) -> Draft:
    """A text with no attribute."""
    return draft("likes tea", origin=moment(number), expires_at=expires_at)


def home(*, number: int, expires_at: datetime | None = None) -> Draft:
    """One value of a single-valued attribute."""
    return city("Oslo", origin=moment(number), expires_at=expires_at)


def guest(*, number: int, expires_at: datetime | None = None) -> Draft:
    """One of many values."""
    who: dict[str, Any] = {"subject": "user", "attribute": "guest", "value": "Ada", "cardinality": Cardinality.MANY}
    return draft("Ada visits", origin=moment(number), expires_at=expires_at, **who)


KINDS = pytest.mark.parametrize("said", [tea, home, guest])
WORDS = "likes tea lives in Oslo Ada visits"


@KINDS
async def test_a_repetition_extends_what_will_expire(memory: Recollection, said: type) -> None:
    """Said again without an end, it is a duplicate that stays; a shorter repetition shortens nothing."""
    (first,) = await remembered(memory, said(number=1, expires_at=NOW + SECOND))
    (again,) = await remembered(memory, said(number=2))
    await remembered(memory, said(number=3, expires_at=NOW + SECOND))

    assert again.disposition is Disposition.DUPLICATE
    held = await memory.get(first.assertion_id, scope=HOME)
    assert held.expires_at is None
    assert await texts(memory, WORDS, now=LATER) == [held.text]


@KINDS
async def test_the_same_moment_repeated_extends_it_too(memory: Recollection, said: type) -> None:
    """A moment that is repeated without an end adds no source, and the statement stays."""
    await remembered(memory, said(number=1, expires_at=NOW + SECOND))
    (again,) = await remembered(memory, said(number=1))

    assert again.disposition is Disposition.DUPLICATE
    assert len(await texts(memory, WORDS, now=LATER)) == 1
    assert len(await memory.provenance(again.assertion_id, scope=HOME)) == 1


@KINDS
@pytest.mark.parametrize("number", [1, 2], ids=["same moment", "another moment"])
async def test_an_expired_statement_never_absorbs(memory: Recollection, said: type, number: int) -> None:
    """Said again after it expired it is new, is recalled, and has the sources of both; the sweep takes none of them."""
    (first,) = await remembered(memory, said(number=1, expires_at=NOW + SECOND))

    (again,) = await remembered(memory, said(number=number), now=LATER)
    sweep = await memory.erase(Forget(expired_by=LATER), tenant_id="acme", now=LATER)

    assert (again.disposition, sweep.counts["assertions"]) == (Disposition.ADDED, 0)
    assert again.assertion_id != first.assertion_id
    assert len(await texts(memory, WORDS, now=LATER)) == 1
    sources = await memory.provenance(again.assertion_id, scope=HOME)
    assert [each.origin.seq for each in sources] == sorted({1, number})


@KINDS
async def test_what_is_said_after_the_sweep_is_new(memory: Recollection, said: type) -> None:
    """The sweep takes an expired statement with its sources; said again, it has its own."""
    await remembered(memory, said(number=1, expires_at=NOW + SECOND))
    await memory.erase(Forget(expired_by=LATER), tenant_id="acme", now=LATER)

    (again,) = await remembered(memory, said(number=1), now=LATER)

    assert again.disposition is Disposition.ADDED
    assert len(await memory.provenance(again.assertion_id, scope=HOME)) == 1


async def test_an_expired_value_is_no_value_to_supersede(memory: Recollection) -> None:
    """Another value that comes after it supersedes nothing, and there is nothing to undo."""
    await remembered(memory, home(number=1, expires_at=NOW + SECOND))

    (other,) = await remembered(memory, city("Bergen", origin=moment(2)), now=LATER)

    assert (other.disposition, other.superseded) == (Disposition.ADDED, ())
    with pytest.raises(CannotUndo, match="superseded nothing"):
        await memory.undo(other.assertion_id, scope=HOME, change=CHANGE)


async def test_a_released_copy_keeps_its_sources_when_it_expires_first(memory: Recollection) -> None:
    """Held apart and said by somebody else meanwhile, the two become one, with the sources of both."""
    quarantine_id, _ = await memory.quarantine(Selector(thread_ref="web"), tenant_id="acme", reason="?", now=NOW)
    await remembered(memory, draft("likes tea", origin=moment(1, thread="web"), expires_at=LATER, **UNTRUSTED))
    (kept,) = await remembered(memory, draft("likes tea", origin=moment(2)))

    await memory.release(quarantine_id, tenant_id="acme", now=NOW)
    sweep = await memory.erase(Forget(expired_by=LATER + SECOND), tenant_id="acme", now=LATER + SECOND)

    assert sweep.counts["evidence"] == 0
    assert await texts(memory, "likes tea", now=LATER + SECOND) == ["likes tea"]
    sources = await memory.provenance(kept.assertion_id, scope=HOME)
    assert {each.origin.thread_ref for each in sources} == {"web", "thread-1"}


@pytest.mark.parametrize("fields", [{}, {"subject": "user", "attribute": "guest", "cardinality": Cardinality.MANY}])
async def test_an_earlier_observation_widens_the_validity(memory: Recollection, fields: dict[str, Any]) -> None:
    """Observed in 2020 and then, of 2018: it was true in 2019. What was believed before is in the history."""
    of = NOW.replace(year=2020)
    (first,) = await remembered(memory, draft("owns a boat", at=of, origin=moment(1), **fields))
    (earlier,) = await remembered(memory, draft("owns a boat", at=NOW.replace(year=2018), origin=moment(2), **fields))
    (between,) = await remembered(memory, draft("owns a boat", at=NOW.replace(year=2021), origin=moment(3), **fields))

    assert await texts(memory, "boat", valid_at=NOW.replace(year=2019)) == ["owns a boat"]
    assert await texts(memory, "boat", valid_at=NOW.replace(year=2017)) == []
    assert {earlier.disposition, between.disposition} == {Disposition.DUPLICATE}
    history = await memory.history(first.assertion_id, scope=HOME)
    assert sorted(each.valid_from.year for each in history) == [2018, 2020]
    assert len(await memory.provenance(between.assertion_id, scope=HOME)) == 3


async def test_two_observations_in_one_call_are_one_statement(memory: Recollection) -> None:
    """The earlier one is where it begins, in whichever order they come."""
    years = (2020, 2018, 2019)
    drafts = [draft("owns a boat", at=NOW.replace(year=year), origin=moment(year)) for year in years]

    verdicts = await remembered(memory, *drafts)

    assert len({each.assertion_id for each in verdicts}) == 1
    assert (await memory.get(verdicts[0].assertion_id, scope=HOME)).valid_from.year == 2018


async def test_undo_after_a_retraction_of_a_superseded_statement(memory: Recollection) -> None:
    """The superseded version names its statement: its retraction is what is undone. Then there is none left to undo."""
    (old,) = await remembered(memory, city("Oslo", at=NOW - timedelta(days=30)))
    await remembered(memory, city("Bergen", at=NOW - timedelta(days=3)))
    await memory.retract(old.assertion_id, scope=HOME, reason="misheard", change=CHANGE)
    before = NOW - timedelta(days=9)
    assert await texts(memory, "which city?", valid_at=before) == []

    (again,) = await memory.undo(old.assertion_id, scope=HOME, change=CHANGE)

    assert await texts(memory, "which city?", valid_at=before) == ["lives in Oslo"]
    assert await texts(memory, "which city?") == ["lives in Bergen"]
    assert Role.RESTORES in [each.role for each in await memory.provenance(again, scope=HOME)]
    with pytest.raises(CannotUndo, match="superseded by"):
        await memory.undo(old.assertion_id, scope=HOME, change=CHANGE)


async def test_undo_of_a_supersession_whose_remainder_was_retracted_says_so(memory: Recollection) -> None:
    """The reason names the retraction, and after that is undone the supersession can be."""
    (old,) = await remembered(memory, city("Oslo", at=NOW - timedelta(days=30)))
    (new,) = await remembered(memory, city("Bergen", at=NOW - timedelta(days=3)))
    await memory.retract(old.assertion_id, scope=HOME, reason="misheard", change=CHANGE)

    with pytest.raises(CannotUndo, match="was retracted, which has to be undone first"):
        await memory.undo(new.assertion_id, scope=HOME, change=CHANGE)


async def test_an_unknown_quarantine_is_not_found(memory: Recollection) -> None:
    """It is distinguished from one that has ended already."""
    with pytest.raises(UnknownQuarantine):
        await memory.release("6f1c2a52-0000-4000-8000-000000000000", tenant_id="acme", now=NOW)


async def test_an_expired_value_limits_no_earlier_one(memory: Recollection) -> None:
    """A value that begins before one that has expired lasts beyond it: there is no change to come."""
    await remembered(memory, city("Bergen", at=NOW - timedelta(days=10), expires_at=NOW + SECOND))

    (oslo,) = await remembered(memory, city("Oslo", at=NOW - timedelta(days=20)), now=LATER)

    assert (await memory.get(oslo.assertion_id, scope=HOME)).valid_to is None
    assert await texts(memory, "which city?", now=LATER) == ["lives in Oslo"]


async def test_a_moment_repeated_between_two_others_extends_too(memory: Recollection) -> None:
    """In one call: what was inserted for the repetition is extended in the database as well."""
    first = tea(number=1, expires_at=NOW + SECOND)

    await remembered(memory, first, first, tea(number=2))

    assert await texts(memory, "tea", now=LATER) == ["likes tea"]


async def test_an_approved_word_outlasts_the_copy_that_it_joins(memory: Recollection) -> None:
    """What was held apart and is approved lasts, though somebody else said the same for a while."""
    await memory.quarantine(Selector(thread_ref="web"), tenant_id="acme", reason="?", now=NOW)
    (apart,) = await remembered(memory, draft("likes tea", origin=moment(1, thread="web"), **UNTRUSTED))
    await remembered(memory, tea(number=2, expires_at=NOW + SECOND))

    await memory.approve(apart.assertion_id, scope=HOME, change=CHANGE)

    assert await texts(memory, "tea", now=LATER) == ["likes tea"]


async def test_what_has_expired_is_not_brought_back(memory: Recollection) -> None:
    """Undone, it would be believed and answer nothing: the reason says so."""
    await remembered(memory, city("Oslo", at=NOW - timedelta(days=30), expires_at=NOW + SECOND))
    (bergen,) = await remembered(memory, city("Bergen"))
    (gone,) = await remembered(memory, tea(number=1, expires_at=NOW + SECOND))
    await memory.retract(gone.assertion_id, scope=HOME, reason="?", change=CHANGE)

    for assertion_id in (bergen.assertion_id, gone.assertion_id):
        with pytest.raises(CannotUndo, match="has expired meanwhile"):
            await memory.undo(assertion_id, scope=HOME, change=Change(by="tester", now=LATER))
