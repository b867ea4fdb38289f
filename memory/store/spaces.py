"""Vector spaces: one serves, another may be built beside it, and a swap is one transaction."""

from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import Connection, delete, insert, select, update

from threadmark.memory.store.job_tables import space

__all__ = ["Space", "SpaceStatus", "advance", "begin", "forget", "live", "swap"]


_LIVE = select(space.c.name, space.c.status, space.c.built_to).order_by(space.c.number)


class SpaceStatus(StrEnum):
    """What a space is for."""

    BUILDING = "building"
    SERVING = "serving"
    RETIRED = "retired"


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """A vector space and how far it is filled: every assertion up to `built_to` is in it or in the outbox."""

    name: str
    status: SpaceStatus
    built_to: int


def live(connection: Connection) -> list[Space]:
    """All spaces that are kept, the serving one first."""
    found = connection.execute(_LIVE)
    spaces = [Space(name=name, status=SpaceStatus(status), built_to=built) for name, status, built in found]
    return sorted(spaces, key=lambda each: each.status is not SpaceStatus.SERVING)


def serving_or_begin(connection: Connection, base: str, now: int) -> Space:
    """The space that serves; a new one where none does. Of several processes that start at once one makes it."""
    found = next((each for each in live(connection) if each.status is SpaceStatus.SERVING), None)
    return found or begin(connection, base, now)


def begin(connection: Connection, base: str, now: int) -> Space:
    """A new space of that base name, to be filled. It serves at once when there is none that does."""
    taken = {each.name for each in live(connection)}
    name = next(name for name in (f"{base}-g{number}" for number in range(1, len(taken) + 2)) if name not in taken)
    serving = connection.scalar(select(space.c.name).where(space.c.status == SpaceStatus.SERVING))
    status = SpaceStatus.SERVING if serving is None else SpaceStatus.BUILDING
    connection.execute(insert(space).values(name=name, status=status, built_to=0, created_at=now))
    return Space(name=name, status=status, built_to=0)


def advance(connection: Connection, name: str, built_to: int) -> None:
    """Record how far a space is filled."""
    connection.execute(update(space).where(space.c.name == name).values(built_to=built_to))


def swap(connection: Connection, name: str) -> list[str]:
    """Let a space serve; the names of those that are retired by it."""
    retired = list(
        connection.scalars(select(space.c.name).where(space.c.status == SpaceStatus.SERVING, space.c.name != name))
    )
    connection.execute(update(space).where(space.c.name.in_(retired)).values(status=SpaceStatus.RETIRED))
    connection.execute(update(space).where(space.c.name == name).values(status=SpaceStatus.SERVING))
    return retired


def forget(connection: Connection, name: str) -> None:
    """Strike a space off."""
    connection.execute(delete(space).where(space.c.name == name))
