"""How a writer applies what was queued: units one by one, other works many at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sqlalchemy import Connection, RootTransaction
from sqlalchemy.exc import DBAPIError

from threadmark.db.execution.queued_write import QueuedWrite, groups

__all__ = ["Attempt", "Batching", "Transactions"]


class Batching(Protocol):
    """Writes many works of one kind by one statement; each function returns their results in order."""

    def apply(self, connection: Connection, works: Sequence[Any]) -> Sequence[Any]:
        """Write them inside the connection's transaction."""
        ...

    def commit(self, connection: Connection, works: Sequence[Any]) -> Sequence[Any]:
        """Write and commit them in a transaction of their own."""
        ...


@dataclass(slots=True)
class Attempt:
    """A transaction that is tried; once it `is_committing`, a lost connection leaves its outcome unknown."""

    is_committing: bool = False


class Transactions:
    """Of one writer; see `threadmark.db.execution.writer.Writer`."""

    def __init__(self, batching: Batching | None, *, savepoints: bool) -> None:
        self._batching = batching
        self._savepoints = savepoints

    def begin(self, connection: Connection) -> RootTransaction:
        """A transaction for units, also where the connection's last commit was a `Batching`'s own."""
        driver: Any = connection.connection.driver_connection
        if connection.dialect.name != "sqlite" and driver.autocommit:
            driver.autocommit = False
        return connection.begin()

    def commit(self, connection: Connection, batch: Sequence[QueuedWrite], attempt: Attempt) -> None:
        """Apply and commit the batch in one transaction; a batch without units commits in the batching's own."""
        if not any(item.is_unit for item in batch):
            attempt.is_committing = True
            _answer(batch, self._batches.commit(connection, [item.work for item in batch]))
            return
        with self.begin(connection) as transaction:
            for group in groups(batch):
                self._apply(connection, group)
            attempt.is_committing = True
            transaction.commit()

    def _apply(self, connection: Connection, group: Sequence[QueuedWrite]) -> None:
        """Apply one unit, or a group of works that are none, inside the connection's transaction.

        With savepoints, a unit's own error is its result; an error of the driver is always raised.
        """
        first = group[0]
        if not callable(first.work):
            _answer(group, self._batches.apply(connection, [item.work for item in group]))
        elif not self._savepoints:
            first.result = first.work(connection)
        else:
            try:
                with connection.begin_nested():
                    first.result = first.work(connection)
            except DBAPIError:
                raise
            except Exception as error:
                first.error = error

    @property
    def _batches(self) -> Batching:
        if self._batching is None:
            raise TypeError("this writer writes units alone")
        return self._batching


def _answer(group: Sequence[QueuedWrite], results: Sequence[Any]) -> None:
    for item, result in zip(group, results, strict=True):
        item.result = result
