"""What `threadmark doctor` looks at beside settings, state database and agents: each look changes nothing."""

import os
import shutil
import stat
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
from redis import Redis
from redis.exceptions import RedisError
from sqlalchemy import make_url
from sqlalchemy.exc import SQLAlchemyError

from threadmark import state
from threadmark.app.schema import gaps
from threadmark.db import is_sqlite
from threadmark.workers.agents.agent import Registry
from threadmark.workers.agents.call_fit import misfit_of_wait
from threadmark.workers.data_dir import closed_by, nearest, writable_gap
from threadmark.workers.migration import memory_gaps
from threadmark.workers.settings.model_settings import OFFLINE_MODEL
from threadmark.workers.settings.settings import Settings
from threadmark.workers.settings.values import shown_url

__all__ = [
    "OTHERS",
    "Finding",
    "data_dir",
    "database_error",
    "disk",
    "index",
    "is_there",
    "memory_database",
    "model",
    "parked_calls",
    "redis",
]

OTHERS = stat.S_IRWXG | stat.S_IRWXO
#: Less than this is filled by logs and journals within a day or so of ordinary use.
FREE_BYTES_MIN = 512 * 2**20
TIMEOUT_S = 5.0
#: Open questions whose calls are looked at.
OPEN_COUNT_MAX = 1_000
_OPENAI_URL = "https://api.openai.com/v1"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a look at one thing found; not well means that a start fails, or that something is open to others."""

    is_well: bool
    what: str


def data_dir(settings: Settings) -> Iterator[Finding]:
    """Whether it can be written, and by its owner alone."""
    path = settings.data_dir
    if (gap := writable_gap(path)) is not None:
        yield Finding(False, gap)
    elif not is_there(path):
        yield Finding(True, f"the data directory {path} will be made by the first start")
    elif path.stat().st_mode & OTHERS:
        yield Finding(False, f"the data directory {path} is open to other users: chmod 700 {path}")
    else:
        yield Finding(True, f"the data directory is {path}")
    for variable, file in _database_files(settings):
        if not is_there(file):
            if file.parent != path and (error := closed_by(file.parent)) is not None:
                yield Finding(False, f"{variable}: the database {file} cannot be made: {error.strerror}")
        elif not os.access(file, os.R_OK | os.W_OK):
            yield Finding(False, f"{variable}: the database {file} cannot be written by this user")
        elif file.stat().st_mode & OTHERS:
            yield Finding(False, f"the database {file} can be read by other users: chmod 600 {file}")


def disk(settings: Settings) -> Iterator[Finding]:
    """Whether there is room where this process writes."""
    folders = {settings.data_dir.absolute(), *(file.parent for _, file in _database_files(settings))}
    for folder in sorted(folders):
        free = shutil.disk_usage(nearest(folder)).free
        is_enough = free >= FREE_BYTES_MIN
        wanted = "" if is_enough else f", and less than {FREE_BYTES_MIN // 2**20} MiB are soon filled: make room"
        yield Finding(is_enough, f"{free // 2**20} MiB are free on the disk of {folder}{wanted}")


def memory_database(settings: Settings) -> Iterator[Finding]:
    """Whether it answers, keeps sessions, and is at the revision that this version needs."""
    url = make_url(settings.memory_database_url)
    if url.get_backend_name() == "sqlite" and not is_there(Path(url.database or "")):
        yield Finding(True, "the memory database will be made by the first start")
        return
    engine = state.open_engine(settings.memory_database_url, write=False, limits=settings.limits)
    try:
        state.refuse_transaction_pooling(engine, "memory")
        if found := memory_gaps(settings):
            yield Finding(False, f"the memory database is behind: {'; '.join(found)}: run `threadmark migrate`")
        else:
            yield Finding(True, "the memory database is at the revision this version needs")
    except state.SessionsNotKept as error:
        yield Finding(False, str(error))
    except SQLAlchemyError as error:
        yield Finding(False, database_error("THREADMARK_MEMORY_DATABASE_URL", error))
    finally:
        engine.dispose()


def parked_calls(settings: Settings, registry: Registry) -> Iterator[Finding]:
    """Whether the calls that wait for a person can still be made by the agents."""
    url = make_url(settings.state_database_url)
    if url.get_backend_name() == "sqlite" and not is_there(Path(url.database or "")):
        return
    engine = state.open_engine(settings.state_database_url, write=False, limits=settings.limits)
    try:
        if gaps(settings):
            return
        with engine.connect() as connection:
            asked = state.list_open_waits(connection, count_max=OPEN_COUNT_MAX)
    except SQLAlchemyError:
        return  # what is wrong with the database has been said
    finally:
        engine.dispose()
    outdated = Counter(
        (each.assistant, each.wait.tool, misfit.kind)
        for each in asked
        if (misfit := misfit_of_wait(registry, each)) is not None
    )
    for (assistant, tool, kind), count in sorted(outdated.items()):
        yield Finding(
            False,
            f"{count} parked call(s) of {tool!r} do not fit the agent {assistant!r} ({kind}): declare an alias of the"
            " tool, or answer them with false or a result",
        )
    if asked and not outdated:
        yield Finding(True, f"the {len(asked)} parked call(s) that were asked first fit their agents")


def redis(settings: Settings) -> Iterator[Finding]:
    """Whether it answers."""
    if settings.redis_url is None:
        return
    try:
        with Redis.from_url(settings.redis_url, socket_timeout=TIMEOUT_S, socket_connect_timeout=TIMEOUT_S) as client:
            client.ping()
    except (RedisError, OSError) as error:
        yield Finding(False, f"THREADMARK_REDIS_URL: Redis does not answer as it should: {_line(error)}")
    else:
        yield Finding(True, "Redis answers")


def index(settings: Settings) -> Iterator[Finding]:
    """Whether the server of the memory index answers and takes the key."""
    if settings.qdrant_url is None or settings.memory_index != "auto":
        return
    headers = {"api-key": settings.qdrant_api_key} if settings.qdrant_api_key else {}
    variables = ("THREADMARK_QDRANT_URL", "THREADMARK_QDRANT_API_KEY")
    yield _asked(variables, "Qdrant", f"{settings.qdrant_url}/collections", headers)


def model(settings: Settings) -> Iterator[Finding]:
    """Whether the server of the model answers and takes the key. It is asked for its models, and costs nothing."""
    if settings.model == OFFLINE_MODEL:
        return
    headers = {"authorization": f"Bearer {settings.openai_api_key}"} if settings.openai_api_key else {}
    variables = ("OPENAI_BASE_URL" if settings.openai_base_url else "OPENAI_API_KEY", "OPENAI_API_KEY")
    url = f"{settings.openai_base_url or _OPENAI_URL}/models"
    yield _asked(variables, "the model's server", url, headers, is_optional=True)


def is_there(path: Path) -> bool:
    """Whether the file is there and can be seen; one behind a folder that is closed to this user is not."""
    return os.path.exists(path)  # not `Path.exists`, which raises there


def database_error(variable: str, error: SQLAlchemyError) -> str:
    """What a database that does not answer has said, a line."""
    reason = str(getattr(error, "orig", None) or type(error).__name__).splitlines()[0]
    return f"{variable}: the database does not answer as it should: {reason}"


def _database_files(settings: Settings) -> Iterator[tuple[str, Path]]:
    """The variable and the file of each database that is a file."""
    for variable, url in (
        ("THREADMARK_STATE_DATABASE_URL", settings.state_database_url),
        ("THREADMARK_MEMORY_DATABASE_URL", settings.memory_database_url),
    ):
        if is_sqlite(url):
            yield variable, Path(make_url(url).database or "").absolute()


def _asked(
    variables: tuple[str, str], what: str, url: str, headers: dict[str, str], *, is_optional: bool = False
) -> Finding:
    """What a server says to a GET; one whose route `is_optional` may not know it.

    `variables` are those that give its address and its key.
    """
    variable, key_variable = variables
    try:
        status = httpx2.get(url, headers=headers, timeout=TIMEOUT_S).status_code
    except (httpx2.HTTPError, OSError) as error:
        return Finding(False, f"{variable}: {what} does not answer at {shown_url(url)}: {_line(error)}")
    if status in {httpx2.codes.UNAUTHORIZED, httpx2.codes.FORBIDDEN}:
        return Finding(False, f"{key_variable}: {what} answers at {shown_url(url)} and refuses the key ({status})")
    is_well = status < httpx2.codes.BAD_REQUEST or (is_optional and status == httpx2.codes.NOT_FOUND)
    return Finding(
        is_well, f"{what} answers" if is_well else f"{variable}: {what} answered {status} at {shown_url(url)}"
    )


def _line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
