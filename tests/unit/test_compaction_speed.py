"""What is skipped to be fast is what could not have been found: every short cut against the long way."""

import random
from pathlib import Path

import pytest

from tests.support.compaction_threads import fuzzed_history
from threadmark.compaction.atoms import extract_atoms, extract_atoms_of
from threadmark.compaction.atoms.language import guess_language
from threadmark.compaction.clauses import clause_extraction
from threadmark.compaction.clauses.clause_extraction import lowered
from threadmark.compaction.clauses.cues import CJK_CUE, CJK_CUES, CUE, CUES
from threadmark.compaction.clauses.forms import ENDINGS
from threadmark.compaction.input.analysis import Analyses, analyse

FOLDER = Path(__file__).parent.parent / "data" / "compaction"


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """Labelled lines in six languages, and pieces of them put together, with characters exchanged."""
    lines = [line for path in sorted(FOLDER.glob("*.txt")) for line in path.read_text().splitlines() if line.strip()]
    chance = random.Random(5)
    mixed = []
    for _ in range(1_500):
        text = chance.choice(["", " ", "\n", ". "]).join(
            chance.choice(lines)[chance.randint(0, 20) :][: chance.randint(5, 200)] for _ in range(chance.randint(1, 6))
        )
        at = chance.randrange(len(text) + 1)
        mixed.append(text[:at] + chance.choice("aÉ9×÷İ_'’-:\n。 must") + text[at:])
    return lines + mixed


def test_cues_are_those_of_the_whole_pattern(texts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking for the few cues whose words are in a text finds what the pattern of all cues finds."""
    monkeypatch.setattr(clause_extraction, "_CUES_MAX", 10_000)
    for small in map(lowered, texts):
        slow = [(match.start(), CUES[match[0]]) for match in CUE.finditer(small)]
        slow.extend((match.start(), CJK_CUES[match[0]]) for match in CJK_CUE.finditer(small))
        assert clause_extraction.cues_by_place(small) == sorted(slow), small


def test_a_form_is_found_in_no_text_without_its_hints(texts: list[str]) -> None:
    """And most forms are found somewhere, or their hints would say nothing."""
    found = set()
    for small in map(lowered, texts):
        for endings in ENDINGS.values():
            for ending in endings:
                if ending.pattern.search(small):
                    found.add(ending.pattern.pattern)
                    assert any(hint in small for hint in ending.hints), (ending.pattern.pattern, small)
    assert len(found) > 0.8 * sum(map(len, ENDINGS.values()))


def test_many_texts_at_once_have_the_atoms_of_each(texts: list[str]) -> None:
    """No finder carries anything from one text to the next."""
    some = [(text, guess_language(text)) for text in texts[::5]]

    assert extract_atoms_of(some) == [extract_atoms(text, language) for text, language in some]


def test_what_was_learnt_is_what_would_be_found() -> None:
    """Entries analysed together, doubles among them, have the analyses of each; erased ones are not read."""
    entries = [entry for seed in range(20) for entry in fuzzed_history(seed)]
    analyses = Analyses()
    analyses.learn(entries)

    assert analyses.added == {Analyses.key(entry): analyse(entry) for entry in entries if not entry.erased}
    before = dict(analyses.added)
    assert all(analyses.of(entry) == before[Analyses.key(entry)] for entry in entries)
    assert analyses.added == before
