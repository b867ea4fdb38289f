"""Names are compared by their code points after NFC, and nothing else."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadmark.memory import ScopeRefused
from threadmark.memory.model.scope import Scope, is_below, namespace_key
from threadmark.memory.text.identity import identity_key, identity_labels, same_words
from threadmark.memory.text.terms import folded

ALIKE = [
    ("Pe\u00f1a", "Pena"),
    ("x\u00b2", "x2"),
    ("Berlin", "berlin"),
    ("\uff2duller", "Muller"),
    ("\ufb01n", "fin"),
    ("Stra\u00dfe", "Strasse"),
    ("a b", "a  b"),
]


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_names_that_look_alike_are_different_names(one: str, other: str) -> None:
    """A search finds both; nobody is taken for the other."""
    assert folded(one) == folded(other)
    assert identity_key(one) != identity_key(other)


@given(st.text(), st.text())
def test_two_names_are_one_exactly_where_nfc_makes_them_equal(one: str, other: str) -> None:
    """Whatever the signs, and in either encoding."""
    for each in (one, other, unicodedata.normalize("NFD", one)):
        equal = unicodedata.normalize("NFC", one) == unicodedata.normalize("NFC", each)
        assert (identity_key(one) == identity_key(each)) == equal


def test_a_namespace_is_compared_label_by_label() -> None:
    """In either encoding it is the same place, and the labels of the scope stay as they were sent."""
    sent = ("Caf\u00e9", "a")
    decomposed = Scope(tenant_id="acme", namespace=("Cafe\u0301",))

    assert decomposed.namespace == ("Cafe\u0301",)
    assert decomposed.covers("acme", sent)
    assert is_below(sent, decomposed.namespace)
    assert not is_below(decomposed.namespace, sent)
    assert not decomposed.covers("acme", ("Cafe", "a"))
    assert namespace_key(("Cafe\u0301",)) == namespace_key(("Caf\u00e9",)) != namespace_key(("caf\u00e9",))
    assert decomposed.key == Scope(tenant_id="acme", namespace=sent[:1]).key
    assert identity_labels(["Cafe\u0301"]) == ("Caf\u00e9",)


def test_a_label_is_still_checked() -> None:
    """Comparing says nothing of what may be kept."""
    with pytest.raises(ScopeRefused):
        Scope(tenant_id="acme", namespace=(" ",))


def test_a_text_is_repeated_whatever_its_capitals_and_spacing() -> None:
    """Its characters are distinguished."""
    assert same_words("The  Gate\ncode") == same_words("the gate CODE")
    assert same_words("Caf\u00e9") == same_words("CAFE\u0301") != same_words("cafe")
    assert same_words("the area is x\u00b2") != same_words("the area is x2")


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_what_is_compared_is_finer_than_what_is_searched(text: str) -> None:
    """Whatever is one name, or one text, was one before, too: distinct rows are never merged."""
    assert folded(identity_key(text)) == folded(text)
    assert folded(same_words(text)) == folded(text)
