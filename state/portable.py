"""The few things that the two databases spell differently."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import BigInteger, BindParameter, Connection, Row, String, Table, literal
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

__all__ = ["fixed", "greatest", "insert_new"]


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


def fixed(value: str) -> BindParameter[str]:
    """A constant, written into the statement and not bound.

    PostgreSQL keeps one plan for all values of what is bound, and such a plan cannot use an index on the rows of one
    status (`WHERE status = 'pending'`): it reads the whole table instead, and more of it every day.
    """
    return literal(value, String(), literal_execute=True)


def insert_new(connection: Connection, table: Table, values: Mapping[str, Any]) -> Row[Any] | None:
    """Insert a row unless one with its key is there; the new row, or None.

    On PostgreSQL this waits for a transaction that is inserting the same key.
    """
    dialect = sqlite if connection.dialect.name == "sqlite" else postgresql
    statement = dialect.insert(table).on_conflict_do_nothing().returning(table)
    return connection.execute(statement, dict(values)).one_or_none()
