"""Pages of a listing: how many rows, which rows, and the cursors to the pages beside."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Generic, TypeVar

from litestar.params import QueryParameter

from threadmark.app.listing.cursors import Cursor

__all__ = ["PAGE_SIZE", "PAGE_SIZE_MAX", "CursorText", "Page", "PageSize", "beyond", "cut"]

PAGE_SIZE = 50
PAGE_SIZE_MAX = 200

PageSize = Annotated[int, QueryParameter(name="limit", ge=1, le=PAGE_SIZE_MAX, description="Rows of a page, at most.")]
CursorText = Annotated[
    str | None,
    QueryParameter(name="cursor", description="`next` or `previous` of another page of the listing."),
]
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """Rows in the order of the listing, and where the listing goes on."""

    rows: Sequence[Row]
    next: Cursor | None
    previous: Cursor | None


def cut(
    found: Sequence[Row], size: int, cursor: Cursor | None, position_of: Callable[[Row], tuple[int | str, ...]]
) -> Page[Row]:
    """The page of at most `size` rows that begins (backward: ends) at `cursor`.

    `found` are the nearest `size + 1` rows beyond the cursor, nearest first: the last tells that there are more.
    """
    kept = list(found[:size])
    has_more = len(found) > size
    backward = cursor is not None and cursor.backward
    if backward:
        kept.reverse()
    if not kept:
        return Page(kept, None, None)
    following = Cursor(position_of(kept[-1])) if backward or has_more else None
    preceding = Cursor(position_of(kept[0]), backward=True) if cursor and (has_more or not backward) else None
    return Page(kept, following, preceding)


def beyond(
    rows: Sequence[Row], size: int, cursor: Cursor | None, position_of: Callable[[Row], tuple[int | str, ...]]
) -> Sequence[Row]:
    """What `cut` takes, of a listing that is held whole and in order."""
    if cursor is None:
        return rows[: size + 1]
    if cursor.backward:
        return [row for row in reversed(rows) if position_of(row) < cursor.position][: size + 1]
    return [row for row in rows if position_of(row) > cursor.position][: size + 1]
