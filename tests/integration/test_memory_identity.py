"""Names are compared by code points after NFC on every way in and every look-up, and returned as they were sent."""

import unicodedata
from asyncio import Runner
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.memory_house import HOME, NOW, draft, house, moment, question, remembered
from threadmark.memory import (
    TURN,
    Cardinality,
    Disposition,
    Draft,
    Forget,
    Items,
    MemoryIndex,
    Recollection,
    Scope,
    Selector,
    parse_filter,
)

TENANT = Scope(tenant_id="acme", namespace=())
COMPOSED, DECOMPOSED = "Caf\u00e9", "Cafe\u0301"
ALIKE = [("Pena", "Pe\u00f1a"), ("x2", "x\u00b2"), ("berlin", "Berlin"), ("Muller", "M\u00fcller"), ("fin", "\ufb01n")]
#: Signs of which one is another's composed, decomposed, reordered, compatible or folded form.
SIGNS = [
    "u",
    "\u00fc",
    "u\u0308",
    "U",
    "2",
    "\u00b2",
    "fi",
    "\ufb01",
    "s\u0323\u0307",
    "s\u0307\u0323",
    "\u1e69",
    "\u00c5",
    "\u212b",
]
NAMES = st.lists(st.sampled_from(SIGNS), min_size=1, max_size=3).map("".join)
FORMS: list[Callable[[str], str]] = [
    str,
    str.casefold,
    partial(unicodedata.normalize, "NFC"),
    partial(unicodedata.normalize, "NFD"),
    partial(unicodedata.normalize, "NFKC"),
]


@pytest.fixture(params=["sqlite", "postgresql"])
async def memory(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Recollection]:
    """The same rules on both databases."""
    url = f"sqlite:///{tmp_path}/memory.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    async with house(url, MemoryIndex()) as opened:
        yield opened


def lives(name: str, place: str, *, scope: Scope = HOME, attribute: str = "city") -> Draft:
    """That somebody lives somewhere: a single-valued attribute."""
    return draft(f"{name} lives in {place}", scope=scope, subject=name, attribute=attribute, value=place)


async def current(memory: Recollection, subject: str, attribute: str = "city") -> list[object]:
    """The values that are held now of an attribute."""
    return [each.value for each in await memory.held_at(subject, attribute, scope=TENANT, valid_at=NOW)]


@pytest.mark.parametrize(("one", "other"), ALIKE)
async def test_subjects_that_look_alike_have_their_own_histories(memory: Recollection, one: str, other: str) -> None:
    """Neither supersedes the other, and each is found under its own name alone."""
    verdicts = await remembered(memory, lives(one, "Oslo"), lives(other, "Bergen"))

    assert [each.disposition for each in verdicts] == [Disposition.ADDED, Disposition.ADDED]
    assert (await current(memory, one), await current(memory, other)) == (["Oslo"], ["Bergen"])
    listed = await memory.list(scope=HOME, given=parse_filter({"subject": other}))
    answers = await memory.recall(question("lives in", filter=parse_filter({"subject": other})))
    assert [each.subject for _, each in listed] == [other]
    assert [each.assertion.subject for each in answers.answers] == [other]


@pytest.mark.parametrize(("one", "other"), ALIKE)
async def test_attributes_that_look_alike_are_declared_each_by_itself(
    memory: Recollection, one: str, other: str
) -> None:
    """One may have many values where the other has one."""
    first, second, third = await remembered(
        memory,
        draft("a", subject="s", attribute=one, value=1, cardinality=Cardinality.MANY),
        draft("b", subject="s", attribute=other, value=1, cardinality=Cardinality.ONE),
        draft("c", subject="s", attribute=other, value=2),
    )

    assert [first.disposition, second.disposition, third.disposition] == ["added", "added", "superseded"]
    assert third.superseded == (second.assertion_id,)
    assert (await current(memory, "s", one), await current(memory, "s", other)) == ([1], [2])


@pytest.mark.parametrize(("one", "other"), ALIKE)
async def test_what_is_said_of_one_is_no_repetition_of_the_other(memory: Recollection, one: str, other: str) -> None:
    """One of many values, and a text whose signs differ: both are kept."""

    def red(name: str) -> Draft:
        return draft("red", subject=name, attribute="colour", value="red", cardinality=Cardinality.MANY)

    verdicts = await remembered(memory, red(one), red(other))
    texts = await remembered(
        memory, draft(f"the area is {one}{one}"), draft("the area is x\u00b2"), draft("the area is x2")
    )

    assert {each.disposition for each in [*verdicts, *texts]} == {Disposition.ADDED}


