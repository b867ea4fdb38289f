"""What the database disposes: each condition of an answer, at its boundary and on both sides of it."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support.memory_house import HOME, NOW, question
from threadmark.memory import Filter, Include
from threadmark.memory.model.instants import FAR_US, to_us
from threadmark.memory.model.question import Withheld
from threadmark.memory.recall.post_filter import AdmissibilityFilter, Held

NOW_US = to_us(NOW)
INSTANT = timedelta(microseconds=1)


def verdict(asked: dict[str, Any] | None = None, **columns: Any) -> Withheld | None:
    """Why a row with these columns is no answer to a question with these fields."""
    row = Held(
        assertion_id="a",
        number=1,
        tenant_id=HOME.tenant_id,
        namespace_id=1,
        kind="fact",
        subject_key=None,
        attribute_key=None,
        trust="user",
        confidence=0.5,
        speaker=None,
        thread_ref=None,
        run_ref=None,
        session=None,
        previous_id=None,
        says_when=False,
        hold="",
        closing=None,
        valid_from=0,
        valid_to=FAR_US,
        known_from=0,
        known_to=FAR_US,
        observed_at=NOW_US,
        expires_at=FAR_US,
    )
    asks = question(text="where?", **asked or {})
    return AdmissibilityFilter.of(asks).check(row._replace(**columns), HOME.namespace)


@pytest.mark.parametrize(
    ("expires_at", "why"), [(NOW_US - 1, Withheld.EXPIRED), (NOW_US, Withheld.EXPIRED), (NOW_US + 1, None)]
)
def test_a_row_expires_at_its_instant(expires_at: int, why: Withheld | None) -> None:
    """At `expires_at` itself it is gone."""
    assert verdict(expires_at=expires_at) is why


@pytest.mark.parametrize(
    ("known_from", "known_to", "why"),
    [
        (NOW_US, FAR_US, None),
        (NOW_US + 1, FAR_US, Withheld.NOT_KNOWN_THEN),
        (0, NOW_US + 1, None),
        (0, NOW_US, Withheld.RETRACTED),
        (0, NOW_US - 1, Withheld.RETRACTED),
    ],
)
def test_a_belief_holds_from_its_first_instant_to_before_its_last(
    known_from: int, known_to: int, why: Withheld | None
) -> None:
    """Asked as of `known_at`."""
    assert verdict({"known_at": NOW}, known_from=known_from, known_to=known_to) is why


@pytest.mark.parametrize(
    ("include", "why"),
    [(Include.CURRENT, Withheld.SUPERSEDED), (Include.HISTORY, Withheld.SUPERSEDED), (Include.ALL, None)],
)
def test_a_superseded_belief_answers_only_when_all_are_asked_for(include: Include, why: Withheld | None) -> None:
    """From the instant at which it was superseded."""
    asked = {"known_at": NOW, "include": include}

    assert verdict(asked, known_to=NOW_US, closing="superseded") is why
    assert verdict(asked, known_to=NOW_US + 1, closing="superseded") is None
    assert verdict(asked, known_to=NOW_US, closing="retracted") is Withheld.RETRACTED


@pytest.mark.parametrize(
    ("valid_from", "valid_to", "why"),
    [
        (NOW_US, FAR_US, None),
        (NOW_US + 1, FAR_US, Withheld.NOT_VALID_THEN),
        (0, NOW_US + 1, None),
        (0, NOW_US, Withheld.NOT_VALID_THEN),
    ],
)
def test_a_statement_is_true_from_its_first_instant_to_before_its_last(
    valid_from: int, valid_to: int, why: Withheld | None
) -> None:
    """As of `valid_at`; a question about history does not ask."""
    assert verdict({"valid_at": NOW}, valid_from=valid_from, valid_to=valid_to) is why
    history = {"valid_at": NOW, "include": Include.HISTORY}
    assert verdict(history, valid_from=valid_from, valid_to=valid_to) is None


@pytest.mark.parametrize(("confidence", "why"), [(0.7, None), (0.71, None), (0.69, Withheld.FILTERED)])
def test_the_least_confidence_is_enough(confidence: float, why: Withheld | None) -> None:
    """The bound belongs to what is asked for."""
    assert verdict({"filter": Filter(confidence_min=0.7)}, confidence=confidence) is why


@pytest.mark.parametrize(
    ("bounds", "observed_at", "why"),
    [
        ({"observed_from": NOW}, NOW, None),
        ({"observed_from": NOW}, NOW - INSTANT, Withheld.FILTERED),
        ({"observed_to": NOW}, NOW, Withheld.FILTERED),
        ({"observed_to": NOW}, NOW - INSTANT, None),
    ],
)
def test_the_window_of_observations_is_half_open(
    bounds: dict[str, datetime], observed_at: datetime, why: Withheld | None
) -> None:
    """Its begin belongs to it, its end does not."""
    assert verdict({"filter": Filter(**bounds)}, observed_at=to_us(observed_at)) is why  # type: ignore[arg-type]


def test_a_row_on_hold_or_of_another_tenant_is_no_answer() -> None:
    """Whatever else is true of it; the scope is asked first."""
    assert verdict(hold="untrusted") is Withheld.QUARANTINED
    assert verdict(hold="untrusted", tenant_id="other") is Withheld.OUT_OF_SCOPE
    assert verdict() is None
