"""Verify: a journal that was touched by anybody but its holders says so, and one that was erased still verifies."""

from functools import partial
from typing import Any, Protocol

import pytest
from sqlalchemy import ColumnElement, Connection, delete, insert, select, text, update

from tests.conformance.store import Store
from tests.support.factories import asked, replied, returned
from threadmark.state import Damage, JournalDamaged, Thread, fold
from threadmark.state.entries.chain import payload_digest
from threadmark.state.tables import entry
from threadmark.state.tables import thread as thread_table


class Harm(Protocol):
    """Something done to the journal of a thread that no holder does."""

    def __call__(self, connection: Connection, number: int) -> object:
        """Do it to the thread of this number."""


async def a_journal(store: Store) -> Thread:
    """A thread with six entries: two of the beginning, and four."""
    claimed, writer = await store.begun("hello")
    await store.put(writer, replied(asked()), returned("tool-1-0", "secret"), replied(ordinal=2), replied(ordinal=3))
    assert await store.journal.verify(claimed.thread) == []
    return claimed.thread


def at(number: int, seq: int) -> ColumnElement[bool]:
    return (entry.c.thread == number) & (entry.c.seq == seq)


def setting(seq: int, **values: Any) -> Harm:
    """Write over columns of one entry."""
    return lambda connection, number: connection.execute(update(entry).where(at(number, seq)).values(**values))


def removing(*seqs: int) -> Harm:
    """Take entries out."""
    chosen = entry.c.seq.in_(seqs)
    return lambda connection, number: connection.execute(delete(entry).where(entry.c.thread == number, chosen))


def swapping(connection: Connection, number: int) -> None:
    """Let two entries change places."""
    for before, after in ((3, 99), (4, 3), (99, 4)):
        connection.execute(update(entry).where(at(number, before)).values(seq=after))


def copying(connection: Connection, number: int) -> None:
    """Append a copy of the last entry."""
    row = dict(connection.execute(select(entry).where(at(number, 6))).one()._mapping)
    del row["number"]
    connection.execute(insert(entry), {**row, "seq": 7})


def truncating(connection: Connection, number: int) -> None:
    """Take the last entry out and let the head say that there was none."""
    removing(6)(connection, number)
    connection.execute(update(thread_table).where(thread_table.c.number == number).values(head_seq=5))


def beheading(connection: Connection, number: int) -> None:
    """Write another head."""
    values = {"head_digest": bytes(32)}
    connection.execute(update(thread_table).where(thread_table.c.number == number).values(**values))


def editing_as_text(connection: Connection, number: int) -> None:
    """Edit a payload as a person at a database's prompt does, whatever type that leaves behind."""
    if connection.dialect.name == "sqlite":
        statement = "UPDATE entry SET payload = replace(payload, 'secret', 'public') WHERE thread = :number AND seq = 4"
    else:
        statement = (
            "UPDATE entry SET payload = convert_to(replace(convert_from(payload, 'UTF8'), 'secret', 'public'), 'UTF8')"
            " WHERE thread = :number AND seq = 4"
        )
    connection.execute(text(statement), {"number": number})


def rechaining(connection: Connection, number: int) -> None:
    """Edit a payload and its own digest to match: the next entry still tells."""
    from threadmark.state.entries.chain import link

    rows = connection.execute(select(entry).where(entry.c.thread == number).order_by(entry.c.seq)).all()
    row, payload = rows[3], b'{"edited":true}'
    digest = link(
        rows[2].digest,
        thread_id=connection.execute(
            select(thread_table.c.thread_id).where(thread_table.c.number == number)
        ).scalar_one(),
        seq=row.seq,
        branch=row.branch,
        run=row.run,
        fence=row.fence,
        at_us=row.at,
        kind=row.kind,
        payload=payload_digest(row.salt, payload),
    )
    setting(4, payload=payload, digest=digest)(connection, number)


