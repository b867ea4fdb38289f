"""Typed atoms: exact values (addresses, amounts, dates, names, code) with their spans and normal forms."""

from threadmark.compaction.atoms.atom import CONTAINERS, Atom, AtomClass
from threadmark.compaction.atoms.atom_extraction import EXTRACTOR_VERSION, extract_atoms, extract_atoms_of

__all__ = ["CONTAINERS", "EXTRACTOR_VERSION", "Atom", "AtomClass", "extract_atoms", "extract_atoms_of"]
