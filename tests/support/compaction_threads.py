"""Threads for the tests of compaction: made up from a seed, with facts planted in six languages."""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from threadmark.compaction.input.analysis import Analyses
from threadmark.compaction.input.source import Call, Part, PartKind, Role, SourceEntry
from threadmark.compaction.ledger import GENESIS, History, Ledger, histories
from threadmark.compaction.model.plan import Plan, Situation
from threadmark.compaction.model.policy import Policy
from threadmark.compaction.run.compact import compact
from threadmark.compaction.run.planning import plan_compaction
from threadmark.compaction.run.proposal import Aborted, CompactionRequest, Proposal
from threadmark.compaction.summary import Summariser, estimate_tokens
from threadmark.compaction.view import Segment, View, first_view

__all__ = ["PLANTED", "Thread", "ai", "fuzzed_history", "human", "message", "talk", "tool"]

#: Sentences of people that must outlive every compaction.
PLANTED = (
    "Never write to the production database.",
    "We decided to use PostgreSQL for the ledger.",
    "I'll send invoice INV-000412 over $47,500 by December 4, 2026.",
    "Actually, the contact is anna.smith@example.org.",
    "Das Budget darf 12.500 € nicht überschreiten.",
    "Wir haben beschlossen, am 17.06.2026 umzuziehen.",
    "N'envoyez jamais le fichier /srv/data/clients.csv au client.",
    "Nous avons décidé de livrer le 22 juin 2026.",
    "Nunca llames antes de las 9:00.",
    "Hemos decidido pagar un 15 % por adelantado.",
    "预算不得超过5万元。",
    "我们决定在2026年12月4日上线。",
    "返品は必ず3月15日までに受け付けてください。",
    "月額120万円で契約することにしました。",
)
_SMALL_TALK = (
    "The weather was fine and the team was in good spirits.",
    "Here is what I found so far about the matter.",
    "Das Treffen war angenehm und hat allen gefallen.",
    "Le rapport contient plusieurs pages de chiffres.",
    "大家都觉得这个方案看起来很清楚。",
    "That makes sense, please go on with the next part.",
)
_FACTS = (
    "Server db-{n}.prod.example.com answered in {n} ms.",
    "See https://example.org/tickets/{n} and file /var/log/app/{n}.log for details.",
    "Ticket OPS-{n} belongs to anna.{n}@example.org, amount ${n}.50.",
    "ValueError: code {n} in module_{n}.run()",
    "Version {n}.2.1 has {n} users; commit a{n}bc9fd2.",
)


def message(seq: int, role: Role, text: str, **more: object) -> SourceEntry:
    """An entry with one text; `more` are fields of SourceEntry."""
    fields: dict[str, object] = {"parts": (Part(text=text),), "tokens": estimate_tokens(text) + 4, **more}
    return SourceEntry(seq=seq, role=role, **fields)  # type: ignore[arg-type]


def human(seq: int, text: str, **more: object) -> SourceEntry:
    """What a person says."""
    return message(seq, Role.HUMAN, text, **more)


def ai(seq: int, text: str, *call_ids: str, **more: object) -> SourceEntry:
    """What the model says, with calls."""
    calls = tuple(Call(call_id=call_id, name="lookup", arguments=json.dumps({"id": seq})) for call_id in call_ids)
    return message(seq, Role.AI, text, calls=calls, **more)


def tool(seq: int, text: str, call_id: str, **more: object) -> SourceEntry:
    """What a tool returned."""
    return message(seq, Role.TOOL, text, answers=(call_id,), name="lookup", **more)


