"""What a batch sends as PostgreSQL's own arrays comes back as it was."""

import struct
from collections.abc import Callable, Iterable
from typing import Any

import psycopg
import pytest

from threadmark.state.batches.binary_arrays import BigInts, Blobs, Ints, Texts

BIGINTS: tuple[int | None, ...] = (0, 1, -1, 2**63 - 1, -(2**63), None)
INTS: tuple[int | None, ...] = (0, 1, -1, 2**31 - 1, -(2**31), None)
TEXTS: tuple[str | None, ...] = ("", "a", "{,}", '"quoted"', "NULL", "line\nline", "ümläut 😀", None)
BLOBS: tuple[bytes | None, ...] = (b"", b"\\x00", bytes(range(256)), b"x" * 100_000, None)
COLUMNS = [
    pytest.param("SELECT %s::bigint[]", BigInts, BIGINTS, id="bigint"),
    pytest.param("SELECT %s::integer[]", Ints, INTS, id="integer"),
    pytest.param("SELECT %s::text[]", Texts, TEXTS, id="text"),
    pytest.param("SELECT %s::bytea[]", Blobs, BLOBS, id="bytea"),
]


@pytest.mark.parametrize(("statement", "kind", "values"), COLUMNS)
def test_every_value_comes_back(
    postgres_url: str, statement: str, kind: Callable[[Iterable[Any]], Any], values: tuple[Any, ...]
) -> None:
    """Empty arrays, empty values, nulls, the largest numbers, and text that looks like an array."""
    with psycopg.connect(postgres_url.replace("+psycopg", "")) as connection:
        for each in (values, values[:1], (None,), ()):
            (found,) = connection.execute(statement.encode(), [kind(each)]).fetchone() or (None,)
            assert tuple(found) == each


@pytest.mark.parametrize(("kind", "value"), [(BigInts, 2**63), (Ints, 2**31), (Texts, "\ud800")])
def test_a_value_that_the_column_cannot_hold_is_refused(kind: Callable[[Iterable[Any]], Any], value: Any) -> None:
    """Before anything is sent."""
    with pytest.raises((struct.error, UnicodeEncodeError)):
        kind([value])
