"""Atoms and clauses of an entry, found once at ingest and kept by content: the same text is never read twice."""

from collections.abc import Iterable, Sequence

import msgspec

from threadmark.compaction.atoms import EXTRACTOR_VERSION, Atom, extract_atoms_of
from threadmark.compaction.atoms.language import guess_language
from threadmark.compaction.clauses import Clause, extract_clauses, sentences
from threadmark.compaction.input.source import SourceEntry
from threadmark.db.execution.pools import wanted_each

__all__ = ["Analyses", "PartAnalysis", "TextAnalysis", "analyse", "analyse_all", "analyse_text"]

BATCH = 128  #: entries that are analysed together


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
    return _analyse_texts([text])[0]


def analyse(entry: SourceEntry) -> tuple[PartAnalysis, ...]:
    """What is found in each part of the entry that can be read."""
    return analyse_all([entry])[0]


def analyse_all(entries: Sequence[SourceEntry]) -> list[tuple[PartAnalysis, ...]]:
    """What is found in each entry: faster than one by one."""
    parts = [list(entry.texts()) for entry in entries]
    found = iter(_analyse_texts([text for texts in parts for _, text in texts]))
    return [tuple(PartAnalysis(number, next(found)) for number, _ in texts) for texts in parts]


def _analyse_texts(texts: Sequence[str]) -> list[TextAnalysis]:
    languages = list(map(guess_language, wanted_each(texts)))
    atoms = extract_atoms_of(zip(texts, languages, strict=True))
    spans = list(map(sentences, wanted_each(texts)))
    return [
        TextAnalysis(tuple(found), tuple(extract_clauses(text, spans_of, language)), tuple(spans_of))
        for text, language, spans_of, found in zip(wanted_each(texts), languages, spans, atoms, strict=True)
    ]


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

    def learn(self, entries: Iterable[SourceEntry]) -> None:
        """Make the analyses that are missing, many at a time. Erased entries have nothing to analyse."""
        unknown: dict[str, SourceEntry] = {}
        for entry in entries:
            if not entry.erased and not self._has_seen(entry):
                key = self.key(entry)
                if key not in self._by_digest:
                    unknown[key] = entry
        keys = list(unknown)
        for start in range(0, len(keys), BATCH):
            batch = keys[start : start + BATCH]
            made = zip(batch, analyse_all([unknown[key] for key in batch]), strict=True)
            for key, found in made:
                self._by_digest[key] = self.added[key] = found

    def _has_seen(self, entry: SourceEntry) -> bool:
        seen = self._by_object.get(id(entry))
        return seen is not None and seen[0] is entry

    def of(self, entry: SourceEntry) -> tuple[PartAnalysis, ...]:
        """The entry's analysis, made now if it was missing."""
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
