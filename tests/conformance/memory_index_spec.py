"""What every index does, whatever it is made of."""

import pytest

from threadmark.memory import FilterRefused, Index, IndexUnavailable, Scope
from threadmark.memory.index.index import KNOWN, Entry, Probe, Within, tag
from threadmark.memory.text.bm25 import CONTEXT_LENGTH, TEXT_LENGTH, dimension, weights
from threadmark.memory.text.terms import terms

SPACE = "spec-4-t1-g1"
DIMENSION = 4
MINE = Scope(tenant_id="acme", namespace=("users", "7"))
SIBLING = Scope(tenant_id="acme", namespace=("users", "77"))
AXES = {"x": [1.0, 0.0, 0.0, 0.0], "y": [0.0, 1.0, 0.0, 0.0], "z": [0.0, 0.0, 1.0, 0.0]}


def entry(number: int, text: str, axis: str = "x", scope: Scope = MINE, *, known: bool = True) -> Entry:
    """An entry of a scope."""
    tags = {tag("scope", each.key) for each in scope.ancestors()} | ({KNOWN} if known else set())
    return Entry(
        number=number,
        tags=frozenset(tags),
        digest=f"digest-{number}-{text}",
        text=weights(terms(text), TEXT_LENGTH),
        context=weights(terms(text), CONTEXT_LENGTH),
        dense=AXES[axis],
    )


def probe(text: str, axis: str | None = None) -> Probe:
    """A probe for words, and for a direction."""
    found = dict.fromkeys((dimension(each) for each in terms(text)), 1.0)
    return Probe(terms=found, dense=None if axis is None else AXES[axis])


def inside(scope: Scope, *, known: bool = False) -> Within:
    """Everything in a scope, or what is believed in it."""
    groups = [frozenset({tag("scope", scope.key)})] + ([frozenset({KNOWN})] if known else [])
    return Within(groups=tuple(groups))


