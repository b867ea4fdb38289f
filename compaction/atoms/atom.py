"""Atoms: the exact values of a text, each with its class, its place and its normal form."""

from enum import StrEnum

import msgspec

__all__ = ["CONTAINERS", "Atom", "AtomClass"]


class AtomClass(StrEnum):
    """What kind of value an atom is; the words are those of the ledger."""

    URL = "url"
    EMAIL = "email"
    UUID = "uuid"
    HASH = "hash"
    PATH = "path"
    MONEY = "money"
    PERCENT = "percent"
    DATE = "date"
    TIME = "time"
    QUANTITY = "quantity"
    NUMBER = "number"
    REFERENCE = "reference_id"
    CODE = "code_identifier"
    VERSION = "version"
    QUOTED = "quoted_string"
    COMMAND = "command_line"
    NAME = "name"
    HANDLE = "handle"
    PHONE = "phone"
    HOST = "host"
    ERROR = "error_text"


#: Classes that may hold other atoms inside; all others never overlap.
CONTAINERS = frozenset({AtomClass.QUOTED, AtomClass.COMMAND, AtomClass.ERROR})


class Atom(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One value of a text. `start` and `end` are offsets in code points; `canon` is equal for equal values.

    A thread has tens of thousands of them: the garbage collector does not look at them (they hold no cycle).
    """

    cls: AtomClass
    start: int
    end: int
    canon: str
