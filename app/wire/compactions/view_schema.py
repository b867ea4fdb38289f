"""Views of threads, as they are shown."""

from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from threadmark.compaction import KeptView, ShownView, ViewDiff

__all__ = ["RenderedView", "ShownDiff", "ViewHead"]


class ViewHead(Struct, kw_only=True):
    """A version of what the model sees of a thread.

    `items` are ranges of entries (`live`), stubs of tool output (`masked`), summaries and pins, in order; `compactions`
    are those in effect in it. `cause` is `compaction`, `restore` or `erasure`.
    """

    view_id: str
    thread_id: str
    version: int
    parent_id: str | None
    compaction_id: str | None
    cause: str
    compactions: list[str]
    requested_by: str
    created_at: datetime | None
    items: list[dict[str, Any]]

    @classmethod
    def of(cls, kept: KeptView, thread_id: str) -> "ViewHead":
        """The view, without what it is rendered to."""
        return cls(**_head(kept, thread_id))


class RenderedView(ViewHead, kw_only=True):
    """The view, and the messages that the model is sent, in order, with the tokens of each.

    `render_hash` covers the bytes of all parts: equal hash, equal prompt. `is_current`: the thread has this view.
    """

    is_current: bool
    tokens: int
    render_hash: str
    parts: list[dict[str, Any]]

    @classmethod
    def rendered(cls, shown: ShownView, thread_id: str) -> "RenderedView":
        """The view as it is rendered now."""
        return cls(
            **_head(shown.kept, thread_id),
            is_current=shown.is_current,
            tokens=shown.rendered.tokens,
            render_hash=shown.rendered.render_hash,
            parts=[{"tokens": part.tokens, **msgspec.to_builtins(part)} for part in shown.rendered.parts],
        )


class ShownDiff(Struct, kw_only=True):
    """What `after` has that `before` has not (`joined`), and the other way round (`left`). Entries by `seq`."""

    before: str
    after: str
    entries_left: list[int]
    entries_joined: list[int]
    entries_masked: list[int]
    entries_unmasked: list[int]
    segments_left: list[str]
    segments_joined: list[str]
    pins_left: list[dict[str, Any]]
    pins_joined: list[dict[str, Any]]

    @classmethod
    def of(cls, diff: ViewDiff, before: str, after: str) -> "ShownDiff":
        """The difference as it is shown."""
        return cls(before=before, after=after, **msgspec.to_builtins(diff))


def _head(kept: KeptView, thread_id: str) -> dict[str, Any]:
    view = kept.view
    return {
        "view_id": view.view_id,
        "thread_id": thread_id,
        "version": view.version,
        "parent_id": view.parent_id,
        "compaction_id": view.compaction_id,
        "cause": str(kept.cause),
        "compactions": list(kept.ledgers),
        "requested_by": kept.requested_by,
        "created_at": kept.created_at,
        "items": [msgspec.to_builtins(item) for item in view.items],
    }
