"""Named policies as they are shown, and as an order refers to them."""

import re
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from threadmark.app.http.body_errors import BodyRefused
from threadmark.compaction import KeptPolicy

__all__ = ["PolicyName", "ShownPolicy", "ShownVersion", "check_policy_name"]

PATTERN = "^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
#: A policy that the tenant has put under `/compaction-policies/{name}`.
PolicyName = Annotated[str, Meta(pattern=PATTERN)]
_NAME = re.compile(PATTERN.removesuffix("$"))


def check_policy_name(name: str) -> str:
    """The name. Raises BodyRefused for one that no policy may have."""
    if not _NAME.fullmatch(name):
        raise BodyRefused("name", "is 1 to 100 letters, digits, dots, underscores and hyphens, a letter or digit first")
    return name


class ShownVersion(Struct, kw_only=True):
    """A version of a name: what it stood for, or null where the name was given up with it."""

    name: str
    version: int
    policy: dict[str, Any] | None
    requested_by: str
    created_at: datetime

    @classmethod
    def of(cls, kept: KeptPolicy) -> "ShownVersion":
        """The version as it is shown."""
        return cls(
            name=kept.name,
            version=kept.version,
            policy=None if kept.policy is None else dict(msgspec.to_builtins(kept.policy, order="deterministic")),
            requested_by=kept.requested_by,
            created_at=kept.created_at,
        )


class ShownPolicy(Struct, kw_only=True):
    """A version of a named policy. Its values never change; new values are a new version."""

    name: str
    version: int
    policy: dict[str, Any]
    requested_by: str
    created_at: datetime

    @classmethod
    def of(cls, kept: KeptPolicy) -> "ShownPolicy":
        """The policy as it is shown."""
        return cls(
            name=kept.name,
            version=kept.version,
            policy=dict(msgspec.to_builtins(kept.policy, order="deterministic")),
            requested_by=kept.requested_by,
            created_at=kept.created_at,
        )
