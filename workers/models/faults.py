"""What an error of the `openai` client means for a turn. Pure."""

import math
import re
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime

import openai

from threadmark.workers.models.errors import ModelError, ModelRefused, ModelUnavailable

__all__ = ["classify", "retry_after_s"]

#: Statuses below 500 that say "not now": request time-out, conflict, too early, too many requests.
_NOT_NOW = {408, 409, 425, 429}
_SERVER_FAULT = 500
#: Statuses whose message is about the request; that of 401 and 403 may repeat a key.
_TELLING = {400, 404, 413, 422}
_MESSAGE_LENGTH_MAX = 300
_SAID_LENGTH_MAX = 4096
#: What looks like an API key, also one with its middle starred out.
_SECRET = re.compile(r"(?i)\b(?:sk|pk)-[\w.*-]{6,}|\bbearer\s+\S+")


def classify(error: openai.OpenAIError, api_key: str) -> ModelError:
    """The error that a turn acts on, in words that may be shown and logged: `api_key` is hidden wherever it is said."""
    match error:
        case openai.APITimeoutError():
            return ModelUnavailable("the model's server did not answer in time")
        case openai.APIConnectionError():
            return ModelUnavailable("the connection to the model's server failed")
        case openai.APIStatusError():
            return _of_status(error, api_key)
        case openai.APIError() if error.type == "invalid_request_error":
            return ModelRefused(f"the model's server refused the request{_why(error, api_key)}")
        case openai.APIError():
            return ModelUnavailable(f"the model's server failed in the middle of its reply{_code(error)}")
        case _:
            return ModelRefused(f"the request could not be made ({type(error).__name__})")


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds that a server asks to wait: `retry-after-ms`, or `retry-after` in seconds or as a date."""
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            wait_s = float(headers[name]) * unit_s
        except (KeyError, ValueError):
            continue
        return max(wait_s, 0.0) if math.isfinite(wait_s) else None
    due_at, sent_at = _date(headers.get("retry-after")), _date(headers.get("date"))
    # Both instants are the server's: its clock may be off without harm.
    return max((due_at - sent_at).total_seconds(), 0.0) if due_at and sent_at else None


def _of_status(error: openai.APIStatusError, api_key: str) -> ModelError:
    status = error.status_code
    if status in _NOT_NOW or status >= _SERVER_FAULT:
        return ModelUnavailable(
            f"the model's server answered {status}{_code(error)}", retry_after_s=retry_after_s(error.response.headers)
        )
    why = _why(error, api_key) if status in _TELLING else _code(error)
    return ModelRefused(f"the model's server refused the request with {status}{why}")


def _code(error: openai.APIError) -> str:
    code = error.code or error.type
    return f" ({code[:_MESSAGE_LENGTH_MAX]})" if isinstance(code, str) and code else ""


def _why(error: openai.APIError, api_key: str) -> str:
    body = error.body
    said = body.get("message") if isinstance(body, dict) else None
    if not isinstance(said, str) or not said:
        return _code(error)
    # Hidden before it is cut: half a key is still a secret.
    hidden = _SECRET.sub("[hidden]", said[:_SAID_LENGTH_MAX].replace(api_key, "[hidden]"))
    return f"{_code(error)}: {hidden[:_MESSAGE_LENGTH_MAX]}"


def _date(text: str | None) -> datetime | None:
    try:
        parsed = parsedate_to_datetime(text or "")
    except ValueError:
        return None
    return parsed if parsed.tzinfo is not None else None
