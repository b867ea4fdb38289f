"""The journal of a thread, line by line, and whether its chain holds."""

from collections.abc import AsyncGenerator
from datetime import datetime
from functools import partial
from typing import Annotated, Any

import msgspec
from litestar import get
from litestar.openapi import ResponseSpec
from litestar.params import FromPath, QueryParameter
from msgspec import Struct
from sqlalchemy import Connection

from threadmark.app.access import Scope, needs
from threadmark.app.http.path_ids import uuid_of
from threadmark.app.listing.pages import PAGE_SIZE, PageSize
from threadmark.app.requests import dependencies
from threadmark.app.sse.live_response import LiveResponse, whole_or_cut
from threadmark.state import Database, Line, Thread, from_us, get_thread, read_lines

__all__ = ["ROUTES", "JournalPage", "ShownDamage", "ShownLine", "Verified"]

SEQ_MAX = 2**32 - 1
DAMAGE_COUNT_MAX = 100
#: Lines that are read at once.
LINES_TOGETHER = 20

After = Annotated[int | None, QueryParameter(name="after", ge=0, le=SEQ_MAX, description="Entries after this seq.")]
Before = Annotated[
    int | None, QueryParameter(name="before", ge=0, le=SEQ_MAX, description="The entries right before this seq.")
]


class ShownLine(Struct):
    """One entry of all branches. `digest` (hex) covers every entry before it.

    `is_erased`: an erasure took words out of the payload; the digest is that of what was there.
    """

    seq: int
    branch: int
    run_id: str | None
    kind: str
    at: datetime
    fence: int
    digest: str
    payload: dict[str, Any] | None
    is_erased: bool

    @classmethod
    def of(cls, line: Line) -> "ShownLine":
        """The line as it is shown."""
        return cls(
            seq=line.seq,
            branch=line.branch,
            run_id=line.run_id,
            kind=line.kind,
            at=from_us(line.at_us),
            fence=line.fence,
            digest=line.digest.hex(),
            payload=line.payload,
            is_erased=line.is_erased,
        )


class JournalPage(Struct):
    """Entries in the order of `seq`. `next` is the `after` of the page behind, `previous` the `before` of the other."""

    items: list[ShownLine]
    next: int | None
    previous: int | None


class ShownDamage(Struct):
    """Where the chain breaks, and how."""

    seq: int
    why: str


class Verified(Struct):
    """Whether every entry is what was recorded. `damages` are the first breaks, `damage_count` all of them."""

    thread_id: str
    holds: bool
    head_seq: int
    head_digest: str
    damage_count: int
    damages: list[ShownDamage]


_PAGE = {200: ResponseSpec(JournalPage, description="Entries, in order.", generate_examples=False)}


@get("/threads/{thread_id:str}/journal", opt=needs(Scope.READ), responses=_PAGE)
async def read_journal(
    thread_id: FromPath[str],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    limit: PageSize = PAGE_SIZE,
    after: After = None,
    before: Before = None,
) -> LiveResponse:
    """Entries of the thread: from the first, `after` a seq, right `before` one, or between the two."""
    wanted = uuid_of("thread", thread_id)
    before_seq = SEQ_MAX + 1 if before is None else before
    after_seq = after or 0
    if after is None and before is not None:
        # Every seq is taken, so the entries right before one need no search.
        after_seq = max(0, before - 1 - limit)

    thread = await resources.database.read(lambda connection: get_thread(connection, caller.tenant_id, wanted))
    return whole_or_cut(resources, _page(resources.database, thread, after_seq, before_seq, limit))


async def _page(
    database: Database, thread: Thread, after_seq: int, before_seq: int, limit: int
) -> AsyncGenerator[bytes, None]:
    """A JournalPage as JSON, a few lines at a time: a line may have megabytes, and a page hundreds of lines."""

    def spelled(connection: Connection, after: int, count_max: int) -> tuple[list[int], bytes]:
        lines = read_lines(connection, thread.number, after_seq=after, before_seq=before_seq, count_max=count_max)
        return [line.seq for line in lines], b",".join(msgspec.json.encode(ShownLine.of(line)) for line in lines)

    seqs: list[int] = []
    yield b'{"items":['
    while len(seqs) < limit:
        last = seqs[-1] if seqs else after_seq
        count_max = min(LINES_TOGETHER, limit - len(seqs))
        more, slice_ = await database.read(partial(spelled, after=last, count_max=count_max))
        if more:
            yield b"," + slice_ if seqs else slice_
            seqs += more
        if len(more) < count_max:
            break
    following = seqs[-1] if seqs and seqs[-1] < min(thread.head_seq, before_seq - 1) else None
    previous = seqs[0] if seqs and seqs[0] > 1 else None
    yield b'],"next":' + msgspec.json.encode(following) + b',"previous":' + msgspec.json.encode(previous) + b"}"


@get("/threads/{thread_id:str}/journal/verify", opt=needs(Scope.READ))
async def verify_journal(
    thread_id: FromPath[str], caller: dependencies.Caller, resources: dependencies.Resources
) -> Verified:
    """Recompute the hash chain of the thread: an entry that was edited, removed or moved is found."""
    wanted = uuid_of("thread", thread_id)
    thread = await resources.database.read(lambda connection: get_thread(connection, caller.tenant_id, wanted))
    damages = await resources.wired.journal.verify(thread)
    return Verified(
        thread_id=thread.thread_id,
        holds=not damages,
        head_seq=thread.head_seq,
        head_digest=thread.head_digest.hex(),
        damage_count=len(damages),
        damages=[ShownDamage(each.seq, each.why) for each in damages[:DAMAGE_COUNT_MAX]],
    )


ROUTES = [read_journal, verify_journal]
