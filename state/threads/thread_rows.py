"""The stored form of a new thread: its row, and its labels for filters."""

import json
from collections.abc import Mapping
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, insert

from threadmark.db.portable import insert_new
from threadmark.state import tables
from threadmark.state.entries import chain
from threadmark.state.entries.lineage import ROOT
from threadmark.state.entries.run_status import ThreadStatus

__all__ = ["canonical", "create_thread", "label_rows", "thread_columns"]


def create_thread(
    connection: Connection,
    *,
    tenant_id: str,
    thread_id: str,
    metadata: Mapping[str, Any],
    now_us: int,
    status: ThreadStatus = ThreadStatus.IDLE,
    expires_at_us: int | None = None,
) -> Row[Any] | None:
    """Insert the row of a new thread; None if the id is taken."""
    row = insert_new(
        connection,
        tables.thread,
        thread_columns(
            tenant_id=tenant_id,
            thread_id=thread_id,
            metadata=metadata,
            now_us=now_us,
            status=status,
            expires_at_us=expires_at_us,
        ),
    )
    if row is not None and metadata:
        connection.execute(insert(tables.thread_label), label_rows(row.number, metadata))
    return row


def thread_columns(
    *,
    tenant_id: str,
    thread_id: str,
    metadata: Mapping[str, Any],
    now_us: int,
    status: ThreadStatus,
    expires_at_us: int | None,
) -> dict[str, Any]:
    """The columns of a new thread."""
    return {
        "tenant_id": tenant_id,
        "thread_id": thread_id,
        "status": status,
        "metadata": json.dumps(metadata, ensure_ascii=False),
        "created_at": now_us,
        "updated_at": now_us,
        "state_updated_at": now_us,
        "expires_at": expires_at_us,
        "fence": 0,
        "head_seq": 0,
        "head_digest": chain.GENESIS,
        "branch": 0,
        "branch_count": 1,
        "lineage": msgspec.json.encode(ROOT).decode(),
        "inbox": 0,
        "erasures": 0,
    }


def label_rows(thread: int | None, metadata: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The labels by which filters find a thread; key and value are canonical JSON."""
    return [{"thread": thread, "key": canonical(key), "value": canonical(value)} for key, value in metadata.items()]


def canonical(value: Any) -> str:
    """The canonical JSON text of a value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
