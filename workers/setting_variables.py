"""The environment variables: the one list of them, which `docs/settings.md` is compared with."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from workers.setting_values import (
    WrongValue,
    address,
    choice,
    database_url,
    directory,
    hosts,
    http_url,
    name,
    networks,
    object_reference,
    origins,
    port,
    redis_url,
    seconds,
    secret,
    shown_url,
    whole,
)

__all__ = ["OFFLINE_MODEL", "VARIABLES", "SettingsRefused", "Variable"]

#: The model that needs no key and no network.
OFFLINE_MODEL = "offline"


class SettingsRefused(ValueError):
    """The environment cannot be honoured as it stands; nothing was started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """One environment variable.

    Attributes:
        name: Of the variable.
        field: Of `Settings`.
        default: The text that stands for no value; None when there is none.
        shown_default: The default as a reader is told it.
        read_value: Text to value; raises WrongValue.
        allowed: What is allowed, to follow "must be".
        example: A value that is allowed.
        meaning: What it does, a sentence.
        shown: How a refused value is repeated; a secret is not.
    """

    name: str
    field: str
    default: str | None
    shown_default: str
    read_value: Callable[[str], Any]
    allowed: str
    example: str
    meaning: str
    shown: Callable[[str], str] = repr

    def read(self, environment: Mapping[str, str]) -> Any:
        """The value in `environment`, or the default. Raises SettingsRefused."""
        text = environment.get(self.name) or self.default
        if text is None:
            return None
        try:
            return self.read_value(text)
        except WrongValue as error:
            raise SettingsRefused(
                f"{self.name} is {self.shown(text)}, but must be {self.allowed}; for example {self.name}={self.example}"
            ) from error


def _not_shown(_text: str) -> str:
    return "not usable (its value is not shown)"


