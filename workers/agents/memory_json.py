"""Memory's values as a journal keeps them: plain JSON. Pure."""

from typing import Any

from threadmark.memory import Answer, Assertion, Evidence

__all__ = ["answer_shown", "assertion_shown", "source_shown"]


def answer_shown(answer: Answer) -> dict[str, Any]:
    """An answer: the statement, its score, and every signal's part of it."""
    return assertion_shown(answer.assertion) | {"score": answer.score, "because": dict(answer.because)}


def assertion_shown(held: Assertion) -> dict[str, Any]:
    """A statement: its words, its times on both axes, and the moments that it rests on."""
    return {
        "memory_id": held.assertion_id,
        "text": held.text,
        "kind": held.kind,
        "subject": held.subject,
        "attribute": held.attribute,
        "value": held.value,
        "trust": held.trust.value,
        "valid_from": held.valid_from.isoformat(),
        "valid_to": None if held.valid_to is None else held.valid_to.isoformat(),
        "known_from": held.known_from.isoformat(),
        "known_to": None if held.known_to is None else held.known_to.isoformat(),
        "superseded_by": held.superseded_by,
        "provenance": [source_shown(each) for each in held.provenance],
    }


def source_shown(source: Evidence) -> dict[str, Any]:
    """One moment that a statement rests on."""
    origin = source.origin
    return {
        "thread_ref": origin.thread_ref,
        "run_ref": origin.run_ref,
        "seq": origin.seq,
        "message_ref": origin.message_ref,
        "actor": origin.actor,
        "char_from": origin.char_from,
        "char_to": origin.char_to,
        "content_hash": origin.content_hash,
        "role": source.role.value,
        "trust": source.trust.value,
        "observed_at": source.observed_at.isoformat(),
        "asserted_by": source.asserted_by,
    }
