"""Models: what is asked of them, what they answer, the real ones and the offline one."""

from typing import TYPE_CHECKING

from threadmark.lazy import lazy_exports

if TYPE_CHECKING:
    from threadmark.workers.models.choice import ModelSettingRefused, create_model
    from threadmark.workers.models.client import ChatModel
    from threadmark.workers.models.errors import (
        ModelError,
        ModelRefused,
        ModelUnavailable,
        PromptInvalid,
        ReplyTooLarge,
    )
    from threadmark.workers.models.exchange import ModelReply, ModelRequest
    from threadmark.workers.models.offline import OFFLINE_MODEL, OfflineTransport
    from threadmark.workers.models.prompt import check_call_results, to_openai
    from threadmark.workers.models.script import offline_reply
else:
    __getattr__, __dir__ = lazy_exports(__name__, __file__)

__all__ = [
    "OFFLINE_MODEL",
    "ChatModel",
    "ModelError",
    "ModelRefused",
    "ModelReply",
    "ModelRequest",
    "ModelSettingRefused",
    "ModelUnavailable",
    "OfflineTransport",
    "PromptInvalid",
    "ReplyTooLarge",
    "check_call_results",
    "create_model",
    "offline_reply",
    "to_openai",
]
