"""Which model serves: the one that the settings name, or the offline model.

| THREADMARK_MODEL | OPENAI_API_KEY | OPENAI_BASE_URL | serves |
| --- | --- | --- | --- |
| unset or `offline` | either | either | the offline model: a key alone makes no paid call |
| a name | set | unset | that model at OpenAI |
| a name | either | set | that model at that server |
| a name | unset | unset | nothing: refused, a key is missing |
"""

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx2

from threadmark.workers.models.client import (
    CONNECT_TIMEOUT_S,
    REPLY_TIMEOUT_S,
    SILENCE_TIMEOUT_S,
    ChatModel,
    bound_response,
)
from threadmark.workers.models.offline import OFFLINE_MODEL, OfflineTransport
from threadmark.workers.models.script import PlannedReply, offline_reply

__all__ = ["ModelSettingRefused", "create_model", "offline_model"]

_OPENAI = "https://api.openai.com/v1"
_NO_KEY = "no-key-needed"  #: the client sends a key always; a server of one's own looks at none
_NAME = re.compile(r"[^\s\x00-\x1f\x7f]{1,200}")
_CONNECTION_COUNT_MAX = 100
_TIMEOUT = httpx2.Timeout(SILENCE_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)


class ModelSettingRefused(ValueError):
    """Settings that lead to no model; the sentence says how to put them right."""


def create_model(
    *,
    model: str | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
    word_delay_s: float = 0.0,
    reply_timeout_s: float = REPLY_TIMEOUT_S,
) -> ChatModel:
    """The model that these settings name; an empty setting counts as unset. `word_delay_s` is the offline model's.

    Raises ModelSettingRefused.
    """
    if not model or model == OFFLINE_MODEL:
        return offline_model(word_delay_s=word_delay_s, reply_timeout_s=reply_timeout_s)
    if not _NAME.fullmatch(model):
        raise ModelSettingRefused(
            f"THREADMARK_MODEL is {model[:80]!r}: a model's name has no blanks, 200 signs at most"
        )
    if not (api_key or base_url):
        raise ModelSettingRefused(
            f"THREADMARK_MODEL is {model!r} and OPENAI_API_KEY is not set: set the key, set OPENAI_BASE_URL to a "
            "server that asks for none, or set THREADMARK_MODEL=offline"
        )
    if base_url and not _is_http(base_url):
        raise ModelSettingRefused("OPENAI_BASE_URL must begin with http:// or https:// and usually ends in /v1")
    http_client = httpx2.AsyncClient(
        timeout=_TIMEOUT,
        limits=httpx2.Limits(max_connections=_CONNECTION_COUNT_MAX),
        event_hooks={"response": [bound_response]},
    )
    return ChatModel(
        name=model,
        api_key=api_key or _NO_KEY,
        base_url=base_url or _OPENAI,
        http_client=http_client,
        reply_timeout_s=reply_timeout_s,
    )


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False


def offline_model(
    *,
    word_delay_s: float = 0.0,
    reply_timeout_s: float = REPLY_TIMEOUT_S,
    answer: Callable[[Mapping[str, Any]], PlannedReply] = offline_reply,
) -> ChatModel:
    """The built-in model; `answer` makes its replies."""
    # A proxy named in the environment would be mounted in front of the transport and take the offline model online.
    http_client = httpx2.AsyncClient(
        transport=OfflineTransport(word_delay_s=word_delay_s, answer=answer), timeout=_TIMEOUT, trust_env=False
    )
    return ChatModel(
        name=OFFLINE_MODEL,
        api_key="offline",
        base_url="http://offline.invalid/v1",
        http_client=http_client,
        offline=True,
        reply_timeout_s=reply_timeout_s,
    )
