"""What recall answers, what it withholds, and what it does when a part of it fails."""

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.memory_house import CHANGE, HOME, NOW, city, draft, house, moment, question, remembered, texts
from threadmark.memory import (
    TURN,
    EdgeIndex,
    EmbedderFailed,
    FilterRefused,
    HashedEmbedder,
    Include,
    IndexUnavailable,
    MemoryIndex,
    Recollection,
    Refused,
    Scope,
    ScopeRefused,
    parse_filter,
)
from threadmark.memory.index.index import Arms, Entry, Probe, Within

SCRIPTS = {
    "Chinese": ("我住在东京的一间小公寓里", "东京"),
    "Japanese": ("昨日、京都で抹茶を飲みました", "抹茶"),
    "Korean": ("저는 부산에서 커피를 마셨어요", "커피"),
    "Thai": ("ฉันชอบกินข้าวผัดที่เชียงใหม่", "ข้าวผัด"),
    "Arabic": ("أحب القهوة في الصباح", "القهوة"),
    "Hebrew": ("אני אוהב קפה בבוקר", "קפה"),
    "Russian": ("Вчера я купил новые книги", "книга"),
    "Greek": ("Μένω στη Θεσσαλονίκη", "θεσσαλονικη"),
    "Hindi": ("मुझे मसाला चाय पसंद है", "चाय"),
    "Turkish": ("İstanbul'da bir kedim var", "istanbul"),
    "French": ("J'habite près de l'hôpital", "hopital"),
    "English": ("I bought two kayaks", "buy kayak"),
}


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Recollection]:
    """The embedded set: SQLite and Qdrant's engine."""
    async with house(f"sqlite:///{tmp_path}/memory.db", EdgeIndex(tmp_path / "index")) as opened:
        yield opened


@pytest.mark.parametrize("script", SCRIPTS)
async def test_every_script_is_found(memory: Recollection, script: str) -> None:
    """A word of the text, folded as people type it, brings the text up first."""
    await remembered(memory, *(draft(text) for text, _ in SCRIPTS.values()))
    text, word = SCRIPTS[script]

    assert (await texts(memory, word))[0] == text


@pytest.mark.parametrize("blank", ["", "  ", "\u200b", "\n\t", "\u2060\ufeff"])
async def test_a_blank_question_is_refused(blank: str) -> None:
    """Nothing asked is never everything."""
    with pytest.raises(Refused, match="blank"):
        question(blank)
    with pytest.raises(Refused, match="blank"):
        draft(blank)


async def test_a_scope_ends_at_its_labels(memory: Recollection) -> None:
    """A tenant, a user, a joined label: only what lies below the exact labels is seen."""
    spaces = [
        ("acme", ("a",)),
        ("acme", ("a", "b")),
        ("acme", ("ab",)),
        ("acme", ("a", "b:c")),
        ("acme-corp", ("a",)),
        ("1", ()),
    ]
    for tenant, labels in spaces:
        scope = Scope(tenant_id=tenant, namespace=labels)
        await remembered(memory, draft(f"kayak of {tenant} {labels}", scope=scope), scope=scope)

    def seen(tenant: str, *labels: str) -> Any:
        return texts(memory, "kayak", scope=Scope(tenant_id=tenant, namespace=labels))

    assert len(await seen("acme", "a")) == 3
    assert await seen("acme", "a", "b") == ["kayak of acme ('a', 'b')"]
    assert len(await seen("acme")) == 4
    assert len(await seen("acme-corp")) == 1
    assert await seen("acme", "%") == await seen("acme", "_") == await seen("ac") == []
    for missing in (None, "a", 1, {"a": 1}):
        with pytest.raises(ScopeRefused):
            Scope(tenant_id="acme", namespace=missing)  # type: ignore[arg-type]
    with pytest.raises(ScopeRefused):
        Scope(tenant_id=1, namespace=())  # type: ignore[arg-type]


