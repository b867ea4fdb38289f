"""Live events in Redis are decoded strictly: a client that can write there can write anything."""

import msgspec
import pytest

from threadmark.workers.feeds.feed import Flash
from threadmark.workers.redis.redis_events import (
    RunNotice,
    decode_flash,
    decode_notices,
    encode_flash,
    encode_notices,
    place_of,
)


@pytest.mark.parametrize(
    "flash",
    [
        Flash(after_seq=3, ordinal=1, kind="delta", data="a\u2028\x00b", message_id="msg-1"),
        Flash(after_seq=3, ordinal=2, kind="custom", data={"progress": [1, None, "ü"]}),
    ],
)
def test_a_flash_comes_back_as_it_was(flash: Flash) -> None:
    """Its place is the id of the entry, the rest is the body."""
    assert flash == decode_flash((flash.after_seq, flash.ordinal), encode_flash(flash))


@pytest.mark.parametrize("body", [b"", b"{}", b'{"kind": "other", "data": 1}', b"\x80\x04", b"[" * 100_000])
def test_a_body_that_is_none_is_no_flash(body: bytes) -> None:
    """It is passed over."""
    assert decode_flash((1, 1), body) is None


@pytest.mark.parametrize(
    ("entry_id", "place"), [(b"7-2", (7, 2)), (b"x", (0, 0)), (b"18446744073709551615-1", (0, 0)), (b"1-2-3", (0, 0))]
)
def test_an_entry_id_is_a_place(entry_id: bytes, place: tuple[int, int]) -> None:
    """An id that is no place names the one where no flash is."""
    assert place == place_of(entry_id)


def test_what_stirs_comes_back_as_it_was() -> None:
    """One message tells of several runs."""
    notices = [RunNotice("one", "r1", flashed=True), RunNotice("two", "r2", seq=9, ended=True)]

    assert notices == decode_notices(encode_notices(notices))


@pytest.mark.parametrize("message", [b"", b"{}", b"[[1, 2]]", b'[["one"]]', b"\x80\x04", b"[" * 100_000])
def test_what_is_no_wake_up_is_refused(message: bytes) -> None:
    """The ear passes it over."""
    with pytest.raises(msgspec.MsgspecError):
        decode_notices(message)
