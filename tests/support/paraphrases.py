"""Questions in other words about what people said, and how many of them the right drop answers."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.compaction_threads import Thread, ai, human, talk
from threadmark.compaction.drops.drop_search import DropQuery, recall_dropped
from threadmark.compaction.input.source import Position, SourceEntry
from threadmark.compaction.ledger import Row, UnitKind
from threadmark.compaction.model.policy import Policy
from threadmark.compaction.run.proposal import Proposal

__all__ = ["LANGUAGES", "DroppedTalk", "Probe", "by_shared_words", "dropped_talk", "found_of", "read_probes"]

LANGUAGES = ("en", "de", "fr", "es", "zh", "ja")
_FOLDER = Path(__file__).parents[1] / "data" / "compaction"
_GONE = DropQuery().statuses
#: What a question was answered with: entry and words.
Answer = tuple[int, str]


@dataclass(frozen=True, slots=True)
class Probe:
    """A question, and the words that answer it in the entry `seq`."""

    seq: int
    answer: str
    question: str
    is_held: bool  #: nothing was tuned for it


@dataclass(frozen=True, slots=True)
class DroppedTalk:
    """A conversation whose summary says nothing of it."""

    rows: Sequence[Row]
    entries: dict[Position, SourceEntry]
    probes: Sequence[Probe]

    def gone(self) -> list[Row]:
        """What a search may answer with."""
        return [row for row in self.rows if row.status in _GONE]

    def recalled(self, question: str) -> list[Answer]:
        """The five answers of the agent's tool."""
        found = recall_dropped(self.rows, self.entries, DropQuery(text=question, as_question=True))
        return [(each.source.seq, each.text) for each in found]


def read_probes(name: str) -> tuple[list[SourceEntry], list[Probe]]:
    """The messages of a file, and what is asked about them."""
    entries: list[SourceEntry] = []
    probes: list[Probe] = []
    for line in (_FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        mark, text = line.split(" ", 1)
        if mark in "PX":
            answer, question = text.split(" | ")
            assert answer in entries[-1].text(), line
            probes.append(Probe(entries[-1].seq, answer, question, mark == "X"))
        else:
            entries.append((human if mark == "H" else ai)(len(entries) + 1, text))
    return entries, probes


async def dropped_talk(name: str, other_turns: int = 0) -> DroppedTalk:
    """The conversation of a file after a compaction that kept its first and its last turn, and no words of the rest.

    `other_turns` more, made up from values in English, stand behind it.
    """
    entries, probes = read_probes(name)
    entries.extend(talk(other_turns, start=len(entries) + 1))
    policy = Policy(keep_last_turns=1, min_gain=0.0, summary_tokens=0, appendix_tokens=0, keep_first_request=False)
    proposal = await Thread(entries, policy).compact()
    assert isinstance(proposal, Proposal)
    return DroppedTalk(proposal.ledger.rows, {entry.position: entry for entry in entries}, probes)


def found_of(probes: Sequence[Probe], answered: Callable[[str], Sequence[Answer]]) -> list[Probe]:
    """The probes whose answer is among the first five: in the right message, and word for word."""
    return [
        probe
        for probe in probes
        if any(seq == probe.seq and probe.answer in text for seq, text in answered(probe.question)[:5])
    ]


def by_shared_words(talk: DroppedTalk) -> Callable[[str], Sequence[Answer]]:
    """What counting the words that a question and a drop share would answer."""
    gone = [row for row in talk.gone() if row.unit is not UnitKind.PART]

    def answered(question: str) -> Sequence[Answer]:
        asked = _words(question)
        shared = [(len(asked & _words(row.text)), row) for row in gone]
        best = sorted((each for each in shared if each[0]), key=lambda each: -each[0])
        return [(row.sources[0].seq, row.text) for _, row in best]

    return answered


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.casefold()))