async def test_erasing_a_name_leaves_its_likeness_in_another_namespace(memory: Recollection) -> None:
    """With all that is kept of it: the likeness can be superseded and looked up as before."""
    elsewhere = Scope(tenant_id="acme", namespace=("users", "8"))
    await remembered(memory, lives("Muller", "Graz"))
    (kept,) = await remembered(memory, lives("M\u00fcller", "Linz", scope=elsewhere), scope=elsewhere)

    erasure = await memory.erase(Forget(subject="Muller"), tenant_id="acme", now=NOW)

    assert (erasure.counts["assertions"], erasure.counts["attribute_locks"]) == (1, 1)
    assert [each.assertion_id for _, each in await memory.list(scope=TENANT)] == [kept.assertion_id]


async def test_one_name_in_two_encodings_is_one_and_is_returned_as_it_was_sent(memory: Recollection) -> None:
    """Subject, attribute and namespace: what is sent in one encoding supersedes and is found in the other."""
    places = [Scope(tenant_id="acme", namespace=(each,)) for each in (COMPOSED, DECOMPOSED)]
    said = [
        lives(name, place, scope=scope, attribute=name)
        for name, place, scope in zip((COMPOSED, DECOMPOSED), ("Oslo", "Bergen"), places, strict=True)
    ]
    (first,) = await remembered(memory, said[0], scope=places[0])
    (second,) = await remembered(memory, said[1], scope=places[1])

    assert second.superseded == (first.assertion_id,)
    for scope, name in zip(places, (COMPOSED, DECOMPOSED), strict=True):
        (held,) = await memory.held_at(name, name, scope=scope, valid_at=NOW)
        timeline = await memory.history(second.assertion_id, scope=scope)
        answers = await memory.recall(question("who lives in Bergen", scope=scope))
        ways = [held, answers.answers[0].assertion, (await memory.list(scope=scope))[0][1]]
        assert {(each.subject, each.attribute, each.namespace) for each in ways} == {
            (DECOMPOSED, DECOMPOSED, (DECOMPOSED,))
        }
        assert [(each.subject, each.namespace) for each in timeline] == [
            (COMPOSED, (COMPOSED,)),
            (DECOMPOSED, (DECOMPOSED,)),
        ]


async def test_a_namespace_is_erased_and_exported_in_either_encoding(memory: Recollection, tmp_path: Path) -> None:
    """With the recalls that were asked below it; elsewhere it is found by both, and exported again as it came."""
    composed, decomposed = (Scope(tenant_id="acme", namespace=(each,)) for each in (COMPOSED, DECOMPOSED))
    await remembered(memory, draft("opens at nine", scope=decomposed), scope=decomposed)
    await memory.recall(question("when", scope=composed, run_ref="run-1"))

    lines = await memory.export(scope=composed)
    erasure = await memory.erase(Forget(namespace=(COMPOSED,)), tenant_id="acme", now=NOW)

    async with house(f"sqlite:///{tmp_path}/elsewhere.db", MemoryIndex()) as elsewhere:
        await elsewhere.import_(lines, scope=composed)
        ((_, held),) = await elsewhere.list(scope=composed)
        assert held.namespace == (DECOMPOSED,)
        assert [*await elsewhere.export(scope=decomposed)] == [*lines]
    assert [erasure.counts[name] for name in ("assertions", "namespaces", "recalls")] == [1, 1, 1]
    assert await memory.list(scope=TENANT) == []


async def test_a_document_is_found_in_either_encoding_and_under_no_likeness(memory: Recollection) -> None:
    """Namespace and key; put again it is replaced, and shows the spelling of the last put."""
    items = Items(memory)
    await items.put((COMPOSED,), COMPOSED, {"at": 1}, tenant_id="acme", now=NOW)
    await items.put((DECOMPOSED,), DECOMPOSED, {"at": 2}, tenant_id="acme", now=NOW)
    for likeness in ("cafe", "caf\u00e9", "Cafe"):
        await items.put((likeness,), likeness, {"at": likeness}, tenant_id="acme", now=NOW)

    for spelling in (COMPOSED, DECOMPOSED):
        found = await items.get((spelling,), spelling, tenant_id="acme", now=NOW)
        assert found is not None
        assert (found.namespace, found.key, found.value) == ((DECOMPOSED,), DECOMPOSED, {"at": 2})
        assert await items.namespaces(tenant_id="acme", now=NOW, suffix=(spelling,)) == [(DECOMPOSED,)]
    assert len(await items.namespaces(tenant_id="acme", now=NOW)) == 4


