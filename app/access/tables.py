"""The rows of access. Private to the package; they live in the state database and refer to nothing in it."""

from typing import Any, cast

from sqlalchemy import BigInteger, Column, Index, Integer, LargeBinary, MetaData, Table, Text
from sqlmodel import Field, SQLModel

__all__ = ["METADATA", "api_key", "server_secret"]

METADATA = MetaData()
_BIG = BigInteger().with_variant(Integer, "sqlite")


def _instant() -> Any:
    return Field(default=None, sa_column=Column(_BIG))


class Row(SQLModel):
    """Base of all rows of access."""

    metadata = METADATA


class ApiKeyRow(Row, table=True):
    """A key. Instants are epoch microseconds; `scopes` are names with a space between them."""

    __tablename__ = "api_key"
    __table_args__ = (Index("api_key_by_tenant", "tenant_id", "number"), {"sqlite_autoincrement": True})
    number: int = Field(default=None, sa_column=Column(_BIG, primary_key=True, autoincrement=True))
    key_id: str = Field(unique=True)
    tenant_id: str
    label: str = Field(sa_column=Column(Text, nullable=False))
    scopes: str
    secret_digest: bytes = Field(sa_column=Column(LargeBinary, nullable=False))
    created_at: int = Field(sa_column=Column(_BIG, nullable=False))
    expires_at: int | None = _instant()
    revoked_at: int | None = _instant()
    last_used_at: int | None = _instant()


class ServerSecretRow(Row, table=True):
    """A secret that all processes of the deployment share. It seals cursors; it opens no key."""

    __tablename__ = "server_secret"
    name: str = Field(primary_key=True)
    value: bytes = Field(sa_column=Column(LargeBinary, nullable=False))


def _table(row: type[SQLModel]) -> Table:
    return cast(Table, getattr(row, "__table__"))  # noqa: B009 - the attribute is SQLModel's, unknown to mypy


api_key = _table(ApiKeyRow)
server_secret = _table(ServerSecretRow)
