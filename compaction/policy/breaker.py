"""The breaker: two compactions in a row that won too little, and no third until the floor has changed."""

from collections.abc import Sequence

import msgspec

from threadmark.compaction.model.plan import Plan, Refusal, RefusalReason

__all__ = ["ATTEMPTS_MAX", "Attempt", "breaker"]

ATTEMPTS_MAX = 2


class Attempt(msgspec.Struct, frozen=True):
    """One automatic compaction: the floor it found, and whether it reached what it was made for."""

    floor_tokens: int
    was_effective: bool


def breaker(plan: Plan | Refusal, attempts: Sequence[Attempt]) -> Plan | Refusal:
    """The plan, unless the last attempts over the same floor all failed to help: then a refusal that names the floor.

    `attempts` are the thread's, oldest first.
    """
    if isinstance(plan, Refusal) or len(attempts) < ATTEMPTS_MAX:
        return plan
    last = attempts[-ATTEMPTS_MAX:]
    if any(attempt.was_effective or attempt.floor_tokens != plan.floor_tokens for attempt in last):
        return plan
    return Refusal(reason=RefusalReason.BREAKER_OPEN, tokens_before=plan.tokens_before, floor_tokens=plan.floor_tokens)