async def test_a_source_is_quarantined_and_erased_by_exactly_its_name(memory: Recollection) -> None:
    """In either encoding, also what it says afterwards; a likeness is let be."""
    await remembered(
        memory, draft("tea", origin=moment(1, actor=DECOMPOSED)), draft("rum", origin=moment(2, actor="Cafe"))
    )

    _, held_count = await memory.quarantine(Selector(actor=COMPOSED), tenant_id="acme", reason="test", now=NOW)
    (later,) = await remembered(memory, draft("gin", origin=moment(3, actor=DECOMPOSED)))
    erasure = await memory.erase(Forget(subject=COMPOSED), tenant_id="acme", now=NOW)

    assert (held_count, later.disposition, erasure.counts["assertions"]) == (1, Disposition.QUARANTINED, 2)
    assert [each.text for _, each in await memory.list(scope=TENANT)] == ["rum"]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Runner, Recollection]]:
    """One memory for many examples: each has a tenant of its own."""
    with Runner() as runner:
        context = house(f"sqlite:///{tmp_path_factory.mktemp('identity')}/memory.db")
        memory = runner.run(context.__aenter__())
        yield runner, memory
        runner.run(context.__aexit__(None, None, None))


async def ways(memory: Recollection, said: str, asked: str) -> dict[str, bool]:
    """Whether what was sent under one name is found under another, by each way in and each look-up."""
    tenant_id = str(uuid4())
    whole = Scope(tenant_id=tenant_id, namespace=())
    home, place, looked = (
        Scope(tenant_id=tenant_id, namespace=labels) for labels in (("h",), ("n", said), ("n", asked))
    )

    async def say(each: Draft) -> Disposition:
        (verdict,) = await memory.remember([each], scope=whole, now=NOW)
        return verdict.disposition

    await say(lives(said, "Oslo", scope=home))
    await say(lives("s", "Oslo", scope=home, attribute=said))
    await say(draft("here", scope=place))
    items = Items(memory)
    await items.put(("i", said), "k", {}, tenant_id=tenant_id, now=NOW)
    await items.put(("j",), said, {}, tenant_id=tenant_id, now=NOW)
    about = await memory.list(scope=home, given=parse_filter({"subject": asked}))
    of = await memory.recall(question("Oslo", scope=home, filter=parse_filter({"attribute": asked})))
    dry = await memory.erase(Forget(subject=asked), tenant_id=tenant_id, now=NOW, dry_run=True)
    found = {
        "timeline by subject": bool(await memory.timeline(asked, "city", scope=home)),
        "timeline by attribute": bool(await memory.timeline("s", asked, scope=home)),
        "filter of a list": bool(about),
        "filter of a recall": bool(of.answers),
        "namespace": bool(await memory.list(scope=looked)),
        "namespace of a document": await items.get(("i", asked), "k", tenant_id=tenant_id, now=NOW) is not None,
        "key of a document": await items.get(("j",), asked, tenant_id=tenant_id, now=NOW) is not None,
        "prefix of documents": bool(await items.search(("i", asked), tenant_id=tenant_id, now=NOW)),
        "erasure": dry.counts["assertions"] == 1,
    }
    found["subject"] = await say(lives(asked, "Bergen", scope=home)) is Disposition.SUPERSEDED
    found["attribute"] = await say(lives("s", "Bergen", scope=home, attribute=asked)) is Disposition.SUPERSEDED
    found["label"] = await say(draft("here", scope=looked)) is Disposition.DUPLICATE
    await say(draft(f"{said}: yes", scope=Scope(tenant_id=tenant_id, namespace=("t",)), kind=TURN))
    await say(draft("no", scope=home, origin=moment(1, actor=said)))
    spoken = await memory.erase(Forget(subject=asked), tenant_id=tenant_id, now=NOW)
    found["speaker"] = spoken.counts["assertions"] >= 4
    return found


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(said=NAMES, form=st.sampled_from(FORMS), other=NAMES, takes_other=st.booleans())
def test_every_way_in_takes_names_for_one_exactly_where_nfc_does(
    opened: tuple[Runner, Recollection], said: str, form: Callable[[str], str], other: str, takes_other: bool
) -> None:
    """Composed, decomposed and reordered signs are one name; capitals, accents and compatibility forms are not."""
    runner, memory = opened
    asked = other if takes_other else form(said)
    equal = unicodedata.normalize("NFC", said) == unicodedata.normalize("NFC", asked)

    found = runner.run(ways(memory, said, asked))

    assert found == dict.fromkeys(found, equal)
