"""Opening the origin of a memory: the journal entry that it names, and the words that it quotes. Units over state.

Memory keeps names alone; whether they still lead anywhere is looked up here, in the tenant of the caller.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct
from sqlalchemy import Connection

from threadmark.app.http.path_ids import BadId, uuid_of
from threadmark.app.wire.memories.memory_schema import ShownSource, source_to_wire
from threadmark.memory import Evidence, quote_hash
from threadmark.state import Line, NotFound, Thread, fold_thread, from_us, get_thread, read_lines
from threadmark.workers.tasks.erased_json import ERASED, MARKS
from threadmark.workers.tasks.erased_spans import Span, span_now

__all__ = ["OpenedEntry", "OpenedSource", "open_sources"]

OriginStatus = Literal["found", "erased", "no_entry", "thread_gone", "not_named"]


class OpenedEntry(Struct, kw_only=True):
    """The journal entry of an origin. `payload` is null once it was erased."""

    thread_id: str
    seq: int
    run_id: str | None
    kind: str
    at: datetime
    digest: str
    payload: dict[str, Any] | None


class OpenedSource(Struct, kw_only=True):
    """A source, and what its origin leads to.

    `status`: `found`; `erased`, where the entry is there and not its words, or not all of them; `no_entry`, where the
    thread has no such seq; `thread_gone`, where the tenant has no such thread (any more); `not_named`, where the origin
    names no entry. `quoted` are the words at the span in the message as it is now, behind erased words too;
    `quote_holds` says whether they are those that were remembered (null: there is nothing to compare).
    """

    source: ShownSource
    status: OriginStatus
    entry: OpenedEntry | None
    quoted: str | None
    quote_holds: bool | None


def open_sources(connection: Connection, tenant_id: str, sources: Sequence[Evidence]) -> list[OpenedSource]:
    """Every source, opened; each thread is read once."""
    texts: dict[str, dict[str, str] | None] = {}
    return [_opened(connection, tenant_id, each, texts) for each in sources]


def _opened(
    connection: Connection, tenant_id: str, source: Evidence, texts: dict[str, dict[str, str] | None]
) -> OpenedSource:
    origin = source.origin
    if origin.thread_ref is None or origin.seq is None:
        return _closed(source, "not_named")
    try:
        thread = get_thread(connection, tenant_id, uuid_of("thread", origin.thread_ref))
    except (NotFound, BadId):
        return _closed(source, "thread_gone")
    found = read_lines(connection, thread.number, after_seq=origin.seq - 1, before_seq=origin.seq + 1, count_max=1)
    if not found:
        return _closed(source, "no_entry")
    (line,) = found
    quoted = None if line.payload is None else _quoted(connection, thread, line, source, texts)
    holds = _holds(source, quoted)
    is_gone = line.payload is None or (line.is_erased and (quoted is None or (ERASED in quoted and not holds)))
    return OpenedSource(
        source=source_to_wire(source),
        status="erased" if is_gone else "found",
        entry=_entry(thread, line),
        quoted=None if is_gone else quoted,
        quote_holds=None if is_gone else holds,
    )


def _closed(source: Evidence, status: OriginStatus) -> OpenedSource:
    return OpenedSource(source=source_to_wire(source), status=status, entry=None, quoted=None, quote_holds=None)


def _entry(thread: Thread, line: Line) -> OpenedEntry:
    return OpenedEntry(
        thread_id=thread.thread_id,
        seq=line.seq,
        run_id=line.run_id,
        kind=line.kind,
        at=from_us(line.at_us),
        digest=line.digest.hex(),
        payload=line.payload,
    )


def _quoted(
    connection: Connection,
    thread: Thread,
    line: Line,
    source: Evidence,
    texts: dict[str, dict[str, str] | None],
) -> str | None:
    """The words at the origin's span: of the message as the thread has it, else as the entry has it.

    None where some of them were erased. Spans behind erased words are where those words moved to.
    """
    origin = source.origin
    wanted = origin.message_ref
    if thread.thread_id not in texts:
        texts[thread.thread_id] = {each.id: each.text for each in fold_thread(connection, thread).state.messages}
    known = texts[thread.thread_id] or {}
    said = dict(_messages(line.payload))
    text = known.get(wanted) if wanted in known else said.get(wanted) if wanted is not None else _only(said)
    if text is None or text == ERASED:
        return None
    marks = _marks(line.payload, wanted)
    quoted = text[origin.char_from : origin.char_to]
    if not marks or origin.char_from is None or origin.char_to is None or _holds(source, quoted):
        return quoted
    now = span_now(marks, origin.char_from, origin.char_to)
    return None if now is None else text[slice(*now)]


def _holds(source: Evidence, quoted: str | None) -> bool | None:
    origin = source.origin
    if quoted is None or (origin.content_hash is None and origin.quote is None):
        return None
    if origin.quote is not None:
        return quoted == origin.quote
    return quote_hash(quoted) == origin.content_hash


def _marks(value: Any, wanted: str | None) -> list[Span]:
    """The spans that a message of the entry has lost; of the only one that lost any where none is named."""
    found = {str(each.get("id")): each[MARKS] for each in _objects(value) if MARKS in each}
    marks = found.get(wanted, ()) if wanted is not None else next(iter(found.values()), ())
    return [(start, end) for start, end in marks]


def _only(said: dict[str, str]) -> str | None:
    return next(iter(said.values())) if len(said) == 1 else None


def _messages(value: Any) -> Iterator[tuple[str, str]]:
    """Ids and words of whatever in an entry looks like a message."""
    for each in _objects(value):
        if isinstance(each.get("id"), str) and "content" in each:
            yield each["id"], _words(each["content"])


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, list):
        for each in value:
            yield from _objects(each)
    elif isinstance(value, dict):
        yield value
        for each in value.values():
            yield from _objects(each)


def _words(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part.get("text", "")) for part in parts if isinstance(part, dict) and "text" in part)
