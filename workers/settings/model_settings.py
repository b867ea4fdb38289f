"""Which model agents use that name none, what models cost, and where they are."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated

from threadmark.compaction import Price
from threadmark.workers.settings.declaration import Declared, Reads, declared
from threadmark.workers.settings.memory_settings import KEY
from threadmark.workers.settings.server_settings import SERVICE
from threadmark.workers.settings.values import name, prices

__all__ = ["OFFLINE_MODEL", "ModelSettings"]

#: The model that needs no key and no network.
OFFLINE_MODEL = "offline"


class ModelSettings(Declared):
    """The model, its provider and its price."""

    model: Annotated[str, Reads(name, f"the name of a model, or {OFFLINE_MODEL} for the one that needs no key")] = (
        declared(OFFLINE_MODEL, example=OFFLINE_MODEL)
    )
    """The model of agents that name none. A key alone makes no (paid) call: a model must be named too."""

    model_prices: Annotated[
        Mapping[str, Price],
        Reads(prices, "a JSON object of models, each with `input` and `output`: decimals in texts, at most 10000"),
    ] = declared(
        default_factory=lambda: MappingProxyType({}),
        shown="none: caps in money are refused",
        example='{"large-1": {"input": "2.50", "output": "10"}}',
    )
    """What a million tokens of a model cost, in one currency of your choice. Caps in money (`cost_max` of
    compactions and their jobs) count with it."""

    openai_api_key: Annotated[str | None, KEY] = declared(
        shown="none", example="sk-example", validation_alias="OPENAI_API_KEY"
    )
    """The key of the model's provider. It is never logged, journaled or shown."""

    openai_base_url: Annotated[str | None, SERVICE] = declared(
        shown="none: the provider's own", example="http://127.0.0.1:11434/v1", validation_alias="OPENAI_BASE_URL"
    )
    """A server that speaks the protocol of OpenAI's chat completions."""

    @property
    def model_price(self) -> Price | None:
        """What the server's own model costs; None: not configured."""
        return self.model_prices.get(self.model)
