"""The canvas of one text: what has been found, and which code points are spoken for."""

import re

from threadmark.compaction.atoms.atom import CONTAINERS, Atom, AtomClass

__all__ = ["Canvas"]

_NUMBERS = re.compile(r"\d(?<![A-Za-z0-9_À-ɏ]\d)\d{0,40}+")


class Canvas:
    """Collects the atoms of one text; a later finder never takes what an earlier one has."""

    __slots__ = ("_numbers", "_taken", "found", "is_ascii", "language", "text")

    def __init__(self, text: str, language: str) -> None:
        self.text = text
        self.is_ascii = text.isascii()
        self.language = language  #: a guess: en, de, fr, es, zh or ja
        self.found: list[Atom] = []
        self._taken = bytearray(len(text))
        self._numbers: list[tuple[int, int]] | None = None

    def numbers(self) -> list[tuple[int, int]]:
        """Where digits begin that stand in no word, and where these digits end; found once for all finders."""
        if self._numbers is None:
            self._numbers = [match.span() for match in _NUMBERS.finditer(self.text)]
        return self._numbers

    def is_free(self, start: int, end: int) -> bool:
        """Whether no leaf atom has any code point of the span."""
        return self._taken.find(1, start, end) < 0

    def add(self, cls: AtomClass, start: int, end: int, canon: str) -> bool:
        """Keep the atom unless a leaf is in its way; containers hold leaves and never block one."""
        if end <= start or not canon:
            return False
        if cls not in CONTAINERS:
            if self._taken.find(1, start, end) >= 0:
                return False
            self._taken[start:end] = b"\x01" * (end - start)
        self.found.append(Atom(cls, start, end, canon))
        return True

    def bar(self, start: int, end: int) -> None:
        """Take the span without an atom: what stands there is no value (a list marker, a code fence)."""
        self._taken[start:end] = b"\x01" * (end - start)
