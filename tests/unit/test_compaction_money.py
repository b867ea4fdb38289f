"""Money: exact from the text of a price to the text of a sum, and never less than a call can cost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadmark.compaction import Policy, SummaryPrompt, SummaryReply, picos_of, price_of, spell_money
from threadmark.compaction.model.money import bound_of, cost_of

PRICE = price_of("2.50", "10")


def prompt(text: str = "ab") -> SummaryPrompt:
    """A prompt of so many bytes, for a reply of at most 100 tokens."""
    return SummaryPrompt(system="", user=text, output_tokens_max=100, prompt_tokens=1, key="k")


@pytest.mark.parametrize(
    ("text", "picos"),
    [
        ("0", 0),
        ("0.000001", 10**6),
        ("0.1", 10**11),
        ("2.50", 2_500_000_000_000),
        ("999999.999999", 999_999_999_999 * 10**6),
    ],
)
def test_an_amount_is_what_it_says(text: str, picos: int) -> None:
    """To the last decimal."""
    assert picos_of(text) == picos


@pytest.mark.parametrize(
    "text", ["", "-1", "+1", "1e3", "1,5", ".5", "1.", "01", "1.0000001", "1000000", "NaN", "٣", "1\n"]
)
def test_what_is_no_amount_is_refused(text: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(ValueError, match="no amount of money"):
        picos_of(text)


@given(st.integers(0, 10**18))
def test_a_sum_is_spelled_exactly(picos: int) -> None:
    """Every pico is counted, and nothing else."""
    whole, _, decimals = spell_money(picos).partition(".")

    assert int(whole) * 10**12 + int(decimals.ljust(12, "0")) == picos
    assert not decimals.endswith("0")


def test_a_call_costs_what_its_server_counted() -> None:
    """1,000 tokens in and 10 out, at 2.50 and 10 a million."""
    reply = SummaryReply(text="x", prompt_tokens=1_000, output_tokens=10)

    assert spell_money(cost_of(prompt(), reply, PRICE)) == "0.0026"


def test_what_nobody_counted_costs_all_that_it_may() -> None:
    """A server that reports nothing is believed to have taken everything."""
    assert cost_of(prompt(), SummaryReply(text="x"), PRICE) == bound_of(prompt(), PRICE)


@given(st.text(min_size=1, max_size=200), st.integers(0, 100))
def test_no_honest_count_is_above_the_bound(text: str, said: int) -> None:
    """A token has at least a byte, and the reply is cut off."""
    read = len(text.encode("utf-8", "surrogatepass"))
    reply = SummaryReply(text="x", prompt_tokens=read, output_tokens=said)

    assert cost_of(prompt(text), reply, PRICE) <= bound_of(prompt(text), PRICE)


def test_a_policy_refuses_what_is_no_cap() -> None:
    """Before anybody orders by it."""
    with pytest.raises(ValueError, match="no amount of money"):
        Policy(cost_max="cheap")
    assert Policy(cost_max="0.5").cost_picos_max == 5 * 10**11


def test_a_price_too_large_to_count_with_is_refused() -> None:
    """Sums of it would leave the database's numbers."""
    with pytest.raises(ValueError, match="at most 10000"):
        price_of("10000.000001", "1")
