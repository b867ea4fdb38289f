"""What an older version kept, with names compared folded: its database is brought up to date, its exports come in.

`before_identity.json` holds the rows of such a database by table, `before_identity.jsonl` its export, both written by
that version. Never write them again: such databases and exports are in people's hands.
"""

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, select

from tests.support.folded_names import EXPORT, bring_in, write_rows
from tests.support.memory_house import CHANGE, HOME, NOW, draft, house, moment, question
from threadmark.memory import (
    TURN,
    CannotUndo,
    Cardinality,
    Disposition,
    Draft,
    Forget,
    Hold,
    Items,
    MemoryIndex,
    Recollection,
    Scope,
    Which,
    migrate,
    parse_filter,
)
from threadmark.memory.store.tables import assertion

TENANT = Scope(tenant_id="acme", namespace=())
COMPOSED, DECOMPOSED = "Caf\u00e9", "Cafe\u0301"


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of either kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/memory.db"
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture(params=["migrated", "imported"])
async def memory(request: pytest.FixtureRequest, url: str) -> AsyncIterator[Recollection]:
    """The old memory, brought here by either way."""
    async with bring_in(url, request.param) as memory:
        yield memory


async def exported(memory: Recollection) -> list[dict[str, Any]]:
    """The rows of an export."""
    return [json.loads(line) for line in await memory.export(scope=TENANT)]


def lives(name: str, place: str, *, at: int = 0, scope: Scope = HOME, **fields: Any) -> Draft:
    """A statement of the old memory, in the words of its fixture."""
    return draft(
        f"{name} lives in {place}",
        scope=scope,
        at=NOW - timedelta(days=at),
        subject=name,
        attribute="city",
        value=place,
        **fields,
    )


async def test_nothing_is_lost_and_every_row_is_found_by_its_own_name(memory: Recollection) -> None:
    """Ids, words and times are those of the old rows; keys are the names as they are spelled, composed."""
    old = [json.loads(line)["row"] for line in EXPORT[1:]]
    before = {row["assertion_id"]: row for row in old if "assertion_id" in row}
    after = {
        each["row"]["assertion_id"]: each["row"] for each in (await exported(memory))[1:] if each["kind"] == "assertion"
    }

    made = {"subject_key", "attribute_key", "digest", "hold"}
    same = {key: {name: value for name, value in row.items() if name not in made} for key, row in before.items()}
    assert {key: {name: row[name] for name in same[key]} for key, row in after.items()} == same
    assert {row["subject_key"] for row in after.values() if row["subject"] == "Pe\u00f1a"} == {"Pe\u00f1a"}
    assert {row["attribute_key"] for row in after.values() if row["attribute"] in {"Born", "born"}} == {"Born", "born"}
    assert len({row["digest"] for row in after.values() if row["attribute"] == "Tag"}) == 2


async def test_a_chain_that_was_merged_stays_one_history(memory: Recollection) -> None:
    """Who superseded whom stays, and a history goes through it; a question for a name answers with its own versions."""
    timeline = await memory.timeline("Pena", "city", scope=HOME)
    history = await memory.history(timeline[0].assertion_id, scope=HOME)

    assert {each.subject for each in timeline} == {"Pena"}
    assert [(each.subject, each.value) for each in history if each.superseded_by] == [
        ("Pena", "Oslo"),
        ("Pe\u00f1a", "Bergen"),
    ]
    assert {each.assertion_id for each in timeline} < {each.assertion_id for each in history}


async def test_names_go_their_own_ways_from_here_on(memory: Recollection) -> None:
    """A name supersedes itself alone; declarations held for every spelling, and hold for each."""
    (pena,) = await memory.remember([lives("Pena", "Turin")], scope=HOME, now=NOW)
    (other,) = await memory.remember([lives("Pe\u00f1a", "Malm\u00f6")], scope=HOME, now=NOW)
    (tag,) = await memory.remember(
        [draft("x2 is blue", subject="x2", attribute="Tag", value="blue")], scope=HOME, now=NOW
    )

    assert (pena.disposition, len(pena.superseded)) == (Disposition.SUPERSEDED, 1)
    assert [(await memory.get(each, scope=HOME)).value for each in pena.superseded] == ["Rome"]
    assert [(await memory.get(each, scope=HOME)).subject for each in other.superseded] in ([], ["Pe\u00f1a"])
    assert (tag.disposition, (await memory.get(tag.assertion_id, scope=HOME)).cardinality) == (
        "added",
        Cardinality.MANY,
    )


