"""What clients ask of memory: items to remember, questions, and what to erase."""

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar

from msgspec import Meta, Struct, to_builtins

from threadmark import memory
from threadmark.app.http.body_errors import BodyRefused
from threadmark.memory import (
    Cardinality,
    Draft,
    Filter,
    Forget,
    Include,
    Origin,
    Question,
    Scope,
    Selector,
    Trust,
    parse_filter,
)

__all__ = [
    "Erase",
    "MemoryItem",
    "MemoryItems",
    "QuarantineSource",
    "RecallQuestion",
    "Retraction",
    "Source",
    "SourceSelector",
    "draft_of",
    "forget_of",
    "question_of",
    "selector_of",
]

ITEM_COUNT_MAX = 1_000
RECALL_COUNT_MAX = 200
Instant = Annotated[datetime, Meta(tz=True)]
T = TypeVar("T")


class Source(Struct, forbid_unknown_fields=True):
    """The moment an item comes from. `thread_ref` and `seq` are those of a thread of this server, or your own names."""

    thread_ref: str | None = None
    run_ref: str | None = None
    seq: int | None = None
    message_ref: str | None = None
    actor: str | None = None
    at: Instant | None = None
    char_from: int | None = None
    char_to: int | None = None
    content_hash: str | None = None
    quote: str | None = None


class MemoryItem(Struct, forbid_unknown_fields=True):
    """A statement to remember. `observed_at`: when it was said, by default the source's `at`, else now.

    With subject and attribute it takes the place of what was held, unless `cardinality` is `many` or `event`.
    """

    namespace: list[str]
    text: str
    subject: str | None = None
    attribute: str | None = None
    value: Any = None
    cardinality: Literal["one", "many", "event"] | None = None
    kind: str = "fact"
    observed_at: Instant | None = None
    valid_from: Instant | None = None
    valid_to: Instant | None = None
    expires_at: Instant | None = None
    confidence: float = 1.0
    trust: Literal["operator", "user", "agent", "tool", "web"] = "user"
    source: Source | None = None


class MemoryItems(Struct, forbid_unknown_fields=True):
    """Items: all of them are kept, or none."""

    items: Annotated[list[MemoryItem], Meta(min_length=1, max_length=ITEM_COUNT_MAX)]


class RecallQuestion(Struct, forbid_unknown_fields=True):
    """A question, asked below a namespace (`[]`: the whole tenant).

    `valid_at`: true when, by default now; `known_at`: as known when. `include`: `current`, `history` (true at any time)
    or `all` (also superseded). `filter` names fields and their values; an empty one is refused.
    """

    query: str
    namespace: list[str]
    limit: Annotated[int, Meta(ge=1, le=RECALL_COUNT_MAX)] = 10
    token_count_max: Annotated[int, Meta(ge=1)] | None = None
    valid_at: Instant | None = None
    known_at: Instant | None = None
    include: Literal["current", "history", "all"] = "current"
    filter: dict[str, Any] | None = None
    kinds: Annotated[list[str], Meta(min_length=1)] | None = None
    explain: bool = False
    thread_ref: str | None = None
    run_ref: str | None = None


class Retraction(Struct, forbid_unknown_fields=True):
    """Why a memory is given up."""

    reason: Annotated[str, Meta(min_length=1, max_length=1_000)]


class SourceSelector(Struct, forbid_unknown_fields=True):
    """Names sources: every part that is given must be equal, and one must be given."""

    thread_ref: str | None = None
    run_ref: str | None = None
    seq: int | None = None
    message_ref: str | None = None
    actor: str | None = None


class QuarantineSource(Struct, forbid_unknown_fields=True):
    """Which source to keep apart, and why."""

    source: SourceSelector
    reason: Annotated[str, Meta(min_length=1, max_length=1_000)]


class Erase(Struct, forbid_unknown_fields=True):
    """What to erase: exactly one of `namespace`, `subject`, `thread` (its id), `source` and `tenant`.

    `dry_run` counts and erases nothing.
    """

    namespace: Annotated[list[str], Meta(min_length=1)] | None = None
    subject: str | None = None
    thread: str | None = None
    source: SourceSelector | None = None
    tenant: bool = False
    dry_run: bool = False


