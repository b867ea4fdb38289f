"""Atoms and clauses of an entry, found once at ingest and kept by content: the same text is never read twice."""

from collections.abc import Iterable

import msgspec

from compaction.atoms import EXTRACTOR_VERSION, Atom, extract_atoms
from compaction.atoms.language import guess_language
from compaction.clauses import Clause, extract_clauses, sentences
from compaction.source import SourceEntry

__all__ = ["Analyses", "PartAnalysis", "TextAnalysis", "analyse", "analyse_text"]


class TextAnalysis(msgspec.Struct, frozen=True, gc=False):
    """What was found in one text."""

    atoms: tuple[Atom, ...]
    clauses: tuple[Clause, ...]
    sentences: tuple[tuple[int, int], ...]


class PartAnalysis(msgspec.Struct, frozen=True, gc=False):
    """What was found in one part of a message."""

    part: int
    found: TextAnalysis


def analyse_text(text: str) -> TextAnalysis:
    """Atoms, clauses and sentences of a text."""
    spans, language = sentences(text), guess_language(text)
    return TextAnalysis(
        tuple(extract_atoms(text, language)), tuple(extract_clauses(text, spans, language)), tuple(spans)
    )


def analyse(entry: SourceEntry) -> tuple[PartAnalysis, ...]:
    """What is found in each part of the entry that can be read."""
    return tuple(PartAnalysis(number, analyse_text(text)) for number, text in entry.texts())


class Analyses:
    """A cache of analyses by content. What a store kept may be put in; what is new can be taken out."""

    def __init__(self, known: Iterable[tuple[str, tuple[PartAnalysis, ...]]] = ()) -> None:
        self._by_digest = dict(known)
        self._by_object: dict[int, tuple[SourceEntry, tuple[PartAnalysis, ...]]] = {}
        self.added: dict[str, tuple[PartAnalysis, ...]] = {}  #: by digest; what a store has yet to keep

    @staticmethod
    def key(entry: SourceEntry) -> str:
        """The digest under which the entry's analysis is kept; another extractor makes other keys."""
        return f"{EXTRACTOR_VERSION}:{entry.digest()}"

    def of(self, entry: SourceEntry) -> tuple[PartAnalysis, ...]:
        """The entry's analysis, made now if nobody made it before."""
        seen = self._by_object.get(id(entry))
        if seen is not None and seen[0] is entry:
            return seen[1]
        key = self.key(entry)
        known = self._by_digest.get(key)
        if known is None:
            known = self._by_digest[key] = self.added[key] = analyse(entry)
        # The entry is held with it, so that its id is not given to another one.
        self._by_object[id(entry)] = (entry, known)
        return known
