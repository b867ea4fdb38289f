"""Both time axes, against an independent account of what was true and what was believed, on both databases."""

import random
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from tests.support.memory_house import HOME, NOW, house, question
from tests.support.reference_timeline import CELL_COUNT, Painting
from threadmark.memory import Draft, Include, Recollection, Refused, Scope

SUBJECT_COUNT, STATEMENT_COUNT, QUESTION_COUNT = 40, 10, 60
#: The night in which clocks go forward lies in the middle: instants that look an hour apart there are not.
FIRST = datetime(2026, 3, 27, 22, tzinfo=UTC)
CELL = timedelta(hours=2, minutes=30)
ZONES = (UTC, ZoneInfo("Europe/Oslo"), ZoneInfo("America/New_York"), timezone(timedelta(hours=5, minutes=30)))
CITIES = ("Oslo", "Bergen", "Tromsø", "東京")


@pytest.fixture(params=["sqlite", "postgresql"])
async def memory(request: pytest.FixtureRequest, tmp_path: object) -> AsyncIterator[Recollection]:
    """The same cases on both databases."""
    url = f"sqlite:///{tmp_path}/memory.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    async with house(url) as opened:
        yield opened


def cell_at(cell: int, chance: random.Random) -> datetime:
    """The first instant of a cell, as a clock of some zone shows it."""
    return (FIRST + cell * CELL).astimezone(chance.choice(ZONES))


def step_at(step: int) -> datetime:
    """When a step became known."""
    return NOW + timedelta(minutes=step)


async def tell(memory: Recollection, subject: str, painting: Painting, chance: random.Random) -> None:
    """Statements about one subject, in any order of their validity, some with an end of their own."""
    for step in range(1, STATEMENT_COUNT + 1):
        begin = chance.randrange(CELL_COUNT - 1)
        end = chance.randrange(begin + 1, CELL_COUNT) if chance.random() < 0.3 else None
        value = chance.choice(CITIES)
        statement = Draft(
            namespace=HOME.namespace,
            text=f"{subject} lives in {value}",
            observed_at=cell_at(begin, chance),
            valid_from=cell_at(begin, chance),
            valid_to=None if end is None else cell_at(end, chance),
            subject=subject,
            attribute="city",
            value=value,
        )
        await memory.remember([statement], scope=HOME, now=step_at(step))
        painting.state(value, begin, end)


async def test_what_was_true_and_what_was_believed(memory: Recollection) -> None:
    """2,400 questions about any instant on either axis: out of order, in several zones, over a change of the clocks."""
    chance = random.Random(7)
    wrong: list[str] = []
    for number in range(SUBJECT_COUNT):
        subject, painting = f"person {number}", Painting()
        await tell(memory, subject, painting, chance)
        for _ in range(QUESTION_COUNT):
            cell, step = chance.randrange(CELL_COUNT), chance.randrange(STATEMENT_COUNT + 1)
            valid_at = cell_at(cell, chance) + chance.choice((timedelta(0), CELL - timedelta(microseconds=1)))
            known_at = step_at(step) + timedelta(seconds=1)
            held = await memory.held_at(subject, "city", scope=HOME, valid_at=valid_at, known_at=known_at)
            found = [each.value for each in held]
            expected = painting.value(cell, step)
            if found != ([] if expected is None else [expected]):
                wrong.append(f"{subject}, cell {cell}, step {step}: {found}, not {expected}")

    assert wrong == []


async def test_recall_answers_by_the_same_axes(memory: Recollection) -> None:
    """The whole of recall, index and all, tells what the axes say."""
    chance = random.Random(8)
    painting = Painting()
    await tell(memory, "Mira", painting, chance)
    await memory.index_pending()
    for _ in range(40):
        cell, step = chance.randrange(CELL_COUNT), chance.randrange(STATEMENT_COUNT + 1)
        answers = await memory.recall(
            question(
                "Where does Mira live?",
                now=step_at(99),
                valid_at=cell_at(cell, chance),
                known_at=step_at(step) + timedelta(seconds=1),
            )
        )
        expected = painting.value(cell, step)
        assert [each.assertion.value for each in answers.answers] == ([] if expected is None else [expected])


async def test_history_is_whole(memory: Recollection) -> None:
    """Versions believed at one moment never overlap, and every statement is still there."""
    chance = random.Random(9)
    await tell(memory, "Mira", Painting(), chance)

    history = await memory.timeline("Mira", "city", scope=HOME)

    far = datetime.max.replace(tzinfo=UTC)
    for step in range(STATEMENT_COUNT + 1):
        now = step_at(step) + timedelta(seconds=1)
        held = [each for each in history if each.known_from <= now < (each.known_to or far)]
        held.sort(key=lambda each: each.valid_from)
        assert all((a.valid_to or far) <= b.valid_from for a, b in pairwise(held))
    answers = await memory.recall(question("Mira city", now=step_at(99), include=Include.ALL, count_max=200))
    assert len(answers.answers) == len(history)


@pytest.mark.parametrize(
    "at",
    [datetime(2026, 3, 29, 1, 30), datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)],  # noqa: DTZ001
)
async def test_what_names_no_instant_is_refused(memory: Recollection, at: datetime) -> None:
    """A value without an offset, and the ends of the calendar, in every field."""
    for fields in ({"observed_at": at}, {"observed_at": NOW, "valid_from": at}, {"observed_at": NOW, "expires_at": at}):
        with pytest.raises(Refused):
            await memory.remember(
                [Draft(namespace=HOME.namespace, text="x", **fields)],  # type: ignore[arg-type]
                scope=HOME,
                now=NOW,
            )
    with pytest.raises(Refused):
        question("x", valid_at=at)
    assert await memory.list(scope=Scope(tenant_id="acme", namespace=())) == []