#: What is done to the journal, and the seq at which that shows first.
HARMS: dict[str, tuple[Harm, int]] = {
    "a payload": (setting(4, payload=b"{}"), 4),
    "a payload edited as text": (editing_as_text, 4),
    "a payload taken away": (setting(4, payload=None), 4),
    "a salt": (setting(4, salt=b"x"), 4),
    "a salt taken away": (setting(4, salt=None), 4),
    "a kind": (setting(4, kind="model_replied"), 4),
    "a branch": (setting(4, branch=1), 4),
    "a run": (setting(4, run=None), 4),
    "a fence": (setting(4, fence=9), 4),
    "an instant": (setting(4, at=9), 4),
    "a digest": (setting(4, digest=bytes(32)), 4),
    "a payload and its digest": (rechaining, 5),
    "the first removed": (removing(1), 1),
    "one removed": (removing(3), 3),
    "three removed": (removing(3, 4, 5), 3),
    "the last removed": (removing(6), 6),
    "all removed": (removing(1, 2, 3, 4, 5, 6), 1),
    "the last removed and the head moved back": (truncating, 5),
    "the head": (beheading, 6),
    "two swapped": (swapping, 3),
    "one added": (copying, 7),
}


async def test_each_kind_of_damage_is_found_where_it_begins(store: Store) -> None:
    """Edits, removals, additions, reorderings, and a cut tail: the head is stored apart from the entries (F29)."""
    found: dict[str, int | None] = {}
    for name, (harm, _) in HARMS.items():
        thread = await a_journal(store)
        await store.write(partial(harm, number=thread.number))
        damages = await store.journal.verify(thread)
        found[name] = damages[0].seq if damages else None

    assert found == {name: seq for name, (_, seq) in HARMS.items()}


async def test_damage_of_one_thread_is_not_that_of_another(store: Store) -> None:
    """Each thread has a chain of its own."""
    thread, other = await a_journal(store), await a_journal(store)
    await store.write(lambda connection: setting(4, payload=b"{}")(connection, thread.number))

    assert await store.journal.verify(other) == []


async def test_an_erased_payload_leaves_a_chain_that_verifies(store: Store) -> None:
    """Its digest is kept in its place, its salt is gone, so what it said cannot be guessed; the rest is as it was."""
    thread = await a_journal(store)

    def erase(connection: Connection) -> None:
        row = connection.execute(select(entry).where(at(thread.number, 4))).one()
        erased = payload_digest(row.salt, row.payload)
        setting(4, payload=None, salt=None, erased=erased)(connection, thread.number)

    await store.write(erase)

    assert await store.journal.verify(thread) == []
    assert [each.seq for each in await store.entries(thread.number)] == [1, 2, 3, 5, 6]


async def test_an_erasure_that_was_forged_is_found(store: Store) -> None:
    """A digest of something else in the place of the payload does not verify."""
    thread = await a_journal(store)
    forged = setting(4, payload=None, salt=None, erased=bytes(32))
    await store.write(lambda connection: forged(connection, thread.number))

    assert [damage.seq for damage in await store.journal.verify(thread)] == [4]


async def test_a_deleted_thread_cannot_be_verified(store: Store) -> None:
    """It is gone, and that is no clean bill."""
    thread = await a_journal(store)
    await store.delete(thread.thread_id)

    with pytest.raises(JournalDamaged):
        await store.journal.verify(thread)


async def test_a_journal_of_thousands_verifies_in_one_read(store: Store) -> None:
    """Whatever its length."""
    claimed, writer = await store.begun()
    await store.put(writer, *(replied(ordinal=number) for number in range(2_000)))
    before = store.database.read_count

    assert await store.journal.verify(claimed.thread) == []
    assert store.database.read_count - before == 1


async def test_a_fold_does_not_meet_an_edited_payload_in_silence(store: Store) -> None:
    """A payload that is no entry of its kind is an error; one that reads well is what `verify` is for."""
    thread = await a_journal(store)
    await store.write(lambda connection: setting(4, payload=b"{}")(connection, thread.number))

    with pytest.raises(Exception, match="step_key"):
        fold(await store.entries(thread.number))
    assert Damage(4, "its content is not what was recorded, or an entry before it changed") in (
        await store.journal.verify(thread)
    )
