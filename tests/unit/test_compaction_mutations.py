"""What a summary makes up: values that no source has, and rules turned into their opposite (G14)."""

import random

import pytest

from tests.support.compaction_mutations import CARRIERS, FLIPS, VALUES
from tests.support.compaction_threads import PLANTED, human, talk
from threadmark.compaction.input.analysis import Analyses
from threadmark.compaction.input.source import SourceEntry
from threadmark.compaction.ledger import GENESIS, Account, Row, Shown, Status, UnitKind, close, judge
from threadmark.compaction.summary import passage_of

ONCE, OFTEN = 1, 50
FLIPS_FOUND_MIN, FALSE_MAX = 0.95, 0.01


def account_of(entries: list[SourceEntry], lines: list[str]) -> list[Row]:
    """The rows of a ledger over the entries with a summary of these lines."""
    account = Account(
        compaction_id="c",
        covered=entries,
        others=[],
        passages=[passage_of("s", "Facts:\n" + "\n".join(f"- {line}" for line in lines))],
        new_segments={"s"},
        shown={entry.position: Shown.FULL for entry in entries},
    )
    analyses = Analyses()
    return list(close(account, judge(account, analyses), b"x" * 32, GENESIS).rows)


@pytest.mark.parametrize("language", sorted(CARRIERS))
@pytest.mark.parametrize("cls", sorted(VALUES))
@pytest.mark.parametrize("rounds", [ONCE, pytest.param(OFTEN, marks=pytest.mark.soak)])
def test_every_planted_value_is_found(rounds: int, cls: str, language: str) -> None:
    """A value in a sentence of its own, and another value in a sentence that was said: both are introduced."""
    for seed in range(rounds):
        chance = random.Random(f"{seed} {cls} {language}")
        true, other, invented = (VALUES[cls](chance) for _ in range(3))
        said = CARRIERS[language].format(true)
        entries = [*talk(3, seed), human(90, said), *talk(2, seed + 1, start=100)]
        lines = [CARRIERS[language].format(other), f"The visitors talked about {invented} as well."]
        rows = account_of(entries, lines)
        introduced = {row.text for row in rows if row.status is Status.INTRODUCED}
        assert {other, invented} <= introduced
        assert {row.status for row in rows if row.text == true} <= {Status.ALTERED, Status.DROPPED}


def test_rules_that_are_turned_round_are_found() -> None:
    """The rule's own row says that the summary has the opposite: at least 95 of 100."""
    missed = []
    for said, opposite in FLIPS:
        rows = account_of([*talk(2, 1), human(50, said), *talk(2, 2, start=60)], [opposite])
        if not any(row.flipped for row in rows if row.text == said):
            missed.append(said)
    assert len(missed) <= (1 - FLIPS_FOUND_MIN) * len(FLIPS), missed


@pytest.mark.parametrize("rounds", [5, pytest.param(200, marks=pytest.mark.soak)])
def test_a_summary_word_for_word_raises_no_alarm(rounds: int) -> None:
    """Nothing is introduced, altered or turned round by lines that were said, in less than one of a hundred units."""
    units = alarms = 0
    for seed in range(rounds):
        chance = random.Random(seed)
        said = [text for text, _ in FLIPS] + list(PLANTED)
        chance.shuffle(said)
        entries = [human(number, text) for number, text in enumerate(said, 1)] + talk(6, seed, start=200)
        lines = [text for entry in entries for _, text in entry.texts() if text and chance.random() < 0.5]
        rows = account_of(entries, lines)
        units += sum(row.unit in (UnitKind.CLAUSE, UnitKind.ATOM) for row in rows)
        alarms += sum(row.status in (Status.INTRODUCED, Status.ALTERED) or row.flipped for row in rows)
    assert alarms < FALSE_MAX * units
