"""Models: what is asked of them, what they answer, the real ones and the offline one."""

from workers.models.choice import ModelSettingRefused, create_model
from workers.models.client import ChatModel
from workers.models.errors import ModelError, ModelRefused, ModelUnavailable, PromptInvalid, ReplyTooLarge
from workers.models.exchange import ModelReply, ModelRequest
from workers.models.offline import OFFLINE_MODEL, OfflineTransport
from workers.models.prompt import check_call_results, to_openai
from workers.models.script import offline_reply

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
