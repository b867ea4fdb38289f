"""Erasing by subject: exactly the name that was asked for."""

from collections.abc import AsyncIterator

import pytest

from tests.support.memory_house import HOME, NOW, draft, house, moment, remembered
from threadmark.memory import TURN, Draft, Forget, Recollection, Scope

TENANT = Scope(tenant_id="acme", namespace=())
ELSEWHERE = Scope(tenant_id="acme", namespace=("users", "8"))
COMPOSED, DECOMPOSED = "M\u00fcller", "Mu\u0308ller"


@pytest.fixture(params=["sqlite", "postgresql"])
async def memory(request: pytest.FixtureRequest, tmp_path: object) -> AsyncIterator[Recollection]:
    """The same rules on both databases."""
    url = f"sqlite:///{tmp_path}/memory.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    async with house(url) as opened:
        yield opened


def likes(name: str, *, scope: Scope = HOME) -> Draft:
    """That somebody likes tea."""
    return draft(f"{name} likes tea", scope=scope, subject=name, attribute=f"drink {name.encode().hex()}", value="tea")


async def left(memory: Recollection) -> set[str]:
    """The texts that are left."""
    return {each.text for _, each in await memory.list(scope=TENANT)}


async def test_erasing_a_name_leaves_names_that_only_look_alike(memory: Recollection) -> None:
    """Accents, case and compatibility forms tell people apart, in every namespace, as subjects and as speakers."""
    alike = (COMPOSED, "muller", "MULLER", "\uff2duller")
    for name in alike:
        await remembered(memory, likes(name, scope=ELSEWHERE), scope=ELSEWHERE)
        await remembered(memory, draft(f"{name}: good day", kind=TURN, origin=moment(len(name), thread=f"t-{name}")))
    await remembered(memory, likes("Muller"))
    await remembered(memory, draft("Muller: good morning", kind=TURN, origin=moment(1, thread="t-1")))
    await remembered(memory, draft("so it is", kind=TURN, origin=moment(2, thread="t-2", actor="Muller")))

    erasure = await memory.erase(Forget(subject="Muller"), tenant_id="acme", now=NOW)

    assert erasure.counts["assertions"] == 3
    assert await left(memory) == {f"{name}{words}" for name in alike for words in (" likes tea", ": good day")}


@pytest.mark.parametrize(("said", "asked"), [(COMPOSED, DECOMPOSED), (DECOMPOSED, COMPOSED)])
async def test_one_name_in_two_encodings_is_one_name(memory: Recollection, said: str, asked: str) -> None:
    """Composed and decomposed signs are the same code points after NFC."""
    await remembered(memory, likes(said))
    await remembered(memory, draft(f"{said}: good day", kind=TURN, origin=moment(1)))

    erasure = await memory.erase(Forget(subject=asked), tenant_id="acme", now=NOW)

    assert (erasure.counts["assertions"], await left(memory)) == (2, set())
