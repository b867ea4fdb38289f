"""Golden vectors: the digests that a receipt holds, as they stand in the databases after a request.

They were computed apart from the product, with SHA-256 over bytes that are written out. With others a retry that
reaches a newer server finds no receipt, or is refused as another request: they need a new format, not a new vector.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, select

from tests.support.api import open_api
from threadmark.app.access import Scope
from threadmark.memory.store.job_tables import receipt as memory_receipt
from threadmark.state import tables

KEY_DIGEST = "56b541cf3d7a8594dde323ebf0abb432fcb6997867d434fa3032ef77c656e9eb"
REQUEST_DIGEST = "d45b2d51c4b0440d9f96d4051e3bfb1fbfde90f2dd10c73051c23823466d0870"


async def test_the_digests_of_an_import_with_a_key(tmp_path: Path) -> None:
    """The key's; and that of method, path with query, and the SHA-256 of the body's bytes in the order of arrival."""
    async with open_api(tmp_path) as api:
        admin = await api.key(Scope.ADMIN)

        response = await api.call(
            "POST",
            "/memories/import?namespace=%5B%5D",
            admin,
            content=_parts(b'{"version": 1, ', b'"format": "threadmark-memory"}\n'),
            headers={"idempotency-key": "import-1"},
        )

        assert response.status_code == 200, response.text
        assert await api.resources.wired.recollection._database.read(_in_memory) == [(KEY_DIGEST, REQUEST_DIGEST)]
        assert await api.resources.database.read(_in_state) == [("import-1", REQUEST_DIGEST)]


async def _parts(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


def _in_memory(connection: Connection) -> list[Any]:
    held = connection.execute(select(memory_receipt.c.key_digest, memory_receipt.c.request_digest))
    return [tuple(row) for row in held]


def _in_state(connection: Connection) -> list[Any]:
    return [tuple(row) for row in connection.execute(select(tables.receipt.c.key, tables.receipt.c.request_digest))]
