"""The link to Redis: short time-outs, the names of keys and channels, and the log lines of an outage.

Everything in Redis is a hint. It may be lost, doubled, late or forged, so its reader asks the database.
"""

import json
import logging
from typing import Annotated, Any

import msgspec
from arq.connections import ArqRedis
from redis.asyncio import BlockingConnectionPool
from redis.exceptions import RedisError

__all__ = ["AWAY", "NOTICES", "QUEUE", "RUN_NOTICES", "Outage", "decode_job", "encode_job", "flashes_key", "open_redis"]

#: The queue of jobs.
QUEUE = "threadmark:jobs"
#: The channel that tells workers that something came from outside for their runs.
NOTICES = "threadmark:notices"
#: The channel that tells readers that something stirs in a run.
RUN_NOTICES = "threadmark:stirs"

#: What the client raises when Redis is away, is starting, is full, or refuses.
AWAY = (RedisError, OSError)

CONNECT_S = 1.0
ANSWER_S = 3.0
CONNECTION_COUNT_MAX = 16
#: A job that no worker took for this long expires: the sweep has found its run.
JOB_TTL_S = 600
_LOG = logging.getLogger("threadmark.redis")


class Outage:
    """Tells once that a part of Redis fails and once that it works again, and counts the failures in between."""

    def __init__(self, part: str) -> None:
        self.part = part
        self.failure_count = 0
        self.is_on = False

    def failed(self, error: BaseException | str) -> None:
        """A call failed; its work is left to the sweep, or to the journal."""
        self.failure_count += 1
        if not self.is_on:
            self.is_on = True
            _LOG.warning("%s: Redis does not do its part (%s); runs go on without it", self.part, error)

    def worked(self) -> None:
        """It worked."""
        if self.is_on:
            self.is_on = False
            _LOG.warning("%s: Redis does its part again", self.part)


class _Job(msgspec.Struct):
    """A job as arq puts it into Redis. Whatever is not one of these is refused before anything looks at it."""

    f: str
    a: list[Any]
    k: dict[str, Any]
    et: Annotated[int, msgspec.Meta(ge=0, le=2**43)]
    t: Annotated[int, msgspec.Meta(ge=1, le=1_000)] | None = None


_DECODER = msgspec.json.Decoder(_Job)


def encode_job(job: dict[str, Any]) -> bytes:
    """A job, or the outcome of one, as JSON. What has no JSON is written as its representation."""
    return json.dumps(job, default=repr).encode()


def decode_job(text: bytes) -> dict[str, Any]:
    """The job that JSON spells. Raises msgspec.MsgspecError for anything else; nothing in it ever becomes code."""
    return msgspec.structs.asdict(_DECODER.decode(text))


def open_redis(url: str) -> ArqRedis:
    """A client for `url`; connects when it is first used. Close it with `aclose(close_connection_pool=True)`."""
    pool = BlockingConnectionPool.from_url(
        url,
        max_connections=CONNECTION_COUNT_MAX,
        timeout=ANSWER_S,
        socket_connect_timeout=CONNECT_S,
        socket_timeout=ANSWER_S,
    )
    return ArqRedis(
        pool,
        job_serializer=encode_job,
        job_deserializer=decode_job,
        default_queue_name=QUEUE,
        expires_extra_ms=JOB_TTL_S * 1000,
    )


def flashes_key(tenant_id: str, run_id: str) -> str:
    """The stream with a run's flashes. Raises ValueError without a tenant: there is no key for everybody's."""
    if not tenant_id or not run_id:
        raise ValueError("a run's flashes belong to a tenant")
    return f"threadmark:{tenant_id}:flashes:{run_id}"
