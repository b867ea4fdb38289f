"""Settings: read once from the environment, checked, and frozen.

A wrong value stops the start with one sentence: the variable, the value (never a secret), what is allowed, and an
example. Each setting is declared once, in the module of its subject; `docs/settings.md` is compared with that.
"""

from collections.abc import Mapping
from typing import Self

from threadmark.workers.settings.database_limits import DatabaseLimits
from threadmark.workers.settings.declaration import SettingsRefused, variables
from threadmark.workers.settings.edge_settings import EdgeSettings
from threadmark.workers.settings.fleet_settings import FleetSettings
from threadmark.workers.settings.memory_settings import MemorySettings
from threadmark.workers.settings.model_settings import OFFLINE_MODEL, ModelSettings
from threadmark.workers.settings.tenant_bounds import TenantBounds
from threadmark.workers.settings.values import shown_url

__all__ = ["VARIABLES", "Settings", "SettingsRefused"]


# The last base is declared first: the documents begin with the server.
class Settings(DatabaseLimits, TenantBounds, EdgeSettings, FleetSettings, ModelSettings, MemorySettings):
    """All settings of a process. Durations are seconds, sizes bytes."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        """The settings of `environment`; an empty value counts as none. Raises SettingsRefused."""
        settings = super().from_environment(environment)
        _check_relations(settings)
        return settings


#: Every variable that a process reads.
VARIABLES = variables(Settings)


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
