"""Rendering: from a view to the messages that the model is sent. Between two compactions it only ever grows."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from threadmark.compaction.errors import ViewBroken
from threadmark.compaction.input.groups import Pairing, pair_results
from threadmark.compaction.input.source import Part, PartKind, Role, SourceEntry
from threadmark.compaction.view.items import Live, Masked, Pin, Segment, Summary, View
from threadmark.compaction.view.stubs import abandoned_text, masked_text, pin_text, reference_text, segment_text

__all__ = ["PartRole", "Rendered", "RenderedCall", "RenderedPart", "check_view", "render"]


class PartRole(StrEnum):
    """What a rendered part is."""

    MESSAGE = "message"  #: an entry as it is
    MASKED = "masked"  #: a tool result without its output
    SUMMARY = "summary"
    PIN = "pin"
    REFERENCE = "reference"  #: a tool's output without a call in its place, shown as data
    ABANDONED = "abandoned"  #: the stand-in for a result that never came


class RenderedCall(msgspec.Struct, frozen=True):
    """A tool call as it is sent; `arguments` is JSON text."""

    id: str
    name: str
    arguments: str


class RenderedPart(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message of the request. `content` is text, or content blocks where a message has more than text."""

    kind: PartRole
    role: Role
    content: str | list[Any]
    seq: int | None = None
    segment_id: str | None = None
    name: str | None = None
    calls: tuple[RenderedCall, ...] = ()
    call_id: str | None = None
    failed: bool = False
    tokens: int = 0


class Rendered(msgspec.Struct, frozen=True):
    """The messages in order. `render_hash` covers the bytes of all parts; equal hash, equal prompt."""

    parts: tuple[RenderedPart, ...]
    render_hash: str
    tokens: int


def render(view: View, entries: Sequence[SourceEntry], segments: Mapping[str, Segment]) -> Rendered:
    """Render the view over the thread's entries (all of them, in order).

    Every call is followed at once by one result for each of its calls, unless it is the end of the thread; a result
    without a call is shown as reference. Raises ViewBroken when the view names what is not there.
    """
    parts = tuple(_parts(view, entries, segments))
    digest = hashlib.sha256()
    encode = msgspec.json.Encoder().encode
    for part in parts:
        digest.update(encode(part))
        digest.update(b"\n")
    return Rendered(parts, digest.hexdigest(), sum(part.tokens for part in parts))


def check_view(view: View, entries: Sequence[SourceEntry], segments: Mapping[str, Segment]) -> None:
    """Raise ViewBroken where `render` would, without a word of what would be sent."""
    for item in view.items:
        if isinstance(item, Masked):
            _masked_entries(view, item, entries)
        elif isinstance(item, Summary):
            _segment_of(view, item, segments)
        elif isinstance(item, Pin):
            _pinned_entry(view, item, entries)


def _parts(view: View, entries: Sequence[SourceEntry], segments: Mapping[str, Segment]) -> Iterator[RenderedPart]:
    shown: list[tuple[SourceEntry, bool]] = []
    for item in view.items:
        if isinstance(item, Live):
            shown.extend((entry, False) for entry in _slice(entries, item.from_seq, item.to_seq))
        elif isinstance(item, Masked):
            shown.extend((entry, entry.role is Role.TOOL) for entry in _masked_entries(view, item, entries))
        else:
            yield from _messages(shown, is_tail=False)
            shown = []
            yield _current_view(view, item, entries, segments)
    yield from _messages(shown, is_tail=True)


def _slice(entries: Sequence[SourceEntry], first: int, last: int | None) -> Sequence[SourceEntry]:
    start = _first_at(entries, first)
    end = len(entries) if last is None else _first_at(entries, last + 1)
    return entries[start:end]


def _first_at(entries: Sequence[SourceEntry], seq: int) -> int:
    low, high = 0, len(entries)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if entries[middle].seq < seq else (low, middle)
    return low


def _current_view(
    view: View, item: Summary | Pin, entries: Sequence[SourceEntry], segments: Mapping[str, Segment]
) -> RenderedPart:
    if isinstance(item, Summary):
        segment = _segment_of(view, item, segments)
        # A summary has words of people, models and tools: it is sent as the model's own note, never as a person's
        # or an operator's word.
        return RenderedPart(
            PartRole.SUMMARY, Role.AI, segment_text(segment), segment_id=segment.segment_id, tokens=segment.tokens
        )
    entry = _pinned_entry(view, item, entries)
    text = pin_text(entry, "" if entry.erased else entry.text_of(item.part)[item.start : item.end])
    return RenderedPart(PartRole.PIN, Role.AI, text, seq=item.seq, tokens=_estimate(text))


def _masked_entries(view: View, item: Masked, entries: Sequence[SourceEntry]) -> Sequence[SourceEntry]:
    masked = _slice(entries, item.seq, item.seq)
    if not masked:
        raise ViewBroken(view.view_id, f"there is no entry {item.seq}")
    return masked


def _segment_of(view: View, item: Summary, segments: Mapping[str, Segment]) -> Segment:
    segment = segments.get(item.segment_id)
    if segment is None:
        raise ViewBroken(view.view_id, f"there is no segment {item.segment_id!r}")
    return segment


