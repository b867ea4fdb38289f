"""How the offline model condenses a record: by rule, so that the same record has the same summary. Pure.

A person who writes `summary-fault: KIND` in the record has the summary fail in that way; tests and demonstrations do.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["FAULT_KINDS", "offline_summary"]

_ORDER = "You condense records of conversations."
_HEADINGS = ("Goal", "Constraints", "Decisions", "Facts", "Artifacts", "Open items")
_RECORD = re.compile(r"<<<(transcript-[0-9a-f]{16})\n(.*)\n\1>>>", re.DOTALL)
_LINE = re.compile(r"^\[(\d+)\] (human|ai) \([a-z]+\): (.+)$", re.MULTILINE)
_FAULT = re.compile(r"summary-fault: ([a-z_]{1,20})")
LINE_LENGTH_MAX = 160
FAULT_KINDS = ("empty", "reply", "no_headings", "invention")


def offline_summary(messages: Sequence[Mapping[str, Any]]) -> str | None:
    """The summary of the record in a summariser's request; None for any other request.

    The first words of each message of a person and of the model, in their order, under the heading Facts.
    """
    system, *others = [str(each.get("content")) for each in messages] or [""]
    if not others or not system.startswith(_ORDER):
        return None
    record = _RECORD.search(others[0])
    if record is None:
        return None
    lines = [f"- [{seq}] {text[:LINE_LENGTH_MAX]}" for seq, _, text in _LINE.findall(record[2])]
    fault = _FAULT.search(record[2])
    if fault is not None and fault[1] in FAULT_KINDS:
        return _faulty(fault[1], lines)
    return _under_headings(lines)


def _under_headings(lines: Sequence[str]) -> str:
    written = []
    for heading in _HEADINGS:
        written.append(f"## {heading}")
        written.extend(lines if heading == "Facts" and lines else ["- none"])
    return "\n".join(written)


def _faulty(kind: str, lines: Sequence[str]) -> str:
    if kind == "empty":
        return ""
    if kind == "reply":
        return "Sure, I can help you with that. What would you like to do next?"
    if kind == "no_headings":
        return "\n".join(lines)
    invented = [f"- [1] Paid ${1_000 + number}.50 to account X-{number}00{number}." for number in range(1, 13)]
    return _under_headings(invented)
