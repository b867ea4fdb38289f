"""The first step of an erasure: the places of the messages that go, recorded before any of their words is removed.

From then on no analysis and no compaction that was made of those words is committed. They are found by a fold of the
journal outside the write lock, and recorded in batches.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from sqlalchemy import Connection

from threadmark.compaction.input.source import Position, Role
from threadmark.compaction.loading.thread_loader import Head, walk_heads
from threadmark.compaction.model.records import Compaction
from threadmark.compaction.store import erasures, orders, rows_ahead, views
from threadmark.state import Database, NotFound, Thread
from threadmark.state.threads.thread_numbers import lock_number, thread_numbers_of

__all__ = ["head_of", "record_places"]

#: Places that one commit records.
PLACE_COUNT = 200
#: How often they are looked for outside the write lock while the thread is forked or compacted; then under it.
LOOK_COUNT = 3


class _Standing(NamedTuple):
    """What a place can depend on: the branches and the views of the thread."""

    branch_count: int
    view_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    places: Mapping[Position, Role]
    standing: _Standing


async def record_places(database: Database, thread: int, seqs: frozenset[int]) -> Mapping[Position, Role]:
    """Record the messages of these entries, on every branch, and who spoke; returns them. Repeatable.

    The last commit also refuses those compactions whose rows are written ahead. Raises NotFound.
    """
    for _ in range(LOOK_COUNT):
        found = await database.read(partial(_find, thread=thread, seqs=seqs))
        places = list(found.places.items())
        for start in range(0, len(places), PLACE_COUNT):
            add = partial(_add, thread=thread, places=dict(places[start : start + PLACE_COUNT]))
            await database.write(add, repeatable=True)
        if await database.write(partial(_conclude, thread=thread, standing=found.standing), repeatable=True):
            return found.places
    return await database.write(partial(_find_and_add, thread=thread, seqs=seqs), repeatable=True)


def head_of(done: Compaction) -> Head:
    """The moment at which a compaction was made."""
    return Head(done.branch, done.head_seq)


def _find(connection: Connection, thread: int, seqs: frozenset[int]) -> _Found:
    found = thread_numbers_of(connection, thread)
    if found is None:
        raise NotFound("Thread", str(thread))
    done = orders.list_compactions(connection, thread, count_max=None)
    placed: dict[Position, Role] = {}
    touched = set(seqs)
    # A message that one of the entries wrote anew goes with its neighbours in the entry that brought it.
    for _, state in walk_heads(connection, thread, [head_of(each) for each in done if each.ordinal]):
        for message_id, place in state.places.items():
            placed[Position(place.seq, place.ordinal)] = Role(state.by_id[message_id].type)
            if place.written_seq in seqs:
                touched.add(place.seq)
    places = {position: role for position, role in placed.items() if position.seq in touched}
    return _Found(places=places, standing=_standing(connection, found))


def _standing(connection: Connection, thread: Thread) -> _Standing:
    return _Standing(thread.branch_count, views.read_current_view(connection, thread.number).version)


def _locked(connection: Connection, thread: int) -> Thread:
    found = lock_number(connection, thread)
    if found is None:
        raise NotFound("Thread", str(thread))
    return found


def _add(connection: Connection, thread: int, places: Mapping[Position, Role]) -> None:
    # Locked: a commit with erased words either precedes the search for them or is refused.
    _locked(connection, thread)
    erasures.add_erasures(connection, thread, places)


def _conclude(connection: Connection, thread: int, standing: _Standing) -> bool:
    """Whether the places are all: a new branch or a new ledger may show a message that no other one does."""
    if _standing(connection, _locked(connection, thread)) != standing:
        return False
    rows_ahead.condemn_ahead(connection, thread)
    return True


def _find_and_add(connection: Connection, thread: int, seqs: frozenset[int]) -> Mapping[Position, Role]:
    _locked(connection, thread)
    places = _find(connection, thread, seqs).places
    erasures.add_erasures(connection, thread, places)
    rows_ahead.condemn_ahead(connection, thread)
    return places
