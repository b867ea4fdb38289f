"""Private PostgreSQL and Redis servers for tests, from the binaries this machine has installed.

Never the machine's own instances: each server has its own folder, its own port and the life of the tests.
"""

import contextlib
import os
import pwd
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Literal, LiteralString

import psycopg
from psycopg import sql
from redis import Redis
from redis.exceptions import RedisError

from tests.support.daemon import Daemon, DidNotStart, Identity, PrivateServer, launched, unavailable

CONNECT_TIMEOUT_S = 5
ORPHANS_S_MAX = 5.0
POLL_S = 0.02
UNPRIVILEGED_USERS = ("postgres", "nobody")
# A power cut is not under test unless a test asks for it, so by default nothing waits for the disk.
NO_FSYNC = {"fsync": "off", "full_page_writes": "off"}

StopMode = Literal["smart", "fast", "immediate"]
STOP_SIGNALS: Mapping[StopMode, signal.Signals] = {
    "smart": signal.SIGTERM,
    "fast": signal.SIGINT,
    "immediate": signal.SIGQUIT,
}


class PrivatePostgres(PrivateServer):
    """One PostgreSQL cluster, reached by TCP on loopback and by a socket in `folder`; the superuser needs no password.

    `fsync=True` makes commits wait for the disk, as a deployment does; `settings` are server settings by name.
    """

    # Its immediate shutdown: SIGKILL would leave the children and a shared memory segment behind.
    death_signal = signal.SIGQUIT
    user = "postgres"

    def __init__(self, *, fsync: bool = False, settings: Mapping[str, str] | None = None) -> None:
        self._bin = postgres_bin()
        self._identity = unprivileged_identity()
        super().__init__("postgres")
        os.chown(self.folder, self._identity.uid, self._identity.gid)
        self._settings = ({} if fsync else NO_FSYNC) | dict(settings or {})
        self._names = (f"test_{number}" for number in count(1))
        self._initialise()

    def url(self, database: str) -> str:
        """SQLAlchemy's address of a database, over TCP."""
        return f"postgresql+psycopg://{self.user}@127.0.0.1:{self.port}/{database}"

    def create_database(self, like: str = "template1") -> str:
        """Make a database that is `like` another one, to which nobody is connected, and return its name."""
        name = next(self._names)
        self._administer("CREATE DATABASE {name} TEMPLATE {like}", name, like)
        return name

    def drop_database(self, name: str) -> None:
        """Drop a database, also while clients are connected to it."""
        self._administer("DROP DATABASE IF EXISTS {name} WITH (FORCE)", name)

    @contextmanager
    def fresh_database(self, like: str = "template1") -> Iterator[str]:
        """The address of a database that lasts as long as the block; starts a stopped server first."""
        self.start()
        name = self.create_database(like)
        try:
            yield self.url(name)
        finally:
            self.start()
            self.drop_database(name)

    def stop(self, mode: StopMode = "fast") -> None:
        """Shut down as `pg_ctl stop -m mode` does; `immediate` is a crash: recovery follows at the next start."""
        self.end(STOP_SIGNALS[mode])

    def kill(self) -> None:
        """SIGKILL to the first process; returns when its backends have noticed and are gone too."""
        family = _children_of(self.pid)
        self.end(signal.SIGKILL)
        deadline = time.monotonic() + ORPHANS_S_MAX
        # A backend that lives on holds the shared memory, and the next start is refused.
        while any(Path(f"/proc/{pid}").exists() for pid in family):
            if time.monotonic() > deadline:
                for pid in family:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
            time.sleep(POLL_S)

    def restart(self, mode: StopMode = "fast") -> None:
        """Stop, start, and return when it answers again; open connections are lost."""
        self.stop(mode)
        self.start()

    def spawn(self) -> Daemon:
        """Start the server process."""
        settings = {"listen_addresses": "127.0.0.1", "unix_socket_directories": str(self.folder)} | self._settings
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        return Daemon(
            [str(self._bin / "postgres"), "-D", str(self._data), "-p", str(self.port), *options],
            log=self.folder / "server.log",
            identity=self._identity,
            death_signal=self.death_signal,
        )

    def answers(self) -> bool:
        """Whether a connection is accepted; not yet while it recovers."""
        try:
            self._connect().close()
        except psycopg.OperationalError:
            return False
        return True

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def _initialise(self) -> None:
        command = [str(self._bin / "initdb"), "-D", str(self._data), "-U", self.user]
        command += ["--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]
        made = subprocess.run(
            launched(command, self._identity, self.death_signal),
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode:
            self.close()
            raise DidNotStart(f"initdb ended with {made.returncode}:\n{made.stdout}{made.stderr}")

    def _administer(self, statement: LiteralString, name: str, like: str = "") -> None:
        with self._connect() as connection:
            connection.execute(sql.SQL(statement).format(name=sql.Identifier(name), like=sql.Identifier(like)))

    def _connect(self) -> psycopg.Connection:
        return psycopg.connect(
            host="127.0.0.1",
            port=self.port,
            user=self.user,
            dbname="postgres",
            autocommit=True,
            connect_timeout=CONNECT_TIMEOUT_S,
        )


class PrivateRedis(PrivateServer):
    """One Redis server that keeps nothing on disk: what a kill takes is gone, as after any lost Redis."""

    def __init__(self) -> None:
        self._binary = redis_binary()
        super().__init__("redis")

    @property
    def url(self) -> str:
        """The address of database 0."""
        return f"redis://127.0.0.1:{self.port}/0"

    def kill(self) -> None:
        """End it without warning, and with it all it knew."""
        self.end(signal.SIGKILL)

    def restart(self) -> None:
        """Kill it and start it empty on the same port."""
        self.kill()
        self.start()

    def flush(self) -> None:
        """Forget every key; connections stay."""
        with self.client() as client:
            client.flushall()

    def client(self) -> Redis:
        """A blocking client for looking inside; close it, or use it in a `with`."""
        return Redis(host="127.0.0.1", port=self.port, socket_timeout=CONNECT_TIMEOUT_S, decode_responses=True)

    def spawn(self) -> Daemon:
        """Start the server process."""
        command = [self._binary, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        command += ["--save", "", "--appendonly", "no", "--daemonize", "no"]
        return Daemon(command, log=self.folder / "server.log", death_signal=self.death_signal)

    def answers(self) -> bool:
        """Whether it answers a ping."""
        try:
            with self.client() as client:
                return bool(client.ping())
        except (RedisError, OSError):
            return False


def postgres_bin() -> Path:
    """The folder of the newest installed server. Skips the test where there is none, and fails it in CI."""
    # Debian keeps each major version's binaries in a folder of its own, off the PATH.
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_version, reverse=True)
    on_path = shutil.which("postgres")
    for folder in [*folders, *([Path(on_path).resolve().parent] if on_path else [])]:
        if all((folder / name).is_file() for name in ("postgres", "initdb")):
            return folder
    return unavailable("no PostgreSQL server is installed (Debian: apt-get install postgresql)")


def redis_binary() -> str:
    """The installed `redis-server`. Skips the test where there is none, and fails it in CI."""
    return shutil.which("redis-server") or unavailable(
        "no redis-server is installed (Debian: apt-get install redis-server)"
    )


def unprivileged_identity() -> Identity:
    """Who PostgreSQL runs as: oneself, or for root, whom PostgreSQL refuses, a user that owns nothing here."""
    if os.geteuid() != 0:
        return Identity.own()
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    for name in UNPRIVILEGED_USERS:
        if name in known:
            return Identity(known[name].pw_uid, known[name].pw_gid)
    return unavailable(f"root cannot run PostgreSQL, and there is no user named {' or '.join(UNPRIVILEGED_USERS)}")


def _children_of(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _version(folder: Path) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", folder.parent.name))
