"""Settings: read once from the environment, checked, and frozen.

A wrong value stops the start with one sentence: the variable, the value (never a secret), what is allowed, and an
example. The variables themselves are listed in `setting_variables.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from threadmark.compaction import Price
from threadmark.db import Limits
from threadmark.workers.settings.bound_variables import BOUND, Bounds
from threadmark.workers.settings.database_variables import LIMIT
from threadmark.workers.settings.values import Network, shown_url
from threadmark.workers.settings.variables import OFFLINE_MODEL, VARIABLES, SettingsRefused

__all__ = ["Settings", "SettingsRefused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a process was told, all of it. Durations are seconds, sizes bytes."""

    host: str
    port: int
    data_dir: Path
    state_database_url: str = field(repr=False)
    redis_url: str | None = field(repr=False)
    serve_worker: str
    memory_database_url: str = field(repr=False)
    qdrant_url: str | None = field(repr=False)
    qdrant_api_key: str | None = field(repr=False)
    memory_index: str
    embedder: str
    embedder_url: str | None = field(repr=False)
    recalls_kept_days: int
    ledger_words_days: int
    agents: str
    model: str
    model_prices: Mapping[str, Price]
    openai_api_key: str | None = field(repr=False)
    openai_base_url: str | None
    lease_ttl_s: float
    heartbeat_s: float
    health_port: int | None
    sweep_s: float
    folds_mib: int
    body_bytes_max: int
    import_bytes_max: int
    rate_per_s: float
    rate_burst: int
    trusted_proxies: tuple[Network, ...]
    allowed_hosts: tuple[str, ...]
    allowed_origins: tuple[str, ...]
    otlp_traces_url: str | None = field(repr=False)
    log_level: str
    bounds: Bounds
    answer_s: float
    limits: Limits

    @property
    def serves_with_worker(self) -> bool:
        """Whether the process that serves the API moves runs too."""
        return self.redis_url is None if self.serve_worker == "auto" else self.serve_worker == "yes"

    @property
    def model_price(self) -> Price | None:
        """What the server's own model costs; None: nobody said."""
        return self.model_prices.get(self.model)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Settings":
        """The settings of `environment`; an empty value counts as none. Raises SettingsRefused."""
        values = {variable.field: variable.read(environment) for variable in VARIABLES}
        values["limits"] = Limits(**_taken_from(values, LIMIT))
        values["bounds"] = Bounds(**_taken_from(values, BOUND))
        data_dir = values["data_dir"]
        for store in ("state", "memory"):
            values[f"{store}_database_url"] = values[f"{store}_database_url"] or f"sqlite:///{data_dir / store}.db"
        settings = cls(**values)
        _check_relations(settings)
        return settings


def _taken_from(values: dict[str, Any], prefix: str) -> dict[str, Any]:
    """Those whose names begin with the prefix, by the rest of their names; they are in `values` no longer."""
    return {name.removeprefix(prefix): values.pop(name) for name in list(values) if name.startswith(prefix)}


def _check_relations(settings: Settings) -> None:
    if settings.heartbeat_s >= settings.lease_ttl_s:
        raise SettingsRefused(
            f"THREADMARK_HEARTBEAT_S is {settings.heartbeat_s:g}, but must be less than THREADMARK_LEASE_TTL_S "
            f"({settings.lease_ttl_s:g}), or every lease ends before it is renewed; "
            f"for example THREADMARK_HEARTBEAT_S={settings.lease_ttl_s / 5:g}"
        )
    if settings.model != OFFLINE_MODEL and not (settings.openai_api_key or settings.openai_base_url):
        raise SettingsRefused(
            f"THREADMARK_MODEL is {settings.model!r}, but must be {OFFLINE_MODEL} while neither OPENAI_API_KEY nor "
            f"OPENAI_BASE_URL says where to find it; for example THREADMARK_MODEL={OFFLINE_MODEL}"
        )
    if settings.state_database_url == settings.memory_database_url and settings.state_database_url.startswith("sqlite"):
        raise SettingsRefused(
            f"THREADMARK_MEMORY_DATABASE_URL is {shown_url(settings.memory_database_url)}, but must be another file "
            "than THREADMARK_STATE_DATABASE_URL, or the two wait for each other's writes; "
            f"for example THREADMARK_MEMORY_DATABASE_URL=sqlite:///{settings.data_dir / 'memory'}.db"
        )