async def test_filters_narrow_and_never_widen(memory: Recollection) -> None:
    """Kind, subject, actor, thread, confidence and time; the empty and the unknown are refused."""
    await remembered(
        memory,
        draft("kayak one", kind="note", origin=moment(1, actor="Ada"), confidence=0.4),
        draft("kayak two", subject="User", attribute="boat", origin=moment(2, thread="thread-2", actor="Bob")),
        draft("kayak three", at=NOW - timedelta(days=40)),
    )

    async def found(given: dict[str, Any]) -> Sequence[str]:
        return sorted(await texts(memory, "kayak", filter=parse_filter(given)))

    assert await found({"kind": "note"}) == ["kayak one"]
    assert await found({"subject": ["User", "x"]}) == ["kayak two"]
    assert await found({"subject": ["user", "x"]}) == []
    assert await found({"actor": "ada"}) == ["kayak one"]
    assert await found({"thread_ref": "thread-2"}) == ["kayak two"]
    assert await found({"confidence_min": 0.5}) == ["kayak three", "kayak two"]
    assert await found({"observed_to": "2026-04-20T00:00:00+02:00"}) == ["kayak three"]
    injected: list[dict[str, Any]] = [{"a') OR 1=1 --": "x"}, {"": "x"}, {f"k{at}": 1 for at in range(1_000)}]
    injected += [{}, {"knd": "note"}, {"kind": []}, {"kind": None}, {"observed_to": "2026-01-01T00:00:00"}]
    for bad in injected:
        with pytest.raises(FilterRefused):
            parse_filter(bad)


async def test_the_past_is_asked_for_by_name(memory: Recollection) -> None:
    """Current by default; history is whenever true; all adds what was superseded, never what was retracted."""
    await remembered(memory, city("Oslo", at=NOW - timedelta(days=9)))
    await remembered(memory, city("Bergen", at=NOW - timedelta(days=2)))
    (wrong,) = await remembered(memory, draft("lives in a lighthouse"))
    await memory.retract(wrong.assertion_id, scope=HOME, reason="a joke", change=CHANGE)

    answers = await memory.recall(question("lives in"))
    assert [each.assertion.text for each in answers.answers] == ["lives in Bergen"]
    assert answers.withheld["retracted"] == 1  # type: ignore[index]
    assert sorted(await texts(memory, "lives in", include=Include.HISTORY)) == ["lives in Bergen", "lives in Oslo"]
    everything = await texts(memory, "lives in", include=Include.ALL)
    assert sorted(everything) == ["lives in Bergen", "lives in Oslo", "lives in Oslo"]


async def test_every_signal_is_in_the_answer(memory: Recollection) -> None:
    """The parts of a score add up to it, and name speaker, date and neighbours where they had a part."""
    await remembered(
        memory,
        draft("Shall we go?", kind=TURN, origin=moment(1, actor="Ada"), at=NOW),
        draft("I paddled a kayak.", kind=TURN, origin=moment(2, actor="Bob"), at=NOW),
        draft("Nice weather.", kind=TURN, origin=moment(3, actor="Ada"), at=NOW),
    )

    answers = await memory.recall(question("When did Bob paddle a kayak in May 2026?"))

    best = answers.answers[0]
    assert best.assertion.text == "I paddled a kayak."
    assert sum(best.because.values()) == pytest.approx(best.score)
    assert {"text", "context", "speaker", "date", "conversation"} <= best.because.keys()
    assert any("neighbours" in each.because for each in answers.answers[1:])


async def test_a_token_budget_is_kept(memory: Recollection) -> None:
    """What does not fit is withheld and counted; something shorter may still fit after it."""
    await remembered(memory, draft("kayak kayak kayak " + "word " * 400), draft("a kayak"))

    answers = await memory.recall(question("kayak", token_count_max=50))

    assert [each.assertion.text for each in answers.answers] == ["a kayak"]
    assert answers.withheld["over_budget"] == 1  # type: ignore[index]


async def test_what_is_withheld_is_made_up_for(memory: Recollection) -> None:
    """However many better matches are inadmissible, the list is filled from the rest."""
    gone = await remembered(memory, *(draft(f"kayak kayak {'kayak ' * at}") for at in range(200)))
    await remembered(memory, *(draft(f"one kayak among many other words, number {at}") for at in range(5)))
    for verdict in gone:
        await memory.retract(verdict.assertion_id, scope=HOME, reason="wrong", change=CHANGE)

    answers = await memory.recall(question("kayak", count_max=5))

    assert len(answers.answers) == 5
    assert all("among many" in each.assertion.text for each in answers.answers)


