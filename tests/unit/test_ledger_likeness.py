"""What a summary's sentence is to a clause: the same, other words, the opposite, another value, or nothing."""

import pytest

from threadmark.compaction.clauses import is_negative
from threadmark.compaction.input.analysis import analyse_text
from threadmark.compaction.ledger import Passage, Place
from threadmark.compaction.ledger.likeness import Likeness, SummarySentences, Verdict

TEN = "alpha bravo charlie delta echo foxtrot golf hotel india juliett"


def judged(clause: str, *sentences: str, negative: bool | None = None) -> Likeness | None:
    """The verdict of a summary of these sentences on a clause."""
    text = "\n".join(sentences)
    summary = SummarySentences([Passage(text=text, found=analyse_text(text), persistent=True, segment_id="s")])
    negative = is_negative(clause) if negative is None else negative
    return summary.judge(clause, analyse_text(clause).atoms, negative=negative)


def verdict(clause: str, *sentences: str) -> Verdict | None:
    """The verdict alone."""
    likeness = judged(clause, *sentences)
    return None if likeness is None else likeness.verdict


def words(count: int, *others: str) -> str:
    """The first words of TEN, and others."""
    return " ".join([*TEN.split()[:count], *others])


@pytest.mark.parametrize(
    ("clause", "sentence", "expected"),
    [
        ("We must ship the blue crates to Oslo.", "We must ship the blue crates to Oslo.", Verdict.SAME),
        ("We must ship the blue crates to Oslo.", "Ship blue crates to Oslo, we must.", Verdict.PARAPHRASE),
        ("We must ship the blue crates to Oslo.", "We must not ship the blue crates to Oslo.", Verdict.FLIPPED),
        ("Never call the customer directly.", "Always call the customer directly.", Verdict.FLIPPED),
        ("The fee for the stand is $900 a day.", "The fee for the stand is $950 a day.", Verdict.OTHER_VALUE),
        ("The fee for the stand is $900 a day.", "The fee for the stand is due each day.", None),
        ("We must ship the blue crates to Oslo.", "The weather was fine in Bergen.", None),
        ("We must ship the blue crates to Oslo.", "", None),
    ],
)
def test_a_sentence_is_judged(clause: str, sentence: str, expected: Verdict | None) -> None:
    """By its words, its runs of characters, its values and whether it denies."""
    assert verdict(clause, sentence) is expected


@pytest.mark.parametrize(
    ("clause", "sentence", "expected"),
    [
        (words(10), f"zz {words(7)} zz zz zz zz zz", Verdict.PARAPHRASE),  # seven words of ten
        (words(10), f"zz {words(6)} zz zz zz zz zz", None),  # six, and few runs of characters
    ],
)
def test_seven_words_of_ten_are_a_paraphrase(clause: str, sentence: str, expected: Verdict | None) -> None:
    """With the same values; with fewer, a sentence is about something else."""
    assert verdict(clause, sentence) is expected


def test_runs_of_characters_make_up_for_words() -> None:
    """Where six words of ten are the same and the others differ by an ending, it is the same sentence."""
    clause = "crates containers shipments deliveries warehouses"
    assert verdict(clause, "crate containers shipments deliveries warehouses") is Verdict.SAME
    assert verdict(clause, "crate container shipments deliveries warehouses") is Verdict.SAME
    assert verdict(clause, "crate container shipment deliveries warehouses") is None


def test_an_opposite_needs_more_in_common() -> None:
    """Nearly all of the words, or three quarters of the characters without those that deny."""
    clause = f"never {words(10)}"
    assert verdict(clause, f"zz zz zz {words(9)} zz zz") is Verdict.FLIPPED
    assert verdict(clause, f"zz zz zz {words(8)} zz zz") is Verdict.FLIPPED
    assert verdict(clause, f"zz zz zz {words(7)} zz zz") is None
    assert verdict(clause, " ".join(reversed(words(8).split()))) is None


def test_the_best_verdict_of_all_sentences_counts() -> None:
    """The same before other words, those before the opposite, that before another value; with its place."""
    clause = "The fee for the stand is $900 a day."
    same, other = clause, "The fee for the stand is $950 a day."
    opposite = "The fee for the stand is not $900 a day."

    assert verdict(clause, other, opposite, same) is Verdict.SAME
    assert verdict(clause, other, opposite) is Verdict.FLIPPED
    likeness = judged(clause, other, same)
    assert likeness is not None
    assert likeness.place == Place("s", None, 0, 0, len(other) + 1, len(other) + 1 + len(same))


def test_a_sentence_has_the_values_that_are_inside_of_it() -> None:
    """One of its neighbour is not its own, before it or behind it."""
    clause = "The fee for the stand is $900."

    assert verdict(clause, "The fee for the stand is due.", "It is $900.") is None
    assert verdict(clause, "$900.", "The fee for the stand is due.") is None
    assert verdict(clause, "$900.", "The fee for the stand is $950.", "$900.") is Verdict.OTHER_VALUE
    assert verdict(clause, "The fee for the stand is now $900") is Verdict.SAME


def test_the_five_likest_sentences_are_judged() -> None:
    """Those that share most words, wherever they stand."""
    clause = words(10)
    weak = [f"{words(6)} zz zz zz zz number {each}" for each in ("one", "two", "three", "four", "five", "six")]

    assert verdict(clause, *weak, clause) is Verdict.SAME
    assert verdict(clause, clause, *weak) is Verdict.SAME


def test_a_clause_without_words_of_sense_is_like_nothing() -> None:
    """There is nothing to compare by."""
    assert verdict("We must not.", "We must not.") is None