def draft_of(item: MemoryItem, at: int, *, now: datetime, asserted_by: str) -> Draft:
    """The draft of the item that is `at` a place in the request. Raises BodyRefused."""
    source = item.source or Source()

    def made() -> Draft:
        return Draft(
            namespace=tuple(item.namespace),
            text=item.text,
            subject=item.subject,
            attribute=item.attribute,
            value=item.value,
            cardinality=None if item.cardinality is None else Cardinality(item.cardinality),
            kind=item.kind,
            observed_at=item.observed_at or source.at or now,
            valid_from=item.valid_from,
            valid_to=item.valid_to,
            expires_at=item.expires_at,
            confidence=item.confidence,
            trust=Trust(item.trust),
            origin=_origin_of(source),
            asserted_by=asserted_by,
        )

    return _placed(f"$.items[{at}]", made)


def question_of(body: RecallQuestion, tenant_id: str, now: datetime) -> Question:
    """The question. Raises BodyRefused."""
    return _placed(
        "$",
        lambda: Question(
            text=body.query,
            scope=Scope(tenant_id=tenant_id, namespace=tuple(body.namespace)),
            asked_at=now,
            valid_at=body.valid_at,
            known_at=body.known_at,
            include=Include(body.include),
            filter=_filter_of(body),
            count_max=body.limit,
            token_count_max=body.token_count_max,
            thread_ref=body.thread_ref,
            run_ref=body.run_ref,
        ),
    )


def selector_of(source: SourceSelector) -> Selector:
    """The selector. Raises BodyRefused for one that names nothing (every source), or that no origin can be."""
    selector = Selector(
        thread_ref=source.thread_ref,
        run_ref=source.run_ref,
        seq=source.seq,
        message_ref=source.message_ref,
        actor=source.actor,
    )
    if not selector.parts():
        raise BodyRefused("$.source", "names nothing")
    _placed("$", lambda: _origin_of(Source(**to_builtins(source))))
    return selector


def forget_of(body: Erase) -> Forget:
    """What to erase. Raises BodyRefused when it is nothing or two things."""
    named = (body.namespace, body.subject, body.thread, body.source)
    if sum(each is not None for each in named) + body.tenant != 1:
        raise BodyRefused("$", "names none or several of namespace, subject, thread, source and tenant")
    source = None if body.source is None else selector_of(body.source)
    if body.thread is not None:
        source = _thread_selector(body.thread)
    return _placed(
        "$",
        lambda: Forget(
            namespace=None if body.namespace is None else tuple(body.namespace),
            subject=body.subject,
            source=source,
            tenant=body.tenant,
        ),
    )


def _thread_selector(thread_id: str) -> Selector:
    """The selector of a whole thread. Raises BodyRefused for what no thread can be named."""
    try:
        Origin(thread_ref=thread_id)
    except memory.Refused as error:
        raise BodyRefused("$.thread", error.why) from error
    return Selector(thread_ref=thread_id)


def _filter_of(body: RecallQuestion) -> Filter:
    given = body.filter
    if body.kinds is not None:
        if given is not None and "kind" in given:
            raise BodyRefused("$.kinds", "does not go with filter.kind; give one of the two")
        given = {**(given or {}), "kind": body.kinds}
        if body.filter == {}:
            given = {}
    return parse_filter(given)


def _origin_of(source: Source) -> Origin:
    return Origin(
        thread_ref=source.thread_ref,
        run_ref=source.run_ref,
        seq=source.seq,
        message_ref=source.message_ref,
        actor=source.actor,
        at=source.at,
        content_hash=source.content_hash,
        char_from=source.char_from,
        char_to=source.char_to,
        quote=source.quote,
    )


def _placed(path: str, make: Callable[[], T]) -> T:
    """What `make` makes; a refusal of memory gets the place in the body that it speaks of."""
    try:
        return make()
    except memory.Refused as error:
        raise BodyRefused(f"{path}.{error.path}", error.why) from error
