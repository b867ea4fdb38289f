"""Where a statement comes from, and how far its author is trusted. Pure.

Words that a person said are the person's; as soon as a tool has spoken in the thread, everything else may be the
tool's, and is trusted no further.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from unicodedata import category

from threadmark.memory import Origin, Trust
from threadmark.memory.model.provenance import quote_hash
from threadmark.memory.model.values import LABEL_LENGTH_MAX
from threadmark.state import Message, Said, ThreadState, from_us
from threadmark.workers.agents.memory_policy import MEMORY_TOOLS

__all__ = ["Moment", "moment_at", "moment_of"]

_UNTRUSTED = frozenset(each.value for each in Trust if each.is_untrusted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Where a statement comes from, and how far its author is trusted."""

    origin: Origin
    trust: Trust
    asserted_by: str
    observed_at: datetime


def moment_of(state: ThreadState, text: str, *, thread_id: str, trust: Trust) -> Moment:
    """The moment that a statement made now comes from.

    The last person whose very words it is, with the span; else the last tool that has spoken, if any has; else the
    agent, by what it made of the last message.
    """
    said = [each for each in reversed(state.messages) if each.id in state.said]
    for message in said:
        if message.type == "human" and (span := _span(text, message.text)) is not None:
            return moment_at(message, state.said[message.id], thread_id=thread_id, trust=trust, span=span)
    for message in said:
        if message.type == "tool" and not _is_trusted(message):
            place, actor = state.said[message.id], message.name or "tool"
            span = _span(text, message.text)
            return moment_at(message, place, thread_id=thread_id, trust=Trust.TOOL, span=span, actor=actor)
    last = next((each for each in said if each.type == "human"), said[0])
    trust = Trust.TOOL if _was_told_by_strangers(state) else Trust.AGENT
    return moment_at(last, state.said[last.id], thread_id=thread_id, trust=trust, span=None, actor="agent")


def _was_told_by_strangers(state: ThreadState) -> bool:
    """Whether the model was shown untrusted notes: repeated by it, they are no more to be trusted."""
    return state.recalled is not None and any(each.get("trust") in _UNTRUSTED for each in state.recalled.answers)


def _is_trusted(message: Message) -> bool:
    """Whether a result is memory's own, and holds nothing untrusted."""
    text = message.text
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
        content_hash=quote_hash(message.text[start:end]),
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
