"""100,000 scopes and filters that nobody meant: none opens another tenant's door, and none takes long."""

import random

import pytest

from tests.support.memory_house import NOW, question
from threadmark.memory import Draft, FilterRefused, Refused, Scope, ScopeRefused, parse_filter
from threadmark.memory.index.index import Entry, Probe, Within, tag, tags_of, within
from threadmark.memory.index.memory_index import MemoryIndex
from threadmark.memory.model.filters import FIELDS
from threadmark.memory.model.instants import FAR_US, to_us
from threadmark.memory.recall.post_filter import AdmissibilityFilter, Held

CASE_COUNT = 100_000
TENANTS = ("acme", "acme-corp", "ac", "1", "1.0", "%", "_", "acme\u200b", "ACME")
LABELS = ("a", "ab", "a.b", "a:b", "a/b", "%", "_", "a%", "..", "*", '","', '["a"]', "b", "\\", "a b", "東", "é")
ODD = (None, "", " ", "\0", "a\0", "\ud800", 1, True, b"a", ["a"], "x" * 257, "\u200b", {"a": 1}, 1.5)
SPACE = "fuzz-1-t1-g1"


def places() -> list[Scope]:
    """Where something is remembered: every tenant, and namespaces that look like each other."""
    chance = random.Random(1)
    made = [Scope(tenant_id=tenant, namespace=()) for tenant in TENANTS]
    for tenant in TENANTS:
        made += [
            Scope(tenant_id=tenant, namespace=tuple(chance.choices(LABELS, k=chance.randrange(1, 4))))
            for _ in range(12)
        ]
    return made


def held(number: int, scope: Scope) -> Held:
    """A row that is believed and true now, in its place."""
    now = to_us(NOW)
    return Held(
        f"id-{number}", number, scope.tenant_id, number, "fact", None, None, "user", 1.0, None, None, None, None, None,
        False, "", None, now - 1, FAR_US, now - 1, FAR_US, now - 1, FAR_US,
    )  # fmt: skip


async def test_no_scope_sees_another() -> None:
    """What the index proposes and what the database lets through is exactly what lies at or below the labels."""
    chance = random.Random(2)
    where = places()
    rows = [held(number, scope) for number, scope in enumerate(where)]
    index = MemoryIndex()
    await index.open(SPACE, 1)
    entries = []
    for number, scope in enumerate(where):
        tags = tags_of(scope, is_known=True, hold="", labels={"kind": "fact"})
        entries.append(Entry(number=number, tags=tags, digest="", text={}, context={}, dense=[1.0]))
    await index.put(SPACE, entries)
    space = index._spaces[SPACE]

    for _ in range(CASE_COUNT):
        base = chance.choice(where)
        labels = [*base.namespace[: chance.randrange(4)], *chance.choices(LABELS, k=chance.randrange(2))]
        scope = Scope(tenant_id=chance.choice(TENANTS), namespace=tuple(labels))
        asked = question("x", scope=scope)
        expected = {
            number
            for number, place in enumerate(where)
            if place.tenant_id == scope.tenant_id and list(place.namespace[: len(labels)]) == labels
        }

        assert space.inside(within(asked).groups) == expected
        number = chance.randrange(len(where))
        let_through = AdmissibilityFilter.of(asked).check(rows[number], where[number].namespace) is None
        assert let_through == (number in expected)


def test_no_filter_widens() -> None:
    """A filter is understood whole or refused whole; what is understood never names a group without tags."""
    chance = random.Random(3)
    values: tuple[object, ...] = (
        *ODD,
        *LABELS,
        [],
        ["a", "b"],
        ["a", None],
        [[]],
        "user",
        "2026-01-01T00:00:00Z",
        "2026-01-01",
        float("nan"),
    )
    keys = (*sorted(FIELDS), "knd", "", "a') OR 1=1 --", "a.b", "$.x", "tenant_id", "namespace", "a\0")
    scope = Scope(tenant_id="acme", namespace=())
    understood = 0
    for _ in range(CASE_COUNT):
        given = {chance.choice(keys): chance.choice(values) for _ in range(chance.randrange(4))}
        try:
            found = parse_filter(given)
        except FilterRefused:
            continue
        understood += 1
        assert given.keys() <= FIELDS
        groups = within(question("x", scope=scope, filter=found)).groups
        assert groups[0] == {tag("scope", scope.key)}
        assert all(groups)
    assert understood > 1_000


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_odd_labels_are_refused(odd: object) -> None:
    """As a tenant, as a label, as a whole namespace, and as a subject."""
    with pytest.raises(ScopeRefused):
        Scope(tenant_id=odd, namespace=())  # type: ignore[arg-type]
    with pytest.raises(ScopeRefused):
        Scope(tenant_id="acme", namespace=("a", odd))  # type: ignore[arg-type]
    if odd != ["a"]:
        with pytest.raises(ScopeRefused):
            Scope(tenant_id="acme", namespace=odd)  # type: ignore[arg-type]
    if odd is not None:
        with pytest.raises(Refused):
            Draft(namespace=(), text="x", observed_at=NOW, subject=odd, attribute="a")  # type: ignore[arg-type]


def test_a_probe_needs_a_place() -> None:
    """There is no question to an index without a scope."""
    assert Probe(terms={}).dense is None
    for groups in ((), (frozenset[str](),), (frozenset({"a"}), frozenset[str]())):
        with pytest.raises(FilterRefused):
            Within(groups=groups)
