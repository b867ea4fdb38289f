"""The few statements that the two databases spell differently."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite

__all__ = ["insert_new"]


def insert_new(connection: Connection, table: Table, values: Mapping[str, Any]) -> bool:
    """Insert a row unless one with its key is there; whether it was inserted.

    On PostgreSQL this waits for a transaction that is inserting the same key.
    """
    dialect = sqlite if connection.dialect.name == "sqlite" else postgresql
    return connection.execute(dialect.insert(table).on_conflict_do_nothing(), dict(values)).rowcount == 1
