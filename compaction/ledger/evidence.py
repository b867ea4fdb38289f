"""What the new view says: its passages, and where a value, a clause or a string is in them."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from threadmark.compaction.clauses import clause_form
from threadmark.compaction.input.analysis import TextAnalysis
from threadmark.compaction.ledger.rows import Place
from threadmark.db.execution.pools import wanted_each

__all__ = ["Evidence", "Passage"]

_ASCII_WORD = re.compile(r"[A-Za-z0-9_]{1,200}")
LITERAL_MIN = 6  #: code points; a shorter string in the tail says too little to be searched for


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """One text of the view. `segment_id` is of a summary, `seq` of an entry that stays.

    A lasting passage (summary, pin, system text) stays in later views; the tail does not.
    """

    text: str
    found: TextAnalysis
    persistent: bool
    segment_id: str | None = None
    seq: int | None = None
    message: int = 0
    part: int = 0

    def place(self, start: int, end: int) -> Place:
        """A span of the passage as a place in the view."""
        return Place(self.segment_id, self.seq, self.message, self.part, start, end)


@dataclass(frozen=True, slots=True)
class Hit:
    """Where something was found; `inside` says that it is a part of a longer value there."""

    place: Place
    verbatim: bool
    persistent: bool
    inside: bool = False


class Evidence:
    """An index over the passages, lasting ones first: a hit in them is worth more than one in the tail."""

    def __init__(self, passages: Iterable[Passage]) -> None:
        self.passages = sorted(passages, key=lambda passage: not passage.persistent)
        self._atoms: dict[tuple[str, str], dict[str, Hit]] = {}
        self._clauses: dict[str, Hit] = {}
        self._surfaces: dict[str, Hit] = {}
        self._forms = [
            clause_form(passage.text) if passage.persistent else "" for passage in wanted_each(self.passages)
        ]
        self._words = [frozenset(_ASCII_WORD.findall(passage.text)) for passage in self.passages]
        self._all_words = frozenset[str]().union(*self._words)
        for passage in wanted_each(self.passages):
            self._index(passage)

    def _index(self, passage: Passage) -> None:
        for atom in passage.found.atoms:
            surface = passage.text[atom.start : atom.end]
            hit = Hit(passage.place(atom.start, atom.end), verbatim=True, persistent=passage.persistent)
            self._atoms.setdefault((atom.cls, atom.canon), {}).setdefault(surface, hit)
            self._surfaces.setdefault(surface, hit)
        for start, end in passage.found.sentences:
            hit = Hit(passage.place(start, end), verbatim=False, persistent=passage.persistent)
            self._clauses.setdefault(clause_form(passage.text[start:end]), hit)

    def atom(self, cls: str, canon: str, surfaces: Sequence[str]) -> Hit | None:
        """The value itself: by normal form, or as a string of the view."""
        forms = self._atoms.get((cls, canon))
        if forms:
            same = [forms[surface] for surface in surfaces if surface in forms]
            best = min(same or forms.values(), key=lambda hit: not hit.persistent)
            return Hit(best.place, verbatim=bool(same), persistent=best.persistent)
        for surface in surfaces:
            hit = self._surfaces.get(surface) or self.literal(surface)
            if hit:
                return hit
        return None

    def clause(self, canon: str, surfaces: Sequence[str]) -> Hit | None:
        """The clause word for word, or with other blanks, case or punctuation."""
        for surface in surfaces:
            hit = self.literal(surface, length_min=1)
            if hit:
                return Hit(hit.place, verbatim=True, persistent=hit.persistent)
        known = self._clauses.get(canon)
        if known:
            return known
        for passage, form in zip(self.passages, self._forms, strict=True):
            if form and canon in form:
                return Hit(passage.place(0, len(passage.text)), verbatim=False, persistent=passage.persistent)
        return None

    def literal(self, surface: str, length_min: int = LITERAL_MIN) -> Hit | None:
        """The string, standing free: `5` is not in `15`, and `a.b` not in `a.b.c`."""
        word = _ASCII_WORD.search(surface)
        # Most strings are not there: one look at the words of the view, or of a passage, says so without reading it.
        if word is not None and word[0] not in self._all_words:
            return None
        for passage, words in zip(self.passages, self._words, strict=True):
            if not passage.persistent and len(surface) < length_min:
                continue
            if word is not None and word[0] not in words:
                continue
            at = passage.text.find(surface)
            while at >= 0:
                end = at + len(surface)
                if _stands_free(passage.text, at, end):
                    inside = _inside_an_atom(passage, at, end)
                    return Hit(passage.place(at, end), verbatim=True, persistent=passage.persistent, inside=inside)
                at = passage.text.find(surface, at + 1)
        return None


def _stands_free(text: str, start: int, end: int) -> bool:
    before, after = text[start - 1 : start], text[end : end + 1]
    first, last = text[start], text[end - 1]
    if first.isascii() and first.isalnum() and before.isascii() and (before.isalnum() or before == "_"):
        return False
    if last.isascii() and last.isalnum() and after.isascii() and (after.isalnum() or after == "_"):
        return False
    if first.isdigit() and before in (".", ",", "-") and text[start - 2 : start - 1].isdigit():
        return False
    return not (last.isdigit() and after in (".", ",", "-", ":") and text[end + 1 : end + 2].isdigit())


def _inside_an_atom(passage: Passage, start: int, end: int) -> bool:
    atoms = passage.found.atoms
    at = bisect_right(atoms, start, key=lambda atom: atom.start)
    return any(
        atom.start <= start and end <= atom.end and atom.end - atom.start > end - start for atom in atoms[:at][-4:]
    )
