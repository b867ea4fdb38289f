"""Threads made up by rule: talk with facts in it, calls of tools and what they returned."""

import random
from collections.abc import Iterator

from threadmark.compaction.input.source import Call, Part, Role, SourceEntry
from threadmark.compaction.summary import estimate_tokens

__all__ = ["FACTS", "NAMES", "OUTPUT", "PROSE", "entry", "thread"]

PROSE = (
    "I looked into the matter this morning and the picture is clearer than it was last week. ",
    "The second option costs a little more, but it saves everybody a lot of trouble later on. ",
    "Could you tell me whether the numbers in the table include the orders from the spring? ",
    "We talked it over with the team, and nobody had an objection to the change as described. ",
    "The documentation says otherwise, yet what I see in the output does not agree with it. ",
    "Das klingt vernünftig, wir sollten es so machen und in zwei Wochen noch einmal darüber reden. ",
    "Je pense que la première solution est la plus simple, même si elle demande un peu de patience. ",
    "这个方案大家都看过了，没有人反对，可以按照原来的计划继续。",
)
FACTS = (
    "Never restart {host} before {time}. ",
    "Invoice INV-{n:06} over ${n},250 is due on 2026-0{d}-1{d}. ",
    "We decided to keep version {d}.{d}.{n} for now. ",
    "See https://example.org/tickets/{n} and /var/log/app/{n}.log for the details. ",
    "{name} ({name2}@example.org) will call at {time}. ",
    "Latency fell from {n} ms to {d} ms, a gain of {d}.5%. ",
)
OUTPUT = (
    '{{"id": {n}, "host": "{host}", "status": "ok", "latency_ms": {n}, "commit": "a{n}bc9f{d}e"}}\n',
    "2026-0{d}-1{d}T0{d}:1{d}:0{d}Z INFO worker.pool handled request {n} in {d} ms\n",
    "ValueError: unexpected token at position {n}\n",
)
NAMES = ("Anna Schmidt", "Tom Becker", "Priya Raman", "Carmen Ruiz", "Olivier Caron")


def thread(tokens: int, seed: int = 0, *, dense: bool = False) -> list[SourceEntry]:
    """A conversation of so many tokens by estimate.

    An ordinary one has a value in about every 150 characters. A dense one is half facts and tool output, with a
    value in every 40: a thread of logs and tables.
    """
    chance = random.Random(seed)
    entries: list[SourceEntry] = []
    spent = 0
    while spent < tokens:
        seq = len(entries) + 1
        for each in _turn(chance, seq, 1 if dense else 5):
            entries.append(each)
            spent += each.tokens
    return entries


def _turn(chance: random.Random, seq: int, prose: int) -> Iterator[SourceEntry]:
    yield entry(seq, Role.HUMAN, _text(chance, PROSE, 3 * prose) + _text(chance, FACTS, 1))
    call = Call(call_id=f"call_{seq}", name="lookup", arguments='{"query": "orders", "limit": 20}')
    yield entry(seq + 1, Role.AI, _text(chance, PROSE, prose), calls=(call,))
    yield entry(seq + 2, Role.TOOL, _text(chance, OUTPUT, 4), answers=(call.call_id,), name="lookup")
    yield entry(seq + 3, Role.AI, _text(chance, PROSE, 4 * prose) + _text(chance, FACTS, 2))


def entry(seq: int, role: Role, text: str, **more: object) -> SourceEntry:
    """An entry of one text; `more` are further fields of it."""
    return SourceEntry(seq=seq, role=role, parts=(Part(text=text),), tokens=estimate_tokens(text), **more)  # type: ignore[arg-type]


def _text(chance: random.Random, templates: tuple[str, ...], count: int) -> str:
    name = chance.choice(NAMES)
    return "".join(
        chance.choice(templates).format(
            n=chance.randint(100, 99_999),
            d=chance.randint(1, 9),
            host=f"db-{chance.randint(1, 400)}.prod.example.com",
            time=f"{chance.randint(10, 19)}:{chance.randint(10, 59)}",
            name=name,
            name2=name.split()[0].lower(),
        )
        for _ in range(count)
    )
