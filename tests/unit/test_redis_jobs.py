"""What is written to Redis and read from it: jobs are JSON, keys carry the tenant, an outage is logged once."""

import logging
import pickle
from typing import Any

import msgspec
import pytest

from threadmark.workers.redis.redis_link import Outage, decode_job, encode_job, flashes_key

RUN_ID = "01a22812-7193-7bcd-8304-da4549f015ef"


class Bomb:
    """An object whose pickle would run code when it is read."""

    def __reduce__(self) -> tuple[Any, ...]:
        return pytest.fail, ("a pickle was loaded",)


def a_job(**changes: Any) -> dict[str, Any]:
    """A job as arq makes one."""
    return {"t": None, "f": "take_turn", "a": [RUN_ID], "k": {}, "et": 1_790_000_000_000, **changes}


def test_a_job_comes_back_as_it_was_written() -> None:
    """JSON there and back."""
    assert a_job() == decode_job(encode_job(a_job()))


@pytest.mark.parametrize(
    "text",
    [
        pickle.dumps(a_job()),
        pickle.dumps(Bomb()),
        b"",
        b"null",
        b"[1]",
        b'"take_turn"',
        encode_job(a_job(et="now")),
        encode_job(a_job(et=2**80)),
        encode_job(a_job(et=-1)),
        encode_job(a_job(a="not a list")),
        encode_job(a_job(k=[])),
        encode_job(a_job(f=7)),
        encode_job(a_job(t=10**9)),
        b'{"f": "take_turn"}',
        b"[" * 100_000,
        b"\xff\xfe",
    ],
)
def test_what_is_no_job_is_refused(text: bytes) -> None:
    """Nothing forged is unpickled, and nothing reaches arq that its arithmetic would break on."""
    with pytest.raises((msgspec.MsgspecError, RecursionError)):
        decode_job(text)


def test_an_outcome_without_a_json_form_can_still_be_written() -> None:
    """arq spells the failure of a job, which holds an exception."""
    assert b"ValueError" in encode_job({"r": ValueError("no")})


def test_a_key_carries_its_tenant() -> None:
    """Two tenants never share a stream."""
    assert flashes_key("one", RUN_ID) != flashes_key("two", RUN_ID)
    assert flashes_key("one", RUN_ID).startswith("threadmark:one:")


@pytest.mark.parametrize(("tenant_id", "run_id"), [("", RUN_ID), ("one", "")])
def test_there_is_no_key_for_everybody(tenant_id: str, run_id: str) -> None:
    """A missing tenant is refused and never means all of them."""
    with pytest.raises(ValueError, match="tenant"):
        flashes_key(tenant_id, run_id)


def test_an_outage_is_logged_when_it_begins_and_when_it_ends(caplog: pytest.LogCaptureFixture) -> None:
    """A thousand failures are two lines of the log, and a thousand in the metric."""
    outage = Outage("doorbell")

    with caplog.at_level(logging.WARNING):
        outage.worked()
        for _ in range(1_000):
            outage.failed("connection refused")
        is_on = outage.is_on
        outage.worked()
        outage.worked()

    assert [is_on, outage.is_on] == [True, False]
    assert outage.failure_count == 1_000
    assert len(caplog.records) == 2
