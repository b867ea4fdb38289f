"""Keyed documents over the same rows, and what is drawn out of a turn."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.memory_house import CHANGE, HOME, NOW, draft, house, moment, question, texts
from threadmark.memory import ExtractionFailed, FilterRefused, Include, Items, Recollection, Refused, Scope, extract

PLACE = ("users", "7", "prefs")
FIXED: dict[str, Any] = {"tenant_id": "acme", "now": NOW}


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Recollection]:
    """On SQLite."""
    async with house(f"sqlite:///{tmp_path}/memory.db") as opened:
        yield opened


async def test_a_document_is_replaced_and_remembers_its_beginning(memory: Recollection) -> None:
    """`created_at` is that of the first version; the key is compared to the letter."""
    items = Items(memory)
    await items.put(PLACE, "Theme", {"colour": "red"}, **FIXED)
    await items.put(PLACE, "theme", {"colour": "blue"}, **FIXED)
    later = NOW + timedelta(hours=1)
    await items.put(PLACE, "Theme", {"colour": "green"}, tenant_id="acme", now=later)

    item = await items.get(PLACE, "Theme", tenant_id="acme", now=later)

    assert item is not None
    assert (item.value, item.created_at, item.updated_at) == ({"colour": "green"}, NOW, later)
    other = await items.get(PLACE, "theme", **FIXED)
    assert other is not None
    assert other.value == {"colour": "blue"}
    assert await items.get(PLACE, "Theme", tenant_id="other", now=NOW) is None


async def test_a_document_can_be_given_up(memory: Recollection) -> None:
    """Deleted it is gone, put again it begins anew."""
    items = Items(memory)
    await items.put(PLACE, "a", {"n": 1}, **FIXED)

    assert await items.delete(PLACE, "a", tenant_id="acme", change=CHANGE)
    assert not await items.delete(PLACE, "a", tenant_id="acme", change=CHANGE)
    assert await items.get(PLACE, "a", **FIXED) is None
    await items.put(PLACE, "a", {"n": 2}, tenant_id="acme", now=NOW + timedelta(days=1))
    found = await items.get(PLACE, "a", tenant_id="acme", now=NOW + timedelta(days=1))
    assert found is not None
    assert found.created_at == NOW + timedelta(days=1)


async def test_a_document_lives_as_long_as_it_was_given(memory: Recollection) -> None:
    """From its instant on it is not read, searched or listed."""
    items = Items(memory)
    await items.put(PLACE, "code", {"pin": 1}, ttl=timedelta(minutes=5), **FIXED)
    end = NOW + timedelta(minutes=5)

    assert await items.get(PLACE, "code", tenant_id="acme", now=end - timedelta(seconds=1)) is not None
    assert await items.get(PLACE, "code", tenant_id="acme", now=end) is None
    assert await items.search(("users",), tenant_id="acme", now=end) == []
    assert await items.namespaces(tenant_id="acme", now=end) == []


async def test_documents_are_found_below_a_prefix(memory: Recollection) -> None:
    """By fields and operators, by words, and by namespace, each with its order and page."""
    items = Items(memory)
    for at, (labels, value) in enumerate(
        [
            (("a",), {"n": 1, "t": "red kayak"}),
            (("a", "b"), {"n": 2, "t": "blue house"}),
            (("ab",), {"n": 3, "t": "kayak"}),
        ]
    ):
        await items.put(labels, f"k{at}", value, tenant_id="acme", now=NOW + timedelta(seconds=at))
    now = NOW + timedelta(minutes=1)

    async def keys(prefix: tuple[str, ...] = (), **given: Any) -> list[str]:
        return [each.key for each in await items.search(prefix, tenant_id="acme", now=now, **given)]

    assert await keys() == ["k2", "k1", "k0"]
    assert await keys(("a",)) == ["k1", "k0"]
    assert await keys(given={"n": {"$gte": 2}}) == ["k2", "k1"]
    assert await keys(given={"n": {"$ne": 2}, "t": "kayak"}) == ["k2"]
    assert await keys(given={"n": True}) == []
    assert await keys(count_max=1, offset=1) == ["k1"]
    assert set(await keys(query="kayak")) >= {"k0", "k2"}
    assert await items.namespaces(tenant_id="acme", now=now) == [("a",), ("a", "b"), ("ab",)]
    assert await items.namespaces(tenant_id="acme", now=now, prefix=("a",), depth_max=1) == [("a",)]
    assert await items.namespaces(tenant_id="acme", now=now, suffix=("b",)) == [("a", "b")]
    for bad in ({}, {"n": {"$or": 1}}):
        with pytest.raises(FilterRefused):
            await keys(given=bad)
    with pytest.raises(Refused):
        await items.put(PLACE, "bad", {"n": float("nan")}, **FIXED)


async def test_rules_draw_statements_out_of_a_turn(memory: Recollection) -> None:
    """The turn is kept word for word; its lines become statements with the same moment, and only once."""
    turn = draft("user.city = Oslo\nremember: the meeting is on Monday\nuser.age = 41\nhello", origin=moment(1))

    first = await extract(memory, turn, scope=HOME, now=NOW)
    again = await extract(memory, turn, scope=HOME, now=NOW)

    assert [each.disposition for each in first.statements] == ["added"] * 3
    assert [each.disposition for each in (again.turn, *again.statements)] == ["duplicate"] * 4
    (held,) = await memory.timeline("user", "age", scope=HOME)
    assert (held.value, held.provenance[0].origin.message_ref) == (41, "message-1")
    assert "the meeting is on Monday" in await texts(memory, "meeting Monday")


class Scripted:
    """A model that answers what it was given."""

    name = "scripted-1"

    def __init__(self, reply: str) -> None:
        self.reply = reply

    async def extract(self, instruction: str, message: str) -> str:
        """The scripted reply; a word stands for a model that is down."""
        if self.reply == "DOWN":
            raise ExtractionFailed("the model is down")
        return self.reply


BAD_REPLIES = ["DOWN", "", "{", "[1]", '{"statements": 3}', '{"statements": [{"text": " "}]}', "[" * 9_999]
GOOD_REPLY = """```json
{"statements": [{"text": "The dog is called Rex", "subject": "dog", "attribute": "name", "value": "Rex"}]}
```"""


@pytest.mark.parametrize("reply", BAD_REPLIES)
async def test_a_bad_reply_loses_nothing(memory: Recollection, reply: str) -> None:
    """The turn and the rules' statements are kept, the failure is reported, and a better reply completes them."""
    turn = draft("my dog is called Rex\nuser.city = Oslo", origin=moment(1))

    failed = await extract(memory, turn, scope=HOME, now=NOW, extractor=Scripted(reply))

    assert failed.failure
    assert len(failed.statements) == 1
    mended = await extract(memory, turn, scope=HOME, now=NOW, extractor=Scripted(GOOD_REPLY))
    assert [each.disposition for each in mended.statements] == ["duplicate", "added"]
    assert (await memory.timeline("dog", "name", scope=HOME))[0].extractor == "scripted-1"


async def test_items_and_statements_do_not_mix_scopes(memory: Recollection) -> None:
    """A document answers a recall of its own scope, with its history."""
    await Items(memory).put(PLACE, "pet", {"animal": "hedgehog"}, **FIXED)
    await memory.index_pending()

    answers = await memory.recall(question("hedgehog", include=Include.ALL))
    assert [each.assertion.subject for each in answers.answers] == ["pet"]
    assert await texts(memory, "hedgehog", scope=Scope(tenant_id="acme", namespace=("users", "8"))) == []
