"""Where a process listens, where its data lie, and which servers it shares with others."""

from pathlib import Path
from typing import Annotated

from threadmark.workers.settings.declaration import Declared, Reads, declared
from threadmark.workers.settings.values import (
    address,
    choice,
    database_url,
    directory,
    http_url,
    object_reference,
    port,
    redis_url,
    shown_url,
)

__all__ = ["DATABASE", "PORT", "SERVER", "SERVICE", "ServerSettings"]

PORT = Reads(port, "a port number from 0 to 65535 (0: any free port)")
DATABASE = Reads(
    database_url,
    "sqlite:///path, postgresql://user:password@host:port/name or postgresql://user@/name?host=/folder",
    shown_url,
)
SERVER = Reads(http_url, "http://host:port or https://host:port", shown_url)
REDIS = Reads(redis_url, "redis://host:port/number or rediss://host:port/number", shown_url)
SERVICE = Reads(http_url, "http://host:port/path or https://host:port/path", shown_url)


class ServerSettings(Declared):
    """Address, data and neighbours of a process."""

    host: Annotated[str, Reads(address, "an IP address or a host name to listen on")] = declared(
        "127.0.0.1",
        example="0.0.0.0",  # noqa: S104 - an example of what an operator may choose
        validation_alias="HOST",
    )
    """The address the server listens on. Only `/ok` and `/ready` need no key, whatever it is."""

    port: Annotated[int, PORT] = declared(8123, example="8123", validation_alias="PORT")
    """The port the server listens on."""

    data_dir: Annotated[Path, Reads(directory, "a path of a directory")] = declared(
        # Text, and read like any other: a file in its place is refused, and it is where the process is started.
        ".threadmark",
        shown="`./.threadmark`",
        example="/var/lib/threadmark",
        validate_default=True,
    )
    """Where the SQLite files, `admin.key` and the index live. Made on the first start, for its owner alone."""

    state_database_url: Annotated[str, DATABASE] = declared(
        default_factory=lambda given: f"sqlite:///{given['data_dir'] / 'state'}.db",
        shown="`sqlite:///DATA_DIR/state.db`",
        example="sqlite:////var/lib/threadmark/state.db",
    )
    """The database of threads, runs, journals and API keys."""

    redis_url: Annotated[str | None, REDIS] = declared(
        shown="none: notifications stay in the process", example="redis://127.0.0.1:6379/0"
    )
    """Notifications and the live feed between several processes; what is lost with it comes a moment later."""

    serve_worker: Annotated[str, Reads(choice("auto", "yes", "no"), "auto, yes or no")] = declared(
        "auto", example="yes"
    )
    """Whether `threadmark serve` moves runs too; `auto`: unless THREADMARK_REDIS_URL says that others do."""

    agents: Annotated[str, Reads(object_reference, "module:name of a registry of agents and tools")] = declared(
        "threadmark.examples.registry:registry",
        shown="`threadmark.examples.registry:registry` (assistants `chat`, `refund` and `memo`)",
        example="myshop.agents:registry",
    )
    """The agents this server offers as assistants, and their tools."""

    otlp_traces_url: Annotated[str | None, SERVICE] = declared(
        shown="none: no traces", example="http://127.0.0.1:4318/v1/traces"
    )
    """Where traces are sent, by OTLP over HTTP. Needs the extra `otel`."""

    log_level: Annotated[str, Reads(choice("debug", "info", "warning", "error"), "debug, info, warning or error")] = (
        declared("info", example="info")
    )
    """The least severe log line that is written. Every request is a line of level info."""

    @property
    def serves_with_worker(self) -> bool:
        """Whether the process that serves the API moves runs too."""
        return self.redis_url is None if self.serve_worker == "auto" else self.serve_worker == "yes"
