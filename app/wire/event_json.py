"""How events are spelled: JSON on one line, whatever the reader takes for a line."""

from typing import Any

import msgspec

__all__ = ["join_values", "spell_event"]

_ENCODER = msgspec.json.Encoder()
#: JSON leaves these as they are, and some readers of streams end a line there.
_SEPARATORS = (("\u2028".encode(), rb"\u2028"), ("\u2029".encode(), rb"\u2029"), ("\u0085".encode(), rb"\u0085"))


def spell_event(value: Any) -> bytes:
    """`value` as JSON without a line end of any kind: JSON itself escapes CR, LF and NUL, and only in strings."""
    data = _ENCODER.encode(value)
    for separator, escape in _SEPARATORS:
        if separator in data:
            data = data.replace(separator, escape)
    return data


def join_values(messages: list[bytes], interrupts: list[dict[str, Any]]) -> bytes:
    """The values of a state, from messages that were spelled before: a long transcript is not spelled again."""
    data = b'{"messages":[' + b",".join(messages) + b"]"
    return data + (b',"__interrupt__":' + spell_event(interrupts) if interrupts else b"") + b"}"
