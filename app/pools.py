"""Threads of the API by purpose, and answers that are made in them slice by slice. Tenants take turns in each."""

from collections.abc import AsyncGenerator, Iterator
from functools import partial
from typing import TypeVar

from threadmark.db.execution.pools import Pool

__all__ = ["ANSWERS", "BODIES", "BODY_BYTES_MIN", "sliced"]

T = TypeVar("T")
#: Bodies that are parsed, and taken apart into what a route works with.
BODIES = Pool("threadmark-bodies", 2, limited=True)
#: Answers that are put into words: states, journals, values of streams.
ANSWERS = Pool("threadmark-answers", 2, limited=True)
#: A body of so many bytes is parsed beside the event loop; a smaller one takes less time than the way there.
BODY_BYTES_MIN = 32 * 1024


async def sliced(parts: Iterator[T]) -> AsyncGenerator[T, None]:
    """The parts, each made in a thread when the one before has been taken: no answer is ever built whole."""
    while (part := await ANSWERS.run(partial(_next, parts))) is not None:
        yield part


def _next(parts: Iterator[T]) -> T | None:
    return next(parts, None)
