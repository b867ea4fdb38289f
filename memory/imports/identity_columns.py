"""The columns by which rows are found and compared, made from the words of a row. Pure.

An import computes them again: an export of an older version holds keys and digests in which names were folded.
"""

from collections.abc import Mapping
from typing import Any

from threadmark.memory.model.values import load
from threadmark.memory.text.identity import identity_key
from threadmark.memory.write.preparation import named_speaker, subject_key
from threadmark.memory.write.statement_digest import renewed_digest

__all__ = ["identity_columns"]


def identity_columns(kind: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """The columns by which names are compared, for a row of an export."""
    match kind:
        case "assertion":
            return {
                "subject_key": subject_key(row["kind"], row["subject"]),
                "attribute_key": None if row["attribute"] is None else identity_key(row["attribute"]),
                "digest": renewed_digest(row),
                "said_by": named_speaker(row["kind"], load(row["text"])),
            }
        case "evidence":
            return {"actor_key": None if row["actor"] is None else identity_key(row["actor"])}
        case "attribute":
            return {"attribute_key": identity_key(row["attribute_key"])}
        case _:
            return {}
