"""Money, in whole picos: millionths of a millionth of the currency's unit. Nothing is rounded, and no float takes part.

A price per million tokens with six decimals is a whole number of picos per token. The currency is the operator's, one
for all prices and caps.
"""

import re
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from threadmark.compaction.summary import SummaryPrompt, SummaryReply

__all__ = ["AMOUNT_PATTERN", "Price", "bound_of", "cost_of", "picos_of", "price_of", "spell_money"]

UNIT = 10**12
MILLION = 10**6
#: Up to a million of the currency's unit, six decimals at most.
AMOUNT_PATTERN = r"^(0|[1-9][0-9]{0,5})(\.[0-9]{1,6})?$"
PRICE_MAX = 10_000 * MILLION  #: picos per token: ten thousand per million tokens
#: What a chat format adds to a prompt's own text, generously (tokens).
FRAME_TOKENS = 64
#: More than any model reads or says in one call: a larger count is no count (tokens).
CALL_TOKENS_MAX = 10_000_000
_AMOUNT = re.compile(AMOUNT_PATTERN.removesuffix("$"))


class Price(msgspec.Struct, frozen=True):
    """What a model costs, in picos per token."""

    input: int
    output: int


def picos_of(text: str) -> int:
    """The amount that a decimal text gives. Raises ValueError."""
    if not _AMOUNT.fullmatch(text):
        raise ValueError(f"{text!r} is no amount of money: write a decimal with up to six places, as in '2.50'")
    whole, _, decimals = text.partition(".")
    return int(whole) * UNIT + int(decimals.ljust(12, "0"))


def price_of(input_text: str, output_text: str) -> Price:
    """The price of a model, from amounts per million tokens. Raises ValueError."""
    price = Price(picos_of(input_text) // MILLION, picos_of(output_text) // MILLION)
    if max(price.input, price.output) > PRICE_MAX:
        raise ValueError(f"a price is at most {PRICE_MAX // MILLION} per million tokens")
    return price


def spell_money(picos: int) -> str:
    """The amount as a decimal text, exact."""
    whole, part = divmod(picos, UNIT)
    decimals = f"{part:012d}".rstrip("0")
    return f"{whole}.{decimals}" if decimals else str(whole)


def bound_of(prompt: "SummaryPrompt", price: Price) -> int:
    """What a call may cost at most: a token has at least one byte, and a reply is cut off at its bound."""
    size = len(f"{prompt.system}{prompt.user}".encode("utf-8", "surrogatepass"))
    return (size + FRAME_TOKENS) * price.input + prompt.output_tokens_max * price.output


def cost_of(prompt: "SummaryPrompt", reply: "SummaryReply", price: Price) -> int:
    """What a call has cost by the count of its server; all that it may cost, where the server counts nothing."""
    if reply.prompt_tokens <= 0 or reply.output_tokens < 0:
        return bound_of(prompt, price)
    read, said = min(reply.prompt_tokens, CALL_TOKENS_MAX), min(reply.output_tokens, CALL_TOKENS_MAX)
    return read * price.input + said * price.output
