"""The migrations of one package in a database, with Alembic: each package has a folder of them and a version table.

A database may be at a revision that this code does not know: a newer version of a mixed fleet, or one that was taken
back, has migrated it. Migrations only add (`docs/operations.md`), so the older code goes on over the newer schema.
"""

import logging
from dataclasses import dataclass
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine

from threadmark.db.lock_retry import change_schema

__all__ = ["Migrations"]

_LOG = logging.getLogger("threadmark.schema")


@dataclass(frozen=True, slots=True)
class Migrations:
    """The migrations of `package`, from `folder`; the database keeps its revision in `version_table`."""

    package: str
    folder: Path
    version_table: str

    def migrate(self, engine: Engine, revision: str = "head") -> None:
        """Bring the database behind `engine` to `revision` (`base` for none), up or down: a transaction for each step.

        An empty database gets everything in one. One that a newer version has migrated is left as it is by `head`.
        Raises MigrationBlocked; the steps before are done then, and it can be run again.
        """
        # Several steps in one transaction would hold the lock of one table while they wait for another, which a claim
        # holds that waits for the first.
        while change_schema(engine, lambda connection: self._step(connection, revision)):
            pass

    def current_revision(self, engine: Engine) -> str | None:
        """The revision that the database is at; None before the first migration."""
        with engine.connect() as connection:
            return self._revision(connection)

    def head_revision(self) -> str:
        """The revision that this code needs."""
        head = self._scripts.get_current_head()
        if head is None:
            raise RuntimeError(f"the {self.package} package has no migrations")
        return head

    def gap(self, engine: Engine) -> str | None:
        """What the database lacks, in a phrase; None for one that is at this code's revision, or beyond it."""
        at, needed = self.current_revision(engine), self.head_revision()
        if at == needed or (at is not None and self._is_newer(at)):
            return None
        standing = "has no tables yet" if at is None else f"is at revision {at}"
        return f"{self.package} {standing}, needed is {needed}"

    def _step(self, connection: Connection, revision: str) -> bool:
        """Go a step towards `revision`; False when it is reached."""
        config, at = self._config, self._revision(connection)
        config.attributes["connection"] = connection
        if at is None:
            if revision != "base":
                command.upgrade(config, revision)
            return False
        if revision == "head" and self._is_newer(at):
            _LOG.warning("%s was migrated to %s by a newer version; this one goes on over it", self.package, at)
            return False
        if at == (self.head_revision() if revision == "head" else revision):
            return False
        if revision == "head" or self._is_upgrade(at, revision):
            command.upgrade(config, "+1")
        else:
            command.downgrade(config, "-1")
        return True

    def _revision(self, connection: Connection) -> str | None:
        context = MigrationContext.configure(connection, opts={"version_table": self.version_table})
        return context.get_current_revision()

    def _is_newer(self, revision: str) -> bool:
        return revision not in {each.revision for each in self._scripts.walk_revisions()}

    def _is_upgrade(self, at: str, revision: str) -> bool:
        return revision != "base" and at in {each.revision for each in self._scripts.walk_revisions("base", revision)}

    @property
    def _scripts(self) -> ScriptDirectory:
        return ScriptDirectory.from_config(self._config)

    @property
    def _config(self) -> Config:
        config = Config()
        config.set_main_option("script_location", str(self.folder))
        return config
