"""Histories with tool calls as bad as a sound provider still accepts, and what of them a summariser was shown.

Seeded. Before a compaction no history has an orphan: each call has its result in its place, or is open at the end.
"""

import json
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bench.parts.threads import FACTS, NAMES, OUTPUT, PROSE
from threadmark.compaction import Call, Part, Role, SourceEntry, estimate_tokens

__all__ = ["HistoryMessage", "Sent", "history", "orphans", "share_shown", "source_entries"]

PARALLEL_MAX = 8
#: Ends every sentence, so that each can be found again in a prompt.
_MARK = re.compile(r"k\d{7}\b")


@dataclass(frozen=True, slots=True)
class HistoryMessage:
    """One message. `calls` are ids with arguments as JSON; a tool's message has a text for each call it answers."""

    number: int
    role: Role
    texts: tuple[str, ...]
    calls: tuple[tuple[str, str], ...] = ()
    answers: tuple[str, ...] = ()
    failed: bool = False
    is_open: bool = False  #: a person is asked and has not answered

    def sentences(self) -> Iterator[str]:
        """Every sentence of it, with its mark; arguments of calls are sentences too."""
        for text in (*self.texts, *(arguments for _, arguments in self.calls)):
            start = 0
            for mark in _MARK.finditer(text):
                yield text[start : mark.end()].strip()
                start = mark.end()


@dataclass(frozen=True, slots=True)
class Sent:
    """A message that the model would be sent, as far as calls and results go."""

    calls: tuple[str, ...] = ()
    answer: str | None = None


def orphans(sent: Sequence[Sent], still_open: frozenset[str]) -> int:
    """Results without their call before them, calls without their result before the next speaker, and open calls gone.

    The rule of Chat Completions. `still_open` are calls that wait for a person: they may be without a result at the
    end, and when they are not there, their result will come without a call.
    """
    count = 0
    waiting: list[str] = []
    for message in sent:
        if message.answer is not None:
            count += message.answer not in waiting
            waiting = [call for call in waiting if call != message.answer]
        else:
            count += len(waiting)
            waiting = list(message.calls)
    gone = still_open - {call for message in sent for call in message.calls}
    return count + sum(call not in still_open for call in waiting) + len(gone)


def share_shown(covered: Iterable[HistoryMessage], prompts: Sequence[str]) -> float:
    """Characters of the covered sentences that stand whole in a prompt, as a share; 1.0 where nothing is covered."""
    ends = {mark[0]: (prompt, mark.end()) for prompt in prompts for mark in _MARK.finditer(prompt)}
    total = shown = 0
    for message in covered:
        for sentence in message.sentences():
            total += len(sentence)
            prompt, end = ends.get(sentence[-8:], ("", 0))
            shown += len(sentence) if prompt[max(0, end - len(sentence)) : end] == sentence else 0
    return shown / total if total else 1.0


def history(seed: int, tokens: int, output_lines: int) -> list[HistoryMessage]:
    """A history of about so many tokens by estimate; a tool's result has up to `output_lines` lines."""
    maker = _Maker(seed, output_lines)
    while maker.tokens < tokens:
        maker.turn()
    if maker.chance.random() < 1 / 6:
        maker.batch(ends_open=True)
    return maker.messages


def source_entries(messages: Sequence[HistoryMessage]) -> list[SourceEntry]:
    """The history as Threadmark's compaction reads it."""
    return [
        SourceEntry(
            seq=message.number,
            role=message.role,
            parts=tuple(Part(text=text) for text in message.texts),
            name="lookup" if message.answers else None,
            calls=tuple(Call(call_id=call, name="lookup", arguments=arguments) for call, arguments in message.calls),
            answers=message.answers,
            failed=message.failed,
            is_open=message.is_open,
            tokens=sum(map(estimate_tokens, message.texts)) + sum(estimate_tokens(each) for _, each in message.calls),
        )
        for message in messages
    ]


class _Maker:
    def __init__(self, seed: int, output_lines: int) -> None:
        self.chance = random.Random(seed)
        self.messages: list[HistoryMessage] = []
        self.tokens = 0
        self._lines, self._mark = output_lines, 0

    def turn(self) -> None:
        """A person asks, up to three batches of calls run, the model answers."""
        self._say(Role.HUMAN, (self._text((*PROSE, *FACTS), 4),))
        for _ in range(self.chance.randint(0, 3)):
            self.batch()
        self._say(Role.AI, (self._text((*PROSE, *FACTS), 5),))

    def batch(self, *, ends_open: bool = False) -> None:
        """Parallel calls and their results, shuffled, some in one message; what needed an approval comes last."""
        chance, number = self.chance, len(self.messages) + 1
        calls = [(f"c{number}-{at}", self._arguments()) for at in range(chance.randint(1, PARALLEL_MAX))]
        ids = [call for call, _ in calls]
        chance.shuffle(ids)
        approvals = ids[: chance.randint(1, len(ids))] if ends_open or chance.random() < 0.25 else []
        at_once = [call for call in ids if call not in approvals]
        said = (self._text(PROSE, 1),) if chance.random() < 0.5 else ()
        self._say(Role.AI, said, calls=tuple(calls), is_open=ends_open)
        self._results(at_once, refused=False)
        if not ends_open:
            self._results(approvals, refused=chance.random() < 0.3)

    def _results(self, ids: list[str], *, refused: bool) -> None:
        while ids:
            here, ids = (ids[:1], ids[1:]) if self.chance.random() < 0.7 else (ids[:3], ids[3:])
            texts = tuple(
                self._text(("A person refused this call. ",), 1)
                if refused
                else self._text(OUTPUT, self.chance.randint(1, self._lines))
                for _ in here
            )
            self._say(Role.TOOL, texts, answers=tuple(here), failed=refused)

    def _say(
        self,
        role: Role,
        texts: tuple[str, ...],
        *,
        calls: tuple[tuple[str, str], ...] = (),
        answers: tuple[str, ...] = (),
        failed: bool = False,
        is_open: bool = False,
    ) -> None:
        self.messages.append(HistoryMessage(len(self.messages) + 1, role, texts, calls, answers, failed, is_open))
        self.tokens += sum(map(estimate_tokens, texts)) + sum(estimate_tokens(each) for _, each in calls)

    def _arguments(self) -> str:
        return json.dumps({"query": self._text(("orders of {name}",), 1).strip()})

    def _text(self, templates: tuple[str, ...], count: int) -> str:
        return "".join(self._sentence(self.chance.choice(templates)) for _ in range(count))

    def _sentence(self, template: str) -> str:
        chance = self.chance
        name = chance.choice(NAMES)
        self._mark += 1
        text = template.format(
            n=chance.randint(100, 99_999),
            d=chance.randint(1, 9),
            host=f"db-{chance.randint(1, 400)}.prod.example.com",
            time=f"{chance.randint(10, 19)}:{chance.randint(10, 59)}",
            name=name,
            name2=name.split()[0].lower(),
        )
        return f"{text.strip()} k{self._mark:07} "
