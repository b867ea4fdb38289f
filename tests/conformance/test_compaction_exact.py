"""Exact questions over a tenant: answered by indexes, and rows are looked through only where those know nothing."""

from collections.abc import Iterator

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from tests.conformance.compacting import Compacting, compacting, compaction_engine
from tests.conformance.test_compaction_return import SPARE
from tests.support.factories import TENANT
from threadmark.compaction import Drop, DropQuery

__all__ = ["compacting", "compaction_engine"]


@pytest.fixture
def scans() -> Iterator[list[str]]:
    """The statements that look through the rows of a tenant."""
    seen: list[str] = []

    def note(_c: object, _cursor: object, statement: str, *_rest: object) -> None:
        if "compaction_row" in statement and "LIKE" in statement.upper():
            seen.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    yield seen
    event.remove(Engine, "before_cursor_execute", note)


async def gone(work: Compacting) -> list[Drop]:
    """What a compaction of the thread took away."""
    await work.thread(turns=12)
    done = await work.compact(policy=SPARE)
    drops = [drop async for drop in work.service.drops.ledger(TENANT, done.compaction_id)]
    return [drop for drop in drops if drop.row.status in ("dropped", "promoted") and drop.row.unit == "atom"]


async def test_an_exact_question_looks_through_no_row(compacting: Compacting, scans: list[str]) -> None:
    """By its words in any case, by its normal form, by the name of the drop."""
    drops = await gone(compacting)
    assert drops
    for drop in drops:
        for text in (drop.row.text, drop.row.text.upper(), f" {drop.row.canon} ", drop.drop_id):
            found = await compacting.service.drops.search_tenant(TENANT, DropQuery(text=text))
            assert drop.drop_id in [each.drop_id for each in found], text
            if text == drop.drop_id:
                assert len(found) == 1
    assert scans == []


async def test_any_other_question_is_looked_for_in_the_rows(compacting: Compacting, scans: list[str]) -> None:
    """A part of a value is found as ever."""
    drop = (await gone(compacting))[0]
    found = await compacting.service.drops.search_tenant(TENANT, DropQuery(text=drop.row.text[1:], limit=50))
    assert drop.drop_id in [each.drop_id for each in found]
    assert scans
