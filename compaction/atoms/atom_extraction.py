"""All atoms of a text, in one pass per kind of value; each pass is linear in the length of the text."""

from bisect import bisect_right
from collections.abc import Iterable
from itertools import islice
from operator import attrgetter, eq

from threadmark.compaction.atoms.addresses import find_emails_and_handles, find_hosts, find_urls
from threadmark.compaction.atoms.atom import Atom, AtomClass
from threadmark.compaction.atoms.canvas import Canvas
from threadmark.compaction.atoms.codes import find_backticks, find_hashes, find_identifiers, find_references, find_uuids
from threadmark.compaction.atoms.figures import (
    find_list_markers,
    find_named_versions,
    find_numbers,
    find_signed_money,
    find_versions_and_addresses,
)
from threadmark.compaction.atoms.language import guess_language
from threadmark.compaction.atoms.moments import find_moments
from threadmark.compaction.atoms.names import find_names
from threadmark.compaction.atoms.paths import find_paths
from threadmark.compaction.atoms.quotes import find_commands, find_errors, find_quotes
from threadmark.db.execution.pools import check_wanted

__all__ = ["EXTRACTOR_VERSION", "FINDERS", "extract_atoms", "extract_atoms_of"]

#: Rises with every change of what is found or of a normal form; cached atoms of another version are void.
EXTRACTOR_VERSION = 2

#: The order is the precedence: the first finder keeps the span.
FINDERS = (
    find_commands,
    find_errors,
    find_quotes,
    find_urls,
    find_emails_and_handles,
    find_uuids,
    find_paths,
    find_list_markers,
    find_named_versions,
    find_moments,
    find_hashes,
    find_references,
    find_signed_money,
    find_versions_and_addresses,
    find_hosts,
    find_identifiers,
    find_backticks,
    find_names,
    find_numbers,
)

_WHOLES = frozenset({AtomClass.COMMAND, AtomClass.ERROR})
_WORDS_OF_A_WHOLE = frozenset({AtomClass.NUMBER, AtomClass.CODE, AtomClass.NAME, AtomClass.QUOTED, AtomClass.QUANTITY})

_START = attrgetter("start")


def extract_atoms(text: str, language: str | None = None) -> list[Atom]:
    """The atoms of `text` in the order of their places, with offsets in its code points.

    `language` is the text's, where the caller has guessed it already.

    Atoms of leaf classes never overlap; containers (quoted strings, command lines, error texts) may hold leaves.
    """
    return extract_atoms_of([(text, language or guess_language(text))])[0]


def extract_atoms_of(texts: Iterable[tuple[str, str]]) -> list[list[Atom]]:
    """The atoms of each text, given with its language.

    One finder goes over all texts before the next one begins: its patterns then stay in the processor's cache, which
    is worth a third of the time where texts are short.
    """
    canvases = [Canvas(text, language) for text, language in texts]
    for find in FINDERS:
        for canvas in canvases:
            check_wanted()
            find(canvas)
    return [_in_order(_settled(canvas.found)) for canvas in canvases]


def _in_order(found: list[Atom]) -> list[Atom]:
    """By place, each once; of those that begin together, the longest first."""
    ordered = sorted(found, key=_START)
    if any(map(eq, map(_START, ordered), map(_START, islice(ordered, 1, None)))):
        return sorted(set(found), key=lambda atom: (atom.start, -atom.end, atom.cls))
    return ordered


def _settled(found: list[Atom]) -> list[Atom]:
    """Without what is only a word of a command or of an error: its numbers, code, names and quotations."""
    wholes = [atom for atom in found if atom.cls in _WHOLES]
    if not wholes:
        return found
    wholes.sort(key=_START)
    starts = [atom.start for atom in wholes]
    settled = []
    for atom in found:
        if atom.cls in _WORDS_OF_A_WHOLE:
            at = bisect_right(starts, atom.start) - 1
            if at >= 0 and atom.end <= wholes[at].end:
                continue
        settled.append(atom)
    return settled
