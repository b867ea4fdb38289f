"""Patterns that find any of many words, fast: the regex engine skips to characters that begin one of them."""

import re
from collections.abc import Iterable

__all__ = ["word_lead", "words"]

_LATIN = "A-Za-z0-9_À-ɏ"


def words(table: str) -> list[str]:
    """The words of a table that is written as one text."""
    return table.split()


def word_lead(each_of: Iterable[str]) -> str:
    """A pattern for any of the words, the longest first. A Latin word begins where no Latin word goes on.

    A plain alternation is tried at every character of the text. A pattern that starts with a set of characters is
    not: the engine runs ahead to the next member of the set.
    """
    by_initial: dict[str, list[str]] = {}
    for word in sorted(set(each_of), key=lambda word: (-len(word), word)):
        by_initial.setdefault(word[0], []).append(word[1:])
    initials = "".join(re.escape(initial) for initial in sorted(by_initial))
    branches = "|".join(
        f"(?<={re.escape(initial)})(?:{'|'.join(re.escape(rest) for rest in rests)})"
        for initial, rests in sorted(by_initial.items())
    )
    return f"[{initials}](?<![{_LATIN}][A-Za-zÀ-ɏ])(?:{branches})"
