"""Instants: aware and in UTC outside, whole microseconds inside, whatever the machine's own time zone (C46)."""

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadmark.state import from_us, to_us

ZONES = (
    st.timezones() | st.just(UTC) | st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))
)


@pytest.fixture(params=["UTC", "Asia/Kolkata", "America/New_York"])
def local_zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The time zone that the process believes to be in."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


@given(st.datetimes(timezones=ZONES, allow_imaginary=False))
def test_an_instant_comes_back_as_the_same_instant_in_utc(instant: datetime) -> None:
    """To the microsecond, from year 1 to year 9999, from any zone."""
    try:
        back = from_us(to_us(instant))
    except OverflowError:
        assert instant.year in (1, 9999), "only an offset at the very edge leads out of the calendar"
        return

    # Compared in UTC: instants of two zones are never equal where one of them is an hour that a clock shows twice.
    assert back == instant.astimezone(UTC)
    assert back.utcoffset() == timedelta(0)


@given(st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999))
def test_microseconds_come_back_exactly(value: int) -> None:
    """No float comes near them."""
    assert to_us(from_us(value)) == value


def test_the_zone_of_the_process_changes_nothing(local_zone: str) -> None:
    """Half an hour of an offset is where a conversion through local time goes wrong."""
    assert os.environ["TZ"] == local_zone
    instant = datetime.fromisoformat("2026-03-29T01:30:00+01:00")

    assert to_us(instant) == 1_774_744_200_000_000
    assert from_us(to_us(instant)).isoformat() == "2026-03-29T00:30:00+00:00"


def test_equal_instants_are_equal_whatever_their_offset() -> None:
    """An order by instants is one order."""
    spellings = ["2026-03-29T01:30:00+01:00", "2026-03-29T00:30:00+00:00", "2026-03-29T06:00:00+05:30"]

    assert len({to_us(datetime.fromisoformat(each)) for each in spellings}) == 1


def test_a_naive_datetime_names_no_instant() -> None:
    """It is refused, and never taken for UTC or for the zone of the process."""
    with pytest.raises(ValueError, match="naive"):
        to_us(datetime(2026, 3, 29, 1, 30))  # noqa: DTZ001 - that is the point
