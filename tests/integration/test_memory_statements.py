"""C70: what a caller writes, key or value, never becomes a part of a statement."""

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Engine, event

from tests.support.memory_house import HOME, NOW, draft, house, question, remembered
from threadmark.memory import Change, FilterRefused, Items, Recollection, Scope, parse_filter

HOSTILE = ("a') OR 1=1 --", "a.b", "$.x", '"', "\\", "%", "_", "[0]", "x' UNION SELECT text FROM memory_assertion --")
FOREIGN = Scope(tenant_id="other", namespace=HOME.namespace)


@pytest.fixture(params=["sqlite", "postgresql"])
async def memory(request: pytest.FixtureRequest, tmp_path: object) -> AsyncIterator[Recollection]:
    """Both databases, with words of two tenants."""
    url = f"sqlite:///{tmp_path}/memory.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    async with house(url) as opened:
        for scope in (HOME, FOREIGN):
            await remembered(opened, draft(f"kayak of {scope.tenant_id}", scope=scope), scope=scope)
            document = {"x": 1, "of": scope.tenant_id}
            await Items(opened).put(scope.namespace, "k", document, tenant_id=scope.tenant_id, now=NOW)
        await opened.index_pending()
        yield opened


@contextmanager
def statements() -> Iterator[set[str]]:
    """The texts of all statements that are sent meanwhile, without those that only begin and end a transaction."""
    seen: set[str] = set()

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        # The log of recalls is written in the background, at any moment, in transactions and savepoints of its own.
        if "memory_recall" not in statement and not re.match(r"BEGIN|(RELEASE )?SAVEPOINT|ROLLBACK", statement):
            seen.add(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(Engine, "before_cursor_execute", note)


async def ask_everything(memory: Recollection, text: str) -> list[str]:
    """Put one text wherever a value may be; the tenants of all that was found."""
    found = []
    below = Scope(tenant_id="acme", namespace=(*HOME.namespace, text))
    for name in ("kind", "subject", "attribute", "actor", "thread_ref", "run_ref"):
        chosen = parse_filter({name: text})
        found += [each for _, each in await memory.list(scope=HOME, given=chosen)]
        answers = await memory.recall(question("kayak", filter=chosen, thread_ref=text, run_ref=text))
        found += [each.assertion for each in answers.answers]
    found += [each for _, each in await memory.list(scope=below)]
    found += await memory.timeline(text, text, scope=HOME)
    found += await memory.held_at(text, text, scope=HOME, valid_at=NOW)
    assert await Items(memory).get(HOME.namespace, text, tenant_id="acme", now=NOW) is None
    assert not await Items(memory).delete(HOME.namespace, text, tenant_id="acme", change=Change(by="x", now=NOW))
    return [each.tenant_id for each in found]


async def test_a_statement_is_the_same_whatever_is_asked(memory: Recollection) -> None:
    """A hostile value finds nothing, and the texts of the statements are those of a plain value."""
    with statements() as plain:
        assert await ask_everything(memory, "plain") == []
    assert len(plain) > 5

    for text in HOSTILE:
        with statements() as seen:
            assert await ask_everything(memory, text) == []
        assert seen == plain


@pytest.mark.parametrize("key", [*HOSTILE, "", "a\0", "tenant_id", "namespace", "number"], ids=repr)
async def test_a_key_is_known_or_refused(memory: Recollection, key: str) -> None:
    """A filter of memories knows its keys; a filter of documents compares them and sends none to the database."""
    with pytest.raises(FilterRefused):
        parse_filter({key: "x"})
    with pytest.raises(FilterRefused):
        parse_filter({"kind": "fact", key: "x"})

    items = Items(memory)
    with statements() as plain:
        (mine,) = await items.search((), tenant_id="acme", now=NOW, given={"x": 1})
    assert mine.value["of"] == "acme"
    with statements() as seen:
        assert await items.search((), tenant_id="acme", now=NOW, given={key: 1}) == []
        assert await items.search((), tenant_id="acme", now=NOW, given={key: {"$gte": 0}}) == []
    assert seen == plain


async def test_many_keys_are_refused_and_a_deep_value_is_a_value(memory: Recollection) -> None:
    """A thousand conditions, and a value nested two hundred deep."""
    deep: Any = 1
    for _ in range(200):
        deep = {"deeper": deep}
    many = {f"key {number}": 1 for number in range(1_000)}

    for given in (many, {"kind": deep}):
        with pytest.raises(FilterRefused):
            parse_filter(given)
    with pytest.raises(FilterRefused):
        await Items(memory).search((), tenant_id="acme", now=NOW, given=many)
    assert await Items(memory).search((), tenant_id="acme", now=NOW, given={"x": deep}) == []
