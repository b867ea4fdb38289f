"""Every answer resolves to a moment, whatever happened to it; writers never lose each other's work."""

import asyncio
import random
from collections import Counter
from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.support.memory_house import CHANGE, HOME, NOW, city, draft, house, moment, question, texts
from threadmark.memory import AlreadyRetracted, CannotUndo, Disposition, Recollection, Trust, Verdict, Which
from threadmark.memory.model.question import Include

PEOPLE, CITIES, HABITS = 12, ("Oslo", "Bergen", "Bodø", "Molde"), 25


def url_of(kind: str, request: pytest.FixtureRequest, folder: object) -> str:
    """An empty database of a kind."""
    return f"sqlite:///{folder}/memory.db" if kind == "sqlite" else str(request.getfixturevalue("postgres_url"))


async def live(memory: Recollection, count: int, chance: random.Random) -> Counter[str]:
    """Random statements, merges, supersessions, retractions and undos; how many of each were done."""
    done: Counter[str] = Counter()
    verdicts: list[Verdict] = []
    number = 0
    while sum(done.values()) < count:
        roll = chance.random()
        if roll < 0.7 or not verdicts:
            batch = []
            for _ in range(20):
                number += 1
                batch.append(_statement(number, chance))
            verdicts = (verdicts + await memory.remember(batch, scope=HOME, now=NOW))[-400:]
            done.update(each.disposition for each in verdicts[-20:])
            continue
        target = chance.choice(verdicts).assertion_id
        try:
            if roll < 0.85:
                await memory.undo(target, scope=HOME, change=CHANGE)
                done["undone"] += 1
            else:
                await memory.retract(target, scope=HOME, reason="test", change=CHANGE)
                done["retracted"] += 1
        except (AlreadyRetracted, CannotUndo):
            done["refused"] += 1
    return done


def _statement(number: int, chance: random.Random) -> Any:
    origin = moment(number, thread=f"thread-{number % 7}")
    trust = chance.choice((Trust.USER, Trust.USER, Trust.AGENT, Trust.WEB))
    if chance.random() < 0.5:
        return draft(f"habit {chance.randrange(HABITS)}", origin=origin, trust=trust)
    value = chance.choice(CITIES)
    person = f"person {chance.randrange(PEOPLE)}"
    return draft(
        f"{person} lives in {value}", subject=person, attribute="city", value=value, origin=origin, trust=trust
    )


@pytest.mark.parametrize("count", [1_500, pytest.param(10_000, marks=pytest.mark.soak)])
async def test_every_chain_resolves(tmp_path: object, count: int) -> None:
    """Each assertion that is or was held has a source with thread, run, seq and message; no source was ever lost."""
    async with house(f"sqlite:///{tmp_path}/memory.db") as memory:
        done = await live(memory, count, random.Random(3))
        assert min(done[each] for each in ("added", "duplicate", "superseded", "undone", "retracted")) > 0

        answers = await memory.recall(question("person habit lives", include=Include.ALL, count_max=200))
        everything = []
        after = 0
        while page := await memory.list(scope=HOME, after=after, count_max=1_000, which=Which.ALL):
            everything += [each for _, each in page]
            after = page[-1][0]

        assert len(answers.answers) == 200
        for each in [answer.assertion for answer in answers.answers] + everything:
            origins = [source.origin for source in each.provenance if source.role in {"supports", "corrects"}]
            assert origins
            assert all(origin.thread_ref and origin.run_ref and origin.seq and origin.message_ref for origin in origins)
        moments = {source.origin.message_ref for each in everything for source in each.provenance} - {None}
        moment_count = sum(done[each] for each in ("added", "duplicate", "superseded", "quarantined"))
        assert len(moments) == moment_count
        current = Counter(
            (each.subject, each.attribute) for each in everything if each.is_held and each.subject and not each.valid_to
        )
        assert set(current.values()) == {1}


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
async def test_writers_lose_nothing(kind: str, request: pytest.FixtureRequest, tmp_path: object) -> None:
    """32 writers over four connections, same facts and conflicting ones: one row each, one current, all sources."""
    url = url_of(kind, request, tmp_path)
    async with AsyncExitStack() as stack:
        houses = [await stack.enter_async_context(house(url)) for _ in range(4)]

        async def write(writer: int) -> list[Verdict]:
            memory = houses[writer % 4]
            verdicts = []
            for step in range(6):
                origin = moment(writer * 100 + step)
                same = draft(f"habit {step}", origin=origin)
                conflicting = city(f"city of writer {writer}", origin=origin)
                verdicts += await memory.remember([same, conflicting], scope=HOME, now=NOW)
            return verdicts

        results = await asyncio.gather(*(write(writer) for writer in range(32)))

        dispositions = Counter(each.disposition for verdicts in results for each in verdicts)
        held = [each for _, each in await houses[0].list(scope=HOME, count_max=1_000)]
        habits = [each for each in held if each.attribute is None]
        assert len(habits) == 6
        assert sum(len(each.provenance) for each in habits) == 32 * 6
        assert len([each for each in held if each.attribute == "city" and each.valid_to is None]) == 1
        assert dispositions[Disposition.ADDED] == 7
        history = await houses[0].timeline("user", "city", scope=HOME)
        message_refs = {source.origin.message_ref for each in history for source in each.provenance}
        assert len(message_refs) == 32 * 6
        await houses[0].index_pending()
        assert len(await texts(houses[0], "city of writer")) >= 1