class IndexSpec:
    """Run over every implementation; a fixture named `index` gives an empty one."""

    async def test_words_find_their_texts(self, index: Index) -> None:
        """Both lexical arms score what shares a term, and nothing else."""
        await index.put(SPACE, [entry(1, "a red kayak"), entry(2, "a green kayak"), entry(3, "the tax office")])

        arms = await index.near(SPACE, probe("kayak red"), inside(MINE), 10)

        assert list(arms["text"]) == [1, 2]
        assert arms["text"][1] > arms["text"][2] > 0
        assert arms["context"].keys() == {1, 2}

    async def test_a_direction_finds_its_neighbours(self, index: Index) -> None:
        """The dense arm is ordered by likeness and leaves nothing out."""
        await index.put(SPACE, [entry(1, "one", "x"), entry(2, "two", "y")])

        arms = await index.near(SPACE, probe("", "y"), inside(MINE), 10)

        assert list(arms["dense"]) == [2, 1]
        assert arms["dense"][2] == pytest.approx(1.0)

    async def test_a_scope_ends_at_its_labels(self, index: Index) -> None:
        """A sibling whose label begins alike is another scope; a parent covers both; a stranger sees neither."""
        await index.put(SPACE, [entry(1, "kayak"), entry(2, "kayak", scope=SIBLING)])

        found = {
            scope.key: set((await index.near(SPACE, probe("kayak", "x"), inside(scope), 10))["dense"])
            for scope in (
                MINE,
                SIBLING,
                Scope(tenant_id="acme", namespace=("users",)),
                Scope(tenant_id="ac", namespace=()),
            )
        }

        assert list(found.values()) == [{1}, {2}, {1, 2}, set()]

    async def test_every_group_must_match(self, index: Index) -> None:
        """What is not believed any more is left out when only beliefs are asked for."""
        await index.put(SPACE, [entry(1, "kayak"), entry(2, "kayak", known=False)])

        arms = await index.near(SPACE, probe("kayak", "x"), inside(MINE, known=True), 10)

        assert arms["text"].keys() == arms["dense"].keys() == {1}

    async def test_no_filter_is_no_question(self, index: Index) -> None:
        """An empty filter would be every tenant's entries: it cannot even be made."""
        for groups in ((), (frozenset[str](),)):
            with pytest.raises(FilterRefused):
                await index.near(SPACE, probe("kayak"), Within(groups=groups), 10)

    async def test_rarity_is_counted_in_the_scope(self, index: Index) -> None:
        """Another scope's words change no score of this one."""
        await index.put(SPACE, [entry(1, "red kayak"), entry(2, "green kayak"), entry(3, "blue house")])
        before = (await index.near(SPACE, probe("kayak house"), inside(MINE), 10))["text"]

        await index.put(SPACE, [entry(number, "kayak", scope=SIBLING) for number in range(10, 40)])

        assert (await index.near(SPACE, probe("kayak house"), inside(MINE), 10))["text"] == pytest.approx(before)

    async def test_chosen_entries_are_scored_by_every_arm(self, index: Index) -> None:
        """Scores of a choice are those of the whole."""
        await index.put(SPACE, [entry(1, "kayak", "x"), entry(2, "kayak", "y"), entry(3, "house", "x")])
        whole = await index.near(SPACE, probe("kayak", "x"), inside(MINE), 10)

        some = await index.score(SPACE, probe("kayak", "x"), inside(MINE), [2, 3, 99])

        assert some["dense"] == pytest.approx({each: whole["dense"][each] for each in (2, 3)})
        assert some["text"] == pytest.approx({2: whole["text"][2]})

    async def test_putting_again_replaces(self, index: Index) -> None:
        """A number has one entry."""
        await index.put(SPACE, [entry(1, "kayak")])
        await index.put(SPACE, [entry(1, "house")])

        assert await index.count(SPACE) == 1
        assert (await index.near(SPACE, probe("kayak"), inside(MINE), 10))["text"] == {}
        assert await index.digests(SPACE, 0, 10) == [(1, "digest-1-house")]

    async def test_removing_is_at_once_and_for_good(self, index: Index) -> None:
        """What was removed is not proposed; removing it again is no error."""
        await index.put(SPACE, [entry(1, "kayak"), entry(2, "kayak")])
        await index.remove(SPACE, [1])
        await index.remove(SPACE, [1, 5])

        assert await index.count(SPACE) == 1
        assert (await index.near(SPACE, probe("kayak", "x"), inside(MINE), 10))["dense"].keys() == {2}

    async def test_digests_come_in_pages(self, index: Index) -> None:
        """In the order of numbers, each once."""
        await index.put(SPACE, [entry(number, "kayak") for number in (5, 300, 2, 40, 7)])

        first = await index.digests(SPACE, 0, 3)
        second = await index.digests(SPACE, first[-1][0], 3)

        assert [number for number, _ in first + second] == [2, 5, 7, 40, 300]
        assert await index.digests(SPACE, 300, 3) == []

    async def test_an_entry_may_lack_a_vector(self, index: Index) -> None:
        """While its space waits for a successor, words alone find it."""
        lacking = entry(1, "kayak")
        lacking = Entry(number=1, tags=lacking.tags, digest="d", text=lacking.text, context=lacking.context, dense=None)
        await index.put(SPACE, [lacking, entry(2, "house")])

        arms = await index.near(SPACE, probe("kayak", "x"), inside(MINE), 10)

        assert (set(arms["text"]), set(arms["dense"])) == ({1}, {2})

    async def test_a_vector_of_another_length_is_refused(self, index: Index) -> None:
        """A changed embedder must not quietly lose what it writes."""
        odd = entry(1, "kayak")
        odd = Entry(number=1, tags=odd.tags, digest="d", text=odd.text, context=odd.context, dense=[1.0, 0.0])

        with pytest.raises(IndexUnavailable):
            await index.put(SPACE, [odd])

    async def test_spaces_are_apart(self, index: Index) -> None:
        """A space built beside another shares nothing with it, and goes alone."""
        other = "spec-4-t1-g2"
        await index.open(other, DIMENSION)
        await index.put(other, [entry(1, "kayak")])

        assert (await index.count(SPACE), await index.count(other)) == (0, 1)
        await index.drop(other)
        with pytest.raises(IndexUnavailable):
            await index.count(other)
        assert await index.count(SPACE) == 0
