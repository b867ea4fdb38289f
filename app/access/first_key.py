"""The first key: made when there is none, and left in a file for the owner of the data directory."""

import contextlib
import os
import secrets
from datetime import datetime
from functools import partial
from pathlib import Path

from sqlalchemy import Connection

from threadmark.app.access.key import DEFAULT_TENANT, Token
from threadmark.app.access.key_store import add_key, count_keys, find_key, take_turn
from threadmark.app.access.scopes import Scope
from threadmark.state import Database

__all__ = ["FIRST_KEY_FILE", "make_first_key"]

FIRST_KEY_FILE = "admin.key"
_LABEL = "first key"
_OWNER_ONLY = 0o600


async def make_first_key(database: Database, data_dir: Path, now: datetime) -> Path | None:
    """The file with the first key, if this made it: an operator's key of the default tenant. None if there are keys.

    The file is written before the row: a crash between the two leaves a key that opens nothing yet, which the next
    start gives its row. The other order could leave a row whose secret is lost.
    """
    if await database.read(count_keys):
        return None
    path = data_dir / FIRST_KEY_FILE
    token = token_in(path) or _written(path)
    owner = await database.write(partial(_add_if_first, token=token, now=now))
    if owner is None and token_in(path) == token:
        # Another process, with a directory of its own, was first: this token opens nothing, and its file would mislead.
        path.unlink(missing_ok=True)
    return path if owner else None


def token_in(path: Path) -> Token | None:
    """The token that the file holds; None if there is no file, or none in it."""
    with contextlib.suppress(FileNotFoundError, UnicodeDecodeError):
        return Token.parse(path.read_text(encoding="ascii").strip())
    return None


def _written(path: Path) -> Token:
    """A fresh token, on disk; or the one that another process of this directory wrote first."""
    token = Token.fresh()
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(token.text + "\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            # A link, because it fails where a file is: of two processes that start at once one wins, whole.
            os.link(draft, path)
        except FileExistsError:
            if (other := token_in(path)) is not None:
                return other
            os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    return token


def _add_if_first(connection: Connection, token: Token, now: datetime) -> bool | None:
    """Whether this made the first key: False where the token has its row already, None where other keys are there."""
    take_turn(connection)
    if count_keys(connection):
        return None if find_key(connection, token.key_id) is None else False
    scopes = frozenset({Scope.OPERATOR})
    add_key(connection, token, tenant_id=DEFAULT_TENANT, label=_LABEL, scopes=scopes, now=now)
    return True
