"""The few things that the two databases spell differently."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import BigInteger, Boolean, Connection, Row, String, Table, any_, func, literal_column, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

__all__ = ["ANSWERED", "APPROVAL", "OPEN", "PENDING", "RUNNING", "any_of", "greatest", "insert_all_new", "insert_new"]

# Written into statements, and not bound: PostgreSQL keeps one plan for all values of what is bound, and such a plan
# cannot use an index on the rows of one status (WHERE status = 'pending'). It reads the whole table, more every day.
PENDING = literal_column("'pending'", String())
RUNNING = literal_column("'running'", String())
OPEN = literal_column("'open'", String())
ANSWERED = literal_column("'answered'", String())
APPROVAL = literal_column("'approval'", String())


class greatest(FunctionElement[int]):
    """The largest of its arguments."""

    type = BigInteger()
    inherit_cache = True


@compiles(greatest, "sqlite")
def _sqlite_greatest(element: Any, compiler: Any, **options: Any) -> str:
    return f"max({compiler.process(element.clauses, **options)})"


@compiles(greatest, "postgresql")
def _postgresql_greatest(element: Any, compiler: Any, **options: Any) -> str:
    return f"greatest({compiler.process(element.clauses, **options)})"


class any_of(FunctionElement[bool]):
    """Whether a column (the first argument) is one of the values in a list that is bound as one (the second).

    One text for lists of every length, so one plan; on SQLite the list is bound as JSON.
    """

    type = Boolean()
    inherit_cache = True


@compiles(any_of, "sqlite")
def _sqlite_any_of(element: Any, compiler: Any, **options: Any) -> str:
    column, values = element.clauses
    listed = select(literal_column("value", column.type)).select_from(func.json_each(values))
    return str(compiler.process(column.in_(listed), **options))


@compiles(any_of, "postgresql")
def _postgresql_any_of(element: Any, compiler: Any, **options: Any) -> str:
    column, values = element.clauses
    return str(compiler.process(column == any_(values), **options))


def insert_new(connection: Connection, table: Table, values: Mapping[str, Any]) -> Row[Any] | None:
    """Insert a row unless one with its key is there; the new row, or None.

    On PostgreSQL this waits for a transaction that is inserting the same key.
    """
    dialect = sqlite if connection.dialect.name == "sqlite" else postgresql
    statement = dialect.insert(table).on_conflict_do_nothing().returning(table)
    return connection.execute(statement, dict(values)).one_or_none()


def insert_all_new(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert the rows whose keys are not there."""
    dialect = sqlite if connection.dialect.name == "sqlite" else postgresql
    if rows:
        connection.execute(dialect.insert(table).on_conflict_do_nothing(), [dict(each) for each in rows])