async def test_what_was_said_before_is_a_repetition_still(memory: Recollection) -> None:
    """The digests are made anew: the same statements, and the same moments repeated, add nothing."""
    again = [
        lives("Pena", "Rome", at=10, origin=moment(3)),
        draft("x2 is red", subject="x2", attribute="Tag", value="red"),
        draft("The area is x\u00b2", at=NOW - timedelta(days=5)),
        draft("likes tea", at=NOW - timedelta(days=5), origin=moment(4)),
        draft("Zo\u00eb: good day", at=NOW - timedelta(days=4), kind=TURN, origin=moment(5, thread="t-5")),
        draft("Ana ran", at=NOW - timedelta(days=4), subject="Ana", attribute="Run", value=10),
        draft(
            "Ana is away",
            subject="Ana",
            attribute="Away",
            value=True,
            valid_from=NOW - timedelta(days=3),
            valid_to=NOW - timedelta(days=1),
        ),
    ]
    count = len([each for each in await exported(memory) if each.get("kind") == "evidence"])

    verdicts = await memory.remember(again, scope=HOME, now=NOW)
    further = await memory.remember([lives("Li", "Wien", at=3)], scope=HOME, now=NOW)
    other = await memory.remember([draft("The area is x2")], scope=HOME, now=NOW)

    assert {each.disposition for each in verdicts} == {Disposition.DUPLICATE}
    assert [each.disposition for each in [*further, *other]] == [Disposition.ADDED, Disposition.ADDED]
    # Four of them came without a moment and count once more; a statement with its moment is not counted twice.
    assert len([each for each in await exported(memory) if each.get("kind") == "evidence"]) == count + 4 + 2


async def test_two_encodings_of_a_place_are_one_and_a_second_belief_waits_for_a_person(memory: Recollection) -> None:
    """They were two namespaces and two documents. Nothing is thrown away."""
    place = Scope(tenant_id="acme", namespace=(COMPOSED,))
    held = [each for _, each in await memory.list(scope=place)]
    waiting = [each for _, each in await memory.list(scope=place, which=Which.QUARANTINED)]
    document = await Items(memory).get(("notes",), COMPOSED, tenant_id="acme", now=NOW)

    assert sorted(each.text for each in [*held, *waiting]) == [
        "Kai lives in Bonn",
        "Kai lives in Kiel",
        "opens at nine",
        "opens at nine",
    ]
    assert len([each for each in held if each.subject == "Kai"]) == 1
    assert {each.hold for each in waiting} == {Hold.CONFLICT}
    assert {each.namespace for each in [*held, *waiting]} == {(COMPOSED,), (DECOMPOSED,)}
    assert document is not None
    for each in waiting:
        await memory.approve(each.assertion_id, scope=place, change=CHANGE)
    assert len({each.text for _, each in await memory.list(scope=place)}) >= 2


async def test_erasing_one_name_of_a_merged_chain_leaves_the_other(memory: Recollection) -> None:
    """Also where a speaker is named in the words of a turn alone."""
    await memory.erase(Forget(subject="Pena"), tenant_id="acme", now=NOW)
    await memory.erase(Forget(subject="Zoe"), tenant_id="acme", now=NOW)

    left = {each.text for _, each in await memory.list(scope=TENANT, which=Which.ALL)}
    assert {"Pe\u00f1a lives in Bergen", "Zo\u00eb: good day"} <= left
    assert not any("Pena" in text or text == "so it is" for text in left)


async def test_undoing_across_two_names_never_collides(memory: Recollection) -> None:
    """What one name superseded of the other is believed again, unless that one has gone its own way since."""
    pena = await memory.timeline("Pena", "city", scope=HOME)
    rome = next(each for each in pena if each.value == "Rome" and each.known_to is None)
    await memory.remember([lives("Pe\u00f1a", "Lund", at=5)], scope=HOME, now=NOW)

    with pytest.raises(CannotUndo, match="its place in time is taken"):
        await memory.undo(rome.assertion_id, scope=HOME, change=CHANGE)


async def test_the_index_of_an_old_memory_finds_names_exactly(memory: Recollection) -> None:
    """The index proposes by the folded name, as before; the database decides."""
    answers = await memory.recall(question("is red", filter=parse_filter({"subject": "x2"})))
    none = await memory.recall(question("is red", filter=parse_filter({"subject": "X2"})))

    assert [each.assertion.text for each in answers.answers] == ["x2 is red"]
    assert none.answers == ()


async def test_what_came_in_goes_out_and_in_again_unchanged(memory: Recollection, tmp_path: Path) -> None:
    """Once brought up to date, an export is equal byte for byte wherever it has been."""
    lines = [*await memory.export(scope=TENANT)]

    async with house(f"sqlite:///{tmp_path}/elsewhere.db", MemoryIndex()) as elsewhere:
        await elsewhere.import_(lines, scope=TENANT)
        assert [*await elsewhere.export(scope=TENANT)] == lines


def test_an_old_database_goes_up_down_and_up_again(url: str) -> None:
    """With all that it holds: keys stay exact on the way down."""
    write_rows(url)
    for revision in ("head", "0001", "head"):
        migrate(url, revision)

    engine = create_engine(url)
    with engine.connect() as connection:
        rows = connection.execute(
            select(assertion.c.subject, assertion.c.subject_key).where(assertion.c.kind == "fact")
        )
        assert all(key == subject for subject, key in rows)
    engine.dispose()
