"""How columns of compaction's tables are declared."""

from typing import Any

from sqlalchemy import BigInteger, Column, Integer, LargeBinary, MetaData, Text, text
from sqlmodel import Field, SQLModel

__all__ = ["BIG", "METADATA", "Row", "big", "count", "document", "long_text", "thread_key"]

METADATA = MetaData()
BIG = BigInteger().with_variant(Integer, "sqlite")


class Row(SQLModel):
    """Base of all rows of compaction."""

    metadata = METADATA


def big(default: int | None = 0) -> Any:
    """A whole number of 64 bits; one that may be missing has the default None."""
    return Field(default=default, sa_column=Column(BIG, nullable=default is None, default=default))


def count() -> Any:
    """A count that is 0 where a version before inserted the row without it."""
    return Field(default=0, sa_column=Column(BIG, nullable=False, default=0, server_default=text("0")))


def thread_key() -> Any:
    """The number of a thread as a key, or the first part of one."""
    return Field(sa_column=Column(BIG, primary_key=True, autoincrement=False))


def long_text() -> Any:
    """A text without a bound."""
    return Field(sa_column=Column(Text, nullable=False))


def document(*, nullable: bool = False) -> Any:
    """JSON in bytes."""
    return Field(default=None, sa_column=Column(LargeBinary, nullable=nullable))