def _pinned_entry(view: View, item: Pin, entries: Sequence[SourceEntry]) -> SourceEntry:
    found = [entry for entry in _slice(entries, item.seq, item.seq) if entry.message == item.message]
    if not found:
        raise ViewBroken(view.view_id, f"there is no message {item.seq}.{item.message} to pin")
    if not found[0].erased and not 0 <= item.part < len(found[0].parts) + len(found[0].calls):
        # An edit since may have left it with fewer parts.
        raise ViewBroken(view.view_id, f"message {item.seq}.{item.message} has no part {item.part}")
    return found[0]


def _messages(shown: Sequence[tuple[SourceEntry, bool]], *, is_tail: bool) -> Iterator[RenderedPart]:
    """Entries as messages, results at once behind their calls, in the order of the calls."""
    entries = [entry for entry, _ in shown]
    pairing = pair_results(entries)
    answering = {place for slots in pairing.result_of.values() for place in slots if place is not None}
    for place, (entry, masked) in enumerate(shown):
        if place in answering:
            continue
        if entry.role is Role.TOOL:
            yield RenderedPart(PartRole.REFERENCE, Role.AI, reference_text(entry), seq=entry.seq, tokens=entry.tokens)
        elif place in pairing.result_of:
            yield from _exchange(place, shown, pairing, is_tail=is_tail)
        else:
            yield _message(entry, masked=masked)


def _exchange(
    place: int, shown: Sequence[tuple[SourceEntry, bool]], pairing: Pairing, *, is_tail: bool
) -> Iterator[RenderedPart]:
    """A message with calls and its results; calls without one get a stand-in, unless the thread ends here."""
    entry = shown[place][0]
    ids = _call_ids(entry)
    calls = tuple(
        RenderedCall(call_id, call.name, call.arguments) for call_id, call in zip(ids, entry.calls, strict=True)
    )
    yield RenderedPart(
        PartRole.MESSAGE, entry.role, _content(entry), seq=entry.seq, name=entry.name, calls=calls, tokens=entry.tokens
    )
    # A stray result behind it would be shown under another speaker.
    answers_of_it = set(pairing.result_of[place])
    ends_here = is_tail and all(at in answers_of_it for at in range(place + 1, len(shown)))
    answers = zip(ids, entry.calls, pairing.result_of[place], strict=True)
    for number, (call_id, call, at) in enumerate(answers):
        if at is not None:
            result, masked = shown[at]
            nth = pairing.result_of[place][:number].count(at)
            yield _message(_nth_answer(result, nth), masked=masked, call_id=call_id)
        elif not ends_here:
            text = abandoned_text(call.name)
            yield RenderedPart(
                PartRole.ABANDONED,
                Role.TOOL,
                text,
                name=call.name,
                call_id=call_id,
                failed=True,
                tokens=_estimate(text),
            )


def _nth_answer(entry: SourceEntry, nth: int) -> SourceEntry:
    """The share of one call in a message that answers several: its own part, or the whole for the first of them."""
    if len(entry.answers) <= 1 or entry.erased:
        return entry
    if len(entry.parts) == len(entry.answers):
        parts = entry.parts[nth : nth + 1]
    else:
        parts = entry.parts if nth == 0 else (Part(text="[answered together with the call before]"),)
    return msgspec.structs.replace(entry, parts=parts, tokens=entry.tokens // len(entry.answers))


def _call_ids(entry: SourceEntry) -> list[str]:
    """The ids of a message's calls, each once: a missing or doubled id is completed."""
    ids: list[str] = []
    for number, call in enumerate(entry.calls):
        call_id = call.call_id or f"call_{entry.seq}"
        ids.append(call_id if call_id not in ids else f"{call_id}~{number}")
    return ids


def _message(entry: SourceEntry, *, masked: bool, call_id: str | None = None) -> RenderedPart:
    if masked:
        text = masked_text(entry)
        return RenderedPart(
            PartRole.MASKED,
            entry.role,
            text,
            seq=entry.seq,
            name=entry.name,
            call_id=call_id,
            failed=entry.failed,
            tokens=_estimate(text),
        )
    return RenderedPart(
        PartRole.MESSAGE,
        entry.role,
        _content(entry),
        seq=entry.seq,
        name=entry.name,
        call_id=call_id,
        failed=entry.failed,
        tokens=entry.tokens,
    )


def _content(entry: SourceEntry) -> str | list[Any]:
    if entry.erased:
        return "[erased]"
    parts = entry.parts
    if len(parts) == 1 and parts[0].kind is PartKind.TEXT:
        return parts[0].text
    if not parts:
        return ""
    return list(_blocks(entry))


def _blocks(entry: SourceEntry) -> Iterable[Any]:
    for part in entry.parts:
        if part.kind is PartKind.TEXT:
            yield {"type": "text", "text": part.text}
        elif part.block:
            yield msgspec.Raw(part.block.encode())


def _estimate(text: str) -> int:
    """Tokens of a line of ours, at four characters each; lines of ours are ASCII and short."""
    return len(text) // 4 + 4
