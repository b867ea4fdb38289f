"""Why a model gave no reply.

ModelError
├── ModelUnavailable    not now: another attempt may succeed
├── ModelRefused        never so: the same request would fail again
│   └── ReplyTooLarge
└── PromptInvalid       the messages cannot be sent to any model

No message holds a key, a header or a body.
"""

__all__ = ["ModelError", "ModelRefused", "ModelUnavailable", "PromptInvalid", "ReplyTooLarge"]


class ModelError(Exception):
    """Any failure of a model call; no reply came of it."""


class ModelUnavailable(ModelError):
    """Too many requests, a fault or a silence of the model's server, or a reply cut short; worth another attempt."""

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s  #: what the server asked to wait, where it did


class ModelRefused(ModelError):
    """The model's server refused the request, or its reply cannot be used; another attempt is pointless."""


class ReplyTooLarge(ModelRefused):
    """The reply passed a bound and was abandoned."""

    def __init__(self, what: str, bound: int) -> None:
        super().__init__(f"the model's reply has more than {bound:,} {what}")


class PromptInvalid(ModelError):
    """These messages are no conversation that a model's server accepts; nothing was sent."""