VARIABLES: tuple[Variable, ...] = (
    Variable(
        name="HOST",
        field="host",
        default="127.0.0.1",
        shown_default="`127.0.0.1`",
        read_value=address,
        allowed="an IP address or a host name to listen on",
        example="0.0.0.0",  # noqa: S104 - an example of what an operator may choose
        meaning="The address the server listens on. Only `/ok` and `/ready` need no key, whatever it is.",
    ),
    Variable(
        name="PORT",
        field="port",
        default="8123",
        shown_default="`8123`",
        read_value=port,
        allowed="a port number from 0 to 65535 (0: any free port)",
        example="8123",
        meaning="The port the server listens on.",
    ),
    Variable(
        name="THREADMARK_DATA_DIR",
        field="data_dir",
        default=".threadmark",
        shown_default="`./.threadmark`",
        read_value=directory,
        allowed="a path of a directory",
        example="/var/lib/threadmark",
        meaning="Where the SQLite files, `admin.key` and the index live. Made on the first start, for its owner alone.",
    ),
    Variable(
        name="THREADMARK_STATE_DATABASE_URL",
        field="state_database_url",
        default=None,
        shown_default="`sqlite:///DATA_DIR/state.db`",
        read_value=database_url,
        allowed="sqlite:///path or postgresql://user:password@host:port/name",
        example="sqlite:////var/lib/threadmark/state.db",
        meaning="The database of threads, runs, journals and API keys.",
        shown=shown_url,
    ),
    Variable(
        name="THREADMARK_MEMORY_DATABASE_URL",
        field="memory_database_url",
        default=None,
        shown_default="`sqlite:///DATA_DIR/memory.db`",
        read_value=database_url,
        allowed="sqlite:///path or postgresql://user:password@host:port/name",
        example="postgresql://threadmark:…@db.internal:5432/memory",
        meaning="The database of memories. It may be down while runs go on.",
        shown=shown_url,
    ),
    Variable(
        name="THREADMARK_REDIS_URL",
        field="redis_url",
        default=None,
        shown_default="none: the doorbell stays in the process",
        read_value=redis_url,
        allowed="redis://host:port/number or rediss://host:port/number",
        example="redis://127.0.0.1:6379/0",
        meaning="The doorbell and the live feed between several processes; what is lost with it comes a moment later.",
        shown=shown_url,
    ),
    Variable(
        name="THREADMARK_SERVE_WORKER",
        field="serve_worker",
        default="auto",
        shown_default="`auto`",
        read_value=choice("auto", "yes", "no"),
        allowed="auto, yes or no",
        example="yes",
        meaning="Whether `threadmark serve` moves runs too; `auto`: unless THREADMARK_REDIS_URL says that others do.",
    ),
    Variable(
        name="THREADMARK_QDRANT_URL",
        field="qdrant_url",
        default=None,
        shown_default="none: the index stays in the process",
        read_value=http_url,
        allowed="http://host:port or https://host:port",
        example="http://127.0.0.1:6333",
        meaning="The server of the memory index.",
        shown=shown_url,
    ),
    Variable(
        name="THREADMARK_AGENTS",
        field="agents",
        default="examples.registry:registry",
        shown_default="`examples.registry:registry` (assistants `chat` and `refund`)",
        read_value=object_reference,
        allowed="module:name of a registry of agents and tools",
        example="myshop.agents:registry",
        meaning="The agents this server offers as assistants, and their tools.",
    ),
    Variable(
        name="THREADMARK_MODEL",
        field="model",
        default=OFFLINE_MODEL,
        shown_default=f"`{OFFLINE_MODEL}`",
        read_value=name,
        allowed=f"the name of a model, or {OFFLINE_MODEL} for the one that needs no key",
        example=OFFLINE_MODEL,
        meaning="The model of agents that name none. A key alone calls (and pays) nobody: a model must be named too.",
    ),
    Variable(
        name="OPENAI_API_KEY",
        field="openai_api_key",
        default=None,
        shown_default="none",
        read_value=secret,
        allowed="a key without spaces or line breaks",
        example="sk-example",
        meaning="The key of the model's provider. It is never logged, journaled or shown.",
        shown=_not_shown,
    ),
    Variable(
        name="OPENAI_BASE_URL",
        field="openai_base_url",
        default=None,
        shown_default="none: the provider's own",
        read_value=http_url,
        allowed="http://host:port/path or https://host:port/path",
        example="http://127.0.0.1:11434/v1",
        meaning="A server that speaks the protocol of OpenAI's chat completions.",
        shown=shown_url,
    ),
    Variable(
        name="THREADMARK_LEASE_TTL_S",
        field="lease_ttl_s",
        default="10",
        shown_default="`10`",
        read_value=seconds(0.1, 3600),
        allowed="seconds from 0.1 to 3600",
        example="10",
        meaning="How long the lease of a worker lasts that nobody renews: a dead worker is noticed this late, at most.",
    ),
    Variable(
        name="THREADMARK_HEARTBEAT_S",
        field="heartbeat_s",
        default="2",
        shown_default="`2`",
        read_value=seconds(0.01, 3600),
        allowed="seconds from 0.01 to 3600, less than THREADMARK_LEASE_TTL_S",
        example="2",
        meaning="How often a worker renews its lease.",
    ),
    Variable(
        name="THREADMARK_SWEEP_S",
        field="sweep_s",
        default="1",
        shown_default="`1`",
        read_value=seconds(0.01, 3600),
        allowed="seconds from 0.01 to 3600",
        example="1",
        meaning="How often a worker looks for runs that nobody moves.",
    ),
    Variable(
        name="THREADMARK_BODY_BYTES_MAX",
        field="body_bytes_max",
        default=str(2**20),
        shown_default="`1048576` (1 MiB)",
        read_value=whole(1_024, 64 * 2**20),
        allowed="bytes from 1024 to 67108864",
        example="1048576",
        meaning="The largest request body that is read; more is answered with 413.",
    ),
    Variable(
        name="THREADMARK_RATE_PER_S",
        field="rate_per_s",
        default="200",
        shown_default="`200`",
        read_value=seconds(0.01, 100_000),
        allowed="a number from 0.01 to 100000",
        example="200",
        meaning="Requests a second that a key wins back, on average, in each process; more is answered with 429.",
    ),
    Variable(
        name="THREADMARK_RATE_BURST",
        field="rate_burst",
        default="1000",
        shown_default="`1000`",
        read_value=whole(1, 1_000_000),
        allowed="a whole number from 1 to 1000000",
        example="1000",
        meaning="Requests a rested key may make at once.",
    ),
    Variable(
        name="THREADMARK_TRUSTED_PROXIES",
        field="trusted_proxies",
        default="",
        shown_default="none: the peer is the client",
        read_value=networks,
        allowed="addresses or networks of proxies, with commas between them",
        example="10.0.0.0/8,192.0.2.7",
        meaning="Proxies whose `X-Forwarded-For` and `X-Request-Id` are believed.",
    ),
    Variable(
        name="THREADMARK_ALLOWED_HOSTS",
        field="allowed_hosts",
        default="",
        shown_default="none: any well-formed name",
        read_value=hosts,
        allowed="host names without a port, with commas between them",
        example="agents.example.com,localhost",
        meaning="The names that the `Host` header may have; another is answered with 400.",
    ),
    Variable(
        name="THREADMARK_ALLOWED_ORIGINS",
        field="allowed_origins",
        default="",
        shown_default="none: no page of another origin may call",
        read_value=origins,
        allowed="origins such as https://chat.example.com, with commas between them",
        example="https://chat.example.com,http://localhost:3000",
        meaning="Origins whose pages may call the API from a browser (CORS). There is no `*`.",
    ),
    Variable(
        name="THREADMARK_LOG_LEVEL",
        field="log_level",
        default="info",
        shown_default="`info`",
        read_value=choice("debug", "info", "warning", "error"),
        allowed="debug, info, warning or error",
        example="info",
        meaning="The least severe log line that is written. Every request is a line of level info.",
    ),
)
