"""Answers under `select`: rows of which only the chosen members are there."""

from types import GenericAlias
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

__all__ = ["selected"]


def selected(kind: type[Struct]) -> Any:
    """The type of a list of `kind`s of which any member may be missing, because it was not selected."""
    name = kind.__name__.removeprefix("Shown")
    members = [(each.name, each.type | UnsetType, UNSET) for each in msgspec.structs.fields(kind)]
    summary = f"{(kind.__doc__ or name).strip()}\n\nWith `select` only the selected members are there."
    partial = msgspec.defstruct(f"Selected{name}", members, namespace={"__doc__": summary}, module=kind.__module__)
    return GenericAlias(list, (partial,))
