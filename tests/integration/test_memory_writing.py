"""What becomes of a statement: held once, placed in time, supported by every moment that stated it."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from tests.support.memory_house import HOME, NOW, city, draft, house, moment, question, remembered, texts
from threadmark.memory import Cardinality, Disposition, Recollection, Refused, Scope


@pytest.fixture(params=["sqlite", "postgresql"])
async def memory(request: pytest.FixtureRequest, tmp_path: object) -> AsyncIterator[Recollection]:
    """The same rules on both databases."""
    url = f"sqlite:///{tmp_path}/memory.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    async with house(url) as opened:
        yield opened


async def test_a_text_is_held_once(memory: Recollection) -> None:
    """The same words, whatever their case and spacing, are one statement with the sources of both."""
    (first,) = await remembered(memory, draft("Likes  strong TEA", origin=moment(1)))
    (again,) = await remembered(memory, draft("likes strong tea", origin=moment(2)))

    assert (first.disposition, again.disposition) == (Disposition.ADDED, Disposition.DUPLICATE)
    assert again.assertion_id == first.assertion_id
    sources = await memory.provenance(first.assertion_id, scope=HOME)
    assert [each.origin.message_ref for each in sources] == ["message-1", "message-2"]


async def test_a_moment_supports_a_statement_once(memory: Recollection) -> None:
    """A job that runs again adds no source."""
    (first,) = await remembered(memory, city("Oslo", origin=moment(1)))
    (again,) = await remembered(memory, city("Oslo", origin=moment(1)))

    assert again.disposition is Disposition.DUPLICATE
    assert len(await memory.provenance(first.assertion_id, scope=HOME)) == 1


async def test_a_repeated_moment_does_not_bring_back_what_was_superseded(memory: Recollection) -> None:
    """Extraction that runs late, or twice, changes nothing that came after."""
    await remembered(memory, city("Oslo", origin=moment(1), at=NOW - timedelta(days=9)))
    await remembered(memory, city("Bergen", origin=moment(2)))

    await remembered(memory, city("Oslo", origin=moment(1), at=NOW - timedelta(days=9)))

    assert await texts(memory, "which city?") == ["lives in Bergen"]


async def test_a_change_supersedes_and_keeps_the_past(memory: Recollection) -> None:
    """The new value holds from its moment; the old one stays true before it."""
    (old,) = await remembered(memory, city("Oslo", at=NOW - timedelta(days=30)))
    (new,) = await remembered(memory, city("Bergen", at=NOW - timedelta(days=2)))

    assert (new.disposition, new.superseded) == (Disposition.SUPERSEDED, (old.assertion_id,))
    assert await texts(memory, "which city?") == ["lives in Bergen"]
    assert await texts(memory, "which city?", valid_at=NOW - timedelta(days=5)) == ["lives in Oslo"]


async def test_a_late_statement_fills_the_past(memory: Recollection) -> None:
    """What arrives late about an earlier time does not undo the present."""
    await remembered(memory, city("Bergen", at=NOW - timedelta(days=2)))
    (late,) = await remembered(memory, city("Oslo", at=NOW - timedelta(days=30)))

    assert late.disposition is Disposition.ADDED
    assert await texts(memory, "which city?") == ["lives in Bergen"]
    held = await memory.get(late.assertion_id, scope=HOME)
    assert held.valid_to == NOW - timedelta(days=2)


async def test_what_was_believed_then_is_what_was_said_then(memory: Recollection) -> None:
    """`known_at` asks what memory held, whatever it learned later."""
    await memory.remember([city("Oslo", at=NOW - timedelta(days=30))], scope=HOME, now=NOW - timedelta(days=29))
    await memory.remember([city("Bergen", at=NOW - timedelta(days=20))], scope=HOME, now=NOW - timedelta(days=3))
    await memory.index_pending()

    at = NOW - timedelta(days=10)
    assert await texts(memory, "which city?", valid_at=at, known_at=NOW - timedelta(days=5)) == ["lives in Oslo"]
    assert await texts(memory, "which city?", valid_at=at) == ["lives in Bergen"]


async def test_many_values_live_side_by_side(memory: Recollection) -> None:
    """A multi-valued attribute holds each of its values once."""
    fields: dict[str, Any] = {"subject": "user", "attribute": "language", "cardinality": Cardinality.MANY}
    verdicts = await remembered(
        memory,
        draft("speaks Norwegian", value="no", **fields),
        draft("speaks Turkish", value="tr", **fields),
        draft("speaks Norwegian well", value="no", **fields),
    )

    assert [each.disposition for each in verdicts] == ["added", "added", "duplicate"]
    assert sorted(await texts(memory, "language spoken")) == ["speaks Norwegian", "speaks Turkish"]


async def test_events_are_another_each_time(memory: Recollection) -> None:
    """The same thing happening twice is two events."""
    fields: dict[str, Any] = {"subject": "user", "attribute": "ran", "value": "10 km", "cardinality": Cardinality.EVENT}
    verdicts = await remembered(
        memory,
        draft("ran 10 km", at=NOW - timedelta(days=8), **fields),
        draft("ran 10 km", at=NOW - timedelta(days=1), **fields),
    )

    assert [each.disposition for each in verdicts] == ["added", "added"]


async def test_an_attribute_keeps_its_cardinality(memory: Recollection) -> None:
    """What was declared single-valued is not multi-valued for somebody else."""
    await remembered(memory, city("Oslo"))

    with pytest.raises(Refused, match="declared"):
        await memory.remember([city("Bergen", cardinality=Cardinality.MANY)], scope=HOME, now=NOW)


async def test_all_of_a_request_or_nothing(memory: Recollection) -> None:
    """A draft outside the scope keeps its neighbours from being remembered."""
    foreign = draft("secret", scope=Scope(tenant_id="acme", namespace=("users", "8")))

    with pytest.raises(Refused, match="outside the scope"):
        await memory.remember([draft("mine"), foreign], scope=HOME, now=NOW)

    assert await memory.list(scope=Scope(tenant_id="acme", namespace=())) == []


async def test_texts_come_back_code_point_for_code_point(memory: Recollection) -> None:
    """NUL, marks, and signs beyond the basic plane survive on both databases."""
    text = "a\0b é e\u0301 東京 \U0001f9c9 \u200f"
    (verdict,) = await remembered(memory, draft(text, subject="user", attribute="odd", value={"\0": ["\0", text]}))

    held = await memory.get(verdict.assertion_id, scope=HOME)
    assert (held.text, held.value) == (text, {"\0": ["\0", text]})


async def test_twenty_at_once_make_one_row(memory: Recollection) -> None:
    """Parallel statements of one fact are one row with twenty sources; two users are two rows."""
    other = Scope(tenant_id="acme", namespace=("users", "8"))
    tasks = [memory.remember([draft("likes tea", origin=moment(at))], scope=HOME, now=NOW) for at in range(20)]
    tasks += [memory.remember([draft("likes tea", scope=other)], scope=other, now=NOW) for _ in range(5)]
    verdicts = await asyncio.gather(*tasks)

    assert sum(each.disposition is Disposition.ADDED for (each,) in verdicts) == 2
    ((_, held),) = await memory.list(scope=HOME)
    assert len(held.provenance) == 20
    assert len(await memory.list(scope=other)) == 1


async def test_a_clock_that_runs_ahead_hides_nothing(memory: Recollection) -> None:
    """A moment observed in the future is true from now on, so that a question about now finds it."""
    await remembered(memory, draft("the kettle is on", at=NOW + timedelta(hours=3)))

    assert await texts(memory, "kettle") == ["the kettle is on"]


async def test_one_write_is_seen_by_the_next_recall(memory: Recollection) -> None:
    """Recall sees what no index has yet."""
    await remembered(memory, draft("the bicycle is green"))
    await memory.remember([draft("the bicycle was stolen")], scope=HOME, now=NOW)

    answers = await memory.recall(question("what about the bicycle?"))

    assert {each.assertion.text for each in answers.answers} == {"the bicycle is green", "the bicycle was stolen"}
