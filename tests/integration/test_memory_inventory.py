"""S40: an export holds all that an erasure removes, by one list of tables. S41: what has expired leaves the disk."""

import json
from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, func, select

from tests.integration.test_memory_erasing import files_with
from tests.support.memory_house import CHANGE, HOME, NOW, draft, house, question, remembered
from threadmark.memory import EdgeIndex, Forget, Origin, Recollection, Refused, Scope, Selector, Trust, Which
from threadmark.memory.exports.archive import exported_tables
from threadmark.memory.store.job_tables import INVENTORY, METADATA, Keeps

TENANT = Scope(tenant_id="acme", namespace=())
PLACES = (
    "namespace", "thread", "run", "message", "actor", "hash", "quote", "text", "subject", "key", "value", "asserter",
    "extractor", "kind", "later", "second", "question", "asking", "asker", "reason", "stranger", "why",
)  # fmt: skip
PLACE = Scope(tenant_id="acme", namespace=("users", "word-namespace"))


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Recollection]:
    """The embedded set."""
    async with house(f"sqlite:///{tmp_path}/memory.db", EdgeIndex(tmp_path / "index")) as opened:
        yield opened


async def plant(memory: Recollection) -> set[str]:
    """A word of its own in each place that takes words of a caller; the words."""
    origin = Origin(
        thread_ref="word-thread", run_ref="word-run", seq=1, message_ref="word-message", actor="word-actor",
        at=NOW, content_hash="word-hash", char_from=0, char_to=4, quote="word-quote",
    )  # fmt: skip
    first = draft(
        "word-text", scope=PLACE, at=NOW - timedelta(days=9), subject="word-subject", attribute="city",
        value={"word-key": "word-value"},
        origin=origin, asserted_by="word-asserter", extractor="word-extractor", kind="word-kind",
    )  # fmt: skip
    later = draft("word-later", scope=PLACE, subject="word-subject", attribute="city", value="word-second")
    (verdict, _) = await remembered(memory, first, later, scope=PLACE)
    await memory.recall(question("word-question", scope=PLACE, thread_ref="word-asking", run_ref="word-asker"))
    await memory.retract(verdict.assertion_id, scope=PLACE, reason="word-reason", change=CHANGE)
    apart = Selector(actor="word-stranger")
    await memory.quarantine(apart, tenant_id="acme", reason="word-why", now=NOW)
    return {f"word-{each}" for each in PLACES}


def test_one_list_drives_export_and_erasure() -> None:
    """A table of content that no export reads fails here, and so does one that is in no list."""
    content = {name for name, keeps in INVENTORY.items() if keeps is Keeps.CONTENT}

    # Which attributes are single-valued is no word of anybody's, but without it the rows are not read as they were.
    assert set(exported_tables()) == content | {"memory_attribute"}


async def test_an_export_holds_all_that_an_erasure_removes(memory: Recollection, tmp_path: Path) -> None:
    """Every word of a caller, and every row; afterwards none of them is in any file."""
    words = await plant(memory)
    lines = await memory.export(scope=TENANT)
    whole = "\n".join(lines)
    assert {word for word in words if word not in whole} == set()
    assert {word for word in words if not files_with(tmp_path, word)} == set()

    erasure = await memory.erase(Forget(tenant=True), tenant_id="acme", now=NOW)

    kinds = Counter(json.loads(line)["kind"] for line in lines[1:])
    rows = {"assertion": "assertions", "evidence": "evidence", "succession": "successions", "recall": "recalls"}
    removed = {kind: erasure.counts[name] for kind, name in (rows | {"quarantine": "quarantines"}).items()}
    assert removed == {kind: count for kind, count in kinds.items() if kind != "attribute"}
    assert min(removed.values()) > 0
    assert {word for word in words if files_with(tmp_path, word)} == set()
    assert rows_left(tmp_path) == {}


def rows_left(folder: Path) -> dict[str, int]:
    """How many rows are left in the tables that keep somebody's words, where there are any."""
    engine = create_engine(f"sqlite:///{folder}/memory.db")
    with engine.connect() as connection:
        counts = {
            name: int(connection.scalar(select(func.count()).select_from(METADATA.tables[name])) or 0)
            for name, keeps in INVENTORY.items()
            if keeps is not Keeps.NOTHING
        }
    engine.dispose()
    return {name: count for name, count in counts.items() if count}


async def test_a_quarantine_goes_with_the_export(memory: Recollection, tmp_path: Path) -> None:
    """Where it is imported the source is kept apart as it was; a part of a tenant neither exports nor imports it."""
    await plant(memory)
    lines = await memory.export(scope=TENANT)
    assert not any('"quarantine"' in line for line in await memory.export(scope=PLACE))
    (tmp_path / "second").mkdir()

    async with house(f"sqlite:///{tmp_path}/second/memory.db") as second:
        await second.import_(lines, scope=TENANT)
        assert await second.export(scope=TENANT) == lines
        stranger = draft("new words", origin=Origin(message_ref="m", actor="word-stranger"))
        await second.remember([stranger], scope=HOME, now=NOW)
        assert await second.list(scope=HOME) == []
        assert len(await second.list(scope=HOME, which=Which.QUARANTINED)) == 1
        only = [lines[0], *(line for line in lines if '"kind":"quarantine"' in line)]
        assert len(only) == 2
        with pytest.raises(Refused, match="whole tenant"):
            await second.import_(only, scope=PLACE)


async def test_untrusted_words_leave_search_and_disk_after_their_time(memory: Recollection, tmp_path: Path) -> None:
    """S41: thirty days after they were stated they are not found, and the next sweep takes them off the disk."""
    await remembered(memory, draft("word-web", trust=Trust.WEB, asserted_by="fetch"))
    later = NOW + timedelta(days=30)

    async def found(now: Any) -> list[str]:
        answers = await memory.recall(question("word-web", now=now))
        return [each.assertion.text for each in answers.answers]

    assert await found(later - timedelta(seconds=1)) == ["word-web"]
    assert await found(later) == []
    assert await memory.sweep(now=later, recalls_before=later + timedelta(seconds=1)) == 1
    assert files_with(tmp_path, "word-web") == []


async def test_a_list_leaves_out_what_has_expired(memory: Recollection) -> None:
    """S41: not swept yet, no list shows it unless all is asked for."""
    verdicts = await remembered(
        memory, draft("lasts"), draft("over", expires_at=NOW + timedelta(hours=1)), now=NOW - timedelta(hours=2)
    )
    assert len(verdicts) == 2
    assert len(await memory.list(scope=HOME)) == 2

    memory._clock = lambda: NOW + timedelta(hours=1)

    assert [each.text for _, each in await memory.list(scope=HOME)] == ["lasts"]
    assert len(await memory.list(scope=HOME, which=Which.ALL)) == 2
