"""A token budget: which answers fit, best first. Pure."""

from collections.abc import Callable, Sequence

__all__ = ["estimated_tokens", "fitting"]

BYTES_PER_TOKEN = 4


def estimated_tokens(text: str) -> int:
    """About how many tokens a text is, erring on the high side; for callers without an exact counter."""
    return -(-len(text.encode()) // BYTES_PER_TOKEN) + 1


def fitting(texts: Sequence[str], token_count_max: int | None, count_tokens: Callable[[str], int]) -> list[int]:
    """The places of the texts that fit together, taken in order; a long one makes room for shorter ones after it."""
    if token_count_max is None:
        return list(range(len(texts)))
    left = token_count_max
    chosen: list[int] = []
    for at, text in enumerate(texts):
        cost = count_tokens(text)
        if cost <= left:
            chosen.append(at)
            left -= cost
    return chosen
