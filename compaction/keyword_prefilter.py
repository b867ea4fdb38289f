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

    A plain alternation is tried at every character of the text, word by word. A pattern that starts with a set of
    characters is not: the engine runs ahead to the next member of the set. From there it goes down a tree of letters,
    so the number of words hardly matters.
    """
    by_initial: dict[str, list[str]] = {}
    for word in sorted(set(each_of)):
        by_initial.setdefault(word[0], []).append(word[1:])
    initials = "".join(re.escape(initial) for initial in by_initial)
    branches = "|".join(f"(?<={re.escape(initial)}){_tree(rests)}" for initial, rests in by_initial.items())
    return f"[{initials}](?<![{_LATIN}][A-Za-zÀ-ɏ])(?:{branches})"


def _tree(endings: list[str]) -> str:
    """A pattern for any of the endings, the longest first; they share what they begin with."""
    by_letter: dict[str, list[str]] = {}
    for ending in endings:
        if ending:
            by_letter.setdefault(ending[0], []).append(ending[1:])
    branches = []
    for letter, rests in by_letter.items():
        branches.append(re.escape(letter) + ("" if rests == [""] else _tree(rests)))
    if not branches:
        return ""
    if "" in endings:
        return f"(?:{'|'.join(branches)})?"
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"
