"""Atoms: exact values are found with exact spans and one normal form, in time linear in the text."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.labelled_atoms import CLASSES, read_labelled, score
from threadmark.compaction import keyword_prefilter
from threadmark.compaction.atoms import (
    CONTAINERS,
    Atom,
    AtomClass,
    addresses,
    codes,
    extract_atoms,
    figures,
    moments,
    names,
    numerals,
    paths,
    quotes,
)

#: What the extractor reaches on the labelled texts; a change that loses a label shows here.
PRECISION_FLOOR = RECALL_FLOOR = 0.99
CLASS_FLOOR = 0.97
#: A bare `15.4` that is a version only for who knows the program is a number, and counted as wrong and as missed.
CLASS_FLOORS = {AtomClass.VERSION: 0.93, AtomClass.NUMBER: 0.93}
#: The texts that the extractor was never corrected against.
HELD_FLOOR = 0.97
LABELLED_MIN, HELD_MIN = 1_000, 75
HELD = "held-atoms-*.txt"
REPEAT_MAX = 5_000


def canons(text: str) -> dict[str, set[str]]:
    """Normal forms by class."""
    forms: dict[str, set[str]] = {}
    for atom in extract_atoms(text):
        forms.setdefault(atom.cls, set()).add(atom.canon)
    return forms


def test_the_labelled_texts_are_read_as_people_read_them() -> None:
    """Precision and recall over all labelled atoms, and over each class, stay above the floors (G18)."""
    result = score(read_labelled())

    assert sum(result.right.values()) + sum(result.missed.values()) >= LABELLED_MIN
    assert result.precision() >= PRECISION_FLOOR, "\n".join(result.remarks)
    assert result.recall() >= RECALL_FLOOR, "\n".join(result.remarks)
    for cls in AtomClass:
        assert result.precision(cls) >= CLASS_FLOORS.get(cls, CLASS_FLOOR), (cls, result.remarks)
        assert result.recall(cls) >= CLASS_FLOORS.get(cls, CLASS_FLOOR), (cls, result.remarks)


def test_texts_that_were_held_back_are_read_as_well() -> None:
    """The extractor was never corrected against them; their figure is that of the documents (G18)."""
    result = score(read_labelled(HELD))

    assert sum(result.right.values()) + sum(result.missed.values()) >= HELD_MIN
    assert result.precision() >= HELD_FLOOR, "\n".join(result.remarks)
    assert result.recall() >= HELD_FLOOR, "\n".join(result.remarks)


def test_every_class_has_labels_and_every_language_has_texts() -> None:
    """A floor over a class without labels would say nothing."""
    texts = read_labelled("atoms-*.txt")
    assert {cls for text in texts for cls, _, _ in text.spans} == set(CLASSES.values())
    assert {text.language for text in texts} == {"en", "de", "fr", "es", "zh", "ja"}


@pytest.mark.parametrize(
    ("cls", "one", "other"),
    [
        ("money", "We pay $47,500.", "Wir zahlen 47.500 USD."),
        ("money", "Le prix est de 12 500 €.", "The price is EUR 12,500.00."),
        ("money", "预算5万元。", "The budget is CNY 50,000."),
        ("money", "$1.2 million was paid", "the sum of 1,200,000 dollars"),
        ("date", "until December 4, 2026", "bis zum 04.12.2026"),
        ("date", "avant le 4 décembre 2026", "2026年12月4日まで"),
        ("date", "el 4 de diciembre de 2026", "on 2026-12-04"),
        ("time", "at 2:30 pm", "um 14:30 Uhr"),
        ("time", "à 14h30", "下午2:30开始"),
        ("quantity", "in 3 hours", "in 3 Stunden"),
        ("percent", "um 12,5 %", "by 12.50%"),
        ("version", "use v2.14.0", "version 2.14.0 is out"),
        ("email", "to Anna@Example.org", "to anna@example.org"),
        ("number", "die Zahl ist 10.000 und nicht mehr", "the number is 10,000 and not more"),
    ],
)
def test_the_same_value_has_one_normal_form(cls: str, one: str, other: str) -> None:
    """Equal values are equal however a language writes them, or the ledger would call a kept value lost."""
    assert canons(one)[cls] & canons(other)[cls]


@given(st.text(max_size=300))
def test_spans_are_code_points_of_the_text(text: str) -> None:
    """Any text at all, surrogates aside, gives spans inside of it; leaves never overlap."""
    atoms = extract_atoms(text)
    taken: set[int] = set()
    for atom in atoms:
        assert 0 <= atom.start < atom.end <= len(text)
        if atom.cls not in CONTAINERS:
            span = set(range(atom.start, atom.end))
            assert not span & taken
            taken |= span


@given(
    st.lists(st.sampled_from(["a@", "://", "1.", "-", "/a", "``", "“", "2026-", "A-1", "e.g", "：", "\n", "(", "_x"]))
)
def test_fragments_of_values_break_nothing(pieces: list[str]) -> None:
    """Half an address beside half a date is read without an error, twice the same."""
    text = "".join(pieces)
    assert extract_atoms(text) == extract_atoms(text)


def test_extraction_after_other_scripts_keeps_offsets_exact() -> None:
    """Emoji, combining marks and right-to-left text before a value do not shift its span."""
    for before in ("👩‍👩‍👧 ", "e\u0301 ", "שלום ", "\u200b ", "𝔘 "):
        text = f"{before}write to anna@example.org"
        found = [text[atom.start : atom.end] for atom in extract_atoms(text) if atom.cls is AtomClass.EMAIL]
        assert found == ["anna@example.org"]


MODULES = (addresses, codes, figures, moments, names, numerals, paths, quotes)
PATTERNS = {
    f"{module.__name__}.{name}": value
    for module in MODULES
    for name, value in vars(module).items()
    if isinstance(value, re.Pattern)
}


@pytest.mark.parametrize("name", sorted(PATTERNS))
def test_no_pattern_can_run_away(name: str) -> None:
    """Each repetition has a bound, and nested ones multiply to a bound: no text makes a match quadratic (S17)."""
    assert max(_repeats(_parse(PATTERNS[name])), default=1) <= REPEAT_MAX


@pytest.mark.parametrize(
    "piece", ["a", "1", ".", "-", "/", "@", "a@", "A", "A-", "1.", "_", "a_", "(", "“", '"', "`", ":", "0a"]
)
def test_a_long_hostile_text_ends(piece: str) -> None:
    """300,000 code points of one mark are read to their end; a quadratic pass would take an hour."""
    assert len(extract_atoms(piece * (300_000 // len(piece)))) >= 0


def test_a_word_lead_finds_whole_words_only() -> None:
    """A word inside another one is not found, one beside a script without blanks is."""
    pattern = re.compile(keyword_prefilter.word_lead(["order", "订单"]))
    assert [match[0] for match in pattern.finditer("order border 新订单 再order")] == ["order", "订单", "order"]


def test_atoms_are_ordered_by_place() -> None:
    """The order of a text is the order of its atoms, containers before what they hold."""
    atoms = extract_atoms('He wrote "pay $5 to bob@example.org" on 2026-01-02.')
    assert atoms == sorted(atoms, key=lambda atom: (atom.start, -atom.end))
    assert atoms[0] == Atom(AtomClass.QUOTED, 10, 35, "pay $5 to bob@example.org")


def _parse(pattern: re.Pattern[str]) -> Any:
    return re._parser.parse(pattern.pattern, pattern.flags)  # type: ignore[attr-defined]


def _repeats(tree: Any, factor: int = 1) -> Iterator[int]:
    """How often the innermost parts may repeat, nested repetitions multiplied."""
    for operation, argument in tree:
        name = str(operation)
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            _, most, inner = argument
            # What is possessive is never tried again at another length: it adds and does not multiply.
            nested = max(1, int(most)) if name == "POSSESSIVE_REPEAT" else factor * max(1, int(most))
            yield nested
            yield from _repeats(inner, nested)
        elif name == "SUBPATTERN":
            yield from _repeats(argument[-1], factor)
        elif name == "BRANCH":
            for branch in argument[1]:
                yield from _repeats(branch, factor)
        elif name in ("ASSERT", "ASSERT_NOT"):
            yield from _repeats(argument[1], factor)
        elif name == "ATOMIC_GROUP":
            yield from _repeats(argument, factor)
