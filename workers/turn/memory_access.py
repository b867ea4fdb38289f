"""What a turn's tools may do with memory: in the scope of the agent's policy, and with an origin that is looked up.

A model chooses words and never a scope, a tenant, an origin or a trust.
"""

from collections.abc import Sequence
from datetime import datetime

from threadmark.memory import Answers, Assertion, Draft, Include, Question, Recollection, Scope, Verdict
from threadmark.state import Claim, ThreadState
from threadmark.workers.agents.memory_policy import MemoryPolicy, NoScope, scope_of
from threadmark.workers.agents.moments import Moment, moment_of

__all__ = ["TurnMemory"]


class TurnMemory:
    """One turn's hand on memory."""

    def __init__(
        self, memory: Recollection | None, policy: MemoryPolicy, claim: Claim, state: ThreadState, now: datetime
    ) -> None:
        self._memory = memory
        self._policy = policy
        self._claim = claim
        self._state = state
        self._now = now

    async def remember(
        self, text: str, subject: str | None, attribute: str | None, value: str | float | bool | None
    ) -> tuple[Verdict, Moment]:
        """Keep a statement. Repeated for the same message it changes nothing. Raises NoScope, RecollectionError."""
        memory, scope = self._reach()
        moment = moment_of(self._state, text, thread_id=self._claim.thread.thread_id, trust=self._policy.trust)
        draft = Draft(
            namespace=scope.namespace,
            text=text,
            subject=subject,
            attribute=attribute,
            value=value,
            observed_at=moment.observed_at,
            trust=moment.trust,
            origin=moment.origin,
            asserted_by=moment.asserted_by,
        )
        (verdict,) = await memory.remember([draft], scope=scope, now=self._now)
        return verdict, moment

    async def recall(
        self, question: str, limit: int, include: Include, valid_at: datetime | None, known_at: datetime | None
    ) -> Answers:
        """Ask. Raises NoScope, RecollectionError."""
        memory, scope = self._reach()
        return await memory.recall(
            Question(
                text=question,
                scope=scope,
                asked_at=self._now,
                valid_at=valid_at,
                known_at=known_at,
                include=include,
                count_max=limit,
                token_count_max=self._policy.token_count_max,
                thread_ref=self._claim.thread.thread_id,
                run_ref=self._claim.run.run_id,
            )
        )

    async def timeline(self, subject: str, attribute: str) -> Sequence[Assertion]:
        """Every version of an attribute. Raises NoScope, RecollectionError."""
        memory, scope = self._reach()
        return await memory.timeline(subject, attribute, scope=scope)

    async def why(self, memory_id: str) -> tuple[Assertion, Sequence[Assertion]]:
        """A memory with its sources, and its versions. Raises NoScope, RecollectionError."""
        memory, scope = self._reach()
        held = await memory.get(memory_id, scope=scope)
        return held, await memory.history(memory_id, scope=scope)

    def _reach(self) -> tuple[Recollection, Scope]:
        if self._memory is None:
            raise NoScope("this server has no memory")
        claim = self._claim
        return self._memory, scope_of(
            self._policy,
            tenant_id=claim.run.tenant_id,
            assistant=claim.run.assistant,
            thread_id=claim.thread.thread_id,
            metadata=claim.thread.metadata,
        )
