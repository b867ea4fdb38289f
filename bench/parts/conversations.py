"""Conversations made up by rule: people talk, facts hide among small talk, and questions use other words than the talk.

Seeded, so that every run measures the same; free of any other data set. Each question knows the turns that answer it.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

__all__ = ["Asked", "Conversation", "Said", "synthetic"]

SEED = 20261129
CONVERSATION_COUNT = 6
SESSION_COUNT = 14
START = datetime(2024, 2, 3, 10, tzinfo=UTC)

NAMES = [
    ("Mira", "Tobias"),
    ("Keiko", "Anders"),
    ("Lena", "Omar"),
    ("Priya", "Jonas"),
    ("Nadia", "Felix"),
    ("Ines", "Hugo"),
]
SMALL_TALK = [
    "How has your week been?",
    "That sounds wonderful, tell me more!",
    "I'm a bit tired today, long meetings.",
    "The weather turned again, didn't it?",
    "Haha, I can imagine.",
    "Let's catch up properly soon.",
    "I was thinking about that too.",
    "Take care, talk to you later!",
    "Oh wow, congratulations!",
    "Did you sleep well?",
    "I really needed that break.",
    "Same here, to be honest.",
]
#: What is said; what is asked; where in the category; both with the same slot.
FACTS = [
    (
        "I finally bought a {x} last weekend.",
        "What did {who} purchase?",
        "single",
        ["cello", "kayak", "sewing machine", "telescope"],
    ),
    (
        "We adopted a {x} from the shelter yesterday!",
        "Which animal does {who} have as a pet?",
        "single",
        ["greyhound", "tabby kitten", "parrot", "tortoise"],
    ),
    (
        "I started working at a {x} this month.",
        "Where is {who} employed?",
        "single",
        ["bakery", "law firm", "hospital pharmacy", "shipyard"],
    ),
    (
        "My sister is moving to {x} for her studies.",
        "Which city will {who}'s sibling live in?",
        "single",
        ["Lisbon", "Tromsø", "Kyoto", "Valparaíso"],
    ),
    (
        "I ran my first {x} on Sunday.",
        "When did {who} take part in the {x}?",
        "temporal",
        ["half marathon", "triathlon", "mountain race", "relay"],
    ),
    (
        "I signed up for a {x} class.",
        "When did {who} join the {x} course?",
        "temporal",
        ["pottery", "salsa", "welding", "Norwegian"],
    ),
    (
        "The doctor says I'm allergic to {x}.",
        "What must {who} avoid eating?",
        "single",
        ["hazelnuts", "shellfish", "sesame", "strawberries"],
    ),
    (
        "I painted the kitchen {x}, it took all day.",
        "What colour is {who}'s kitchen?",
        "single",
        ["sage green", "mustard yellow", "deep blue", "terracotta"],
    ),
]
#: Facts that come in two parts, days apart: the question needs both.
PAIRS = [
    (
        "I went hiking in the {x}.",
        "Which places has {who} hiked in?",
        ["Dolomites", "Cairngorms", "Tatras", "Rila mountains"],
    ),
    (
        "I read a great book by {x}.",
        "Whose books has {who} read?",
        ["Tove Jansson", "Octavia Butler", "Italo Calvino", "Han Kang"],
    ),
    (
        "I baked {x} for the neighbours.",
        "What has {who} baked?",
        ["cinnamon buns", "a rye loaf", "almond cake", "focaccia"],
    ),
]
FOLLOW_UPS = [
    "I had wanted one for years.",
    "It still feels unreal.",
    "My knees hurt, but it was worth it.",
    "You should come and see.",
]


@dataclass(frozen=True)
class Said:
    """One turn."""

    name: str
    speaker: str
    text: str
    at: datetime


@dataclass(frozen=True)
class Asked:
    """One question and the names of the turns that answer it."""

    text: str
    evidence: list[str]
    category: str


@dataclass
class Conversation:
    """Turns in order, and the questions about them."""

    name: str
    said: list[Said] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)


def synthetic() -> Iterator[Conversation]:
    """The conversations."""
    chance = random.Random(SEED)
    for number in range(CONVERSATION_COUNT):
        yield _conversation(f"synthetic-{number}", NAMES[number], chance)


def _conversation(name: str, people: tuple[str, str], chance: random.Random) -> Conversation:
    made = Conversation(name=name)
    plan: dict[int, list[tuple[str, str]]] = {session: [] for session in range(SESSION_COUNT)}
    waiting: dict[tuple[str, str], tuple[str, str, str]] = {}
    for who in people:
        for statement, question, category, values in FACTS:
            value = chance.choice(values)
            line = statement.format(x=value)
            plan[chance.randrange(SESSION_COUNT)].append((who, line))
            waiting[who, line] = (question.format(who=who, x=value), category, line)
        for statement, question, values in PAIRS:
            for value in chance.sample(values, 2):
                line = statement.format(x=value)
                plan[chance.randrange(SESSION_COUNT)].append((who, line))
                waiting[who, line] = (question.format(who=who), "multi", line)
    places = _talk(made, plan, people, chance)
    by_question: dict[tuple[str, str], list[str]] = {}
    for key, (question, category, _) in waiting.items():
        by_question.setdefault((question, category), []).append(places[key])
    made.asked = [
        Asked(text=question, evidence=evidence, category=category)
        for (question, category), evidence in by_question.items()
    ]
    return made


def _talk(
    made: Conversation, plan: dict[int, list[tuple[str, str]]], people: tuple[str, str], chance: random.Random
) -> dict[tuple[str, str], str]:
    places: dict[tuple[str, str], str] = {}
    for session, facts in plan.items():
        at = START + timedelta(days=17 * session, hours=chance.randrange(8))
        lines: list[tuple[str, str]] = []
        for fact in facts:
            lines += [(chance.choice(people), chance.choice(SMALL_TALK)) for _ in range(chance.randrange(1, 5))]
            lines += [fact, (fact[0], chance.choice(FOLLOW_UPS))]
        lines += [(chance.choice(people), chance.choice(SMALL_TALK)) for _ in range(6)]
        for turn, (speaker, text) in enumerate(lines):
            name = f"{session}:{turn}"
            made.said.append(Said(name=name, speaker=speaker, text=text, at=at + timedelta(minutes=turn)))
            places.setdefault((speaker, text), name)
    return places
