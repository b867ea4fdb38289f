"""What a turn's tools may do with memory: in the scope of the agent's policy, and with an origin that is looked up.

A model chooses words and never a scope, a tenant, an origin or a trust. Words that a person said are the person's; as
soon as a tool has spoken in the thread, everything else may be the tool's, and is trusted no further.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from unicodedata import category

from threadmark.memory import Answers, Assertion, Draft, Include, Origin, Question, Recollection, Scope, Trust, Verdict
from threadmark.memory.model.provenance import quote_hash
from threadmark.memory.model.values import LABEL_LENGTH_MAX
from threadmark.state import Claim, Message, Said, ThreadState, from_us
from threadmark.workers.agents.agent import ChatAgent
from threadmark.workers.agents.memory_policy import MEMORY_TOOLS, MemoryPolicy, NoScope, scope_of
from threadmark.workers.fleet.services import Services
from threadmark.workers.turn.messages import text_of

__all__ = ["MemoryAccess", "Moment", "memory_access_of", "moment_at", "moment_of"]

_UNTRUSTED = frozenset(each.value for each in Trust if each.is_untrusted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Where a statement comes from, and how far whoever made it is trusted."""

    origin: Origin
    trust: Trust
    asserted_by: str
    observed_at: datetime


class MemoryAccess:
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


def memory_access_of(services: Services, claim: Claim, agent: ChatAgent, state: ThreadState) -> MemoryAccess | None:
    """The hand of a turn; None for an agent that has no memory."""
    if agent.memory is None:
        return None
    return MemoryAccess(services.recollection, agent.memory, claim, state, services.now())


def moment_of(state: ThreadState, text: str, *, thread_id: str, trust: Trust) -> Moment:
    """The moment that a statement made now comes from.

    The last person whose very words it is, with the span; else the last tool that has spoken, if any has; else the
    agent, by what it made of the last message.
    """
    said = [each for each in reversed(state.messages) if each.id in state.said]
    for message in said:
        if message.type == "human" and (span := _span(text, text_of(message))) is not None:
            return moment_at(message, state.said[message.id], thread_id=thread_id, trust=trust, span=span)
    for message in said:
        if message.type == "tool" and not _is_trusted(message):
            place, actor = state.said[message.id], message.name or "tool"
            span = _span(text, text_of(message))
            return moment_at(message, place, thread_id=thread_id, trust=Trust.TOOL, span=span, actor=actor)
    last = next((each for each in said if each.type == "human"), said[0])
    trust = Trust.TOOL if _was_told_by_strangers(state) else Trust.AGENT
    return moment_at(last, state.said[last.id], thread_id=thread_id, trust=trust, span=None, actor="agent")


def _was_told_by_strangers(state: ThreadState) -> bool:
    """Whether the model was shown untrusted notes: repeated by it, they are no more to be trusted."""
    return state.recalled is not None and any(each.get("trust") in _UNTRUSTED for each in state.recalled.answers)


def _is_trusted(message: Message) -> bool:
    """Whether a result is memory's own, and holds nothing untrusted."""
    text = text_of(message)
    return message.name in MEMORY_TOOLS and not any(f'"trust":"{each}"' in text for each in _UNTRUSTED)


def moment_at(
    message: Message,
    said: Said,
    *,
    thread_id: str,
    trust: Trust,
    span: tuple[int, int] | None,
    actor: str | None = None,
) -> Moment:
    """The moment that a message is, or the span of it."""
    start, end = span or (None, None)
    by = _label(actor or message.name or "user")
    origin = Origin(
        thread_ref=thread_id,
        run_ref=said.run_id,
        seq=said.seq,
        message_ref=_label(message.id),
        actor=by,
        at=from_us(said.at_us),
        content_hash=quote_hash(text_of(message)[start:end]),
        char_from=start,
        char_to=end,
    )
    return Moment(origin=origin, trust=trust, asserted_by=by or "user", observed_at=from_us(said.at_us))


def _label(name: str) -> str | None:
    """A name as memory takes it; None for one that a client made too odd: thread and seq name the moment as well."""
    is_odd = len(name) > LABEL_LENGTH_MAX or not name.strip() or any(category(sign) == "Cc" for sign in name)
    return None if is_odd else name


def _span(text: str, whole: str) -> tuple[int, int] | None:
    """Where the words stand in a message, whatever their case and spacing."""
    words = text.split()
    if not words:
        return None
    found = re.search(r"\s+".join(map(re.escape, words)), whole, re.IGNORECASE)
    return None if found is None else found.span()