async def test_what_has_expired_is_gone(memory: Recollection) -> None:
    """From its instant on, for every caller."""
    await remembered(memory, draft("the code is 1234", expires_at=NOW + timedelta(hours=1)))

    assert await texts(memory, "code") == ["the code is 1234"]
    answers = await memory.recall(question("code", now=NOW + timedelta(hours=1)))
    assert (answers.answers, answers.withheld["expired"]) == ((), 1)  # type: ignore[index]


async def test_a_run_can_be_asked_what_it_knew(memory: Recollection) -> None:
    """The log of recalls keeps what was answered, even after it was retracted."""
    (verdict,) = await remembered(memory, draft("the kayak is red"))
    answers = await memory.recall(question("kayak?", run_ref="run-1"))
    await memory.retract(verdict.assertion_id, scope=HOME, reason="sold", change=CHANGE)

    (access,) = await memory.recalls("run-1", tenant_id="acme")

    assert access.recall_id == answers.recall_id
    assert [each for each, _ in access.answers] == [verdict.assertion_id]
    assert await memory.recalls("run-1", tenant_id="other") == []


class Broken(MemoryIndex):
    """An index that is down until it is mended."""

    is_down = False

    async def near(self, space: str, probe: Probe, place: Within, count_max: int) -> Arms:
        """Fail while down."""
        if self.is_down:
            raise IndexUnavailable("down")
        return await super().near(space, probe, place, count_max)

    async def put(self, space: str, entries: Sequence[Entry]) -> None:
        """Fail while down."""
        if self.is_down:
            raise IndexUnavailable("down")
        await super().put(space, entries)

    async def remove(self, space: str, numbers: Sequence[int]) -> None:
        """Apply and then fail while down: the worst kind of time-out."""
        await super().remove(space, numbers)
        if self.is_down:
            raise IndexUnavailable("timed out after it was applied")


async def test_recall_works_without_its_index(tmp_path: Path) -> None:
    """The database alone answers, and says that it did; afterwards the index catches up."""
    index = Broken()
    async with house(f"sqlite:///{tmp_path}/memory.db", index) as memory:
        await remembered(memory, draft("the kayak is red"))
        index.is_down = True
        await memory.remember([draft("the kayak leaks")], scope=HOME, now=NOW)

        answers = await memory.recall(question("kayak"))

        assert {each.assertion.text for each in answers.answers} == {"the kayak is red", "the kayak leaks"}
        assert not answers.index_answered
        index.is_down = False
        await memory.index_pending()
        assert (await memory.verify()).agrees


class Moody(HashedEmbedder):
    """An embedder that fails on some texts, each in its own way."""

    async def embed(self, texts: Sequence[str], *, is_question: bool = False) -> Any:
        """Raise, or give zeros, NaN, or the wrong length, by a word of the text."""
        if any("RAISES" in text for text in texts):
            raise EmbedderFailed("cannot embed that")
        vectors = [list(map(float, each)) for each in await super().embed(texts)]
        for at, text in enumerate(texts):
            if "ZEROS" in text:
                vectors[at] = [0.0] * self.dimension
            if "NAN" in text:
                vectors[at][3] = float("nan")
            if "SHORT" in text:
                vectors[at] = vectors[at][:5]
        return vectors


async def test_one_bad_text_stops_nothing(tmp_path: Path) -> None:
    """A text that cannot be embedded is kept, found by its words, and tried again; the others are indexed."""
    index = MemoryIndex()
    async with house(f"sqlite:///{tmp_path}/memory.db", index, Moody()) as memory:
        bad = [f"kayak {word}" for word in ("RAISES", "ZEROS", "NAN", "SHORT")]
        good = [f"kayak number {at}" for at in range(30)]
        await remembered(memory, *(draft(text) for text in good[:15] + bad + good[15:]))

        agreement = await memory.verify()

        assert (agreement.entry_count, len(agreement.missing), agreement.pending_count) == (30, 4, 4)
        assert set(await texts(memory, "kayak raises zeros nan short", count_max=4)) == set(bad)
