"""The summary by a model: every chunk is shown, the replies are read by a fixed schema and merged without a model."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import StrEnum
from typing import Protocol, TypeAlias

import msgspec

from threadmark.compaction.input.source import SourceEntry
from threadmark.compaction.summary.drafts import Draft, Line, TokenCounter
from threadmark.compaction.summary.prompts import SECTIONS, SummaryPrompt, prompts_for
from threadmark.compaction.view.stubs import escape_fences

__all__ = ["Admission", "DraftRefused", "Refused", "Summariser", "SummariserFailed", "SummaryReply", "model_draft"]


class Refused(StrEnum):
    """Why a draft, or the attempt to get one, was refused."""

    CALL_FAILED = "the call failed"
    EMPTY = "the reply was empty"
    TRUNCATED = "the reply was cut off"
    TOOL_CALL = "the reply called a tool"
    SCHEMA = "headings were missing"
    REPLY = "it answered the conversation instead of condensing it"
    ONE_SIDED = "it told of a small part of the record only"
    COPY = "it copied the record"
    INVENTION = "it said what the record does not say"
    TOO_LONG = "it was not shorter than what it stands for"
    COST_CAP = "the prompts would cost more than the policy allows"
    NO_GAIN = "too little was won"


class SummariserFailed(Exception):
    """The model gave no reply: an error, a refusal by its server, a time-out. Any other exception is a defect."""


class DraftRefused(Exception):
    """A draft cannot be used; the view stays as it is."""

    def __init__(self, reason: Refused, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else str(reason))
        self.reason, self.detail = reason, detail


class SummaryReply(msgspec.Struct, frozen=True, kw_only=True):
    """What a model said. `finish_reason` is `stop` for a reply that came to its end."""

    text: str
    finish_reason: str = "stop"
    has_tool_calls: bool = False
    prompt_tokens: int = 0
    output_tokens: int = 0


class Summariser(Protocol):
    """A model that condenses. Implementations make one request without tools, and keep nothing."""

    async def summarise(self, prompt: SummaryPrompt) -> SummaryReply:
        """The model's reply. Raises SummariserFailed when there is none."""
        ...


#: Asked before the first call of a draft, with all of its prompts. Raises DraftRefused.
Admission: TypeAlias = Callable[[Sequence[SummaryPrompt]], Awaitable[None]]


async def model_draft(
    entries: Sequence[SourceEntry],
    summariser: Summariser,
    *,
    chunk_tokens: int,
    summary_tokens: int,
    prompt_tokens_max: int,
    count: TokenCounter,
    refused: str | None = None,
    admit: Admission | None = None,
) -> Draft:
    """Ask for every chunk, in order, and merge the replies section by section.

    Raises DraftRefused before the first call when the calls would cost more than `prompt_tokens_max`, or `admit` says
    so, and at the first reply that cannot be used.
    """
    prompts = prompts_for(
        entries, chunk_tokens=chunk_tokens, summary_tokens=summary_tokens, count=count, refused=refused
    )
    planned = sum(prompt.prompt_tokens for prompt in prompts)
    if planned > prompt_tokens_max:
        raise DraftRefused(Refused.COST_CAP, f"{planned} of {prompt_tokens_max} prompt tokens")
    if admit is not None:
        await admit(prompts)
    known = {entry.seq for entry in entries}
    merged: dict[str, list[Line]] = {section: [] for section in SECTIONS}
    for prompt in prompts:
        try:
            reply = await summariser.summarise(prompt)
        except SummariserFailed as error:
            raise DraftRefused(Refused.CALL_FAILED, str(error)) from error
        for section, lines_of in read_reply(reply, known).items():
            merged[section].extend(lines_of)
    lines = tuple(line for section in SECTIONS for line in merged[section])
    if not lines:
        raise DraftRefused(Refused.EMPTY, "every section is empty")
    return Draft(
        strategy="model" if refused is None else "model_strict",
        lines=lines,
    )


_HEADING = re.compile(r"#{1,4}[ \t]{0,4}\**([A-Za-z ]{3,30}?)\**:?[ \t]{0,4}\Z")
_BULLET = re.compile(r"[-*•][ \t]{1,4}(?:\[([0-9][0-9, ;–\-]{0,80})\][ \t:]{0,4})?(.{0,4000})\Z", re.DOTALL)
_EMPTY_LINES = frozenset(
    {"none", "none.", "n/a", "-", "keine", "aucun", "aucune", "ninguno", "ninguna", "无", "なし", "没有"}
)


def read_reply(reply: SummaryReply, known: set[int]) -> Mapping[str, list[Line]]:
    """The lines of a reply under their sections. Raises DraftRefused for a reply without the fixed schema."""
    if reply.has_tool_calls:
        raise DraftRefused(Refused.TOOL_CALL)
    if not reply.text.strip():
        raise DraftRefused(Refused.EMPTY)
    if reply.finish_reason != "stop":
        raise DraftRefused(Refused.TRUNCATED, reply.finish_reason)
    sections: dict[str, list[Line]] = {}
    current: str | None = None
    names = {section.casefold(): section for section in SECTIONS}
    for written in reply.text.splitlines():
        stripped = written.strip()
        heading = _HEADING.match(stripped)
        if heading and heading[1].strip().casefold() in names:
            current = names[heading[1].strip().casefold()]
            sections.setdefault(current, [])
        elif stripped and current is not None:
            line = _line(current, stripped, known)
            if line is not None:
                sections[current].append(line)
        elif stripped:
            raise DraftRefused(Refused.SCHEMA, "there is text before the first heading")
    missing = [section for section in SECTIONS if section not in sections]
    if missing:
        raise DraftRefused(Refused.SCHEMA, f"without {', '.join(missing)}")
    return sections


def _line(section: str, stripped: str, known: set[int]) -> Line | None:
    bullet = _BULLET.match(stripped)
    text = (bullet[2] if bullet else stripped).strip()
    if not text or text.casefold() in _EMPTY_LINES:
        return None
    pointed = tuple(int(number) for number in re.findall(r"\d{1,9}", bullet[1] or "")) if bullet else ()
    return Line(section, escape_fences(text), tuple(seq for seq in pointed if seq in known))
