"""Keys and scopes: what a token is, and what one scope implies of the others."""

from itertools import combinations

import pytest

from threadmark.app.access import Caller, Scope, Token
from threadmark.app.access.key import is_tenant_id
from threadmark.app.access.scopes import implied

EVERYDAY = {Scope.READ, Scope.RUN, Scope.APPROVE}


def test_every_scope_implies_itself() -> None:
    """The table has a row for each, with itself in it."""
    assert all(scope in implied([scope]) for scope in Scope)


def test_admin_implies_all_of_its_tenant_and_operator_all_there_is() -> None:
    """An operator is an admin too; an admin is no operator."""
    assert implied([Scope.ADMIN]) == EVERYDAY | {Scope.ADMIN}
    assert implied([Scope.OPERATOR]) == set(Scope)


@pytest.mark.parametrize("held", [each for count in range(4) for each in combinations(sorted(EVERYDAY), count)])
def test_everyday_scopes_imply_nothing_else(held: tuple[Scope, ...]) -> None:
    """The right to run includes no right to approve, nor the reverse: an agent's key answers for no person."""
    caller = Caller("default", "0123456789abcdef", frozenset(held))

    assert set(held) == {scope for scope in Scope if caller.may(scope)}


def test_a_token_reads_back() -> None:
    """What the holder carries is what was made."""
    token = Token.fresh()

    assert token == Token.parse(token.text)
    assert (len(token.key_id), len(token.secret)) == (16, 64)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tm_",
        " tm_x",
        pytest.param(Token.fresh().text + "\n", id="newline"),
        pytest.param(Token.fresh().text.upper(), id="upper"),
        "tm__",
    ],
)
def test_what_is_spelled_otherwise_is_no_token(text: str) -> None:
    """One spelling, so that one key has one text."""
    assert Token.parse(text) is None


def test_a_printed_token_keeps_its_secret() -> None:
    """A token in a traceback or a log line is an id."""
    token = Token.fresh()

    assert token.secret not in repr(token)
    assert token.secret_digest != token.secret.encode()


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("default", True),
        ("a", True),
        ("Acme-1.eu_x", True),
        ("a" * 64, True),
        ("a" * 65, False),
        ("", False),
        (".a", False),
        ("a\n", False),
        ("a b", False),
        ("\u00e9", False),
    ],
)
def test_which_names_can_be_tenants(text: str, is_one: bool) -> None:
    """A fixed alphabet: tenants are compared, listed and logged, never escaped."""
    assert is_one == is_tenant_id(text)
