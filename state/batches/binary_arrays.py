"""Batch columns as PostgreSQL's binary arrays.

The driver encodes an array as text, value by value, in Python. That took half of a writer's time and doubled the size
of every payload. These classes use the server's own form: a header, then a length and the value for each element.
"""

import struct
from collections.abc import Iterable, Sequence

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format

__all__ = ["BigInts", "Blobs", "Ints", "Texts"]

_HEADER, _LENGTH = struct.Struct(">iiIii"), struct.Struct(">i").pack
_BIGINT, _INTEGER = struct.Struct(">iq").pack, struct.Struct(">ii").pack
_NULL = _LENGTH(-1)
_BIGINT_OID, _INTEGER_OID, _TEXT_OID, _BYTEA_OID = 20, 23, 25, 17


class _Array:
    """An array in PostgreSQL's binary form."""

    __slots__ = ("encoded",)
    element_oid: int

    def __init__(self, elements: Sequence[bytes]) -> None:
        header = (
            _HEADER.pack(1, 1, self.element_oid, len(elements), 1)
            if elements
            else _HEADER.pack(0, 0, self.element_oid, 0, 0)[:12]
        )
        self.encoded = header + b"".join(elements)


class BigInts(_Array):
    """bigint[]"""

    __slots__ = ()
    element_oid = _BIGINT_OID

    def __init__(self, values: Iterable[int | None]) -> None:
        super().__init__([_NULL if each is None else _BIGINT(8, each) for each in values])


class Ints(_Array):
    """integer[]"""

    __slots__ = ()
    element_oid = _INTEGER_OID

    def __init__(self, values: Iterable[int | None]) -> None:
        super().__init__([_NULL if each is None else _INTEGER(4, each) for each in values])


class Blobs(_Array):
    """bytea[]"""

    __slots__ = ()
    element_oid = _BYTEA_OID

    def __init__(self, values: Iterable[bytes | None]) -> None:
        super().__init__([_NULL if each is None else _LENGTH(len(each)) + each for each in values])


class Texts(_Array):
    """text[]"""

    __slots__ = ()
    element_oid = _TEXT_OID

    def __init__(self, values: Iterable[str | None]) -> None:
        encoded = [None if each is None else each.encode() for each in values]
        super().__init__([_NULL if each is None else _LENGTH(len(each)) + each for each in encoded])


class _Encoded(Dumper):
    format = Format.BINARY

    def dump(self, obj: _Array) -> bytes:
        return obj.encoded


class _BigInts(_Encoded):
    oid = 1016


class _Ints(_Encoded):
    oid = 1007


class _Blobs(_Encoded):
    oid = 1001


class _Texts(_Encoded):
    oid = 1009


for _kind, _dumper in ((BigInts, _BigInts), (Ints, _Ints), (Blobs, _Blobs), (Texts, _Texts)):
    psycopg.adapters.register_dumper(_kind, _dumper)
