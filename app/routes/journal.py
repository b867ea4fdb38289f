"""The journal of a thread, line by line, and whether its chain holds."""

from datetime import datetime
from typing import Annotated, Any

from litestar import get
from litestar.params import FromPath, QueryParameter
from msgspec import Struct
from sqlalchemy import Connection

from app import given
from app.access import Scope, needs
from app.pages import PAGE_SIZE, PageSize
from app.path_ids import uuid_of
from state import Line, from_us, get_thread, read_lines

__all__ = ["ROUTES", "JournalPage", "ShownDamage", "ShownLine", "Verified"]

SEQ_MAX = 2**32 - 1
DAMAGE_COUNT_MAX = 100

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


@get("/threads/{thread_id:str}/journal", opt=needs(Scope.READ))
async def read_journal(
    thread_id: FromPath[str],
    caller: given.Caller,
    resources: given.Resources,
    limit: PageSize = PAGE_SIZE,
    after: After = None,
    before: Before = None,
) -> JournalPage:
    """Entries of the thread: from the first, `after` a seq, right `before` one, or between the two."""
    wanted = uuid_of("thread", thread_id)
    before_seq = SEQ_MAX + 1 if before is None else before
    after_seq = after or 0
    if after is None and before is not None:
        # Every seq is taken, so the entries right before one need no search.
        after_seq = max(0, before - 1 - limit)

    def unit(connection: Connection) -> tuple[int, list[Line]]:
        thread = get_thread(connection, caller.tenant_id, wanted)
        lines = read_lines(connection, thread.number, after_seq=after_seq, before_seq=before_seq, count_max=limit)
        return thread.head_seq, lines

    head_seq, lines = await resources.database.read(unit)
    return JournalPage(
        items=[ShownLine.of(line) for line in lines],
        next=lines[-1].seq if lines and lines[-1].seq < min(head_seq, before_seq - 1) else None,
        previous=lines[0].seq if lines and lines[0].seq > 1 else None,
    )


@get("/threads/{thread_id:str}/journal/verify", opt=needs(Scope.READ))
async def verify_journal(thread_id: FromPath[str], caller: given.Caller, resources: given.Resources) -> Verified:
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
