"""Erasure leaves nothing but ids; export gives what erasure would take; an import brings nothing erased back."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import create_engine, inspect, text

from tests.integration.test_memory_recall import Broken
from tests.support.memory_house import CHANGE, HOME, NOW, city, draft, house, moment, question, remembered, texts
from threadmark.memory import (
    TURN,
    EdgeIndex,
    Forget,
    Origin,
    Recollection,
    Refused,
    Scope,
    Selector,
    UnknownJob,
    migrate,
)
from threadmark.memory.migrations import current_revision, head_revision, schema_gap
from threadmark.memory.store.job_tables import INVENTORY, METADATA

SECRET = "xylophone-7781"
TENANT = Scope(tenant_id="acme", namespace=())


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Recollection]:
    """The embedded set."""
    async with house(f"sqlite:///{tmp_path}/memory.db", EdgeIndex(tmp_path / "index")) as opened:
        yield opened


def files_with(folder: Path, text: str) -> list[str]:
    """The files below a folder that hold a text in any encoding that is used here."""
    spellings = [text.encode(), text.encode("utf-16-le")]
    return [
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and any(each in path.read_bytes() for each in spellings)
    ]


async def plant(memory: Recollection) -> None:
    """The secret, everywhere it can get to."""
    await remembered(
        memory,
        draft("good morning", kind=TURN, origin=moment(1, actor="Ada"), at=NOW),
        draft(f"my code is {SECRET}", kind=TURN, origin=moment(2, actor="Ada"), at=NOW),
        draft("noted", kind=TURN, origin=moment(3, actor="Bob"), at=NOW),
        city(SECRET, origin=moment(2), at=NOW - timedelta(days=9)),
    )
    await remembered(memory, city(f"{SECRET} by the sea", origin=moment(2)))
    await memory.recall(question(f"what about {SECRET}?", run_ref="run-1", thread_ref="thread-1"))


@pytest.mark.parametrize(
    "what",
    [
        Forget(source=Selector(thread_ref="thread-1")),
        Forget(source=Selector(message_ref="message-2")),
        Forget(namespace=("users",)),
        Forget(tenant=True),
    ],
    ids=["thread", "message", "namespace", "tenant"],
)
async def test_an_erased_text_is_nowhere(memory: Recollection, tmp_path: Path, what: Forget) -> None:
    """Not in the database, its log, the index, or the log of recalls; the index agrees with what is left."""
    other = Scope(tenant_id="other", namespace=("users", "7"))
    await remembered(memory, draft("something else", scope=other), scope=other)
    await plant(memory)
    assert files_with(tmp_path, SECRET)
    preview = await memory.erase(what, tenant_id="acme", now=NOW, dry_run=True)

    erasure = await memory.erase(what, tenant_id="acme", now=NOW)

    assert erasure.is_done
    assert erasure.counts["assertions"] == preview.counts["assertions"] == erasure.counts["entries"] > 0
    assert erasure.counts["evidence"] == preview.counts["evidence"] > 0
    assert files_with(tmp_path, SECRET) == []
    assert (await memory.verify()).agrees
    assert await memory.recalls("run-1", tenant_id="acme") == []
    assert await texts(memory, "something else", scope=other) == ["something else"]
    again = await memory.erase(what, tenant_id="acme", now=NOW)
    assert again.counts.get("assertions", 0) == 0


async def test_the_turn_after_an_erased_one_is_found_by_its_own_words(memory: Recollection) -> None:
    """The words of the turn before it leave its context field."""
    await plant(memory)

    await memory.erase(Forget(source=Selector(message_ref="message-2")), tenant_id="acme", now=NOW)

    assert set(await texts(memory, "noted")) == {"noted", "good morning"}
    assert (await memory.recall(question(SECRET.split("-", maxsplit=1)[0]))).answers[0].because.keys() <= {
        "dense",
        "conversation",
    }


async def test_a_person_is_erased_as_subject_and_as_speaker(memory: Recollection) -> None:
    """What is about them and what they said; others stay."""
    ada = {"subject": "Ada", "attribute": "pet", "value": "cat"}
    await remembered(
        memory,
        draft("Ada has a cat", origin=Origin(message_ref="1"), **ada),  # type: ignore[arg-type]
        draft("I said this", origin=Origin(message_ref="2", actor="Ada")),
        draft("Bob said that", origin=Origin(message_ref="3", actor="Bob")),
    )

    erasure = await memory.erase(Forget(subject="Ada"), tenant_id="acme", now=NOW)

    assert erasure.counts["assertions"] == 2
    assert await texts(memory, "said cat") == ["Bob said that"]


async def test_the_raw_turn_of_an_erased_fact_goes_with_it(memory: Recollection, tmp_path: Path) -> None:
    """Erased by subject: the words of the message that said it are kept as a turn too, which names nobody."""
    await remembered(
        memory,
        draft(f"my sister moved to {SECRET}", kind=TURN, origin=moment(2, actor="Bob"), at=NOW),
        draft("and now for something else", kind=TURN, origin=moment(3, actor="Bob"), at=NOW),
        city(SECRET, origin=moment(2, actor="Bob")),
    )
    subject = Forget(subject=str(city(SECRET).subject))
    preview = await memory.erase(subject, tenant_id="acme", now=NOW, dry_run=True)

    erasure = await memory.erase(subject, tenant_id="acme", now=NOW)

    assert erasure.counts["assertions"] == preview.counts["assertions"] == 2
    assert files_with(tmp_path, SECRET) == []
    assert await texts(memory, "something else?") == ["and now for something else"]


async def test_an_erasure_that_was_interrupted_is_taken_up(tmp_path: Path) -> None:
    """With the index down the database is erased at once, recall tells nothing, and the job ends after it is back."""
    url = f"sqlite:///{tmp_path}/memory.db"
    index = Broken()
    async with house(url, index) as memory:
        await plant(memory)
        index.is_down = True

        erasure = await memory.erase(Forget(tenant=True), tenant_id="acme", now=NOW)

        assert not erasure.is_done
        assert await texts(memory, "code") == []
        index.is_down = False
        done = await memory.resume_erasure(erasure.erasure_id, tenant_id="acme", now=NOW)
        assert done.is_done
        assert (await memory.verify()).agrees
        with pytest.raises(UnknownJob):
            await memory.resume_erasure(erasure.erasure_id, tenant_id="other", now=NOW)


async def test_what_has_expired_is_swept_from_the_disk(memory: Recollection, tmp_path: Path) -> None:
    """Its rows, its entries and old recalls go; what was confirmed or has time left stays."""
    (first,) = await remembered(memory, draft(f"code {SECRET}", expires_at=NOW + timedelta(hours=1)))
    await remembered(memory, draft("lasts longer", expires_at=NOW + timedelta(days=3)))
    (third,) = await remembered(memory, draft("confirmed", expires_at=NOW + timedelta(hours=1)))
    await memory.approve(third.assertion_id, scope=HOME, change=CHANGE)
    await memory.recall(question("code", run_ref="run-1"))
    later = NOW + timedelta(days=1)

    count = await memory.sweep(now=later, recalls_before=later)

    assert count == 1
    assert [each.text for _, each in await memory.list(scope=HOME)] == ["lasts longer", "confirmed"]
    assert files_with(tmp_path, SECRET) == []
    assert (await memory.verify()).agrees
    assert await memory.recalls("run-1", tenant_id="acme") == []
    assert await memory.sweep(now=later, recalls_before=later) == 0
    assert first.assertion_id != third.assertion_id


def test_a_selector_names_one_thing() -> None:
    """Nothing named, or two things, or an empty one, is refused."""
    for given in ({}, {"tenant": True, "subject": "x"}, {"namespace": ()}, {"source": Selector()}, {"subject": " "}):
        with pytest.raises(Refused):
            Forget(**given)


async def test_an_export_comes_back_equal(memory: Recollection, tmp_path: Path) -> None:
    """Exported, imported into an empty database and exported again: the same bytes, the same answers."""
    await plant(memory)
    (verdict,) = await remembered(memory, draft("likes tea"))
    await memory.retract(verdict.assertion_id, scope=HOME, reason="no", change=CHANGE)
    lines = await memory.export(scope=TENANT)
    (tmp_path / "second").mkdir()

    async with house(f"sqlite:///{tmp_path}/second/memory.db") as second:
        imported = await second.import_(lines, scope=TENANT)
        await second.index_pending()

        assert imported.added["assertion"] == 7
        assert await second.export(scope=TENANT) == lines
        assert await texts(second, "which city?") == await texts(memory, "which city?")
        again = await second.import_(lines, scope=TENANT)
        assert (dict(again.added), again.known["assertion"]) == ({}, 7)


async def test_an_import_brings_nothing_erased_back(memory: Recollection) -> None:
    """What has a tombstone is counted and left out, with all that hangs on it."""
    await plant(memory)
    lines = await memory.export(scope=TENANT)
    await memory.erase(Forget(source=Selector(thread_ref="thread-1")), tenant_id="acme", now=NOW)

    imported = await memory.import_(lines, scope=TENANT)

    assert imported.added == {}
    assert imported.erased > 0
    assert await texts(memory, "code city") == []


async def test_what_is_no_export_is_refused_whole(memory: Recollection) -> None:
    """Another format, a broken line, a foreign namespace: nothing is kept."""
    await remembered(memory, draft("likes tea"))
    lines = list(await memory.export(scope=TENANT))
    narrow = Scope(tenant_id="acme", namespace=("users", "8"))
    for bad, scope in (
        (["{}"], TENANT),
        ([lines[0], "{"], TENANT),
        ([lines[0], '{"kind": "assertion", "row": {}}'], TENANT),
        (lines, narrow),
        (lines, Scope(tenant_id="other", namespace=())),
    ):
        with pytest.raises(Refused):
            await memory.import_(bad, scope=scope)

    assert len(await memory.list(scope=TENANT)) == 1
    assert await memory.list(scope=Scope(tenant_id="other", namespace=())) == []


def test_every_table_is_in_the_inventory(tmp_path: Path) -> None:
    """A table that is forgotten here would be forgotten by erasure and export; the migrations make exactly these."""
    url = f"sqlite:///{tmp_path}/memory.db"
    migrate(url)
    made = set(inspect(create_engine(url)).get_table_names()) - {"memory_alembic_version", "sqlite_sequence"}

    assert made == set(METADATA.tables) == set(INVENTORY)


def test_a_schema_that_a_newer_version_brought_is_gone_on_with(tmp_path: Path) -> None:
    """A process of the version before, started again in the middle of a deploy, neither waits nor changes anything."""
    url = f"sqlite:///{tmp_path}/memory.db"
    migrate(url)
    with create_engine(url).begin() as connection:
        connection.execute(text("UPDATE memory_alembic_version SET version_num = '9999'"))

    migrate(url)

    assert current_revision(url) == "9999"
    assert schema_gap(url) is None


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_migrations_go_up_and_down(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """From nothing to the newest, back, and up again."""
    url = f"sqlite:///{tmp_path}/memory.db" if kind == "sqlite" else request.getfixturevalue("postgres_url")
    for revision, then in (("head", head_revision()), ("base", None), ("head", head_revision())):
        migrate(url, revision)
        assert current_revision(url) == then
