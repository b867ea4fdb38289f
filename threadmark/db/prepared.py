"""Statements that are compiled once and spoken to the driver.

The toolkit looks a statement up, binds, wraps and unwraps at every execution; on the path of every turn that costs more
than what the statement does. What is spoken here belongs to the transaction that the connection is in, and its errors
are the driver's own.
"""

import json
from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Dialect, Executable
from sqlalchemy.dialects import sqlite
from sqlalchemy.sql import ClauseElement
from sqlalchemy.sql.compiler import SQLCompiler

__all__ = ["Prepared", "row_maker"]


def row_maker(names: Sequence[str]) -> Callable[[Iterable[Any]], Any]:
    """What makes rows with these columns as attributes."""
    made: Any = namedtuple("Row", names)  # type: ignore[misc] # the names are known when the tables are
    make: Callable[[Iterable[Any]], Any] = made._make
    return make


class Prepared:
    """One statement; its text for each database is made when it is first run there."""

    def __init__(self, statement: Executable, *, columns: Sequence[str] | None = None) -> None:
        """`columns` are those that an INSERT of values fills."""
        self._statement = statement
        self._columns = columns
        self._texts: dict[str, tuple[str, dict[str, Any]]] = {}
        self._row: Callable[[Iterable[Any]], Any] | None = None

    def all(self, connection: Connection, values: Mapping[str, Any]) -> list[Any]:
        """The rows, with the columns as attributes."""
        cursor = self._run(connection, values)
        rows = cursor.fetchall()
        if rows and self._row is None:
            self._row = row_maker([each[0] for each in cursor.description])
        cursor.close()
        return [] if self._row is None else list(map(self._row, rows))

    def first(self, connection: Connection, values: Mapping[str, Any]) -> Any | None:
        """The first row, or None."""
        return next(iter(self.all(connection, values)), None)

    def tuples(self, connection: Connection, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """The rows as they come: for statements that return two tables side by side."""
        cursor = self._run(connection, values)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        cursor.close()
        return rows

    def count(self, connection: Connection, values: Mapping[str, Any]) -> int:
        """How many rows it changed."""
        cursor = self._run(connection, values)
        changed = int(cursor.rowcount)
        cursor.close()
        return changed

    def text(self, dialect: Dialect) -> str:
        """What is spoken to a database of this dialect."""
        return (self._texts.get(dialect.name) or self._compile(dialect))[0]

    def _run(self, connection: Connection, values: Mapping[str, Any]) -> Any:
        dialect = connection.dialect
        text, constants = self._texts.get(dialect.name) or self._compile(dialect)
        bound = {**constants, **values}
        if dialect.name == "sqlite":
            bound = {name: json.dumps(each) if isinstance(each, list) else each for name, each in bound.items()}
        driver: Any = connection.connection.driver_connection
        cursor = driver.cursor()
        cursor.execute(text, bound)
        return cursor

    def _compile(self, dialect: Dialect) -> tuple[str, dict[str, Any]]:
        if not isinstance(self._statement, ClauseElement):
            raise TypeError(f"{type(self._statement).__name__} has no text")
        compiled = self._statement.compile(
            # Parameters by name on both.
            dialect=sqlite.dialect(paramstyle="named") if dialect.name == "sqlite" else dialect,
            column_keys=None if self._columns is None else list(self._columns),
        )
        if not isinstance(compiled, SQLCompiler):
            raise TypeError(f"{type(compiled).__name__} binds no values")
        constants = {name: bind.value for name, bind in compiled.binds.items() if not bind.required}
        made = self._texts[dialect.name] = compiled.string, constants
        return made
