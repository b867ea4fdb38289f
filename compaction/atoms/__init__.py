"""Typed atoms: exact values (addresses, amounts, dates, names, code) with their spans and normal forms."""

from typing import TYPE_CHECKING

from threadmark.lazy import lazy_exports

if TYPE_CHECKING:
    from threadmark.compaction.atoms.atom import CONTAINERS, Atom, AtomClass
    from threadmark.compaction.atoms.atom_extraction import EXTRACTOR_VERSION, extract_atoms, extract_atoms_of
else:
    __getattr__, __dir__ = lazy_exports(__name__, __file__)

__all__ = ["CONTAINERS", "EXTRACTOR_VERSION", "Atom", "AtomClass", "extract_atoms", "extract_atoms_of"]
