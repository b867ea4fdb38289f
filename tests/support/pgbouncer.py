"""A PgBouncer of the tests' own in front of a database, in the mode that a test wants."""

import os
import shutil
from typing import Literal

import psycopg
from sqlalchemy import URL, make_url

from tests.support.daemon import Daemon, PrivateServer, unavailable
from tests.support.servers import unprivileged_identity

__all__ = ["Mode", "PrivatePgBouncer"]

Mode = Literal["session", "transaction", "statement"]
SETTINGS = """\
[databases]
{name} = host={host} port={port} user={user} dbname={name}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {own_port}
unix_socket_dir =
auth_type = any
auth_file = users.txt
pool_mode = {mode}
default_pool_size = 40
"""


class PrivatePgBouncer(PrivateServer):
    """Passes clients on to the database at an address, session by session or transaction by transaction."""

    def __init__(self, behind: str, mode: Mode) -> None:
        self._binary = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
        if self._binary is None:
            unavailable("no PgBouncer is installed (Debian: apt-get install pgbouncer)")
        super().__init__("pgbouncer")
        self._identity = unprivileged_identity()
        os.chown(self.folder, self._identity.uid, self._identity.gid)
        self._behind = make_url(behind)
        self._mode = mode

    @property
    def url(self) -> str:
        """The same database, through the pooler."""
        behind = self._behind
        through = URL.create(
            "postgresql", username=behind.username, host="127.0.0.1", port=self.port, database=behind.database
        )
        return through.render_as_string(hide_password=False)

    def spawn(self) -> Daemon:
        """Start the process, with settings for the port that it got."""
        behind = self._behind
        (self.folder / "users.txt").write_text(f'"{behind.username}" ""\n')
        (self.folder / "pgbouncer.ini").write_text(
            SETTINGS.format(
                name=behind.database,
                host=behind.host,
                port=behind.port,
                user=behind.username,
                own_port=self.port,
                mode=self._mode,
            ).replace("users.txt", str(self.folder / "users.txt"))
        )
        command = [str(self._binary), str(self.folder / "pgbouncer.ini")]
        log = self.folder / "server.log"
        return Daemon(command, log=log, identity=self._identity, death_signal=self.death_signal)

    def answers(self) -> bool:
        """Whether a connection through it is accepted."""
        try:
            psycopg.connect(self.url, connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True
