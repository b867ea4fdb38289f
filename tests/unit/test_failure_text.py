"""What a tool says when it fails is kept up to a bound."""

import pytest

from threadmark.workers.turn.calls import FAILURE_BYTES_MAX, bounded_failure


@pytest.mark.parametrize("sign", ["x", "é", "€", "😀", "\udcff"], ids=["1", "2", "3", "4", "surrogate"])
@pytest.mark.parametrize("lead", ["", "a", "aa", "aaa"])
def test_a_long_sentence_is_cut_at_a_code_point_and_marked(sign: str, lead: str) -> None:
    """4 KiB in UTF-8, the mark included; nothing is half a code point."""
    kept = bounded_failure("Broken", lead + sign * 10_000).message

    assert FAILURE_BYTES_MAX - 8 < len(kept.encode()) <= FAILURE_BYTES_MAX == 4096
    assert kept.endswith("… (cut)")
    spelled = (lead + sign * 10_000).encode(errors="backslashreplace").decode()
    assert spelled.startswith(kept.removesuffix("… (cut)"))


@pytest.mark.parametrize("message", ["", "short", "x" * FAILURE_BYTES_MAX, "é" * (FAILURE_BYTES_MAX // 2)])
def test_a_sentence_within_the_bound_is_kept_whole(message: str) -> None:
    """To the last byte."""
    assert bounded_failure("Broken", message).message == message
