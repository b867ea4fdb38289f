"""Inserting what may be there already, as the two databases spell it."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Row, Table
from sqlalchemy.dialects import postgresql, sqlite

__all__ = ["insert_new"]


def insert_new(connection: Connection, table: Table, values: Mapping[str, Any]) -> Row[Any] | None:
    """Insert a row unless one with its key is there; the new row, or None.

    On PostgreSQL this waits for a transaction that is inserting the same key.
    """
    dialect = sqlite if connection.dialect.name == "sqlite" else postgresql
    statement = dialect.insert(table).on_conflict_do_nothing().returning(table)
    return connection.execute(statement, dict(values)).one_or_none()
