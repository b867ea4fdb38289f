"""Items: keyed JSON documents over the same rows, for callers who want a store and not statements.

An item is an assertion of kind `item` about one subject, its key. Putting it again supersedes it; its history stays.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from threadmark.memory.errors import Refused
from threadmark.memory.items.item_filter import matches
from threadmark.memory.model.assertion import ITEM, Assertion, Cardinality, Draft
from threadmark.memory.model.filters import Filter
from threadmark.memory.model.provenance import Change
from threadmark.memory.model.question import Question
from threadmark.memory.model.scope import Namespace, Scope
from threadmark.memory.model.values import canonical, check_json, check_label
from threadmark.memory.recollection import Recollection
from threadmark.memory.text.identity import identity_labels

__all__ = ["Item", "Items"]

ATTRIBUTE = "item"
SEARCH_COUNT_MAX = 1_000
_ONLY_ITEMS = Filter(kind=frozenset({ITEM}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A document. `created_at` is that of its first version; `score` is set by a search with a query."""

    namespace: Namespace
    key: str
    value: Mapping[str, Any]
    created_at: datetime
    updated_at: datetime
    score: float | None = None


class Items:
    """Put, get, delete, search and list, within a tenant."""

    def __init__(self, memory: Recollection) -> None:
        self._memory = memory

    async def put(
        self,
        namespace: Namespace,
        key: str,
        value: Mapping[str, Any],
        *,
        tenant_id: str,
        now: datetime,
        ttl: timedelta | None = None,
    ) -> None:
        """Keep a document under its key, in place of the one before. Raises Refused for what JSON cannot give back."""
        scope = Scope(tenant_id=tenant_id, namespace=namespace)
        document = check_json(dict(value), "value")
        before = await self._held(scope, key, now)
        draft = Draft(
            namespace=scope.namespace,
            text=canonical(document),
            observed_at=now,
            subject=key,
            attribute=ATTRIBUTE,
            value=document,
            cardinality=Cardinality.ONE,
            kind=ITEM,
            # The same validity as before: a put corrects the document, it does not say that the old one was true once.
            valid_from=now if before is None else before.valid_from,
            expires_at=None if ttl is None else now + ttl,
        )
        await self._memory.remember([draft], scope=scope, now=now)

    async def get(self, namespace: Namespace, key: str, *, tenant_id: str, now: datetime) -> Item | None:
        """The document under a key; None when there is none, or it has expired."""
        held = await self._held(Scope(tenant_id=tenant_id, namespace=namespace), key, now)
        return None if held is None else _item(held)

    async def delete(self, namespace: Namespace, key: str, *, tenant_id: str, change: Change) -> bool:
        """Give a document up; whether there was one."""
        scope = Scope(tenant_id=tenant_id, namespace=namespace)
        held = await self._held(scope, key, change.now)
        if held is None:
            return False
        await self._memory.retract(held.assertion_id, scope=scope, reason="deleted", change=change)
        return True

    async def search(
        self,
        prefix: Namespace,
        *,
        tenant_id: str,
        now: datetime,
        given: Mapping[str, Any] | None = None,
        query: str | None = None,
        count_max: int = 10,
        offset: int = 0,
    ) -> list[Item]:
        """The documents below a prefix that match, newest update first; with a query, best first and scored.

        Raises Refused for a filter that is not one.
        """
        if count_max < 1 or offset < 0:
            raise Refused("limit", "and offset do not name a page")
        scope = Scope(tenant_id=tenant_id, namespace=prefix)
        found = await (self._all(scope, now) if query is None else self._near(scope, query, now))
        passing = [each for each in found if given is None or matches(each.value, given)]
        return passing[offset : offset + count_max]

    async def namespaces(
        self,
        *,
        tenant_id: str,
        now: datetime,
        prefix: Namespace = (),
        suffix: Namespace = (),
        depth_max: int | None = None,
        count_max: int = 100,
        offset: int = 0,
    ) -> list[Namespace]:
        """The namespaces that hold documents, cut to `depth_max` labels, in order."""
        found = await self._all(Scope(tenant_id=tenant_id, namespace=prefix), now)
        # As the newest document spells it, where several spell one namespace.
        cut: dict[Namespace, Namespace] = {}
        for each in found:
            if _ends_with(each.namespace, suffix):
                labels = each.namespace if depth_max is None else each.namespace[:depth_max]
                cut.setdefault(identity_labels(labels), labels)
        return [cut[each] for each in sorted(cut)][offset : offset + count_max]

    async def _held(self, scope: Scope, key: str, now: datetime) -> Assertion | None:
        check_label(key, "key")
        versions = await self._memory.item_versions(key, scope=scope)
        return next((each for each in versions if each.is_held and not _has_expired(each, now)), None)

    async def _all(self, scope: Scope, now: datetime) -> list[Item]:
        found: list[Assertion] = []
        after = 0
        while True:
            page = await self._memory.list(scope=scope, given=_ONLY_ITEMS, after=after, count_max=SEARCH_COUNT_MAX)
            if not page:
                break
            after = page[-1][0]
            found.extend(each for _, each in page if not _has_expired(each, now))
        items = [_item(each) for each in found]
        return sorted(items, key=lambda each: (-each.updated_at.timestamp(), each.namespace, each.key))

    async def _near(self, scope: Scope, query: str, now: datetime) -> Sequence[Item]:
        question = Question(text=query, scope=scope, asked_at=now, filter=_ONLY_ITEMS, count_max=200)
        answers = await self._memory.recall(question)
        return [_item(each.assertion, each.score) for each in answers.answers]


def _ends_with(labels: Namespace, suffix: Namespace) -> bool:
    return identity_labels(labels[max(0, len(labels) - len(suffix)) :]) == identity_labels(suffix)


def _has_expired(held: Assertion, now: datetime) -> bool:
    return held.expires_at is not None and held.expires_at <= now


def _item(held: Assertion, score: float | None = None) -> Item:
    return Item(
        namespace=held.namespace,
        key=held.subject or "",
        value=held.value,
        created_at=held.valid_from,
        updated_at=held.known_from,
        score=score,
    )
