"""Clauses: what binds or waits is found in six languages, with its polarity and its exact place."""

import itertools
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadmark.compaction.clauses import ClauseClass, clause_form, extract_clauses, sentences

FOLDER = Path(__file__).parents[1] / "data" / "compaction"
#: What is reached on the labelled sentences: the tidy ones, and those that say it in other words.
RECALL_FLOOR = PRECISION_FLOOR = 0.97
POLARITY_FLOOR = 0.94
SPOKEN_MIN = 300
#: Sentences that no cue was ever chosen for. The recall is low, and that is the figure of the documents.
HELD_RECALL_FLOOR, HELD_FALSE_MAX = 0.41, 1


def labelled(pattern: str) -> list[tuple[str, ...]]:
    """Language, class, sign and sentence of each line."""
    return [
        (file.stem.rpartition("-")[2], *line.split("\t"))
        for file in sorted(FOLDER.glob(pattern))
        for line in file.read_text("utf-8").splitlines()
    ]


@pytest.mark.parametrize("pattern", ["clauses-*.txt", "spoken-*.txt"])
def test_labelled_sentences_are_read_as_people_read_them(pattern: str) -> None:
    """Class and polarity of the labelled sentences, each standing alone, are found above the floors."""
    right, wrong, missed, polarity = Counter[str](), Counter[str](), Counter[str](), Counter[bool]()
    remarks = []
    for language, cls, sign, sentence in labelled(pattern):
        found = {clause.cls: clause for clause in extract_clauses(sentence)}
        expected = set() if cls == "-" else {ClauseClass(cls)}
        right.update(expected & found.keys())
        wrong.update(found.keys() - expected)
        missed.update(expected - found.keys())
        if expected != found.keys():
            remarks.append(f"{language} {cls} {sentence} -> {[str(each) for each in found]}")
        for each in expected & found.keys():
            polarity[found[each].negative == (sign == "-")] += 1
            if found[each].negative != (sign == "-"):
                remarks.append(f"{language} polarity {sign} {sentence}")

    total = sum(right.values())
    assert total / (total + sum(missed.values())) >= RECALL_FLOOR, "\n".join(remarks)
    assert total / (total + sum(wrong.values())) >= PRECISION_FLOOR, "\n".join(remarks)
    assert polarity[True] / polarity.total() >= POLARITY_FLOOR, "\n".join(remarks)


def test_words_that_nobody_chose_a_cue_for() -> None:
    """What the documents say of unseen sentences: how many are found, and how many are taken that bind nobody."""
    held = labelled("held-clauses-*.txt")
    binding = [sentence for _, cls, _, sentence in held if cls != "-"]
    telling = [sentence for _, cls, _, sentence in held if cls == "-"]
    assert len(binding) == len(telling) == 36

    found = [sentence for sentence in binding if extract_clauses(sentence)]
    false = [sentence for sentence in telling if extract_clauses(sentence)]
    assert len(found) / len(binding) >= HELD_RECALL_FLOOR, found
    assert len(false) <= HELD_FALSE_MAX, false


def test_the_sentences_of_six_languages_are_many() -> None:
    """Half of them bind nobody, so that a cue that is too wide is seen."""
    spoken = labelled("spoken-*.txt")
    assert {language for language, *_ in spoken} == {"en", "de", "fr", "es", "zh", "ja"}
    assert len(spoken) >= SPOKEN_MIN
    assert 2 * sum(cls == "-" for _, cls, *_ in spoken) >= len(spoken)


def test_sentences_that_bind_are_found_in_some_class() -> None:
    """Said directly or not: what binds is a clause of some class, all but a few."""
    lines = (FOLDER / "binding.txt").read_text("utf-8").splitlines()
    missed = [line for line in lines if not extract_clauses(line)]
    assert len(missed) <= (1 - RECALL_FLOOR) * len(lines), missed


def test_a_clause_is_its_whole_sentence() -> None:
    """The span runs from the first letter to the full stop, without the bullet before it."""
    text = "Notes from today.\n- Never deploy on a Friday, please.\nThe rest is fine."
    (clause,) = extract_clauses(text)
    assert text[clause.start : clause.end] == "Never deploy on a Friday, please."
    assert clause.negative


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Ask Dr. Meyer about it. He knows.", 2),
        ("Der Termin ist am 4. Dezember in Köln. Bitte kommen.", 2),
        ("First line\nSecond line", 2),
        ("第一句。第二句！第三句？", 3),
        ("1. Open it\n2. Close it", 2),
        ("Versions 1.2.3 and v2.0 differ.", 1),
        ("   \n  ", 0),
    ],
)
def test_sentences_end_where_readers_stop(text: str, count: int) -> None:
    """Shortened words, dates and decimals end no sentence; line ends and full stops of every script do."""
    assert len(sentences(text)) == count


def test_a_flip_changes_the_polarity() -> None:
    """'must not' and 'must' differ in polarity and in form."""
    (forbids,) = extract_clauses("You must not call the customer.")
    (orders,) = extract_clauses("You must call the customer.")
    assert (forbids.negative, orders.negative) == (True, False)
    assert forbids.canon != orders.canon


@given(st.text(max_size=400))
def test_spans_lie_inside_the_text(text: str) -> None:
    """Sentences are ordered, disjoint and not empty; clauses are sentences."""
    spans = sentences(text)
    assert all(start < end for start, end in spans)
    assert all(first[1] <= second[0] for first, second in itertools.pairwise(spans))
    assert {(clause.start, clause.end) for clause in extract_clauses(text)} <= set(spans)


def test_the_form_ignores_case_width_and_blanks() -> None:
    """A clause that is quoted with other blanks or full-width letters is the same clause."""
    assert clause_form("Never  deploy ＯＮ Fridays!") == clause_form("never deploy on fridays")
