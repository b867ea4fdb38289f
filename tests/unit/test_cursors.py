"""Cursors: good for the listing they were made for, and for nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadmark.app.listing.cursors import BadCursor, Cursor, CursorSigner, Listing

SIGNER = CursorSigner(b"s" * 32)
LISTING = Listing("t1", "admin/keys", {"status": "live", "order": "newest"})
POSITIONS = st.lists(st.integers(-(2**63), 2**63 - 1) | st.text(st.characters(exclude_categories=["Cs"]), max_size=30))


@given(POSITIONS.map(tuple), st.booleans())
def test_a_cursor_opens_to_what_was_sealed(position: tuple[int | str, ...], backward: bool) -> None:
    """A place survives the trip through the client exactly, whatever its sort key is made of."""
    cursor = Cursor(position[:4], backward)

    assert cursor == SIGNER.verify(SIGNER.sign(cursor, LISTING), LISTING)


@pytest.mark.parametrize(
    "other",
    [
        Listing("t2", "admin/keys", LISTING.filters),
        Listing("t1", "threads", LISTING.filters),
        Listing("t1", "admin/keys", {"status": "revoked", "order": "newest"}),
        Listing("t1", "admin/keys", {}),
    ],
    ids=["another tenant", "another listing", "another filter", "no filter"],
)
def test_a_cursor_is_bound_to_who_asks_and_what_is_listed(other: Listing) -> None:
    """A cursor of another tenant, listing or filter is refused like a forged one."""
    cursor = SIGNER.sign(Cursor((7,)), LISTING)

    with pytest.raises(BadCursor):
        SIGNER.verify(cursor, other)


def test_the_order_in_which_filters_are_named_does_not_matter() -> None:
    """Two spellings of one filter are one listing."""
    cursor = SIGNER.sign(Cursor((7,)), LISTING)

    assert SIGNER.verify(cursor, Listing("t1", "admin/keys", {"order": "newest", "status": "live"})) == Cursor((7,))


def test_no_altered_character_goes_unnoticed() -> None:
    """Each single character is covered by the seal."""
    sealed = SIGNER.sign(Cursor((123456789, "a")), LISTING)

    for index, character in enumerate(sealed):
        altered = sealed[:index] + ("A" if character != "A" else "B") + sealed[index + 1 :]
        with pytest.raises(BadCursor):
            SIGNER.verify(altered, LISTING)


@pytest.mark.parametrize("text", ["", "x", "=", "abc=", "a b", "\u00e9", "A" * 2_000, "%00", "null", "🙂"])
def test_what_was_never_a_cursor_is_refused(text: str) -> None:
    """Rubbish is one refusal, not an error of the decoder."""
    with pytest.raises(BadCursor):
        SIGNER.verify(text, LISTING)


@given(st.text())
def test_no_text_brings_another_error(text: str) -> None:
    """Whatever a client sends as a cursor is refused or opened."""
    with pytest.raises(BadCursor):
        SIGNER.verify(text, LISTING)


def test_another_servers_secret_seals_nothing_here() -> None:
    """A cursor cannot be made without the secret."""
    with pytest.raises(BadCursor):
        SIGNER.verify(CursorSigner(b"o" * 32).sign(Cursor((1,)), LISTING), LISTING)


def test_a_position_too_long_to_carry_is_refused_when_it_is_sealed() -> None:
    """A cursor that could not be opened again is never given out."""
    with pytest.raises(ValueError, match="too long to carry"):
        SIGNER.sign(Cursor(("x" * 5_000,)), LISTING)
