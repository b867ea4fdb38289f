"""Cutting pages: which rows are shown and which pages lie beside."""

import pytest

from threadmark.app.listing.cursors import Cursor
from threadmark.app.listing.pages import Page, cut

ROWS = list(range(10))


def forward(beyond: int | None, size: int) -> Page[int]:
    """The page after a row."""
    found = [row for row in ROWS if beyond is None or row > beyond][: size + 1]
    return cut(found, size, None if beyond is None else Cursor((beyond,)), lambda row: (row,))


def backward(beyond: int, size: int) -> Page[int]:
    """The page before a row."""
    found = [row for row in reversed(ROWS) if row < beyond][: size + 1]
    return cut(found, size, Cursor((beyond,), backward=True), lambda row: (row,))


@pytest.mark.parametrize("size", range(1, 12))
def test_pages_of_every_size_hold_every_row_once_both_ways(size: int) -> None:
    """Forward from the beginning to the end, and back to the beginning."""
    pages = [forward(None, size)]
    while (following := pages[-1].next) is not None:
        pages.append(forward(int(following.position[0]), size))
    back = [pages[-1]]
    while (preceding := back[-1].previous) is not None:
        back.append(backward(int(preceding.position[0]), size))

    assert [row for page in pages for row in page.rows] == ROWS
    assert [row for page in reversed(back) for row in page.rows] == ROWS
    assert all(1 <= len(page.rows) <= size for page in [*pages, *back])


def test_no_rows_are_one_empty_page() -> None:
    """An empty listing has no page beside it."""
    assert cut([], 5, None, lambda row: (row,)) == Page([], None, None)