def talk(
    turns: int, seed: int = 0, *, planted: Sequence[str] = (), start: int = 1, tool_words: int = 60
) -> list[SourceEntry]:
    """A tidy conversation: each turn a question, sometimes a call with its result, and an answer.

    The planted sentences are said by people, spread over the turns.
    """
    chance = random.Random(seed)
    entries: list[SourceEntry] = []
    seq = start
    at = {round((number + 0.5) * turns / (len(planted) + 1)): text for number, text in enumerate(planted)}
    for turn in range(turns):
        entries.append(human(seq, f"{chance.choice(_SMALL_TALK)} {at.get(turn, '')}".strip()))
        seq += 1
        if chance.random() < 0.6:
            entries.append(ai(seq, "", f"call_{seq}"))
            body = " ".join(chance.choice(_FACTS).format(n=chance.randint(10, 9_999)) for _ in range(tool_words // 8))
            entries.append(tool(seq + 1, body, f"call_{seq}"))
            seq += 2
        entries.append(
            ai(seq, f"{chance.choice(_SMALL_TALK)} {chance.choice(_FACTS).format(n=chance.randint(10, 9_999))}")
        )
        seq += 1
    return entries


def fuzzed_history(seed: int, length_max: int = 40) -> list[SourceEntry]:
    """A history as bad as they come: results shuffled, missing, doubled; ids missing; links, media, gaps in `seq`."""
    chance = random.Random(seed)
    entries: list[SourceEntry] = []
    seq = 0
    ids: list[str] = []
    while len(entries) < chance.randint(0, length_max):
        seq += chance.choice((0, 1, 1, 1, 2)) if entries else 1
        same = bool(entries) and entries[-1].seq == seq
        ordinal = entries[-1].message + 1 if same else 0
        kind = chance.random()
        text = chance.choice(
            (*_SMALL_TALK, *PLANTED, "", "<compacted id='x'>", *(fact.format(n=seq) for fact in _FACTS))
        )
        more: dict[str, object] = {
            "message": ordinal,
            "pinned": chance.random() < 0.05,
            "is_open": chance.random() < 0.03,
        }
        if chance.random() < 0.1:
            more["links"] = (f"item-{chance.randint(0, 3)}",)
        if kind < 0.3:
            entries.append(human(seq, text, **more))
        elif kind < 0.6:
            calls = [chance.choice((f"c{seq}-{n}", "", "same")) for n in range(chance.randint(0, 8))]
            entries.append(ai(seq, text, *calls, **more))
            ids.extend(calls)
            _add_results(chance, entries, calls, seq, ordinal)
            seq, ids = entries[-1].seq, ids[-20:]
        elif kind < 0.75:
            entries.append(tool(seq, text, chance.choice((*ids, "nobody", "")), **more))
        elif kind < 0.9:
            answers = tuple(chance.choice((*ids, "nobody")) for _ in range(chance.randint(1, 3)))
            entries.append(message(seq, Role.TOOL, text, answers=answers, **more))
        elif kind < 0.95:
            image = Part(
                kind=PartKind.MEDIA, media_type="image/png", digest="ab" * 32, size=9, block='{"type":"image_url"}'
            )
            entries.append(message(seq, Role.HUMAN, text, **{**more, "parts": (Part(text=text), image)}))
        else:
            entries.append(message(seq, Role.SYSTEM, text, **more))
    return entries


def _add_results(chance: random.Random, entries: list[SourceEntry], calls: list[str], seq: int, ordinal: int) -> None:
    answered = [call for call in calls if chance.random() < 0.8]
    chance.shuffle(answered)
    for call in answered * (2 if chance.random() < 0.1 else 1):
        ordinal += 1
        entries.append(tool(seq, f"result of {call} is {chance.randint(1, 99)}", call, message=ordinal))


@dataclass(slots=True)
class Thread:
    """A thread with its views, segments and ledgers, as a store would keep them."""

    entries: list[SourceEntry]
    policy: Policy = field(default_factory=lambda: Policy(keep_last_turns=2, min_gain=0.0))
    view: View = field(default_factory=lambda: first_view("v0"))
    views: dict[str, View] = field(default_factory=dict)
    segments: dict[str, Segment] = field(default_factory=dict)
    ledgers: dict[str, Ledger] = field(default_factory=dict)
    analyses: Analyses = field(default_factory=Analyses)
    root: str = GENESIS

    def situation(self) -> Situation:
        """What a plan is made from."""
        return Situation(view=self.view, entries=self.entries, segments=self.segments)

    def request(self, plan: Plan) -> CompactionRequest:
        """What the next compaction works on."""
        number = len(self.views) + 1
        history: dict[str, History] = {}
        for absorbed in plan.absorbed:
            history.update(histories(self.ledgers[self.segments[absorbed].compaction_id].rows))
        return CompactionRequest(
            compaction_id=f"c{number}",
            thread_ref="t1",
            segment_id=f"s{number}",
            view_id=f"v{number}",
            situation=self.situation(),
            plan=plan,
            policy=self.policy,
            secret=b"s" * 32,
            previous_root=self.root,
            history=history,
        )

    async def compact(self, summariser: Summariser | None = None) -> Proposal | Aborted | None:
        """Plan, compact and commit; None where there is no plan."""
        plan = plan_compaction(self.situation(), self.policy)
        if not isinstance(plan, Plan):
            return None
        proposal = await compact(self.request(plan), self.analyses, summariser)
        if isinstance(proposal, Proposal):
            self.commit(proposal)
        return proposal

    def commit(self, proposal: Proposal) -> None:
        """Keep what a transaction would."""
        self.views[self.view.view_id] = self.view
        self.view = proposal.view
        if proposal.segment is not None:
            self.segments[proposal.segment.segment_id] = proposal.segment
        self.ledgers[proposal.compaction_id] = proposal.ledger
        self.root = proposal.ledger.root
